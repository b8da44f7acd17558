// Elements of vectors and matrices written beside branches, as Slang differentiates them rightly.
//
// `v.y = e;` -> `{ v = -(-v); v.y = e; }` for a local vector or matrix v of a differentiable function with branches:
// Slang 2026.12 takes the gradient of another vector for that of v where a branch writes an element of v and reads one
// of a vector made of v, or gives one to a call that writes. It is right where an operation lies before, and this one
// gives the same number. So branches that use elements of v, if any is written, begin with it too. In functions
// without branches that is done in and after the first loop: call_outputs.cpp says why. There, `v = -(-v);` also
// follows the last of several such statements: in loops Slang loses the share of a in `h = a * v;` after them. Lines
// stay.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/uses.h"

#include <set>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Use;

class WrittenElements : private InFunction {
public:
    WrittenElements(const ParsedSource& source, NodeId function, std::map<size_t, std::string>& places)
        : InFunction(source, function),
          m_places(places)
    {
    }

    void search()
    {
        const auto inside = m_tree.inside(m_uses.function());
        for (const NodeId n : inside)
            m_branches |= m_tree.is(n, Kind::if_) || m_tree.is(n, Kind::switch_);
        m_first_loop = m_uses.loops().empty() ? syntax::none : m_uses.loops().front().node;
        for (const Use& use : m_uses.all())
            if (is_write(use))
                m_writes[m_tree.parent(use.by)] = use.variable;
        for (const auto& [statement, variable] : m_writes)
            pass(statement, variable);
        for (const NodeId n : inside)
            if (m_tree.is(n, Kind::if_))
                for (const NodeId arm : {m_tree.child(n, 2), m_tree.child(n, 3)})
                    if (m_tree.is(arm, Kind::block))
                        begin(arm);
    }

private:
    std::string same(uint32_t variable) const
    {
        const std::string_view name = m_scopes.variables()[variable].name;
        return cat(name, " = -(-", name, ");");
    }

    /// Whether a statement writes an element of a vector or matrix, and nothing else.
    bool is_write(const Use& use) const
    {
        const syntax::Variable& variable = m_scopes.variables()[use.variable];
        const bool is_local = variable.role == syntax::Role::local || variable.role == syntax::Role::parameter;
        const bool is_fixed = variable.is_const || variable.is_static || variable.is_doubtful;
        if ((use.access != syntax::Access::written && use.access != syntax::Access::updated) || !use.path.is_part() ||
            !is_local || is_fixed || variable.type.starts_with("_spy_") ||
            (!m_branches && use.path.root < m_first_loop) || !is_float_number(m_scopes, use.variable))
            return false;
        const NodeId statement = m_tree.parent(use.by), around = m_tree.parent(statement);
        return m_tree.is(statement, Kind::expression) &&
            !(m_tree.is(around, Kind::for_) && m_tree.child(around, 4) != statement);
    }

    void pass(NodeId statement, uint32_t variable)
    {
        m_places[m_tree.begin(statement)] += cat("{ ", same(variable), " ");
        const auto next = m_writes.find(statement + m_tree[statement].size);
        const bool goes_on = next != m_writes.end() && next->second == variable &&
            m_tree.parent(next->first) == m_tree.parent(statement);
        const bool is_after = m_first_loop != syntax::none && statement > m_first_loop;
        m_places[m_tree.end(statement)] += is_after && !goes_on ? cat(" ", same(variable), " }") : " }";
    }

    /// Passes what a branch uses elements of, and does not first of all write one.
    void begin(NodeId block)
    {
        std::set<uint32_t> variables, seen;
        for (const auto& [statement, variable] : m_writes)
            variables.insert(variable);
        for (const Use* use : m_uses.in(block)) {
            const bool is_inner = m_tree.holds(block, m_scopes.variables()[use->variable].node);
            if (!use->path.is_part() || is_inner || !variables.count(use->variable) ||
                !seen.insert(use->variable).second)
                continue;
            const bool is_first = use->by != syntax::none && m_writes.count(m_tree.parent(use->by));
            if (!is_first)
                m_places[m_tree.tokens()[m_tree[block].first].end] += cat(" ", same(use->variable));
        }
    }

    std::map<size_t, std::string>& m_places;
    bool m_branches = false;
    NodeId m_first_loop = syntax::none;
    std::map<NodeId, uint32_t> m_writes; ///< statements, and the variables of which they write an element
};

} // namespace

std::vector<Edit> rewrite_elements(const ParsedSource& source)
{
    return insert_in_functions(
        source, [&](NodeId function, auto& texts) { WrittenElements(source, function, texts).search(); });
}

} // namespace spy
