// What sources say about functions, words and views, for the Python side of plans.
#include "slang/facts.h"

#include "slang/syntax/parser.h"

#include <algorithm>

namespace spy::syntax {

namespace {

bool is_thread_static(const Variable& variable)
{
    return variable.is_static && !variable.is_const && !variable.is_groupshared;
}

template <class List>
void add_once(List& list, std::string_view text)
{
    if (std::find(list.begin(), list.end(), text) == list.end())
        list.emplace_back(text);
}

/// The `f` in calls such as `f(x)`, `a.f(x)`, `f<int>(x)`; empty for other calls.
std::string_view called_name(const Tree& tree, NodeId call)
{
    NodeId callee = tree.child(call, 0);
    if (tree.is(callee, Kind::generic_use))
        callee = tree.child(callee, 0);
    return tree.is(callee, Kind::name) || tree.is(callee, Kind::member) ? tree.main(callee) : std::string_view();
}

/// The type with its array part: `float[2]` for `float x[2]`.
std::string plain_type(const Tree& tree, NodeId declarator)
{
    const NodeId type = type_of(tree, declarator);
    return (type == none ? std::string() : tree.plain(type)) + tree.plain(tree.child(declarator, 0));
}

/// Whether a macro declares a static variable that is not constant.
bool declares_static(const Macro& macro)
{
    const std::vector<Token> tokens = tokens_of(macro.body).tokens;
    const auto text = [&](size_t i) { return i < tokens.size() ? tokens[i].text(macro.body) : std::string_view(); };
    for (size_t i = 0; i < tokens.size(); ++i)
        if (text(i) == "static" && text(i + 1) != "const")
            return true;
    return false;
}

} // namespace

Facts::Facts(std::string text, const std::vector<std::string>& macros)
    : m_text(std::move(text)),
      m_outer_macros(macros.begin(), macros.end())
{
    m_tree = std::make_unique<Tree>(parse(m_text));
    m_scopes = std::make_unique<Scopes>(*m_tree);
    for (const Macro& macro : m_tree->macros()) {
        m_macro_words.insert(macro.name);
        for (const std::string_view word : words_of(macro.body))
            m_macro_words.insert(word);
    }
    m_words = m_macro_words;
    m_macro_words.insert(m_outer_macros.begin(), m_outer_macros.end());
    for (size_t i = 0; i < m_tree->tokens().size(); ++i)
        if (m_tree->tokens()[i].kind == TokenKind::word)
            m_words.insert(m_tree->token(i));
    for (const Trivia& trivia : m_tree->trivia()) // the other branches of an #if
        if (trivia.kind == TriviaKind::hidden) {
            const std::string_view part = std::string_view(m_text).substr(trivia.begin, trivia.end - trivia.begin);
            for (const std::string_view word : words_of(part))
                m_words.insert(word);
        }
    for (NodeId n = 0; n < m_tree->size(); ++n)
        if ((m_tree->is(n, Kind::function) && body_of(*m_tree, n) != none) || m_tree->is(n, Kind::property))
            m_bodies.emplace(m_tree->main(n), n);
}

std::set<std::string_view> Facts::words_in(NodeId node) const
{
    std::set<std::string_view> words;
    for (size_t i = (*m_tree)[node].first; i < (*m_tree)[node].last; ++i)
        if (m_tree->tokens()[i].kind == TokenKind::word) {
            words.insert(m_tree->token(i));
            if (const Macro* macro = m_tree->macro(m_tree->token(i)))
                for (const std::string_view word : words_of(macro->body))
                    words.insert(word);
        }
    return words;
}

std::set<std::string_view> Facts::no_diff_types() const
{
    std::set<std::string_view> names;
    for (const Variable& variable : m_scopes->variables())
        if (variable.is_no_diff)
            for (const std::string_view word : words_of(variable.type))
                names.insert(word);
    return names;
}

std::vector<NodeId> Facts::reached(std::string_view function) const
{
    std::vector<NodeId> nodes;
    std::vector<std::string_view> waiting = {function};
    std::set<std::string_view> seen = {function};
    while (!waiting.empty()) {
        const auto [first, last] = m_bodies.equal_range(waiting.back());
        waiting.pop_back();
        for (auto found = first; found != last; ++found) {
            nodes.push_back(found->second);
            for (const std::string_view word : words_in(found->second))
                if (m_bodies.count(word) && seen.insert(word).second)
                    waiting.push_back(word);
        }
    }
    return nodes;
}

std::set<std::string_view> Facts::reached_words(std::string_view function) const
{
    std::set<std::string_view> words;
    for (const NodeId node : reached(function))
        words.merge(words_in(node));
    return words;
}

std::set<std::string_view> Facts::reached_names(std::string_view function) const
{
    std::set<std::string_view> names;
    for (const NodeId node : reached(function)) {
        std::set<const char*> own; // the places of names that mean something else
        for (const NodeId n : m_tree->inside(node)) {
            const Variable* meant = m_tree->is(n, Kind::name) ? m_scopes->find(n) : nullptr;
            if (m_tree->is(n, Kind::declarator) || (meant && meant->role != Role::global && !meant->is_doubtful))
                own.insert(m_tree->main(n).data());
        }
        const size_t first = (*m_tree)[node].first;
        for (size_t i = first; i < (*m_tree)[node].last; ++i) {
            const std::string_view word = m_tree->token(i);
            if (m_tree->tokens()[i].kind != TokenKind::word || own.count(word.data()) ||
                (i > first && is_among(m_tree->token(i - 1), {".", "->"})))
                continue;
            names.insert(word);
            if (const Macro* macro = m_tree->macro(word))
                for (const std::string_view inside : words_of(macro->body))
                    names.insert(inside);
        }
    }
    return names;
}

bool Facts::may_loop(std::string_view function) const
{
    const std::vector<NodeId> nodes = reached(function);
    const auto loops = [&](NodeId node) {
        for (const NodeId n : m_tree->inside(node)) {
            if (is_loop(m_tree->kind(n)) && !is_marked(*m_tree, n, "ForceUnroll") && !is_marked(*m_tree, n, "unroll"))
                return true;
            if (m_tree->is(n, Kind::opaque) || (*m_tree)[n].is_split)
                for (const std::string_view word : words_in(n))
                    if (is_among(word, {"for", "while", "do"}))
                        return true;
        }
        return false;
    };
    return nodes.empty() || std::any_of(nodes.begin(), nodes.end(), loops);
}

bool Facts::keeps_statics() const
{
    if (std::any_of(m_tree->macros().begin(), m_tree->macros().end(), declares_static))
        return true;
    std::set<std::string_view> names;
    for (const Variable& variable : m_scopes->variables())
        if (is_thread_static(variable))
            names.insert(variable.name);
    for (NodeId n = 0; n < m_tree->size(); ++n) {
        const Kind kind = m_tree->kind(n);
        if (kind == Kind::opaque || (*m_tree)[n].is_split) {
            const std::set<std::string_view> words = words_in(n);
            if (words.count("static") || std::ranges::any_of(names, [&](auto name) { return words.count(name) > 0; }))
                return true;
        }
        // `S.count` by its last name; a local of the same name counts too
        if ((kind != Kind::name && kind != Kind::member) || !names.count(m_tree->main(n)))
            continue;
        if (is_macro(m_tree->main(n)) || access_at(*m_scopes, path_from(*m_tree, n).whole).first != Access::read)
            return true;
    }
    return false;
}

std::vector<std::string> Facts::calls_in(NodeId function) const
{
    std::vector<std::string> calls;
    std::set<std::string_view> seen;
    const auto add = [&](std::string_view name) {
        if (!name.empty() && seen.insert(name).second)
            calls.emplace_back(name);
    };
    for (const NodeId n : m_tree->inside(function)) {
        const bool is_hidden = m_tree->is(n, Kind::opaque) || (*m_tree)[n].is_split ||
            (m_tree->is(n, Kind::name) && m_tree->macro(m_tree->main(n)) != nullptr);
        if (is_hidden)
            for (const std::string_view word : words_in(n))
                add(m_scopes->callees(word).empty() ? std::string_view() : word);
        else if (m_tree->is(n, Kind::call))
            add(called_name(*m_tree, n));
    }
    return calls;
}

std::vector<std::pair<std::string, std::string>> Facts::extern_constants() const
{
    std::vector<std::pair<std::string, std::string>> found;
    for (const Variable& variable : m_scopes->variables())
        if (variable.role == Role::global && variable.is_static && variable.is_const &&
            is_marked(*m_tree, m_tree->parent(variable.node), "extern"))
            found.emplace_back(variable.name, plain_type(*m_tree, variable.node));
    return found;
}

std::vector<std::string> Facts::comments_above(size_t line, size_t column) const
{
    size_t at = 0;
    for (; line > 1 && at != m_text.npos; --line)
        at = m_text.find('\n', at) == m_text.npos ? m_text.npos : m_text.find('\n', at) + 1;
    at = at == m_text.npos ? at : at + column - 1;
    std::vector<std::string> found;
    for (NodeId n = 0; n < m_tree->size(); ++n) {
        const Node& node = (*m_tree)[n];
        if ((node.kind != Kind::function && node.kind != Kind::type) || m_tree->tokens()[node.main].begin != at)
            continue;
        const size_t begin = node.first == 0 ? 0 : m_tree->tokens()[node.first - 1].end;
        size_t breaks = 0; // after the last comment
        for (const Trivia& trivia : m_tree->trivia()) {
            const std::string_view text = std::string_view(m_text).substr(trivia.begin, trivia.end - trivia.begin);
            if (trivia.begin < begin || trivia.end > at)
                continue;
            if (trivia.kind == TriviaKind::space)
                breaks = size_t(std::count(text.begin(), text.end(), '\n'));
            if (breaks > 1 || trivia.kind == TriviaKind::directive)
                found.clear();
            if (trivia.kind == TriviaKind::comment)
                found.emplace_back(text);
        }
    }
    return found;
}

std::vector<LostShare> Facts::lost_shares(std::string_view function) const
{
    std::vector<LostShare> found;
    const auto [first, last] = m_bodies.equal_range(function);
    for (auto body = first; body != last; ++body)
        for (LostShare& share : syntax::lost_shares(*m_scopes, body->second))
            found.push_back(std::move(share));
    return found;
}

std::vector<FunctionFacts> Facts::functions() const
{
    static constexpr const char* directions[] = {"in", "out", "inout", "ref"};
    std::vector<FunctionFacts> result;
    for (const Function& function : m_scopes->functions()) {
        FunctionFacts facts;
        facts.name = function.name;
        facts.owner = function.owner == none ? std::string_view() : m_tree->main(function.owner);
        facts.has_body = body_of(*m_tree, function.node) != none;
        facts.is_mutating = function.is_mutating;
        for (const uint32_t id : function.parameters) {
            const Variable& v = m_scopes->variables()[id];
            facts.parameters.push_back(
                {std::string(v.name), plain_type(*m_tree, v.node), directions[size_t(v.direction)], v.is_no_diff});
        }
        for (const NodeId c : m_tree->children(m_tree->child(function.node, 0))) {
            if (!m_tree->is(c, Kind::attribute))
                continue;
            facts.attributes.emplace_back(m_tree->text(c));
            const std::string_view name = m_tree->main(c);
            if ((name.find("Derivative") != name.npos || name.starts_with("PrimalSubstitute")) && m_tree->count(c) > 0)
                facts.derivatives.emplace_back(name, m_tree->text(m_tree->child(c, 0)));
        }
        const Uses uses(*m_scopes, function.node);
        facts.is_understood = uses.is_understood();
        for (const Loop& loop : uses.loops())
            facts.loops.push_back(
                {loop.is_unrolled, loop.max_iters == none ? "" : std::string(m_tree->text(loop.max_iters))});
        facts.calls = calls_in(function.node);
        for (const Use& use : uses.all()) {
            const Variable& variable = m_scopes->variables()[use.variable];
            if (is_thread_static(variable))
                add_once(facts.statics, variable.name);
            if (use.may_write() && variable.role != Role::local)
                add_once(facts.writes, variable.name);
        }
        result.push_back(std::move(facts));
    }
    return result;
}

/// Follows a view through the functions that it is passed to.
class ViewFinder {
public:
    explicit ViewFinder(const Facts& facts) : m_facts(facts), m_tree(*facts.m_tree), m_scopes(*facts.m_scopes) { }

    unsigned uses(const std::string& function, size_t index, const Fields& fields)
    {
        // 0 for a call of itself: what the function does is found by the rest of its body
        const auto [known, is_new] = m_known.try_emplace({function, index, fields}, 0);
        if (!is_new)
            return known->second;
        unsigned found = 0;
        bool any = false;
        const auto [first, last] = m_facts.m_bodies.equal_range(function);
        for (auto body = first; body != last; ++body)
            if (const Function* declared = m_scopes.function(body->second);
                declared && index < declared->parameters.size()) {
                any = true;
                found |= in_body(body->second, declared->parameters[index], fields);
            }
        return m_known[{function, index, fields}] = any ? found : unsigned(unknown_use);
    }

    std::optional<std::vector<std::pair<std::string, size_t>>> differentiates(const std::string& function, size_t index)
    {
        std::vector<std::pair<std::string, size_t>> found;
        const auto [first, last] = m_facts.m_bodies.equal_range(function);
        for (auto body = first; body != last; ++body) {
            const Function* declared = m_scopes.function(body->second);
            if (!declared || index >= declared->parameters.size() ||
                !is_plain(body->second, declared->parameters[index]))
                return std::nullopt;
            for (const NodeId n : m_tree.inside(body_of(m_tree, body->second)))
                if (m_scopes.variable_of(n) == declared->parameters[index] && m_tree.is(n, Kind::name) &&
                    !is_differentiated(n, found))
                    return std::nullopt;
        }
        return found;
    }

private:
    /// Whether a body was parsed whole and no macro has the name of the variable.
    bool is_plain(NodeId function, uint32_t variable) const
    {
        return m_tree.is_understood(function) && !m_facts.is_macro(m_scopes.variables()[variable].name);
    }

    unsigned in_body(NodeId function, uint32_t variable, const Fields& fields)
    {
        if (!is_plain(function, variable))
            return unknown_use;
        unsigned found = 0;
        for (const NodeId n : m_tree.inside(body_of(m_tree, function)))
            if (m_scopes.variable_of(n) == variable && m_tree.is(n, Kind::name))
                found |= use(n, fields);
        return found;
    }

    /// What one mention of a variable does: a view, or a struct in which `fields` leads to one.
    unsigned use(NodeId whole, const Fields& fields)
    {
        const NodeId parent = m_tree.parent(whole);
        const bool is_first = whole == parent + 1;
        if (m_tree.is(parent, Kind::paren))
            return use(parent, fields);
        if (m_tree.is(parent, Kind::member) && is_first)
            return member(parent, fields);
        if (m_tree.is(parent, Kind::index) && is_first && fields.empty())
            return element(parent);
        if (!m_tree.is(parent, Kind::call) || is_first)
            return unknown_use;
        const std::string_view callee = called_name(m_tree, parent);
        return callee.empty() ? unsigned(unknown_use) : uses(std::string(callee), m_tree.place(whole) - 1, fields);
    }

    /// Whether an element is an argument of `bwd_diff(f)(...)`, which writes nothing but pairs: what `f` would write is
    /// left out, or is where its derivative is read.
    bool is_given_to_derivative(NodeId whole) const
    {
        const NodeId call = m_tree.parent(whole);
        if (!m_tree.is(call, Kind::call) || whole == call + 1 || !m_tree.is(call + 1, Kind::call))
            return false;
        return is_among(called_name(m_tree, call + 1), {"bwd_diff", "__bwd_diff"});
    }

    unsigned element(NodeId index) const
    {
        const Path path = path_from(m_tree, index);
        if (is_given_to_derivative(path.whole))
            return reads_view;
        switch (access_at(m_scopes, path.whole).first) {
        case Access::read: return reads_view;
        case Access::written: return path.is_part() ? stores_view | reads_view : unsigned(stores_view);
        case Access::unknown: return unknown_use;
        default: return stores_view | reads_view;
        }
    }

    unsigned member(NodeId node, const Fields& fields)
    {
        const NodeId callee = m_tree.is(m_tree.parent(node), Kind::generic_use) ? m_tree.parent(node) : node;
        const bool is_call = m_tree.is(m_tree.parent(callee), Kind::call) && callee == m_tree.parent(callee) + 1;
        const std::string name(m_tree.main(node));
        if (!fields.empty()) {
            const Fields rest(fields.begin() + 1, fields.end());
            if (is_call)
                return method(name, fields[0], rest);
            return name == fields[0] ? use(node, rest) : 0;
        }
        if (is_call)
            return is_among(name, {"size", "dim", "dims", "stride"}) ? 0
                : is_among(name, {"load", "loadOnce"})               ? unsigned(reads_view)
                : is_among(name, {"store", "storeOnce"})             ? unsigned(stores_view)
                                                                     : extension(name);
        return name == "diff" ? unsigned(uses_gradient) : name == "primal" ? use(node, {}) : unsigned(unknown_use);
    }

    /// What the methods of a name do with a field, written alone or after `this.`. `is_plain`: whether they use `this`
    /// for nothing else.
    unsigned in_methods(const std::string& method, std::string_view field, const Fields& fields, bool& is_plain)
    {
        unsigned found = 0;
        const auto [first, last] = m_facts.m_bodies.equal_range(method);
        is_plain = first != last;
        for (auto body = first; body != last; ++body) {
            is_plain &= m_tree.is_understood(body->second) && !m_facts.is_macro(field);
            for (const NodeId n : m_tree.inside(body->second)) {
                const bool is_name = m_tree.is(n, Kind::name);
                const bool is_base = m_tree.is(m_tree.parent(n), Kind::member) && n == m_tree.parent(n) + 1;
                is_plain &= !(is_name && m_tree.main(n) == "this" && !is_base);
                const bool is_of_this = m_tree.is(n, Kind::member) && m_tree.main(n) == field &&
                    m_tree.main(n + 1) == "this";
                if ((is_name && m_tree.main(n) == field && !is_own(n)) || is_of_this)
                    found |= use(n, fields);
            }
        }
        return found;
    }

    bool is_own(NodeId name) const
    {
        const Variable* variable = m_scopes.find(name);
        return variable != nullptr && (variable->role == Role::local || variable->role == Role::parameter);
    }

    unsigned method(const std::string& name, std::string_view field, const Fields& fields)
    {
        bool is_plain;
        const unsigned found = in_methods(name, field, fields, is_plain);
        return is_plain ? found : unsigned(unknown_use);
    }

    /// A method that users have added to the view.
    unsigned extension(const std::string& name)
    {
        bool is_plain;
        const unsigned found = in_methods(name, "primal", {}, is_plain);
        for (const std::string_view word : is_plain ? m_facts.reached_words(name) : std::set<std::string_view>())
            is_plain &= !word.starts_with("store") && !word.starts_with("Interlocked") && !word.starts_with("data_ptr");
        return is_plain && (found & ~unsigned(reads_view)) == 0 ? unsigned(reads_view) : unsigned(unknown_use);
    }

    bool is_differentiated(NodeId whole, std::vector<std::pair<std::string, size_t>>& found) const
    {
        const NodeId parent = m_tree.parent(whole);
        if (m_tree.is(parent, Kind::member))
            return is_among(m_tree.main(parent), {"size", "dim", "dims", "stride"}) &&
                m_tree.is(m_tree.parent(parent), Kind::call);
        const NodeId inner = m_tree.is(parent, Kind::call) ? m_tree.child(parent, 0) : none;
        if (!m_tree.is(inner, Kind::call) || !is_among(called_name(m_tree, inner), {"bwd_diff", "__bwd_diff"}))
            return false;
        found.emplace_back(m_tree.main(m_tree.child(inner, 1)), m_tree.place(whole) - 1);
        return true;
    }

    const Facts& m_facts;
    const Tree& m_tree;
    const Scopes& m_scopes;
    std::map<std::tuple<std::string, size_t, Fields>, unsigned> m_known;
};

unsigned Facts::view_uses(const std::string& function, size_t index, const Fields& fields) const
{
    return ViewFinder(*this).uses(function, index, fields); // a new finder, as what one remembers fits one question
}

std::optional<std::vector<std::pair<std::string, size_t>>> Facts::differentiates(const std::string& function,
                                                                                 size_t index) const
{
    return ViewFinder(*this).differentiates(function, index);
}

} // namespace spy::syntax
