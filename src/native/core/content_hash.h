#pragma once
#include <string>
#include <string_view>

namespace spy {

/// FNV-1a, 64 bits, as 16 hex digits.
std::string content_hash(std::string_view bytes);

} // namespace spy
