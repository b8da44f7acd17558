#include "slang/syntax/branches.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spy::syntax {
namespace {

class BranchFinder {
public:
    /// `drops_unbalanced`: of branches some of which have brackets that close in no branch, one of the others is read.
    BranchFinder(std::string_view source, const Tokens& tokens, bool drops_unbalanced)
        : m_source(source),
          m_tokens(&tokens),
          m_drops_unbalanced(drops_unbalanced)
    {
        find();
    }

    bool is_balanced() const { return m_open.size() == 1 && m_open[0].brackets.empty(); }

    std::vector<Branch> branches, hidden;

private:
    struct Group {
        std::vector<Branch> branches;
        std::string brackets;            ///< that the current branch opens or closes for others
        std::vector<std::string> before; ///< the same of the branches before
        bool is_never = false, has_else = false;
    };

    void find()
    {
        m_open.push_back({}); // the file
        auto token = m_tokens->tokens.begin();
        for (const Trivia& trivia : m_tokens->trivia) {
            if (trivia.kind != TriviaKind::directive)
                continue;
            for (; token != m_tokens->tokens.end() && token->begin < trivia.begin; ++token)
                if (token->kind == TokenKind::sign)
                    add_bracket(m_open.back().brackets, m_source[token->begin]);
            const Directive directive = directive_of(m_source.substr(trivia.begin, trivia.end - trivia.begin));
            if (directive.word.starts_with("if"))
                m_open.push_back({{{trivia.end, trivia.end}}, {}, {}, directive.rest.starts_with('0'), false});
            else if (directive.is_condition() && m_open.size() > 1) {
                m_open.back().has_else |= directive.word == "else";
                end_branch(trivia, directive.word == "endif");
            }
        }
        for (; token != m_tokens->tokens.end(); ++token)
            if (token->kind == TokenKind::sign)
                add_bracket(m_open.back().brackets, m_source[token->begin]);
    }

    void end_branch(const Trivia& directive, bool is_last)
    {
        Group& group = m_open.back();
        group.branches.back().end = directive.begin;
        group.before.push_back(std::exchange(group.brackets, {}));
        if (!is_last) {
            group.branches.push_back({directive.end, directive.end});
            return;
        }
        const Group ended = std::move(group);
        m_open.pop_back();
        const size_t first = ended.is_never, count = ended.branches.size(); // `#if 0` is none
        const auto is_unbalanced = [](const std::string& brackets) { return !brackets.empty(); };
        const auto begin = ended.before.begin() + std::ptrdiff_t(first);
        const bool is_cut = std::any_of(begin, ended.before.end(), is_unbalanced);
        size_t kept = first;
        if (m_drops_unbalanced && is_cut) {
            kept = size_t(std::find_if_not(begin, ended.before.end(), is_unbalanced) - ended.before.begin());
            if (kept == count && ended.has_else)
                kept = first;
        }
        if (kept < count)
            for (const char c : ended.before[kept])
                add_bracket(m_open.back().brackets, c);
        if (ended.is_never)
            hidden.push_back(ended.branches[0]);
        const bool is_choice = !ended.is_never || count > 2;
        for (size_t i = first; i < count; ++i)
            if (i != kept && is_cut)
                hidden.push_back(ended.branches[i]);
            else if (is_choice)
                branches.push_back({ended.branches[i].begin, ended.branches[i].end, is_cut && count > first + 1});
    }

    std::string_view m_source;
    const Tokens* m_tokens;
    bool m_drops_unbalanced;
    std::vector<Group> m_open;
};

/// What lies outside of the hidden ranges, which are in order and apart.
template <class Piece>
std::vector<Piece> outside(const std::vector<Piece>& pieces, const std::vector<Branch>& hidden)
{
    std::vector<Piece> result;
    auto range = hidden.begin();
    for (const Piece& piece : pieces) {
        while (range != hidden.end() && range->end <= piece.begin)
            ++range;
        if (range == hidden.end() || piece.begin < range->begin)
            result.push_back(piece);
    }
    return result;
}

} // namespace

void add_bracket(std::string& brackets, char sign)
{
    const size_t closing = std::string_view(")]}").find(sign);
    if (closing != std::string_view::npos && !brackets.empty() && brackets.back() == "([{"[closing])
        brackets.pop_back();
    else if (std::string_view("()[]{}").find(sign) != std::string_view::npos)
        brackets.push_back(sign);
}

std::vector<Branch> take_branches(std::string_view source, Tokens& tokens)
{
    BranchFinder finder(source, tokens, false);
    if (!finder.is_balanced()) { // a branch that is never taken may hold anything
        BranchFinder other(source, tokens, true);
        if (other.is_balanced())
            finder = std::move(other);
    }
    std::sort(finder.hidden.begin(), finder.hidden.end(),
              [](const Branch& a, const Branch& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
    std::vector<Branch> hidden;
    for (const Branch& branch : finder.hidden)
        if (branch.begin < branch.end && (hidden.empty() || branch.end > hidden.back().end))
            hidden.push_back(branch);
    if (!hidden.empty()) {
        tokens.tokens = outside(tokens.tokens, hidden);
        tokens.trivia = outside(tokens.trivia, hidden);
        for (const Branch& branch : hidden)
            tokens.trivia.push_back({branch.begin, branch.end, TriviaKind::hidden});
        std::sort(tokens.trivia.begin(), tokens.trivia.end(),
                  [](const Trivia& a, const Trivia& b) { return a.begin < b.begin; });
    }
    return std::move(finder.branches);
}

} // namespace spy::syntax
