// Parts of variables that are written inside expressions, taken apart into statements, which have the faults that other
// rules mend:
//
//     (v).x = a;  (v.x = a);     ->   v .x = a;   v.x = a ;
//     v.x = a, w.y = b;          ->  v.x = a; w.y = b;
//     z = v.x = a;               ->  v.x = a; z = v.x;
//
// One kind of change at a time, as each moves what the next one reads.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/syntax/types.h"

namespace spy {
namespace {

using namespace syntax;

bool is_comma(const Tree& tree, NodeId n) { return tree.is(n, Kind::binary) && tree.main(n) == ","; }

/// The name that `v`, `c[i].x` begin with; `none` of others, as where brackets are around parts of it.
NodeId root_of(const Tree& tree, NodeId n)
{
    const NodeId start = start_of_path(tree, n);
    return tree.is(start, Kind::name) ? start : none;
}
bool is_path(const Tree& tree, NodeId n) { return root_of(tree, n) != none; }

/// Whether a node of a statement's kind is one, and not a part of a header.
bool stands_alone(const Tree& tree, NodeId n)
{
    const NodeId parent = tree.parent(n);
    switch (tree.kind(parent)) {
    case Kind::block:
    case Kind::label:
    case Kind::defer: return true;
    case Kind::if_: return tree.place(n) >= 2;
    case Kind::for_:
    case Kind::while_:
    case Kind::do_: return n == loop_body(tree, parent);
    default: return false;
    }
}

/// Braces around a statement, where one is expected.
void brace(const Tree& tree, NodeId statement, Changes& changes)
{
    if (tree.may_hold_statements(statement))
        return;
    changes.before(tree.tokens()[tree[statement].first - 1].end, " {");
    changes.after(tree.end(statement), " }");
}

template <class Change>
std::vector<Edit> change_nodes(const ParsedSource& source, Change change)
{
    Changes changes;
    if (source.text().find("ifferentiable") == std::string::npos)
        return {};
    for (const NodeId function : functions_to_change(source, true))
        for (const NodeId n : source.tree().inside(function))
            change(n, changes);
    return std::move(changes).edits();
}

// --- brackets
/// Whether a node in brackets is a path of which a part is taken or which is written; a statement; or what is assigned.
bool is_idle(const Scopes& scopes, NodeId paren)
{
    const Tree& tree = scopes.tree();
    const NodeId inner = tree.child(paren, 0), parent = tree.parent(paren);
    const std::string_view before = tree.token(tree[paren].first - 1);
    const bool begins = tree[tree.statement_of(paren)].first == tree[paren].first;
    const bool may_call = begins_word(before[0]) || before == ")" || before == "]" || before == ">";
    if (is_path(tree, inner) && scopes.find(root_of(tree, inner)) && paren == parent + 1 && (begins || !may_call))
        return tree.is(parent, Kind::member) || tree.is(parent, Kind::index) || tree.is(parent, Kind::assign) ||
            (tree.is(parent, Kind::postfix) && is_step(tree, parent));
    NodeId first = inner;
    while (is_comma(tree, first))
        first = tree.child(first, 0);
    const bool writes = (tree.is(first, Kind::assign) || tree.is(first, Kind::postfix)) &&
        is_path(tree, tree.child(first, 0));
    const bool is_assigned = first == inner && before.ends_with('=') &&
        (tree.is(parent, Kind::assign) || tree.is(parent, Kind::declarator)) && tree.token(tree[paren].last) == ";";
    return writes && (tree.is(parent, Kind::expression) || is_assigned);
}

// --- commas
void split_commas(const Tree& tree, NodeId n, Changes& changes)
{
    if (!is_comma(tree, n))
        return;
    split_commas(tree, tree.child(n, 0), changes);
    split_commas(tree, tree.child(n, 1), changes);
    const syntax::Token& comma = tree.tokens()[tree[n].main];
    changes.replace(comma.begin, comma.end, ";");
}

// --- chains
/// The innermost `x.y = a` in `z = x.y = a`; `none` where there is no such one.
NodeId chained(const Tree& tree, NodeId assigned)
{
    NodeId found = none;
    for (; tree.is(assigned, Kind::assign); assigned = tree.child(assigned, 1))
        if (is_path(tree, assigned + 1) && !tree.is(assigned + 1, Kind::name))
            found = assigned;
    return found;
}

/// Whether nodes [first, last) do nothing but assign, and name no such variable.
bool is_plain(const Tree& tree, NodeId first, NodeId last, std::string_view name)
{
    for (NodeId n = first; n < last; ++n) {
        const Kind kind = tree.kind(n);
        const bool is_it = (kind == Kind::name || kind == Kind::declarator || kind == Kind::member) &&
            tree.main(n) == name;
        if (is_it || is_step(tree, n) || kind == Kind::call || kind == Kind::conditional || kind == Kind::lambda ||
            kind == Kind::paren || kind == Kind::cast)
            return false;
        if (kind == Kind::assign && !tree.is(tree.parent(n), Kind::assign) &&
            !tree.is(tree.parent(n), Kind::expression) && !tree.is(tree.parent(n), Kind::declarator))
            return false; // in an index
    }
    return true;
}

/// `z = x.y = a;`
void split_chain(const ParsedSource& source, NodeId statement, Changes& changes)
{
    const Tree& tree = source.tree();
    const bool declares_one = tree.is(statement, Kind::variables) && tree.count(statement) == 3 &&
        !is_marked(tree, statement, "static");
    NodeId inner = none;
    if (declares_one && tree.has(tree.child(tree.child(statement, 2), 2)))
        inner = chained(tree, tree.child(tree.child(statement, 2), 2));
    else if (tree.is(statement, Kind::expression) && tree.is(statement + 1, Kind::assign))
        inner = chained(tree, tree.child(statement + 1, 1));
    if (inner == none || hides_variables(source.scopes(), statement))
        return;
    const NodeId path = inner + 1;
    const NodeId root = root_of(tree, path);
    const Variable* variable = source.scopes().find(root);
    if (variable && type_of(source.scopes(), *variable).shape == Shape::memory) // may be for writes only
        return;
    const size_t begin = tree.begin(statement);
    const std::string moved = source.text().substr(begin, tree.tokens()[tree[path].first - 1].end - begin);
    if (!is_plain(tree, statement + 1, path, tree.main(root)) || !is_plain(tree, path, path + tree[path].size, "") ||
        moved.find('\n') != moved.npos || moved.find('/') != moved.npos || tree.text(path).find('\n') != moved.npos)
        return;
    brace(tree, statement, changes);
    changes.replace(begin, tree.begin(path), "");
    changes.after(tree.end(statement), cat(" ", moved, " ", tree.text(path), ";"));
}

} // namespace

std::vector<Edit> without_brackets(const ParsedSource& source)
{
    const Tree& tree = source.tree();
    return change_nodes(source, [&](NodeId n, Changes& changes) {
        if (!tree.is(n, Kind::paren) || !is_idle(source.scopes(), n))
            return;
        changes.replace(tree.begin(n), tree.begin(n) + 1, " ");
        changes.replace(tree.end(n) - 1, tree.end(n), " ");
    });
}

std::vector<Edit> without_commas(const ParsedSource& source)
{
    const Tree& tree = source.tree();
    return change_nodes(source, [&](NodeId n, Changes& changes) {
        if (!tree.is(n, Kind::expression) || !is_comma(tree, n + 1) || !stands_alone(tree, n))
            return;
        split_commas(tree, n + 1, changes);
        brace(tree, n, changes);
    });
}

std::vector<Edit> without_chains(const ParsedSource& source)
{
    const Tree& tree = source.tree();
    return change_nodes(source, [&](NodeId n, Changes& changes) {
        if ((tree.is(n, Kind::expression) || tree.is(n, Kind::variables)) && stands_alone(tree, n))
            split_chain(source, n, changes);
    });
}

} // namespace spy
