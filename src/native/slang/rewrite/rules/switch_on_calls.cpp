// `switch (f(x))` -> `switch (_spy_called_...(f(x)))`, likewise `f(x) ? a : b`, where f may have a derivative: Slang
// 2026.12 takes no call of such a function for a value of a switch or a condition of `?:`. The function around it hands
// its value on and has no derivative; it is declared at the end of the text.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"

#include <algorithm>

namespace spy {
namespace {

using namespace syntax;

/// Whether a node, in brackets perhaps, is a call of what may have a derivative.
bool may_derive(const Scopes& scopes, NodeId n)
{
    const Tree& tree = scopes.tree();
    n = unwrapped(tree, n);
    const bool is_operator = tree.is(n, Kind::binary);
    if (!tree.is(n, Kind::call) && !is_operator)
        return false;
    const NodeId callee = is_operator ? none : callee_of(tree, n);
    if (!is_operator && (scopes.variable_of(callee) != none || tree.macro(tree.main(callee)) != nullptr))
        return true; // a lambda
    const auto callees = is_operator ? scopes.callees(tree.main(n), 2) : scopes.callees_of(n);
    return std::any_of(callees.begin(), callees.end(),
                       [](const Scopes::Callee& found) { return found.function->may_be_differentiable; });
}

} // namespace

std::vector<Edit> hold_called_values(const ParsedSource& source)
{
    const Tree& tree = source.tree();
    std::vector<NodeId> values;
    for (const NodeId function : functions_to_change(source, true))
        for (const NodeId n : tree.inside(function)) {
            const NodeId value = tree.is(n, Kind::switch_) ? tree.child(n, 1)
                : tree.is(n, Kind::conditional)            ? tree.child(n, 0)
                                                           : none;
            if (value != none && may_derive(source.scopes(), value))
                values.push_back(value);
        }
    return hand_on(source, values, "", "_spy_called_");
}

} // namespace spy
