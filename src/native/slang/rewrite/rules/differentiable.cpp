#include "slang/rewrite/rules/differentiable.h"

#include <algorithm>
#include <array>

namespace spy {

std::vector<syntax::NodeId> differentiable_functions(const ParsedSource& source)
{
    const syntax::Tree& tree = source.tree();
    std::vector<syntax::NodeId> result;
    for (const syntax::Function& function : source.scopes().functions())
        if (function.may_be_differentiable)
            result.push_back(function.node);
    for (syntax::NodeId n = 0; n < tree.size(); ++n)
        if (tree.is(n, syntax::Kind::accessor))
            for (const syntax::NodeId modifier : tree.children(tree.child(n, 0)))
                if (tree.main(modifier).ends_with("ifferentiable"))
                    result.push_back(n);
    std::erase_if(result,
                  [&](syntax::NodeId n) { return syntax::body_of(tree, n) == syntax::none || !tree.is_understood(n); });
    std::sort(result.begin(), result.end());
    return result;
}

bool is_of_floats(const syntax::Type& type)
{
    using syntax::Kind, syntax::Shape;
    const bool is_number = type.shape >= Shape::scalar && type.shape <= Shape::matrix;
    if (type.is_float || type.written == syntax::none || (!is_number && type.shape != Shape::generic))
        return is_number && type.is_float;
    const syntax::Tree& tree = type.written_in->tree();
    const bool is_vector = tree.is(type.written, Kind::generic_use); // vector<T, 2>
    const syntax::Variable* variable = type.written_in->find(is_vector ? tree.child(type.written, 1) : type.written);
    return variable != nullptr && variable->role == syntax::Role::generic &&
        tree.text(tree.child(variable->node, 0)) == "__BuiltinFloatingPointType";
}

bool is_float_number(const syntax::Scopes& scopes, uint32_t variable)
{
    using syntax::Shape;
    const syntax::Tree& tree = scopes.tree();
    const auto is_number = [](const syntax::Type& type) {
        return type.is_float && type.shape >= Shape::scalar && type.shape <= Shape::matrix;
    };
    const syntax::Variable& of = scopes.variables()[variable];
    if (!of.type.empty() || !tree.is(of.node, syntax::Kind::declarator))
        return is_number(syntax::type_of(scopes, of));
    const syntax::NodeId value = tree.child(of.node, 2);
    for (syntax::NodeId n = value; n < value + tree[value].size; ++n)
        if (const uint32_t other = scopes.variable_of(n); tree.is(n, syntax::Kind::name) && other != syntax::none) {
            if (other >= variable || !is_float_number(scopes, other))
                return false;
        } else if (tree.is(n, syntax::Kind::list) || tree.is(n, syntax::Kind::index) ||
                   (tree.is(n, syntax::Kind::name) && !is_number(syntax::type_at(scopes, n)))) {
            return false;
        }
    return tree.has(value);
}

bool is_declared(const syntax::Scopes& scopes, syntax::NodeId callee)
{
    const std::string_view name = scopes.tree().main(callee);
    return !scopes.tree().is(callee, syntax::Kind::name) || scopes.variable_of(callee) != syntax::none ||
        !scopes.callees(name).empty() || !scopes.types(name).empty();
}

bool is_own_link(const syntax::Scopes& scopes, syntax::NodeId callee)
{
    static constexpr std::array names = {
        "abs",  "acos", "asin",  "atan",     "atan2", "clamp", "cos",        "cosh", "cross", "dot",  "exp",
        "exp2", "fma",  "frac",  "length",   "lerp",  "log",   "log10",      "log2", "max",   "min",  "normalize",
        "pow",  "rcp",  "rsqrt", "saturate", "sin",   "sinh",  "smoothstep", "sqrt", "tan",   "tanh",
    };
    const std::string_view name = scopes.tree().main(callee);
    return scopes.tree().macro(name) == nullptr && !is_declared(scopes, callee) &&
        std::binary_search(names.begin(), names.end(), name);
}

} // namespace spy
