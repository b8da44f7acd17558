// Elements that are read at two places which may be one.
//
// `x[i + 4] * x[(2 * i + 1) % 8]` in a loop, `s.z[n] + s.z[0]`, `e[i].p * e[k].p` -> `pick(x, int(i + 4)) * ...`, with
// functions `_spy_pick_...` for elements of any array, vector or matrix, declared in front. Where both are one
// element, Slang 2026.12 loses the share of one in the reverse derivative. Reads whose indices can never be equal
// (`x[i]` and `x[i + 1]`) stay, as do those that change in the loop beside ones that do not. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Access, syntax::Kind, syntax::Loop, syntax::Aliasing, syntax::NodeId, syntax::Role, syntax::Shape,
    syntax::Use;

class ReadElements : private InFunction {
public:
    ReadElements(const ParsedSource& source, NodeId function) : InFunction(source, function)
    {
        for (const Use& use : m_uses.all())
            if (use.access != Access::declared && (has_index(use) || (is_update(use) && use.path.steps.size() == 1)))
                m_paths.push_back(&use);
    }

    /// The reads whose share of the derivative may be lost.
    std::vector<const Use*> lost() const
    {
        std::vector<const Use*> found;
        for (const Use* path : m_paths)
            if (path->access == Access::read && has_elements(*path) &&
                (std::any_of(m_paths.begin(), m_paths.end(),
                             [&](const Use* other) { return may_alias(*path, *other); }) ||
                 (is_still(*path, 0) && is_used_as_a_whole(*path))))
                found.push_back(path);
        return found;
    }

    /// `pick(x, int(i))`
    void replace(const Use& path, const std::string& pick, Changes& changes) const
    {
        for (const NodeId step : path.path.steps)
            if (m_tree.is(step, Kind::index)) {
                const size_t open = m_tree.tokens()[m_tree[m_tree.child(step, 1)].first - 1].begin;
                changes.before(m_tree.begin(step), pick + "(");
                changes.replace(open, open + 1, ", int(");
                changes.replace(m_tree.end(step) - 1, m_tree.end(step), "))");
            }
    }

    /// `s.v[i] += e;` -> `s.v[i] = pick(s.v, int(i)) + (e);`: after an update, Slang loses what such a call reads of a
    /// field.
    void write_out(const std::vector<const Use*>& lost, const std::string& pick, Changes& changes) const
    {
        for (const Use* use : m_paths) {
            const bool is_of_lost = std::any_of(lost.begin(), lost.end(),
                                                [&](const Use* read) { return read->variable == use->variable; });
            if (!is_of_lost || !is_update(*use) || m_uses.loop_around(use->path.root) != syntax::none ||
                !may_be_written_out(*use))
                continue;
            const std::string read = read_of(use->path.whole, pick);
            const size_t sign = m_tree.tokens()[m_tree[use->by].main].begin, end = m_tree.end(use->by);
            const char operation = m_tree.main(use->by)[0];
            if (m_tree.is(use->by, Kind::assign)) {
                changes.replace(sign, sign + 2, cat("= ", read, " ", std::string(1, operation), " ("));
                changes.after(end, ")");
            } else {
                changes.replace(sign, sign + 2, cat("= ", read, " ", std::string(1, operation), " (1)"));
            }
        }
    }

private:
    bool has_index(const Use& use) const
    {
        return std::any_of(use.path.steps.begin(), use.path.steps.end(),
                           [&](NodeId step) { return m_tree.is(step, Kind::index); });
    }
    static bool is_update(const Use& use) { return use.access == Access::updated; }
    static bool is_written(const Use& use) { return use.access == Access::written || use.access == Access::updated; }
    NodeId index_of(NodeId step) const { return m_tree.is(step, Kind::index) ? m_tree.child(step, 1) : syntax::none; }

    /// Whether what is indexed is an array of floats or structs, a vector or a matrix, as far as the sources show.
    bool has_elements(const Use& path) const
    {
        const syntax::Variable& variable = m_scopes.variables()[path.variable];
        if (variable.is_static || variable.is_doubtful || m_tree.is(path.path.root, Kind::declarator) ||
            (variable.role != Role::local && variable.role != Role::parameter && variable.role != Role::field))
            return false;
        return std::all_of(path.path.steps.begin(), path.path.steps.end(), [&](NodeId step) {
            if (!m_tree.is(step, Kind::index))
                return true;
            const syntax::Type whole = syntax::type_of_value(m_scopes, m_tree.child(step, 0));
            const syntax::Type element = syntax::type_of_value(m_scopes, step);
            return m_tree.count(step) == 2 && whole.has_elements() &&
                (is_of_floats(element) || element.shape == Shape::structure || element.shape == Shape::generic ||
                 (element.shape == Shape::array && (element.is_float || element.node != syntax::none)));
        });
    }

    // --- indices
    bool is_runtime(NodeId step) const { return index_of(step) != syntax::none && !m_uses.is_known(index_of(step)); }

    /// Whether one that the compiler does not know is the same in all trips of the loops around it.
    bool is_still(NodeId step) const
    {
        return is_runtime(step) && std::all_of(m_uses.loops().begin(), m_uses.loops().end(), [&](const Loop& loop) {
                   return loop.is_unrolled || !m_tree.holds(loop.node, step) ||
                       m_uses.is_invariant(index_of(step), loop.node);
               });
    }
    bool is_still(const Use& path, size_t from) const
    {
        return std::any_of(path.path.steps.begin() + long(std::min(from, path.path.steps.size())),
                           path.path.steps.end(), [&](NodeId step) { return is_still(step); });
    }

    /// Whether one in an unrolled loop may be the same in two of its trips.
    bool may_repeat(NodeId index, NodeId loop) const
    {
        const Loop* unrolled = index == syntax::none ? nullptr : m_uses.loop(m_tree.loop_of(index));
        if (unrolled == nullptr || unrolled->node == loop || m_uses.is_known(index))
            return false;
        size_t counters = 0;
        bool is_sum = true, is_changed = false;
        for (NodeId n = index; n < index + m_tree[index].size; ++n) {
            const uint32_t id = m_scopes.variable_of(n);
            if (id != syntax::none && m_uses.is_known_variable(id))
                ++counters;
            else if (id != syntax::none)
                is_changed |= m_uses.may_write(id, m_tree.child(unrolled->node, m_tree.count(unrolled->node) - 1));
            is_sum &= m_tree.is(n, Kind::name) || m_tree.is(n, Kind::literal) ||
                (m_tree.is(n, Kind::binary) && (m_tree.main(n) == "+" || m_tree.main(n) == "-"));
        }
        return is_changed || (counters > 0 && !(is_sum && counters == 1));
    }

    /// Whether two are one number, where Slang loses a share.
    Aliasing aliasing(NodeId one, NodeId two, NodeId loop, bool writes) const
    {
        const Aliasing found = m_uses.aliasing(one, two, loop);
        if (found != Aliasing::possible)
            return found;
        if (m_uses.is_known(one) && m_uses.is_known(two))
            return m_tree.plain(one) == m_tree.plain(two) ? Aliasing::same : Aliasing::never;
        if (loop == syntax::none || writes)
            return Aliasing::possible;
        return m_uses.is_invariant(one, loop) == m_uses.is_invariant(two, loop) ? Aliasing::possible : Aliasing::never;
    }

    // --- paths
    /// Whether Slang may lose a read beside another use of the variable: the use reads another place that may be the
    /// same, equally often; or, in a loop, writes one.
    bool may_alias(const Use& path, const Use& other) const
    {
        const NodeId loop = m_uses.loop_around(path.path.root);
        if (path.variable != other.variable ||
            (loop != m_uses.loop_around(other.path.root) && !is_lost_apart(path, other, loop)))
            return false;
        const auto& steps = path.path.steps;
        if (&path == &other) // of itself, in an unrolled loop
            return std::any_of(steps.begin(), steps.end(),
                               [&](NodeId step) { return may_repeat(index_of(step), loop); });
        const bool is_run_time = std::any_of(steps.begin(), steps.end(), [&](NodeId step) { return is_runtime(step); });
        if (is_written(other)
                ? loop == syntax::none && other.path.root > path.path.root && !(is_update(other) && is_run_time)
                : !is_run_time)
            return false;
        const size_t count = std::min(steps.size(), other.path.steps.size());
        for (size_t k = 0; k < count; ++k) {
            const NodeId one = index_of(steps[k]), two = index_of(other.path.steps[k]);
            if ((one == syntax::none) != (two == syntax::none)) // `v[i]` before `v.x += a`
                return is_update(other) && loop == syntax::none;
            if (one == syntax::none && m_tree.main(steps[k]) != m_tree.main(other.path.steps[k]))
                return false;
            const Aliasing found = one == syntax::none ? Aliasing::same : aliasing(one, two, loop, is_written(other));
            if (found != Aliasing::same)
                return found == Aliasing::possible;
        }
        return !is_written(other) && is_still(path, count); // e[1].q[i] beside e[1]
    }

    /// Whether a read beside one in another loop, or outside, may be lost: its index stays the same, and it is in a
    /// loop or the other's index does not change either.
    bool is_lost_apart(const Use& path, const Use& other, NodeId loop) const
    {
        const auto changes = [&](NodeId step) { return is_runtime(step) && !is_still(step); };
        return !is_written(other) && is_still(path, 0) &&
            (loop != syntax::none || std::none_of(other.path.steps.begin(), other.path.steps.end(), changes));
    }

    /// Whether the variable, or a field that the first index is in, is used as one value beside its elements, or given
    /// that of another variable: `In c = s;` beside `s.q[i]`, which Slang reads as one value.
    bool is_used_as_a_whole(const Use& path) const
    {
        const bool is_field = m_scopes.variables()[path.variable].role == Role::field;
        return std::any_of(m_uses.all().begin(), m_uses.all().end(), [&](const Use& use) {
            const bool is_object = is_field && m_scopes.variables()[use.variable].role == Role::this_;
            if (is_object && use.path.steps.empty())
                return !is_written(use);
            if (use.variable != path.variable)
                return false;
            size_t k = 0;
            while (k < use.path.steps.size() && k < path.path.steps.size() &&
                   index_of(path.path.steps[k]) == syntax::none && index_of(use.path.steps[k]) == syntax::none &&
                   m_tree.main(use.path.steps[k]) == m_tree.main(path.path.steps[k]))
                ++k;
            const bool is_whole = k == use.path.steps.size() && !m_tree.is(m_tree.parent(use.path.whole), Kind::member);
            const bool is_set = use.access == Access::declared || use.access == Access::written;
            while (k < use.path.steps.size() && index_of(use.path.steps[k]) != syntax::none)
                ++k;
            return is_set ? k == use.path.steps.size() && is_copy(use) : is_whole && !is_written(use);
        });
    }

    /// `In c = s;`, `c.q = s.q;`
    bool is_copy(const Use& use) const
    {
        return is_one_variable(m_tree.child(use.by, use.access == Access::declared ? 2 : 1));
    }

    /// Whether a value is a variable, a field or an element of one, or a choice among such: nothing is computed from
    /// it.
    bool is_one_variable(NodeId value) const
    {
        switch (m_tree.kind(value)) {
        case Kind::paren:
        case Kind::member:
        case Kind::index: return is_one_variable(m_tree.child(value, 0));
        case Kind::cast: return is_one_variable(m_tree.child(value, 1));
        case Kind::conditional:
            return is_one_variable(m_tree.child(value, 1)) && is_one_variable(m_tree.child(value, 2));
        default: return m_tree.is(value, Kind::name);
        }
    }

    /// Whether an update is a statement by itself, and its indices can be computed twice.
    bool may_be_written_out(const Use& use) const
    {
        const NodeId statement = m_tree.parent(use.by);
        const bool is_sum = m_tree.main(use.by).find_first_of("+-*/") == 0 &&
            (m_tree.is(use.by, Kind::assign) || m_tree.is(use.by, Kind::postfix));
        if (!is_sum || !m_tree.is(statement, Kind::expression) || !in_one_line(m_tree, use.path.whole) ||
            m_tree.is(m_tree.parent(statement), Kind::for_))
            return false;
        for (const NodeId n : m_tree.inside(use.path.whole)) {
            const bool is_call = m_tree.is(n, Kind::call) &&
                syntax::type_at(m_scopes, m_tree.child(n, 0)).shape != Shape::scalar;
            if (is_call || m_tree.is(n, Kind::assign) || m_tree.is(n, Kind::postfix) ||
                (m_tree.is(n, Kind::prefix) && m_tree.main(n).size() == 2))
                return false;
        }
        return true;
    }

    std::string read_of(NodeId value, const std::string& pick) const
    {
        const NodeId base = m_tree.child(value, 0);
        switch (m_tree.kind(value)) {
        case Kind::paren: return cat("(", read_of(base, pick), ")");
        case Kind::member: return cat(read_of(base, pick), ".", m_tree.main(value));
        case Kind::index:
            return cat(pick, "(", read_of(base, pick), ", int(", *in_one_line(m_tree, m_tree.child(value, 1)), "))");
        default: return *in_one_line(m_tree, value);
        }
    }

    std::vector<const Use*> m_paths; ///< uses of elements, and updates of components
};

std::string declarations(const std::string& name)
{
    const std::string tail = ", int i) { return v[i]; } ";
    return cat("T ", name, "<T, let N : int>(T v[N]", tail, "[Differentiable] T ", name,
               "<T : IDifferentiable, let N : int>(T v[N]", tail, "[Differentiable] T ", name,
               "<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> v", tail, "[Differentiable] vector<T, C> ",
               name, "<T : __BuiltinFloatingPointType, let R : int, let C : int>(matrix<T, R, C> v", tail);
}

} // namespace

std::vector<Edit> rewrite_aliasing_elements(const ParsedSource& source)
{
    const syntax::Tree& tree = source.tree();
    const bool has_branches = source.text().find("#if") != std::string::npos; // each function may be in one of its own
    std::map<NodeId, std::string> names;                                      ///< of the functions, by scope
    Changes changes;
    for (const NodeId function : differentiable_functions(source)) {
        if (!syntax::is_marked(tree, function, "Differentiable") &&
            !syntax::is_marked(tree, function, "BackwardDifferentiable"))
            continue;
        const ReadElements elements(source, function);
        const std::vector<const Use*> lost = elements.lost();
        if (lost.empty())
            continue;
        const NodeId outermost = outermost_of(tree, function);
        const auto [name, is_new] = names.try_emplace(has_branches ? outermost : tree.parent(outermost));
        if (is_new) {
            name->second = cat("_spy_pick_", content_hash(source.text()), "_e_", names.size() - 1);
            changes.before(tree.begin(outermost), declarations(name->second));
        }
        for (const Use* path : lost)
            elements.replace(*path, name->second, changes);
        elements.write_out(lost, name->second, changes);
    }
    return std::move(changes).edits();
}

} // namespace spy
