// Values without derivatives in vectors that have one, as Slang differentiates them rightly.
//
// `float3(c, x, c)` -> `float3(detach(c), x, detach(c))` for `no_diff` parameters c of functions that may be
// differentiable; likewise matrices, lists (`float x[2] = { c, a };`), the arms of `?:`, brackets and assignments
// (`d = c;`, `v.x = c;`), for parameters of floats, vectors, matrices, arrays of them, and structs that are known to
// have a derivative. Slang 2026.12 has an internal error in forward mode where a parameter itself is a component of
// what is calculated with, in reverse mode where it is assigned to an element, and crashes where an array begins a
// variable. Parameters that the function changes may have a derivative: `-(-c)` keeps that. Lines stay.
#include "slang/rewrite/rules/all.h"

#include "slang/rewrite/rules/differentiable.h"
#include "slang/syntax/types.h"

#include <algorithm>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Shape;

/// Whether values of a type may have a derivative: floats, `vector<T, N>` of such a T, and what says so.
bool has_derivative(const syntax::Scopes& scopes, const syntax::Type& type)
{
    const bool is_of = type.written != syntax::none && scopes.tree().is(type.written, Kind::generic_use) &&
        type.written_in == &scopes && (type.shape == Shape::vector || type.shape == Shape::matrix);
    return type.is_float || type.is_differentiable ||
        (is_of && syntax::type_at(scopes, scopes.tree().child(type.written, 1)).is_differentiable);
}

/// Whether a call makes a number, a vector, a matrix or an array of components.
bool takes_components(const syntax::Scopes& scopes, NodeId call)
{
    const syntax::Type type = syntax::type_at(scopes, scopes.tree().child(call, 0));
    return type.shape != Shape::structure && type.shape != Shape::generic && has_derivative(scopes, type);
}

/// Whether a name alone is a value that is not calculated with: that of a variable, an element or a component.
bool is_copied(const syntax::Scopes& scopes, NodeId name)
{
    const syntax::Tree& tree = scopes.tree();
    NodeId value = name, parent = tree.parent(name);
    while (tree.is(parent, Kind::paren) || (tree.is(parent, Kind::prefix) && tree.main(parent) == "+")) {
        value = parent;
        parent = tree.parent(value);
    }
    switch (tree.kind(parent)) {
    case Kind::list: return true;
    case Kind::declarator: return tree.child(parent, 2) == value;
    case Kind::conditional: return tree.child(parent, 0) != value;
    case Kind::assign: return tree.child(parent, 1) == value && tree.main(parent) == "=";
    case Kind::cast: return syntax::type_at(scopes, tree.child(parent, 0)).is_float;
    case Kind::call: return tree.child(parent, 0) != value && takes_components(scopes, parent);
    default: return false;
    }
}

void detach_parameter(const syntax::Scopes& scopes, const syntax::Uses& uses, uint32_t parameter,
                      std::map<size_t, std::string>& places)
{
    const syntax::Type type = syntax::type_of(scopes, scopes.variables()[parameter]);
    if (!has_derivative(scopes, type))
        return;
    const auto all = uses.of(parameter);
    const bool is_written = std::any_of(all.begin(), all.end(), [](const syntax::Use* use) {
        return use->may_write() && use->access != syntax::Access::unknown;
    });
    const bool is_number = type.shape == Shape::scalar || type.shape == Shape::vector || type.shape == Shape::matrix;
    for (const syntax::Use* use : all) {
        const NodeId name = use->path.root;
        if (use->may_write() || use->path.is_part() || !is_copied(scopes, name) || (is_written && !is_number))
            continue;
        places[scopes.tree().begin(name)] += is_written ? "(-(-" : "detach(";
        places[scopes.tree().end(name)] += is_written ? "))" : ")";
    }
}

} // namespace

std::vector<Edit> rewrite_detached(const ParsedSource& source)
{
    const syntax::Scopes& scopes = source.scopes();
    return insert_in_functions(source, [&](NodeId function, std::map<size_t, std::string>& places) {
        const syntax::Uses uses(scopes, function);
        const syntax::Function* declared = scopes.function(function);
        for (const uint32_t parameter : declared == nullptr ? std::vector<uint32_t>() : declared->parameters)
            if (const syntax::Variable& variable = scopes.variables()[parameter];
                variable.is_no_diff && variable.direction == syntax::Direction::in)
                detach_parameter(scopes, uses, parameter, places);
    });
}

} // namespace spy
