// Differentiable functions put in the place of their calls, for second derivatives.
//
// Slang 2026.12 ends the process, or reports internal errors, where the reverse derivative of a forward derivative
// meets a call that passes a struct, an array or an `inout` value. It is right where it inlines such functions before
// it differentiates, so this gives every differentiable function with a body the attribute that asks for that, except
// those that call themselves and those of generated code (`_spy_...`). Lines stay where they are.
#include "slang/rewrite/rules/all.h"

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId;

/// Whether a function calls itself. A method of the same name of another value is none of it.
bool calls_itself(const syntax::Tree& tree, NodeId function)
{
    for (const NodeId n : tree.inside(syntax::body_of(tree, function))) {
        const bool is_own = tree.is(n, Kind::name) ||
            (tree.is(n, Kind::member) && tree.main(tree.child(n, 0)) == "this");
        if (tree.is(n, Kind::opaque) || (is_own && tree.main(n) == tree.main(function)))
            return true;
    }
    return false;
}

} // namespace

std::vector<Edit> inline_differentiable(const ParsedSource& source)
{
    const syntax::Tree& tree = source.tree();
    std::vector<Edit> edits;
    for (const NodeId n : tree.inside(syntax::Tree::root)) {
        if (!tree.is(n, Kind::attribute) || !tree.main(n).ends_with("Differentiable"))
            continue;
        const NodeId function = tree.parent(tree.parent(n));
        const std::string_view name = tree.main(function);
        const bool is_one = tree.is(function, Kind::function) ||
            (tree.is(function, Kind::accessor) && tree.main(function) == "get");
        const bool is_kept = name.starts_with("_spy_") && !name.starts_with("_spy_same_");
        if (!is_one || syntax::body_of(tree, function) == syntax::none || is_kept || calls_itself(tree, function))
            continue;
        const size_t end = tree.tokens()[tree[n].last].end; // after the bracket
        edits.push_back({end, end, "[__unsafeForceInlineEarly]"});
    }
    return edits;
}

} // namespace spy
