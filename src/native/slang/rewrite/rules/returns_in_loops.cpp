// `if (c) for (...) { if (i < 2) return a; ... }` -> `if (c) for (...) { if (_spy_asked_...(true)) { ... } }`: where
// Slang 2026.12 finds out that such a loop returns in its first trip, its reverse derivative crashes. It cannot look
// through the function, so it does not find out.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"

#include <set>

namespace spy {
namespace {

using namespace syntax;

/// The innermost loop around a return, if one of the loops around it stands in a branch of its function.
NodeId loop_in_branch(const Tree& tree, NodeId leaving)
{
    NodeId loop = none;
    const NodeId function = tree.function_of(leaving);
    for (NodeId n = tree.parent(leaving); n != function; n = tree.parent(n)) {
        if (loop == none && is_loop(tree.kind(n)))
            loop = n;
        if (loop != none && tree.is(n, Kind::if_))
            return loop;
    }
    return none;
}

} // namespace

std::vector<Edit> hide_returns_in_loops(const ParsedSource& source)
{
    const Tree& tree = source.tree();
    std::set<NodeId> bodies;
    for (const NodeId function : functions_to_change(source, true))
        for (const NodeId n : tree.inside(function))
            if (const NodeId loop = tree.is(n, Kind::return_) ? loop_in_branch(tree, n) : none; loop != none)
                bodies.insert(loop_body(tree, loop));
    return hand_on(source, {}, "", "_spy_asked_", {bodies.begin(), bodies.end()});
}

} // namespace spy
