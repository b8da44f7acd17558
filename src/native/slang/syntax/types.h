#pragma once
// What types are, as far as the sources show it.
#include "slang/syntax/uses.h"

namespace spy::syntax {

/// `memory`: buffers, textures, tensors, pointers, and structs that hold such ones. `generic`: a parameter. `unknown`:
/// a type that no source declares, or that of `let x = e` where e is calculated.
enum class Shape : uint8_t { unknown, scalar, vector, matrix, array, structure, interface, generic, memory };

struct Type {
    Shape shape = Shape::unknown;
    bool is_float = false,
         is_discrete = false;       ///< its scalars, or those of arrays of it: half, float, double; integers, bools
    bool is_differentiable = false; ///< floats, and what says so or holds such ones as an array
    std::string_view name = {}; ///< its last word, with aliases resolved: `S` of `ns::S<T>`; of arrays the element's
    const Scopes* in = nullptr; ///< where a structure or interface is declared, with `node`
    NodeId node = none;
    NodeId written =
        none; ///< the type as it stands there, in the `written_in` source, without dimensions of a declarator
    const Scopes* written_in = nullptr;
    uint8_t dimensions = 0; ///< of an array

    bool has_elements() const { return shape >= Shape::vector && shape <= Shape::array; }
};

/// Of a type's node; aliases are followed.
Type type_at(const Scopes& scopes, NodeId node);
Type type_of(const Scopes& scopes, const Variable& variable);
/// Of what a path picks: fields of known structs, swizzles, elements.
Type type_of(const Scopes& scopes, const Variable& variable, const Path& path);
/// Of an expression: as it is written, and as Slang's own functions keep numbers numbers.
Type type_of_value(const Scopes& scopes, NodeId value);
/// Whether it is memory that kernels may write (pointers, buffers and tensors named RW...), or a struct that holds
/// such.
bool is_writable_memory(const Type& type);

} // namespace spy::syntax
