#include "slang/rewrite/rules/barriers.h"

namespace spy {

using syntax::Kind, syntax::NodeId;

Places places_of(const syntax::Tree& tree, NodeId function)
{
    NodeId outermost = function;
    for (NodeId n = function; n != syntax::none; n = tree.parent(n))
        if (tree.is(n, Kind::function) || tree.is(n, Kind::type))
            outermost = n;
    return {tree.begin(outermost), {}};
}

void pass_behind(const syntax::Tree& tree, NodeId node, std::string_view name, bool is_float, Places& places)
{
    const NodeId statement = tree.statement_of(node), parent = tree.parent(statement);
    const bool is_plain = tree.is(statement, Kind::expression) || tree.is(statement, Kind::variables);
    const bool is_header = tree.is(parent, Kind::for_) && tree.child(parent, 4) != statement;
    if (!is_plain || is_header || tree.is(parent, Kind::label) || tree.is(parent, Kind::defer))
        return;
    Passed& passed = places.passed[tree.end(statement)];
    (is_float ? passed.floats : passed.values).insert(name);
    if (tree.may_hold_statements(statement) || !places.closing.emplace(tree.end(statement), " }").second)
        return;
    places.braces[tree.begin(statement)] += "{ ";
}

} // namespace spy
