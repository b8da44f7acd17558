#include "slang/syntax/parser.h"

#include "slang/syntax/grammar.h"

#include <algorithm>
#include <unordered_map>

namespace spy::syntax {
namespace {

enum WordUse : uint8_t { modifier_word = 1, reserved_word = 2, prefix_word = 4, operator_word = 8 };

constexpr std::pair<WordUse, std::string_view> words_by_use[] = {
    {modifier_word,
     "public private internal static const constexpr inline extern export in out inout ref __ref constref "
     "__constref borrow no_diff uniform groupshared precise volatile nointerpolation globallycoherent "
     "override unsafe let var dynamic row_major column_major __extern __extern_cpp __exported unorm snorm linear "
     "centroid sample noperspective func param shared coherent readonly writeonly restrict varying "
     "mutating point line triangle lineadj triangleadj vertices indices primitives payload dyn some "
     "mutable __prefix __postfix"},
    {reserved_word,
     "let if else for while do switch case default return break continue discard struct typedef class enum"},
    {prefix_word, "no_diff new each expand try"},
    {operator_word, "is as"}};

/// What words mean in the grammar. Most are names elsewhere, too.
const std::unordered_map<std::string_view, uint8_t>& word_uses()
{
    static const std::unordered_map<std::string_view, uint8_t> words = [] {
        std::unordered_map<std::string_view, uint8_t> result;
        for (const auto& [use, text] : words_by_use)
            for (const std::string_view word : words_of(text))
                result[word] |= use;
        return result;
    }();
    return words;
}

uint8_t precedence_of(std::string_view sign)
{
    static const std::unordered_map<std::string_view, uint8_t> signs = {
        {"=", 1},  {"+=", 1}, {"-=", 1},  {"*=", 1}, {"/=", 1}, {"%=", 1}, {"&=", 1}, {"|=", 1}, {"^=", 1}, {"<<=", 1},
        {"?", 2},  {"||", 3}, {"&&", 4},  {"|", 5},  {"^", 6},  {"&", 7},  {"==", 8}, {"!=", 8}, {"<", 9},  {">", 9},
        {"<=", 9}, {">=", 9}, {"<<", 10}, {"+", 11}, {"-", 11}, {"*", 12}, {"/", 12}, {"%", 12}};
    const auto found = signs.find(sign);
    return found == signs.end() ? 0 : found->second;
}

/// What follows `#define`: `NAME(a, b) body`. Comments are left in the body, where the parser does not see them.
Macro macro_of(std::string_view rest)
{
    Tokens tokens = tokens_of(rest);
    if (tokens.tokens.empty() || tokens.tokens[0].kind != TokenKind::word)
        return {};
    const auto text = [&](size_t i) { return tokens.tokens[i].text(rest); };
    Macro macro{text(0), {}, {}, false, false};
    size_t body = 1;
    if (tokens.tokens.size() > 1 && text(1) == "(" && tokens.tokens[1].begin == tokens.tokens[0].end) {
        macro.is_function = true;
        while (body < tokens.tokens.size() && text(body) != ")")
            ++body;
        if (body < tokens.tokens.size())
            macro.parameters = rest.substr(tokens.tokens[1].end, tokens.tokens[body].begin - tokens.tokens[1].end);
        ++body;
    }
    if (body < tokens.tokens.size())
        macro.body = rest.substr(tokens.tokens[body].begin, tokens.tokens.back().end - tokens.tokens[body].begin);
    for (size_t i = body; i < tokens.tokens.size(); ++i)
        if (tokens.tokens[i].kind == TokenKind::sign)
            add_bracket(macro.brackets, text(i)[0]);
    return macro;
}

/// Adds those of a source to those that are given, each name once; one that is defined twice with two bodies is not
/// plain.
std::vector<Macro> macros_of(std::string_view source, const Tokens& tokens, const std::vector<Macro>& given)
{
    std::vector<Macro> macros = given;
    for (const Trivia& trivia : tokens.trivia)
        if (trivia.kind == TriviaKind::directive) {
            const Directive directive = directive_of(source.substr(trivia.begin, trivia.end - trivia.begin));
            if (directive.word == "define")
                if (const Macro macro = macro_of(directive.rest); !macro.name.empty())
                    macros.push_back(macro);
        }
    for (Macro& macro : macros)
        macro.is_plain = Parser(macro.body, tokens_of(macro.body), {}).is_plain_expression();
    std::stable_sort(macros.begin(), macros.end(), [](const Macro& a, const Macro& b) { return a.name < b.name; });
    std::vector<Macro> result;
    for (const Macro& macro : macros) {
        if (result.empty() || result.back().name != macro.name)
            result.push_back(macro);
        else if (result.back().body != macro.body) {
            result.back().is_plain = result.back().is_plain && macro.is_plain;
            result.back().is_doubtful = true;
        }
    }
    return result;
}

/// Macros whose bodies name others that are not plain are not plain either.
void spread_plainness(std::vector<Macro>& macros)
{
    std::unordered_map<std::string_view, Macro*> by_name;
    for (Macro& macro : macros)
        by_name[macro.name] = &macro;
    bool changes = true;
    for (size_t rounds = 0; changes && rounds < 16; ++rounds) {
        changes = false;
        for (Macro& macro : macros) {
            if (!macro.is_plain)
                continue;
            for (const Token& token : tokens_of(macro.body).tokens) {
                const auto found = by_name.find(token.text(macro.body));
                if (found != by_name.end() && !found->second->is_plain)
                    macro.is_plain = false, changes = true;
            }
        }
    }
}

} // namespace

Parser::Parser(std::string_view source, Tokens tokens, std::vector<Macro> macros)
{
    m_tree.m_source = source;
    m_tree.m_tokens = std::move(tokens);
    m_tree.m_macros = std::move(macros);
    m_branches = take_branches(source, m_tree.m_tokens);
    m_size = m_tree.tokens().size();
    read_tokens();
    match_brackets();
}

bool Parser::joined(size_t i) const { return i + 1 < m_size && m_tree.tokens()[i].end == m_tree.tokens()[i + 1].begin; }

/// A "}" closes what is open inside of it, and no "{" is closed by other signs. Macros may open and close, too.
void Parser::match_brackets()
{
    m_match.assign(m_size, m_size);
    m_compares.assign(m_size, false);
    m_open.clear();
    for (size_t i = 0; i < m_size; ++i) {
        if (m_tree.tokens()[i].kind == TokenKind::sign)
            match_bracket(i, at(i)[0]);
        else if (m_uses[i].macro)
            for (const char sign : m_uses[i].macro->brackets)
                match_bracket(i, sign);
    }
}

void Parser::match_bracket(size_t i, char sign)
{
    if (sign == '(' || sign == '[' || sign == '{')
        m_open.push_back({sign, i});
    const size_t kind = std::string_view(")]}").find(sign);
    if (kind == std::string_view::npos)
        return;
    const char opening = "([{"[kind];
    if (sign == '}')
        while (!m_open.empty() && m_open.back().sign != '{')
            m_open.pop_back();
    else if (m_open.size() > 1 && m_open.back().sign != opening && m_open.back().sign != '{' &&
             m_open[m_open.size() - 2].sign == opening)
        m_open.pop_back();
    if (m_open.empty() || m_open.back().sign != opening)
        return;
    m_match[i] = m_open.back().token;
    m_match[m_open.back().token] = i;
    m_open.pop_back();
}

void Parser::read_tokens()
{
    m_uses.resize(m_size);
    for (size_t i = 0; i < m_size; ++i) {
        TokenUse& use = m_uses[i];
        const std::string_view text = at(i);
        if (m_tree.tokens()[i].kind == TokenKind::sign) {
            use.precedence = precedence_of(text);
            use.is_prefix = text.size() <= 2 && std::string_view("+ - ! ~ ++ -- & *").find(text) != text.npos;
        } else if (is_word(i)) {
            if (const auto found = word_uses().find(text); found != word_uses().end()) {
                use.is_modifier = found->second & modifier_word;
                use.is_reserved = found->second & reserved_word;
                use.is_prefix = found->second & prefix_word;
                use.precedence = found->second & operator_word ? 9 : 0;
            }
            use.macro = m_tree.m_macros.empty() ? nullptr : m_tree.macro(text);
            const bool declares = text == "struct" || text == "enum" || text == "typealias" || text == "associatedtype";
            if (declares && is_word(i + 1))
                m_types.push_back(at(i + 1));
        }
    }
    std::sort(m_types.begin(), m_types.end());
}

bool Parser::add(Kind kind, size_t mark, size_t first, size_t main)
{
    m_nodes.push_back(
        {kind, false, uint32_t(m_nodes.size() - mark + 1), none, uint32_t(first), uint32_t(m_at), uint32_t(main)});
    return ++m_added < 64 * m_size + 10000; // an end to what would be tried again and again
}

/// To the end of a statement or declaration: after a ";" or the braces of a body, before what closes all. What
/// macros stand for is a piece of its own.
void Parser::opaque(size_t end)
{
    const size_t nodes = mark(), first = m_at;
    if (is_word(m_at) && m_uses[m_at].macro) {
        const bool is_called = m_uses[m_at].macro->is_function && at(m_at + 1) == "(" && close_of(m_at + 1) < end;
        m_at = is_called ? close_of(m_at + 1) + 1 : m_at + 1;
        take(";");
    } else {
        while (m_at < end && !ends_opaque(end)) { }
    }
    add(Kind::opaque, nodes, first);
}

/// Steps over a token, or brackets, and says whether the end is there.
bool Parser::ends_opaque(size_t end)
{
    const std::string_view sign = at(m_at);
    const size_t close = m_match[m_at];
    const bool opens = close < m_size && close > m_at;
    if (sign == "{" && !opens) { // it never closes, so all that follows belongs to it
        m_at = end;
        return true;
    }
    m_at = opens ? std::min(close + 1, end) : m_at + 1;
    if (sign != "{")
        return sign == ";" || sign == "}";
    for (const std::string_view next : {"else", "while", ",", ")", ".", "="})
        if (is(next))
            return false;
    take(";");
    return true;
}

Tree Parser::parse()
{
    list_until(m_size, [&] { return declaration(); });
    add(Kind::file, 0, 0);
    m_nodes.back().first = 0;
    return finished();
}

bool Parser::is_plain_expression()
{
    if (m_size == 0 || !expression() || m_at != m_size) {
        back(0, 0);
        if (m_size == 0 || !type() || m_at != m_size)
            return false;
    }
    for (const Node& node : m_nodes) {
        const bool steps = (node.kind == Kind::prefix || node.kind == Kind::postfix) &&
            (at(node.main) == "++" || at(node.main) == "--");
        if (node.kind == Kind::assign || node.kind == Kind::lambda || steps)
            return false;
    }
    const Kind kind = m_nodes.back().kind;
    return kind != Kind::binary && kind != Kind::conditional;
}

/// Parents in front of children, which stand in the order of the text.
Tree Parser::finished()
{
    std::vector<uint32_t> place(m_nodes.size());
    m_tree.m_nodes.resize(m_nodes.size());
    place.back() = 0;
    for (size_t i = m_nodes.size(); i-- > 0;) {
        const uint32_t at = place[i];
        m_tree.m_nodes[at] = m_nodes[i];
        uint32_t end = at + m_nodes[i].size;
        for (size_t child = i; end > at + 1;) {
            --child;
            end -= m_nodes[child].size;
            place[child] = end;
            child -= m_nodes[child].size - 1;
        }
    }
    for (NodeId n = 0; n < m_tree.m_nodes.size(); ++n)
        for (const NodeId c : m_tree.children(n))
            m_tree.m_nodes[c].parent = n;
    for (const Branch& branch : m_branches)
        split(branch);
    return std::move(m_tree);
}

/// The innermost node that tokens on both sides of a boundary belong to.
NodeId Parser::innermost(size_t boundary) const
{
    const auto& nodes = m_tree.m_nodes;
    const auto after = std::partition_point(nodes.begin(), nodes.end(),
                                            [&](const Node& node) { return node.first < boundary; });
    NodeId n = after == nodes.begin() ? 0 : NodeId(after - nodes.begin() - 1);
    while (n != Tree::root && nodes[n].last <= boundary)
        n = nodes[n].parent;
    return n;
}

/// Marks what a branch of an `#if` cuts through.
void Parser::split(const Branch& branch)
{
    const auto token_at = [&](uint32_t byte) {
        const auto& tokens = m_tree.tokens();
        return size_t(
            std::partition_point(tokens.begin(), tokens.end(), [&](const Token& t) { return t.begin < byte; }) -
            tokens.begin());
    };
    auto& nodes = m_tree.m_nodes;
    const size_t begin = token_at(branch.begin), end = token_at(branch.end);
    const NodeId first = innermost(begin), last = innermost(end);
    for (const NodeId n : {first, last}) {
        const Kind kind = nodes[n].kind;
        const bool may_have_halves = kind == Kind::file || kind == Kind::members || kind == Kind::block ||
            kind == Kind::accessors;
        nodes[n].is_split |= n != Tree::root && (branch.is_cut || !may_have_halves);
    }
    for (NodeId n = last; n != Tree::root && nodes[n].first >= begin; n = nodes[n].parent)
        nodes[n].is_split = true;
    for (NodeId n = first; n != Tree::root && nodes[n].last <= end; n = nodes[n].parent)
        nodes[n].is_split = true;
}

Tree parse(std::string_view source, const std::vector<Macro>& macros)
{
    Tokens tokens = tokens_of(source);
    std::vector<Macro> known = macros_of(source, tokens, macros);
    spread_plainness(known);
    return Parser(source, std::move(tokens), std::move(known)).parse();
}

} // namespace spy::syntax
