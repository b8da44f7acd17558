// Loops that step a counter in their condition, from a run-time value:
//
//     int i = n;
//     [MaxIters(8)] while (i-- > 0) ...
//
// Their reverse derivatives do not compile in Slang 2026.12, for the reason in counters.cpp. The step begins the body
// instead, `while (i > 0) { i--; ... }`, and is repeated after the loop, for the condition that ended it, unless
// nobody can tell; `break` undoes that one. Loops that other statements leave stay as they are, as do those of which
// the rest of the condition may see the counter.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/syntax/constants.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

class ConditionStepRule {
public:
    ConditionStepRule(const Scopes& scopes, Changes& changes)
        : m_tree(scopes.tree()),
          m_scopes(scopes),
          m_changes(changes)
    {
    }

    /// `while (i-- > 0) body`
    void move_step(NodeId loop, const Uses& uses)
    {
        const NodeId condition = condition_of(m_tree, loop), body = loop_body(m_tree, loop);
        const NodeId step = condition == none ? none : step_of(condition), name = step == none ? none : step + 1;
        const uint32_t variable = step == none ? none : m_scopes.variable_of(name);
        if (variable == none || m_scopes.variables()[variable].is_doubtful)
            return;
        const bool is_after = m_tree.is(step, Kind::postfix), is_seen = is_seen_after(variable, loop, uses);
        if ((!is_after && !has_next(variable)) || declares(m_scopes, body, m_tree.main(name)) ||
            !is_alone(condition, step, uses) || (is_seen && !ends_well(loop, variable, uses)))
            return;
        const std::string sign(m_tree.main(step)), counter(m_tree.plain(name)), one = counter + sign + ";";
        const std::string value = is_after ? counter : cat("(", counter, " ", sign[0], " 1)");
        m_changes.replace(m_tree.begin(step), m_tree.end(step), condition == step ? value + " != 0" : value);
        const bool is_braced = is_seen && !m_tree.may_hold_statements(loop);
        if (is_braced)
            m_changes.before(m_tree.begin(loop), "{ ");
        if (is_seen)
            m_changes.after(m_tree.end(loop), cat(" ", one, is_braced ? " }" : ""));
        if (m_tree.is(body, Kind::block)) {
            m_changes.after(m_tree.begin(body) + 1, " " + one);
        } else {
            m_changes.before(m_tree.begin(body), cat("{ ", one, " "));
            m_changes.after(m_tree.end(body), " }");
        }
        for (const Exit& exit : uses.exits())
            if (is_seen && exit.target == loop && m_tree.is(exit.node, Kind::break_)) {
                m_changes.before(m_tree.begin(exit.node), cat("{ ", counter, sign == "--" ? "++" : "--", "; "));
                m_changes.after(m_tree.end(exit.node), " }");
            }
    }

private:
    /// `i--` of `i-- > 0` or `i--`.
    NodeId step_of(NodeId condition) const
    {
        const NodeId n = is_comparison(m_tree, condition) ? m_tree.child(condition, 0) : condition;
        const NodeId counter = n + 1;
        const bool is_plain = m_tree.is(counter, Kind::name) ||
            (m_tree.is(counter, Kind::member) && m_tree.text(counter + 1) == "this");
        return is_step(m_tree, n) && is_plain ? n : none;
    }

    bool is_own(const Variable& variable) const
    {
        return (variable.role == Role::parameter && variable.direction != Direction::ref) ||
            (variable.role == Role::local && !variable.is_static);
    }
    bool is_integer(uint32_t variable) const { return is_integer_type(m_scopes.variables()[variable].type); }
    /// Whether `i + 1` is what `++i` gives.
    bool has_next(uint32_t variable) const
    {
        return is_integer(variable) || is_among(m_scopes.variables()[variable].type, {"float", "double"});
    }

    /// Whether the rest of a condition neither sees the variable nor does anything.
    bool is_alone(NodeId condition, NodeId step, const Uses& uses) const
    {
        const uint32_t variable = m_scopes.variable_of(step + 1);
        for (NodeId n = condition; n < condition + m_tree[condition].size; ++n) {
            if (m_tree.holds(step, n))
                continue;
            const Kind kind = m_tree.kind(n);
            const bool calls = kind == Kind::call &&
                !(m_tree.is(m_tree.child(n, 0), Kind::name) && only_reads_arguments(m_tree.main(m_tree.child(n, 0))));
            const bool may_be_it = kind == Kind::name && m_scopes.find(n) != nullptr &&
                !is_own(m_scopes.variables()[variable]) && !is_own(*m_scopes.find(n));
            if (calls || is_step(m_tree, n) || may_be_it || kind == Kind::assign || kind == Kind::lambda)
                return false;
        }
        const auto found = uses.in(condition);
        return std::count_if(found.begin(), found.end(),
                             [&](const syntax::Use* use) { return use->variable == variable; }) == 1;
    }

    /// Whether the value that a loop leaves can be seen: by the caller, after the loop, or when the loop begins again.
    bool is_seen_after(uint32_t variable, NodeId loop, const Uses& uses) const
    {
        const Variable& declared = m_scopes.variables()[variable];
        if (!is_own(declared) || declared.direction != Direction::in)
            return true;
        for (NodeId outer = m_tree.loop_of(loop); outer != none; outer = m_tree.loop_of(outer))
            if (!m_tree.holds(loop_body(m_tree, outer), declared.node))
                return true;
        const auto all = uses.of(variable);
        return std::any_of(all.begin(), all.end(), [&](const syntax::Use* use) {
            const bool is_last = m_tree.around(use->path.root, Kind::defer) != none;
            return (is_last || use->path.root > loop) && !m_tree.holds(loop, use->path.root);
        });
    }

    /// Whether the step after a loop can be undone at all that ends the loop but its condition and `return`.
    bool ends_well(NodeId loop, uint32_t variable, const Uses& uses) const
    {
        if (m_tree.is(m_tree.parent(loop), Kind::label))
            return false;
        return std::all_of(uses.exits().begin(), uses.exits().end(), [&](const Exit& exit) {
            const bool is_inside = exit.target != loop && exit.target != none && m_tree.holds(loop, exit.target);
            return !m_tree.holds(loop, exit.node) || exit.target == none || is_inside ||
                (exit.target == loop && (m_tree.is(exit.node, Kind::continue_) || is_integer(variable)));
        });
    }

    const Tree& m_tree;
    const Scopes& m_scopes;
    Changes& m_changes;
};

} // namespace

std::vector<Edit> move_condition_steps(const ParsedSource& source)
{
    return change_limited_loops(source, [&](const Uses& uses, const Loop& loop, Changes& changes) {
        if (!source.tree().is(loop.node, Kind::do_))
            ConditionStepRule(source.scopes(), changes).move_step(loop.node, uses);
    });
}

} // namespace spy
