#include "slang/syntax/constants.h"

#include "slang/syntax/parser.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace spy::syntax {
namespace {

constexpr int max_links = 8; ///< of constants made of others
constexpr long max_value = 1l << 31;

std::optional<long> whole_number(std::string_view word)
{
    const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
    const std::string digits(word.substr(is_hex ? 2 : 0));
    const size_t used = std::min(digits.find_first_not_of(is_hex ? "0123456789abcdefABCDEF" : "0123456789"),
                                 digits.size());
    if (used == 0 || used > 10 || digits.find_first_not_of("uUlL", used) != digits.npos)
        return std::nullopt;
    const long value = std::strtol(digits.substr(0, used).c_str(), nullptr, is_hex ? 16 : 10);
    return value <= max_value ? std::optional(value) : std::nullopt;
}

/// A name that is written like a constant; where a source does not declare it, it is one that is imported.
bool is_upper(std::string_view name)
{
    return name.size() > 1 &&
        std::none_of(name.begin(), name.end(), [](char c) { return std::islower(static_cast<unsigned char>(c)); });
}

/// Looks at expressions of a source, and of the bodies of its macros, which have trees of their own.
class ConstantReader {
public:
    ConstantReader(const Scopes& scopes, const Tree& tree, int depth) : m_scopes(scopes), m_tree(tree), m_depth(depth)
    {
    }

    std::optional<long> value(NodeId n) const
    {
        std::optional<long> result;
        if (m_tree.is(n, Kind::literal))
            result = whole_number(m_tree.main(n));
        else if (m_tree.is(n, Kind::paren))
            result = value(m_tree.child(n, 0));
        else if (m_tree.is(n, Kind::name))
            result = value_of_name(n);
        else if (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "-")
            result = combined("-", 0, value(m_tree.child(n, 0)));
        else if (m_tree.is(n, Kind::binary))
            result = combined(m_tree.main(n), value(m_tree.child(n, 0)), value(m_tree.child(n, 1)));
        return result && std::labs(*result) <= max_value ? result : std::nullopt;
    }

    bool is_constant(NodeId n) const
    {
        if (m_tree.is(n, Kind::literal))
            return whole_number(m_tree.main(n)).has_value();
        if (m_tree.is(n, Kind::name))
            return is_constant_name(n);
        const bool is_sign = (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "-") ||
            (m_tree.is(n, Kind::binary) && is_among(m_tree.main(n), {"+", "-", "*", "/", "%", "<<", ">>"}));
        if (!is_sign && !m_tree.is(n, Kind::paren))
            return false;
        for (const NodeId child : m_tree.children(n))
            if (!is_constant(child))
                return false;
        return true;
    }

private:
    static std::optional<long> combined(std::string_view sign, std::optional<long> left, std::optional<long> right)
    {
        if (!left || !right)
            return std::nullopt;
        if (sign == "+")
            return *left + *right;
        if (sign == "-")
            return *left - *right;
        if (sign == "*")
            return *left * *right;
        return sign == "/" && *right != 0 ? std::optional(*left / *right) : std::nullopt;
    }

    /// What `read(reader, expression)` says of the body of a macro that stands for one value, and of no other macro.
    template <class Read>
    auto in_macro(const Macro& macro, Read read) const -> decltype(read(*this, none))
    {
        if (!macro.is_plain || macro.is_function || macro.is_doubtful || m_depth == max_links)
            return {};
        const std::string text = "int value = " + std::string(macro.body) + ";";
        const Tree body = parse(text);
        for (NodeId n = 0; n < body.size(); ++n)
            if (body.is(n, Kind::declarator))
                return read(ConstantReader(m_scopes, body, m_depth + 1), body.child(n, 2));
        return {};
    }

    /// The variable that a name means; in a macro's body the one of that name. Null where that is not sure.
    const Variable* variable(NodeId name) const
    {
        if (&m_tree == &m_scopes.tree())
            return m_scopes.find(name);
        const Variable* found = nullptr;
        for (const Variable& other : m_scopes.variables()) {
            if (other.name == m_tree.main(name) && found != nullptr)
                return nullptr;
            if (other.name == m_tree.main(name))
                found = &other;
        }
        return found;
    }

    /// What a variable is fixed to; `none` where it is not.
    NodeId fixed_value(const Variable& variable) const
    {
        const Tree& tree = m_scopes.tree();
        if (!variable.is_const || !is_integer_type(variable.type) || variable.is_array || variable.is_doubtful ||
            !tree.is(variable.node, Kind::declarator))
            return none;
        const NodeId value = tree.child(variable.node, 2);
        return tree.has(value) ? value : none;
    }

    std::optional<long> value_of_name(NodeId n) const
    {
        if (const Macro* macro = m_scopes.tree().macro(m_tree.main(n)))
            return in_macro(*macro, [](const ConstantReader& in, NodeId value) { return in.value(value); });
        const Variable* named = variable(n);
        const NodeId value = named == nullptr ? none : fixed_value(*named);
        return value == none || m_depth == max_links
            ? std::nullopt
            : ConstantReader(m_scopes, m_scopes.tree(), m_depth + 1).value(value);
    }

    bool is_constant_name(NodeId n) const
    {
        if (const Macro* macro = m_scopes.tree().macro(m_tree.main(n)))
            return in_macro(*macro, [](const ConstantReader& in, NodeId value) { return in.is_constant(value); });
        const Variable* named = variable(n);
        if (named == nullptr)
            return is_upper(m_tree.main(n));
        if (named->role == Role::generic)
            return m_scopes.tree().token(m_scopes.tree()[named->node].first) == "let";
        const NodeId value = fixed_value(*named);
        return value != none &&
            (named->is_static ||
             (m_depth < max_links && ConstantReader(m_scopes, m_scopes.tree(), m_depth + 1).is_constant(value)));
    }

    const Scopes& m_scopes;
    const Tree& m_tree;
    int m_depth;
};

} // namespace

bool is_integer_type(std::string_view type)
{
    return is_among(type, {"int", "uint", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t"});
}

std::optional<long> value_of(const Scopes& scopes, NodeId expression)
{
    return ConstantReader(scopes, scopes.tree(), 0).value(expression);
}

bool is_constant(const Scopes& scopes, NodeId expression)
{
    return ConstantReader(scopes, scopes.tree(), 0).is_constant(expression);
}

} // namespace spy::syntax
