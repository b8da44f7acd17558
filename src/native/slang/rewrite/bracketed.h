#pragma once
// A source as words and signs whose brackets have found each other, for changes within the bodies of functions.
#include "core/tokens.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// The body of a function, as tokens: `begin` is the "(" of its parameters, `open` the "{", `end` the "}".
struct FunctionBody {
    size_t begin, open, end;
};

/// The words that begin a body's first and last loop, as tokens; npos where it has none.
struct LoopWords {
    size_t first = npos, last = npos;
    bool any() const { return first != npos; }
};

/// A name with what picks parts of it: `a.b[i].c`.
struct NamePath {
    size_t last; ///< its last step, a "." or "["; the name where it has none
    size_t end;  ///< the token behind it
};

/// `typedef P Two[2];`, `typedef P[2] Two;`, `typealias Two = P[2];`, as tokens.
struct TypeAlias {
    size_t name, type; ///< npos where there is none
    size_t end;        ///< behind the name and the type
    bool is_array;
};

class BracketedText {
public:
    using Names = std::set<std::string_view>;

    explicit BracketedText(std::string_view text);

    bool balanced() const { return m_balanced; } ///< false, for example, where the branches of an #if each open one
    size_t size() const { return m_tokens.size(); }
    /// The text of a token; empty outside.
    std::string_view at(size_t i) const;
    std::string_view text(size_t first, size_t last) const; ///< of the tokens and what lies between them
    const TextToken& token(size_t i) const { return m_tokens[i]; }
    size_t match(size_t i) const { return m_match[i]; }   ///< the other bracket; npos where there is none
    size_t around(size_t i) const { return m_around[i]; } ///< the innermost bracket that is open there, or npos
    bool joined(size_t i) const;                          ///< whether nothing lies between tokens i and i + 1

    /// Functions hold no functions: nothing within a body is listed.
    std::vector<FunctionBody> bodies() const;
    /// What stands behind the first, or before the last, is behind or before some loop of the body.
    LoopWords loops(const FunctionBody& body) const;
    /// Words that the parameters and the body declare behind a type. `type_end` gives the token behind a type that
    /// begins at i, or i where none does. Arrays are left out.
    template <class TypeEnd>
    Names declared(const FunctionBody& body, TypeEnd type_end) const;
    /// Whether a word is float, half3, double2x2 and the like, or what the source declares as another name of such a
    /// vector or matrix.
    bool is_float_name(std::string_view word) const;
    /// The token behind a scalar, vector or matrix type of floating-point numbers that a declaration begins with at i;
    /// i where none does.
    size_t float_type_end(size_t i) const;
    /// Variables and parameters of such a type; not constants, nor names that another declaration uses.
    Names local_floats(const FunctionBody& body) const;
    bool is_list(size_t open) const;                  ///< whether a "{" opens an initializer
    size_t header_of(const FunctionBody& body) const; ///< the first token of a function: of its attributes
    size_t
    declaration_of(const FunctionBody& body) const;  ///< the first token of the outermost type or function around it
    std::string_view scope_word(size_t begin) const; ///< "struct", ..., around a function; empty in namespaces
    bool is_assignment(size_t i) const;              ///< whether =, += and the like stand there
    bool is_stepped(size_t i) const;                 ///< whether ++ or -- stands before i

private:
    void match_brackets();
    void find_aliases();
    bool is_made_of(size_t i, const Names& floats) const;
    size_t parameters_before(size_t open) const;
    size_t next_name(size_t i, size_t end) const;

    std::string_view m_text;
    std::vector<TextToken> m_tokens;
    std::vector<size_t> m_match, m_around;
    Names m_aliases; ///< of vectors and matrices of floats
    bool m_balanced = true;
};

TypeAlias alias_at(const BracketedText& text, size_t i); ///< that begins with the word at i
NamePath path_at(const BracketedText& text, size_t i);   ///< that begins with the name at i
bool is_float_word(std::string_view word);               ///< float, half, double and their long names
bool is_float_type(std::string_view word);               ///< float, half3, double2x2 and the like
/// Functions of Slang's core module that write none of their arguments, and what else stands before brackets.
bool writes_no_argument(std::string_view function);
inline bool is_word(std::string_view text) { return !text.empty() && starts_word(text[0]); }
inline bool is_loop_word(std::string_view word) { return word == "for" || word == "while" || word == "do"; }

template <class TypeEnd>
BracketedText::Names BracketedText::declared(const FunctionBody& body, TypeEnd type_end) const
{
    Names names;
    for (size_t i = body.begin; i + 1 < body.end; ++i) {
        const size_t first = type_end(i);
        if (first == i)
            continue;
        for (size_t j = first; j < body.end && is_word(at(j)); j = next_name(j, body.end)) {
            if (at(j + 1) != "[" && at(j + 1) != "(")
                names.insert(at(j));
            if (i < m_match[body.begin])
                break; // a parameter: behind the comma is the next one's type
        }
    }
    return names;
}

} // namespace spy
