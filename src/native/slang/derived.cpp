// The functions of a module that Slang differentiates.
#include "slang/facts.h"

#include "slang/syntax/constants.h"
#include "slang/syntax/parser.h"

#include <algorithm>
#include <tuple>

namespace spy::syntax {

/// Functions without a derivative of their own that those of a name may run, and their lines.
template <class Wanted>
std::vector<std::pair<std::string, size_t>> Facts::derived(std::string_view function, Wanted is_wanted) const
{
    std::vector<std::pair<std::string, size_t>> found;
    for (const NodeId node : reached(function)) {
        const Function* declared = m_scopes->function(node);
        const bool is_derived = declared && declared->may_be_differentiable &&
            attribute(*m_tree, node, "BackwardDerivative") == none;
        if (!is_derived || !is_wanted(*declared))
            continue;
        found.emplace_back(declared->name, line_of(node));
    }
    return found;
}

std::vector<std::pair<std::string, size_t>> Facts::unread_functions(std::string_view function) const
{
    return derived(function, [&](const Function& declared) { return !m_tree->is_understood(declared.node); });
}

std::vector<std::pair<std::string, size_t>> Facts::pack_functions(std::string_view function) const
{
    const auto is_pack = [&](uint32_t id) {
        const NodeId type = type_of(*m_tree, m_scopes->variables()[id].node);
        return type != none && m_tree->token((*m_tree)[type].first) == "expand";
    };
    return derived(function, [&](const Function& f) { return std::ranges::any_of(f.parameters, is_pack); });
}

std::optional<DerivedSize> Facts::largest_derived(std::string_view function) const
{
    std::optional<DerivedSize> largest;
    derived(function, [&](const Function& declared) {
        DerivedSize size{std::string(declared.name), line_of(declared.node), 0, 0};
        for (const NodeId n : m_tree->inside(declared.node)) {
            size.conditions += m_tree->is(n, Kind::if_) || m_tree->is(n, Kind::conditional);
            size.statements += m_tree->is(n, Kind::expression) || m_tree->is(n, Kind::variables);
        }
        if (!largest || std::tie(largest->conditions, largest->statements) < std::tie(size.conditions, size.statements))
            largest = std::move(size);
        return false;
    });
    return largest;
}

std::optional<LimitedLoop> Facts::longest_loop(std::string_view function) const
{
    std::optional<LimitedLoop> longest;
    const auto trips_of = [&](NodeId loop) {
        const NodeId limit = is_loop(m_tree->kind(loop)) ? attribute(*m_tree, loop, "MaxIters") : none;
        return limit == none || m_tree->count(limit) == 0 ? std::nullopt : value_of(*m_scopes, m_tree->child(limit, 0));
    };
    derived(function, [&](const Function& declared) {
        for (const NodeId n : m_tree->inside(declared.node)) {
            std::optional<long> trips = trips_of(n);
            for (NodeId outer = n; trips && outer != declared.node;)
                *trips *= trips_of(outer = m_tree->parent(outer)).value_or(1);
            if (trips && (!longest || longest->trips < *trips))
                longest = {std::string(declared.name), line_of(n), *trips};
        }
        return false;
    });
    return longest;
}

} // namespace spy::syntax
