#include "slang/changed_lines.h"

#include "core/tokens.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <optional>

namespace spy {
namespace {

struct Change {
    std::string before, after; ///< whole lines
};

/// By the changed line without the blanks around it.
std::mutex lines_mutex;
std::map<std::string, Change, std::less<>> changed_lines;
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
            changed_lines[std::string(trimmed(now))] = {std::string(old), std::string(now)};
    }
}

namespace {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where the character at a column of the changed line was before: the same word that is nearest, where something was
/// put in or taken out on both sides of it.
size_t column_before(std::string_view now, std::string_view old, size_t column)
{
    const size_t least = std::min(now.size(), old.size());
    size_t head = 0, tail = 0;
    while (head < least && now[head] == old[head])
        ++head;
    while (tail < least - head && now[now.size() - 1 - tail] == old[old.size() - 1 - tail])
        ++tail;
    if (column < head || column >= now.size())
        return std::min(column, old.size());
    if (column + tail >= now.size())
        return column + old.size() - now.size();
    size_t begin = column, end = column + 1;
    while (!is_word_char(now[column]) && begin > head && is_word_char(now[begin - 1]))
        --begin; // a call is known by its name
    while (is_word_char(now[column]) && end < now.size() && is_word_char(now[end]))
        ++end;
    const std::string_view word = now.substr(begin, end - begin);
    const size_t guess = head + (begin - head) * (old.size() - tail - head) / (now.size() - tail - head);
    const auto away = [&](size_t at) { return at > guess ? at - guess : guess - at; };
    size_t best = npos;
    for (size_t at = old.find(word); at != npos; at = old.find(word, at + 1)) {
        const size_t behind = at + word.size();
        const bool begins = !is_word_char(word[0]) || at == 0 || !is_word_char(old[at - 1]);
        const bool is_whole = begins &&
            (!is_word_char(word.back()) || behind == old.size() || !is_word_char(old[behind]));
        if (is_whole && (best == npos || away(at) < away(best)))
            best = at;
    }
    return (best == npos ? guess : best) + (column - begin);
}

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(" \t\r"), line.size()); }

/// The change that a quoted line went through, by all rewrites; none where there was none.
std::optional<Change> change_of(std::string_view shown)
{
    const std::string_view key = trimmed(shown);
    const auto last = key.empty() ? changed_lines.end() : changed_lines.find(key);
    if (last == changed_lines.end())
        return std::nullopt;
    auto first = last;
    for (auto earlier = first; earlier != changed_lines.end();
         earlier = changed_lines.find(trimmed(first->second.before)))
        first = earlier; // changed by one rewrite after the other
    Change change{first->second.before, last->second.after};
    if (indent_of(shown) > indent_of(change.after)) // another line became the same
        change = {std::string(shown.substr(0, indent_of(shown))).append(trimmed(change.before)), std::string(shown)};
    return change;
}

/// Puts the lines of a diagnostic back one by one; the carets below a line that is put back, and the column above it,
/// move with it.
class Restorer {
public:
    void add(std::string_view line, bool ends)
    {
        const size_t bar = line.find('|'), first = line.find_first_not_of(' ');
        const bool is_quote = bar != npos && bar + 2 <= line.size() && line.find_first_not_of(" 0123456789") == bar;
        const std::string_view margin = line.substr(0, is_quote ? bar + 2 : 0), shown = line.substr(margin.size());
        const std::string_view place = first == npos ? "" : line.substr(first, 4);
        if (place == "--> " || place == "--- ")
            m_place = m_text.size(), m_change = std::nullopt;
        const size_t caret = shown.find_first_of("^-");
        if (is_quote && first < bar)
            add_source(margin, shown);
        else if (is_quote && m_change && caret != npos && caret == shown.find_first_not_of(' '))
            add_carets(margin, shown, caret);
        else if (is_quote || !(m_change = change_of(shown)))
            m_text.append(line);
        else
            m_text.append(line.substr(0, indent_of(line))).append(trimmed(m_change->before));
        if (ends)
            m_text += '\n';
    }
    std::string text() { return std::move(m_text); }

private:
    void add_source(std::string_view margin, std::string_view shown)
    {
        m_text.append(margin);
        m_change = change_of(shown);
        if (!m_change) {
            m_text.append(shown);
            return;
        }
        m_hidden = indent_of(m_change->after) - indent_of(shown); // Slang leaves blanks out that all lines begin with
        m_hidden_before = std::min(m_hidden, indent_of(m_change->before));
        m_text.append(m_change->before, m_hidden_before);
        move_place();
    }

    void add_carets(std::string_view margin, std::string_view shown, size_t caret)
    {
        const size_t column = before(caret + m_hidden);
        m_text.append(margin).append(column - std::min(m_hidden_before, column), ' ').append(shown.substr(caret));
    }

    size_t before(size_t column) const { return column_before(m_change->after, m_change->before, column); }

    /// ` --> path:line:column`
    void move_place()
    {
        const size_t end = m_place == npos ? npos : m_text.find('\n', m_place);
        const size_t colon = end == npos ? npos : m_text.rfind(':', end);
        if (colon == npos || colon < m_place || end - colon > 7 ||
            m_text.find_first_not_of("0123456789", colon + 1) != end || end == colon + 1)
            return;
        const size_t column = std::stoul(m_text.substr(colon + 1, end - colon - 1));
        if (column > 0)
            m_text.replace(colon + 1, end - colon - 1, std::to_string(before(column - 1) + 1));
        m_place = npos;
    }

    std::string m_text;
    std::optional<Change> m_change; ///< of the line that was quoted last
    size_t m_hidden = 0, m_hidden_before = 0;
    size_t m_place = npos; ///< of the line that says where the diagnostic is
};

} // namespace

std::string restore_lines(std::string text)
{
    if (text.find('|') == npos) // a name, no quoted line
        return text;
    const std::lock_guard guard(lines_mutex);
    if (changed_lines.empty())
        return text;
    Restorer restorer;
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = next_line(rest);
        restorer.add(line, !rest.empty() || text.back() == '\n');
    }
    return restorer.text();
}

} // namespace spy
