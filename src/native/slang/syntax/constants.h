#pragma once
// Whole numbers that a source fixes: `static const int N = 8;`, `#define N 8`, `let N : int` of a generic.
#include "slang/syntax/scopes.h"

#include <optional>

namespace spy::syntax {

/// Whether a type is one of integers of 32 or 64 bits, as it is written.
bool is_integer_type(std::string_view type);
/// The value of an expression of numbers and constants; nothing where it has something else.
std::optional<long> value_of(const Scopes& scopes, NodeId expression);
/// Whether an expression has only numbers, signs and names that are fixed when it is compiled. Names in capitals that
/// the source does not declare are taken for imported constants.
bool is_constant(const Scopes& scopes, NodeId expression);

} // namespace spy::syntax
