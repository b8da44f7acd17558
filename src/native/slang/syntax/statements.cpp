// The grammar of statements.
#include "slang/syntax/grammar.h"

#include <algorithm>

namespace spy::syntax {

bool Parser::block()
{
    const size_t nodes = mark(), first = m_at, close = close_of(m_at);
    if (!is("{") || close >= m_size)
        return false;
    const Deeper deeper(m_depth);
    ++m_at;
    list_until(close, [&] { return deeper && statement(); });
    ++m_at;
    return add(Kind::block, nodes, first);
}

bool Parser::statement()
{
    const size_t first = m_at;
    const Deeper deeper(m_depth);
    if (!deeper || m_at >= m_size)
        return false;
    const size_t i = after_modifiers(m_at);
    const std::string_view word = at(i);
    if (i == first && word == "{")
        return block();
    if (is_word(i)) {
        if (word == "if" && at(i + 1) == "(")
            return if_statement();
        if (word == "for" && at(i + 1) == "(")
            return for_statement();
        if (word == "while" && at(i + 1) == "(")
            return while_statement();
        if (word == "do" && m_uses[i].is_reserved)
            return do_statement();
        if (word == "switch" || word.ends_with("_switch"))
            return switch_statement();
        if (i == first && statement_of(word, first))
            return true;
        if (m_at != first)
            return false;
        const bool names = is_word(i + 1);
        if (names &&
            (word == "struct" || word == "class" || word == "enum" || word == "typedef" || word == "typealias" ||
             word == "using" || word == "import" || word == "interface"))
            return declaration();
    }
    return attempt([&] { return typed_declaration(true); }) || expression_statement();
}

/// Statements that begin with a word of their own. At the same place and false: none of them.
bool Parser::statement_of(std::string_view word, size_t first)
{
    const size_t nodes = mark();
    if (word == "return" || word == "throw")
        return leave_statement(word == "return" ? Kind::return_ : Kind::throw_);
    if (word == "break" || word == "continue" || word == "discard") {
        ++m_at;
        const size_t main = is_name(m_at) ? m_at++ : first;
        const Kind kind = word == "break" ? Kind::break_ : word == "continue" ? Kind::continue_ : Kind::discard;
        return take(";") && add(kind, nodes, first, main);
    }
    if (word == "case" || (word == "default" && at(m_at + 1) == ":"))
        return case_label();
    if (word == "defer" && (at(m_at + 1) == "{" || is_word(m_at + 1))) {
        ++m_at;
        return statement() && add(Kind::defer, nodes, first);
    }
    if (word == "__intrinsic_asm" || word == "__requirePrelude") {
        while (m_at < m_size && !is(";") && !is("}"))
            m_at = std::max(close_of(m_at) < m_size ? close_of(m_at) : m_at, m_at) + 1;
        add(Kind::code, nodes, first);
        return take(";") && add(Kind::expression, nodes, first);
    }
    if (at(m_at + 1) == ":" && is_name(m_at)) {
        m_at += 2;
        return statement() && add(Kind::label, nodes, first);
    }
    return false;
}

bool Parser::leave_statement(Kind kind)
{
    const size_t nodes = mark(), first = m_at++;
    return (is(";") ? absent() : sequence()) && take(";") && add(kind, nodes, first);
}

bool Parser::case_label()
{
    const size_t nodes = mark(), first = m_at++;
    return (at(first) == "default" ? absent() : expression(3)) && take(":") && add(Kind::case_, nodes, first);
}

bool Parser::expression_statement()
{
    const size_t nodes = mark(), first = m_at;
    return (is(";") ? absent() : sequence()) && take(";") && add(Kind::expression, nodes, first);
}

/// In brackets: an expression, or a variable that is one.
bool Parser::condition()
{
    const size_t close = close_of(m_at);
    if (!is("(") || close >= m_size)
        return false;
    ++m_at;
    const bool is_read = attempt([&] {
                             const size_t nodes = mark(), first = m_at;
                             modifiers();
                             const bool is_inferred = m_at > first && (at(m_at - 1) == "let" || at(m_at - 1) == "var");
                             return (is_inferred ? absent() : type()) && is_name(m_at) && at(m_at + 1) == "=" &&
                                 declarators(true) && m_at == close && add(Kind::variables, nodes, first);
                         }) ||
        (sequence() && m_at == close);
    m_at = close + 1;
    return is_read;
}

bool Parser::if_statement()
{
    struct Begin {
        size_t nodes, first;
    };
    std::vector<Begin> chain; // `else if` without depth
    for (;;) {
        chain.push_back({mark(), m_at});
        modifiers();
        ++m_at;
        if (!condition() || !statement())
            return false;
        if (!take("else")) {
            absent();
            break;
        }
        if (const size_t next = after_modifiers(m_at); at(next) != "if" || at(next + 1) != "(") {
            if (!statement())
                return false;
            break;
        }
    }
    while (!chain.empty()) {
        add(Kind::if_, chain.back().nodes, chain.back().first);
        chain.pop_back();
    }
    return true;
}

bool Parser::for_statement()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t close = close_of(++m_at);
    if (close >= m_size)
        return false;
    ++m_at;
    if (is(";")) {
        absent();
        ++m_at;
    } else if (!attempt([&] { return typed_declaration(true); }) && !expression_statement()) {
        return false;
    }
    if (!(is(";") ? absent() : sequence()) || !take(";") || !(m_at == close ? absent() : sequence()) || m_at != close)
        return false;
    ++m_at;
    return statement() && add(Kind::for_, nodes, first);
}

bool Parser::while_statement()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    ++m_at;
    return condition() && statement() && add(Kind::while_, nodes, first);
}

bool Parser::do_statement()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    ++m_at;
    return statement() && take("while") && condition() && take(";") && add(Kind::do_, nodes, first);
}

bool Parser::switch_statement()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    ++m_at;
    return (is("(") ? condition() : absent()) && is("{") && block() && add(Kind::switch_, nodes, first);
}

} // namespace spy::syntax
