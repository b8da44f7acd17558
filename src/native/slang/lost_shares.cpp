// Elements whose reverse derivative Slang 2026.12 loses in silence.
#include "slang/lost_shares.h"

#include "slang/syntax/types.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace spy::syntax {
namespace {

/// Names of all capitals are constants and macros.
bool is_capital(std::string_view word)
{
    return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

/// What a use does to an element; `whole`: to all of the variable.
enum class Act : uint8_t { read, updated, stored, whole };

/// The body of a branch, or of a loop that is not unrolled.
struct Block {
    NodeId body;
    bool is_loop;
    bool operator==(const Block& other) const { return body == other.body; }
};

struct Step {
    size_t at; ///< the token where it happens: stores end their statement
    NodeId node;
    std::vector<NodeId> indices;
    std::string text, element; ///< element: the text after the name; empty: all of it
    bool varies;               ///< whether an index is known at run time only
    Act act;
    std::vector<Block> blocks; ///< around it
};

class ShareFinder {
public:
    ShareFinder(const Scopes& scopes, NodeId function)
        : m_scopes(scopes),
          m_tree(scopes.tree()),
          m_uses(scopes, function)
    {
    }

    std::vector<LostShare> find()
    {
        std::map<uint32_t, std::vector<const Use*>> by_variable; // copies with what they are copies of
        for (const Use& use : m_uses.all())
            if (const auto root = root_of(use.variable))
                by_variable[*root].push_back(&use);
        for (const auto& [variable, uses] : by_variable)
            if (const auto pair = pair_of(steps_of(variable, uses)))
                add(m_scopes.variables()[variable].name, pair->first, pair->second);
        find_in_macros();
        return std::move(m_found);
    }

private:
    void add(std::string_view variable, std::string first, std::string second)
    {
        m_found.push_back(
            {std::string(m_tree.main(m_uses.function())), std::string(variable), std::move(first), std::move(second)});
    }

    // --- variables
    /// Whether Slang keeps a variable, and its derivative, as a value with elements; tensors lie in memory.
    bool has_elements(const Variable& variable) const
    {
        if ((variable.role != Role::local && variable.role != Role::parameter) || variable.is_no_diff ||
            variable.is_static || !m_tree.holds(m_uses.function(), variable.node))
            return false;
        const Type type = type_of(m_scopes, variable);
        return type.has_elements() && (type.is_float || type.is_differentiable);
    }

    /// What a variable is a copy of, `T w = v;`, or itself.
    std::optional<uint32_t> root_of(uint32_t id)
    {
        const auto [known, is_new] = m_roots.try_emplace(id, std::nullopt);
        if (!is_new)
            return known->second;
        const Variable& variable = m_scopes.variables()[id];
        if (!has_elements(variable))
            return std::nullopt;
        std::optional<uint32_t> root = id;
        const NodeId value = m_tree.child(variable.node, 2);
        if (variable.role == Role::local && m_tree.is(value, Kind::name))
            if (const uint32_t source = m_scopes.variable_of(value); source != none && source != id)
                if (const auto found = root_of(source))
                    root = found;
        return m_roots[id] = root;
    }

    // --- uses in the order in which they happen
    std::vector<Step> steps_of(uint32_t root, const std::vector<const Use*>& uses) const
    {
        const Type type = type_of(m_scopes, m_scopes.variables()[root]);
        std::vector<Step> steps;
        for (const Use* use : uses)
            if (use->access != Access::declared)
                steps.push_back(step_of(*use, type.shape == Shape::vector));
            else if (use->variable == root)
                steps.push_back(declaration_of(*use));
        for (size_t i = 0; i < steps.size(); ++i)
            if (steps[i].act == Act::updated && !is_used_after(steps, i))
                steps[i].act = Act::stored;
        steps.erase(std::remove_if(steps.begin(), steps.end(),
                                   [&](const Step& step) {
                                       return step.act == Act::read &&
                                           (step.indices.empty() || is_in_conditional(step.node));
                                   }),
                    steps.end());
        std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
        return steps;
    }

    Step declaration_of(const Use& use) const
    {
        const NodeId value = m_tree.child(use.by, 2);
        const bool is_whole = value != none && m_tree.has(value) && !m_tree.is(value, Kind::list);
        return {m_tree[use.by].main,
                use.by,
                {},
                std::string(m_tree.main(use.by)),
                "",
                false,
                is_whole ? Act::whole : Act::stored,
                {}};
    }

    Step step_of(const Use& use, bool is_vector) const
    {
        Step step{m_tree[use.path.root].first, use.path.root, {}, {}, {}, false, Act::read,
                  blocks_around(use.path.root)};
        NodeId last = use.path.root;
        size_t taken = 0;
        for (; taken < use.path.steps.size() && m_tree.is(use.path.steps[taken], Kind::index); ++taken) {
            last = use.path.steps[taken];
            for (NodeId n = last + 1 + m_tree[last + 1].size; n < last + m_tree[last].size; n += m_tree[n].size) {
                step.indices.push_back(n);
                step.varies |= !m_uses.is_known(n);
            }
        }
        if (taken == 0 && is_vector && !use.path.steps.empty() && m_tree.main(use.path.steps[0]).size() == 1)
            last = use.path.steps[taken++];
        step.text = m_tree.plain(last);
        step.element = step.text.substr(std::min(step.text.size(), m_tree.plain(use.path.root).size()));
        step.act = act_of(use, step.element.empty());
        if (step.act != Act::read)
            step.at = end_of_statement(use.path.whole);
        return step;
    }

    static Act act_of_part(Access access) { return access == Access::written ? Act::stored : Act::updated; }
    Act act_of(const Use& use, bool is_all) const
    {
        switch (use.access) {
        case Access::written:
        case Access::updated: return is_all && !use.path.is_part() ? Act::whole : act_of_part(use.access);
        case Access::by_reference: return is_all ? Act::read : reads_argument(use) ? Act::updated : Act::stored;
        default: return Act::read;
        }
    }

    /// Whether a call that writes an argument may read it, too.
    bool reads_argument(const Use& use) const
    {
        const NodeId argument = use.path.whole;
        if (m_tree.parent(argument) != use.by || argument == use.by + 1)
            return true;
        const size_t place = m_tree.place(argument) - 1;
        for (const auto& [in, function] : m_scopes.callees_of(use.by)) {
            const Direction direction = in->variables()[function->parameters[place]].direction;
            if (direction == Direction::inout || direction == Direction::ref)
                return true;
        }
        return false;
    }

    size_t end_of_statement(NodeId n) const
    {
        const NodeId statement = m_tree.statement_of(n);
        const bool is_simple = m_tree.is(statement, Kind::expression) || m_tree.is(statement, Kind::variables) ||
            m_tree.is(statement, Kind::return_);
        return m_tree[is_simple ? statement : n].last;
    }

    /// Whether the variable, or the same element of it, is used again after the statement.
    bool is_used_after(const std::vector<Step>& steps, size_t i) const
    {
        return std::any_of(steps.begin() + long(i) + 1, steps.end(), [&](const Step& step) {
            return m_tree[step.node].first >= steps[i].at &&
                (step.element == steps[i].element ||
                 (step.element.empty() && m_tree.main(step.node) == m_tree.main(steps[i].node)));
        });
    }

    /// Whether a place is on one of both sides of a conditional.
    bool is_in_conditional(NodeId n) const
    {
        for (NodeId parent = m_tree.parent(n); parent != none && !is_statement(m_tree.kind(parent));
             n = parent, parent = m_tree.parent(n))
            if (m_tree.is(parent, Kind::conditional) && n != parent + 1)
                return true;
        return false;
    }

    /// Loops that are not unrolled, and branches; outer ones last.
    std::vector<Block> blocks_around(NodeId n) const
    {
        std::vector<Block> blocks;
        for (NodeId parent = m_tree.parent(n); parent != none && n != m_uses.function();
             n = parent, parent = m_tree.parent(n)) {
            const Kind kind = m_tree.kind(parent);
            if (is_loop(kind)) {
                const Loop* loop = m_uses.loop(parent);
                const size_t body = kind == Kind::for_ ? 4 : kind == Kind::do_ ? 1 : 2;
                if (m_tree.place(n) == body && (loop == nullptr || !loop->is_unrolled))
                    blocks.push_back({n, true});
            } else if ((kind == Kind::if_ || kind == Kind::switch_) && m_tree.place(n) >= 2) {
                blocks.push_back({n, false});
            }
        }
        return blocks;
    }

    // --- pairs
    /// Two uses of which the first reads a value that came as a whole, not by elements.
    std::optional<std::pair<std::string, std::string>> pair_of(const std::vector<Step>& steps) const
    {
        std::vector<const Step*> reads;
        std::set<std::string_view> stored;
        bool is_whole = true;
        for (const Step& step : steps) {
            if ((step.act == Act::read || step.act == Act::updated) && !stored.count(step.element))
                for (const Step* read : reads)
                    if (may_alias(*read, step) && follows(*read, step))
                        return std::pair(read->text, step.text);
            if (step.act == Act::whole) {
                reads.clear();
                stored.clear();
                is_whole = true;
            } else if (step.act != Act::read) {
                is_whole = false;
                stored.insert(step.element);
            } else if (is_whole) {
                reads.push_back(&step);
            }
        }
        return std::nullopt;
    }

    bool may_alias(const Step& read, const Step& step) const
    {
        if (!read.varies && !step.varies)
            return false;
        for (size_t i = 0; i < std::min(read.indices.size(), step.indices.size()); ++i) {
            const NodeId one = read.indices[i], other = step.indices[i];
            if (m_tree.is(one, Kind::literal) && m_tree.is(other, Kind::literal) &&
                m_tree.main(one) != m_tree.main(other))
                return false;
        }
        return read.element != step.element || step.act == Act::updated;
    }

    /// Whether a read is outside loops, and the other use in the same block, or a constant one in a loop right in it.
    static bool follows(const Step& read, const Step& step)
    {
        const auto is_in = [](const Block& block, const std::vector<Block>& blocks) {
            return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
        };
        for (const Block& block : read.blocks)
            if (block.is_loop || !is_in(block, step.blocks))
                return false;
        return std::all_of(step.blocks.begin(), step.blocks.end(), [&](const Block& block) {
            return is_in(block, read.blocks) || (block.is_loop && !step.varies);
        });
    }

    // --- macros
    /// The places of the parameters of which a macro reads elements, `#define AT(v, i) v[i]`.
    static std::set<size_t> indexed_parameters(const Macro& macro)
    {
        const std::vector<std::string_view> parameters = words_of(macro.parameters);
        const std::vector<Token> tokens = tokens_of(macro.body).tokens;
        const auto text = [&](size_t i) { return i < tokens.size() ? tokens[i].text(macro.body) : std::string_view(); };
        std::set<size_t> places;
        for (size_t i = 0; i < tokens.size(); ++i) {
            const auto found = std::find(parameters.begin(), parameters.end(), text(i));
            if (found != parameters.end() && text(text(i + 1) == ")" ? i + 2 : i + 1) == "[" &&
                (i == 0 || text(i - 1) != "."))
                places.insert(size_t(found - parameters.begin()));
        }
        return places;
    }

    /// Elements that macros read, in loops, too: the rules do not change them.
    void find_in_macros()
    {
        std::map<std::string_view, std::set<size_t>> macros;
        for (const Macro& macro : m_tree.macros())
            if (macro.is_function)
                if (const std::set<size_t> places = indexed_parameters(macro); !places.empty())
                    macros.emplace(macro.name, places);
        const NodeId function = m_uses.function();
        if (macros.empty())
            return;
        for (uint32_t id = 0; id < m_scopes.variables().size(); ++id) // those of generics, which have none, too
            if (const Variable& variable = m_scopes.variables()[id];
                variable.node != none && m_tree.holds(function, variable.node))
                m_names.emplace(variable.name, id);
        std::map<std::string_view, std::vector<std::pair<std::string, bool>>> reads; // text, and whether it varies
        for (size_t i = m_tree[function].first; i + 1 < m_tree[function].last; ++i)
            if (const auto found = macros.find(m_tree.token(i)); found != macros.end() && m_tree.token(i + 1) == "(")
                read_by_macro(i, found->second, reads);
        for (const auto& [variable, found] : reads)
            if (found.size() > 1 && std::any_of(found.begin(), found.end(), [](const auto& r) { return r.second; }))
                add(variable, found[0].first, found[1].first);
    }

    void read_by_macro(size_t at, const std::set<size_t>& places,
                       std::map<std::string_view, std::vector<std::pair<std::string, bool>>>& reads) const
    {
        std::vector<std::pair<size_t, size_t>> arguments; // of tokens
        size_t begin = at + 2, end = begin;
        for (int depth = 1; depth > 0 && end < m_tree.tokens().size(); ++end) {
            const std::string_view token = m_tree.token(end);
            depth += (token == "(" || token == "[") - (token == ")" || token == "]");
            if (depth == 0 || (depth == 1 && token == ",")) {
                arguments.emplace_back(begin, end);
                begin = end + 1;
            }
        }
        const std::string text(m_tree.source().substr(m_tree.tokens()[at].begin,
                                                      m_tree.tokens()[end - 1].end - m_tree.tokens()[at].begin));
        for (const size_t place : places) {
            if (place >= arguments.size() || arguments[place].second != arguments[place].first + 1)
                continue;
            const auto variable = m_names.find(m_tree.token(arguments[place].first));
            if (variable == m_names.end() || !has_elements(m_scopes.variables()[variable->second]))
                continue;
            bool varies = false;
            for (size_t other = 0; other < arguments.size(); ++other)
                for (size_t i = arguments[other].first; other != place && i < arguments[other].second; ++i)
                    varies |= m_tree.tokens()[i].kind == TokenKind::word && is_run_time(m_tree.token(i));
            auto& known = reads[variable->first];
            if (std::none_of(known.begin(), known.end(), [&](const auto& read) { return read.first == text; }))
                known.emplace_back(text, varies);
        }
    }

    bool is_run_time(std::string_view word) const
    {
        const auto found = m_names.find(word);
        return found == m_names.end() ? !is_capital(word) && word != "int" && word != "uint"
                                      : !m_uses.is_known_variable(found->second);
    }

    const Scopes& m_scopes;
    const Tree& m_tree;
    const Uses m_uses;
    std::map<uint32_t, std::optional<uint32_t>> m_roots;
    std::map<std::string_view, uint32_t> m_names; ///< of the function's variables, where macros are used
    std::vector<LostShare> m_found;
};

} // namespace

std::vector<LostShare> lost_shares(const Scopes& scopes, NodeId function)
{
    return ShareFinder(scopes, function).find();
}

} // namespace spy::syntax
