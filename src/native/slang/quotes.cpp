#include "slang/quotes.h"

#include "slang/spelling.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace spy {
namespace {

struct Source {
    std::string path, before, after;
    TextMap map;
};

std::mutex sources_mutex;
std::deque<std::shared_ptr<const Source>> sources; ///< the latest first
size_t sources_size = 0;
constexpr size_t npos = std::string_view::npos;
constexpr size_t most_bytes = size_t(64) << 20;

size_t size_of(const Source& source) { return source.before.size() + source.after.size(); }

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

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(" \t\r"), line.size()); }

/// Where line `number` (from 1) begins; npos where there is none.
size_t begin_of_line(std::string_view text, size_t number)
{
    size_t begin = 0;
    for (; number > 1; --number) {
        const size_t end = text.find('\n', begin);
        if (end == npos)
            return npos;
        begin = end + 1;
    }
    return begin;
}

std::string_view line_at(std::string_view text, size_t begin)
{
    return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

} // namespace

void remember_source(const std::string& path, std::string before, std::string after, TextMap map)
{
    if (map.empty())
        return;
    const std::lock_guard guard(sources_mutex);
    std::erase_if(sources, [&](const std::shared_ptr<const Source>& known) {
        const bool is_same = known->path == path && known->after == after;
        sources_size -= is_same ? size_of(*known) : 0;
        return is_same;
    });
    sources.push_front(
        std::make_shared<const Source>(Source{path, std::move(before), std::move(after), std::move(map)}));
    for (sources_size += size_of(*sources.front()); sources_size > most_bytes && sources.size() > 1; sources.pop_back())
        sources_size -= size_of(*sources.back());
}

namespace {

/// A line that Slang quotes, and what the user wrote there.
struct Change {
    std::shared_ptr<const Source> source;
    size_t begin, new_begin; ///< of the line in both texts
    std::string_view before, after;

    /// The column of the user's line at that of the changed one; both from 0.
    size_t column(size_t now) const
    {
        const size_t at = source->map.before(new_begin + std::min(now, after.size()));
        return at < begin ? 0 : std::min(at - begin, before.size());
    }
};

/// A line of a source, if that is what it shows there.
std::optional<Change> change_in(const std::shared_ptr<const Source>& source, size_t number, std::string_view shown)
{
    const size_t begin = begin_of_line(source->before, number), new_begin = begin_of_line(source->after, number);
    if (begin == npos || new_begin == npos)
        return std::nullopt;
    const Change change{source, begin, new_begin, line_at(source->before, begin), line_at(source->after, new_begin)};
    const bool is_it = trimmed(change.after) == trimmed(shown) && indent_of(shown) <= indent_of(change.after);
    return is_it ? std::optional(change) : std::nullopt;
}

/// Line `number` of the source of a path, as it is shown.
std::optional<Change> change_of(std::string_view path, size_t number, std::string_view shown)
{
    for (const auto& source : sources)
        if (source->path == path)
            if (std::optional<Change> found = change_in(source, number, shown))
                return found;
    return std::nullopt;
}

std::optional<size_t> number_of(std::string_view text)
{
    size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Puts the lines of a message back one by one; the carets below a line that is put back, and the column above it,
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
            begin_place(line.substr(first + place.size()));
        const size_t caret = shown.find_first_of("^-");
        if (is_quote && first < bar)
            add_source(margin, shown, number_of(trimmed(line.substr(0, bar))).value_or(0));
        else if (is_quote && m_change && caret != npos && caret == shown.find_first_not_of(' '))
            add_carets(margin, shown, caret);
        else
            m_text.append(line);
        if (ends)
            m_text += '\n';
    }
    std::string text() { return std::move(m_text); }

private:
    /// `path:line:column`
    void begin_place(std::string_view place)
    {
        m_change = std::nullopt;
        m_place = npos;
        const size_t column = place.rfind(':');
        const size_t line = column == npos || column == 0 ? npos : place.rfind(':', column - 1);
        if (line == npos || !number_of(place.substr(column + 1)))
            return;
        m_path = place.substr(0, line);
        m_number = number_of(place.substr(line + 1, column - line - 1)).value_or(0);
        m_place = m_text.size();
    }

    void add_source(std::string_view margin, std::string_view shown, size_t number)
    {
        m_text.append(margin);
        m_change = change_of(m_path, number, shown);
        m_moved_column = std::nullopt;
        if (!m_change) {
            m_text.append(shown);
            return;
        }
        if (number == m_number && add_moved(margin))
            return;
        // Slang leaves blanks out that all lines begin with
        m_hidden = indent_of(m_change->after) - indent_of(shown);
        m_hidden_before = std::min(m_hidden, indent_of(m_change->before));
        m_text.append(m_change->before, m_hidden_before);
        if (number == m_number)
            move_place();
    }

    /// The user's line of what was moved to the place of a message; false where nothing was.
    bool add_moved(std::string_view margin)
    {
        const auto [begin, column] = column_of_place();
        const Source& source = *m_change->source;
        const size_t at = m_change->new_begin + column - 1;
        const MovedPart* part = column > 0 ? source.map.moved(at) : nullptr;
        if (part == nullptr)
            return false;
        const size_t from = std::min(part->begin + (at - part->new_begin), source.before.size());
        const size_t line = source.before.rfind('\n', from - (from > 0)) + 1; // 0 where there is none
        const size_t first = from > 0 ? line : 0;
        const std::string_view text = line_at(source.before, first);
        const std::string number = std::to_string(
            1 + std::count(source.before.begin(), source.before.begin() + long(first), '\n'));
        m_text.resize(m_text.size() - margin.size());
        const size_t colon = m_text.rfind(':', begin - 2);
        m_text.replace(colon + 1, m_text.find('\n', colon) - colon - 1,
                       number + ":" + std::to_string(from - first + 1));
        const size_t width = margin.find('|');
        m_text.append(width > number.size() + 1 ? width - number.size() - 1 : 0, ' ').append(number + " | ");
        m_text.append(text.substr(indent_of(text)));
        m_moved_column = from - first - std::min(indent_of(text), from - first);
        m_place = npos;
        return true;
    }

    void add_carets(std::string_view margin, std::string_view shown, size_t caret)
    {
        if (m_moved_column) {
            m_text.append(margin).append(*m_moved_column, ' ').append(shown.substr(caret));
            return;
        }
        const size_t column = m_change->column(caret + m_hidden);
        m_text.append(margin).append(column - std::min(m_hidden_before, column), ' ').append(shown.substr(caret));
    }

    /// Where the column stands in the line that says where the message is, and the column; 0 where there is none.
    std::pair<size_t, size_t> column_of_place() const
    {
        const size_t end = m_place == npos ? npos : m_text.find('\n', m_place);
        const size_t colon = end == npos ? npos : m_text.rfind(':', end);
        const auto column = colon == npos ? std::nullopt
                                          : number_of(std::string_view(m_text).substr(colon + 1, end - colon - 1));
        return {colon + 1, column.value_or(0)};
    }

    void move_place()
    {
        const auto [begin, column] = column_of_place();
        if (column > 0)
            m_text.replace(begin, m_text.find('\n', begin) - begin, std::to_string(m_change->column(column - 1) + 1));
        m_place = npos;
    }

    std::string m_text, m_path;
    size_t m_number = 0;            ///< of the line that the message is about
    std::optional<Change> m_change; ///< of the line that was quoted last
    size_t m_hidden = 0, m_hidden_before = 0;
    std::optional<size_t> m_moved_column; ///< of the line that was quoted last, if it stood elsewhere
    size_t m_place = npos;                ///< of the line that says where the message is
};

} // namespace

std::string restore_quotes(const std::string& given)
{
    if (given.find('|') == npos) // no quoted line
        return restore_constraints(given);
    const std::lock_guard guard(sources_mutex);
    Restorer restorer;
    for (std::string_view rest = given; !rest.empty();) {
        const std::string_view line = next_line(rest);
        restorer.add(line, !rest.empty() || given.back() == '\n');
    }
    return restore_constraints(restorer.text());
}

} // namespace spy
