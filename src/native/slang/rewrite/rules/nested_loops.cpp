// Loops inside each other:
//
//     for (int i = 0; i < 2; i++) for (int j = 0; j < 5; j++) x *= a;
//
// Slang 2026.12 keeps the states of k such loops in an array [n1][n2]...[nk], the outermost loop first, but indexes it
// with the innermost loop's counter first. Where that leaves the array, [MaxIters] makes room, the only way to do so.
//
// [MaxIters] of the loops in each nest of which the trips are known.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/changes.h"
#include "slang/syntax/constants.h"

#include <slang.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

namespace spy {
namespace {

using namespace syntax;

/// How often a loop runs at most: a number, or an expression that Slang can fold.
struct Trips {
    long number = -1;
    std::string expression = {}; ///< where the number is not known
    bool known() const { return number >= 0 || !expression.empty(); }
};

struct NestedLoop {
    NodeId node;
    NodeId limit; ///< n of [MaxIters(n)]; `none`
    bool is_unrolled;
    Trips trips = {};
    int parent = -1;
    long room = 0;           ///< what [MaxIters] is to say, where all are numbers
    bool may_vanish = false; ///< the compiler may see that it runs once, whatever [MaxIters] says
};

/// The loops of one function.
class Nests {
public:
    Nests(const Scopes& scopes, NodeId function, Changes& changes)
        : m_scopes(scopes),
          m_tree(scopes.tree()),
          m_uses(scopes, function),
          m_changes(changes)
    {
    }

    void change()
    {
        if (m_uses.loops().size() < 2)
            return;
        for (const syntax::Use& use : m_uses.all())
            if (use.access == Access::declared && begins_as_constant(use.variable))
                m_known.insert(use.variable);
        for (const Loop& loop : m_uses.loops())
            add(loop);
        fit_states();
    }

private:
    std::optional<long> number_of(NodeId n) const { return value_of(m_scopes, n); }

    // --- which loops there are
    void add(const Loop& found)
    {
        NestedLoop loop{found.node, found.max_iters, is_marked(m_tree, found.node, "ForceUnroll")};
        if (loop.limit != none) {
            if (const std::optional<long> value = number_of(loop.limit); value && *value >= 0)
                loop.trips.number = *value;
            else
                loop.trips.expression = m_tree.text(loop.limit);
        }
        const bool is_once = m_tree.is(loop.node, Kind::do_) && continues_once(m_uses, m_scopes, loop.node);
        const Trips counted = m_tree.is(loop.node, Kind::for_) ? trips_of(loop.node) : Trips{is_once ? 1 : -1};
        loop.may_vanish = (counted.known() ? counted.number == 1 : has_known_condition(loop.node)) ||
            has_known_exit(loop.node);
        if (!loop.trips.known())
            loop.trips = counted;
        for (size_t outer = m_loops.size(); outer-- > 0 && loop.parent < 0;)
            if (m_tree.holds(m_loops[outer].node, loop.node) && !m_loops[outer].is_unrolled)
                loop.parent = int(outer);
        m_loops.push_back(loop);
    }

    /// `int i = 0;`
    bool begins_as_constant(uint32_t variable) const
    {
        const Variable& declared = m_scopes.variables()[variable];
        const NodeId value = m_tree.is(declared.node, Kind::declarator) ? m_tree.child(declared.node, 2) : none;
        return is_among(declared.type, {"int", "uint", "bool", ""}) && value != none && m_tree.has(value) &&
            (is_among(m_tree.text(value), {"true", "false"}) || number_of(value));
    }

    /// Whether all that a loop's condition reads begins as a constant, or all that a comparison in it does.
    bool has_known_condition(NodeId loop) const
    {
        const NodeId condition = condition_of(m_tree, loop);
        return condition != none && decides_by_known(condition);
    }
    bool decides_by_known(NodeId condition) const
    {
        if (is_known(condition))
            return true;
        for (const NodeId n : m_tree.inside(condition))
            if ((is_comparison(m_tree, n) || (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "!")) && is_known(n))
                return true;
        return false;
    }

    /// Whether all that an expression reads begins as a constant.
    bool is_known(NodeId expression) const
    {
        for (NodeId n = expression; n < expression + m_tree[expression].size; ++n) {
            const std::string_view word = m_tree.is(n, Kind::name) ? m_tree.main(n) : "false";
            if (!is_among(word, {"false", "int", "uint", "bool", "float", "half", "double"}) &&
                !m_known.count(m_scopes.variable_of(n)) && !is_constant(m_scopes, n))
                return false;
        }
        return true;
    }

    /// Whether the body ends the loop under such a condition: `if (i > 0) break;`.
    bool has_known_exit(NodeId loop) const
    {
        const NodeId body = loop_body(m_tree, loop);
        return std::any_of(m_uses.exits().begin(), m_uses.exits().end(), [&](const Exit& exit) {
            if (!m_tree.is(exit.node, Kind::break_) && !m_tree.is(exit.node, Kind::return_))
                return false;
            NodeId branch = m_tree.around(exit.node, Kind::if_);
            for (; branch != none && m_tree.holds(body, branch); branch = m_tree.around(branch, Kind::if_))
                if (!m_tree.is(m_tree.child(branch, 1), Kind::variables) && decides_by_known(m_tree.child(branch, 1)))
                    return true;
            return false;
        });
    }

    /// Trips of `for (int i = a; i < b; i += c)`, as Slang counts them.
    Trips trips_of(NodeId loop) const
    {
        const NodeId condition = m_tree.child(loop, 2), step = m_tree.child(loop, 3);
        const auto [variable, value] = counter_of(m_tree.child(loop, 1));
        if (variable == none || m_uses.may_write(variable, loop_body(m_tree, loop)) ||
            !is_comparison(m_tree, condition) || m_uses.may_write(variable, condition))
            return {};
        const std::optional<long> start = number_of(value);
        const long by = m_tree.has(step) ? step_of(variable, step) : 0;
        const NodeId left = m_tree.child(condition, 0), right = m_tree.child(condition, 1);
        const NodeId limit = m_scopes.variable_of(left) == variable && m_tree.is(left, Kind::name) ? right : left;
        const NodeId other = limit == right ? left : right;
        const std::string_view sign = m_tree.main(condition);
        if (!start || !by || sign == "==" || sign == "!=" || !m_tree.is(other, Kind::name) ||
            m_scopes.variable_of(other) != variable)
            return {};
        const bool is_inclusive = sign.size() == 2;
        if (const std::optional<long> stop = number_of(limit)) {
            const long distance = std::max((by > 0 ? *stop - *start : *start - *stop) + is_inclusive, 0l);
            return {(distance + std::labs(by) - 1) / std::labs(by)};
        }
        if (by != 1 || *start < 0 || !is_constant(m_scopes, limit))
            return {};
        return {-1, std::string(m_tree.text(limit)) + (is_inclusive ? " + 1" : "")};
    }

    /// The one variable that the first part of a header gives a value, and that.
    std::pair<uint32_t, NodeId> counter_of(NodeId init) const
    {
        NodeId n = none;
        if (m_tree.is(init, Kind::variables) && m_tree.count(init) == 3)
            n = m_tree.child(init, 2);
        else if (m_tree.is(init, Kind::expression) && m_tree.is(init + 1, Kind::assign))
            n = init + 1;
        if (n == none)
            return {none, none};
        const bool is_declared = m_tree.is(n, Kind::declarator);
        const NodeId value = m_tree.child(n, is_declared ? 2 : 1);
        return {m_tree.has(value) ? m_scopes.variable_of(is_declared ? n : n + 1) : none, value};
    }

    long step_of(uint32_t variable, NodeId step) const
    {
        const std::string_view sign = m_tree.main(step);
        if (m_scopes.variable_of(step + 1) != variable || !m_tree.is(step + 1, Kind::name))
            return 0;
        if (!m_tree.is(step, Kind::assign))
            return sign == "++" ? 1 : sign == "--" ? -1 : 0;
        const std::optional<long> size = number_of(m_tree.child(step, 1));
        return !size || *size <= 0 ? 0 : sign == "+=" ? *size : sign == "-=" ? -*size : 0;
    }

    // --- room for states
    void fit_states()
    {
        for (size_t root = 0; root < m_loops.size(); ++root) {
            if (m_loops[root].parent >= 0 || m_loops[root].is_unrolled)
                continue;
            std::vector<size_t> nest;
            for (size_t i = root; i < m_loops.size(); ++i)
                if (!m_loops[i].is_unrolled && root_of(i) == root)
                    nest.push_back(i);
            const auto known = [&](size_t i) { return m_loops[i].trips.known(); };
            if (nest.size() < 2 || !std::all_of(nest.begin(), nest.end(), known))
                continue;
            const auto number = [&](size_t i) { return m_loops[i].trips.number >= 0; };
            if (std::all_of(nest.begin(), nest.end(), number))
                fit_numbers(nest);
            else
                fit_expressions(nest);
        }
    }

    size_t root_of(size_t i) const
    {
        while (m_loops[i].parent >= 0)
            i = size_t(m_loops[i].parent);
        return i;
    }

    void fit_numbers(const std::vector<size_t>& nest)
    {
        long most = 0, least = 2;
        for (size_t i : nest)
            most = std::max(most, m_loops[i].trips.number), least = std::min(least, m_loops[i].trips.number);
        for (size_t i : nest)
            m_loops[i].room = most;
        // Equal sizes hold whichever order Slang takes, but large ones waste memory: there they follow the faulty
        // order. Loops of one trip may be gone before, and with them their dimension.
        constexpr long small = 4;
        const bool is_faulty = std::string_view(spGetBuildTagString()).starts_with("2026.12");
        if (most > small && least > 1 && is_faulty)
            fit_order(nest);
        for (size_t i : nest)
            if (m_loops[i].room != m_loops[i].trips.number)
                set_limit(m_loops[i], std::to_string(m_loops[i].room));
    }

    void fit_order(const std::vector<size_t>& nest)
    {
        for (size_t i : nest)
            m_loops[i].room = 1;
        for (size_t leaf : nest) {
            std::vector<NestedLoop*> chain; // from the outermost
            for (int i = int(leaf); i >= 0; i = m_loops[size_t(i)].parent)
                chain.insert(chain.begin(), &m_loops[size_t(i)]);
            for (size_t p = 0; p < chain.size(); ++p)
                for (size_t q = 0; p + q < chain.size(); ++q)
                    chain[p]->room = std::max(chain[p]->room, chain[q]->trips.number);
            // Where an outer one vanishes, its dimension is gone: an inner one stands further out.
            const auto vanishes = [](const NestedLoop* loop) { return loop->may_vanish; };
            if (std::any_of(chain.begin(), chain.end(), vanishes))
                for (NestedLoop* loop : chain)
                    loop->room = std::max(loop->room, loop->trips.number);
        }
    }

    void fit_expressions(const std::vector<size_t>& nest)
    {
        long most = -1;
        std::vector<std::string> others;
        for (size_t i : nest) {
            const Trips& trips = m_loops[i].trips;
            most = std::max(most, trips.number);
            if (trips.number < 0 && std::find(others.begin(), others.end(), trips.expression) == others.end())
                others.push_back(trips.expression);
        }
        if (most < 0 && others.size() == 1)
            return;
        std::string all; // a sum, because nothing here folds like a maximum of many
        for (const std::string& text : others)
            all += (all.empty() ? "(" : " + (") + text + ")";
        if (most >= 0 && others.size() == 1)
            all = "(" + all + " > " + std::to_string(most) + " ? " + all + " : " + std::to_string(most) + ")";
        else if (most > 0)
            all += " + " + std::to_string(most);
        for (size_t i : nest)
            set_limit(m_loops[i], all);
    }

    void set_limit(const NestedLoop& loop, const std::string& limit)
    {
        if (loop.limit != none) {
            m_changes.replace(m_tree.begin(loop.limit), m_tree.end(loop.limit), limit);
            return;
        }
        const std::string attribute = "[MaxIters(" + limit + ")] ";
        const std::string_view text = m_tree.source();
        const size_t end = m_tree.tokens()[loop_word(m_tree, loop.node)].begin;
        size_t begin = end;
        while (begin > 0 && text[begin - 1] == ' ' && end - begin < attribute.size())
            --begin; // indentation makes room
        const bool is_apart = begin == 0 || begin == end || !syntax::in_word(text[begin - 1]);
        m_changes.replace(begin, end, (is_apart ? "" : " ") + attribute);
    }

    const Scopes& m_scopes;
    const Tree& m_tree;
    Uses m_uses;
    Changes& m_changes;
    std::set<uint32_t> m_known;      ///< variables that begin as constants
    std::vector<NestedLoop> m_loops; ///< outer ones before inner ones
};

} // namespace

std::vector<Edit> make_room_in_nests(const ParsedSource& source)
{
    const std::string& text = source.text();
    if (text.find("ifferentiable") == std::string::npos ||
        (text.find("while") == std::string::npos && text.find("for") == std::string::npos))
        return {};
    Changes changes;
    for (const NodeId function : functions_to_change(source, false))
        Nests(source.scopes(), function, changes).change();
    return std::move(changes).edits();
}

} // namespace spy
