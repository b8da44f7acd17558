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
/// The longest run that is left as it is.
constexpr size_t longest_unsplit = 12;

constexpr std::array chain_types = {"float", "float2", "float3", "float4"};
constexpr std::array chain_signs = {"%", "*", "+", "-", "/"};

bool is_chain_word(const auto& sorted, std::string_view word)
{
    return std::binary_search(sorted.begin(), sorted.end(), word);
}

/// Statements one after the other, each of which gives one variable a new value made of its old one.
struct ChainRun {
    uint32_t variable = syntax::none;
    size_t links = 0; ///< statements with calls of those functions
    std::vector<NodeId> statements;
    std::map<uint32_t, std::string> read; ///< the other variables: their parameters
};

class ChainSplitter {
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
        const NodeId assignment = m_tree.is(statement, Kind::expression) ? m_tree.child(statement, 0) : syntax::none;
        if (!m_tree.is(assignment, Kind::assign) || m_tree.main(assignment).size() > 2)
            return false;
        const uint32_t variable = m_scopes.variable_of(m_tree.child(assignment, 0));
        if (!m_tree.is(m_tree.child(assignment, 0), Kind::name) || !is_plain(variable) ||
            (run.variable != syntax::none && run.variable != variable) || !is_plain_text(m_tree.text(statement)))
            return false;
        const std::string_view sign = m_tree.main(assignment);
        ChainRun longer = run;
        longer.variable = variable;
        bool has_link = false, reads = sign != "=";
        if (reads && !is_chain_word(chain_signs, sign.substr(0, 1)))
            return false;
        if (!gather(m_tree.child(assignment, 1), longer, has_link, reads) || !reads)
            return false;
        longer.links += has_link;
        longer.statements.push_back(statement);
        run = std::move(longer);
        return true;
    }

    /// Whether an expression is made only of floats, signs, those functions and vectors' constructors.
    bool gather(NodeId n, ChainRun& run, bool& has_link, bool& reads) const
    {
        size_t first = 0;
        switch (m_tree.kind(n)) {
        case Kind::literal: return true;
        case Kind::name: return gather_name(n, run, reads);
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
            if (!is_known_callee(m_tree.child(n, 0), has_link))
                return false;
            first = 1;
            break;
        default: return false;
        }
        for (size_t k = first; k < m_tree.count(n); ++k)
            if (!gather(m_tree.child(n, k), run, has_link, reads))
                return false;
        return true;
    }

    bool gather_name(NodeId n, ChainRun& run, bool& reads) const
    {
        const uint32_t variable = m_scopes.variable_of(n);
        if (!is_plain(variable))
            return false;
        if (variable == run.variable)
            reads = true;
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

    bool is_plain(uint32_t number) const
    {
        if (number == syntax::none)
            return false;
        const syntax::Variable& variable = m_scopes.variables()[number];
        const bool is_own = variable.role == Role::local || variable.role == Role::parameter;
        return is_own && !variable.is_array && !variable.is_no_diff && !variable.is_static && !variable.is_const &&
            !variable.is_groupshared && !variable.is_doubtful && variable.direction != syntax::Direction::ref &&
            is_chain_word(chain_types, variable.type) && m_scopes.types(variable.type).empty() &&
            m_tree.macro(variable.type) == nullptr && m_tree.macro(variable.name) == nullptr;
    }

    static bool is_plain_text(std::string_view text)
    {
        return text.find_first_of("#\\\r\n") == std::string_view::npos && text.find("/*") == std::string_view::npos;
    }

    std::string parameter(uint32_t variable) const
    {
        return cat(m_scopes.variables()[variable].type, " ", m_scopes.variables()[variable].name);
    }

    void finish(const ChainRun& run)
    {
        if (run.links <= longest_unsplit)
            return;
        const size_t begin = m_tree.begin(run.statements.front()), end = m_tree.end(run.statements.back());
        const std::string_view text = m_tree.source().substr(begin, end - begin);
        if (text.find('#') != std::string_view::npos)
            return;
        std::vector<std::string> statements;
        for (const NodeId statement : run.statements)
            statements.emplace_back(m_tree.text(statement));
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
