#pragma once
// Text changes made before Slang sees a source or a type name.
#include "slang/imports.h"

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace spy {

/// The names ITensor, IWTensor, ... are concrete structs, so that a parameter of such a type reaches the compiler
/// statically typed; the interfaces for constraints are called iTensor, iWTensor, ... This renames those names where
/// they stand as a constraint or a base (`T : ITensor<float, 1>`). The result has the same length, so that lines and
/// columns in diagnostics stay true.
/// `own`: types that the user declares; of those nothing is renamed.
std::string rewrite_constraints(std::string_view source, const std::set<std::string, std::less<>>& own = {});
/// What a source needs to see our library: the rewrite, and `import slangpy;` at the end of one that names types of it
/// without importing it. Sources that neither import nor name it are left alone.
std::string prepare_source(std::string_view source, const Surroundings& around, bool may_import);

/// Puts the users' spelling back into diagnostics.
std::string restore_constraints(std::string_view text);

/// Values in a name that name something.
struct NameValues {
    std::vector<std::string> whole; ///< sizes and sums: constants
    std::vector<std::string> terms; ///< of sums: integers
};

/// `float*` -> `Ptr<float>`: Slang 2026.12 crashes on pointer syntax in a type name. Empty when the text cannot be a
/// type or function name (unbalanced brackets, calls such as `float(1)`, stray characters), which Slang
/// must not see either: it crashes on some.
/// `values`: gets what must be constant: Slang crashes on `Gen<Type + 1>`, too.
/// Layout::checked_name() sees to both.
std::string sanitize_name(std::string_view name, NameValues* values = nullptr);

/// Whether Slang may see the text as a constant expression: `2 * N + 1`, `ns::count`, `sizeof(float3)`; no calls,
/// and no other parentheses.
bool is_expression(std::string_view text, NameValues* values = nullptr);

/// FNV-1a, 64 bits, as 16 hex digits.
std::string content_hash(std::string_view bytes);

} // namespace spy
