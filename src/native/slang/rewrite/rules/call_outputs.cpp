// Variables that calls wrote and loops read, as Slang differentiates them rightly.
//
// `f(a, c);` -> `f(a, c); c = -(-c);`, where c is a local scalar, vector or matrix, f may write it, and a loop
// follows: Slang 2026.12 counts the gradient of such a c once when the loop adds it in each iteration (`a += c`). It
// is right where any operation lies between, and this one gives the same number. Lines stay.
// Of a struct, an array, or a part of one, `c = _spy_same_...(c);`, with a function that returns its argument;
// likewise after `c.step(a);`, where step is [mutating].
// The same for `f(a, c);` in a loop with branches, where c is an `out` of f: Slang keeps the gradient of a c that other
// blocks of the loop read, and adds it again in each earlier trip. Elements and `inout` do not have that fault.
// Where no statement can follow, as in a condition, the barrier stands within the expression, when the call is done:
// `if (f(a, c) > 0)` -> `if (_spy_first_...(f(a, c), c = -(-c)) > 0)`. That function returns its first argument.
//
// `f(a, v.y);` -> `v = -(-v); f(a, v.y);` after a loop, where v is a vector or matrix of which f may write that
// element: Slang counts the gradient of a v that the loop adds in each iteration once too often, and loses that of its
// other elements. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Role, syntax::Shape;

/// What calls of one name do to an argument.
struct CallEffect {
    bool may = false, does = true;                   ///< write it
    bool is_out = false;                             ///< without reading it
    bool is_float_number = true, is_discrete = true; ///< where it is written
};

class CallsAndLoops : private InFunction {
public:
    using InFunction::InFunction;

    /// `late`: elements after loops; else what is written before or in them.
    void search(bool late, Places& places) const
    {
        if (m_uses.loops().empty())
            return;
        for (const NodeId n : m_tree.inside(m_uses.function()))
            if (m_tree.is(n, Kind::call) && (late ? n > m_uses.loops().front().node : is_before_loop(n)))
                for (size_t k = 0; k < m_tree.count(n); ++k)
                    look(n, k, late, places);
            else if (m_tree.is(n, Kind::call) && !late && is_in_forked_loop(n))
                for (size_t k = 1; k < m_tree.count(n); ++k)
                    look_inside(n, k, places);
    }

private:
    /// Whether a call's value is one that functions can be given, and no statement can follow it.
    bool is_within(NodeId call) const
    {
        NodeId outer = call;
        while (m_tree.is(m_tree.parent(outer), Kind::paren))
            outer = m_tree.parent(outer);
        const NodeId parent = m_tree.parent(outer), statement = m_tree.statement_of(call),
                     around = m_tree.parent(statement);
        const bool is_plain = m_tree.is(statement, Kind::expression) || m_tree.is(statement, Kind::variables);
        const bool is_header = is_plain &&
            ((m_tree.is(around, Kind::for_) && m_tree.child(around, 4) != statement) ||
             (m_tree.is(around, Kind::if_) && m_tree.child(around, 1) == statement));
        if ((is_plain && !is_header && !is_in_condition(call)) || m_tree.is(parent, Kind::expression) ||
            m_tree.is(parent, Kind::return_) || m_tree.is(parent, Kind::lambda) ||
            (m_tree.is(parent, Kind::binary) && m_tree.main(parent) == ",") ||
            (m_tree.is(parent, Kind::for_) && m_tree.child(parent, 3) == outer))
            return false;
        const auto callees = m_scopes.callees_of(call);
        return !callees.empty() && std::all_of(callees.begin(), callees.end(), [](const auto& callee) {
            const NodeId result = syntax::result_of(callee.in->tree(), callee.function->node);
            const Shape shape = result == syntax::none ? Shape::unknown : syntax::type_at(*callee.in, result).shape;
            return (shape >= Shape::scalar && shape <= Shape::structure) || shape == Shape::generic;
        });
    }

    /// Of a `?:` in its statement.
    bool is_in_condition(NodeId n) const
    {
        for (; !syntax::is_statement(m_tree.kind(n)); n = m_tree.parent(n))
            if (m_tree.is(m_tree.parent(n), Kind::conditional) && n == m_tree.parent(n) + 1)
                return true;
        return false;
    }

    bool is_before_loop(NodeId call) const
    {
        const NodeId statement = m_tree.statement_of(call);
        const NodeId begin = m_tree.is(statement, Kind::if_) ? m_tree.child(statement, 2) : statement;
        return (is_within(call) ? call : begin) < m_uses.loops().back().node;
    }

    bool is_in_forked_loop(NodeId call) const
    {
        const NodeId loop = m_uses.loop_around(call);
        if (loop == syntax::none)
            return false;
        if (is_within(call))
            return true;
        for (const NodeId n : m_tree.inside(loop))
            if (m_tree.is(n, Kind::if_) || m_tree.is(n, Kind::switch_) || m_tree.is(n, Kind::conditional))
                return true;
        return false;
    }

    /// The argument k of a call in a loop: variables that it may write without reading them.
    void look_inside(NodeId call, size_t k, Places& places) const
    {
        const NodeId whole = m_tree.child(call, k);
        const syntax::Access access = syntax::access_of(m_scopes, call, k - 1);
        const uint32_t root = access == syntax::Access::read ? syntax::none : root_of(whole);
        if (root == syntax::none || whole != named(whole) || !is_local(root))
            return;
        const bool is_number = is_float_number(m_scopes, root);
        if (access == syntax::Access::unknown ? is_number : effect_of(call, k - 1).is_out)
            if (const std::string_view text = changed(call, k - 1, access, root, whole); !text.empty())
                pass(call, text, is_number || effect_of(call, k - 1).is_float_number, places);
    }

    /// The call's argument k; 0: its object.
    void look(NodeId call, size_t k, bool late, Places& places) const
    {
        NodeId whole = m_tree.child(call, k);
        if (k == 0) {
            if (m_tree.is(whole, Kind::generic_use))
                whole = m_tree.child(whole, 0);
            if (!m_tree.is(whole, Kind::member))
                return;
            whole = m_tree.child(whole, 0);
        }
        const size_t argument = k == 0 ? SIZE_MAX : k - 1;
        const syntax::Access access = syntax::access_of(m_scopes, call, argument);
        const uint32_t root = access == syntax::Access::read ? syntax::none : root_of(whole);
        if (root == syntax::none || (k == 0 && access == syntax::Access::unknown))
            return;
        const bool is_part = whole != named(whole);
        const bool is_number = is_local(root) && is_float_number(m_scopes, root);
        if (late) {
            const CallEffect effect = effect_of(call, argument);
            if (is_number && is_part && access == syntax::Access::by_reference && effect.does && effect.is_float_number)
                pass_before(call, m_scopes.variables()[root].name, places);
        } else if (const std::string_view text = changed(call, argument, access, root, whole); !text.empty()) {
            const bool is_float = (is_number && !is_part) ||
                (argument != SIZE_MAX && access == syntax::Access::by_reference &&
                 effect_of(call, argument).is_float_number);
            pass(call, text, is_float, places);
        }
    }

    /// What to pass on: the argument where each function of that name writes it, else its variable where that can be
    /// assigned; empty where neither.
    std::string_view changed(NodeId call, size_t argument, syntax::Access access, uint32_t root, NodeId whole) const
    {
        const syntax::Variable& variable = m_scopes.variables()[root];
        const bool is_part = whole != named(whole);
        const syntax::Type type = syntax::type_of(m_scopes, variable);
        const bool is_value = is_local(root) &&
            (is_float_number(m_scopes, root) ? !is_part
                                             : (type.is_float && type.shape == Shape::array) ||
                     (type.shape == Shape::structure && type.dimensions == 0));
        if (access == syntax::Access::unknown)
            return is_value && !is_part ? variable.name : std::string_view();
        const CallEffect effect = effect_of(call, argument);
        if (effect.does)
            return effect.is_discrete ? std::string_view() : m_tree.text(whole);
        return is_value ? variable.name : std::string_view();
    }

    CallEffect effect_of(NodeId call, size_t argument) const
    {
        const auto callees = m_scopes.callees_of(call);
        if (callees.empty()) // sincos
            return {true, true, true, true, false};
        CallEffect effect;
        for (const auto& [in, function] : callees) {
            const bool is_object = argument == SIZE_MAX;
            const syntax::Variable* parameter = is_object ? nullptr : &in->variables()[function->parameters[argument]];
            const bool writes = is_object ? function->is_mutating : parameter->direction != syntax::Direction::in;
            effect.may |= writes;
            effect.does &= writes;
            effect.is_out |= !is_object && parameter->direction == syntax::Direction::out;
            if (!writes)
                continue;
            const syntax::Type type = is_object ? syntax::Type() : syntax::type_of(*in, *parameter);
            effect.is_discrete &= type.is_discrete;
            effect.is_float_number &= type.is_float && type.shape <= Shape::matrix;
        }
        effect.does &= effect.may;
        return effect;
    }

    bool is_local(uint32_t id) const
    {
        const Role role = m_scopes.variables()[id].role;
        return role == Role::local || role == Role::parameter;
    }

    /// The node that names the variable of a path: `this.x`, too.
    NodeId named(NodeId path) const
    {
        while (m_scopes.variable_of(path) == syntax::none &&
               (m_tree.is(path, Kind::member) || m_tree.is(path, Kind::index)))
            path = m_tree.child(path, 0);
        return path;
    }

    /// The variable of a path that can be assigned and computed twice: its indices call and change nothing.
    uint32_t root_of(NodeId path) const
    {
        const NodeId name = named(path);
        const syntax::Variable* variable = m_scopes.find(name);
        if (variable == nullptr || variable->is_const || variable->is_static || variable->is_doubtful ||
            !(variable->role == Role::local || variable->role == Role::parameter || variable->role == Role::field))
            return syntax::none;
        for (NodeId n = path; n < path + m_tree[path].size; ++n)
            if (m_tree.is(n, Kind::call) || m_tree.is(n, Kind::assign) || m_tree.is(n, Kind::conditional) ||
                m_tree.is(n, Kind::postfix) || (m_tree.is(n, Kind::prefix) && m_tree.main(n).size() == 2))
                return syntax::none;
        return m_scopes.variable_of(name);
    }

    /// After a call's statement, or in its expression; a part, where the branch begins of which it is the condition.
    void pass(NodeId call, std::string_view text, bool is_float, Places& places) const
    {
        const NodeId statement = m_tree.statement_of(call);
        const NodeId block = m_tree.child(statement, 2);
        const bool is_part = text.find_first_of(".[-") != std::string_view::npos;
        if (!is_part && is_within(call)) {
            Barriers& barriers = places.within[{m_tree.begin(call), m_tree.end(call)}];
            (is_float ? barriers.floats : barriers.values).insert(text);
        } else if (!m_tree.is(statement, Kind::if_)) {
            add_barrier_after(m_tree, call, text, is_float, places);
        } else if (m_tree.holds(m_tree.child(statement, 1), call) && m_tree.is(block, Kind::block)) {
            Barriers& barriers = places.barriers[m_tree.tokens()[m_tree[block].first].end];
            (is_float ? barriers.floats : barriers.values).insert(text);
        }
    }

    void pass_before(NodeId call, std::string_view name, Places& places) const
    {
        const NodeId statement = m_tree.statement_of(call);
        const bool is_plain = m_tree.is(statement, Kind::expression) || m_tree.is(statement, Kind::variables);
        if (is_plain && m_tree.may_hold_statements(statement))
            places.barriers[m_tree.tokens()[m_tree[statement].first - 1].end].floats.insert(name);
    }
};

} // namespace

std::vector<Edit> rewrite_call_outputs(const ParsedSource& source)
{
    return add_barriers(
        source, [&](NodeId function, Places& places) { CallsAndLoops(source, function).search(false, places); });
}

std::vector<Edit> rewrite_late_elements(const ParsedSource& source)
{
    return add_barriers(source,
                        [&](NodeId function, Places& places) { CallsAndLoops(source, function).search(true, places); });
}

} // namespace spy
