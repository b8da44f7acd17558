// Which functions of a module call themselves.
#include "slang/facts.h"

#include "slang/syntax/scopes.h"
#include "slang/syntax/tree.h"

#include <algorithm>

namespace spy::syntax {

std::vector<std::pair<std::string, size_t>> Facts::recursive_functions(std::string_view function) const
{
    std::vector<std::pair<std::string, size_t>> found;
    std::set<std::string> seen;
    for (const NodeId node : reached(function)) {
        const Function* declared = m_scopes->function(node);
        if (!declared || !seen.insert(std::string(declared->name)).second)
            continue;
        std::vector<std::string> waiting = calls_in(node);
        std::set<std::string> called(waiting.begin(), waiting.end());
        while (!waiting.empty() && !called.count(std::string(declared->name))) {
            const std::string name = std::move(waiting.back());
            waiting.pop_back();
            for (auto [at, last] = m_bodies.equal_range(name); at != last; ++at)
                for (std::string& next : calls_in(at->second))
                    if (called.insert(next).second)
                        waiting.push_back(std::move(next));
        }
        if (called.count(std::string(declared->name)))
            found.emplace_back(declared->name, line_of(node));
    }
    return found;
}

size_t Facts::line_of(NodeId node) const
{
    const std::string_view before = std::string_view(m_text).substr(0, m_tree->begin(node));
    return 1 + size_t(std::count(before.begin(), before.end(), '\n'));
}

} // namespace spy::syntax
