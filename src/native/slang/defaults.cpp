// Which default values Slang cannot work out for a call.
#include "slang/facts.h"

#include "slang/syntax/scopes.h"
#include "slang/syntax/tree.h"

namespace spy::syntax {

std::vector<std::pair<std::string, size_t>> Facts::dependent_defaults(std::string_view name) const
{
    std::vector<std::pair<std::string, size_t>> found;
    for (const Variable& variable : m_scopes->variables()) {
        if ((variable.role != Role::parameter && variable.role != Role::field) ||
            !m_tree->is(variable.node, Kind::declarator))
            continue;
        NodeId owner = m_tree->parent(variable.node);
        while (owner != none && !m_tree->is(owner, Kind::function) && !m_tree->is(owner, Kind::type))
            owner = m_tree->parent(owner);
        const NodeId value = m_tree->child(variable.node, 2);
        if (owner == none || m_tree->main(owner) != name || !m_tree->has(value))
            continue;
        const auto is_of_call = [&](NodeId n) {
            const Variable* meant = m_tree->is(n, Kind::name) ? m_scopes->find(n) : nullptr;
            return meant != nullptr && !meant->is_static &&
                (meant->role == Role::parameter || meant->role == Role::field || meant->role == Role::this_);
        };
        bool is_dependent = is_of_call(value);
        for (const NodeId n : m_tree->inside(value))
            is_dependent |= is_of_call(n);
        if (is_dependent)
            found.emplace_back(variable.name, line_of(variable.node));
    }
    return found;
}

} // namespace spy::syntax
