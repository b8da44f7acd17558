#pragma once
// What the names of a source mean.
#include "slang/syntax/tree.h"

#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spy::syntax {

enum class Role : uint8_t { parameter, local, field, global, generic, this_ };
enum class Direction : uint8_t { in, out, inout, ref };

struct Variable {
    std::string_view name;
    std::string_view type; ///< as written, with the size of `float[2] x`; empty for `let x = e` and `this`
    NodeId node = none;    ///< its declarator or generic; of `this`, the type that it is one of
    NodeId scope = none;   ///< the node in which it is seen
    Role role = Role::local;
    Direction direction = Direction::in; ///< of parameters
    bool is_array = false;               ///< of that type, by `[2]` after the name or the type
    bool is_no_diff = false, is_static = false, is_const = false, is_groupshared = false;
    bool is_doubtful = false; ///< the same scope declares it twice, as the branches of an `#if` do
};

struct Function {
    NodeId node;
    std::string_view name;            ///< `+` of `operator+`
    NodeId owner = none;              ///< the type or extension that it is a method of
    std::vector<uint32_t> parameters; ///< variables
    bool is_mutating = false, is_static = false;
    /// It, or an interface or type around it, says [Differentiable] or the like, or a macro stands there that may.
    bool may_be_differentiable = false;
};

/// One of each kind of declaration by name, in one source.
class Scopes {
public:
    /// `imported`: of the modules that the source imports, which have to live as long.
    explicit Scopes(const Tree& tree, std::vector<const Scopes*> imported = {});

    const Tree& tree() const { return *m_tree; }
    const std::vector<Variable>& variables() const { return m_variables; }
    const std::vector<Function>& functions() const { return m_functions; } ///< in order, with bodies or not

    /// The number of the variable that a `name` node means, or a `declarator` declares; `none` where that is none of
    /// this source: a function, a type, an imported name.
    uint32_t variable_of(NodeId name) const;
    const Variable* find(NodeId name) const;     ///< the same; null
    const Function* function(NodeId node) const; ///< of a `function`, null of others

    /// A function, and the source that declares it.
    struct Callee {
        const Scopes* in;
        const Function* function;
    };
    /// Those of a name, here and imported, which take `count` arguments (SIZE_MAX: any).
    std::vector<Callee> callees(std::string_view name, size_t count = SIZE_MAX) const;
    std::vector<Callee> callees_of(NodeId call) const; ///< those that a call may mean
    /// The declarations of a struct, interface, enum, alias or extension of that name, here and imported.
    std::vector<std::pair<const Scopes*, NodeId>> types(std::string_view name) const;
    /// The fields that types of this source and imported ones have under a name.
    std::vector<std::pair<const Scopes*, const Variable*>> fields(std::string_view name) const;

    /// A macro's name, and a variable that its body names there.
    struct InMacro {
        NodeId name;
        uint32_t variable;
    };
    const std::vector<InMacro>& in_macros() const { return m_in_macros; } ///< in functions, in order

private:
    friend class ScopeBuilder;
    const Tree* m_tree;
    std::vector<const Scopes*> m_imported;
    std::vector<Variable> m_variables;
    std::vector<Function> m_functions;
    std::vector<InMacro> m_in_macros;
    std::vector<uint32_t> m_meaning; ///< by node
    std::unordered_map<NodeId, uint32_t> m_functions_by_node;
    std::multimap<std::string_view, uint32_t> m_functions_by_name, m_fields_by_name;
    std::multimap<std::string_view, NodeId> m_types_by_name;
};

} // namespace spy::syntax
