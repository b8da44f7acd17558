// Loops that only add up.
//
// `for (int i = 0; i < n; i++) sum += w[i] * x[i];` ->
// `[MaxIters(1)] for (int i = 0; i < n; i++) { sum += _spy_sum_...(i, w, x); }`, with a function in front that Slang
// computes again where a backward derivative needs its values, so that nothing is kept of a trip and any number of
// them is right. Only of loops without an attribute, which Slang 2026.12 refuses. Loops inside of them are then that
// function's own, for the next call. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/syntax/effects.h"
#include "slang/syntax/types.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spy {
namespace {

using namespace syntax;

/// A variable, or a known part of one, that a loop adds to.
struct LoopSum {
    uint32_t variable;
    std::string path;            ///< as written
    std::string type;            ///< of what is added
    std::vector<NodeId> updates; ///< assignments
};

/// New text with where its parts come from.
struct Moved {
    std::string text = {};
    std::vector<Origin> origins = {};

    void add(const Moved& other)
    {
        for (const Origin& origin : other.origins)
            origins.push_back({origin.at + text.size(), origin.length, origin.from});
        text += other.text;
    }
};

/// What a loop that only adds up adds to, and what else it reads of the variables around it.
struct Accumulation {
    NodeId loop, body;
    std::vector<LoopSum> sums;
    std::set<uint32_t> read;
};

class AccumulationFinder {
public:
    explicit AccumulationFinder(const ParsedSource& source)
        : m_tree(source.tree()),
          m_scopes(source.scopes()),
          m_name("_spy_sum_" + content_hash(source.text()).substr(0, 12) + "_")
    {
    }

    std::vector<Edit> edits()
    {
        for (const syntax::Function& function : m_scopes.functions())
            if (is_candidate(function) && m_effects.none_of(m_scopes, function.node))
                search(function);
        std::sort(m_edits.begin(), m_edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
        return std::move(m_edits);
    }

private:
    // --- functions
    bool is_candidate(const syntax::Function& function) const
    {
        const NodeId n = function.node;
        if (!is_marked(m_tree, n, "Differentiable") && !is_marked(m_tree, n, "BackwardDifferentiable"))
            return false;
        if (function.owner != none && m_tree.token(m_tree[m_tree.child(function.owner, 0)].last) == "interface")
            return false;
        const NodeId modifiers = m_tree.child(n, 0);
        bool has_loop = false;
        for (const NodeId inside : m_tree.inside(n)) {
            has_loop |= m_tree.is(inside, Kind::for_) && is_unmarked(inside);
            if (m_tree.is(inside, Kind::generics) && m_tree.holds(modifiers, inside)) // __generic<T>
                return false;
        }
        return has_loop && !has_directives(n);
    }

    bool has_directives(NodeId n) const
    {
        const auto& trivia = m_tree.trivia();
        auto piece = std::lower_bound(trivia.begin(), trivia.end(), m_tree.begin(n),
                                      [](const Trivia& before, size_t at) { return before.begin < at; });
        for (; piece != trivia.end() && piece->end <= m_tree.end(n); ++piece)
            if (piece->kind == TriviaKind::directive || piece->kind == TriviaKind::hidden)
                return true;
        return false;
    }

    void search(const syntax::Function& function)
    {
        const Uses uses(m_scopes, function.node);
        Moved functions;
        NodeId done = none; // loops inside of it wait for the next call
        for (const syntax::Loop& loop : uses.loops()) {
            if (done != none && m_tree.holds(done, loop.node))
                continue;
            const std::optional<Accumulation> found = accumulation(uses, loop.node);
            if (found && change(function, uses, *found, functions))
                done = loop.node;
        }
        const size_t begin = m_tree.begin(function.node);
        if (!functions.text.empty())
            m_edits.push_back({begin, begin, std::move(functions.text), std::move(functions.origins)});
    }

    // --- loops
    /// Nothing where the loop has an attribute, or does more than to add up.
    std::optional<Accumulation> accumulation(const Uses& uses, NodeId loop) const
    {
        if (!m_tree.is(loop, Kind::for_) || !is_unmarked(loop) || !has_plain_header(loop))
            return std::nullopt;
        Accumulation result{loop, m_tree.child(loop, 4), {}, {}};
        if (!is_plain(result.body) || !collect(uses, result) || result.sums.empty())
            return std::nullopt;
        const bool is_left = std::any_of(uses.exits().begin(), uses.exits().end(), [&](const Exit& exit) {
            return m_tree.holds(loop, exit.node) && (exit.target == none || exit.target <= loop);
        });
        if (is_left)
            return std::nullopt;
        for (const NodeId n : m_tree.inside(result.body))
            if (is_loop(m_tree.kind(n)) && is_unmarked(n) && !accumulation(uses, n))
                return std::nullopt;
        return result;
    }

    bool is_unmarked(NodeId loop) const { return m_tree.count(m_tree.child(loop, 0)) == 0; }

    /// `for (int i = 0; ...; i += 2)`: Slang knows the counter of each trip without keeping it.
    bool has_plain_header(NodeId loop) const
    {
        const NodeId init = m_tree.child(loop, 1), step = m_tree.child(loop, 3);
        if (!m_tree.is(init, Kind::variables) || m_tree.count(init) != 3 || condition_of(m_tree, loop) == none)
            return false;
        const NodeId counter = m_tree.child(init, 2), value = m_tree.child(counter, 2);
        const syntax::Type type = type_at(m_scopes, m_tree.child(init, 1));
        if (type.shape != Shape::scalar || !type.is_discrete || type.node != none || type.name == "bool" ||
            m_tree.count(m_tree.child(counter, 0)) > 0 || !is_number(value) || m_tree.main(counter).empty())
            return false;
        const bool is_assign = m_tree.is(step, Kind::assign);
        const std::string_view sign = m_tree.main(step);
        const bool steps = is_assign
            ? (sign == "+=" || sign == "-=") && is_number(m_tree.child(step, 1))
            : (m_tree.is(step, Kind::postfix) || m_tree.is(step, Kind::prefix)) && (sign == "++" || sign == "--");
        const NodeId stepped = steps ? m_tree.child(step, 0) : none;
        return m_tree.is(stepped, Kind::name) && m_scopes.variable_of(stepped) != none &&
            m_scopes.variable_of(stepped) == m_scopes.variable_of(counter);
    }

    bool is_number(NodeId n) const
    {
        if (m_tree.is(n, Kind::prefix) && m_tree.main(n) == "-")
            n = m_tree.child(n, 0);
        return m_tree.is(n, Kind::literal);
    }

    /// Whether statements are such as can be moved.
    bool is_plain(NodeId n) const
    {
        switch (m_tree.kind(n)) {
        case Kind::variables: return !is_marked(m_tree, n, "static");
        case Kind::expression:
            return !m_tree.is(m_tree.child(n, 0), Kind::name); // such as a macro of nobody knows where
        case Kind::block:
            for (const NodeId child : m_tree.children(n))
                if (!is_plain(child))
                    return false;
            return true;
        case Kind::if_:
            return !m_tree.is(m_tree.child(n, 1), Kind::variables) && is_plain(m_tree.child(n, 2)) &&
                (!m_tree.has(m_tree.child(n, 3)) || is_plain(m_tree.child(n, 3)));
        case Kind::for_: return is_plain(m_tree.child(n, 4));
        case Kind::while_: return is_plain(m_tree.child(n, 2));
        case Kind::do_: return is_plain(m_tree.child(n, 1));
        case Kind::break_:
        case Kind::continue_: return true; // of a loop inside
        default: return false;
        }
    }

    /// Fills in sums and what is read; false where the loop does something else.
    bool collect(const Uses& uses, Accumulation& found) const
    {
        const uint32_t counter = m_scopes.variable_of(m_tree.child(m_tree.child(found.loop, 1), 2));
        std::set<uint32_t> added;
        for (const syntax::Use* use : uses.in(found.loop)) {
            const Variable& variable = m_scopes.variables()[use->variable];
            const bool is_in_body = m_tree.holds(found.body, use->path.root);
            if (variable.is_doubtful || use->access == Access::unknown ||
                is_writable_memory(type_of(m_scopes, variable))) // a caller may write it before it is read again
                return false;
            if (variable.role == Role::local && m_tree.holds(found.body, variable.node))
                continue;
            if (use->variable == counter ? is_in_body && use->may_write() : use->may_write() && !is_in_body)
                return false;
            if (use->may_write() && use->variable != counter) {
                if (!add(*use, found))
                    return false;
                added.insert(use->variable);
            } else {
                found.read.insert(use->variable);
            }
        }
        return std::none_of(added.begin(), added.end(), [&](uint32_t variable) { return found.read.count(variable); });
    }

    /// A use as one of a sum: `s += e`, `s.x -= e`, `s[0] += e` as a statement.
    bool add(const syntax::Use& use, Accumulation& found) const
    {
        const Variable& variable = m_scopes.variables()[use.variable];
        if (use.access != Access::updated || !m_tree.is(use.by, Kind::assign) ||
            !m_tree.is(m_tree.parent(use.by), Kind::expression) || variable.role != Role::local ||
            (m_tree.main(use.by) != "+=" && m_tree.main(use.by) != "-="))
            return false;
        const std::string path = words(use.path.whole);
        const auto known = std::find_if(found.sums.begin(), found.sums.end(), [&](const LoopSum& sum) {
            return sum.variable == use.variable && sum.path == path;
        });
        if (known != found.sums.end()) {
            known->updates.push_back(use.by);
            return true;
        }
        found.sums.push_back({use.variable, path, type_of_sum(variable, use.path), {use.by}});
        return !found.sums.back().type.empty();
    }

    /// The type of a float, vector or matrix, or of a known element of a vector or array of these; else empty.
    std::string type_of_sum(const Variable& variable, const Path& path) const
    {
        const syntax::Type whole = type_of(m_scopes, variable);
        const NodeId written = syntax::type_of(m_tree, variable.node);
        if (whole.shape == Shape::generic && whole.is_differentiable && path.steps.empty())
            return std::string(whole.name);
        if (!whole.is_float || written == none || path.steps.size() > 1)
            return {};
        const bool is_array = whole.shape == Shape::array;
        if (path.steps.empty())
            return is_array ? std::string() : words(written);
        const NodeId step = path.steps[0];
        const bool is_index = m_tree.is(step, Kind::index) && m_tree.count(step) == 2 &&
            m_tree.is(m_tree.child(step, 1), Kind::literal);
        if (is_array)
            return is_index && whole.dimensions == 1 && whole.written_in == &m_scopes ? words(whole.written)
                                                                                      : std::string();
        const bool is_component = is_index || (m_tree.is(step, Kind::member) && m_tree.main(step).size() == 1);
        const std::string_view name = m_tree.text(written);
        const bool is_named = whole.shape == Shape::vector && name == whole.name && name.back() >= '2' &&
            name.back() <= '4';
        return is_component && is_named ? std::string(name.substr(0, name.size() - 1)) : std::string();
    }

    // --- text
    /// The tokens of a node in one line.
    std::string words(NodeId n) const { return moved(m_tree[n].first, m_tree[n].last).text; }
    Moved moved(size_t first, size_t last) const
    {
        Moved result;
        for (size_t i = first; i < last; ++i) {
            const bool is_apart = i > first && m_tree.tokens()[i - 1].end != m_tree.tokens()[i].begin;
            result.text += is_apart ? " " : "";
            result.origins.push_back({result.text.size(), m_tree.token(i).size(), m_tree.tokens()[i].begin});
            result.text += m_tree.token(i);
        }
        return result;
    }

    /// A region in which one sum is `_spy_sum` and the others are not formed.
    Moved moved(NodeId region, const Accumulation& found, const LoopSum& sum) const
    {
        struct Change {
            size_t first, last;
            const char* text;
        };
        std::map<size_t, Change> changes;
        for (const LoopSum& other : found.sums)
            for (const NodeId update : other.updates) {
                const bool is_it = &other == &sum;
                const NodeId n = is_it ? m_tree.child(update, 0) : m_tree.parent(update);
                changes[m_tree[n].first] = {m_tree[n].first, m_tree[n].last, is_it ? "_spy_sum" : "{ }"};
            }
        Moved result;
        size_t at = m_tree[region].first;
        for (const auto& [first, change] : changes) {
            result.add(moved(at, first));
            result.add({cat(" ", change.text, " "),
                        {{1, std::string_view(change.text).size(), m_tree.tokens()[first].begin}}});
            at = change.last;
        }
        result.add(moved(at, m_tree[region].last));
        return result;
    }

    /// `no_diff float x[2]` of what a loop reads; empty where the source does not show its type.
    std::string parameter(const Variable& variable) const
    {
        const NodeId type = m_tree.is(variable.node, Kind::declarator) ? syntax::type_of(m_tree, variable.node) : none;
        if (type == none || variable.direction == Direction::ref)
            return {};
        const NodeId dimensions = m_tree.child(variable.node, 0);
        if (m_tree.has(dimensions) && m_tree.count(dimensions) == 1 && !m_tree.has(m_tree.child(dimensions, 0)))
            return counted_array(variable, type);
        return (variable.is_no_diff ? "no_diff " : "") + words(type) + " " + std::string(variable.name) +
            (m_tree.has(dimensions) ? words(dimensions) : "");
    }

    /// `int x[3]` of `int x[] = {2, 0, 1}`: C++ has no copies of arrays without a size. Lists of others than numbers
    /// may flatten vectors and structs.
    std::string counted_array(const Variable& variable, NodeId type) const
    {
        const NodeId values = m_tree.child(variable.node, 2);
        if (!m_tree.is(values, Kind::list) || type_at(m_scopes, type).shape != Shape::scalar)
            return {};
        for (const NodeId value : m_tree.children(values))
            if (m_tree.is(value, Kind::list) || m_tree.macro(m_tree.token(m_tree[value].first)))
                return {};
        return cat(words(type), " ", variable.name, "[", m_tree.count(values), "]");
    }

    /// `<T, N>` of the generics of a function.
    std::string generic_arguments(NodeId generics) const
    {
        std::string result;
        for (const NodeId generic : m_tree.children(generics))
            result += (result.empty() ? "<" : ", ") + std::string(m_tree.main(generic));
        return result.empty() ? result : result + ">";
    }

    /// The variables around a region that it reads where it forms one sum; nothing where one cannot be barriers.
    std::optional<std::vector<const Variable*>> read_by(NodeId region, const Uses& uses, const Accumulation& found,
                                                        const LoopSum& sum) const
    {
        std::set<uint32_t> read;
        for (const syntax::Use* use : uses.in(region)) {
            const bool is_of_other = std::any_of(found.sums.begin(), found.sums.end(), [&](const LoopSum& other) {
                return std::any_of(other.updates.begin(), other.updates.end(), [&](NodeId update) {
                    return m_tree.holds(update, use->path.root) &&
                        (&other != &sum || m_tree.holds(m_tree.child(update, 0), use->path.root));
                });
            });
            if (!is_of_other)
                read.insert(use->variable);
        }
        std::vector<const Variable*> result;
        for (const uint32_t id : read) {
            const Variable& variable = m_scopes.variables()[id];
            if ((variable.role != Role::parameter && variable.role != Role::local) ||
                m_tree.holds(region, variable.node))
                continue;
            if (parameter(variable).empty())
                return std::nullopt;
            result.push_back(&variable);
        }
        return result;
    }

    /// Moves what a loop adds into functions; of a loop inside of another, which keeps its states, all of it.
    bool change(const syntax::Function& function, const Uses& uses, const Accumulation& found, Moved& functions)
    {
        const bool is_outermost = m_tree.loop_of(found.loop) == none;
        const NodeId region = is_outermost ? found.body : found.loop;
        const NodeId generics = m_tree.child(function.node, 2), wheres = m_tree.child(function.node, 5);
        Moved made;
        std::string calls = "{ ";
        for (const LoopSum& sum : found.sums) {
            const auto read = read_by(region, uses, found, sum);
            if (!read)
                return false;
            std::string parameters, arguments;
            for (const Variable* variable : *read) {
                parameters += (parameters.empty() ? "" : ", ") + parameter(*variable);
                arguments += (arguments.empty() ? "" : ", ") + std::string(variable->name);
            }
            const std::string name = m_name + std::to_string(m_count++);
            std::string head = "[PreferRecompute(SideEffectBehavior.Allow)] [Differentiable] ";
            if (is_marked(m_tree, function.node, "NoDiffThis"))
                head += "[NoDiffThis] ";
            head += (function.is_static ? "static " : "") + sum.type + " " + name;
            head += (m_tree.has(generics) ? words(generics) : "") + "(" + parameters + ") " +
                (m_tree.has(wheres) ? words(wheres) : "") + "{ " + sum.type + " _spy_sum = " + sum.type + "(-0.0f); { ";
            made.add({head});
            made.add(moved(region, found, sum));
            made.add({" } return _spy_sum; } "});
            calls += sum.path + " += " + name + (m_tree.has(generics) ? generic_arguments(generics) : "") + "(" +
                arguments + "); ";
        }
        const std::string_view old = m_tree.text(region);
        calls += "}" + std::string(size_t(std::count(old.begin(), old.end(), '\n')), '\n');
        if (is_outermost)
            m_edits.push_back({m_tree.begin(found.loop), m_tree.begin(found.loop), "[MaxIters(1)] "});
        m_edits.push_back({m_tree.begin(region), m_tree.end(region), calls});
        functions.add(made);
        return true;
    }

    const Tree& m_tree;
    const Scopes& m_scopes;
    std::string m_name;
    size_t m_count = 0;
    Effects m_effects;
    std::vector<Edit> m_edits;
};

} // namespace

std::vector<Edit> rewrite_accumulations(const ParsedSource& source) { return AccumulationFinder(source).edits(); }

} // namespace spy
