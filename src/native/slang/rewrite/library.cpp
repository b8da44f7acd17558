#include "slang/rewrite/library.h"

#include "core/tokens.h"
#include "slang/spelling.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <vector>

namespace spy {
namespace {

/// Tells the colons that introduce constraints and bases from labels, conditionals and semantics.
class ConstraintScanner {
public:
    /// True when a name that follows now stands in constraint position.
    bool expects_constraint() const { return m_expects; }

    void word(std::string_view text)
    {
        m_expects = false;
        if (text == "case" || text == "default")
            m_label = true;
    }

    void punctuation(std::string_view token)
    {
        m_expects = false;
        const char c = token[0];
        if (token == ":")
            colon();
        else if (token == "&")
            m_expects = m_in_list || m_in_bound;
        else if (c == ',')
            comma();
        else if (c == '?')
            ++m_conditionals;
        else if (c == '(' || c == '[' || c == '<')
            m_open.push_back({c, m_in_list, m_in_bound}), m_in_list = m_in_bound = false;
        else if (c == ')' || c == ']')
            close(c == ')' ? '(' : '[');
        else if (c == '>')
            close_angle();
        else if (c == ';' || c == '{' || c == '}')
            end_statement();
    }

private:
    struct Bracket {
        char kind;
        bool in_list, in_bound;
    };

    void colon()
    {
        if (m_label)
            m_label = false;
        else if (m_conditionals > 0)
            --m_conditionals;
        else {
            m_expects = m_in_bound = true;
            // `struct S : A, B` goes on after a comma; a generic parameter or a function parameter ends there
            m_in_list = m_open.empty();
        }
    }

    void comma()
    {
        m_in_bound = m_in_list;
        m_expects = m_in_list;
    }

    void restore(const Bracket& bracket)
    {
        m_in_list = bracket.in_list;
        m_in_bound = bracket.in_bound;
    }

    void close(char kind)
    {
        while (!m_open.empty()) {
            const Bracket bracket = m_open.back();
            m_open.pop_back();
            restore(bracket);
            if (bracket.kind == kind) // unmatched '<' above it were comparisons
                break;
        }
    }

    void close_angle()
    {
        if (!m_open.empty() && m_open.back().kind == '<') {
            restore(m_open.back());
            m_open.pop_back();
        }
    }

    void end_statement()
    {
        m_open.clear();
        m_in_list = m_in_bound = m_label = false;
        m_conditionals = 0;
    }

    std::vector<Bracket> m_open;
    bool m_expects = false, m_in_list = false, m_in_bound = false, m_label = false;
    int m_conditionals = 0;
};

} // namespace

namespace {

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
    /// next: the first character behind the word and the space after it; follows_word: nothing but space lies between
    /// the word and the one before
    void word(std::string_view text, char next, bool follows_word)
    {
        const bool is_view = text == "TensorView" || text == "DiffTensorView";
        if (m_previous == "import" && text == "slangpy")
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

} // namespace

/// Marks parameters of tensor type that say `no_diff`: Slang reflects all of them so, because no tensor is a
/// differentiable value. The mark is an attribute of the same length.
class NoDiffMarker {
public:
    NoDiffMarker(std::vector<Edit>& edits, const std::set<std::string, std::less<>>& own) : m_edits(edits), m_own(own)
    {
    }

    void word(std::string_view word, size_t pos)
    {
        if (word == "no_diff")
            m_at = pos;
        else if (m_at != npos && word != "in" && word != "inout" && word != "const" && word != "borrow") {
            if (is_generic_library_name(word) && word.ends_with("Tensor") && !m_own.count(word))
                m_edits.push_back({m_at, m_at + no_diff_mark.size(), std::string(no_diff_mark)});
            m_at = npos;
        }
    }
    void punctuation() { m_at = npos; }

private:
    std::vector<Edit>& m_edits;
    const std::set<std::string, std::less<>>& m_own;
    size_t m_at = npos;
};

std::vector<Edit> rewrite_atomics(std::string_view text)
{
    std::vector<Edit> edits;
    if (text.find("atomicAdd") == text.npos || text.find(buffer_name) == text.npos)
        return edits;
    const std::vector<TextToken> tokens = tokens_of(text);
    auto at = [&](size_t i) {
        return i < tokens.size() ? text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) : std::string_view();
    };
    auto next_brace = [&](size_t k) {
        while (k < tokens.size() && at(k) != "{" && at(k) != "}")
            ++k;
        return k;
    };
    std::vector<size_t> ends; // of the functions that are rewritten
    bool by_pointer = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (at(i) != "static" || at(i + 1) != "void" || at(i + 2) != "atomicAdd" || at(i + 3) != "(")
            continue;
        by_pointer |= at(i + 5) == "*" || at(i + 4) == "Ptr";
        if (at(i + 4) != buffer_name)
            continue;
        edits.push_back({tokens[i + 4].begin, tokens[i + 4].end, std::string(memory_name)});
        size_t k = i + 4;
        while (k < tokens.size() && at(k) != "{" && at(k) != ";")
            ++k;
        for (int depth = 0; at(k) != ";" && k < tokens.size(); k = next_brace(k + 1)) {
            depth += at(k) == "{" ? 1 : -1;
            if (depth == 0) {
                ends.push_back(tokens[k].end);
                break;
            }
        }
    }
    for (const size_t end : by_pointer ? std::vector<size_t>() : ends)
        edits.push_back({end, end,
                         " static void atomicAdd(This* _buf, uint _element, This _value) "
                         "{ atomicAdd(_spy_AtomicMemory__(uint64_t(_buf + _element)), 0u, _value); }"});
    std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    return edits;
}

std::vector<Edit> rewrite_constraints(std::string_view source, const std::set<std::string, std::less<>>& own)
{
    std::vector<Edit> edits;
    ConstraintScanner scanner;
    NoDiffMarker marker(edits, own);
    for (size_t pos = 0; pos < source.size();) {
        if (const size_t end = skip_opaque(source, pos); end != pos) {
            pos = end;
        } else if (std::isspace(static_cast<unsigned char>(source[pos]))) {
            ++pos;
        } else if (in_word(source[pos])) {
            size_t end = pos;
            while (end < source.size() && in_word(source[end]))
                ++end;
            const std::string_view text = source.substr(pos, end - pos);
            if (scanner.expects_constraint() && is_interface_name(text) && !own.count(text))
                edits.push_back({pos, pos + 1, "i"});
            scanner.word(text);
            marker.word(text, pos);
            pos = end;
        } else {
            const std::string_view pair = source.substr(pos, 2);
            const size_t length = pair == "::" || pair == "&&" || pair == "<=" || pair == ">=" || pair == "->" ? 2 : 1;
            scanner.punctuation(source.substr(pos, length));
            marker.punctuation();
            pos += length;
        }
    }
    return edits;
}

namespace {

LibraryUse library_use(std::string_view source, const std::set<std::string, std::less<>>& own)
{
    LibraryUse library(own);
    bool follows_word = false;
    for (size_t pos = 0; pos < source.size();) {
        size_t end = skip_opaque(source, pos);
        if (end == pos && in_word(source[pos])) {
            while (end < source.size() && in_word(source[end]))
                ++end;
            const size_t next = source.find_first_not_of(" \t\r\n", end);
            library.word(source.substr(pos, end - pos), next == source.npos ? '\0' : source[next], follows_word);
            follows_word = true;
        } else if (end == pos && !std::isspace(static_cast<unsigned char>(source[pos]))) {
            follows_word = false;
        }
        pos = std::max(end, pos + 1);
    }
    library.used |= (library.views && !library.own_views) || (library.exact && library.doubles);
    library.imported |= source.find("import \"slangpy\"") != source.npos;
    return library;
}

} // namespace

void prepare_source(EditedText& text, const Surroundings& around, bool may_import)
{
    LibraryUse library = library_use(text.text(), around.declared);
    const std::vector<Edit> atomics = rewrite_atomics(text.text());
    const bool imports = may_import && (library.used || !atomics.empty()) && !library.imported;
    if (!imports && !around.has_library)
        return;
    text.apply(atomics);
    text.apply(rewrite_constraints(text.text(), around.declared));
    if (imports) // at the end, so that lines and columns stay those of the user's text
        text.apply({{text.text().size(), text.text().size(), "\nimport slangpy;\n"}});
}

} // namespace spy
