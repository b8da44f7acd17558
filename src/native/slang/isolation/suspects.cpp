// Uses that end the process or are read wrongly, found in a parsed source.
#include "core/error.h"
#include "slang/isolation/deadly.h"
#include "slang/syntax/parser.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy::syntax {
namespace {

constexpr size_t many_returns = 24; ///< inside of each other's branches, from which on it takes minutes or a crash

class SuspectFinder {
public:
    explicit SuspectFinder(std::string_view source) : m_tree(parse(source)), m_scopes(m_tree) { }

    std::vector<Deadly> find()
    {
        for (NodeId n = 0; n < m_tree.size(); ++n) {
            if (m_tree.is(n, Kind::attribute))
                attribute_at(n);
            else if (m_tree.is(n, Kind::call))
                call_at(n);
            else if (m_tree.is(n, Kind::declarator))
                variable_at(n);
            else if (m_tree.is(n, Kind::function))
                returns_in(n);
            else if (m_tree.is(n, Kind::binary))
                comparison_at(n);
        }
        return std::move(m_found);
    }

private:
    void add(NodeId from, NodeId to, std::string advice)
    {
        m_found.push_back({m_tree.begin(from), m_tree.end(to), std::move(advice)});
    }

    void attribute_at(NodeId n)
    {
        const std::string_view word = m_tree.main(n);
        const std::string inside = m_tree.count(n) == 0 ? std::string() : std::string(m_tree.text(m_tree.child(n, 0)));
        if (inside.empty())
            return;
        if (word == "ForwardDerivative")
            add(n, n, cat("there must be a function `", inside, "` that this can name; it is not to be generic"));
        else if (word == "ForwardDerivativeOf" || word == "BackwardDerivativeOf" || word == "PrimalSubstituteOf")
            add(n, n,
                cat("`", inside,
                    "` must be a function of one overload that is not generic, and this one "
                    "must have the parameters of its derivative"));
    }

    void comparison_at(NodeId n)
    {
        if (!is_among(m_tree.main(n), {"==", "!=", "<", ">", "<=", ">="}))
            return;
        for (const NodeId side : {m_tree.child(n, 0), m_tree.child(n, 1)})
            if (const Type type = type_of_value(m_scopes, side); type.shape == Shape::matrix && type.is_float) {
                add(n, n, "for Vulkan Slang fails at comparing matrices of floats; compare row by row, `a[i] < b[i]`");
                return;
            }
    }

    std::string_view name_of(NodeId callee) const
    {
        if (m_tree.is(callee, Kind::generic_use))
            callee = m_tree.child(callee, 0);
        return m_tree.is(callee, Kind::name) ? m_tree.main(callee) : std::string_view();
    }

    /// The function or accessor around a node, lambdas left; `none` outside.
    NodeId function_around(NodeId n) const
    {
        NodeId function = m_tree.function_of(n);
        while (m_tree.is(function, Kind::lambda))
            function = m_tree.function_of(function);
        return function;
    }

    bool is_differentiated(NodeId n) const
    {
        const NodeId node = function_around(n);
        const Function* function = node == none ? nullptr : m_scopes.function(node);
        return function != nullptr && function->may_be_differentiable &&
            attribute(m_tree, node, "BackwardDerivative") == none;
    }

    void call_at(NodeId n)
    {
        const std::string_view name = name_of(m_tree.child(n, 0));
        const NodeId given = m_tree.count(n) > 1 ? m_tree.child(n, 1) : none;
        if (given == none)
            return;
        if (name == "bwd_diff" || name == "fwd_diff") {
            if (m_tree.is(given, Kind::lambda))
                add(n, n, "give the function a name");
            else if (m_tree.is(given, Kind::member) && m_tree.token(m_tree[given].main - 1) == ".")
                add(n, n,
                    cat("Slang cannot differentiate a method through an object; write a function with the object as a "
                        "parameter, such as `[Differentiable] float by_",
                        m_tree.main(given), "(no_diff S self, float x) { return self.", m_tree.main(given),
                        "(x); }`, and differentiate that: `", name, "(by_", m_tree.main(given), ")(",
                        m_tree.plain(m_tree.child(given, 0)), ", ...)`"));
            else if (is_differentiated(n))
                add(n, n,
                    cat("Slang fails at a derivative inside of a function that it differentiates; give `",
                        m_tree.main(function_around(n)),
                        "` a derivative of its own, [BackwardDerivative(f)], or take [Differentiable] away from it"));
        } else if (name == "reinterpret" || name == "bit_cast") {
            if (name == "reinterpret")
                add(n, n, "for numbers and vectors of one size write `bit_cast<To>(value)`");
        }
    }

    /// A value of an interface that has a base, where derivatives go through it.
    void variable_at(NodeId n)
    {
        const Variable* variable = m_scopes.find(n);
        if (variable == nullptr || (variable->role != Role::local && variable->role != Role::parameter) ||
            !is_differentiated(n))
            return;
        const Type type = type_of(m_scopes, *variable);
        if (type.shape != Shape::interface || type.in != &m_scopes || !has_own_base(type.node))
            return;
        add(n, n,
            cat("Slang fails at derivatives through values of the interface `", type.name,
                "`, which has another interface as its base; make the function generic, `<T : ", type.name,
                ">`, and let this be a `T`, or name a struct"));
    }

    /// Whether an interface is derived from another one of the source.
    bool has_own_base(NodeId interface) const
    {
        for (const NodeId base : m_tree.children(m_tree.child(interface, 3)))
            if (!m_scopes.types(name_of(base)).empty())
                return true;
        return false;
    }

    void returns_in(NodeId function)
    {
        if (body_of(m_tree, function) == none || !is_differentiated(m_tree.child(function, 0)))
            return;
        size_t deepest = 0;
        NodeId place = none;
        for (const NodeId n : m_tree.inside(function)) {
            if (!m_tree.is(n, Kind::return_))
                continue;
            size_t depth = 0;
            for (NodeId outer = m_tree.parent(n); outer != function; outer = m_tree.parent(outer))
                depth += m_tree.is(outer, Kind::if_) || m_tree.is(outer, Kind::switch_) || is_loop(m_tree.kind(outer));
            if (depth > deepest) {
                deepest = depth;
                place = n;
            }
        }
        if (deepest >= many_returns)
            add(place, place,
                cat("this `return` lies in ", deepest,
                    " branches and loops; set a variable there, and return it at the end of the function"));
    }

    const Tree m_tree;
    const Scopes m_scopes;
    std::vector<Deadly> m_found;
};

} // namespace

static std::vector<Deadly> suspects_in(std::string_view source) { return SuspectFinder(source).find(); }

} // namespace spy::syntax

namespace spy {

std::vector<Deadly> suspects(std::string_view source) { return syntax::suspects_in(source); }

} // namespace spy
