#include "slang/rewrite/elements.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"

#include <map>

namespace spy {
namespace {

using Names = BracketedText::Names;

class ElementScanner {
public:
    explicit ElementScanner(std::string_view text) : m_text(text) { }

    /// What to put where: byte in the source -> text.
    std::map<size_t, std::string> found() const
    {
        std::map<size_t, std::string> places;
        for (const FunctionBody& body : m_text.bodies())
            search(body, places);
        return places;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, std::map<size_t, std::string>& places) const
    {
        bool branches = false;
        for (size_t i = body.open; i < body.end && !branches; ++i)
            branches = at(i) == "if" || at(i) == "switch";
        const LoopWords loops = m_text.loops(body);
        if (!branches && !loops.any())
            return;
        const Names names = m_text.local_floats(body);
        Names written;
        for (size_t i = branches ? body.open + 1 : loops.first; i < body.end; ++i) {
            if (!names.count(at(i)))
                continue;
            const size_t begin = m_text.is_stepped(i) ? i - 2 : i; // ++v.y
            const size_t end = begins_statement(begin) ? end_of_write(i, begin != i, body.end) : body.end;
            if (end == body.end)
                continue;
            const std::string same = cat(at(i), " = -(-", at(i), ");");
            places[m_text.token(begin).begin] += "{ " + same + " ";
            const bool is_last = loops.any() && i > loops.first && !continues(end, at(i));
            places[m_text.token(end).end] += is_last ? " " + same + " }" : " }";
            written.insert(at(i));
        }
        for (size_t i = body.open + 1; i < body.end; ++i)
            if (at(i) == "{" && is_branch(i))
                for (const std::string_view name : written)
                    if (reads_element(i, name, places) && is_declared_before(body, i, name))
                        places[m_text.token(i).end] += cat(" ", name, " = -(-", name, ");");
    }

    /// Whether the statement behind a ";" writes an element of the same variable.
    bool continues(size_t end, std::string_view name) const
    {
        const size_t next = m_text.is_stepped(end + 3) ? end + 3 : end + 1;
        return at(next) == name && end_of_write(next, next != end + 1, m_text.size()) != m_text.size();
    }

    bool is_branch(size_t open) const
    {
        const size_t condition = at(open - 1) == ")" ? m_text.match(open - 1) : npos;
        return at(open - 1) == "else" || (condition != npos && at(condition - 1) == "if");
    }

    /// Whether a block uses elements of a variable, and not first of all writes one.
    bool reads_element(size_t open, std::string_view name, const std::map<size_t, std::string>& places) const
    {
        for (size_t i = open + 1; i < m_text.match(open); ++i)
            if (at(i) == name && at(i - 1) != "." && (at(i + 1) == "." || at(i + 1) == "["))
                return !places.count(m_text.token(m_text.is_stepped(i) ? i - 2 : i).begin);
        return false;
    }

    bool declares(size_t i) const
    {
        const bool is_element = at(i + 1) == "." || at(i + 1) == "["; // vector<float, 2> v; but not a > v.x
        return m_text.is_float_name(at(i - 1)) || at(i - 1) == "var" || (at(i - 1) == ">" && !is_element);
    }

    /// Whether a name stands for one variable in all of the block, and for that in front of it.
    bool is_declared_before(const FunctionBody& body, size_t open, std::string_view name) const
    {
        bool before = false;
        for (size_t i = body.begin; i < m_text.match(open); ++i) {
            if (at(i) != name || !declares(i))
                continue;
            if (i > open)
                return false;
            before = before || i < body.open || m_text.match(m_text.around(i)) > open;
        }
        return before;
    }

    bool begins_statement(size_t i) const
    {
        static const Names may_stand_before = {";", "{", "}", ")", ":", "else", "do"};
        const size_t around = m_text.around(i);
        return may_stand_before.count(at(i - 1)) && at(around) == "{" && !m_text.is_list(around);
    }

    /// The ";" of a statement that writes an element of variable i; `limit` for any other statement.
    size_t end_of_write(size_t i, bool is_stepped, size_t limit) const
    {
        size_t next = i + 1;
        while (at(next) == "." || at(next) == "[")
            next = at(next) == "." ? next + 2 : m_text.match(next) + 1;
        if (next == i + 1 || !(is_stepped ? at(next) == ";" : m_text.is_assignment(next)))
            return limit;
        while (next < limit && at(next) != ";") {
            const size_t match = m_text.match(next);
            if (match != npos && match < next)
                return limit;
            next = match != npos ? match + 1 : next + 1;
        }
        return next;
    }

    BracketedText m_text;
};

} // namespace

std::vector<Edit> rewrite_elements(std::string_view source)
{
    const bool may = source.find("ifferentiable") != source.npos;
    return may ? insertions(ElementScanner(source).found()) : std::vector<Edit>();
}

} // namespace spy
