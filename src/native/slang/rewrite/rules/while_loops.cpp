// `while (c) body` -> `for (; c;) body`. In Slang 2026.12 gradients of `while` loops that a `break` ends are wrong, and
// others crash its reverse derivatives; `for` loops have neither.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/changes.h"

namespace spy {
namespace {

/// Loops without body stay, and so do those whose condition declares a variable, for which `for` has no room.
void change_while(const syntax::Tree& tree, syntax::NodeId loop, Changes& changes)
{
    using syntax::Kind;
    const syntax::NodeId condition = tree.child(loop, 1), body = loop_body(tree, loop);
    if (tree.is(condition, Kind::variables) || (tree.is(body, Kind::expression) && !tree.has(body + 1)))
        return;
    const auto& tokens = tree.tokens();
    const size_t word = loop_word(tree, loop), close = tree[condition].last;
    changes.replace(tokens[word].begin, tokens[word].end, "for");
    changes.replace(tokens[word + 1].begin, tokens[word + 1].end, "(; ");
    size_t begin = tokens[close].begin, end = tokens[close].end;
    if (tokens[close - 1].end < begin && tree.source()[begin - 1] == ' ')
        --begin; // the columns after stay
    else if (end < tree.source().size() && tree.source()[end] == ' ')
        ++end;
    changes.replace(begin, end, ";)");
}

} // namespace

std::vector<Edit> for_of_while(const ParsedSource& source)
{
    if (source.text().find("while") == std::string::npos)
        return {};
    Changes changes;
    for (const syntax::NodeId function : functions_to_change(source, false))
        for (const syntax::NodeId n : source.tree().inside(function))
            if (source.tree().is(n, syntax::Kind::while_))
                change_while(source.tree(), n, changes);
    return std::move(changes).edits();
}

} // namespace spy
