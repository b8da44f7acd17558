#pragma once
// Names of types and functions, as Slang may see them.
#include <string>
#include <string_view>
#include <vector>

namespace spy {

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

} // namespace spy
