#include "slang/rewrite/rules/endless_loops.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

class EndlessLoopRule {
public:
    explicit EndlessLoopRule(const ParsedSource& source) : m_tree(source.tree()), m_scopes(source.scopes()) { }

    void change(NodeId function)
    {
        const Uses uses(m_scopes, function);
        for (const Loop& loop : uses.loops())
            if (loop.max_iters != none && is_endless(loop.node))
                for (const syntax::Use* use : uses.in(loop_body(m_tree, loop.node)))
                    if (use->access == Access::updated && use->loop == loop.node && is_left_behind(*use, loop, uses))
                        hide(*use);
    }
    std::vector<Edit> edits() { return std::move(m_changes).edits(); }

private:
    bool is_endless(NodeId loop) const
    {
        const NodeId condition = condition_of(m_tree, loop);
        return condition == none || !m_tree.has(condition) || m_tree.text(condition) == "true" ||
            m_tree.text(condition) == "1";
    }

    bool is_left_behind(const syntax::Use& use, const Loop& loop, const Uses& uses) const
    {
        return std::any_of(uses.exits().begin(), uses.exits().end(), [&](const Exit& exit) {
            const bool leaves = exit.target == none ||
                (exit.target <= loop.node && !m_tree.is(exit.node, Kind::continue_));
            return leaves && exit.node > use.by && m_tree.holds(loop.node, exit.node);
        });
    }

    void hide(const syntax::Use& use)
    {
        static constexpr std::string_view integers[] = {"int", "uint", "int32_t", "uint32_t", "int64_t", "uint64_t"};
        const Variable& variable = m_scopes.variables()[use.variable];
        if (use.path.is_part() || variable.is_doubtful || !m_tree.is(use.path.whole, Kind::name) ||
            std::find(std::begin(integers), std::end(integers), variable.type) == std::end(integers))
            return;
        const std::string name(variable.name), sign(m_tree.main(use.by).substr(0, 1));
        const bool is_statement = m_tree.is(m_tree.parent(use.by), Kind::expression);
        std::string by = "1";
        if (m_tree.is(use.by, Kind::assign)) {
            const NodeId value = m_tree.child(use.by, 1);
            by = m_tree.text(value);
            if ((sign != "+" && sign != "-") || !m_tree.is(value, Kind::literal) ||
                by.find_first_not_of("0123456789") != by.npos)
                return;
        }
        std::string step = cat(name, " = (", name, " ", sign, " ", by, ") | 0");
        if (!is_statement)
            step = "(" + step + ")";
        if (!is_statement && m_tree.is(use.by, Kind::postfix)) // what it was
            step = cat("(", step, sign == "-" ? " + 1)" : " - 1)");
        m_changes.replace(m_tree.begin(use.by), m_tree.end(use.by), step);
    }

    const Tree& m_tree;
    const Scopes& m_scopes;
    Changes m_changes;
};

} // namespace

std::vector<Edit> hide_early_steps(const ParsedSource& source)
{
    if (source.text().find("MaxIters") == std::string::npos)
        return {};
    EndlessLoopRule rule(source);
    for (const NodeId function : functions_to_change(source, true))
        rule.change(function);
    return rule.edits();
}

} // namespace spy
