#include "slang/rewrite/rules/changes.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/syntax/constants.h"

#include <algorithm>

namespace spy {

using namespace syntax;

void Changes::remove(std::string_view source, size_t begin, size_t end)
{
    const std::string_view removed = source.substr(begin, end - begin);
    replace(begin, end, std::string(size_t(std::count(removed.begin(), removed.end(), '\n')), '\n'));
}

std::vector<Edit> Changes::edits() &&
{
    std::map<size_t, Edit> sorted = std::move(m_replaced);
    for (const auto* texts : {&m_before, &m_after})
        for (const auto& [byte, text] : *texts) {
            Edit& edit = sorted.try_emplace(byte, Edit{byte, byte, ""}).first->second;
            edit.text.insert(0, text);
        }
    std::vector<Edit> all;
    for (auto& [byte, edit] : sorted)
        all.push_back(std::move(edit));
    return all;
}

namespace {

/// Whether a statement is one word that names no variable: a macro that nobody here knows, of whatever it may hold.
bool is_unknown_word(const Scopes& scopes, NodeId n)
{
    const Tree& tree = scopes.tree();
    const NodeId inner = tree.is(n, Kind::expression) ? tree.child(n, 0) : none;
    return tree.is(inner, Kind::name) && scopes.variable_of(inner) == none;
}

} // namespace

std::vector<NodeId> functions_to_change(const ParsedSource& source, bool may_be_differentiable)
{
    const Tree& tree = source.tree();
    std::vector<NodeId> nodes;
    const auto is_clear = [&](NodeId function) {
        const bool is_inner = !nodes.empty() && tree.holds(nodes.back(), function); // of a type declared in another
        if (is_inner || !tree.is_understood(function))
            return false;
        for (const NodeId n : tree.inside(function))
            if (is_unknown_word(source.scopes(), n))
                return false;
        return true;
    };
    if (may_be_differentiable) {
        for (const Function& function : source.scopes().functions())
            if (function.may_be_differentiable && body_of(tree, function.node) != none && is_clear(function.node))
                nodes.push_back(function.node);
        return nodes;
    }
    for (NodeId n = 0; n < tree.size(); ++n)
        if ((tree.is(n, Kind::function) || tree.is(n, Kind::accessor)) && body_of(tree, n) != none && is_clear(n))
            nodes.push_back(n);
    return nodes;
}

bool declares(const Scopes& scopes, NodeId part, std::string_view name)
{
    const auto& variables = scopes.variables();
    return std::any_of(variables.begin(), variables.end(), [&](const Variable& variable) {
        return variable.name == name && variable.node != none && scopes.tree().holds(part, variable.node);
    });
}

bool hides_variables(const Scopes& scopes, NodeId part)
{
    const auto& macros = scopes.in_macros();
    return std::any_of(macros.begin(), macros.end(),
                       [&](const Scopes::InMacro& use) { return scopes.tree().holds(part, use.name); });
}

bool holds_directive(const Tree& tree, size_t begin, size_t end)
{
    for (auto trivia = std::lower_bound(tree.trivia().begin(), tree.trivia().end(), begin,
                                        [](const Trivia& piece, size_t byte) { return piece.begin < byte; });
         trivia != tree.trivia().end() && trivia->begin < end; ++trivia)
        if (trivia->kind == TriviaKind::directive || trivia->kind == TriviaKind::hidden)
            return true;
    return false;
}

std::optional<std::string> in_one_line(const Tree& tree, NodeId node)
{
    if (holds_directive(tree, tree.begin(node), tree.end(node)))
        return std::nullopt;
    std::string text;
    for (size_t i = tree[node].first; i < tree[node].last; ++i) {
        const bool is_apart = i > tree[node].first && tree.tokens()[i - 1].end < tree.tokens()[i].begin;
        text.append(is_apart ? " " : "").append(tree.token(i));
    }
    return text;
}

std::vector<Edit> hand_on(const ParsedSource& source, const std::vector<NodeId>& nodes, std::string_view word,
                          std::string_view name, const std::vector<NodeId>& guarded)
{
    if (nodes.empty() && guarded.empty())
        return {};
    const std::string same = cat(name, content_hash(source.text()));
    Changes changes;
    for (const NodeId n : guarded) {
        changes.before(source.tree().begin(n), cat("{ if (", same, "(true)) "));
        changes.after(source.tree().end(n), " }");
    }
    for (const NodeId n : nodes) {
        changes.before(source.tree().begin(n), cat(word, same, "("));
        changes.after(source.tree().end(n), ")");
    }
    // a file may be included more than once
    changes.after(
        source.text().size(),
        cat("\n#ifndef ", same, "_\n#define ", same, "_\nT ", same, "<T>(T value) { return value; }\n#endif\n"));
    return std::move(changes).edits();
}

bool has_continue(const Uses& uses, const Tree& tree, NodeId loop)
{
    return std::any_of(uses.exits().begin(), uses.exits().end(),
                       [&](const Exit& exit) { return exit.target == loop && tree.is(exit.node, Kind::continue_); });
}

bool continues_once(const Uses& uses, const Scopes& scopes, NodeId loop)
{
    const Tree& tree = scopes.tree();
    const NodeId condition = condition_of(tree, loop);
    return has_continue(uses, tree, loop) && (tree.text(condition) == "false" || value_of(scopes, condition) == 0);
}

size_t loop_word(const Tree& tree, NodeId loop) { return tree.has(loop + 1) ? tree[loop + 1].last : tree[loop].first; }

NodeId loop_body(const Tree& tree, NodeId loop)
{
    return tree.child(loop, tree.is(loop, Kind::for_) ? 4 : tree.is(loop, Kind::do_) ? 1 : 2);
}

} // namespace spy
