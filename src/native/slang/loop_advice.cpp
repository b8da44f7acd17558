#include "slang/loop_advice.h"

#include "core/error.h"
#include "slang/diagnostics.h"
#include "slang/syntax/parser.h"
#include "slang/syntax/uses.h"

#include <algorithm>
#include <optional>

namespace spy {
namespace {

using namespace syntax;

/// The innermost loop whose header holds a byte.
NodeId loop_at(const Tree& tree, size_t at)
{
    NodeId found = none;
    for (NodeId n = 0; n < tree.size(); ++n)
        if (is_loop(tree.kind(n)) && tree.begin(n) <= at && at < tree.end(n))
            found = n;
    return found;
}

/// What a loop carries, in words; empty where the source does not show it.
std::string carried_by(const std::string& source, const Place& place)
{
    const Tree tree = parse(source);
    const Scopes scopes(tree);
    const NodeId node = loop_at(tree, place.offset_in(source));
    const NodeId function = node == none ? none : tree.function_of(node);
    if (function == none)
        return {};
    const Uses uses(scopes, function);
    const Loop* loop = uses.is_understood() ? uses.loop(node) : nullptr;
    std::string names;
    for (const uint32_t variable : loop == nullptr ? std::vector<uint32_t>() : loop->carried)
        if (variable != loop->counter)
            names += cat(names.empty() ? "'" : ", '", scopes.variables()[variable].name, "'");
    return names;
}

} // namespace

std::string loop_advice(const std::string& message, const SourceFiles& files)
{
    std::string advice;
    const std::string_view head = "error[E30510]";
    for (size_t at = message.find(head); at != message.npos; at = message.find(head, at + head.size())) {
        const std::optional<Place> place = place_after(message, at);
        const std::optional<std::string> source = place ? source_of(place->path, files) : std::nullopt;
        const std::string names = source ? carried_by(*source, *place) : std::string();
        if (!names.empty())
            advice += cat(
                "\n", place->path, ":", place->line, ": the loop carries ", names,
                " from trip to trip: write [MaxIters(n)] in front of it, with n as large as its most trips; loops "
                "that only add up need no attribute, see \"Loops\" in docs/gradients.md");
    }
    return advice;
}

} // namespace spy
