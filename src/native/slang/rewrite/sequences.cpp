#include "slang/rewrite/sequences.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"
#include "slang/rewrite/statements.h"

#include <algorithm>
#include <map>
#include <vector>

namespace spy {
namespace {

using Names = BracketedText::Names;

/// One kind of change at a time, as each moves the tokens of the next.
class SequenceScanner {
public:
    explicit SequenceScanner(std::string_view text) : m_text(text) { }

    /// Brackets around a path or a statement, which become blanks.
    std::vector<Edit> without_brackets()
    {
        each_token([&](size_t i, const Statements& statements) {
            if (at(i) == "(" && m_text.match(i) != npos && is_idle(i, statements)) {
                replace(i, " ");
                replace(m_text.match(i), " ");
            }
        });
        return result();
    }

    /// Commas between expressions, which become the ends of statements.
    std::vector<Edit> without_commas()
    {
        each_token([&](size_t i, const Statements& statements) {
            if (at(i) != "," || m_text.around(i) == npos || at(m_text.around(i)) != "{" ||
                m_text.is_list(m_text.around(i)))
                return;
            const size_t begin = statements.begin_of(i), end = statements.end_of(i);
            if (end == npos || !is_expression(begin, end))
                return;
            replace(i, ";");
            with_braces(begin, end);
        });
        return result();
    }

    /// `z = x.y = a;`
    std::vector<Edit> without_chains()
    {
        each_token([&](size_t i, const Statements& statements) {
            if (!is_word(at(i)) || at(i - 1) != "=" || !m_text.is_assignment(end_of_path(i)) || end_of_path(i) == i + 1)
                return;
            const size_t begin = statements.begin_of(i), end = statements.end_of(i);
            if (end == npos || m_text.around(i) != m_text.around(begin) || !is_chain(begin, i))
                return;
            const std::string moved(m_text.text(begin, i - 1));
            const std::string path(m_text.text(i, end_of_path(i) - 1));
            if (moved.find('\n') != moved.npos || path.find('\n') != path.npos || moved.find('/') != moved.npos)
                return;
            m_edits[m_text.token(begin).begin] = {m_text.token(begin).begin, m_text.token(i).begin, ""};
            m_behind[m_text.token(end).end] = " " + moved + " " + path + ";";
            with_braces(begin, end);
        });
        return result();
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    template <class Do>
    void each_token(Do what)
    {
        for (const FunctionBody& body : m_text.bodies()) {
            if (!may_be_differentiable(m_text, body))
                continue;
            const Statements statements(m_text, body);
            for (size_t i = body.open + 1; i < body.end; ++i)
                what(i, statements);
        }
    }

    void replace(size_t i, std::string text)
    {
        m_edits[m_text.token(i).begin] = {m_text.token(i).begin, m_text.token(i).end, std::move(text)};
    }

    /// Braces around a statement, where one is expected.
    void with_braces(size_t begin, size_t end)
    {
        if (begins_freely(m_text, begin))
            return;
        m_before[m_text.token(begin - 1).end] = " {";
        m_braces[m_text.token(end).end] = " }";
    }

    size_t end_of_path(size_t i) const { return path_at(m_text, i).end; }

    /// Whether brackets hold a path that a step or an assignment follows; a statement; or what is assigned.
    bool is_idle(size_t open, const Statements& statements) const
    {
        const size_t close = m_text.match(open);
        const bool begins = statements.begin_of(open) == open;
        if (!is_word(at(open + 1)))
            return false;
        const size_t end = end_of_path(open + 1);
        if (end == close && (begins || !is_callable(open - 1)))
            return (at(close + 1) == "." && is_word(at(close + 2))) || at(close + 1) == "[" ||
                m_text.is_assignment(close + 1);
        return m_text.is_assignment(end) && at(close + 1) == ";" && (begins || at(open - 1) == "=");
    }

    /// Whether brackets behind a token may be those of a call, a cast or a header.
    bool is_callable(size_t i) const { return is_word(at(i)) || at(i) == ")" || at(i) == "]" || at(i) == ">"; }

    /// Whether a statement begins as an expression does, and declares nothing.
    bool is_expression(size_t begin, size_t end) const
    {
        if (at(begin) == "+" || at(begin) == "-")
            return m_text.is_stepped(begin + 2);
        if (!is_word(at(begin)) || at(begin) == "let" || at(begin) == "var")
            return false;
        const size_t next = end_of_path(begin);
        return next < end && (m_text.is_assignment(next) || at(next) == "(");
    }

    /// Whether tokens [begin, i) are `z =`, `z +=` or `float z =`, without effects of their own or on the path at i.
    bool is_chain(size_t begin, size_t i) const
    {
        for (size_t k = begin; k < i; ++k)
            if (at(k) == "(" || at(k) == "?" || at(k) == at(i) || m_text.is_stepped(k) || at(k) == "," ||
                (m_text.around(k) != m_text.around(i) && m_text.is_assignment(k)))
                return false;
        for (size_t k = i; k < end_of_path(i); ++k)
            if (at(k) == "(" || m_text.is_stepped(k) || m_text.is_assignment(k))
                return false;
        for (size_t k = i; at(k) != ";" && k < m_text.size(); ++k)
            if (at(k) == "," && m_text.around(k) == m_text.around(i))
                return false;
        return true;
    }

    std::vector<Edit> result()
    {
        for (const auto* texts : {&m_before, &m_behind, &m_braces})
            for (const auto& [place, text] : *texts) {
                Edit& edit = m_edits.try_emplace(place, Edit{place, place, ""}).first->second;
                edit.text = edit.begin == edit.end ? edit.text + text : text + edit.text;
            }
        std::vector<Edit> edits;
        for (auto& [place, edit] : m_edits)
            edits.push_back(std::move(edit));
        return edits;
    }

    BracketedText m_text;
    std::map<size_t, Edit> m_edits;
    std::map<size_t, std::string> m_before, m_behind, m_braces;
};

} // namespace

void rewrite_sequences(EditedText& text)
{
    if (text.text().find("ifferentiable") == npos)
        return;
    text.apply(SequenceScanner(text.text()).without_brackets());
    text.apply(SequenceScanner(text.text()).without_commas());
    text.apply(SequenceScanner(text.text()).without_brackets()); // `x.y = a, (z.x = b);`
    text.apply(SequenceScanner(text.text()).without_chains());
    text.apply(SequenceScanner(text.text()).without_chains()); // `w.x = z = x.y = a;`
}

} // namespace spy
