// `do body while (c);` -> `for (bool again = true; again; again = (c)) body`, for two faults of Slang 2026.12:
//
//     do { if (a > 0) continue; x *= a; } while (false);           // `continue` is ignored in SPIR-V, or crashes .bwds
//     [MaxIters(8)] do { x *= a; i--; } while (i > 0);             // .bwds does not compile where i begins as anything
//
// The second is that of counters.cpp.
//
// for_of_do_with_continue: loops with a `continue`. One that runs once, as it says, becomes one that needs no
// [MaxIters] in a derivative. for_of_do_with_counter: loops with [MaxIters] whose condition reads what the loop writes
// and what does not begin with a number.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

/// Whether a variable is declared with a number, `true` or `false`, and written in a loop only.
bool begins_with_literal(const Uses& uses, const Tree& tree, const Variable& variable, uint32_t id, NodeId loop)
{
    NodeId value = variable.role == Role::local ? tree.child(variable.node, 2) : none;
    if (value != none && tree.is(value, Kind::prefix) && tree.main(value) == "-")
        value = tree.child(value, 0);
    const bool is_number = tree.is(value, Kind::literal) || (tree.is(value, Kind::name) && tree.main(value) == "true");
    const auto all = uses.of(id);
    return is_number && std::all_of(all.begin(), all.end(), [&](const syntax::Use* use) {
               return use->access == Access::declared || !use->may_write() || tree.holds(loop, use->path.root);
           });
}

/// Whether a condition reads what the loop writes and what begins with anything.
bool counts_from_anything(const Uses& uses, const Scopes& scopes, NodeId loop)
{
    const auto read = uses.in(condition_of(scopes.tree(), loop));
    return std::any_of(read.begin(), read.end(), [&](const syntax::Use* use) {
        const Variable& variable = scopes.variables()[use->variable];
        return uses.may_write(use->variable, loop) &&
            !begins_with_literal(uses, scopes.tree(), variable, use->variable, loop);
    });
}

void change_do(const Tree& tree, NodeId loop, bool is_once, Changes& changes)
{
    const NodeId condition = condition_of(tree, loop);
    const size_t word = loop_word(tree, loop), tail = tree[loop_body(tree, loop)].last;
    const std::optional<std::string> text = in_one_line(tree, condition);
    const size_t begin = tree.tokens()[tail].begin, end = tree.end(loop);
    if (!text || holds_directive(tree, tree.tokens()[tail - 1].end, end)) // branches of an #if may have one each
        return;
    const std::string name = is_once ? cat("_spy_once_", std::to_string(word)) : "_spy_again";
    const std::string head = is_once ? cat("int ", name, " = 0; ", name, " < 1; ", name, "++")
                                     : cat("bool ", name, " = true; ", name, "; ", name, " = (", *text, ")");
    changes.replace(tree.tokens()[word].begin, tree.tokens()[word].end, cat("for (", head, ")"));
    changes.remove(tree.source(), begin, end);
}

/// Of all functions of a source, or of those that may be differentiable.
template <class Wanted>
std::vector<Edit> change_all(const ParsedSource& source, bool may_be_differentiable, Wanted wanted)
{
    const Tree& tree = source.tree();
    const bool differentiates = source.text().find("ifferentiable") != std::string::npos;
    Changes changes;
    for (const NodeId function : functions_to_change(source, may_be_differentiable)) {
        const Uses uses(source.scopes(), function);
        for (const Loop& loop : uses.loops())
            if (tree.is(loop.node, Kind::do_) && wanted(uses, loop))
                change_do(tree, loop.node, differentiates && continues_once(uses, source.scopes(), loop.node), changes);
    }
    return std::move(changes).edits();
}

} // namespace

std::vector<Edit> for_of_do_with_continue(const ParsedSource& source)
{
    if (source.text().find("continue") == std::string::npos || source.text().find("while") == std::string::npos)
        return {};
    return change_all(source, false,
                      [&](const Uses& uses, const Loop& loop) { return has_continue(uses, source.tree(), loop.node); });
}

std::vector<Edit> for_of_do_with_counter(const ParsedSource& source)
{
    if (source.text().find("MaxIters") == std::string::npos || source.text().find("while") == std::string::npos)
        return {};
    return change_all(source, true, [&](const Uses& uses, const Loop& loop) {
        return loop.max_iters != none && counts_from_anything(uses, source.scopes(), loop.node);
    });
}

} // namespace spy
