#include "slang/rewrite/rules/differentiable.h"

#include <algorithm>

namespace spy {

std::vector<syntax::NodeId> differentiable_functions(const ParsedSource& source)
{
    const syntax::Tree& tree = source.tree();
    std::vector<syntax::NodeId> result;
    for (const syntax::Function& function : source.scopes().functions())
        if (function.may_be_differentiable)
            result.push_back(function.node);
    for (syntax::NodeId n = 0; n < tree.size(); ++n)
        if (tree.is(n, syntax::Kind::accessor))
            for (const syntax::NodeId modifier : tree.children(tree.child(n, 0)))
                if (tree.main(modifier).ends_with("ifferentiable"))
                    result.push_back(n);
    std::erase_if(result,
                  [&](syntax::NodeId n) { return syntax::body_of(tree, n) == syntax::none || !tree.is_understood(n); });
    std::sort(result.begin(), result.end());
    return result;
}

} // namespace spy
