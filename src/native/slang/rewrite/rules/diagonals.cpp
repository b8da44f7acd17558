// Elements written with two indices that are one value, as Slang differentiates them.
//
// `m[k][k] = e;` -> `m[k][-(-int(k))] = e;`: where two run-time indices on the way to an element are one value, the
// reverse derivative of Slang 2026.12 uses a name that it does not declare (C++, CUDA) or ends in an internal error
// (SPIR-V). The compiler does not see that both are the same number if an operation lies between, and a third one gets
// four negations. That is done wherever the compiler may find one value, so for `m[i][j]` after `j = i`, too; not for
// indices that differ by a number, nor for counters of two loops. Writes are assignments, `++`, and calls that may
// write an argument or their object; reads are right. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "core/error.h"
#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId;

class EqualIndices {
public:
    EqualIndices(const ParsedSource& source, NodeId function)
        : m_scopes(source.scopes()),
          m_uses(m_scopes, function) { }

    /// Fields of imported types are no variables here, so every path counts.
    void search(std::map<size_t, std::string>& places) const
    {
        const syntax::Tree& tree = m_scopes.tree();
        for (const NodeId n : tree.inside(m_uses.function())) {
            if (!tree.is(n, Kind::name))
                continue;
            const syntax::Path path = syntax::path_from(tree, n);
            if (path.steps.size() > 1 && syntax::access_at(m_scopes, path.whole).first != syntax::Access::read)
                set_apart(path, tree.loop_of(n), places);
        }
    }

private:
    /// Makes values of their own of those indices that may be the same value as one before.
    void set_apart(const syntax::Path& path, NodeId loop, std::map<size_t, std::string>& places) const
    {
        const syntax::Tree& tree = m_scopes.tree();
        std::vector<NodeId> indices;
        std::string before = "-(-int(", after = "))";
        for (const NodeId step : path.steps) {
            if (!tree.is(step, Kind::index) || tree.count(step) != 2)
                continue;
            const NodeId index = tree.child(step, 1);
            const auto may_alias = [&](NodeId other) { return may_be_one(other, index, loop); };
            if (is_number(index) && std::any_of(indices.begin(), indices.end(), may_alias)) {
                places[tree.begin(index)] += before;
                places[tree.end(index)] += after;
                before = "-(-(" + before, after += "))"; // each has a value of its own
            }
            indices.push_back(index);
        }
    }

    bool may_be_one(NodeId one, NodeId other, NodeId loop) const
    {
        if (m_uses.is_known(one) || m_uses.is_known(other))
            return false;
        const uint32_t first = m_scopes.variable_of(one), second = m_scopes.variable_of(other);
        if (first != second && is_counter(first) && is_counter(second))
            return false;
        return m_uses.aliasing(one, other, loop) != syntax::Aliasing::never;
    }

    /// Whether a loop counts with a variable, and nothing else changes it.
    bool is_counter(uint32_t variable) const
    {
        const syntax::Tree& tree = m_scopes.tree();
        for (const syntax::Loop& loop : m_uses.loops())
            if (variable != syntax::none && loop.counter == variable && tree.is(loop.node, Kind::for_))
                return !m_uses.may_write(variable, tree.child(loop.node, 4));
        return false;
    }

    /// False for a variable of which the type is not one that int() takes: a __subscript may take any.
    bool is_number(NodeId index) const
    {
        const syntax::Variable* variable = m_scopes.find(index);
        if (variable == nullptr || variable->type.empty())
            return true;
        const syntax::Type type = syntax::type_of(m_scopes, *variable);
        return type.shape == syntax::Shape::scalar && type.is_discrete;
    }

    const syntax::Scopes& m_scopes;
    syntax::Uses m_uses;
};

} // namespace

std::vector<Edit> rewrite_diagonals(const ParsedSource& source)
{
    return insert_in_functions(source,
                               [&](NodeId function, auto& texts) { EqualIndices(source, function).search(texts); });
}

} // namespace spy
