#pragma once
// What rules that read the tree have in common.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"
#include "slang/syntax/uses.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spy {

/// The changes of one pass, in any order. Nodes are visited outer ones first.
class Changes {
public:
    /// Text in front of a byte: what is put there first stands first.
    void before(size_t byte, const std::string& text) { m_before[byte] += text; }
    /// Text after what ends at a byte: what is put there last stands first, because inner nodes are visited last.
    void after(size_t byte, const std::string& text) { m_after[byte].insert(0, text); }
    void replace(size_t begin, size_t end, std::string text) { m_replaced[begin] = {begin, end, std::move(text)}; }
    /// A blank for each line, so that those that follow keep their numbers.
    void remove(std::string_view source, size_t begin, size_t end);
    std::vector<Edit> edits() &&;

private:
    std::map<size_t, std::string> m_before, m_after;
    std::map<size_t, Edit> m_replaced;
};

/// One function, as rules look at it.
struct InFunction {
    InFunction(const ParsedSource& source, syntax::NodeId function)
        : m_tree(source.tree()),
          m_scopes(source.scopes()),
          m_uses(m_scopes, function)
    {
    }

    const syntax::Tree& m_tree;
    const syntax::Scopes& m_scopes;
    syntax::Uses m_uses;
};

/// Functions with bodies of which all was understood: nothing is known of the others. `may_be_differentiable`: these.
std::vector<syntax::NodeId> functions_to_change(const ParsedSource& source, bool may_be_differentiable);

/// Whether a part of a function declares a variable of a name.
bool declares(const syntax::Scopes& scopes, syntax::NodeId part, std::string_view name);

/// Whether a macro that stands in a part of a function names a variable.
bool hides_variables(const syntax::Scopes& scopes, syntax::NodeId part);

/// Whether `#if` or another directive stands between two bytes.
bool holds_directive(const syntax::Tree& tree, size_t begin, size_t end);

/// The text of a node in one line, without comments; nothing where a directive stands in it.
std::optional<std::string> in_one_line(const syntax::Tree& tree, syntax::NodeId node);

/// Nodes as `word name_...(node)`, with a function that returns its argument and has no derivative. It is declared at
/// the end of the text. `guarded`: statements that become `{ if (name_...(true)) statement }`.
std::vector<Edit> hand_on(const ParsedSource& source, const std::vector<syntax::NodeId>& nodes, std::string_view word,
                          std::string_view name, const std::vector<syntax::NodeId>& guarded = {});

/// `change(uses, loop, changes)` of the loops with [MaxIters] in functions that may be differentiable.
template <class Change>
std::vector<Edit> change_limited_loops(const ParsedSource& source, Change change)
{
    Changes changes;
    if (source.text().find("MaxIters") == std::string::npos)
        return {};
    for (const syntax::NodeId function : functions_to_change(source, true)) {
        const syntax::Uses uses(source.scopes(), function);
        for (const syntax::Loop& loop : uses.loops())
            if (loop.max_iters != syntax::none)
                change(uses, loop, changes);
    }
    return std::move(changes).edits();
}

/// Whether a `continue` goes on with a loop.
bool has_continue(const syntax::Uses& uses, const syntax::Tree& tree, syntax::NodeId loop);
/// Whether a `do` has a `continue` and the condition `false`.
bool continues_once(const syntax::Uses& uses, const syntax::Scopes& scopes, syntax::NodeId loop);

/// The token `for`, `while` or `do` of a loop.
size_t loop_word(const syntax::Tree& tree, syntax::NodeId loop);
/// The statement that a loop repeats.
syntax::NodeId loop_body(const syntax::Tree& tree, syntax::NodeId loop);

} // namespace spy
