#include "slang/syntax/scopes.h"

#include <algorithm>

namespace spy::syntax {

/// Walks a tree once, with the variables that are seen at each place by name.
class ScopeBuilder {
public:
    explicit ScopeBuilder(Scopes& scopes) : m_scopes(scopes), m_tree(scopes.tree()) { }

    void build()
    {
        m_scopes.m_meaning.assign(m_tree.size(), none);
        find_types();
        scope(Tree::root, [&] {
            declare_members(Tree::root, Role::global);
            inside(Tree::root);
        });
    }

private:
    template <class Inside>
    void scope(NodeId node, Inside inside)
    {
        const size_t declared = m_seen.size();
        const NodeId outer = m_scope;
        m_scope = node;
        inside();
        m_scope = outer;
        for (; m_seen.size() > declared; m_seen.pop_back())
            m_by_name[m_seen.back()].pop_back();
    }

    void see(uint32_t variable)
    {
        const std::string_view name = m_scopes.m_variables[variable].name;
        m_by_name[name].push_back(variable);
        m_seen.push_back(name);
    }

    uint32_t declare(Variable variable)
    {
        variable.scope = m_scope;
        if (const uint32_t other = look_up(variable.name);
            other != none && m_scopes.m_variables[other].scope == m_scope)
            variable.is_doubtful = m_scopes.m_variables[other].is_doubtful = true;
        const uint32_t id = uint32_t(m_scopes.m_variables.size());
        if (variable.node != none && variable.role != Role::this_)
            m_scopes.m_meaning[variable.node] = id;
        m_scopes.m_variables.push_back(variable);
        see(id);
        return id;
    }

    uint32_t look_up(std::string_view name) const
    {
        const auto found = m_by_name.find(name);
        return found == m_by_name.end() || found->second.empty() ? none : found->second.back();
    }

    // --- declarations
    void find_types()
    {
        for (NodeId n = 0; n < m_tree.size(); ++n)
            if (m_tree.is(n, Kind::alias) || (m_tree.is(n, Kind::type) && !is_extension(n)))
                m_scopes.m_types_by_name.emplace(m_tree.main(n), n);
            else if (is_extension(n))
                m_scopes.m_types_by_name.emplace(base_name(m_tree.child(n, 2)), n);
    }

    bool is_extension(NodeId n) const { return m_tree.is(n, Kind::type) && m_tree.main(n) == "extension"; }

    /// `S` of `S<T>`, `ns::S`.
    std::string_view base_name(NodeId type) const
    {
        while (m_tree.is(type, Kind::generic_use))
            type = m_tree.child(type, 0);
        return m_tree.main(type);
    }

    Variable variable_at(NodeId declarator, Role role) const
    {
        Variable variable;
        variable.name = m_tree.main(declarator);
        variable.node = declarator;
        variable.role = role;
        const NodeId type = type_of(m_tree, declarator);
        if (type != none)
            variable.type = m_tree.text(type);
        variable.is_array = m_tree.count(m_tree.child(declarator, 0)) > 0 || m_tree.is(type, Kind::index);
        const NodeId modifiers = m_tree.child(m_tree.parent(declarator), 0);
        for (const NodeId c : m_tree.children(modifiers)) {
            const std::string_view word = m_tree.main(c);
            if (word == "out" || word == "inout")
                variable.direction = word == "out" && variable.direction == Direction::in ? Direction::out
                                                                                          : Direction::inout;
            else if (word.ends_with("ref") && word != "constref" && word != "__constref")
                variable.direction = Direction::ref;
            variable.is_no_diff |= word == "no_diff";
            variable.is_static |= word == "static";
            variable.is_const |= word == "const" || word == "let" || word == "constexpr";
            variable.is_groupshared |= word == "groupshared";
        }
        if (role == Role::parameter && is_marked(m_tree, m_tree.parent(declarator), "in") &&
            variable.direction == Direction::out)
            variable.direction = Direction::inout; // `in out`
        return variable;
    }

    /// Fields, or what a file or namespace declares: seen in front of where they stand, too.
    void declare_members(NodeId members, Role role)
    {
        for (const NodeId n : m_tree.children(members)) {
            if (m_tree.is(n, Kind::property))
                declare_field(n, role);
            else if (m_tree.is(n, Kind::namespace_))
                declare_members(m_tree.child(n, 1), role); // seen from outside by `using`, too
            else if (m_tree.is(n, Kind::type) && role == Role::global && is_buffer(n))
                declare_members(m_tree.child(n, 5), role);
            else if (m_tree.is(n, Kind::variables))
                for (const NodeId c : m_tree.children(n))
                    if (m_tree.is(c, Kind::declarator))
                        declare_field(c, role);
        }
    }

    bool is_buffer(NodeId type) const
    {
        const std::string_view word = m_tree.token(m_tree[m_tree.child(type, 0)].last);
        return word == "cbuffer" || word == "tbuffer";
    }

    void declare_field(NodeId node, Role role)
    {
        if (m_scopes.m_meaning[node] != none) { // seen again by an extension, or in its own type
            see(m_scopes.m_meaning[node]);
            return;
        }
        Variable variable = m_tree.is(node, Kind::declarator) ? variable_at(node, role) : Variable();
        if (!m_tree.is(node, Kind::declarator)) {
            variable.name = m_tree.main(node);
            variable.node = node;
            variable.role = role;
            const NodeId type = m_tree.has(m_tree.child(node, 1)) ? m_tree.child(node, 1) : m_tree.child(node, 2);
            variable.type = m_tree.text(type);
        }
        const uint32_t id = declare(variable);
        if (role == Role::field)
            m_scopes.m_fields_by_name.emplace(variable.name, id);
    }

    void type(NodeId n)
    {
        scope(n, [&] {
            visit(m_tree.child(n, 0));
            visit(m_tree.child(n, 1));
            Variable self;
            self.name = "this";
            self.node = n;
            self.role = Role::this_;
            declare(self);
            inherit(is_extension(n) ? m_tree.child(n, 2) : none, n, 0);
            const NodeId members = m_tree.child(n, 5);
            if (members != none && m_tree.has(members))
                declare_members(members, Role::field);
            m_type = n;
            for (size_t k = 2; k < 6; ++k)
                visit(m_tree.child(n, k));
        });
    }

    /// The fields of the type that is extended, and of bases.
    void inherit(NodeId extended, NodeId type, int depth)
    {
        std::vector<NodeId> names;
        if (extended != none)
            names.push_back(extended);
        if (const NodeId bases = m_tree.child(type, 3); bases != none)
            for (const NodeId base : m_tree.children(bases))
                names.push_back(base);
        for (const NodeId name : names) {
            const auto [first, last] = m_scopes.m_types_by_name.equal_range(base_name(name));
            for (auto found = first; found != last && depth < 8; ++found)
                if (found->second != type && m_tree.is(found->second, Kind::type) && !is_extension(found->second)) {
                    inherit(none, found->second, depth + 1);
                    if (const NodeId members = m_tree.child(found->second, 5); m_tree.has(members))
                        declare_members(members, Role::field);
                }
        }
    }

    void function(NodeId n)
    {
        const NodeId type = m_type;
        const bool is_function = m_tree.is(n, Kind::function);
        Function function{n, m_tree.main(n), m_function == none ? type : none, {}, false, false, false};
        scope(n, [&] {
            const NodeId outer = m_function;
            m_function = n;
            for (const NodeId c : m_tree.children(n)) {
                visit(c);
                if (is_function && m_tree.is(c, Kind::parameters))
                    for (const NodeId parameter : m_tree.children(c))
                        if (const uint32_t id = m_scopes.m_meaning[m_tree.child(parameter, 2)]; id != none)
                            function.parameters.push_back(id);
            }
            m_function = outer;
        });
        if (!is_function)
            return;
        function.is_static = is_marked(m_tree, n, "static");
        function.is_mutating = is_marked(m_tree, n, "mutating") || function.name == "__init";
        for (const NodeId c : m_tree.children(m_tree.child(n, 0))) {
            const std::string_view word = m_tree.main(c);
            const bool is_macro = m_tree.is(c, Kind::modifier) && word.size() > 1 &&
                std::none_of(word.begin(), word.end(), [](char letter) { return letter >= 'a' && letter <= 'z'; });
            function.may_be_differentiable |= is_macro || word.ends_with("ifferentiable");
        }
        m_scopes.m_functions_by_node.emplace(n, uint32_t(m_scopes.m_functions.size()));
        m_scopes.m_functions_by_name.emplace(function.name, uint32_t(m_scopes.m_functions.size()));
        m_scopes.m_functions.push_back(std::move(function));
    }

    // --- the walk
    void inside(NodeId n)
    {
        for (const NodeId c : m_tree.children(n))
            visit(c);
    }

    void visit(NodeId n)
    {
        switch (m_tree.kind(n)) {
        case Kind::type: {
            const NodeId outer = m_type;
            type(n);
            m_type = outer;
            break;
        }
        case Kind::namespace_:
            scope(n, [&] {
                declare_members(m_tree.child(n, 1), Role::global);
                inside(n);
            });
            break;
        case Kind::function:
        case Kind::accessor:
        case Kind::lambda:
        case Kind::subscript: function(n); break;
        case Kind::block:
        case Kind::for_:
        case Kind::if_:
        case Kind::while_: scope(n, [&] { inside(n); }); break;
        case Kind::parameter:
            inside(n);
            if (const NodeId c = m_tree.child(n, 2); !m_tree.main(c).empty())
                declare(variable_at(c, Role::parameter));
            break;
        case Kind::declarator:
            inside(n);
            if (m_scopes.m_meaning[n] == none && m_tree.is(m_tree.parent(n), Kind::variables))
                declare(variable_at(n, m_function == none ? Role::global : Role::local));
            break;
        case Kind::generic: {
            inside(n);
            Variable variable;
            variable.name = m_tree.main(n);
            variable.node = n;
            variable.role = Role::generic;
            variable.is_const = true;
            declare(variable);
            break;
        }
        case Kind::name: name(n); break;
        case Kind::member:
            inside(n);
            field_of_this(n);
            break;
        default: inside(n);
        }
    }

    void name(NodeId n)
    {
        const std::string_view word = m_tree.main(n);
        m_scopes.m_meaning[n] = look_up(word);
        const Macro* macro = m_tree.macro(word);
        if (macro == nullptr || m_function == none)
            return;
        for (const std::string_view part : words_of(macro->body))
            if (const uint32_t variable = look_up(part); variable != none)
                m_scopes.m_in_macros.push_back({n, variable});
    }

    void field_of_this(NodeId n)
    {
        const NodeId base = m_tree.child(n, 0);
        if (!m_tree.is(base, Kind::name) || m_tree.main(base) != "this")
            return;
        const auto found = m_by_name.find(m_tree.main(n));
        if (found == m_by_name.end())
            return;
        for (size_t i = found->second.size(); i-- > 0;)
            if (m_scopes.m_variables[found->second[i]].role == Role::field) {
                m_scopes.m_meaning[n] = found->second[i];
                return;
            }
    }

    Scopes& m_scopes;
    const Tree& m_tree;
    std::unordered_map<std::string_view, std::vector<uint32_t>> m_by_name;
    std::vector<std::string_view> m_seen;
    NodeId m_scope = none, m_type = none, m_function = none;
};

Scopes::Scopes(const Tree& tree, std::vector<const Scopes*> imported) : m_tree(&tree), m_imported(std::move(imported))
{
    ScopeBuilder(*this).build();
}

uint32_t Scopes::variable_of(NodeId name) const { return name < m_meaning.size() ? m_meaning[name] : none; }

const Variable* Scopes::find(NodeId name) const
{
    const uint32_t id = variable_of(name);
    return id == none ? nullptr : &m_variables[id];
}

const Function* Scopes::function(NodeId node) const
{
    const auto found = m_functions_by_node.find(node);
    return found == m_functions_by_node.end() ? nullptr : &m_functions[found->second];
}

std::vector<Scopes::Callee> Scopes::callees_of(NodeId call) const
{
    return callees(m_tree->main(callee_of(*m_tree, call)), m_tree->count(call) - 1);
}

std::vector<Scopes::Callee> Scopes::callees(std::string_view name, size_t count) const
{
    std::vector<Callee> exact, longer;
    const auto collect = [&](const Scopes& scopes) {
        const auto [first, last] = scopes.m_functions_by_name.equal_range(name);
        for (auto found = first; found != last; ++found) {
            const Function& function = scopes.m_functions[found->second];
            if (count == SIZE_MAX || function.parameters.size() == count)
                exact.push_back({&scopes, &function});
            else if (function.parameters.size() > count)
                longer.push_back({&scopes, &function});
        }
    };
    collect(*this);
    for (const Scopes* scopes : m_imported)
        collect(*scopes);
    return exact.empty() ? longer : exact; // some parameters may have defaults
}

std::vector<std::pair<const Scopes*, NodeId>> Scopes::types(std::string_view name) const
{
    std::vector<std::pair<const Scopes*, NodeId>> result;
    const auto collect = [&](const Scopes& scopes) {
        const auto [first, last] = scopes.m_types_by_name.equal_range(name);
        for (auto found = first; found != last; ++found)
            result.emplace_back(&scopes, found->second);
    };
    collect(*this);
    for (const Scopes* scopes : m_imported)
        collect(*scopes);
    return result;
}

std::vector<std::pair<const Scopes*, const Variable*>> Scopes::fields(std::string_view name) const
{
    std::vector<std::pair<const Scopes*, const Variable*>> result;
    const auto collect = [&](const Scopes& scopes) {
        const auto [first, last] = scopes.m_fields_by_name.equal_range(name);
        for (auto found = first; found != last; ++found)
            result.emplace_back(&scopes, &scopes.m_variables[found->second]);
    };
    collect(*this);
    for (const Scopes* scopes : m_imported)
        collect(*scopes);
    return result;
}

} // namespace spy::syntax
