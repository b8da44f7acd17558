#include "slang/rewrite/library.h"

#include "slang/spelling.h"
#include "slang/syntax/lexer.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <vector>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId;
using Names = std::set<std::string, std::less<>>;

/// Names of our library that bring it in when a source uses them without importing it: types, generic but for two.
bool is_plain_library_name(std::string_view word) { return word == "CallShapeInfo" || word == "Context0D"; }
bool is_generic_library_name(std::string_view word)
{
    if (word == "ContextND")
        return true;
    constexpr std::string_view tail = "Tensor";
    if (!word.ends_with(tail))
        return false;
    static constexpr std::string_view heads[] = {"",       "W",       "RW",       "I",     "IW",     "IRW",
                                                 "Diff",   "WDiff",   "RWDiff",   "IDiff", "IWDiff", "IRWDiff",
                                                 "Primal", "WPrimal", "RWPrimal", "Atomic"};
    const std::string_view head = word.substr(0, word.size() - tail.size());
    return std::find(std::begin(heads), std::end(heads), head) != std::end(heads);
}

/// Follows the words of a source to see whether it needs `import slangpy`.
struct LibraryUse {
    explicit LibraryUse(const std::set<std::string, std::less<>>& own) : m_own(own.begin(), own.end()) { }
    /// next: the first character of the next token; follows_word: the token before is a word, too
    void word(std::string_view text, char next, bool follows_word)
    {
        const bool is_view = text == "TensorView" || text == "DiffTensorView";
        if (m_previous == "import" && (text == "slangpy" || text == "slangpy_core"))
            imported = true;
        if (is_view || is_plain_library_name(text) || is_generic_library_name(text))
            (is_view ? views : used) |= is_use(text, next, follows_word);
        else if (text == "degrees" || text == "radians" || text == "exp10" || text == "exp2")
            exact = true;
        else if (text.starts_with("double"))
            doubles = true;
        else if (text == "TorchEntryPoint")
            own_views = true;
        m_previous = text;
    }
    bool imported = false, used = false;
    bool views = false;                  ///< TensorView or DiffTensorView
    bool exact = false, doubles = false; ///< functions that our library has more exactly for double; double
    bool own_views = false;              ///< host functions, whose tensors become Slang's own views

private:
    /// A use is `Tensor<float, 1>` or `CallShapeInfo.get_call_id()`; `uniform float Tensor;`, `T Tensor<T>(T x)` and
    /// `namespace Tensor` are the user's own.
    bool is_use(std::string_view text, char next, bool follows_word)
    {
        const bool is_plain = is_plain_library_name(text);
        const bool is_declared = m_previous == "struct" || m_previous == "interface" || m_previous == "class" ||
            m_previous == "typealias" || m_previous == "enum" || m_previous == "namespace";
        const bool is_named = follows_word && (next == '<' ? is_type(m_previous) : is_plain ? is_end(next) : true);
        if (is_declared || is_named)
            m_own.insert(std::string(text));
        // `DiffTensorView x` has default arguments
        const bool is_whole = text == "DiffTensorView" && !follows_word &&
            (std::isalpha(static_cast<unsigned char>(next)) || next == '_' || next == '>');
        return (is_plain || is_whole || next == '<') && !m_own.count(std::string(text));
    }
    static bool is_end(char c) { return std::string_view(";=,)[{").find(c) != std::string_view::npos; }
    /// What certainly is a type: `void`, a scalar, vector or matrix, or `T`.
    static bool is_type(std::string_view word)
    {
        if (word.size() == 1)
            return std::isupper(static_cast<unsigned char>(word[0]));
        while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) || word.back() == 'x'))
            word.remove_suffix(1);
        constexpr std::string_view names[] = {"void", "bool", "int", "uint", "half", "float", "double"};
        return std::find(std::begin(names), std::end(names), word) != std::end(names);
    }

    std::string_view m_previous;
    std::unordered_set<std::string> m_own;
};

/// Our names for interfaces in a constraint: `ITensor<float, 1>`, `IFoo & ITensor<float, 1>`.
void rename_bound(const syntax::Tree& tree, NodeId bound, const Names& own, std::vector<Edit>& edits)
{
    if (tree.is(bound, Kind::binary) && tree.main(bound) == "&") {
        rename_bound(tree, tree.child(bound, 0), own, edits);
        return rename_bound(tree, tree.child(bound, 1), own, edits);
    }
    const NodeId name = tree.is(bound, Kind::generic_use) ? tree.child(bound, 0) : bound;
    if (tree.is(name, Kind::name) && is_interface_name(tree.main(name)) && !own.count(tree.main(name)))
        edits.push_back({tree.begin(name), tree.begin(name) + 1, "i"});
}

/// Marks what is of tensor type and says no_diff: Slang reflects all of them so, because no tensor is a differentiable
/// value. The mark is an attribute of the same length.
void mark_no_diff(const syntax::Tree& tree, NodeId modifier, const Names& own, std::vector<Edit>& edits)
{
    const NodeId declaration = tree.parent(tree.parent(modifier)), type = tree.child(declaration, 1);
    if (!tree.is(declaration, Kind::parameter) && !tree.is(declaration, Kind::variables))
        return;
    const std::string_view name = tree.main(tree.is(type, Kind::generic_use) ? tree.child(type, 0) : type);
    if (is_generic_library_name(name) && name.ends_with("Tensor") && !own.count(name))
        edits.push_back({tree.begin(modifier), tree.begin(modifier) + no_diff_mark.size(), std::string(no_diff_mark)});
}

void sort(std::vector<Edit>& edits)
{
    std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
}

/// The name of a type, or of the one that an extension extends; empty where that is more than a name.
std::string_view name_of_owner(const syntax::Tree& tree, NodeId owner)
{
    if (tree.main(owner) != "extension")
        return tree.main(owner);
    for (const NodeId child : tree.children(owner))
        if (tree.is(child, Kind::name))
            return tree.main(child);
    return {};
}

} // namespace

std::vector<Edit> rewrite_atomics(const ParsedSource& source)
{
    std::vector<Edit> edits;
    const syntax::Tree& tree = source.tree();
    std::vector<std::pair<std::string_view, size_t>> added; // structs whose function is rewritten, and where it ends
    std::vector<std::string_view> by_pointer;               // structs that have the other form
    for (const syntax::Function& function : source.scopes().functions()) {
        if (function.name != "atomicAdd" || function.owner == syntax::none || !function.is_static)
            continue;
        const NodeId first = tree.child(syntax::parameters_of(tree, function.node), 0);
        const NodeId type = first == syntax::none ? syntax::none : tree.child(first, 1);
        if (tree.is(type, Kind::postfix) ||
            (tree.is(type, Kind::generic_use) && tree.main(tree.child(type, 0)) == "Ptr"))
            by_pointer.push_back(name_of_owner(tree, function.owner));
        if (!tree.is(type, Kind::name) || tree.main(type) != buffer_name)
            continue;
        edits.push_back({tree.begin(type), tree.end(type), std::string(memory_name)});
        if (syntax::body_of(tree, function.node) != syntax::none)
            added.emplace_back(name_of_owner(tree, function.owner), tree.end(function.node));
    }
    for (const auto& [owner, end] : added)
        if (std::find(by_pointer.begin(), by_pointer.end(), owner) == by_pointer.end())
            edits.push_back({end, end,
                             " static void atomicAdd(This* _buf, uint _element, This _value) "
                             "{ atomicAdd(_spy_AtomicMemory__(uint64_t(_buf + _element)), 0u, _value); }"});
    sort(edits);
    return edits;
}

std::vector<Edit> rewrite_constraints(const ParsedSource& source, const Names& own)
{
    const syntax::Tree& tree = source.tree();
    std::vector<Edit> edits;
    for (NodeId n = 0; n < tree.size(); ++n) {
        if (tree.is(n, Kind::bases))
            for (const NodeId base : tree.children(n))
                rename_bound(tree, base, own, edits);
        else if (tree.is(n, Kind::generic))
            rename_bound(tree, tree.child(n, 0), own, edits);
        else if (tree.is(n, Kind::where))
            for (size_t k = 1; k < tree.count(n); ++k)
                rename_bound(tree, tree.child(n, k), own, edits);
        else if (tree.is(n, Kind::modifier) && tree.main(n) == "no_diff")
            mark_no_diff(tree, n, own, edits);
    }
    sort(edits);
    return edits;
}

namespace {

LibraryUse library_use(std::string_view source, const std::set<std::string, std::less<>>& own)
{
    LibraryUse library(own);
    const std::vector<syntax::Token> tokens = syntax::tokens_of(source, true).tokens;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const char next = i + 1 < tokens.size() ? source[tokens[i + 1].begin] : '\0';
        if (tokens[i].kind == syntax::TokenKind::word)
            library.word(tokens[i].text(source), next, i > 0 && tokens[i - 1].kind == syntax::TokenKind::word);
    }
    library.used |= (library.views && !library.own_views) || (library.exact && library.doubles);
    library.imported |= source.find("import \"slangpy\"") != source.npos;
    return library;
}

} // namespace

namespace {

bool names_atomics(std::string_view source)
{
    return source.find("atomicAdd") != source.npos && source.find(buffer_name) != source.npos;
}

} // namespace

bool may_use_library(std::string_view source, const Names& own)
{
    return library_use(source, own).used || names_atomics(source);
}

void prepare_source(EditedText& text, const RuleContext& context, bool may_import)
{
    const Surroundings& around = context.around;
    const LibraryUse library = library_use(text.text(), around.declared);
    const std::vector<Edit> atomics = names_atomics(text.text()) ? rewrite_atomics(context.parsed(text))
                                                                 : std::vector<Edit>();
    const bool imports = may_import && (library.used || !atomics.empty()) && !library.imported;
    if (!imports && !around.has_library)
        return;
    std::vector<Edit> edits = rewrite_constraints(context.parsed(text), around.declared);
    edits.insert(edits.end(), atomics.begin(), atomics.end());
    sort(edits);
    text.apply(edits);
    if (imports) // at the end, so that lines and columns stay those of the user's text
        text.apply({{text.text().size(), text.text().size(), "\nimport slangpy;\n"}});
}

} // namespace spy
