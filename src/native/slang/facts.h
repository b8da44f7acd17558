#pragma once
// What planning asks of the sources of a module, from one parse.
#include "slang/lost_shares.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy::syntax {

/// Of one function, as it stands there.
struct FunctionFacts {
    struct Parameter {
        std::string name;
        std::string type;      ///< with blanks only between words, and the dimensions that stand after the name
        std::string direction; ///< "in", "out", "inout" or "ref"
        bool is_no_diff;
    };
    struct Loop {
        bool is_unrolled;
        std::string max_iters; ///< what stands in [MaxIters(...)]; empty without
    };
    std::string name;
    std::string owner; ///< the type or extension that it is a method of
    std::vector<Parameter> parameters;
    std::vector<std::string> attributes; ///< as written, `MaxIters(3)`
    std::vector<std::pair<std::string, std::string>>
        derivatives; ///< attributes that name others: ("BackwardDerivative", "f")
    std::vector<Loop> loops;
    std::vector<std::string> calls;   ///< names, in order, each once; and all functions that macros and what was not
                                      ///< understood may name
    std::vector<std::string> statics; ///< variables of its thread that it uses
    std::vector<std::string> writes;  ///< parameters, fields and globals that it may write, or a part of them
    bool has_body, is_mutating, is_understood;
};

/// How long a function is that Slang differentiates.
struct DerivedSize {
    std::string function;
    size_t line; ///< from 1
    size_t conditions, statements;
};

/// A loop with [MaxIters] in a function that Slang differentiates.
struct LimitedLoop {
    std::string function;
    size_t line; ///< from 1
    long trips;  ///< with the loops around it
};

using Fields = std::vector<std::string>; ///< names that lead from a struct to a field in it

/// What a function does with a view: "reads" and "stores" of elements, uses of the "gradient" of a pair, or what is
/// "unknown".
enum ViewUse : unsigned { reads_view = 1, stores_view = 2, uses_gradient = 4, unknown_use = 8 };

/// Of the sources of a module, one after the other.
class Facts {
public:
    /// `macros`: names that are defined from outside.
    explicit Facts(std::string text, const std::vector<std::string>& macros = {});

    std::vector<FunctionFacts> functions() const;
    /// Whether it has variables that live as long as their thread (`static`, not constant) and may be written.
    bool keeps_statics() const;
    const std::set<std::string_view>& words() const { return m_words; } ///< all names and keywords, those of macros too
    std::set<std::string_view> no_diff_types() const;                   ///< words in the types of what says no_diff
    /// The words in functions of a name and in those that they name; empty where none of that name has a body.
    std::set<std::string_view> reached_words(std::string_view function) const;
    /// Those of them that may name a global: no members, no parameters or local variables.
    std::set<std::string_view> reached_names(std::string_view function) const;
    /// Uses of a generic type in these, and in the types and aliases that they name: the text, and the alias that
    /// stands for it, empty where none does. The name alone where only a macro names it.
    std::vector<std::pair<std::string, std::string>> reached_uses(std::string_view function,
                                                                  std::string_view type) const;
    /// Whether one of these has a loop that is not unrolled, or no body is there.
    bool may_loop(std::string_view function) const;
    /// Those that may be differentiable, have no derivative of their own and were not understood: names, and their
    /// lines.
    std::vector<std::pair<std::string, size_t>> unread_functions(std::string_view function) const;
    /// The same of those with a pack of parameters, `expand each T items`, whose derivatives Slang takes for zero.
    std::vector<std::pair<std::string, size_t>> pack_functions(std::string_view function) const;
    /// Of the functions that are derived, the one with most conditions, else statements; none where there is none.
    std::optional<DerivedSize> largest_derived(std::string_view function) const;
    /// Of the loops in these whose [MaxIters] can be told, the one with most trips; none where there is none.
    std::optional<LimitedLoop> longest_loop(std::string_view function) const;
    /// Those of these that call themselves, perhaps by way of others: names, and their lines.
    std::vector<std::pair<std::string, size_t>> recursive_functions(std::string_view function) const;
    /// Parameters of functions of a name, and fields of types of it, whose default value names a parameter or a field:
    /// names, and their lines.
    std::vector<std::pair<std::string, size_t>> dependent_defaults(std::string_view name) const;
    /// All that functions of a name do with their parameter of that index, or with a field in it.
    unsigned view_uses(const std::string& function, size_t index, const Fields& fields) const;
    /// Names and types of what is `extern static const`.
    std::vector<std::pair<std::string, std::string>> extern_constants() const;
    /// The comments in front of the function or type whose name stands in a line and column (from 1), or after its
    /// attributes: those without an empty line between them and it, as written.
    std::vector<std::string> comments_above(size_t line, size_t column) const;
    /// The faulty pairs of elements in functions of a name.
    std::vector<LostShare> lost_shares(std::string_view function) const;
    /// The functions, and the parameters of them, that a parameter is passed to inside of `bwd_diff`; none where it is
    /// used otherwise, but for its sizes.
    std::optional<std::vector<std::pair<std::string, size_t>>> differentiates(const std::string& function,
                                                                              size_t index) const;

private:
    friend class ViewFinder;
    std::vector<NodeId> reached(std::string_view function) const;
    template <class Wanted>
    std::vector<std::pair<std::string, size_t>> derived(std::string_view function, Wanted is_wanted) const;
    std::set<std::string_view> words_in(NodeId node) const;
    std::vector<std::string> calls_in(NodeId function) const;
    size_t line_of(NodeId node) const; ///< from 1
    bool is_macro(std::string_view name) const { return m_macro_words.count(name) > 0; }

    std::string m_text;
    std::unique_ptr<const Tree> m_tree;
    std::unique_ptr<const Scopes> m_scopes;
    std::set<std::string> m_outer_macros;
    std::set<std::string_view> m_words, m_macro_words; ///< of macros: their names, and what their bodies name
    std::multimap<std::string_view, NodeId> m_bodies;  ///< functions and properties with bodies
};

} // namespace spy::syntax
