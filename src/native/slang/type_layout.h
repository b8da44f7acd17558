#pragma once
// From Slang's reflection to the plain layouts of core/layout.h. Under the compiler's lock.
#include "core/layout.h"

#include <slang.h>

namespace spy {

ref<TypeLayout> make_type_layout(slang::TypeLayoutReflection* layout, slang::ProgramLayout* program);

/// `format` is the target's: "cpp", "cuda", "spirv", "hlsl".
ref<ProgramLayout> make_program_layout(slang::ProgramLayout* program, uint32_t entry_point, const std::string& format);

} // namespace spy
