#include "slang/rewrite/rules/barriers.h"

#include "core/content_hash.h"
#include "core/error.h"

namespace spy {

using syntax::Kind, syntax::NodeId;

NodeId outermost_of(const syntax::Tree& tree, NodeId function)
{
    NodeId outermost = function;
    for (NodeId n = function; n != syntax::none; n = tree.parent(n))
        if (tree.is(n, Kind::function) || tree.is(n, Kind::type))
            outermost = n;
    return outermost;
}

Places places_of(const syntax::Tree& tree, NodeId function) { return {tree.begin(outermost_of(tree, function))}; }

void add_barrier_after(const syntax::Tree& tree, NodeId node, std::string_view name, bool is_float, Places& places)
{
    const NodeId statement = tree.statement_of(node), parent = tree.parent(statement);
    const bool is_plain = tree.is(statement, Kind::expression) || tree.is(statement, Kind::variables);
    const bool is_header = (tree.is(parent, Kind::for_) && tree.child(parent, 4) != statement) ||
        (tree.is(parent, Kind::if_) && tree.child(parent, 1) == statement); // `if (let x = e)`
    if (!is_plain || is_header || tree.is(parent, Kind::label) || tree.is(parent, Kind::defer))
        return;
    Barriers& barriers = places.barriers[tree.end(statement)];
    (is_float ? barriers.floats : barriers.values).insert(name);
    if (tree.may_hold_statements(statement) || !places.closing.emplace(tree.end(statement), " }").second)
        return;
    places.braces[tree.begin(statement)] += "{ ";
}

std::vector<Edit> with_barriers(std::string_view source, const std::vector<Places>& functions)
{
    const std::string hash = content_hash(source);
    size_t number = 0;
    std::map<size_t, std::string> texts;
    for (const Places& places : functions) {
        const std::string same = cat("_spy_same_", hash, "_", number), first = cat("_spy_first_", hash, "_", number);
        bool uses_same = false;
        for (const auto& [place, braces] : places.braces)
            texts[place] += braces;
        for (const auto& [place, barriers] : places.barriers) {
            for (const std::string_view name : barriers.floats)
                texts[place] += cat(" ", name, " = -(-", name, ");");
            for (const std::string_view name : barriers.values)
                texts[place] += cat(" ", name, " = ", same, "(", name, ");");
            uses_same |= !barriers.values.empty();
        }
        for (const auto& [call, inside] : places.within) {
            for (const std::string_view name : inside.floats)
                texts[call.second] += cat(", ", name, " = -(-", name, "))");
            for (const std::string_view name : inside.values)
                texts[call.second] += cat(", ", name, " = ", same, "(", name, "))");
            for (size_t i = 0; i < inside.floats.size() + inside.values.size(); ++i)
                texts[call.first] += first + "(";
            uses_same |= !inside.values.empty();
        }
        for (const auto& [place, braces] : places.closing)
            texts[place] += braces;
        // One for each function: another may stand in another branch of an #if, or a file be included twice.
        if (uses_same)
            texts[places.begin] += cat("T ", same, "<T>(T v) { return v; } [Differentiable] T ", same,
                                       "<T : IDifferentiable>(T v) { return v; } ");
        if (!places.within.empty())
            texts[places.begin] += cat("T ", first, "<T, U>(T v, U u) { return v; } [Differentiable] T ", first,
                                       "<T : IDifferentiable, U>(T v, no_diff U u) { return v; } ");
        number += uses_same || !places.within.empty();
    }
    return insertions(std::move(texts));
}

} // namespace spy
