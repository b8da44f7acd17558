#pragma once
// The parser as its three files see it. Each function of the grammar reads what it is named after at `m_at` and puts
// its nodes to those that are there, children first; false, with no promise about both, where it stands not there.
#include "slang/syntax/branches.h"
#include "slang/syntax/tree.h"

#include <string_view>
#include <vector>

namespace spy::syntax {

/// What a token is to the parser, found once.
struct TokenUse {
    uint8_t precedence = 0; ///< as an operator between two
    bool is_modifier = false, is_reserved = false, is_prefix = false;
    const Macro* macro = nullptr;
};

class Parser {
public:
    Parser(std::string_view source, Tokens tokens, std::vector<Macro> macros);
    Tree parse();
    bool is_plain_expression(); ///< whether the source is one, of no operators that need brackets around it

private:
    // --- tokens
    std::string_view at(size_t i) const { return m_tree.token(i); }
    bool is(std::string_view text) const { return at(m_at) == text; }
    bool is_word(size_t i) const { return i < m_size && m_tree.tokens()[i].kind == TokenKind::word; }
    bool is_name(size_t i) const { return is_word(i) && !m_uses[i].is_reserved; }
    bool take(std::string_view text) { return is(text) && ++m_at; }
    bool take_name() { return is_name(m_at) && ++m_at; }
    bool joined(size_t i) const; ///< whether nothing lies between tokens i and i + 1
    /// The other bracket; size where there is none, or a macro holds it.
    size_t close_of(size_t i) const
    {
        return i < m_size && m_match[i] < m_size && !is_word(m_match[i]) ? m_match[i] : m_size;
    }
    void match_brackets();
    void match_bracket(size_t i, char sign);
    void read_tokens();

    // --- nodes
    size_t mark() const { return m_nodes.size(); }
    /// A node from `first` to here, of all nodes since the mark.
    bool add(Kind kind, size_t mark, size_t first, size_t main);
    bool add(Kind kind, size_t mark, size_t first) { return add(kind, mark, first, first); }
    bool absent() { return add(Kind::absent, mark(), m_at); }
    void back(size_t mark, size_t at) { m_nodes.resize(mark), m_at = at; }
    template <class Rule>
    bool attempt(Rule rule) ///< leaves all as it was where it fails
    {
        const size_t nodes = mark(), begin = m_at;
        if (rule())
            return true;
        back(nodes, begin);
        return false;
    }
    template <class Rule>
    void list_until(size_t end, Rule rule); ///< what a rule does not read is opaque
    void opaque(size_t end);
    bool ends_opaque(size_t end);
    Tree finished();
    void split(const Branch& branch);
    NodeId innermost(size_t boundary) const;

    // --- declarations
    bool declaration();
    bool modifiers();
    bool modifier();
    bool macro_modifier(size_t& last) const;
    size_t after_modifiers(size_t i) const; ///< a cheap guess: skips words and brackets
    bool import_declaration();
    bool namespace_declaration();
    bool type_declaration();
    bool enum_case();
    bool members();
    bool alias();
    bool property();
    bool subscript();
    bool accessors();
    bool accessor();
    bool typed_declaration(bool in_block);
    bool function_rest(size_t nodes, size_t first, size_t name);
    bool declarators(bool in_block);
    bool operator_name(size_t& name);
    bool declarator(size_t name, bool in_block);
    bool dimensions();
    bool parameters(bool may_lack_types = false);
    bool parameter(size_t end, bool may_lack_type);
    bool generics();
    bool generic();
    bool bases();
    bool wheres();
    bool result();
    bool body_or_end();

    // --- statements
    bool block();
    bool statement();
    bool statement_of(std::string_view word, size_t first);
    bool if_statement();
    bool for_statement();
    bool while_statement();
    bool do_statement();
    bool switch_statement();
    bool case_label();
    bool leave_statement(Kind kind);
    bool expression_statement();
    bool condition();

    // --- expressions
    bool sequence();
    bool expression(int precedence = 1);
    bool unary();
    bool cast();
    bool lambda();
    bool postfix(bool is_type);
    bool primary(bool is_type);
    bool arguments(size_t open); ///< and the closing bracket
    bool generic_arguments(bool is_type);
    size_t angle_end(size_t i) const; ///< after the ">" that closes a "<", if that may begin generic arguments; 0
    bool type() { return postfix(true); }
    bool is_known_type(size_t i) const;
    uint8_t operator_at(size_t i, size_t& length) const;

    static constexpr int max_depth = 400;
    struct Deeper { ///< counts the depth
        explicit Deeper(int& depth) : m_depth(++depth) { }
        ~Deeper() { --m_depth; }
        explicit operator bool() const { return m_depth <= max_depth; }
        int& m_depth;
    };

    Tree m_tree;
    std::vector<Branch> m_branches;
    std::vector<TokenUse> m_uses;
    std::vector<size_t> m_match;
    struct Bracket {
        char sign;
        size_t token;
    };
    std::vector<Bracket> m_open;
    std::vector<bool> m_compares; ///< "<" that were found to be no brackets
    std::vector<std::string_view> m_types;
    std::vector<Node> m_nodes; ///< children before parents
    size_t m_at = 0, m_size = 0, m_added = 0;
    int m_depth = 0;
    bool m_in_angles = false; ///< where ">" ends
};

template <class Rule>
void Parser::list_until(size_t end, Rule rule)
{
    while (m_at < end) {
        const size_t nodes = mark(), begin = m_at;
        if (!rule() || m_at > end || m_at == begin) {
            back(nodes, begin);
            opaque(end);
        }
    }
}

} // namespace spy::syntax
