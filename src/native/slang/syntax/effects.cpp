#include "slang/syntax/effects.h"

#include "slang/syntax/types.h"

#include <algorithm>

namespace spy::syntax {
bool Effects::none_of(const Scopes& scopes, NodeId function)
{
    const auto [known, is_new] = m_known.try_emplace({&scopes, function}, true);
    if (!is_new)
        return known->second;
    const Tree& tree = scopes.tree();
    const Uses uses(scopes, function);
    bool result = uses.is_understood() && body_of(tree, function) != none && writes_only_own(uses, scopes);
    for (const NodeId n : tree.inside(function))
        result = result && has_none(scopes, n);
    return m_known[{&scopes, function}] = result;
}

bool Effects::writes_only_own(const Uses& uses, const Scopes& scopes) const
{
    const bool is_maker = scopes.tree().main(uses.function()) == "__init"; // what it makes is its own
    return std::all_of(uses.all().begin(), uses.all().end(), [&](const Use& use) {
        const Variable& variable = scopes.variables()[use.variable];
        const bool is_own = (variable.role == Role::local && !variable.is_groupshared) ||
            (variable.role == Role::parameter && variable.direction != Direction::ref) ||
            (is_maker && variable.role == Role::field && !variable.is_static);
        if (variable.is_static && variable.role == Role::local && !variable.is_const)
            return false;
        if ((variable.role == Role::global || variable.role == Role::field) &&
            is_writable_memory(type_of(scopes, variable)))
            return false;
        if (!use.may_write() || use.access == Access::declared)
            return true;
        if (!is_own || use.access == Access::unknown)
            return false;
        const Shape shape = type_of(scopes, variable).shape;
        return !use.path.is_part() || shape == Shape::structure || shape == Shape::array || shape == Shape::vector ||
            shape == Shape::matrix;
    });
}

bool Effects::has_none(const Scopes& scopes, NodeId n)
{
    const Tree& tree = scopes.tree();
    switch (tree.kind(n)) {
    case Kind::discard:
    case Kind::throw_:
    case Kind::defer:
    case Kind::lambda:
    case Kind::code:
    case Kind::type:
    case Kind::alias: return false;
    case Kind::call: return call_has_none(scopes, n);
    case Kind::binary: return callees_have_none(scopes, tree.main(n), 2);
    case Kind::prefix: return tree.main(n) != "new" && callees_have_none(scopes, tree.main(n), 1);
    default: return true;
    }
}

bool Effects::callees_have_none(const Scopes& scopes, std::string_view name, size_t count)
{
    const std::vector<Scopes::Callee> found = scopes.callees(name, count);
    return std::all_of(found.begin(), found.end(),
                       [&](const Scopes::Callee& callee) { return none_of(*callee.in, callee.function->node); });
}

bool Effects::call_has_none(const Scopes& scopes, NodeId call)
{
    const Tree& tree = scopes.tree();
    NodeId callee = tree.child(call, 0);
    if (tree.is(callee, Kind::generic_use))
        callee = tree.child(callee, 0);
    const std::string_view name = tree.main(callee);
    const bool is_method = tree.is(callee, Kind::member);
    if ((!is_method && !tree.is(callee, Kind::name)) || tree.macro(name) != nullptr)
        return false;
    if (const Variable* variable = scopes.find(callee)) // T(0)
        return variable->role == Role::generic;
    if (!scopes.callees(name).empty())
        return !scopes.callees(name, tree.count(call) - 1).empty() &&
            callees_have_none(scopes, name, tree.count(call) - 1);
    if (is_method)
        return only_reads_object(name);
    if (!scopes.types(name).empty()) // a value of a struct
        return callees_have_none(scopes, "__init", tree.count(call) - 1);
    return only_reads_arguments(name) && name != "print" && name != "printf";
}

} // namespace spy::syntax
