// The grammar of expressions.
#include "slang/syntax/grammar.h"

#include <algorithm>
#include <array>

namespace spy::syntax {
namespace {

enum Precedence : uint8_t { assigns = 1, chooses = 2, ors = 3, compares = 9, shifts = 10 };

bool any_of(std::string_view text, std::initializer_list<std::string_view> texts)
{
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// float, int3, half2x2, uint64_t and the like.
bool is_basic_type(std::string_view word)
{
    static constexpr std::array<std::string_view, 22> names = {
        "float",     "int",      "uint",    "half",      "double",   "bool",     "int8_t",    "int16_t",
        "int32_t",   "int64_t",  "uint8_t", "uint16_t",  "uint32_t", "uint64_t", "float16_t", "float32_t",
        "float64_t", "unsigned", "size_t",  "uintptr_t", "intptr_t", "char"};
    if (std::find(names.begin(), names.end(), word) != names.end())
        return true;
    const size_t digits = word.find_last_not_of("1234x") + 1;
    return digits < word.size() && digits > 0 &&
        std::find(names.begin(), names.begin() + 6, word.substr(0, digits)) != names.begin() + 6;
}

} // namespace

uint8_t Parser::operator_at(size_t i, size_t& length) const
{
    length = 1;
    if (i >= m_size)
        return 0;
    if (at(i) != ">")
        return m_uses[i].precedence;
    if (m_in_angles)
        return 0;
    if (at(i + 1) == "=" && joined(i))
        length = 2;
    else if (at(i + 1) == ">" && joined(i)) {
        length = at(i + 2) == "=" && joined(i + 1) ? 3 : 2;
        return length == 3 ? assigns : shifts;
    }
    return compares;
}

bool Parser::sequence()
{
    const size_t nodes = mark(), first = m_at;
    if (!expression())
        return false;
    while (is(",")) {
        const size_t comma = m_at++;
        if (!expression() || !add(Kind::binary, nodes, first, comma))
            return false;
    }
    return true;
}

bool Parser::expression(int precedence)
{
    const size_t nodes = mark(), first = m_at;
    const Deeper deeper(m_depth);
    if (!deeper || !unary())
        return false;
    for (;;) {
        size_t length;
        const int found = operator_at(m_at, length);
        if (found == 0 || found < precedence)
            return true;
        const size_t sign = m_at;
        m_at += length;
        bool is_read;
        if (found == assigns)
            is_read = expression(assigns) && add(Kind::assign, nodes, first, sign);
        else if (found == chooses)
            is_read = expression() && take(":") && expression(chooses) && add(Kind::conditional, nodes, first, sign);
        else if (at(sign) == "is" || at(sign) == "as")
            is_read = type() && add(Kind::binary, nodes, first, sign);
        else
            is_read = expression(found + 1) && add(Kind::binary, nodes, first, sign);
        if (!is_read)
            return false;
    }
}

bool Parser::unary()
{
    if (m_at >= m_size)
        return false;
    const size_t nodes = mark(), first = m_at;
    if (m_uses[m_at].is_prefix && !(is_word(m_at) && any_of(at(m_at + 1), {".", "=", ",", ";", ")", "[", "]"}))) {
        const Deeper deeper(m_depth);
        ++m_at;
        return deeper && unary() && add(Kind::prefix, nodes, first);
    }
    if (is("(") && (attempt([&] { return lambda(); }) || attempt([&] { return cast(); })))
        return true;
    return postfix(false);
}

bool Parser::lambda()
{
    const size_t nodes = mark(), first = m_at;
    if (at(close_of(m_at) + 1) != "=>" || !parameters(true))
        return false;
    ++m_at;
    return (is("{") ? block() : expression()) && add(Kind::lambda, nodes, first);
}

bool Parser::is_known_type(size_t i) const
{
    return is_basic_type(at(i)) || std::binary_search(m_types.begin(), m_types.end(), at(i));
}

/// `(T)e`: where what follows can begin an operand only, or T is known to be a type.
bool Parser::cast()
{
    const size_t nodes = mark(), first = m_at, close = close_of(m_at);
    if (close + 1 >= m_size || !is_name(m_at + 1))
        return false;
    const bool is_operand = m_tree.tokens()[close + 1].kind != TokenKind::sign
        ? m_uses[close + 1].precedence == 0 && !(is_word(close + 1) && m_uses[close + 1].is_reserved)
        : any_of(at(close + 1), {"(", "~", "!", "{"});
    const bool may_be = any_of(at(close + 1), {"-", "+", "&", "*", "++", "--"});
    if (!is_operand && !(may_be && is_known_type(m_at + 1)))
        return false;
    ++m_at;
    if (!type() || m_at != close)
        return false;
    ++m_at;
    const Deeper deeper(m_depth);
    return deeper && unary() && add(Kind::cast, nodes, first);
}

bool Parser::postfix(bool is_type)
{
    const size_t nodes = mark(), first = m_at;
    if (!primary(is_type))
        return false;
    for (;;) {
        const std::string_view sign = at(m_at);
        const Kind last = m_nodes.back().kind;
        const size_t main = m_at;
        if (sign == "<" && (last == Kind::name || last == Kind::member)) {
            if (!attempt([&] { return generic_arguments(is_type) && add(Kind::generic_use, nodes, first, main); }))
                return true;
        } else if (sign == "." || sign == "->" || sign == "::") {
            const bool is_member = m_at + 1 < m_size && m_tree.tokens()[m_at + 1].kind <= TokenKind::number;
            if (!is_member || (sign == "->" && is_type))
                return is_type;
            m_at += 2;
            add(Kind::member, nodes, first, main + 1);
        } else if (sign == "[") {
            if (!arguments(m_at))
                return false;
            add(Kind::index, nodes, first, main);
        } else if (sign == "*" && (is_type || any_of(at(m_at + 1), {",", ")", ">", "*"}))) {
            if (!is_type && at(m_at + 1) == "*" && !any_of(at(m_at + 2), {",", ")", ">"}))
                return true; // `a * *p`
            ++m_at;
            add(Kind::postfix, nodes, first, main);
        } else if (is_type) {
            return true;
        } else if (sign == "(") {
            if (!arguments(m_at) || !add(Kind::call, nodes, first, main))
                return false;
        } else if (sign == "++" || sign == "--") {
            ++m_at;
            add(Kind::postfix, nodes, first, main);
        } else {
            return true;
        }
    }
}

bool Parser::primary(bool is_type)
{
    const size_t nodes = mark(), first = m_at;
    if (m_at >= m_size)
        return false;
    if (is("::"))
        ++m_at; // of the global namespace
    if (is_word(m_at)) {
        const Macro* macro = m_uses[m_at].macro;
        if (m_uses[m_at].is_reserved || (macro && !macro->is_plain && (!macro->is_function || at(m_at + 1) == "(")))
            return false;
        ++m_at;
        if (at(first) == "functype" && is("("))
            return arguments(m_at) && take("->") && type() && add(Kind::function_type, nodes, first);
        if (at(first) == "spirv_asm" && is("{") && close_of(m_at) < m_size) {
            m_at = close_of(m_at) + 1;
            return add(Kind::code, nodes, first);
        }
        if (at(first) == "unsigned" && is_word(m_at) && is_basic_type(at(m_at)))
            ++m_at;
        if (is_type && (at(first) == "each" || at(first) == "expand" || at(first) == "no_diff") && is_name(m_at))
            return type() && add(Kind::prefix, nodes, first);
        return add(Kind::name, nodes, first, m_at - 1);
    }
    if (is_type)
        return false;
    const TokenKind kind = m_tree.tokens()[m_at].kind;
    if (kind == TokenKind::number || kind == TokenKind::string) {
        for (++m_at; kind == TokenKind::string && m_at < m_size && m_tree.tokens()[m_at].kind == kind;)
            ++m_at;
        return add(Kind::literal, nodes, first);
    }
    if (is("{"))
        return arguments(m_at) && add(Kind::list, nodes, first);
    const size_t close = close_of(m_at);
    const bool was_in_angles = m_in_angles;
    if (!is("(") || close >= m_size)
        return false;
    m_in_angles = false;
    ++m_at;
    const bool is_read = sequence() && m_at == close;
    m_in_angles = was_in_angles;
    return is_read && ++m_at && add(Kind::paren, nodes, first);
}

bool Parser::arguments(size_t open)
{
    const size_t close = close_of(open);
    if (close >= m_size)
        return false;
    const bool was_in_angles = m_in_angles;
    m_in_angles = false;
    m_at = open + 1;
    bool is_read = true;
    while (is_read && m_at < close)
        is_read = expression() && (m_at == close || take(","));
    m_in_angles = was_in_angles;
    m_at = close + 1;
    return is_read;
}

size_t Parser::angle_end(size_t i) const
{
    const size_t limit = std::min(m_size, i + 1000);
    for (size_t depth = 0; i < limit; ++i) {
        const std::string_view text = at(i);
        if (text == "<")
            ++depth;
        else if (text == ">") {
            if (--depth == 0)
                return i + 1;
        } else if (text == "(" || text == "[") {
            if (close_of(i) >= m_size)
                return 0;
            i = close_of(i);
        } else if (m_tree.tokens()[i].kind == TokenKind::sign &&
                   !any_of(text, {",", "::", ".", "*", "+", "-", "/", ":", "%", "==", "!", "&"}))
            return 0;
    }
    return 0;
}

/// Taken as such where Slang does: where what follows cannot be the right side of a comparison.
bool Parser::generic_arguments(bool is_type)
{
    const size_t open = m_at;
    if (m_compares[open])
        return false;
    const size_t end = angle_end(open);
    const bool is_followed = is_type || end == m_size ||
        any_of(at(end),
               {"(", ")", "[", "]", "{", "::", ".", ",", ":", "?", ";", "==", "!=", ">", "*", "&", "=", "where"});
    bool is_read = end != 0;
    if (is_read && is_followed) {
        const bool was_in_angles = m_in_angles;
        m_in_angles = true;
        ++m_at;
        while (is_read && m_at + 1 < end)
            is_read = expression(ors) && (m_at + 1 == end || take(","));
        m_in_angles = was_in_angles;
        m_at = end;
    }
    if (!is_read)
        m_compares[open] = true;
    return is_read && is_followed;
}

} // namespace spy::syntax
