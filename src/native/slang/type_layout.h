#pragma once
// From Slang's reflection to the plain layouts of core/layout.h. Under the compiler's lock.
#include "core/layout.h"

#include <slang.h>

#include <vector>

namespace spy {

ref<TypeLayout> make_type_layout(slang::TypeLayoutReflection* layout, slang::ProgramLayout* program);

/// Of the entry points given, in their order: one for compute, those of a render pipeline together. `format` is the
/// target's: "cpp", "cuda", "spirv", "hlsl".
ref<ProgramLayout> make_program_layout(slang::ProgramLayout* program, const std::vector<uint32_t>& entry_points,
                                       const std::string& format);

} // namespace spy
