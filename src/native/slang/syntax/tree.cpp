#include "slang/syntax/tree.h"

#include <algorithm>

namespace spy::syntax {

bool is_statement(Kind kind)
{
    return kind == Kind::variables || (kind >= Kind::block && kind <= Kind::throw_) || kind == Kind::opaque;
}

NodeId Tree::child(NodeId n, size_t k) const
{
    for (const NodeId c : children(n))
        if (k-- == 0)
            return c;
    return none;
}

size_t Tree::count(NodeId n) const
{
    size_t result = 0;
    for ([[maybe_unused]] const NodeId c : children(n))
        ++result;
    return result;
}

size_t Tree::place(NodeId n) const
{
    size_t result = 0;
    for (const NodeId c : children(parent(n))) {
        if (c == n)
            break;
        ++result;
    }
    return result;
}

NodeId Tree::around(NodeId n, Kind kind) const
{
    do
        n = parent(n);
    while (n != none && m_nodes[n].kind != kind);
    return n;
}

NodeId Tree::statement_of(NodeId n) const
{
    while (n != none && !is_statement(kind(n)))
        n = parent(n);
    return n;
}

NodeId Tree::function_of(NodeId n) const
{
    while ((n = parent(n)) != none)
        if (is(n, Kind::function) || is(n, Kind::accessor) || is(n, Kind::lambda))
            break;
    return n;
}

NodeId Tree::loop_of(NodeId n) const
{
    while ((n = parent(n)) != none && !is_loop(kind(n)))
        if (is(n, Kind::function) || is(n, Kind::accessor) || is(n, Kind::lambda))
            return none;
    return n;
}

bool Tree::may_hold_statements(NodeId n) const { return is(parent(n), Kind::block); }

size_t Tree::begin(NodeId n) const
{
    const uint32_t first = m_nodes[n].first;
    return first < tokens().size() ? tokens()[first].begin : m_source.size();
}

size_t Tree::end(NodeId n) const
{
    const Node& node = m_nodes[n];
    return node.first < node.last ? tokens()[node.last - 1].end : begin(n);
}

std::string_view Tree::text(NodeId n) const { return m_source.substr(begin(n), end(n) - begin(n)); }

std::string_view Tree::token(size_t i) const
{
    return i < tokens().size() ? tokens()[i].text(m_source) : std::string_view();
}

std::string_view Tree::main(NodeId n) const
{
    size_t i = m_nodes[n].main;
    if (i >= tokens().size())
        return {};
    const size_t begin = tokens()[i].begin;
    if (m_source[begin] == '>') // `>>=` are three tokens
        while (i + 1 < tokens().size() && tokens()[i].end == tokens()[i + 1].begin &&
               m_source[tokens()[i].begin] == '>' && (token(i + 1) == ">" || token(i + 1) == "="))
            ++i;
    return m_source.substr(begin, tokens()[i].end - begin);
}

std::string Tree::plain(NodeId n) const
{
    std::string result;
    for (size_t i = m_nodes[n].first; i < m_nodes[n].last; ++i) {
        const bool follows_word = i > m_nodes[n].first && tokens()[i - 1].kind != TokenKind::sign;
        if (follows_word && tokens()[i].kind != TokenKind::sign)
            result += ' ';
        result += token(i);
    }
    return result;
}

const Macro* Tree::macro(std::string_view name) const
{
    const auto found = std::lower_bound(m_macros.begin(), m_macros.end(), name,
                                        [](const Macro& macro, std::string_view other) { return macro.name < other; });
    return found != m_macros.end() && found->name == name ? &*found : nullptr;
}

bool Tree::is_understood(NodeId n) const
{
    for (NodeId i = n; i < n + m_nodes[n].size; ++i)
        if (m_nodes[i].kind == Kind::opaque || m_nodes[i].is_split)
            return false;
    return true;
}

namespace {

/// The modifiers that stand in front of a declaration or statement; of a declarator or parameter, of all of it.
NodeId modifiers_of(const Tree& tree, NodeId n)
{
    if (n != none && tree.is(n, Kind::declarator))
        n = tree.parent(n);
    const NodeId first = n == none ? none : tree.child(n, 0);
    return first != none && tree.is(first, Kind::modifiers) ? first : none;
}

/// The first child of a kind, or `none`.
NodeId child_of(const Tree& tree, NodeId n, Kind kind)
{
    for (const NodeId c : tree.children(n))
        if (tree.is(c, kind))
            return c;
    return none;
}

NodeId or_none(const Tree& tree, NodeId n) { return n != none && tree.has(n) ? n : none; }

} // namespace

bool is_step(const Tree& tree, NodeId n)
{
    return (tree.is(n, Kind::prefix) || tree.is(n, Kind::postfix)) && is_among(tree.main(n), {"++", "--"});
}

bool is_comparison(const Tree& tree, NodeId n)
{
    return tree.is(n, Kind::binary) && is_among(tree.main(n), {"<", ">", "<=", ">=", "==", "!="});
}

NodeId attribute(const Tree& tree, NodeId n, std::string_view name)
{
    if (const NodeId modifiers = modifiers_of(tree, n); modifiers != none)
        for (const NodeId c : tree.children(modifiers))
            if (tree.is(c, Kind::attribute) && tree.main(c) == name)
                return c;
    return none;
}

bool is_marked(const Tree& tree, NodeId n, std::string_view word)
{
    if (const NodeId modifiers = modifiers_of(tree, n); modifiers != none)
        for (const NodeId c : tree.children(modifiers))
            if (tree.main(c) == word)
                return true;
    return false;
}

NodeId type_of(const Tree& tree, NodeId declarator)
{
    if (tree.is(declarator, Kind::parameter))
        declarator = tree.child(declarator, 2);
    const NodeId front = tree.child(tree.parent(declarator), 1);
    return tree.has(front) ? front : or_none(tree, tree.child(declarator, 1));
}

NodeId result_of(const Tree& tree, NodeId function)
{
    const bool is_function = tree.is(function, Kind::function);
    const NodeId front = is_function ? or_none(tree, tree.child(function, 1)) : none;
    return front != none ? front : or_none(tree, tree.child(function, is_function ? 4 : 3));
}

NodeId parameters_of(const Tree& tree, NodeId function) { return child_of(tree, function, Kind::parameters); }

NodeId body_of(const Tree& tree, NodeId function)
{
    const size_t place = tree.is(function, Kind::function) ? 6 : tree.is(function, Kind::accessor) ? 2 : 1;
    return or_none(tree, tree.child(function, place));
}

NodeId callee_of(const Tree& tree, NodeId call)
{
    const NodeId callee = tree.child(call, 0);
    return tree.is(callee, Kind::generic_use) ? tree.child(callee, 0) : callee;
}

NodeId unwrapped(const Tree& tree, NodeId n)
{
    while (tree.is(n, Kind::paren))
        n = tree.child(n, 0);
    return n;
}

NodeId start_of_path(const Tree& tree, NodeId n)
{
    while (tree.is(n, Kind::member) || tree.is(n, Kind::index))
        n = tree.child(n, 0);
    return n;
}

NodeId condition_of(const Tree& tree, NodeId loop)
{
    return or_none(tree, tree.child(loop, tree.is(loop, Kind::while_) ? 1 : 2));
}

} // namespace spy::syntax
