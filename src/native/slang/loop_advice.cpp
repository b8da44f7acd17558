#include "slang/loop_advice.h"

#include "core/error.h"
#include "slang/syntax/parser.h"
#include "slang/syntax/uses.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace spy {
namespace {

using namespace syntax;

struct Place {
    std::string path;
    size_t line = 0, column = 0;
};

/// `path:line:column` behind the next "--> ".
std::optional<Place> place_after(std::string_view message, size_t at)
{
    const size_t arrow = message.find("--> ", at);
    if (arrow == message.npos)
        return std::nullopt;
    const std::string_view text = message.substr(arrow + 4, message.find('\n', arrow) - arrow - 4);
    const size_t column = text.rfind(':'), line = column == text.npos ? column : text.rfind(':', column - 1);
    if (line == text.npos)
        return std::nullopt;
    Place place{std::string(text.substr(0, line)), 0, 0};
    std::from_chars(text.data() + line + 1, text.data() + column, place.line);
    std::from_chars(text.data() + column + 1, text.data() + text.size(), place.column);
    return place.line > 0 && place.column > 0 ? std::optional(place) : std::nullopt;
}

std::optional<std::string> source_of(const std::string& path, const SourceFiles& files)
{
    if (std::optional<std::string> text = files.text_of(path))
        return text;
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

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
    size_t at = 0;
    for (size_t line = 1; line < place.line; ++line)
        at = source.find('\n', at) + 1;
    const Tree tree = parse(source);
    const Scopes scopes(tree);
    const NodeId node = loop_at(tree, at + place.column - 1);
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
