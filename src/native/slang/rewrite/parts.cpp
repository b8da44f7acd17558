#include "slang/rewrite/parts.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/index.h"
#include "slang/rewrite/passed.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"

#include <algorithm>

namespace spy {
namespace {

using Names = BracketedText::Names;

class PartScanner {
public:
    PartScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    std::vector<Places> found() const
    {
        return places_in(m_text, [this](const FunctionBody& body, Places& places) { search(body, places); });
    }

private:
    /// A write of an element of an array, or of a part of one.
    struct Write {
        size_t token, end; ///< its path
        size_t steps;      ///< [i], .x
        bool is_known;     ///< the compiler may know the first index
    };

    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, Places& places) const
    {
        if (!may_be_differentiable(m_text, body))
            return;
        const Loops loops(m_text, body);
        const Statements statements(m_text, body);
        for (const auto& [name, writes] : writes_of(body, loops)) {
            if (!meet(writes, loops))
                continue;
            for (const Write& write : writes)
                if (write.is_known)
                    statements.pass_behind(write.token, name, false, places);
        }
    }

    std::map<std::string_view, std::vector<Write>> writes_of(const FunctionBody& body, const Loops& loops) const
    {
        const auto declared = declared_names(m_text, body);
        const Names unknown = unknown_words(body, loops);
        std::map<std::string_view, std::vector<Write>> writes;
        for (size_t i = body.open + 1; i < body.end; ++i) {
            const auto found = declared.find(at(i));
            if (found == declared.end() || at(i + 1) != "[" || at(i - 1) == "." || !is_array(found->second) ||
                found->second.is_at(i))
                continue;
            Write write{i, i + 1, 0, is_known(i + 2, m_text.match(i + 1), unknown)};
            size_t last = i;
            for (; at(write.end) == "." || at(write.end) == "["; ++write.steps) {
                last = write.end;
                write.end = at(write.end) == "." ? write.end + 2 : m_text.match(write.end) + 1;
            }
            const bool is_method = at(write.end) == "(" && at(last) == ".";
            write.steps -= is_method ? 1 : 0;
            if (is_method ? changes_object(m_text, m_own, m_imported, last, write.end) : is_written(write))
                writes[found->first].push_back(write);
        }
        return writes;
    }

    bool is_array(const DeclaredName& declared) const
    {
        const auto begins = [&](size_t i) { return begins_as_array(i); };
        return !declared.is_fixed &&
            (declared.is_array || declared.type == "Array" || is_array_alias(m_own, m_imported, declared.type) ||
             std::any_of(declared.tokens.begin(), declared.tokens.end(), begins));
    }

    /// `var c = float2[2](...)`
    bool begins_as_array(size_t i) const
    {
        return at(i - 1) == "var" && at(i + 1) == "=" && is_float_type(at(i + 2)) && at(i + 3) == "[";
    }

    /// Whether the path is assigned, stepped, or passed to a function that may write it.
    bool is_written(const Write& write) const
    {
        return m_text.is_assignment(write.end) || m_text.is_stepped(write.token) ||
            taking_of(m_text, m_own, m_imported, write.token, write.end).effect.may;
    }

    /// Words that stand for numbers which the compiler does not know: parameters, and counters of loops that stay.
    Names unknown_words(const FunctionBody& body, const Loops& loops) const
    {
        Names words;
        for (size_t i = body.begin + 1; i < m_text.match(body.begin); ++i)
            if (is_word(at(i)) && (at(i + 1) == "," || at(i + 1) == ")"))
                words.insert(at(i));
        for (const Loops::Loop& loop : loops.all())
            if (!loop.is_unrolled && at(loop.begin) == "for" && is_word(at(loop.begin + 3)))
                words.insert(at(loop.begin + 3));
        return words;
    }

    bool is_known(size_t begin, size_t end, const Names& unknown) const
    {
        for (size_t i = begin; i < end; ++i)
            if (unknown.count(at(i)))
                return false;
        return true;
    }

    /// Whether one write is of a part, and another, of a whole element, may follow it.
    static bool meet(const std::vector<Write>& writes, const Loops& loops)
    {
        for (const Write& part : writes)
            for (const Write& whole : writes)
                if (part.is_known && whole.is_known && part.steps > whole.steps && may_follow(part, whole, loops))
                    return true;
        return false;
    }

    static bool may_follow(const Write& first, const Write& second, const Loops& loops)
    {
        const auto holds = [](const Loops::Loop& loop, const Write& write) {
            return loop.begin < write.token && write.token <= loop.end;
        };
        return first.token < second.token ||
            std::any_of(
                   loops.all().begin(), loops.all().end(),
                   [&](const Loops::Loop& loop) { return holds(loop, first) && holds(loop, second); });
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_parts(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos || source.find('[') == source.npos)
        return {};
    return with_passed(source, PartScanner(source, imported).found());
}

} // namespace spy
