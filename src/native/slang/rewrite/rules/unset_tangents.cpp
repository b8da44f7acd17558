// Scalars without a derivative that calls may write, as Slang differentiates them rightly.
//
// `float x = 0; add(x, a);` -> `float x = 0; x = _spy_same_...(x); add(x, a);`, where add may write x: in forward mode
// Slang 2026.12 hands on a derivative of x that nothing set, where what x is has none: numbers, `no_diff` parameters,
// `detach(a)`. The value of a function has one, 0. Done for local scalars and parameters of floats that a call may
// write, and for vectors, matrices and arrays of which it may write an element, after assignments of such values to
// all of it. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Access, syntax::Kind, syntax::NodeId, syntax::Role, syntax::Shape, syntax::Use, syntax::Variable;

class UnsetTangents : private InFunction {
public:
    UnsetTangents(const ParsedSource& source, NodeId function) : InFunction(source, function)
    {
        for (const Use& use : m_uses.all())
            if (use.access == Access::by_reference && is_floats(use.variable) &&
                (use.path.is_part() || is_scalar(use.variable)))
                m_taken.insert(use.variable);
    }

    void search(Places& places) const
    {
        for (const Use& use : m_uses.all()) {
            const NodeId value = m_taken.count(use.variable) && !use.path.is_part() ? set_to(use) : syntax::none;
            std::set<uint32_t> seen;
            if (value != syntax::none && lacks_derivative(value, seen))
                add_barrier_after(m_tree, use.by, variable(use.variable).name, false, places);
        }
    }

private:
    const Variable& variable(uint32_t id) const { return m_scopes.variables()[id]; }
    syntax::Type type_of(uint32_t id) const { return syntax::type_of(m_scopes, variable(id)); }
    bool is_fixed(uint32_t id) const
    {
        const Variable& of = variable(id);
        return of.is_const || of.is_static || of.is_no_diff;
    }

    bool is_floats(uint32_t id) const
    {
        const Role role = variable(id).role;
        return (role == Role::local || role == Role::parameter) && !is_fixed(id) &&
            (type_of(id).is_float || variable(id).type.empty());
    }
    bool is_scalar(uint32_t id) const
    {
        return is_floats(id) && (type_of(id).shape == Shape::scalar || variable(id).type.empty());
    }

    /// The value that a use gives to all of a variable; `none` where it gives none.
    NodeId set_to(const Use& use) const
    {
        const bool is_declared = use.access == Access::declared;
        const NodeId value = is_declared                                     ? m_tree.child(use.by, 2)
            : use.access == Access::written || use.access == Access::updated ? m_tree.child(use.by, 1)
                                                                             : syntax::none;
        return value != syntax::none && m_tree.has(value) ? value : syntax::none;
    }

    /// Whether a value has no derivative: it is made of numbers, and of names that have none. `seen`: variables that
    /// have none if nothing else gives them one.
    bool lacks_derivative(NodeId value, std::set<uint32_t>& seen) const
    {
        for (NodeId n = value; n < value + m_tree[value].size; ++n) {
            const bool is_call = m_tree.is(n, Kind::call) && m_tree.main(m_tree.child(n, 0)) == "detach";
            if (is_call || (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "no_diff"))
                n += m_tree[n].size - 1;
            else if (m_tree.is(n, Kind::name) && may_have_derivative(n, seen))
                return false;
        }
        return true;
    }

    bool may_have_derivative(NodeId name, std::set<uint32_t>& seen) const
    {
        const uint32_t id = m_scopes.variable_of(name);
        const NodeId parent = m_tree.parent(name);
        if (id == syntax::none)
            return m_tree.is(parent, Kind::call) && name == parent + 1 &&
                !syntax::only_reads_arguments(m_tree.main(name));
        const Role role = variable(id).role;
        if (role == Role::global || role == Role::generic || is_fixed(id) || type_of(id).is_discrete ||
            !seen.insert(id).second)
            return false;
        if (role != Role::local || !is_scalar(id) || m_taken.count(id))
            return true;
        const auto uses = m_uses.of(id);
        return std::any_of(uses.begin(), uses.end(), [&](const Use* use) {
            const NodeId value = set_to(*use);
            return value != syntax::none && !lacks_derivative(value, seen);
        });
    }

    std::set<uint32_t> m_taken; ///< scalars that a call may write, and variables of which it may write a part
};

} // namespace

std::vector<Edit> set_unset_tangents(const ParsedSource& source)
{
    return add_barriers(source,
                        [&](NodeId function, Places& places) { UnsetTangents(source, function).search(places); });
}

} // namespace spy
