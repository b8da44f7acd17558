#pragma once
// Indices outside of tensors, as kernels report them.
#include "call/stages.h"

namespace spy {

/// Where a kernel reports indices outside: in these words themselves, or in a buffer that they are read from.
struct BoundsReport {
    static constexpr uint32_t word_count = 2 + 2 * Shape::max_rank; ///< see slangpy/slang/tensor.slang
    uint32_t words[word_count] = {};
    ref<Buffer> buffer;
    bool is_asked = false;
};
void prepare_bounds(const Call& call, const Measured& measured, KernelArguments& arguments, BoundsReport& report);
/// Tells the first index outside that the kernel met: raises where set_check_bounds asks for it, else warns once.
void check_bounds(const Call& call, BoundsReport& report);

} // namespace spy
