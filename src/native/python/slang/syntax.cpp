// The grammar of Slang, for its tests and for planning.
#include "python/slang/bindings.h"

#include "slang/syntax/parser.h"
#include "slang/syntax/types.h"

#include <algorithm>
#include <memory>

namespace spy::syntax {
namespace {

constexpr std::string_view kind_names[] = {
    "absent",    "opaque",        "file",      "modifiers", "modifier",   "attribute",  "import",      "namespace",
    "type",      "members",       "enum_case", "bases",     "generics",   "generic",    "wheres",      "where",
    "function",  "parameters",    "parameter", "variables", "declarator", "dimensions", "property",    "subscript",
    "accessors", "accessor",      "alias",     "block",     "expression", "if",         "for",         "while",
    "do",        "switch",        "case",      "label",     "return",     "break",      "continue",    "discard",
    "defer",     "throw",         "name",      "literal",   "paren",      "list",       "call",        "generic_use",
    "index",     "member",        "prefix",    "postfix",   "binary",     "assign",     "conditional", "cast",
    "lambda",    "function_type", "code"};
static_assert(std::size(kind_names) == size_t(Kind::code) + 1);

void write(const Tree& tree, NodeId n, std::string& text)
{
    static constexpr Kind named[] = {Kind::modifier, Kind::attribute, Kind::type,       Kind::enum_case,
                                     Kind::generic,  Kind::function,  Kind::declarator, Kind::property,
                                     Kind::accessor, Kind::alias,     Kind::label,      Kind::break_,
                                     Kind::name,     Kind::literal,   Kind::member,     Kind::prefix,
                                     Kind::postfix,  Kind::binary,    Kind::assign,     Kind::namespace_};
    const Kind kind = tree.kind(n);
    if (kind == Kind::absent) {
        text += '-';
        return;
    }
    if (kind == Kind::name || kind == Kind::literal) {
        text += tree.main(n);
        return;
    }
    text += '(';
    text += kind_names[size_t(kind)];
    if (std::find(std::begin(named), std::end(named), kind) != std::end(named))
        (text += ' ') += tree.main(n);
    for (const NodeId c : tree.children(n)) {
        text += ' ';
        write(tree, c, text);
    }
    text += ')';
}

/// The tree as text: `(binary + a 1)`.
std::string text_of(const std::string& source)
{
    std::string text;
    write(parse(source), Tree::root, text);
    return text;
}

/// A source with all that its tree points to.
struct Parsed {
    std::string text;
    std::unique_ptr<Tree> tree;
    std::unique_ptr<Scopes> scopes;

    explicit Parsed(std::string source, std::vector<const Scopes*> imported = {}) : text(std::move(source))
    {
        tree = std::make_unique<Tree>(parse(text));
        scopes = std::make_unique<Scopes>(*tree, std::move(imported));
    }
};

/// (begin, end, kind) of each token and piece of trivia, in order.
std::vector<std::tuple<uint32_t, uint32_t, std::string>> pieces_of(const std::string& source)
{
    static constexpr const char* tokens[] = {"word", "number", "string", "sign"};
    static constexpr const char* trivia[] = {"space", "comment", "continuation", "directive", "hidden"};
    const Tree tree = parse(source);
    std::vector<std::tuple<uint32_t, uint32_t, std::string>> result;
    for (const Token& token : tree.tokens())
        result.emplace_back(token.begin, token.end, tokens[size_t(token.kind)]);
    for (const Trivia& piece : tree.trivia())
        result.emplace_back(piece.begin, piece.end, trivia[size_t(piece.kind)]);
    std::sort(result.begin(), result.end());
    return result;
}

/// (begin, end) of what was not understood, and whether an `#if` cuts through it.
std::vector<std::tuple<size_t, size_t, bool>> opaque_parts(const std::string& source)
{
    const Tree tree = parse(source);
    std::vector<std::tuple<size_t, size_t, bool>> result;
    for (NodeId n = 0; n < tree.size(); ++n)
        if (tree.is(n, Kind::opaque) || tree[n].is_split)
            result.emplace_back(tree.begin(n), tree.end(n), tree[n].is_split);
    return result;
}

const char* name_of(Access access)
{
    static constexpr const char* names[] = {"read", "declared", "written", "updated", "by_reference", "unknown"};
    return names[size_t(access)];
}

NodeId function_named(const Tree& tree, const std::string& name)
{
    for (NodeId n = 0; n < tree.size(); ++n)
        if (tree.is(n, Kind::function) && tree.main(n) == name && body_of(tree, n) != none)
            return n;
    throw nb::key_error(("no function " + name + " with a body").c_str());
}

/// Sources that another one imports.
struct Imports {
    explicit Imports(const std::vector<std::string>& texts)
    {
        m_parsed.reserve(texts.size()); // trees point into the texts
        for (const std::string& text : texts)
            scopes.push_back(m_parsed.emplace_back(text).scopes.get());
    }
    std::vector<const Scopes*> scopes;

private:
    std::vector<Parsed> m_parsed;
};

/// What a function of a source does, for tests: uses (variable, access, path), loops, exits, and whether it was
/// understood.
nb::dict uses_of(const std::string& source, const std::string& function, const std::vector<std::string>& imports)
{
    const Imports imported(imports);
    const Parsed parsed(source, imported.scopes);
    const Tree& tree = *parsed.tree;
    const Uses uses(*parsed.scopes, function_named(tree, function));
    const auto name = [&](uint32_t variable) { return std::string(parsed.scopes->variables()[variable].name); };
    nb::list all, loops, exits;
    for (const Use& use : uses.all())
        all.append(nb::make_tuple(name(use.variable), name_of(use.access), std::string(tree.text(use.path.whole))));
    for (const Loop& loop : uses.loops()) {
        nb::list carried;
        for (const uint32_t variable : loop.carried)
            carried.append(name(variable));
        loops.append(nb::make_tuple(loop.is_unrolled,
                                    loop.max_iters == none ? "" : std::string(tree.text(loop.max_iters)),
                                    loop.counter == none ? "" : name(loop.counter), carried));
    }
    for (const Exit& exit : uses.exits())
        exits.append(nb::make_tuple(std::string(tree.text(exit.node)),
                                    exit.target == none ? "" : std::string(tree.token(tree[exit.target].first))));
    nb::dict result;
    result["uses"] = all;
    result["loops"] = loops;
    result["exits"] = exits;
    result["understood"] = uses.is_understood();
    return result;
}

/// How the paths of one variable in a function meet, pair by pair in the order of the text; and what is known of
/// indices.
nb::dict indices_of(const std::string& source, const std::string& function, const std::string& variable)
{
    const Parsed parsed(source);
    const Tree& tree = *parsed.tree;
    const Uses uses(*parsed.scopes, function_named(tree, function));
    std::vector<const Use*> found;
    for (const Use& use : uses.all())
        if (use.path.is_part() && parsed.scopes->variables()[use.variable].name == variable)
            found.push_back(&use);
    static constexpr const char* aliasings[] = {"never", "same", "possible"};
    nb::dict result;
    for (size_t i = 0; i < found.size(); ++i) {
        for (size_t k = i + 1; k < found.size(); ++k)
            result[nb::make_tuple(std::string(tree.text(found[i]->path.whole)),
                                  std::string(tree.text(found[k]->path.whole)))] =
                aliasings[size_t(uses.aliasing(found[i]->path, found[k]->path, found[i]->loop))];
        if (const NodeId step = found[i]->path.steps[0]; tree.is(step, Kind::index)) {
            const NodeId index = tree.child(step, 1);
            const bool is_still = found[i]->loop != none && uses.is_invariant(index, found[i]->loop);
            result[nb::str(std::string(tree.text(index)).c_str())] = nb::make_tuple(uses.is_known(index), is_still);
        }
    }
    return result;
}

/// name -> (role, type, direction, words) of the variables of a source; the last of a name.
nb::dict variables_of(const std::string& source)
{
    static constexpr const char* roles[] = {"parameter", "local", "field", "global", "generic", "this"};
    static constexpr const char* directions[] = {"in", "out", "inout", "ref"};
    const Parsed parsed(source);
    nb::dict result;
    for (const Variable& v : parsed.scopes->variables()) {
        std::string words;
        for (const auto& [is, word] : {std::pair(v.is_no_diff, "no_diff "), std::pair(v.is_static, "static "),
                                       std::pair(v.is_const, "const "), std::pair(v.is_groupshared, "groupshared "),
                                       std::pair(v.is_array, "array "), std::pair(v.is_doubtful, "doubtful ")})
            words += is ? word : "";
        result[std::string(v.name).c_str()] = nb::make_tuple(roles[size_t(v.role)], std::string(v.type),
                                                             directions[size_t(v.direction)], words);
    }
    return result;
}

/// path -> what its type is: a shape with words, of the uses in a function.
nb::dict types_of(const std::string& source, const std::string& function, const std::vector<std::string>& imports)
{
    static constexpr const char* shapes[] = {"unknown",   "scalar",    "vector",  "matrix", "array",
                                             "structure", "interface", "generic", "memory"};
    const Imports imported(imports);
    const Parsed parsed(source, imported.scopes);
    const Uses uses(*parsed.scopes, function_named(*parsed.tree, function));
    nb::dict result;
    for (const Use& use : uses.all()) {
        if (use.access == Access::declared)
            continue;
        const Type type = type_of(*parsed.scopes, parsed.scopes->variables()[use.variable], use.path);
        std::string text = shapes[size_t(type.shape)];
        for (const auto& [is, word] : {std::pair(type.is_float, " float"), std::pair(type.is_discrete, " discrete"),
                                       std::pair(type.is_differentiable, " differentiable")})
            text += is ? word : "";
        result[std::string(parsed.tree->text(use.path.whole)).c_str()] = text;
    }
    return result;
}

/// For each use of a name in a source, by its byte, the byte of the declaration that it means; -1 where none is found.
std::vector<std::pair<size_t, long>> meanings_of(const std::string& source, const std::string& name)
{
    const Parsed parsed(source);
    const Tree& tree = *parsed.tree;
    std::vector<std::pair<size_t, long>> result;
    for (NodeId n = 0; n < tree.size(); ++n)
        if (tree.is(n, Kind::name) && tree.main(n) == name) {
            const Variable* variable = parsed.scopes->find(n);
            result.emplace_back(tree.begin(n), variable ? long(tree.begin(variable->node)) : -1);
        }
    return result;
}

void bind(nb::module_& m)
{
    m.def("syntax_tree", &text_of, nb::arg("source"),
          "The tree of a source as text: (binary + a (call f 1)); - stands for what is absent.");
    m.def("syntax_pieces", &pieces_of, nb::arg("source"),
          "(begin, end, kind) of each token and each piece between tokens, in bytes.");
    m.def("syntax_opaque", &opaque_parts, nb::arg("source"),
          "(begin, end, whether an #if cuts through it) of what was not understood, in bytes.");
    m.def("syntax_uses", &uses_of, nb::arg("source"), nb::arg("function"),
          nb::arg("imports") = std::vector<std::string>(), "What a function does with its variables.");
    m.def(
        "syntax_indices", &indices_of, nb::arg("source"), nb::arg("function"), nb::arg("variable"),
        "How the parts of a variable meet, by pairs of their texts; and by index whether it is known, and invariant.");
    m.def("syntax_variables", &variables_of, nb::arg("source"), "The variables of a source by name.");
    m.def("syntax_types", &types_of, nb::arg("source"), nb::arg("function"),
          nb::arg("imports") = std::vector<std::string>(), "What the paths in a function are.");
    m.def("syntax_meanings", &meanings_of, nb::arg("source"), nb::arg("name"),
          "(byte, byte of what it means or -1) of each use of a name.");
}

} // namespace
} // namespace spy::syntax

namespace spy {

void bind_slang_syntax(nb::module_& m) { syntax::bind(m); }

} // namespace spy
