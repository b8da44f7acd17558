// `for (;;) { ...; i--; if (i <= 0) break; }` -> `i = (i - 1) | 0;`: the fault of counters.cpp in loops without a
// condition, where the step comes before the way out. Slang takes this for no counter, and keeps its value of each
// trip.
//
// Steps `i++`, `--i`, `i += 2` of integers in loops with [MaxIters].
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/syntax/constants.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

bool is_endless(const Tree& tree, NodeId loop)
{
    const NodeId condition = condition_of(tree, loop);
    return condition == none || !tree.has(condition) || is_among(tree.text(condition), {"true", "1"});
}

bool is_left_after(const Tree& tree, const syntax::Use& use, const Loop& loop, const Uses& uses)
{
    return std::any_of(uses.exits().begin(), uses.exits().end(), [&](const Exit& exit) {
        const bool leaves = exit.target == none || (exit.target <= loop.node && !tree.is(exit.node, Kind::continue_));
        return leaves && exit.node > use.by && tree.holds(loop.node, exit.node);
    });
}

void hide(const Scopes& scopes, const syntax::Use& use, Changes& changes)
{
    const Tree& tree = scopes.tree();
    const Variable& variable = scopes.variables()[use.variable];
    if (use.path.is_part() || variable.is_doubtful || !tree.is(use.path.whole, Kind::name) ||
        !is_integer_type(variable.type))
        return;
    const std::string name(variable.name), sign(tree.main(use.by).substr(0, 1));
    const bool is_statement = tree.is(tree.parent(use.by), Kind::expression);
    std::string by = "1";
    if (tree.is(use.by, Kind::assign)) {
        const NodeId value = tree.child(use.by, 1);
        by = tree.text(value);
        if ((sign != "+" && sign != "-") || !tree.is(value, Kind::literal) ||
            by.find_first_not_of("0123456789") != by.npos)
            return;
    }
    std::string step = cat(name, " = (", name, " ", sign, " ", by, ") | 0");
    if (!is_statement)
        step = "(" + step + ")";
    if (!is_statement && tree.is(use.by, Kind::postfix)) // what it was
        step = cat("(", step, sign == "-" ? " + 1)" : " - 1)");
    changes.replace(tree.begin(use.by), tree.end(use.by), step);
}

} // namespace

std::vector<Edit> hide_early_steps(const ParsedSource& source)
{
    return change_limited_loops(source, [&](const Uses& uses, const Loop& loop, Changes& changes) {
        const Tree& tree = source.tree();
        if (!is_endless(tree, loop.node))
            return;
        for (const syntax::Use* use : uses.in(loop_body(tree, loop.node)))
            if (use->access == Access::updated && use->loop == loop.node && is_left_after(tree, *use, loop, uses))
                hide(source.scopes(), *use, changes);
    });
}

} // namespace spy
