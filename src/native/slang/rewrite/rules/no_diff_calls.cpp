// `no_diff f(x)` -> `no_diff _spy_no_diff_...(no_diff f(x))`. Slang 2026.12 ignores the word in front of functions that
// have derivatives (shader-slang 10726), and theirs come through. The function around it hands its argument on and has
// no derivative, so the word holds there; it is declared at the end of the text. Calls that stand alone as statements
// stay, because they may give nothing to hand on.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"

namespace spy {
namespace {

/// Whether a node is a call, in brackets perhaps, or an element of what one gives. Slang says of its members that they
/// are no calls.
bool is_called(const syntax::Tree& tree, syntax::NodeId n)
{
    while (tree.is(n, syntax::Kind::index) || tree.is(n, syntax::Kind::paren))
        n = tree.child(n, 0);
    return tree.is(n, syntax::Kind::call) && tree.tokens()[tree[n].first].kind == syntax::TokenKind::word;
}

} // namespace

std::vector<Edit> hold_no_diff_calls(const ParsedSource& source)
{
    using syntax::Kind;
    const syntax::Tree& tree = source.tree();
    if (source.text().find("no_diff") == std::string::npos)
        return {};
    std::vector<syntax::NodeId> calls;
    for (const syntax::NodeId function : functions_to_change(source, false))
        for (const syntax::NodeId n : tree.inside(function))
            if (tree.is(n, Kind::prefix) && tree.main(n) == "no_diff" && is_called(tree, n + 1) &&
                !tree.is(tree.parent(n), Kind::expression))
                calls.push_back(n);
    return hand_on(source, calls, "no_diff ", "_spy_no_diff_");
}

} // namespace spy
