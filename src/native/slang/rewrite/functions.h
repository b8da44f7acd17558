#pragma once
// What the functions of a source do to their parameters, read off its words.
#include "core/tokens.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

class BracketedText;
struct FunctionBody;
struct TypeAlias;

/// How a function uses a parameter. `written_float`: a scalar, vector or matrix of floats; `written_discrete`: integers
/// or bools, which have no derivatives; `referred`: through a __ref, which may be one to memory.
enum class ParameterUse { read, written, written_float, written_discrete, referred };

struct DeclaredFunction {
    std::vector<ParameterUse> parameters;
    bool is_mutating;              ///< a method that changes its object
    bool returns_elements = false; ///< an array of floats, a vector or a matrix
};

/// The types that structs give fields of one name, by their last words.
struct FieldTypes {
    std::set<std::string, std::less<>> arrays, singles;
};

/// What a source declares, by name: overloads, and methods of several types, are told apart by nothing but the number
/// of their parameters.
class FunctionTable {
public:
    FunctionTable();
    explicit FunctionTable(std::string_view source);
    explicit FunctionTable(const BracketedText& text);

    /// Those of a name; null where none is known.
    const std::vector<DeclaredFunction>* find(std::string_view name) const;
    const FieldTypes* field(std::string_view name) const; ///< null where none is known
    bool is_struct(std::string_view name) const { return m_structs.count(name) > 0; }
    /// Whether a name is declared as that of vectors, matrices, or arrays of floats, vectors, matrices or structs.
    bool is_array_alias(std::string_view name) const { return m_aliases.count(name) > 0; }
    /// Whether a name is another one of a struct.
    bool is_renamed(std::string_view name) const { return m_renamed.count(name) > 0; }
    /// Whether a struct has fields of buffers, textures, tensors or pointers, and so is not a mere value.
    bool holds_memory(std::string_view name) const { return m_holders.count(name) > 0; }

private:
    void read(const BracketedText& text);
    void read_types(const BracketedText& text);
    void read_struct(const BracketedText& text, size_t i);
    void read_alias(const BracketedText& text, const TypeAlias& alias);

    std::map<std::string, std::vector<DeclaredFunction>, std::less<>> m_functions;
    std::map<std::string, FieldTypes, std::less<>> m_fields;
    std::set<std::string, std::less<>> m_structs, m_aliases, m_renamed, m_holders;
};

using FunctionTables = std::vector<std::shared_ptr<const FunctionTable>>;

/// int, uint3, bool2 and the like.
bool is_discrete_type(std::string_view word);

/// What calls of a name with so many arguments do to one of them, or to their object.
struct Effect {
    bool known = false; ///< the function
    bool may = false, does = false;
    bool is_float = true, is_discrete = true; ///< where it is written
};

/// `k`: the argument; npos: the object.
Effect effect_of(const FunctionTable& own, const FunctionTables& imported, std::string_view name, size_t count,
                 size_t k);

/// Whether a struct has a name.
bool is_struct(const FunctionTable& own, const FunctionTables& imported, std::string_view name);

/// Whether a name is another one of a struct.
bool is_renamed(const FunctionTable& own, const FunctionTables& imported, std::string_view name);

/// Whether a struct is known to hold more than values.
bool holds_memory(const FunctionTable& own, const FunctionTables& imported, std::string_view name);

/// Whether a name is declared as that of vectors, matrices, or arrays of floats, vectors, matrices or structs.
bool is_array_alias(const FunctionTable& own, const FunctionTables& imported, std::string_view name);

/// The tokens between a bracket's commas.
struct Argument {
    size_t first, last;
    bool empty() const { return last < first; }
};
std::vector<Argument> arguments_of(const BracketedText& text, size_t open);

/// The token of the name in front of a "(", behind which generic arguments may stand; npos where there is none.
size_t called_name(const BracketedText& text, size_t open);

/// A call, and what it does to one of its arguments.
struct Taking {
    size_t name = npos; ///< the token of its name; npos where there is no call
    Effect effect = {};
};

/// The call of which the tokens [begin, end) are an argument by themselves.
Taking taking_of(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t begin,
                 size_t end);

/// Whether a path is written.
struct Written {
    bool is = false;
    size_t unknown = npos; ///< the name of a function that the sources do not declare, which may write it
};

/// Of the path at tokens [begin, end): assigned, counted up or down, or passed to a function.
Written written_at(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t begin,
                   size_t end);

/// Whether `a.b.bump(c)` changes its object, where `before` is the last "." and `open` the "(".
bool changes_object(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t before,
                    size_t open);

/// Whether Slang may differentiate a function: it says so, or a macro of capitals may.
bool may_be_differentiable(const BracketedText& text, const FunctionBody& body);

} // namespace spy
