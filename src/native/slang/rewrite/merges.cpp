#include "slang/rewrite/merges.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/index.h"
#include "slang/rewrite/passed.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"

#include <algorithm>

namespace spy {
namespace {

using Names = BracketedText::Names;

/// The branches and loops of a function.
class Forks {
public:
    Forks(const BracketedText& text, const FunctionBody& body) : m_loops(text, body), m_end(body.end)
    {
        for (size_t i = body.open + 1; i < body.end; ++i)
            if ((text.at(i) == "if" || text.at(i) == "switch") && text.at(i + 1) == "(")
                m_branches.push_back({i, last_token(text, i, body.end)});
    }

    bool any() const { return !m_branches.empty() || !m_loops.all().empty(); }

    /// The loop around a token that stays one, or all of the function.
    std::pair<size_t, size_t> around(size_t i) const
    {
        const size_t loop = m_loops.innermost(i);
        return loop == npos ? std::pair<size_t, size_t>{0, m_end} : std::pair{loop, m_loops.end_of(loop)};
    }

    /// Whether a branch is around a token, or a branch or loop behind it, within the loop around it.
    bool follow(size_t i) const
    {
        const auto [begin, end] = around(i);
        const auto is_near = [&, first = begin, last = end](size_t fork) { return fork > first && fork < last; };
        return std::any_of(m_branches.begin(), m_branches.end(),
                           [&](const auto& branch) { return is_near(branch.first) && branch.second > i; }) ||
            std::any_of(m_loops.all().begin(), m_loops.all().end(), [&](const Loops::Loop& loop) {
                   return !loop.is_unrolled && is_near(loop.begin) && loop.begin > i;
               });
    }

    bool in_loop(size_t i) const { return m_loops.innermost(i) != npos; }

private:
    Loops m_loops;
    size_t m_end;
    std::vector<std::pair<size_t, size_t>> m_branches;
};

class MergeScanner {
public:
    MergeScanner(std::string_view text, const FunctionTables& imported)
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
    struct Variable {
        std::string_view type;
        bool is_float, is_array, is_repeated; ///< a vector or matrix of floats; declared more than once
        std::vector<size_t> parts = {}, wholes = {};
    };
    using Variables = std::map<std::string_view, Variable>;

    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, Places& places) const
    {
        if (!may_be_differentiable(m_text, body))
            return;
        const Forks forks(m_text, body);
        if (!forks.any())
            return;
        const Variables variables = variables_of(body);
        const Statements statements(m_text, body);
        for (const auto& [name, variable] : variables)
            for (const size_t part : variable.parts) {
                const size_t end = statements.end_of(part);
                if (end != npos && is_lost(name, variable, part, forks, variables) && !is_passed(end, name) &&
                    !goes_on(end, variable, statements))
                    statements.pass_behind(part, name, variable.is_float, places);
            }
    }

    /// Whether the next statement, behind a ";", writes a part of the same variable.
    bool goes_on(size_t end, const Variable& variable, const Statements& statements) const
    {
        return std::any_of(variable.parts.begin(), variable.parts.end(), [&](size_t part) {
            return part > end && statements.begin_of(part) == end + 1 && statements.end_of(part) != npos;
        });
    }

    bool is_lost(std::string_view name, const Variable& variable, size_t part, const Forks& forks,
                 const Variables& variables) const
    {
        bool any = variable.is_float || variable.is_repeated, copied = false;
        const auto [begin, end] = forks.around(part);
        for (const auto& [other, changed] : variables) {
            const bool is_changed = !changed.parts.empty() || !changed.wholes.empty();
            if (!is_changed || !are_alike(variable, changed))
                continue;
            any |= other != name;
            copied |= forks.in_loop(part) &&
                std::any_of(changed.wholes.begin(), changed.wholes.end(),
                            [first = begin, last = end](size_t whole) { return first < whole && whole <= last; });
        }
        return any && (copied || forks.follow(part));
    }

    /// Whether two may be of one type.
    bool are_alike(const Variable& one, const Variable& two) const
    {
        const auto is_open = [&](const Variable& variable) {
            return variable.type == "var" || is_array_alias(m_own, m_imported, variable.type) ||
                is_renamed(m_own, m_imported, variable.type);
        };
        return (one.type == two.type && one.is_array == two.is_array) || is_open(one) || is_open(two);
    }

    /// Whether an operation already stands behind a statement.
    bool is_passed(size_t end, std::string_view name) const
    {
        return at(end + 1) == name && at(end + 2) == "=" &&
            ((at(end + 3) == "-" && at(end + 4) == "(" && at(end + 5) == "-") || at(end + 3).starts_with("_spy_same_"));
    }

    Variables variables_of(const FunctionBody& body) const
    {
        const Names floats = m_text.local_floats(body);
        const auto declared = declared_names(m_text, body);
        Variables variables;
        for (const auto& [name, what] : declared)
            if (!what.is_fixed && (floats.count(name) || is_value(what)))
                variables[name] = {what.type, floats.count(name) > 0, what.is_array, what.tokens.size() > 1};
        if (const std::string_view own = own_type(body); !own.empty())
            variables["this"] = {own, false, false, false};
        for (size_t i = body.open + 1; i < body.end; ++i)
            if (is_word(at(i)) && at(i - 1) != ".")
                note(i, body, declared, variables);
        return variables;
    }

    /// Notes a use of a variable that writes it.
    void note(size_t i, const FunctionBody& body, const std::map<std::string_view, DeclaredName>& declared,
              Variables& variables) const
    {
        const auto known = declared.find(at(i));
        if (known != declared.end() && known->second.is_at(i))
            return;
        const auto found = variables.find(known == declared.end() ? "this" : at(i));
        if (found == variables.end())
            return;
        const auto [before, end] = path_at(m_text, i);
        const bool is_method = at(end) == "(" && at(before) == ".";
        if (!(is_method ? changes_object(m_text, m_own, m_imported, before, end) : is_written(i, end)))
            return;
        const bool is_object = found->first == "this" && at(i) == "this";
        if (found->first == "this" && !is_object && !is_field(m_text, body, at(i)))
            return;
        const bool is_whole = (is_method ? before : end) == i + 1 && (is_object || found->first != "this");
        (is_whole ? found->second.wholes : found->second.parts).push_back(i);
    }

    /// Whether the path at tokens [begin, end) is assigned, or passed to a function that may write it.
    bool is_written(size_t begin, size_t end) const
    {
        const Written written = written_at(m_text, m_own, m_imported, begin, end);
        return written.is ||
            (written.unknown != npos && !m_own.is_struct(at(written.unknown)) &&
             !at(written.unknown).starts_with("_spy_"));
    }

    /// Whether a type shows that it is one of values, which can be copied.
    bool is_value(const DeclaredName& declared) const
    {
        const std::string_view type = declared.type;
        return is_float_type(type) || is_discrete_type(type) || type == "vector" || type == "matrix" ||
            type == "Array" || is_array_alias(m_own, m_imported, type) ||
            (is_struct(m_own, m_imported, type) && !holds_memory(m_own, m_imported, type));
    }

    /// The struct of a method that changes its object; empty for other functions.
    std::string_view own_type(const FunctionBody& body) const
    {
        const size_t begin = m_text.header_of(body);
        const std::string_view scope = m_text.scope_word(begin);
        if (scope != "struct" && scope != "extension")
            return {};
        bool changes = false;
        for (size_t i = begin; i < body.begin; ++i)
            changes |= at(i) == "mutating";
        size_t word = m_text.around(begin);
        while (at(word) != scope)
            --word;
        return changes && !holds_memory(m_own, m_imported, at(word + 1)) ? at(word + 1) : std::string_view();
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_merges(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos)
        return {};
    return with_passed(source, MergeScanner(source, imported).found());
}

} // namespace spy
