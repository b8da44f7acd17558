#include "slang/changed_lines.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace spy {
namespace {

constexpr size_t npos = std::string::npos;

/// What stood where a line was changed, by the changed line.
std::mutex lines_mutex;
std::map<std::string, std::string, std::less<>> changed_lines;
constexpr size_t most_lines = 10000;

std::string_view trimmed(std::string_view line)
{
    const size_t first = line.find_first_not_of(" \t\r");
    return first == npos ? std::string_view() : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

std::string_view next_line(std::string_view& rest)
{
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
}

} // namespace

void remember_lines(std::string_view before, std::string_view after)
{
    const std::lock_guard guard(lines_mutex);
    while (!before.empty() && !after.empty()) {
        const std::string_view old = next_line(before), now = next_line(after);
        if (old != now && changed_lines.size() < most_lines)
            changed_lines[std::string(trimmed(now))] = trimmed(old);
    }
}

std::string restore_lines(std::string text)
{
    if (text.find('|') == npos) // a name, no quoted line
        return text;
    const std::lock_guard guard(lines_mutex);
    if (changed_lines.empty())
        return text;
    std::string result;
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = next_line(rest);
        const size_t bar = line.find('|');
        const std::string_view quoted = trimmed(bar == npos ? line : line.substr(bar + 1));
        auto known = quoted.empty() ? changed_lines.end() : changed_lines.find(quoted);
        if (known == changed_lines.end()) {
            result.append(line);
        } else {
            for (auto earlier = known; earlier != changed_lines.end(); earlier = changed_lines.find(known->second))
                known = earlier; // changed by one rewrite after the other
            result.append(line.substr(0, size_t(quoted.data() - line.data()))).append(known->second);
        }
        if (!rest.empty() || text.back() == '\n')
            result += '\n';
    }
    return result;
}

} // namespace spy
