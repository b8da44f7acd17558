#include "slang/syntax/branches.h"

#include <algorithm>
#include <string>

namespace spy::syntax {
namespace {

class BranchFinder {
public:
    BranchFinder(std::string_view source, const Tokens& tokens) : m_source(source), m_tokens(tokens) { }

    void find()
    {
        m_open.push_back({}); // the file
        auto token = m_tokens.tokens.begin();
        for (const Trivia& trivia : m_tokens.trivia) {
            if (trivia.kind != TriviaKind::directive)
                continue;
            for (; token != m_tokens.tokens.end() && token->begin < trivia.begin; ++token)
                if (token->kind == TokenKind::sign)
                    add_bracket(m_open.back().brackets, m_source[token->begin]);
            const Directive directive = directive_of(m_source.substr(trivia.begin, trivia.end - trivia.begin));
            if (directive.word.starts_with("if"))
                m_open.push_back({{{trivia.end, trivia.end}}, {}, {}, directive.rest.starts_with('0'), false});
            else if (directive.is_condition() && m_open.size() > 1)
                end_branch(trivia, directive.word == "endif");
        }
    }

    std::vector<Branch> branches, hidden;

private:
    struct Group {
        std::vector<Branch> branches;
        std::string brackets; ///< that the current branch opens or closes for others
        std::string first;    ///< the same of the first branch
        bool is_never = false, is_unbalanced = false;
    };

    void end_branch(const Trivia& directive, bool is_last)
    {
        Group& group = m_open.back();
        const size_t first = group.is_never; // `#if 0` is none
        group.branches.back().end = directive.begin;
        if (group.branches.size() > first) {
            group.is_unbalanced |= !group.brackets.empty();
            if (group.branches.size() == first + 1)
                group.first = group.brackets;
        }
        group.brackets.clear();
        if (!is_last) {
            group.branches.push_back({directive.end, directive.end});
            return;
        }
        const Group ended = std::move(group);
        m_open.pop_back();
        for (const char c : ended.first)
            add_bracket(m_open.back().brackets, c);
        if (ended.is_never)
            hidden.push_back(ended.branches[0]);
        const bool is_choice = !ended.is_never || ended.branches.size() > 2;
        for (size_t i = first; i < ended.branches.size(); ++i)
            if (i > first && ended.is_unbalanced)
                hidden.push_back(ended.branches[i]);
            else if (is_choice)
                branches.push_back({ended.branches[i].begin, ended.branches[i].end,
                                    ended.is_unbalanced && ended.branches.size() > first + 1});
    }

    std::string_view m_source;
    const Tokens& m_tokens;
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
    BranchFinder finder(source, tokens);
    finder.find();
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
