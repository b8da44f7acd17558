// What Slang says of a source, made readable.
#include "slang/diagnostics.h"

#include "core/error.h"
#include "slang/syntax/lexer.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

namespace spy {

size_t Place::offset_in(std::string_view source) const
{
    size_t at = 0;
    for (size_t i = 1; i < line; ++i)
        at = source.find('\n', at) + 1;
    return at + column - 1;
}

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

namespace {

constexpr size_t most_candidates = 3;
constexpr std::string_view candidate_head = "note[E40011]", mismatch_head = "note[E40018]",
                           more_head = "note[E40015]: ";

/// One of Slang's messages with the lines that belong to it, or what stands in front of the first.
struct Message {
    std::string text;

    bool is_candidate() const { return text.starts_with(candidate_head); }
    bool is_mismatch() const { return text.starts_with(mismatch_head); } ///< why the candidate in front does not fit
    bool is_more() const { return text.starts_with(more_head); }         ///< how many Slang itself left out
    bool is_slangs_own() const { return text.find(".meta.slang:") != text.npos; }
};

bool begins_message(std::string_view line)
{
    constexpr std::string_view heads[] = {"error[", "fatal error[", "warning[", "note["};
    return std::any_of(std::begin(heads), std::end(heads), [&](auto head) { return line.starts_with(head); });
}

std::vector<Message> messages_of(std::string_view text)
{
    std::vector<Message> found;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
        if (found.empty() || begins_message(line))
            found.emplace_back();
        found.back().text += line;
        text.remove_prefix(line.size());
    }
    return found;
}

/// A candidate and why it does not fit.
struct Candidate {
    std::string text;
    bool is_slangs_own;
};

/// The candidates of one error.
class Candidates {
public:
    void add(Candidate candidate) { m_found.push_back(std::move(candidate)); }
    void add_more(const Message& message)
    {
        size_t count = 0;
        const char* end = message.text.data() + message.text.size();
        std::from_chars(message.text.data() + more_head.size(), end, count);
        m_left_out += count;
    }
    bool empty() const { return m_found.empty(); }
    Candidate& last() { return m_found.back(); }

    void put(std::string& out)
    {
        std::stable_partition(m_found.begin(), m_found.end(), [](const auto& c) { return !c.is_slangs_own; });
        const size_t shown = std::min(m_found.size(), most_candidates), more = m_left_out + m_found.size() - shown;
        for (size_t i = 0; i < shown; ++i)
            out += m_found[i].text;
        if (more > 0)
            out += cat("note: ", more, more == 1 ? " more candidate\n" : " more candidates\n");
        *this = {};
    }

private:
    std::vector<Candidate> m_found;
    size_t m_left_out = 0;
};

} // namespace

std::string with_few_candidates(const std::string& text)
{
    if (text.find(candidate_head) == text.npos)
        return text;
    std::string out;
    Candidates candidates;
    for (const Message& message : messages_of(text + "\n")) {
        const bool is_own = message.is_slangs_own(); // its lines are not the user's to read
        const std::string shown = is_own ? message.text.substr(0, message.text.find('\n') + 1) : message.text;
        if (message.is_candidate()) {
            candidates.add({shown, is_own});
        } else if (message.is_mismatch() && !candidates.empty()) {
            candidates.last().text += shown;
        } else if (message.is_more() && !candidates.empty()) {
            candidates.add_more(message);
        } else {
            candidates.put(out);
            out += message.text;
        }
    }
    candidates.put(out);
    while (!out.empty() && out.back() == '\n')
        out.pop_back();
    return out;
}

namespace {

/// Whether the token at a byte is the second word after the end of a struct, which is on the same line: Slang takes
/// the first for a variable of the struct's type.
bool follows_struct(std::string_view source, size_t at)
{
    using namespace syntax;
    const Tokens lexed = syntax::tokens_of(source);
    const auto& tokens = lexed.tokens;
    const auto text = [&](size_t i) { return tokens[i].text(source); };
    size_t i = 0;
    while (i < tokens.size() && tokens[i].begin != at)
        ++i;
    if (i == tokens.size() || i < 3 || tokens[i].kind != TokenKind::word || text(i - 2) != "}" ||
        source.substr(tokens[i - 2].begin, at - tokens[i - 2].begin).find('\n') != source.npos)
        return false;
    size_t depth = 1, open = i - 2;
    while (open > 0 && depth > 0) {
        --open;
        depth += text(open) == "}" ? 1 : text(open) == "{" ? size_t(-1) : 0;
    }
    while (open > 0 && text(open - 1) != ";" && text(open - 1) != "}" && text(open - 1) != "{")
        if (--open; text(open) == "struct" || text(open) == "class" || text(open) == "enum")
            return depth == 0;
    return false;
}

} // namespace

std::string semicolon_advice(const std::string& message, const SourceFiles& files)
{
    constexpr std::string_view head = "error[E20001]";
    for (size_t at = message.find(head); at != message.npos; at = message.find(head, at + head.size())) {
        const std::optional<Place> place = place_after(message, at);
        const std::optional<std::string> source = place ? source_of(place->path, files) : std::nullopt;
        if (source && follows_struct(*source, place->offset_in(*source)))
            return cat("\n", place->path, ":", place->line,
                       ": a declaration follows the } of a struct on its line: write }; there, or begin it on a line "
                       "of its own");
    }
    return {};
}

} // namespace spy
