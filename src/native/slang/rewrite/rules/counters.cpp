// Loops whose counters begin with run-time values:
//
//     [MaxIters(4)] for (int j = i + 1; j < 4; j++) ...
//
// Slang 2026.12 finds what such a loop runs on with by counting its trips, adds the first value to that number, and
// forgets to store the value for the reverse derivative: no code can be generated. What a body changes is stored. So
// the step goes into the body, after its last statement and in front of each `continue`, and the loop does the same.
// It needs [MaxIters] in any case, as the compiler cannot count its trips.
//
// The steps of such loops in functions that may be differentiable, moved into their bodies.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

class CounterRule {
public:
    CounterRule(const Scopes& scopes, Changes& changes)
        : m_tree(scopes.tree()),
          m_scopes(scopes),
          m_changes(changes) { }

    /// `for (...; ...; i--) body`
    void move_steps(NodeId loop, const Uses& uses)
    {
        const NodeId step = m_tree.child(loop, 3), body = loop_body(m_tree, loop);
        if (!m_tree.has(step) || !are_steps(step, loop) || !m_begins_anywhere || is_seen_otherwise(step, body))
            return;
        const std::optional<std::string> text = in_one_line(m_tree, step);
        if (!text)
            return;
        const std::string steps = in_statements(step);
        m_changes.remove(m_tree.source(), m_tree.begin(step), m_tree.end(step));
        if (m_tree.is(body, Kind::block)) {
            m_changes.before(m_tree.end(body) - 1, steps);
        } else {
            m_changes.before(m_tree.begin(body), "{ ");
            m_changes.after(m_tree.end(body), " " + steps + "}");
        }
        for (const Exit& exit : uses.exits())
            if (exit.target == loop && m_tree.is(exit.node, Kind::continue_)) {
                m_changes.before(m_tree.begin(exit.node), "{ " + steps);
                m_changes.after(m_tree.end(exit.node), " }");
            }
    }

private:
    /// Whether an expression only steps plain variables: `i++`, `--i`, `i += 2`, `i = i - 1`, commas between them.
    bool are_steps(NodeId step, NodeId loop)
    {
        if (m_tree.is(step, Kind::binary) && m_tree.main(step) == ",")
            return are_steps(m_tree.child(step, 0), loop) && are_steps(m_tree.child(step, 1), loop);
        if (!m_tree.is(step, Kind::assign) && !is_step(m_tree, step))
            return false;
        const NodeId counter = m_tree.child(step, 0);
        const uint32_t variable = m_scopes.variable_of(counter);
        if (!m_tree.is(counter, Kind::name) || variable == none)
            return false;
        m_begins_anywhere |= !begins_with_number(variable, m_tree.child(loop, 1));
        return true;
    }

    /// Whether the first part of a header gives a variable a number.
    bool begins_with_number(uint32_t variable, NodeId init) const
    {
        for (NodeId n = init; n < init + m_tree[init].size; ++n) {
            NodeId value = none;
            if (m_tree.is(n, Kind::declarator) && m_scopes.variable_of(n) == variable)
                value = m_tree.child(n, 2);
            else if (m_tree.is(n, Kind::assign) && m_scopes.variable_of(m_tree.child(n, 0)) == variable)
                value = m_tree.child(n, 1);
            if (value != none && m_tree.is(value, Kind::prefix) && m_tree.main(value) == "-")
                value = m_tree.child(value, 0);
            if (value != none && m_tree.is(value, Kind::literal))
                return true;
        }
        return false;
    }

    /// Whether the body names something else as the step does, or does things after its last statement.
    bool is_seen_otherwise(NodeId step, NodeId body) const
    {
        if (hides_variables(m_scopes, step))
            return true;
        for (NodeId n = step; n < step + m_tree[step].size; ++n)
            if (m_tree.is(n, Kind::lambda) || (m_tree.is(n, Kind::name) && declares(m_scopes, body, m_tree.main(n))))
                return true;
        for (NodeId n = body; n < body + m_tree[body].size; ++n)
            if (m_tree.is(n, Kind::defer))
                return true;
        return false;
    }

    /// `i--; j++; `
    std::string in_statements(NodeId step) const
    {
        if (m_tree.is(step, Kind::binary) && m_tree.main(step) == ",")
            return in_statements(m_tree.child(step, 0)) + in_statements(m_tree.child(step, 1));
        return *in_one_line(m_tree, step) + "; ";
    }

    const Tree& m_tree;
    const Scopes& m_scopes;
    bool m_begins_anywhere = false;
    Changes& m_changes;
};

} // namespace

std::vector<Edit> move_counter_steps(const ParsedSource& source)
{
    return change_limited_loops(source, [&](const Uses& uses, const Loop& loop, Changes& changes) {
        if (source.tree().is(loop.node, Kind::for_))
            CounterRule(source.scopes(), changes).move_steps(loop.node, uses);
    });
}

} // namespace spy
