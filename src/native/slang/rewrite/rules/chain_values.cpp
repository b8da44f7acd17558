// Long chains of Slang's own functions, in other shapes than runs of statements on one variable.
//
// Values made of each other through functions of Slang's own (`a = sin(b) + x; b = exp(-a) + y; let c = ...`): .bwds
// computes each value anew wherever it is read, and the one before for that, so that the code doubles with each. In
// functions with long chains of them every fourth value passes through a function whose results are kept.
#include "slang/rewrite/rules/all.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/rewrite/rules/barriers.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/uses.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Shape;

/// Calls between two values that are kept. The time to compile doubles with each of them.
constexpr int between_kept = 4;
/// The longest chain that is left as it is.
constexpr int longest_uncut = 12;

struct ChainValue {
    int depth = 0;         ///< calls of those functions that it takes to compute it from values that are kept
    bool is_float = false; ///< a number, vector or matrix of floats
    bool is_other = false; ///< it may be no number: what is made of it may have a type without derivatives

    ChainValue with(const ChainValue& next) const
    {
        const bool other = is_other || next.is_other;
        return {std::max(depth, next.depth), (is_float || next.is_float) && !other, other};
    }
};

/// What one function computes.
class ChainValues {
public:
    ChainValues(const ParsedSource& source, NodeId function)
        : m_tree(source.tree()),
          m_scopes(source.scopes()),
          m_body(syntax::body_of(m_tree, function))
    {
    }

    /// The values that are to be kept.
    std::vector<NodeId> long_ones()
    {
        walk(m_body);
        if (m_deepest <= longest_uncut)
            return {};
        m_cuts = true;
        m_depths.clear();
        walk(m_body);
        return std::move(m_kept);
    }

private:
    using Depths = std::map<uint32_t, std::map<std::string, int>>; ///< by variable and path in it

    void walk(NodeId n)
    {
        switch (m_tree.kind(n)) {
        case Kind::lambda: return;
        case Kind::if_: return branch(n);
        case Kind::for_:
        case Kind::while_:
        case Kind::do_: // what goes from trip to trip is kept
            m_depths.clear();
            walk_children(n);
            return m_depths.clear();
        case Kind::declarator: return declare(n);
        default:
            return syntax::is_statement(m_tree.kind(n)) || m_tree.is(n, Kind::modifiers) ? walk_children(n)
                                                                                         : void(value(n));
        }
    }

    void walk_children(NodeId n)
    {
        for (const NodeId child : m_tree.children(n))
            walk(child);
    }

    void declare(NodeId n)
    {
        const uint32_t variable = m_scopes.variable_of(n);
        const ChainValue given = kept(m_tree.child(n, 2));
        if (given.is_float)
            m_floats.insert(variable);
        set(variable, "", given.depth);
    }

    void branch(NodeId n)
    {
        walk(m_tree.child(n, 1));
        Depths outer = std::exchange(m_before, {}), then;
        walk(m_tree.child(n, 2));
        for (const auto& [variable, before] : m_before)
            then[variable] = std::exchange(m_depths[variable], before);
        walk(m_tree.child(n, 3));
        for (const auto& [variable, paths] : then)
            for (const auto& [path, depth] : paths)
                m_depths[variable][path] = std::max(m_depths[variable][path], depth);
        outer.merge(m_before);
        m_before = std::move(outer);
    }

    ChainValue value(NodeId n)
    {
        switch (m_tree.kind(n)) {
        case Kind::name:
        case Kind::member:
        case Kind::index: return path_value(n);
        case Kind::assign: return assign(n);
        case Kind::call: return call(n);
        case Kind::conditional: return values(n, 1, value(m_tree.child(n, 0)).depth);
        case Kind::paren: return value(m_tree.child(n, 0));
        case Kind::prefix:
        case Kind::binary: {
            const ChainValue all = values(n, 0, 0);
            const std::string_view sign = m_tree.main(n);
            const bool is_sum = sign.size() == 1 && std::string_view("+-*/%").find(sign[0]) != std::string_view::npos;
            return {all.depth, all.is_float && is_sum, all.is_other || !is_sum};
        }
        case Kind::cast: return typed(value(m_tree.child(n, 1)).depth, syntax::type_of_value(m_scopes, n));
        case Kind::literal: return {};
        case Kind::list: return {values(n, 0, 0).depth, false, true};
        default: return {0, false, true};
        }
    }

    /// Of numbers put together.
    ChainValue values(NodeId n, size_t first, int depth)
    {
        ChainValue all{depth, false};
        size_t k = 0;
        for (const NodeId child : m_tree.children(n))
            if (k++ >= first)
                all = all.with(value(child));
        return all;
    }

    /// A value as it goes on: long ones are kept.
    ChainValue kept(NodeId n)
    {
        ChainValue given = value(n);
        if (m_cuts && given.is_float && given.depth >= between_kept) {
            m_kept.push_back(n);
            given.depth = 0;
        }
        return given;
    }

    ChainValue call(NodeId n)
    {
        const NodeId callee = m_tree.child(n, 0);
        if (m_tree.macro(m_tree.main(callee)) != nullptr)
            return {0, false, true};
        if (!is_own_link(m_scopes, callee)) {
            const bool is_own = is_declared(m_scopes, callee);
            const ChainValue all = values(n, 1, 0);
            const syntax::Type type = is_own ? syntax::type_of_value(m_scopes, n) : syntax::type_at(m_scopes, callee);
            return typed(is_own ? 0 : all.depth, type); // results of functions are kept, those of float3(...) not
        }
        ChainValue all;
        for (size_t k = 1; k < m_tree.count(n); ++k)
            all = all.with(kept(m_tree.child(n, k)));
        m_deepest = std::max(m_deepest, ++all.depth);
        return all;
    }

    ChainValue assign(NodeId n)
    {
        const NodeId to = m_tree.child(n, 0);
        const auto [variable, path] = path_of(to);
        ChainValue given = kept(m_tree.child(n, 1));
        if (m_tree.main(n) != "=")
            given.depth = std::max(given.depth, value(to).depth);
        set(variable, path, given.depth);
        return given;
    }

    /// The variable that `s.q[i].x` begins with, and "q." of it: what follows an index may be any element.
    std::pair<uint32_t, std::string> path_of(NodeId n) const
    {
        std::vector<NodeId> steps;
        for (; m_tree.is(n, Kind::member) || m_tree.is(n, Kind::index) || m_tree.is(n, Kind::paren); n = n + 1)
            if (!m_tree.is(n, Kind::paren))
                steps.push_back(n);
        std::string path;
        while (!steps.empty() && m_tree.is(steps.back(), Kind::member)) {
            path += cat(m_tree.main(steps.back()), ".");
            steps.pop_back();
        }
        return {m_tree.is(n, Kind::name) ? m_scopes.variable_of(n) : syntax::none, path};
    }

    ChainValue path_value(NodeId n)
    {
        const auto [variable, path] = path_of(n);
        if (variable == syntax::none) // float2(a, b).x
            return typed(m_tree.is(n, Kind::name) ? 0 : value(n + 1).depth, syntax::type_of_value(m_scopes, n));
        int depth = 0;
        if (const auto known = m_depths.find(variable); known != m_depths.end())
            for (const auto& [written, of] : known->second)
                if (written.starts_with(path) || path.starts_with(written))
                    depth = std::max(depth, of);
        if (m_tree.is(n, Kind::name) && is_float_variable(variable))
            return {depth, true, false};
        return typed(depth, syntax::type_of_value(m_scopes, n));
    }

    static ChainValue typed(int depth, const syntax::Type& type)
    {
        const bool is_number = type.shape >= Shape::scalar && type.shape <= Shape::matrix;
        return {depth, is_number && type.is_float, !is_number};
    }

    bool is_float_variable(uint32_t variable) const
    {
        return variable != syntax::none &&
            (m_scopes.variables()[variable].type.empty() ? m_floats.contains(variable)
                                                         : is_float_number(m_scopes, variable));
    }

    void set(uint32_t variable, const std::string& path, int depth)
    {
        if (variable == syntax::none)
            return;
        std::map<std::string, int>& known = m_depths[variable];
        m_before.try_emplace(variable, known);
        std::erase_if(known, [&](const auto& written) { return written.first.starts_with(path); });
        known[path] = depth;
    }

    const syntax::Tree& m_tree;
    const syntax::Scopes& m_scopes;
    NodeId m_body;
    int m_deepest = 0;
    bool m_cuts = false;
    Depths m_depths, m_before;   ///< as it is, and where an arm of a branch has changed it, before that
    std::set<uint32_t> m_floats; ///< of those made by `let x = e`
    std::vector<NodeId> m_kept;
};

/// A float made of a parameter that has a derivative and alone has its name: Slang computes kept values anew all the
/// same, unless one goes in beside them that comes after all parameters that the chain begins with.
std::string number_of(const ParsedSource& source, NodeId function)
{
    const syntax::Scopes& scopes = source.scopes();
    const syntax::Function* known = scopes.function(function);
    std::string number;
    for (const uint32_t parameter : known == nullptr ? std::vector<uint32_t>() : known->parameters) {
        const syntax::Variable& it = scopes.variables()[parameter];
        const bool is_alone = std::ranges::none_of(scopes.variables(), [&](const syntax::Variable& other) {
            return &other != &it && other.name == it.name && source.tree().holds(function, other.node);
        });
        const syntax::Type type = syntax::type_of(scopes, it);
        const bool is_number = type.is_float && type.shape >= Shape::scalar && type.shape <= Shape::matrix;
        const std::string_view part = type.shape == Shape::matrix ? "[0][0]" : type.shape == Shape::vector ? ".x" : "";
        if (is_alone && is_number && !it.is_array && !it.is_no_diff && !it.is_doubtful &&
            it.direction == syntax::Direction::in && source.tree().macro(it.name) == nullptr &&
            scopes.types("float").empty())
            number = it.type == "float" ? std::string(it.name) : cat("float(", it.name, part, ")");
    }
    return number;
}

} // namespace

std::vector<Edit> keep_chain_values(const ParsedSource& source)
{
    const syntax::Tree& tree = source.tree();
    std::map<size_t, std::string> texts;
    size_t number = 0;
    for (const NodeId function : differentiable_functions(source)) {
        const std::vector<NodeId> values = ChainValues(source, function).long_ones();
        const std::string by = values.empty() ? std::string() : number_of(source, function);
        if (by.empty())
            continue;
        // One for each function: another may stand in another branch of an #if, or a file be included twice.
        const std::string keep = cat("_spy_kept_", content_hash(source.text()).substr(0, 12), "_", number++);
        std::string& functions = texts[places_of(tree, function).begin];
        for (const std::string_view type : {"float", "float2", "float3", "float4", "half", "half2", "half3", "half4",
                                            "double", "double2", "double3", "double4", "T"}) // "T" does not always help
            functions += cat("[Differentiable] [PreferCheckpoint] ", type, " ", keep,
                             type == "T" ? "<T : IDifferentiable>" : "", "(", type, " v, float by) { return v; } ");
        for (const NodeId value : values) { // of two that begin or end alike, the inner one comes first
            texts[tree.begin(value)].insert(0, keep + "(");
            texts[tree.end(value)] += cat(", ", by, ")");
        }
    }
    return insertions(std::move(texts));
}

} // namespace spy
