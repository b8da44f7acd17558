// Sums and products of scalars and vectors, as Slang differentiates them rightly.
//
// `a * v` -> `(-(-a)) * v`, where a is a variable of a scalar type, or an element of one that the function has made
// (`float2 q = float2(a, 1); ... q.x * v`), and v may be a vector: Slang 2026.12 loses the gradient by way of a in
// a + v, v + a, a - v, v - a, a * v, a / v, v += a, v -= a, and, after loops, in v * a and v / a (shader-slang
// 12071), also where the operand is (c ? a : b) and it knows c, or 1 * a, a + 0 and the like with constants that it
// knows. It is right where any operation lies between that it keeps, and this one gives the same number. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Role, syntax::Shape;

class ScalarOperands : private InFunction {
public:
    ScalarOperands(const ParsedSource& source, NodeId function, std::map<size_t, std::string>& places)
        : InFunction(source, function),
          m_places(places)
    {
    }

    void search()
    {
        for (const NodeId n : m_tree.inside(m_uses.function())) {
            const bool is_binary = m_tree.is(n, Kind::binary);
            const std::string_view sign = m_tree.main(n);
            if ((!is_binary && !(m_tree.is(n, Kind::assign) && sign.size() == 2)) || sign.find_first_of("+-*/") != 0)
                continue;
            const NodeId left = m_tree.child(n, 0), right = m_tree.child(n, 1);
            if (is_binary && may_be_vector(right))
                set_apart(left);
            if (may_be_vector(left))
                set_apart(right);
        }
    }

private:
    bool may_be_vector(NodeId value) const { return syntax::type_of_value(m_scopes, value).shape != Shape::scalar; }

    /// The scalars that an operand may be.
    void set_apart(NodeId operand)
    {
        switch (m_tree.kind(operand)) {
        case Kind::paren: return set_apart(m_tree.child(operand, 0));
        case Kind::conditional: set_apart(m_tree.child(operand, 1)); return set_apart(m_tree.child(operand, 2));
        case Kind::prefix:
        case Kind::binary:
            if (m_tree.main(operand) == ",")
                return set_apart(m_tree.child(operand, 1));
            if (may_vanish(operand) && is_float(syntax::type_of_value(m_scopes, operand)))
                negate_twice(operand, "(", ")");
            return;
        case Kind::call: // float(a)
        case Kind::cast:
            if (m_tree.count(operand) == 2 && is_float(syntax::type_at(m_scopes, m_tree.child(operand, 0))))
                set_apart(m_tree.child(operand, 1));
            return;
        case Kind::name:
        case Kind::member:
        case Kind::index:
            if (!is_float(syntax::type_of_value(m_scopes, operand)) || !is_made_here(operand))
                return;
            return negate_twice(operand);
        default: return;
        }
    }

    void negate_twice(NodeId operand, const char* open = "", const char* close = "")
    {
        m_places[m_tree.begin(operand)].insert(0, std::string("(-(-") + open);
        m_places[m_tree.end(operand)] += close + std::string("))");
    }

    /// `1 * a`, `a + K`, `+a`: Slang leaves a alone where it knows that the other operand changes nothing.
    bool may_vanish(NodeId operation) const
    {
        const std::string_view sign = m_tree.main(operation);
        return sign == "+" || (m_tree.is(operation, Kind::binary) && (sign == "-" || sign == "*" || sign == "/"));
    }

    static bool is_float(const syntax::Type& type)
    {
        return (type.shape == Shape::scalar || type.shape == Shape::generic) && is_of_floats(type);
    }

    /// Whether a value is a variable, or a part of one that is made in the function: a local one, or a parameter that
    /// is written. Parameters that keep their values are read from memory, which is right as it is.
    bool is_made_here(NodeId value) const
    {
        NodeId root = value;
        while (m_tree.is(root, Kind::member) || m_tree.is(root, Kind::index) || m_tree.is(root, Kind::paren))
            root = m_tree.child(root, 0);
        const syntax::Variable* variable = m_scopes.find(root);
        if (variable == nullptr)
            return m_tree.is(root, Kind::call) && root != value; // float2(a, b).x
        if (variable->is_doubtful || (variable->role != Role::local && variable->role != Role::parameter))
            return false;
        return root == value || variable->role == Role::local ||
            m_uses.may_write(m_scopes.variable_of(root), m_uses.function());
    }

    std::map<size_t, std::string>& m_places;
};

} // namespace

std::vector<Edit> rewrite_scalars(const ParsedSource& source)
{
    return insert_in_functions(source,
                               [&](NodeId function, auto& texts) { ScalarOperands(source, function, texts).search(); });
}

} // namespace spy
