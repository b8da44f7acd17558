#include "slang/syntax/uses.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace spy::syntax {

Path path_from(const Tree& tree, NodeId name)
{
    Path path{name, {}, name};
    for (;;) {
        const NodeId parent = tree.parent(path.whole);
        const bool is_base = parent != none && path.whole == parent + 1;
        if (tree.is(parent, Kind::paren)) {
            path.whole = parent;
        } else if (is_base && (tree.is(parent, Kind::member) || tree.is(parent, Kind::index))) {
            NodeId callee = parent; // `a.b.f<int>(...)` has the path a.b
            if (tree.is(tree.parent(callee), Kind::generic_use))
                callee = tree.parent(callee);
            const NodeId call = tree.parent(callee);
            if (tree.is(parent, Kind::member) && tree.is(call, Kind::call) && callee == call + 1)
                return path;
            path.steps.push_back(parent);
            path.whole = parent;
        } else {
            return path;
        }
    }
}

/// Finds what one function does.
class UseFinder {
public:
    UseFinder(Uses& uses, const Scopes& scopes) : m_uses(uses), m_scopes(scopes), m_tree(scopes.tree()) { }

    void find()
    {
        for (const NodeId n : m_tree.inside(m_uses.m_function))
            visit(n);
        const auto& macros = m_scopes.in_macros();
        auto found = std::lower_bound(macros.begin(), macros.end(), m_uses.m_function,
                                      [](const Scopes::InMacro& use, NodeId n) { return use.name < n; });
        for (; found != macros.end() && m_tree.holds(m_uses.m_function, found->name); ++found)
            m_uses.m_uses.push_back({found->variable,
                                     Access::unknown,
                                     {found->name, {}, found->name},
                                     found->name,
                                     m_tree.loop_of(found->name)});
        std::stable_sort(m_uses.m_uses.begin(), m_uses.m_uses.end(),
                         [](const Use& a, const Use& b) { return a.path.root < b.path.root; });
        for (uint32_t i = 0; i < m_uses.m_uses.size(); ++i) {
            const Use& use = m_uses.m_uses[i];
            m_uses.m_of[use.variable].push_back(i);
            if (use.may_write())
                m_uses.m_writes_of[use.variable].push_back(i);
        }
        for (Loop& loop : m_uses.m_loops) {
            finish(loop);
            if (loop.is_unrolled && loop.counter != none)
                m_uses.m_known_counters.push_back(loop.counter);
        }
        std::sort(m_uses.m_known_counters.begin(), m_uses.m_known_counters.end());
    }

private:
    void visit(NodeId n)
    {
        const Kind kind = m_tree.kind(n);
        if (is_loop(kind))
            m_uses.m_loops.push_back(loop_at(n));
        else if (kind == Kind::return_ || kind == Kind::break_ || kind == Kind::continue_ || kind == Kind::discard ||
                 kind == Kind::throw_)
            leave(n, kind);
        const uint32_t variable = m_scopes.variable_of(n);
        if (variable == none || kind == Kind::generic || m_tree.is(m_tree.parent(n), Kind::parameter))
            return;
        if (kind == Kind::declarator) {
            m_uses.m_uses.push_back({variable, Access::declared, {n, {}, n}, n, m_tree.loop_of(n)});
            return;
        }
        // `this.x` is a use of the field x
        if (kind == Kind::name && m_tree.is(m_tree.parent(n), Kind::member) &&
            m_scopes.variable_of(m_tree.parent(n)) != none)
            return;
        Use use{variable, Access::read, path_from(m_tree, n), none, m_tree.loop_of(n)};
        std::tie(use.access, use.by) = access_at(m_scopes, use.path.whole);
        m_uses.m_uses.push_back(std::move(use));
    }

    // --- loops
    Loop loop_at(NodeId n) const
    {
        const NodeId limit = attribute(m_tree, n, "MaxIters");
        const bool is_unrolled = is_marked(m_tree, n, "ForceUnroll");
        return {n, m_tree.loop_of(n), is_unrolled, limit == none ? none : m_tree.child(limit, 0), {}, none};
    }

    void finish(Loop& loop)
    {
        const bool is_for = m_tree.is(loop.node, Kind::for_);
        const NodeId init = is_for ? m_tree.child(loop.node, 1) : none;
        const NodeId step = is_for ? m_tree.child(loop.node, 3) : none;
        const NodeId body = m_tree.child(loop.node, is_for ? 4 : m_tree.is(loop.node, Kind::do_) ? 1 : 2);
        std::vector<uint32_t> written, read;
        for (const Use* use : m_uses.in(loop.node)) {
            const bool begins = is_for && m_tree.holds(init, use->path.root);
            if (begins && use->access == Access::declared && loop.counter == none)
                loop.counter = use->variable;
            if (step != none && m_tree.holds(step, use->path.root) && use->may_write() &&
                (loop.counter == none || m_step_first != loop.node)) {
                loop.counter = use->variable;
                m_step_first = loop.node;
            }
            if (!begins && use->may_write() && use->access != Access::declared)
                written.push_back(use->variable);
            if (use->reads() || use->writes_part())
                read.push_back(use->variable);
        }
        std::sort(read.begin(), read.end());
        std::sort(written.begin(), written.end());
        written.erase(std::unique(written.begin(), written.end()), written.end());
        for (const uint32_t variable : written) {
            const Variable& declared = m_scopes.variables()[variable];
            const bool is_inner = m_tree.holds(body, declared.node) && declared.role == Role::local;
            if (!is_inner && std::binary_search(read.begin(), read.end(), variable))
                loop.carried.push_back(variable);
        }
    }

    // --- ways out
    void leave(NodeId n, Kind kind)
    {
        NodeId target = none;
        if (kind == Kind::break_ || kind == Kind::continue_) {
            const std::string_view label = m_tree.token(m_tree[n].first) != m_tree.main(n) ? m_tree.main(n) : "";
            for (target = m_tree.parent(n); target != none && target != m_uses.m_function;
                 target = m_tree.parent(target)) {
                const Kind around = m_tree.kind(target);
                if (around == Kind::lambda || around == Kind::function)
                    target = none;
                if (target == none)
                    break;
                if (label.empty() ? is_loop(around) || (around == Kind::switch_ && kind == Kind::break_)
                                  : around == Kind::label && m_tree.main(target) == label)
                    break;
            }
            if (!label.empty() && target != none && m_tree.is(target, Kind::label))
                target = m_tree.child(target, 0);
            if (target == m_uses.m_function)
                target = none;
        } else if (m_tree.function_of(n) != m_uses.m_function) {
            return; // of a lambda
        }
        m_uses.m_exits.push_back({n, target});
    }

    Uses& m_uses;
    const Scopes& m_scopes;
    const Tree& m_tree;
    NodeId m_step_first = none; ///< the loop of which the step has been seen
};

Uses::Uses(const Scopes& scopes, NodeId function)
    : m_scopes(&scopes),
      m_function(function),
      m_is_understood(scopes.tree().is_understood(function))
{
    UseFinder(*this, scopes).find();
}

std::vector<const Use*> Uses::of(uint32_t variable) const
{
    std::vector<const Use*> result;
    if (const auto found = m_of.find(variable); found != m_of.end())
        for (const uint32_t i : found->second)
            result.push_back(&m_uses[i]);
    return result;
}

std::vector<const Use*> Uses::writes_of(uint32_t variable, NodeId within) const
{
    std::vector<const Use*> result;
    const auto found = m_writes_of.find(variable);
    if (found == m_writes_of.end())
        return result;
    const auto is_before = [&](uint32_t i, NodeId n) { return m_uses[i].path.root < n; };
    auto i = std::lower_bound(found->second.begin(), found->second.end(), within, is_before);
    for (; i != found->second.end() && m_scopes->tree().holds(within, m_uses[*i].path.root); ++i)
        result.push_back(&m_uses[*i]);
    return result;
}

std::vector<const Use*> Uses::in(NodeId node) const
{
    std::vector<const Use*> result;
    auto use = std::lower_bound(m_uses.begin(), m_uses.end(), node,
                                [](const Use& use, NodeId n) { return use.path.root < n; });
    for (; use != m_uses.end() && m_scopes->tree().holds(node, use->path.root); ++use)
        result.push_back(&*use);
    return result;
}

const Loop* Uses::loop(NodeId node) const
{
    const auto found = std::lower_bound(m_loops.begin(), m_loops.end(), node,
                                        [](const Loop& loop, NodeId n) { return loop.node < n; });
    return found == m_loops.end() || found->node != node ? nullptr : &*found;
}

NodeId Uses::loop_around(NodeId node) const
{
    const Loop* found = loop(m_scopes->tree().loop_of(node));
    while (found != nullptr && found->is_unrolled)
        found = loop(found->parent);
    return found == nullptr ? none : found->node;
}

bool Uses::may_write(uint32_t variable, NodeId within) const { return !writes_of(variable, within).empty(); }

bool Uses::is_known(NodeId expression) const { return is_known(expression, 0); }

bool Uses::is_known(NodeId expression, int depth) const
{
    const Tree& tree = m_scopes->tree();
    for (NodeId n = expression; n < expression + tree[expression].size; ++n) {
        const Kind kind = tree.kind(n);
        const bool is_callee = tree.is(tree.parent(n), Kind::call) && n == tree.parent(n) + 1 && kind == Kind::name;
        if (is_callee && only_reads_arguments(tree.main(n)))
            continue;
        if (kind == Kind::index || kind == Kind::member || kind == Kind::assign || kind == Kind::lambda || is_callee)
            return false;
        if (kind == Kind::name && n != expression && tree.is(tree.parent(n), Kind::cast) && n == tree.parent(n) + 1)
            continue;
        if (kind == Kind::name && !is_known_name(n, depth))
            return false;
    }
    return true;
}

bool Uses::is_known_name(NodeId name, int depth) const
{
    const Tree& tree = m_scopes->tree();
    const uint32_t id = m_scopes->variable_of(name);
    if (id == none) { // an imported constant, a macro, `true`
        const std::string_view word = tree.main(name);
        return word == "true" || word == "false" ||
            std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    }
    return is_known_variable(id, depth);
}

bool Uses::is_known_variable(uint32_t id) const { return is_known_variable(id, 0); }

bool Uses::is_known_variable(uint32_t id, int depth) const
{
    const Tree& tree = m_scopes->tree();
    const Variable& variable = m_scopes->variables()[id];
    if (variable.role == Role::generic)
        return true;
    if (std::binary_search(m_known_counters.begin(), m_known_counters.end(), id))
        return true;
    if (variable.node == none || !tree.is(variable.node, Kind::declarator) || depth > 8)
        return false;
    const bool is_constant = variable.is_const || variable.role == Role::local;
    if (!is_constant || (variable.role == Role::global && !variable.is_static && !variable.is_const))
        return false;
    const auto writes = m_writes_of.find(id);
    const bool is_changed = writes != m_writes_of.end() &&
        std::any_of(writes->second.begin(), writes->second.end(),
                    [&](uint32_t i) { return m_uses[i].access != Access::declared; });
    const NodeId value = tree.child(variable.node, 2);
    return !is_changed && tree.has(value) && is_known(value, depth + 1);
}

bool Uses::is_invariant(NodeId expression, NodeId loop) const
{
    const Tree& tree = m_scopes->tree();
    for (NodeId n = expression; n < expression + tree[expression].size; ++n) {
        const Kind kind = tree.kind(n);
        if (kind == Kind::lambda || kind == Kind::assign)
            return false;
        if (kind == Kind::call) {
            const NodeId callee = tree.child(n, 0);
            if (!tree.is(callee, Kind::name) || !only_reads_arguments(tree.main(callee)))
                return false;
        }
        const uint32_t id = m_scopes->variable_of(n);
        if (id == none || (kind == Kind::name && is_known_name(n, 0)))
            continue;
        const Variable& variable = m_scopes->variables()[id];
        if (may_write(id, loop) || (variable.role == Role::local && tree.holds(loop, variable.node)))
            return false;
    }
    return true;
}

/// Whether an expression is one number in a whole trip of a loop, or run of the function.
bool Uses::is_stable(NodeId expression, NodeId loop) const
{
    const Tree& tree = m_scopes->tree();
    const NodeId region = loop == none ? m_function : tree.child(loop, tree.count(loop) - 1 - tree.is(loop, Kind::do_));
    for (NodeId n = expression; n < expression + tree[expression].size; ++n) {
        const Kind kind = tree.kind(n);
        if (kind == Kind::call || kind == Kind::assign || kind == Kind::lambda || kind == Kind::postfix)
            return kind == Kind::call && tree.is(tree.child(n, 0), Kind::name) &&
                    only_reads_arguments(tree.main(tree.child(n, 0)))
                ? is_stable_in(n + 2, n + tree[n].size, region, loop)
                : false;
    }
    return is_stable_in(expression, expression + tree[expression].size, region, loop);
}

bool Uses::is_stable_in(NodeId first, NodeId last, NodeId region, NodeId loop) const
{
    for (NodeId n = first; n < last; ++n) {
        const uint32_t id = m_scopes->variable_of(n);
        if (id == none)
            continue;
        for (const Use* use : writes_of(id, region)) {
            const bool is_once = use->access == Access::declared && use->loop == loop;
            if (!is_once)
                return false;
        }
    }
    return true;
}

// --- calls

namespace {

/// float, int3, half2x2 and the like, whose calls are conversions.
bool is_conversion(std::string_view word)
{
    const std::string_view scalar = word == "matrix" ? word : word.substr(0, word.find_last_not_of("1234x") + 1);
    static constexpr std::string_view names[] = {"float", "half", "double", "int", "uint", "bool", "vector", "matrix"};
    return std::find(std::begin(names), std::end(names), scalar) != std::end(names) || word == "int64_t" ||
        word == "uint64_t" || word == "uint8_t" || word == "uint16_t" || word == "int8_t" || word == "int16_t";
}

} // namespace

bool only_reads_arguments(std::string_view function)
{
    static constexpr std::string_view names[] = {
        // in order
        "abs",     "acos",      "alignof",     "all",      "any",      "asdouble",   "asfloat", "asin",      "asint",
        "asuint",  "atan",      "atan2",       "ceil",     "clamp",    "cos",        "cosh",    "countof",   "cross",
        "degrees", "detach",    "determinant", "diffPair", "distance", "dot",        "exp",     "exp2",      "floor",
        "fma",     "fmod",      "frac",        "isfinite", "isinf",    "isnan",      "length",  "lerp",      "load",
        "log",     "log10",     "log2",        "mad",      "max",      "min",        "mul",     "normalize", "pow",
        "print",   "printf",    "radians",     "rcp",      "reflect",  "refract",    "round",   "rsqrt",     "saturate",
        "select",  "sign",      "sin",         "sinh",     "sizeof",   "smoothstep", "sqrt",    "step",      "tan",
        "tanh",    "transpose", "trunc"};
    return std::binary_search(std::begin(names), std::end(names), function) || is_conversion(function);
}

/// Others whose arguments are only read, of other types than the result, or with other values in each invocation.
static bool takes_values(std::string_view function)
{
    return function == "DifferentialPair" || function == "bit_cast" || function == "countbits" ||
        function == "f16tof32" || function == "f32tof16" || function == "firstbithigh" || function == "firstbitlow" ||
        function == "reversebits" || function == "ddx" || function == "ddy" || function.starts_with("WaveActive");
}

bool only_reads_object(std::string_view method)
{
    static constexpr std::string_view names[] = {"Load", "get", "getCount", "getv", "load", "loadOnce"};
    return std::find(std::begin(names), std::end(names), method) != std::end(names);
}

std::pair<Access, NodeId> access_at(const Scopes& scopes, NodeId whole)
{
    const Tree& tree = scopes.tree();
    const NodeId parent = tree.parent(whole);
    const bool is_first = whole == parent + 1;
    const std::pair<Access, NodeId> read = {Access::read, none};
    switch (tree.kind(parent)) {
    case Kind::assign:
        return is_first ? std::pair(tree.main(parent) == "=" ? Access::written : Access::updated, parent) : read;
    case Kind::prefix:
    case Kind::postfix: {
        const std::string_view sign = tree.main(parent);
        if (sign == "++" || sign == "--")
            return {Access::updated, parent};
        return sign == "&" || sign == "__getAddress" ? std::pair(Access::unknown, parent) : read;
    }
    case Kind::call: {
        const Access access = is_first ? Access::read : access_of(scopes, parent, tree.place(whole) - 1);
        return access == Access::read ? read : std::pair(access, parent);
    }
    case Kind::member: { // the object of a method, as path_from leaves it
        const NodeId call = tree.parent(tree.is(tree.parent(parent), Kind::generic_use) ? tree.parent(parent) : parent);
        const Access access = tree.is(call, Kind::call) ? access_of(scopes, call, SIZE_MAX) : Access::read;
        return access == Access::read ? read : std::pair(access, call);
    }
    default: return read;
    }
}

Access access_of(const Scopes& scopes, NodeId call, size_t argument)
{
    const Tree& tree = scopes.tree();
    NodeId callee = tree.child(call, 0);
    while (tree.is(callee, Kind::generic_use) || tree.is(callee, Kind::index)) // `float[2](a, b)`
        callee = tree.child(callee, 0);
    const bool is_method = tree.is(callee, Kind::member) && tree.token(tree[callee].main - 1) != "::";
    if (!tree.is(callee, Kind::name) && !tree.is(callee, Kind::member))
        return Access::unknown;
    const std::string_view name = tree.main(callee);
    if (tree.macro(name) != nullptr)
        return Access::unknown;
    const Variable* named = scopes.find(callee);
    if (named != nullptr && named->role == Role::generic && tree.is(callee, Kind::name)) // T(x)
        return Access::read;
    const size_t count = tree.count(call) - 1;
    const std::vector<Scopes::Callee> found = scopes.callees(name, count);
    if (found.empty()) {
        if (name == "sincos" && count == 3 && argument != SIZE_MAX)
            return argument == 0 ? Access::read : Access::by_reference;
        const bool is_known = scopes.callees(name).empty() && scopes.variable_of(callee) == none;
        const bool reads = is_known &&
            (argument == SIZE_MAX && is_method ? only_reads_object(name)
                                               : only_reads_arguments(name) || takes_values(name) ||
                     (argument != SIZE_MAX && !scopes.types(name).empty()));
        return reads ? Access::read : Access::unknown;
    }
    Access result = Access::read;
    for (const auto& [in, function] : found) {
        if (argument == SIZE_MAX)
            result = function->is_mutating ? Access::by_reference : result;
        else if (in->variables()[function->parameters[argument]].direction != Direction::in)
            result = Access::by_reference;
    }
    return result;
}

} // namespace spy::syntax
