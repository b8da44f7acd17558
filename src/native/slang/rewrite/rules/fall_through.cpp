// `case 1: x *= a; default: x *= b;` -> `case 1: x *= a; { x *= b; break; } default: x *= b;`: reverse derivatives of a
// case that runs on into the next one crash Slang 2026.12. What it runs into is repeated after it.
//
// Of a switch inside another one that is changed, only when called again.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"

namespace spy {
namespace {

using namespace syntax;

constexpr size_t most_repeated = 20000; ///< bytes for one switch: each case may run through all that follow

/// Whether control never goes on after a statement.
bool always_leaves(const Tree& tree, NodeId n)
{
    switch (tree.kind(n)) {
    case Kind::break_:
    case Kind::continue_:
    case Kind::return_:
    case Kind::discard:
    case Kind::throw_: return true;
    case Kind::block:
        for (const NodeId child : tree.children(n))
            if (always_leaves(tree, child))
                return true;
        return false;
    case Kind::if_: return always_leaves(tree, tree.child(n, 2)) && always_leaves(tree, tree.child(n, 3));
    default: return false;
    }
}

/// Whether statements may stand twice.
bool may_stand_twice(const Tree& tree, NodeId block)
{
    for (const NodeId n : tree.inside(block))
        if (tree.is(n, Kind::label) || (tree.is(n, Kind::variables) && is_marked(tree, n, "static")))
            return false;
    return !holds_directive(tree, tree.begin(block), tree.end(block));
}

/// One switch. The text that a case is to repeat is put together from the last one to the first.
class Switch {
public:
    Switch(const Tree& tree, NodeId n) : m_tree(tree), m_block(tree.child(n, 2)) { }

    std::vector<Edit> edits() const
    {
        std::vector<NodeId> parts;
        for (const NodeId n : m_tree.children(m_block))
            parts.push_back(n);
        std::vector<Edit> edits;
        Edit next = {0, 0, ""}; // what runs from the next case to where it leaves
        size_t length = 0, last = parts.size();
        for (size_t i = parts.size(); i-- > 0;) {
            if (!m_tree.is(parts[i], Kind::case_))
                continue;
            Edit section = {0, 0, ""};
            bool leaves = false;
            for (size_t k = i + 1; k < last && !leaves; ++k) {
                add(section, parts[k]);
                leaves = always_leaves(m_tree, parts[k]);
            }
            if (last == parts.size() && !leaves)
                section.text += "break; ";
            else if (!leaves) {
                if (i + 1 < last)
                    edits.insert(edits.begin(), after(parts[last - 1], next));
                append(section, next);
            }
            length += i + 1 < last && !leaves ? next.text.size() : 0;
            next = std::move(section);
            last = i;
        }
        return length > most_repeated ? std::vector<Edit>() : edits;
    }

private:
    static void append(Edit& edit, const Edit& more)
    {
        for (const Origin& origin : more.origins)
            edit.origins.push_back({origin.at + edit.text.size(), origin.length, origin.from});
        edit.text += more.text;
    }

    void add(Edit& edit, NodeId n) const
    {
        for (size_t i = m_tree[n].first; i < m_tree[n].last; ++i) {
            const Token& token = m_tree.tokens()[i];
            edit.origins.push_back({edit.text.size(), token.end - token.begin, token.begin});
            edit.text += m_tree.token(i);
            if (i + 1 == m_tree[n].last || token.end != m_tree.tokens()[i + 1].begin)
                edit.text += ' ';
        }
    }

    Edit after(NodeId n, const Edit& repeated) const
    {
        Edit edit = {m_tree.end(n), m_tree.end(n), " { "};
        append(edit, repeated);
        edit.text += '}';
        return edit;
    }

    const Tree& m_tree;
    NodeId m_block;
};

} // namespace

std::vector<Edit> repeat_next_cases(const ParsedSource& source)
{
    std::vector<Edit> edits;
    if (source.text().find("switch") == std::string::npos || source.text().find("ifferentiable") == std::string::npos)
        return edits;
    const Tree& tree = source.tree();
    NodeId changed = none;
    for (const NodeId function : differentiable_functions(source))
        for (const NodeId n : tree.inside(function)) {
            const bool is_switch = tree.is(n, Kind::switch_) && tree.token(tree[n].main) == "switch";
            if (!is_switch || (changed != none && tree.holds(changed, n)) || !may_stand_twice(tree, n) ||
                hides_variables(source.scopes(), n))
                continue;
            const std::vector<Edit> found = Switch(tree, n).edits();
            edits.insert(edits.end(), found.begin(), found.end());
            changed = found.empty() ? changed : n;
        }
    return edits;
}

} // namespace spy
