#pragma once
// What the dispatch stage does beside the kernel itself: gradients summed beside their memory, and checks of indices.
#include "call/stages.h"

#include <array>

namespace spy {

const Variant& variant_of(const Call& call, VariantKey key);
/// Groups of a launch as the device takes them.
std::array<uint32_t, 3> group_grid(const Call& call, const Measured& measured, int64_t groups);

/// Makes the sums of this launch and their table.
void prepare_sums(const Call& call, const Measured& measured, Written& written);
/// Adds the sums to their gradients.
void settle_sums(const Call& call, const Measured& measured, const Written& written);

/// Memory where the kernel reports indices outside; null where it does not.
ref<Buffer> prepare_bounds(const Call& call, const Measured& measured, KernelArguments& arguments);
/// Raises for the first index outside that the kernel met; what it stored so far is stored.
void check_bounds(const Call& call, Buffer& report);

} // namespace spy
