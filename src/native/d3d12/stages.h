#pragma once
// What one stage of a render pipeline hands to the next.
#include <string>
#include <string_view>

namespace spy {

/// The code of a fragment shader whose inputs lie in the registers of the vertex shader's outputs of the same names:
/// DXC numbers each stage by itself, and drivers go by the numbers. ValueError for an input that has no output.
std::string with_inputs_of(std::string_view fragment, std::string_view vertex, const std::string& label);

} // namespace spy
