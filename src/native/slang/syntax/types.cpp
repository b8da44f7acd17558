#include "slang/syntax/types.h"

#include <algorithm>
#include <cctype>

namespace spy::syntax {
namespace {

constexpr int max_depth = 8; // of aliases and structs in structs

struct Basic {
    std::string_view name;
    bool is_float;
};
constexpr Basic basics[] = {{"float", true},     {"half", true},      {"double", true},    {"int", false},
                            {"uint", false},     {"bool", false},     {"float16_t", true}, {"float32_t", true},
                            {"float64_t", true}, {"int8_t", false},   {"int16_t", false},  {"int32_t", false},
                            {"int64_t", false},  {"uint8_t", false},  {"uint16_t", false}, {"uint32_t", false},
                            {"uint64_t", false}, {"uintptr_t", false}};

const Basic* basic(std::string_view name)
{
    const auto found = std::find_if(std::begin(basics), std::end(basics),
                                    [&](const Basic& b) { return b.name == name; });
    return found == std::end(basics) ? nullptr : found;
}

Type with_scalar(Shape shape, std::string_view name, const Basic* scalar)
{
    Type type;
    type.shape = shape;
    type.name = name;
    type.is_float = type.is_differentiable = scalar != nullptr && scalar->is_float;
    type.is_discrete = scalar != nullptr && !scalar->is_float;
    return type;
}

/// float, int3, half2x3.
Type basic_type(std::string_view name)
{
    if (const Basic* scalar = basic(name))
        return with_scalar(Shape::scalar, name, scalar);
    const size_t digits = name.find_last_not_of("1234x") + 1;
    const Basic* scalar = digits < name.size() ? basic(name.substr(0, digits)) : nullptr;
    const bool is_matrix = scalar != nullptr && name.size() == digits + 3 && name[digits + 1] == 'x';
    if (scalar == nullptr || (name.size() != digits + 1 && !is_matrix))
        return {};
    return with_scalar(is_matrix ? Shape::matrix : Shape::vector, name, scalar);
}

bool names_memory(std::string_view name)
{
    static constexpr std::string_view parts[] = {"Buffer", "Texture", "Tensor", "Sampler", "Structure", "Ptr"};
    return std::any_of(std::begin(parts), std::end(parts),
                       [&](std::string_view part) { return name.find(part) != name.npos; });
}

class TypeReader {
public:
    explicit TypeReader(int depth) : m_depth(depth) { }

    Type at(const Scopes& scopes, NodeId node) const
    {
        Type type = read(scopes, node);
        if (type.dimensions == 0) {
            type.written = node;
            type.written_in = &scopes;
        }
        return type;
    }

    Type declared(const Scopes& scopes, const Variable& variable) const
    {
        const Tree& tree = scopes.tree();
        if (variable.role == Role::this_)
            return named_type(scopes, variable.node);
        const bool is_declarator = tree.is(variable.node, Kind::declarator);
        const NodeId node = is_declarator ? type_of(tree, variable.node)
            : tree.is(variable.node, Kind::property)
            ? tree.child(variable.node, tree.has(tree.child(variable.node, 1)) ? 1 : 2)
            : none;
        if (node == none)
            return is_declarator && m_depth < max_depth
                ? TypeReader(m_depth + 1).of_value(scopes, tree.child(variable.node, 2))
                : Type();
        Type type = at(scopes, node);
        return is_declarator ? array_of(type, tree.count(tree.child(variable.node, 0))) : type;
    }

    Type of_value(const Scopes& scopes, NodeId value) const
    {
        const Tree& tree = scopes.tree();
        switch (tree.kind(value)) {
        case Kind::name: {
            if (const std::string_view word = tree.main(value); word == "true" || word == "false")
                return basic_type("bool");
            const Variable* variable = scopes.find(value);
            return variable == nullptr || variable->role == Role::generic ? Type() : declared(scopes, *variable);
        }
        case Kind::literal: return literal(tree.main(value));
        case Kind::member:
            if (const Variable* field = scopes.find(value); field != nullptr) // this.x
                return declared(scopes, *field);
            [[fallthrough]];
        case Kind::index: return step(scopes, of_value(scopes, tree.child(value, 0)), value);
        case Kind::call: return of_call(scopes, value);
        case Kind::cast: return at(scopes, tree.child(value, 0));
        case Kind::prefix:
        case Kind::postfix:
        case Kind::paren:
        case Kind::conditional:
        case Kind::binary: return of_operator(scopes, value, tree.is(value, Kind::paren) ? "" : tree.main(value));
        default: return {};
        }
    }

    /// Of what is picked from a value.
    Type step(const Scopes& scopes, Type type, NodeId step) const;

    Type named_type(const Scopes& scopes, NodeId node) const
    {
        const Tree& tree = scopes.tree();
        Type type;
        type.in = &scopes;
        type.node = node;
        type.name = tree.main(node);
        const std::string_view word = tree.token(tree[tree.child(node, 0)].last);
        type.shape = word == "interface" ? Shape::interface : word == "enum" ? Shape::scalar : Shape::structure;
        type.is_discrete = word == "enum";
        for (const NodeId base : tree.children(tree.child(node, 3)))
            type.is_differentiable |= is_differentiable_base(scopes, base);
        if (type.shape == Shape::structure && holds_memory(scopes, node))
            type.shape = Shape::memory;
        return type;
    }

    static Type array_of(Type type, size_t dimensions)
    {
        if (dimensions > 0 && type.shape != Shape::memory)
            type.shape = Shape::array;
        type.dimensions = uint8_t(std::min<size_t>(type.dimensions + dimensions, 255));
        return type;
    }

private:
    static Type literal(std::string_view word)
    {
        if (!std::isdigit(static_cast<unsigned char>(word[0])) && word[0] != '.')
            return {};
        return basic_type(word.find_first_of(word.starts_with("0x") ? "." : ".eEfFhH") != word.npos ? "float" : "int");
    }

    Type of_operator(const Scopes& scopes, NodeId node, std::string_view sign) const
    {
        static constexpr std::string_view truths[] = {"!", "<", ">", "<=", ">=", "==", "!=", "&&", "||"};
        static constexpr std::string_view others[] = {"*", "&", "new", "is", "as"};
        const auto is = [&](std::string_view other) { return sign == other; };
        const bool is_alone = scopes.tree().count(node) == 1;
        const bool is_binary = scopes.tree().is(node, Kind::binary);
        if (std::any_of(std::begin(others) + (is_alone ? 0 : 2), std::end(others), is))
            return {};
        Type type = of_values(scopes, node, scopes.tree().is(node, Kind::conditional) || sign == "," ? 1 : 0);
        if (is_binary && sign != "," && type.shape > Shape::matrix && type.shape != Shape::generic)
            return {}; // an operator of the source's own
        if ((is_alone || is_binary) && std::any_of(std::begin(truths), std::end(truths), is)) {
            type.is_float = type.is_differentiable = false;
            type.is_discrete = true;
        }
        return type;
    }

    /// Of what the children from one on give together, element by element: numbers, vectors or matrices and numbers, or
    /// values of one type.
    Type of_values(const Scopes& scopes, NodeId node, size_t first) const
    {
        const Tree& tree = scopes.tree();
        Type type = of_value(scopes, tree.child(node, first));
        for (size_t k = first + 1; k < tree.count(node); ++k) {
            const Type other = of_value(scopes, tree.child(node, k));
            if (type.shape == Shape::unknown || other.shape == Shape::unknown)
                return {};
            if (type.shape > Shape::matrix || other.shape > Shape::matrix) {
                if (other.shape != type.shape || other.name != type.name || other.dimensions != type.dimensions)
                    return {};
                continue;
            }
            const bool is_float = type.is_float || other.is_float;
            if (other.shape > type.shape || (other.shape == type.shape && other.is_float))
                type = other;
            type.is_float = type.is_differentiable = is_float;
            type.is_discrete = !is_float;
        }
        return type;
    }

    /// Of what a constructor or a function gives.
    Type of_call(const Scopes& scopes, NodeId call) const
    {
        const Tree& tree = scopes.tree();
        const NodeId callee = tree.child(call, 0);
        const std::string_view name = tree.main(callee);
        const auto functions = scopes.callees(name, tree.count(call) - 1);
        Type type;
        for (const auto& [in, function] : functions) {
            const NodeId result = result_of(in->tree(), function->node);
            const Type other = result == none ? Type() : at(*in, result);
            if (function != functions.front().function &&
                (other.shape != type.shape || other.name != type.name || other.dimensions != type.dimensions))
                return {};
            type = other;
        }
        if (!functions.empty())
            return type;
        if (type = at(scopes, callee);
            type.shape != Shape::unknown || !only_reads_arguments(name) || tree.count(call) == 1)
            return type;
        if (name == "dot" || name == "length" || name == "distance")
            return basic_type("float");
        type = of_values(scopes, call, 1);
        return type.shape == Shape::scalar && name != "diffPair" ? type : Type();
    }

    Type read(const Scopes& scopes, NodeId node) const
    {
        const Tree& tree = scopes.tree();
        Type memory;
        memory.shape = Shape::memory;
        switch (tree.kind(node)) {
        case Kind::index: return array_of(at(scopes, tree.child(node, 0)), 1);
        case Kind::postfix: return memory;
        case Kind::prefix: return at(scopes, tree.child(node, 0));
        case Kind::generic_use: {
            const std::string_view name = tree.main(tree.child(node, 0));
            if (name == "Array")
                return array_of(at(scopes, tree.child(node, 1)), 1);
            if (name == "vector" || name == "matrix")
                return with_scalar(name == "vector" ? Shape::vector : Shape::matrix, name,
                                   basic(tree.text(tree.child(node, 1))));
            return named(scopes, name, tree.child(node, 0));
        }
        default: return named(scopes, tree.main(node), node);
        }
    }

    Type named(const Scopes& scopes, std::string_view name, NodeId node) const
    {
        if (const Type type = basic_type(name); type.shape != Shape::unknown)
            return type;
        if (const Variable* variable = scopes.find(node); variable != nullptr && variable->role == Role::generic) {
            Type type;
            type.shape = Shape::generic;
            type.name = name;
            const NodeId bound = variable->node == none ? none : scopes.tree().child(variable->node, 0);
            type.is_differentiable = bound != none && scopes.tree().has(bound) && is_differentiable_base(scopes, bound);
            return type;
        }
        for (const auto& [in, declaration] : scopes.types(name)) {
            if (m_depth >= max_depth)
                break;
            const Tree& tree = in->tree();
            const TypeReader deeper(m_depth + 1);
            if (!tree.is(declaration, Kind::alias)) {
                if (tree.main(declaration) == name)
                    return deeper.named_type(*in, declaration);
            } else if (const NodeId type = tree.child(declaration, 3); tree.has(type)) {
                return array_of(deeper.at(*in, type), tree.count(tree.child(declaration, 4)));
            }
        }
        Type type;
        type.name = name;
        type.shape = names_memory(name) ? Shape::memory : Shape::unknown;
        return type;
    }

    bool is_differentiable_base(const Scopes& scopes, NodeId base) const
    {
        const Tree& tree = scopes.tree();
        for (NodeId n = base; n < base + tree[base].size; ++n) { // `A & B`
            const std::string_view name = tree.is(n, Kind::name) ? tree.main(n) : std::string_view();
            if (name == "IDifferentiable" || name == "IFloat" || name == "__BuiltinFloatingPointType")
                return true;
            if (!name.empty() && m_depth < max_depth &&
                TypeReader(m_depth + 1).named(scopes, name, n).is_differentiable)
                return true;
        }
        return false;
    }

    bool holds_memory(const Scopes& scopes, NodeId node) const
    {
        const Tree& tree = scopes.tree();
        const NodeId members = tree.child(node, 5);
        if (m_depth >= max_depth || members == none)
            return m_depth >= max_depth;
        for (const NodeId field : tree.children(members))
            if (tree.is(field, Kind::variables) && !is_marked(tree, field, "static") &&
                tree.has(tree.child(field, 1)) &&
                TypeReader(m_depth + 1).at(scopes, tree.child(field, 1)).shape == Shape::memory)
                return true;
        return false;
    }

    int m_depth;
};

bool is_writable(const Type& type, int depth)
{
    if (type.shape != Shape::memory)
        return false;
    if (type.node == none)
        return type.name.empty() || type.name.find("RW") != type.name.npos || type.name.find("Ptr") != type.name.npos;
    const Tree& tree = type.in->tree();
    const NodeId members = tree.child(type.node, 5);
    if (depth >= max_depth || members == none)
        return true;
    for (const NodeId field : tree.children(members))
        if (tree.is(field, Kind::variables) && tree.has(tree.child(field, 1)) &&
            is_writable(TypeReader(0).at(*type.in, tree.child(field, 1)), depth + 1))
            return true;
    return false;
}

/// The field of a structure; null where none is known.
const Variable* field_of(const Type& type, std::string_view name, const Scopes*& in)
{
    if (type.in == nullptr)
        return nullptr;
    for (const auto& [scopes, variable] : type.in->fields(name))
        if (scopes == type.in && scopes->tree().holds(type.node, variable->node)) {
            in = scopes;
            return variable;
        }
    return nullptr;
}

Type element_of(Type type, size_t indices)
{
    for (; indices > 0; --indices) {
        if (type.shape == Shape::array && type.dimensions > 0) {
            if (--type.dimensions > 0)
                continue;
            type = type.written_in == nullptr ? Type() : type_at(*type.written_in, type.written);
        } else if (type.shape == Shape::vector || type.shape == Shape::matrix) {
            type.shape = type.shape == Shape::matrix ? Shape::vector : Shape::scalar;
        } else {
            return {};
        }
    }
    return type;
}

Type TypeReader::step(const Scopes& scopes, Type type, NodeId step) const
{
    const Tree& tree = scopes.tree();
    if (tree.is(step, Kind::index))
        return element_of(type, tree.count(step) - 1);
    if (type.shape == Shape::vector || type.shape == Shape::scalar) {
        type.shape = tree.main(step).size() == 1 ? Shape::scalar : Shape::vector;
        return type;
    }
    const Scopes* in = nullptr;
    const Variable* field = field_of(type, tree.main(step), in);
    return field == nullptr ? Type() : declared(*in, *field);
}

} // namespace

Type type_at(const Scopes& scopes, NodeId node) { return TypeReader(0).at(scopes, node); }

Type type_of(const Scopes& scopes, const Variable& variable) { return TypeReader(0).declared(scopes, variable); }

Type type_of(const Scopes& scopes, const Variable& variable, const Path& path)
{
    Type type = type_of(scopes, variable);
    for (const NodeId step : path.steps)
        type = TypeReader(0).step(scopes, type, step);
    return type;
}

Type type_of_value(const Scopes& scopes, NodeId value) { return TypeReader(0).of_value(scopes, value); }

bool is_writable_memory(const Type& type) { return is_writable(type, 0); }

} // namespace spy::syntax
