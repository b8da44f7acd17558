// Long chains of Slang's own functions.
//
// Statements that change one variable through functions of Slang's own (`v = exp(-v) + x;` again and again): .bwds
// computes each value anew wherever it is read, and the one before for that, so that the code doubles with each.
// Long runs of them become functions of a few statements each whose results are kept, and functions of these.
#include "slang/rewrite/rules/all.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/uses.h"

#include <algorithm>
#include <array>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Role;

/// Statements in one function. The time to compile doubles with each of them, and with each call of such functions.
constexpr size_t in_one_function = 4;
/// The longest run that is left as it is, by statements with calls and by conditions.
constexpr size_t longest_unsplit = 12, most_conditions = 16;

constexpr std::array chain_types = {"double", "double2", "double3", "double4", "float", "float2",
                                    "float3", "float4",  "half",    "half2",   "half3", "half4"};
constexpr std::array chain_signs = {"%", "*", "+", "-", "/"};
/// What conditions are made of beside these.
constexpr std::array condition_types = {"bool", "int", "uint"};
constexpr std::array condition_signs = {"!=", "&&", "<", "<=", "==", ">", ">=", "||"};

bool is_chain_word(const auto& sorted, std::string_view word)
{
    return std::binary_search(sorted.begin(), sorted.end(), word);
}

/// Statements one after the other, each of which gives one variable a new value made of its old one.
struct ChainRun {
    uint32_t variable = syntax::none;
    size_t links = 0;      ///< statements with calls of those functions
    size_t conditions = 0; ///< those that are an `if`, or hold a `?:`
    std::vector<NodeId> statements;
    std::map<uint32_t, std::string> read; ///< the other variables: their parameters
};

class ChainSplitter {
    /// What one statement has.
    struct Found {
        bool has_link = false, has_condition = false, reads = false;
    };

public:
    ChainSplitter(const ParsedSource& source, std::string prefix)
        : m_tree(source.tree()),
          m_scopes(source.scopes()),
          m_prefix(std::move(prefix))
    {
    }

    void split(NodeId function)
    {
        m_place = places_of(m_tree, function).begin;
        for (const NodeId block : m_tree.inside(function)) {
            if (!m_tree.is(block, Kind::block))
                continue;
            ChainRun run;
            for (const NodeId statement : m_tree.children(block))
                if (!extend(run, statement)) {
                    finish(run);
                    run = {};
                    extend(run, statement);
                }
            finish(run);
        }
    }

    std::vector<Edit> edits()
    {
        std::vector<Edit> all = insertions(std::move(m_functions));
        std::ranges::move(m_calls, std::back_inserter(all));
        std::ranges::stable_sort(all, {}, &Edit::begin);
        return all;
    }

private:
    bool extend(ChainRun& run, NodeId statement) const
    {
        ChainRun longer = run;
        Found found;
        if (!is_plain_text(statement) || !add(statement, longer, found) || !found.reads)
            return false;
        longer.links += found.has_link;
        longer.conditions += found.has_condition;
        longer.statements.push_back(statement);
        run = std::move(longer);
        return true;
    }

    /// Assignments to one variable, and branches that hold only such ones.
    bool add(NodeId statement, ChainRun& run, Found& found) const
    {
        switch (m_tree.kind(statement)) {
        case Kind::expression: return add_assignment(m_tree.child(statement, 0), run, found);
        case Kind::block:
            for (const NodeId n : m_tree.children(statement))
                if (!add(n, run, found))
                    return false;
            return true;
        case Kind::if_:
            found.reads = found.has_condition = true; // where it is not true, the old value stays
            return m_tree.count(m_tree.child(statement, 0)) == 0 && is_condition(m_tree.child(statement, 1), run) &&
                add(m_tree.child(statement, 2), run, found) &&
                (!m_tree.has(m_tree.child(statement, 3)) || add(m_tree.child(statement, 3), run, found));
        default: return false;
        }
    }

    bool add_assignment(NodeId assignment, ChainRun& run, Found& found) const
    {
        if (!m_tree.is(assignment, Kind::assign) || m_tree.main(assignment).size() > 2)
            return false;
        const uint32_t variable = m_scopes.variable_of(m_tree.child(assignment, 0));
        if (!m_tree.is(m_tree.child(assignment, 0), Kind::name) || !is_plain(variable, chain_types) ||
            (run.variable != syntax::none && run.variable != variable))
            return false;
        run.variable = variable;
        run.read.erase(variable); // a condition read it first
        const std::string_view sign = m_tree.main(assignment);
        if (sign != "=" && !is_chain_word(chain_signs, sign.substr(0, 1)))
            return false;
        found.reads |= sign != "=";
        return gather(m_tree.child(assignment, 1), run, found);
    }

    /// Whether an expression is made only of numbers, signs, comparisons and those functions. It has no derivative.
    bool is_condition(NodeId n, ChainRun& run) const
    {
        Found found;
        if (m_tree.is(n, Kind::name))
            return is_plain(m_scopes.variable_of(n), condition_types) && gather_name(n, run, found);
        if (m_tree.is(n, Kind::paren) || (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "!"))
            return is_condition(m_tree.child(n, 0), run);
        if (!m_tree.is(n, Kind::binary) || !is_chain_word(condition_signs, m_tree.main(n)))
            return false;
        const bool joins = m_tree.main(n) == "&&" || m_tree.main(n) == "||";
        for (const NodeId child : m_tree.children(n))
            if (!(joins ? is_condition(child, run) : gather(child, run, found)))
                return false;
        return true;
    }

    /// Whether an expression is made only of floats, signs, those functions and vectors' constructors.
    bool gather(NodeId n, ChainRun& run, Found& found) const
    {
        size_t first = 0;
        switch (m_tree.kind(n)) {
        case Kind::literal: return true;
        case Kind::name: return gather_name(n, run, found);
        case Kind::paren:
        case Kind::member: break;
        case Kind::prefix:
            if (m_tree.main(n) != "-")
                return false;
            break;
        case Kind::binary:
            if (!is_chain_word(chain_signs, m_tree.main(n)))
                return false;
            break;
        case Kind::call:
            if (!is_known_callee(m_tree.child(n, 0), found.has_link))
                return false;
            first = 1;
            break;
        case Kind::conditional:
            found.has_condition = true;
            if (!is_condition(m_tree.child(n, 0), run))
                return false;
            first = 1;
            break;
        default: return false;
        }
        for (size_t k = first; k < m_tree.count(n); ++k)
            if (!gather(m_tree.child(n, k), run, found))
                return false;
        return true;
    }

    bool gather_name(NodeId n, ChainRun& run, Found& found) const
    {
        const uint32_t variable = m_scopes.variable_of(n);
        if (!is_plain(variable, chain_types) && !is_plain(variable, condition_types))
            return false;
        if (variable == run.variable)
            found.reads = true;
        else
            run.read[variable] = parameter(variable);
        return true;
    }

    bool is_known_callee(NodeId callee, bool& has_link) const
    {
        const std::string_view name = m_tree.main(callee);
        const bool is_link = is_own_link(m_scopes, callee);
        has_link |= is_link;
        return is_link ||
            (is_chain_word(chain_types, name) && !is_declared(m_scopes, callee) && m_tree.macro(name) == nullptr);
    }

    bool is_plain(uint32_t number, const auto& types) const
    {
        if (number == syntax::none)
            return false;
        const syntax::Variable& variable = m_scopes.variables()[number];
        const bool is_own = variable.role == Role::local || variable.role == Role::parameter;
        return is_own && !variable.is_array && !variable.is_no_diff && !variable.is_static && !variable.is_const &&
            !variable.is_groupshared && !variable.is_doubtful && variable.direction != syntax::Direction::ref &&
            is_chain_word(types, variable.type) && m_scopes.types(variable.type).empty() &&
            m_tree.macro(variable.type) == nullptr && m_tree.macro(variable.name) == nullptr;
    }

    bool is_plain_text(NodeId statement) const
    {
        const std::string_view text = m_tree.text(statement);
        const bool is_branch = m_tree.is(statement, Kind::if_); // may have lines
        return text.find_first_of(is_branch ? "#\\" : "#\\\r\n") == std::string_view::npos &&
            text.find("/*") == std::string_view::npos && (!is_branch || text.find("//") == std::string_view::npos);
    }

    /// A statement on one line.
    std::string on_one_line(NodeId statement) const
    {
        std::string text(m_tree.text(statement));
        std::ranges::replace_if(text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
        return text;
    }

    std::string parameter(uint32_t variable) const
    {
        return cat(m_scopes.variables()[variable].type, " ", m_scopes.variables()[variable].name);
    }

    void finish(const ChainRun& run)
    {
        if (run.variable == syntax::none || (run.links <= longest_unsplit && run.conditions <= most_conditions))
            return;
        const size_t begin = m_tree.begin(run.statements.front()), end = m_tree.end(run.statements.back());
        const std::string_view text = m_tree.source().substr(begin, end - begin);
        if (text.find('#') != std::string_view::npos)
            return;
        std::vector<std::string> statements;
        for (const NodeId statement : run.statements)
            statements.push_back(on_one_line(statement));
        while (statements.size() > in_one_function)
            statements = grouped(run, statements);
        std::string calls;
        for (const std::string& statement : statements)
            calls += cat(calls.empty() ? "" : " ", statement);
        calls.append(size_t(std::ranges::count(text, '\n')), '\n');
        m_calls.push_back({begin, end, std::move(calls)});
    }

    /// Calls of new functions, each of which holds a few of these statements.
    std::vector<std::string> grouped(const ChainRun& run, const std::vector<std::string>& statements)
    {
        const syntax::Variable& variable = m_scopes.variables()[run.variable];
        std::string parameters = parameter(run.variable), arguments(variable.name);
        for (const auto& [number, declared] : run.read) {
            parameters += cat(", ", declared);
            arguments += cat(", ", m_scopes.variables()[number].name);
        }
        std::vector<std::string> calls;
        for (size_t i = 0; i < statements.size(); i += in_one_function) {
            std::string body;
            for (size_t k = i; k < std::min(i + in_one_function, statements.size()); ++k)
                body += statements[k] + " ";
            const std::string name = cat(m_prefix, m_count++);
            m_functions[m_place] += cat("[Differentiable] [PreferCheckpoint] ", variable.type, " ", name, "(",
                                        parameters, ") { ", body, "return ", variable.name, "; } ");
            calls.push_back(cat(variable.name, " = ", name, "(", arguments, ");"));
        }
        return calls;
    }

    const syntax::Tree& m_tree;
    const syntax::Scopes& m_scopes;
    std::string m_prefix;
    size_t m_place = 0;
    int m_count = 0;
    std::map<size_t, std::string> m_functions;
    std::vector<Edit> m_calls;
};

} // namespace

std::vector<Edit> split_chains(const ParsedSource& source)
{
    ChainSplitter splitter(source, cat("_spy_chain_", content_hash(source.text()).substr(0, 12), "_"));
    for (const NodeId function : differentiable_functions(source))
        splitter.split(function);
    return splitter.edits();
}

} // namespace spy
