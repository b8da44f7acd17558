#include "slang/rewrite/carried.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/index.h"
#include "slang/rewrite/passed.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"

#include <algorithm>

namespace spy {
namespace {

using Names = BracketedText::Names;

class CarriedScanner {
public:
    CarriedScanner(std::string_view text, const FunctionTables& imported)
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
    /// One write of a variable or of a part of it; the `set` of a __subscript counts as both.
    struct Change {
        size_t token;
        bool is_whole, is_part;
    };
    struct Variable {
        bool is_float; ///< a vector or matrix
        const DeclaredName* declared;
        std::vector<Change> changes;
        std::vector<size_t> copies; ///< `d = c;`
    };
    using Variables = std::map<std::string_view, Variable>;

    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, Places& places) const
    {
        if (!m_text.loops(body).any() || !may_be_differentiable(m_text, body))
            return;
        const Loops loops(m_text, body);
        const auto declared = declared_names(m_text, body);
        const Variables variables = variables_of(body, declared);
        const std::vector<size_t> calls = unknown_calls(body);
        for (const Loops::Loop& loop : loops.all())
            for (const auto& [name, variable] : variables)
                if (!loop.is_unrolled && is_visible(variable, loop.begin, body) &&
                    (begins_wrong(variable, loop, loops) || copies_wrong(variable, loop, loops, calls)))
                    pass(name, variable, loop, body, places);
    }

    /// What is written more than once and has elements that are written.
    Variables variables_of(const FunctionBody& body, const std::map<std::string_view, DeclaredName>& declared) const
    {
        const Names floats = m_text.local_floats(body);
        Variables variables;
        for (const auto& [name, what] : declared)
            if (!what.is_fixed)
                variables[name] = {floats.count(name) > 0, &what, {}, {}};
        for (size_t i = body.open + 1; i < body.end; ++i) {
            const auto found = variables.find(at(i));
            if (found == variables.end() || at(i - 1) == "." || found->second.declared->is_at(i))
                continue;
            const auto [before, end] = path_at(m_text, i);
            const bool is_method = at(end) == "(" && at(before) == ".";
            Variable& variable = found->second;
            const bool is_whole = (is_method ? before : end) == i + 1;
            const bool is_set = at(i + 1) == "[" && !variable.declared->is_array &&
                is_struct(m_own, m_imported, variable.declared->type);
            if (is_method ? changes_object(m_text, m_own, m_imported, before, end) : is_written(i, end, variable))
                variable.changes.push_back({i, is_whole || is_set, !is_whole});
            if (is_whole && at(i - 1) == "=" && at(end) == ";" && !variable.is_float && is_known(variable))
                variable.copies.push_back(i);
        }
        return variables;
    }

    /// Whether the path at tokens [begin, end) is assigned, or passed to a function that may write it.
    bool is_written(size_t begin, size_t end, const Variable& variable) const
    {
        const Written written = written_at(m_text, m_own, m_imported, begin, end);
        return written.is || (written.unknown != npos && !m_own.is_struct(at(written.unknown)) && is_known(variable));
    }

    /// Whether a type shows that it is one of values, which can be copied.
    bool is_known(const Variable& variable) const
    {
        const std::string_view type = variable.declared->type;
        return variable.is_float || is_float_type(type) || is_struct(m_own, m_imported, type);
    }

    /// Statements that call what the sources do not declare, macros for example: they may write any variable.
    std::vector<size_t> unknown_calls(const FunctionBody& body) const
    {
        static const Names may_stand_before = {";", "{", "}", ")", "else"};
        std::vector<size_t> calls;
        for (size_t i = body.open + 1; i < body.end; ++i)
            if (is_word(at(i)) && at(i + 1) == "(" && may_stand_before.count(at(i - 1)) && !writes_no_argument(at(i)) &&
                !is_float_type(at(i)) && !is_struct(m_own, m_imported, at(i)) &&
                !effect_of(m_own, m_imported, at(i), arguments_of(m_text, i + 1).size(), npos).known)
                calls.push_back(i);
        return calls;
    }

    /// What stands in front of a token may have happened when a loop begins: it is in front of it, or in a loop around.
    static size_t end_of_before(const Loops::Loop& loop, const Loops& loops)
    {
        size_t outer = loop.begin, end = loop.begin; // the outermost loop around it
        for (const Loops::Loop& other : loops.all())
            if (other.begin < outer && loop.end <= other.end)
                outer = other.begin, end = other.end;
        return end;
    }

    static bool is_inside(size_t token, const Loops::Loop& loop) { return loop.begin < token && token <= loop.end; }

    static bool begins_wrong(const Variable& variable, const Loops::Loop& loop, const Loops& loops)
    {
        const auto& changes = variable.changes;
        const size_t limit = end_of_before(loop, loops);
        return std::any_of(changes.begin(), changes.end(),
                           [&](const Change& change) {
                               return is_inside(change.token, loop) && (change.is_whole || variable.is_float);
                           }) &&
            std::any_of(changes.begin(), changes.end(),
                        [&](const Change& change) { return change.is_part && change.token < limit; });
    }

    /// Whether a loop copies a struct or array that a __subscript or an unknown call wrote: Slang counts its gradient
    /// once. What known calls write is passed through the operation behind them (rules/outs.h).
    static bool copies_wrong(const Variable& variable, const Loops::Loop& loop, const Loops& loops,
                             const std::vector<size_t>& calls)
    {
        const auto& changes = variable.changes;
        const size_t limit = end_of_before(loop, loops);
        return std::any_of(variable.copies.begin(), variable.copies.end(),
                           [&](size_t copy) { return is_inside(copy, loop); }) &&
            (std::any_of(calls.begin(), calls.end(), [&](size_t call) { return call < limit; }) ||
             std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
                 return change.is_whole && change.is_part && change.token < limit;
             }));
    }

    /// Whether a variable is declared in front of a token, in a block around it.
    bool is_visible(const Variable& variable, size_t i, const FunctionBody& body) const
    {
        const auto& tokens = variable.declared->tokens;
        return std::any_of(tokens.begin(), tokens.end(), [&](size_t token) {
            return token < i && (token < m_text.match(body.begin) || m_text.match(m_text.around(token)) > i);
        });
    }

    /// Puts the operation in front of a loop, with braces around both where one statement is expected.
    void pass(std::string_view name, const Variable& variable, const Loops::Loop& loop, const FunctionBody& body,
              Places& places) const
    {
        size_t begin = loop.begin;
        while (at(begin - 1) == "]")
            begin = m_text.match(begin - 1);
        while (begin > body.open + 3 && at(begin - 1) == ":" && is_word(at(begin - 2)) && at(begin - 2) != "default" &&
               at(begin - 3) != "case" && at(begin - 3) != "." && at(begin - 3) != ":")
            begin -= 2; // a label
        const size_t before = m_text.token(begin - 1).end;
        Passed& passed = places.passed[before];
        (variable.is_float ? passed.floats : passed.values).insert(name);
        if (begins_freely(m_text, begin) || !places.braces.emplace(before, " {").second)
            return;
        places.braces[m_text.token(loop.end).end] += " }";
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_carried(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos)
        return {};
    return with_passed(source, CarriedScanner(source, imported).found());
}

} // namespace spy
