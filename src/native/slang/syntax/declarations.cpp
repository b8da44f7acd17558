// The grammar of declarations.
#include "slang/syntax/grammar.h"

#include <algorithm>

namespace spy::syntax {

bool Parser::declaration()
{
    const size_t nodes = mark(), first = m_at, i = after_modifiers(m_at);
    const std::string_view word = at(i);
    if (word == ";" && i == m_at) {
        absent();
        ++m_at;
        return add(Kind::expression, nodes, first);
    }
    const bool names = is_word(i + 1) || at(i + 1) == "::";
    if (is_among(word, {"import", "__include", "implementing", "module"}) && i + 1 < m_size &&
        (is_word(i + 1) || m_tree.tokens()[i + 1].kind == TokenKind::string))
        return import_declaration();
    if (word == "namespace" && names)
        return namespace_declaration();
    if (is_among(word, {"struct", "class", "interface", "enum", "cbuffer", "tbuffer"}) && (names || at(i + 1) == "{"))
        return type_declaration();
    if (word == "extension" && (names || at(i + 1) == "<"))
        return type_declaration();
    if (is_among(word, {"typedef", "typealias", "associatedtype", "using"}) && names)
        return alias();
    if (word == "property" && is_word(i + 1))
        return property();
    if (word == "__subscript" && (at(i + 1) == "(" || at(i + 1) == "<"))
        return subscript();
    if (word == "static_assert" && at(i + 1) == "(")
        return expression_statement();
    return typed_declaration(false);
}

bool Parser::import_declaration()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t word = m_at++, begin = m_at;
    const size_t name = mark();
    while (m_at < m_size && (m_tree.tokens()[m_at].kind != TokenKind::sign || is_among(at(m_at), {".", "::", "-"})))
        ++m_at;
    add(Kind::name, name, begin);
    return take(";") && add(Kind::import_, nodes, first, word);
}

bool Parser::namespace_declaration()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t name = ++m_at;
    for (++m_at; (is("::") || is(".")) && is_word(m_at + 1);)
        m_at += 2;
    return members() && add(Kind::namespace_, nodes, first, name);
}

bool Parser::members()
{
    const size_t nodes = mark(), first = m_at, close = close_of(m_at);
    if (!is("{") || close >= m_size)
        return false;
    const Deeper deeper(m_depth);
    ++m_at;
    list_until(close, [&] { return deeper && declaration(); });
    ++m_at;
    return add(Kind::members, nodes, first);
}

bool Parser::type_declaration()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const bool is_enum = is("enum"), is_extension = is("extension");
    size_t name = m_at++;
    if (is_enum && is("class"))
        ++m_at;
    if (!is_extension && is_name(m_at))
        name = m_at++;
    if (!(is("<") ? generics() : absent()) || !(is_extension ? type() : absent()) || !bases())
        return false;
    if (take("=")) { // `extern struct S : I = T;`
        const size_t other = mark();
        if (!type())
            return false;
        m_nodes.resize(other);
    }
    if (!wheres())
        return false;
    if (is(";")) {
        absent();
        ++m_at;
        return add(Kind::type, nodes, first, name);
    }
    if (!is("{"))
        return false;
    if (!is_enum) {
        if (!members())
            return false;
    } else {
        const size_t list = mark(), open = m_at, close = close_of(m_at);
        if (close >= m_size)
            return false;
        ++m_at;
        list_until(close, [&] { return enum_case() && (m_at == close || take(",")); });
        ++m_at;
        add(Kind::members, list, open);
    }
    take(";");
    return add(Kind::type, nodes, first, name);
}

bool Parser::enum_case()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t name = m_at;
    if (!take_name())
        return false;
    return (take("=") ? expression() : absent()) && add(Kind::enum_case, nodes, first, name);
}

bool Parser::bases()
{
    const size_t nodes = mark(), first = m_at;
    if (take(":"))
        do { // expressions: `register(b0)` stands there too
            if (!expression(3))
                return false;
        } while (take(","));
    return add(Kind::bases, nodes, first);
}

bool Parser::wheres()
{
    const size_t nodes = mark(), first = m_at;
    while (take("where")) {
        const size_t clause = mark(), begin = m_at;
        take("optional");
        if (!type() || (!take("==") && !take(":")))
            return false;
        do {
            if (!type())
                return false;
        } while (take(",") || take("&"));
        add(Kind::where, clause, begin);
    }
    return add(Kind::wheres, nodes, first);
}

bool Parser::generics()
{
    const size_t nodes = mark(), first = m_at;
    const bool was_in_angles = m_in_angles;
    if (!take("<"))
        return false;
    m_in_angles = true;
    bool is_read = true;
    while (is_read && !is(">"))
        is_read = generic() && (is(">") || take(","));
    m_in_angles = was_in_angles;
    return is_read && take(">") && add(Kind::generics, nodes, first);
}

/// `T`, `T : I = X`, `let N : int = 1`, `int N`, `each T`, `typename T`.
bool Parser::generic()
{
    const size_t nodes = mark(), first = m_at;
    while (is_among(at(m_at), {"let", "each", "typename", "const"}) && is_word(m_at + 1))
        ++m_at;
    const bool has_type = is_word(m_at + 1);
    if (!is_name(m_at) || (has_type && !type()))
        return false;
    const size_t name = m_at;
    if (!take_name())
        return false;
    if (take(":")) {
        if (!expression(3))
            return false;
    } else if (!has_type) {
        absent();
    }
    return (take("=") ? expression(3) : absent()) && add(Kind::generic, nodes, first, name);
}

bool Parser::alias()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const bool is_typedef = is("typedef");
    size_t name = ++m_at;
    if (is_typedef) {
        absent();
        add(Kind::bases, mark(), m_at);
        if (!type())
            return false;
        name = m_at;
        return take_name() && dimensions() && wheres() && take(";") && add(Kind::alias, nodes, first, name);
    }
    while (is_name(m_at) && at(m_at + 1) != "<" && (m_at == name || at(m_at - 1) == "::" || at(m_at - 1) == ".")) {
        ++m_at;
        if (!take("::") && !take(".")) // of `using namespace a.b`
            break;
    }
    if (m_at == name && !is_name(m_at++))
        return false;
    if (is_name(m_at) && at(name) == "namespace") // `using namespace a`
        while (m_at < m_size && !is(";"))
            ++m_at;
    return (is("<") ? generics() : absent()) && bases() && (take("=") ? type() : absent()) && dimensions() &&
        wheres() && take(";") && add(Kind::alias, nodes, first, name);
}

bool Parser::property()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    ++m_at;
    const bool is_after = at(m_at + 1) == ":";
    if (!(is_after ? absent() : type()))
        return false;
    const size_t name = m_at;
    if (!take_name())
        return false;
    return (take(":") ? type() : absent()) && accessors() && add(Kind::property, nodes, first, name);
}

bool Parser::subscript()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t name = m_at++;
    return (is("<") ? generics() : absent()) && parameters() && result() && wheres() && accessors() &&
        add(Kind::subscript, nodes, first, name);
}

bool Parser::result()
{
    if (!take("->"))
        return absent();
    const size_t nodes = mark(), first = m_at;
    while (m_uses.size() > m_at && m_uses[m_at].is_modifier && is_word(m_at + 1))
        ++m_at; // `-> no_diff float`
    return type() && (m_nodes.back().first == first || add(Kind::prefix, nodes, first));
}

bool Parser::accessors()
{
    const size_t nodes = mark(), first = m_at, close = close_of(m_at);
    if (!is("{") || close >= m_size)
        return take(";") && add(Kind::accessors, nodes, first);
    ++m_at;
    list_until(close, [&] { return accessor(); });
    ++m_at;
    return add(Kind::accessors, nodes, first);
}

bool Parser::accessor()
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const size_t name = m_at;
    if (!is_among(at(m_at), {"get", "set", "ref", "__ref"}))
        return false;
    ++m_at;
    const size_t here = m_at;
    return (is("(") ? parameters(true) : add(Kind::parameters, mark(), here)) && body_or_end() &&
        add(Kind::accessor, nodes, first, name);
}

bool Parser::body_or_end() { return take(";") ? absent() : is("{") && block(); }

// --- functions and variables

/// The name after `operator`, of one sign or several.
bool Parser::operator_name(size_t& name)
{
    name = ++m_at;
    if (is("(") || is("["))
        m_at = close_of(m_at) + 1;
    else
        while (m_at < m_size && !is("(") && !(is("<") && m_at > name))
            ++m_at;
    return m_at < m_size && m_at <= name + 4;
}

bool Parser::typed_declaration(bool in_block)
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    const bool is_unnamed = m_nodes.size() > nodes + 1 && at(m_at - 1) == "func";
    const std::string_view next = at(m_at + 1);
    const bool has_no_type = is_unnamed || at(m_at) == "__init" || at(m_at) == "operator" ||
        (is_name(m_at) && m_at > first && is_among(at(m_at - 1), {"let", "var", "const", "static"}) &&
         is_among(next, {"=", ":", ";", ","}));
    if (!(has_no_type ? absent() : type()))
        return false;
    size_t name = m_at;
    if (!is_word(m_at) || m_uses[m_at].is_reserved || m_uses[m_at].precedence)
        return false;
    const bool is_operator = is("operator");
    if (is_operator ? !operator_name(name) : !++m_at)
        return false;
    if (!in_block && (is("(") || is("<")))
        return function_rest(nodes, first, name);
    if (is_operator)
        return false;
    m_at = name;
    return declarators(in_block) && take(";") && add(Kind::variables, nodes, first);
}

bool Parser::function_rest(size_t nodes, size_t first, size_t name)
{
    if (!(is("<") ? generics() : absent()) || !parameters())
        return false;
    if (take("throws") && !type())
        return false;
    if (!result())
        return false;
    if (take(":")) { // `: SV_Target`
        const size_t semantic = mark();
        if (!expression(3))
            return false;
        m_nodes.resize(semantic);
    }
    return wheres() && body_or_end() && add(Kind::function, nodes, first, name);
}

bool Parser::declarators(bool in_block)
{
    do {
        if (!take_name() || !declarator(m_at - 1, in_block))
            return false;
    } while (take(","));
    return true;
}

bool Parser::declarator(size_t name, bool in_block)
{
    const size_t nodes = mark(), first = m_at;
    if (!dimensions())
        return false;
    if (!is(":"))
        absent();
    for (size_t seen = 0; take(":"); ++seen) { // `: register(u0) : packoffset(c0)`
        const size_t semantic = mark();
        if (!(in_block ? type() : expression(3)))
            return false;
        if (seen > 0)
            m_nodes.resize(semantic);
    }
    if (in_block && is("(")) { // `S s(1, 2);`
        const size_t list = mark(), open = m_at;
        if (at(m_at + 1) == ")" || !arguments(m_at))
            return false;
        add(Kind::list, list, open);
    } else if (!(take("=") ? expression() : absent())) {
        return false;
    }
    return add(Kind::declarator, nodes, std::min(name, first), name);
}

bool Parser::dimensions()
{
    const size_t nodes = mark(), first = m_at;
    while (is("[")) {
        if (at(m_at + 1) == "]") {
            ++m_at;
            absent();
            ++m_at;
        } else if (!arguments(m_at)) {
            return false;
        }
    }
    return add(Kind::dimensions, nodes, first);
}

bool Parser::parameters(bool may_lack_types)
{
    const size_t nodes = mark(), first = m_at, close = close_of(m_at);
    if (!is("(") || close >= m_size)
        return false;
    const bool was_in_angles = m_in_angles;
    m_in_angles = false;
    ++m_at;
    bool is_read = true;
    while (is_read && m_at < close)
        is_read = parameter(close, may_lack_types) && (m_at == close || (take(",") && m_at < close));
    m_in_angles = was_in_angles;
    m_at = close + 1;
    return is_read && add(Kind::parameters, nodes, first);
}

bool Parser::parameter(size_t end, bool may_lack_type)
{
    const size_t nodes = mark(), first = m_at;
    modifiers();
    // `x : float`, and `set(x)`
    const bool is_name_first = at(m_at + 1) == ":" || (may_lack_type && (m_at + 1 == end || at(m_at + 1) == ","));
    if (!(is_name_first ? absent() : type()))
        return false;
    const bool is_named = is_name(m_at) && m_at < end;
    const size_t name = is_named ? m_at++ : size_t(none);
    return declarator(name, false) && add(Kind::parameter, nodes, first);
}

} // namespace spy::syntax
