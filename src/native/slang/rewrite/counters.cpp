#include "slang/rewrite/counters.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"

#include <algorithm>
#include <map>

namespace spy {
namespace {

using Variables = std::map<std::string_view, DeclaredName>;

/// A loop, as tokens: its word, and the last one of its body.
struct LoopRange {
    size_t begin, last;
    bool holds(size_t i) const { return begin < i && i <= last; }
};

/// A `for` whose parts are between `open`, `first_end`, `second_end` and `close`.
struct Header {
    size_t open, first_end, second_end, close;
};

class CounterScanner {
public:
    /// `in_header`: the steps of headers are moved; else those in conditions, of the other loops.
    CounterScanner(std::string_view source, bool in_header) : m_text(source), m_in_header(in_header) { }

    std::vector<Edit> edits()
    {
        if (m_text.balanced())
            for (const FunctionBody& body : m_text.bodies())
                if (may_be_differentiable(m_text, body))
                    search(body);
        std::map<size_t, Edit> sorted = std::move(m_removed);
        for (const auto& [byte, text] : m_before)
            sorted[byte] = {byte, byte, text};
        for (const auto& [byte, text] : m_behind)
            sorted[byte] = {byte, byte, text + sorted[byte].text};
        std::vector<Edit> all;
        for (auto& [byte, edit] : sorted)
            all.push_back(std::move(edit));
        return all;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body)
    {
        std::vector<LoopRange> loops;
        for (size_t i = body.open; i < body.end; ++i)
            if (is_loop_word(at(i)) && !(at(i) == "while" && ends_do(i, loops)))
                loops.push_back({i, last_token(m_text, i, body.end)});
        const Variables variables = declared_names(m_text, body);
        for (const LoopRange& loop : loops) {
            if (!has_limit(loop.begin) || at(loop.begin) == "do")
                continue;
            const Header header = header_of(loop.begin);
            if (header.close == npos)
                continue;
            const std::string steps = at(loop.begin) == "for" ? steps_of(loop, header, variables) : std::string();
            if (m_in_header && !steps.empty())
                move_steps(loop, header, loops, steps);
            else if (!m_in_header && steps.empty())
                move_condition_step(loop, header, body, variables);
        }
    }

    /// Whether a `while` is the end of a `do` before it.
    bool ends_do(size_t i, const std::vector<LoopRange>& loops) const
    {
        return std::any_of(loops.begin(), loops.end(), [&](const LoopRange& loop) {
            return at(loop.begin) == "do" && loop.holds(i) && m_text.match(i + 1) + 1 == loop.last;
        });
    }

    /// Whether [MaxIters(n)] is among the attributes of a loop.
    bool has_limit(size_t loop) const
    {
        for (size_t close = loop - 1; at(close) == "]" && m_text.match(close) != npos; close = m_text.match(close) - 1)
            for (size_t i = m_text.match(close); i < close; ++i)
                if (at(i) == "MaxIters")
                    return true;
        return false;
    }

    /// Whether the body of a loop declares another variable of a name.
    static bool is_declared_in(const LoopRange& loop, const Header& header, std::string_view name,
                               const Variables& variables)
    {
        const auto known = variables.find(name);
        return known != variables.end() &&
            std::any_of(known->second.tokens.begin(), known->second.tokens.end(),
                        [&](size_t token) { return token > header.close && token <= loop.last; });
    }

    /// `i--; ` of `for (...; ...; i--) body`; empty where that stays.
    std::string steps_of(const LoopRange& loop, const Header& header, const Variables& variables) const
    {
        std::string steps;
        bool begins_anywhere = false;
        for (size_t first = header.second_end + 1, end; first < header.close; first = end + 1) {
            for (end = first; end < header.close && !(at(end) == "," && m_text.around(end) == header.open);)
                ++end;
            const size_t counter = counter_of(first);
            if (counter == npos || is_declared_in(loop, header, at(counter), variables))
                return {};
            begins_anywhere |= !begins_with_number(header, at(counter));
            steps += cat(m_text.text(first, end - 1), "; ");
        }
        return begins_anywhere ? steps : std::string();
    }

    /// `for (...; ...; i--) body`
    void move_steps(const LoopRange& loop, const Header& header, const std::vector<LoopRange>& loops,
                    const std::string& steps)
    {
        const size_t begin = m_text.token(header.second_end + 1).begin;
        m_removed[begin] = {begin, m_text.token(header.close - 1).end, ""};
        if (at(header.close + 1) == "{") {
            before(loop.last, steps);
        } else {
            before(header.close + 1, "{ ");
            behind(loop.last, cat(" ", steps, "}"));
        }
        for (size_t i = header.close + 1; i < loop.last; ++i) {
            if (at(i) != "continue" || at(i + 1) != ";" || owner(i, loops) != loop.begin)
                continue;
            before(i, cat("{ ", steps));
            behind(i + 1, " }");
        }
    }

    /// `while (i-- > 0) body` -> `while (i > 0) { i--; body }`, where nothing reads i behind the loop.
    void move_condition_step(const LoopRange& loop, const Header& header, const FunctionBody& body,
                             const Variables& variables)
    {
        const size_t first = header.first_end + 1, rest = first + 3;
        const bool is_behind = is_word(at(first));
        const size_t name = is_behind ? first : first + 2, sign = is_behind ? first + 1 : first;
        if (rest > header.second_end || (at(sign) != "-" && at(sign) != "+") || at(sign + 1) != at(sign) ||
            !m_text.joined(sign) || !is_word(at(name)) || is_declared_in(loop, header, at(name), variables))
            return;
        static const BracketedText::Names may_follow = {"<", ">", "!", "="}, others = {"&", "|", "?"};
        if (rest < header.second_end && !may_follow.count(at(rest)))
            return;
        for (size_t i = rest; i < header.second_end; ++i)
            if (at(i) == at(name) || others.count(at(i)))
                return;
        for (size_t i = loop.last + 1; i < body.end; ++i)
            if (at(i) == at(name))
                return;
        const std::string step = cat(at(name), at(sign), at(sign), ";"),
                          value = is_behind ? std::string(at(name)) : cat("(", at(name), " ", at(sign), " 1)");
        const size_t begin = m_text.token(first).begin;
        m_removed[begin] = {begin, m_text.token(rest - 1).end, rest < header.second_end ? value : value + " != 0"};
        if (at(header.close + 1) == "{") {
            behind(header.close + 1, cat(" ", step));
        } else {
            before(header.close + 1, cat("{ ", step, " "));
            behind(loop.last, " }");
        }
    }

    /// The header of a `for`, or of a `while` as one; `close` is npos where it is neither.
    Header header_of(size_t loop) const
    {
        Header header{loop + 1, npos, npos, npos};
        if (at(header.open) != "(" || m_text.match(header.open) == npos)
            return header;
        const size_t close = m_text.match(header.open);
        if (at(loop) == "while")
            return {header.open, header.open, close, close};
        for (size_t i = header.open; i < close; ++i)
            if (at(i) == ";" && m_text.around(i) == header.open)
                (header.first_end == npos ? header.first_end : header.second_end) = i;
        if (header.second_end != npos)
            header.close = close;
        return header;
    }

    /// The variable that a step changes: `i++`, `--i`, `i += 2`, `i = i - 1`; npos for others.
    size_t counter_of(size_t step) const
    {
        const size_t name = is_word(at(step)) ? step : step + 2;
        const bool is_changed = name == step ? m_text.is_assignment(name + 1) : m_text.is_stepped(name);
        return is_word(at(name)) && is_changed ? name : npos;
    }

    /// Whether the first part of a header gives a variable a number.
    bool begins_with_number(const Header& header, std::string_view counter) const
    {
        for (size_t i = header.open + 1; i + 2 < header.first_end; ++i) {
            if (at(i) != counter || at(i + 1) != "=")
                continue;
            const size_t value = at(i + 2) == "-" ? i + 3 : i + 2;
            const std::string_view behind = at(value + 1);
            return !at(value).empty() && at(value)[0] >= '0' && at(value)[0] <= '9' && (behind == ";" || behind == ",");
        }
        return false;
    }

    /// The innermost loop around a token.
    static size_t owner(size_t i, const std::vector<LoopRange>& loops)
    {
        size_t found = npos;
        for (const LoopRange& loop : loops) // in the order of the text
            if (loop.holds(i))
                found = loop.begin;
        return found;
    }

    /// What is put in front of a token: of outer loops first.
    void before(size_t token, const std::string& text) { m_before[m_text.token(token).begin] += text; }
    /// What is put behind a token: of inner loops first.
    void behind(size_t token, const std::string& text)
    {
        std::string& found = m_behind[m_text.token(token).end];
        found = text + found;
    }

    BracketedText m_text;
    bool m_in_header;
    std::map<size_t, std::string> m_before, m_behind;
    std::map<size_t, Edit> m_removed;
};

} // namespace

std::vector<Edit> rewrite_counters(std::string_view source)
{
    return source.find("MaxIters") == npos ? std::vector<Edit>() : CounterScanner(source, true).edits();
}

std::vector<Edit> rewrite_condition_steps(std::string_view source)
{
    return source.find("MaxIters") == npos ? std::vector<Edit>() : CounterScanner(source, false).edits();
}

} // namespace spy
