// Variables that are written in part.
//
// Slang 2026.12 takes variables of one type for one another where branches or loops meet after one was written in
// part:
//     if (a > b) x.p = a; else y.q = b;                   // y is copied over x
//     v.y = a; for (...) { v = sin(v); w = v - w; }       // the loop begins with w for v
// and loses elements of arrays of which some are written in part and others as a whole:
//     c[0].x = a; c[1] = c[0];
// Even values are wrong then. After the last of the statements that write parts, one after the other, the variable is
// passed through an operation that gives the same number. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Access, syntax::Kind, syntax::Loop, syntax::NodeId, syntax::Role, syntax::Shape, syntax::Use;

class WrittenParts : private InFunction {
public:
    WrittenParts(const ParsedSource& source, NodeId function) : InFunction(source, function)
    {
        for (const NodeId n : m_tree.inside(function))
            if (m_tree.is(n, Kind::if_) || m_tree.is(n, Kind::switch_))
                m_branches.push_back(n);
        for (const Loop& loop : m_uses.loops())
            if (!loop.is_unrolled)
                m_loops.push_back(loop.node);
    }

    void search(Places& places)
    {
        for (const Use& use : m_uses.all())
            if (use.may_write() && use.access != Access::declared)
                note(use);
        for (const auto& [id, variable] : m_variables) {
            const bool is_mixed = mixes_elements(variable);
            for (const Write& write : variable.writes)
                if (is_mixed ? write.is_known : write.is_part && is_lost(variable, write) && !goes_on(variable, write))
                    add_barrier_after(m_tree, write.use->path.root, m_scopes.variables()[id].name, variable.is_number,
                                      places);
        }
    }

private:
    struct Write {
        const Use* use;
        bool is_whole, is_part;
        bool is_known = false; ///< it is of an array's element that the compiler may know
    };
    struct Variable {
        syntax::Type type;
        bool is_number = false; ///< of floats, vectors and matrices too
        std::vector<Write> writes = {};
    };

    void note(const Use& use)
    {
        const syntax::Variable& used = m_scopes.variables()[use.variable];
        const bool is_field = used.role == Role::field;
        const uint32_t id = is_field ? object() : use.variable;
        if (id == syntax::none || used.is_static || used.is_const || used.is_no_diff || used.is_groupshared ||
            used.is_doubtful || used.direction == syntax::Direction::ref || used.type.starts_with("_spy_") ||
            m_tree.function_of(use.path.root) != m_uses.function() || !may_be_changed(id))
            return;
        const auto [known, is_new] = m_variables.try_emplace(id);
        Variable& variable = known->second;
        if (is_new) {
            variable.type = syntax::type_of(m_scopes, m_scopes.variables()[id]);
            variable.is_number = is_float_number(m_scopes, id);
        }
        const bool is_unknown = use.access == Access::unknown && !variable.is_number && is_called_alone(use.by);
        const bool is_part = is_field || use.path.is_part();
        variable.writes.push_back(
            {&use, !is_part || is_unknown, is_part || is_unknown, is_known_element(variable, use)});
    }

    /// Whether a call is a statement, or a macro that stands for one.
    bool is_called_alone(NodeId call) const
    {
        const NodeId statement = m_tree.statement_of(call);
        const NodeId first = m_tree.child(statement, 0);
        return m_tree.is(statement, Kind::expression) &&
            (first == call || (m_tree.is(first, Kind::call) && m_tree.child(first, 0) == call));
    }

    /// `this` of a method that changes its object.
    uint32_t object() const
    {
        const syntax::Function* method = m_scopes.function(m_uses.function());
        if (method == nullptr || !syntax::is_marked(m_tree, method->node, "mutating"))
            return syntax::none;
        const auto& all = m_scopes.variables();
        const auto found = std::find_if(all.begin(), all.end(), [&](const syntax::Variable& variable) {
            return variable.role == Role::this_ && variable.node == method->owner;
        });
        return found == all.end() ? syntax::none : uint32_t(found - all.begin());
    }

    /// Whether it is of values, which can be copied.
    bool may_be_changed(uint32_t id) const
    {
        const syntax::Variable& variable = m_scopes.variables()[id];
        if (variable.role != Role::local && variable.role != Role::parameter && variable.role != Role::this_)
            return false;
        const syntax::Type type = syntax::type_of(m_scopes, variable);
        const bool is_of_values = type.is_float || type.is_discrete || type.node != syntax::none;
        switch (type.shape) {
        case Shape::vector:
        case Shape::matrix:
        case Shape::structure: return true;
        case Shape::array: return is_of_values;
        default: return is_float_number(m_scopes, id);
        }
    }

    bool is_known_element(const Variable& variable, const Use& use) const
    {
        if (use.access == Access::unknown || use.path.steps.empty() || !is_array(variable, use))
            return false;
        const NodeId first = use.path.steps.front();
        for (const NodeId n : m_tree.inside(first))
            if (n > m_tree.child(first, 1) - 1 && m_tree.is(n, Kind::name) && is_run_time(m_scopes.variable_of(n)))
                return false;
        return true;
    }

    bool is_array(const Variable& variable, const Use& use) const
    {
        return m_tree.is(use.path.steps.front(), Kind::index) && variable.type.shape == Shape::array;
    }

    /// A parameter, or a counter of a loop that stays.
    bool is_run_time(uint32_t id) const
    {
        return id != syntax::none &&
            (m_scopes.variables()[id].role == Role::parameter ||
             std::any_of(m_loops.begin(), m_loops.end(),
                         [&](NodeId loop) { return m_uses.loop(loop)->counter == id; }));
    }

    /// Whether one element is written in part, and another as a whole, which may come after it.
    bool mixes_elements(const Variable& variable) const
    {
        for (const Write& part : variable.writes)
            for (const Write& whole : variable.writes)
                if (part.is_known && whole.is_known && part.use->path.steps.size() > whole.use->path.steps.size() &&
                    may_follow(*part.use, *whole.use))
                    return true;
        return false;
    }

    bool may_follow(const Use& first, const Use& second) const
    {
        return first.path.root < second.path.root ||
            std::any_of(
                   m_uses.loops().begin(), m_uses.loops().end(),
                   [&](const Loop& loop) {
                       return m_tree.holds(loop.node, first.path.root) && m_tree.holds(loop.node, second.path.root);
                   });
    }

    /// Whether Slang may take another variable for one after a write of a part of it.
    bool is_lost(const Variable& variable, const Write& part) const
    {
        const NodeId loop = m_uses.loop_around(part.use->path.root);
        bool any = variable.is_number, copied = false;
        for (const auto& [id, other] : m_variables) {
            if (!are_alike(variable.type, other.type))
                continue;
            for (const Write& write : other.writes) {
                any |= &other != &variable || write.is_whole;
                copied |= loop != syntax::none && write.is_whole && m_tree.holds(loop, write.use->path.root);
            }
        }
        return any && (copied || is_followed(part.use->path.root, loop));
    }

    /// Whether a branch is around a node, or a branch or loop after it, within the loop around it.
    bool is_followed(NodeId n, NodeId loop) const
    {
        const NodeId within = loop == syntax::none ? m_uses.function() : loop;
        return std::any_of(m_branches.begin(), m_branches.end(),
                           [&](NodeId fork) {
                               return fork != within && m_tree.holds(within, fork) && fork + m_tree[fork].size > n;
                           }) ||
            std::any_of(m_loops.begin(), m_loops.end(), [&](NodeId fork) {
                   return fork != within && m_tree.holds(within, fork) && (fork > n || loop != syntax::none);
               });
    }

    /// Whether two may be of one type.
    static bool are_alike(const syntax::Type& one, const syntax::Type& two)
    {
        const auto is_open = [](const syntax::Type& type) {
            return type.shape == Shape::unknown || type.name == "vector" || type.name == "matrix";
        };
        return is_open(one) || is_open(two) ||
            (one.shape == two.shape && one.name == two.name && one.dimensions == two.dimensions);
    }

    /// Whether the next statement writes a part of the same variable, or passes it on.
    bool goes_on(const Variable& variable, const Write& part) const
    {
        const NodeId statement = m_tree.statement_of(part.use->path.root);
        const NodeId next = statement + m_tree[statement].size;
        if (!m_tree.may_hold_statements(statement) || next >= m_tree.size() ||
            m_tree.parent(next) != m_tree.parent(statement))
            return false;
        return std::any_of(variable.writes.begin(), variable.writes.end(), [&](const Write& write) {
            return write.use->by != syntax::none && m_tree.statement_of(write.use->path.root) == next &&
                (write.is_part ? is_plain(next) : passes_on(write.use->by));
        });
    }

    bool is_plain(NodeId statement) const
    {
        return m_tree.is(statement, Kind::expression) || m_tree.is(statement, Kind::variables);
    }

    /// `v = -(-v)` or `v = _spy_same_...(v)`.
    bool passes_on(NodeId assignment) const
    {
        const std::string text = m_tree.plain(assignment);
        const size_t value = text.find('=') + 1;
        return text.compare(value, 3, "-(-") == 0 || text.compare(value, 10, "_spy_same_") == 0;
    }

    std::vector<NodeId> m_branches, m_loops;  ///< that stay loops
    std::map<uint32_t, Variable> m_variables; ///< that are changed
};

} // namespace

std::vector<Edit> rewrite_parts(const ParsedSource& source)
{
    return add_barriers(source,
                        [&](NodeId function, Places& places) { WrittenParts(source, function).search(places); });
}

} // namespace spy
