// Where functions use a generic type, by way of what other types and aliases too.
#include "slang/facts.h"

#include "slang/syntax/parser.h"

#include <map>
#include <set>

namespace spy::syntax {

std::vector<std::pair<std::string, std::string>> Facts::reached_uses(std::string_view function,
                                                                     std::string_view type) const
{
    std::multimap<std::string_view, NodeId> types;
    for (NodeId n = 0; n < m_tree->size(); ++n)
        if (m_tree->is(n, Kind::alias) || m_tree->is(n, Kind::type))
            types.emplace(m_tree->main(n), n);
    std::vector<NodeId> nodes = reached(function);
    std::set<std::string_view> seen;
    const auto add = [&](std::string_view word) {
        if (seen.insert(word).second)
            for (auto [found, last] = types.equal_range(word); found != last; ++found)
                nodes.push_back(found->second);
    };
    add(function);
    for (size_t i = 0; i < nodes.size(); ++i)
        for (const std::string_view word : words_in(nodes[i]))
            add(word);
    std::set<std::pair<std::string, std::string>> uses;
    for (const NodeId node : nodes)
        for (const NodeId n : m_tree->inside(node)) {
            if (!m_tree->is(n, Kind::generic_use) || m_tree->main(m_tree->child(n, 0)) != type)
                continue;
            const NodeId alias = m_tree->is(node, Kind::alias) ? node : m_tree->around(n, Kind::alias);
            const bool stands = alias != none && m_tree->parent(n) == alias && !m_tree->has(m_tree->child(alias, 1));
            uses.emplace(m_tree->plain(n), stands ? m_tree->main(alias) : std::string_view());
        }
    if (uses.empty() && seen.count(type))
        uses.emplace(type, "");
    return {uses.begin(), uses.end()};
}

} // namespace spy::syntax
