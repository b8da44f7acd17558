#pragma once
// Gradients that are summed beside their memory.
#include "call/stages/dispatch/dispatch.h"

namespace spy {

/// Makes the sums of this launch and their table.
void prepare_sums(const Call& call, const Measured& measured, Written& written);
/// Adds the sums to their gradients.
void add_sums(const Call& call, const Measured& measured, const Written& written);

/// Launches, or records, a kernel that brings sums to their gradients; `bytes` are its arguments.
void launch_addition(const Call& call, const Measured& measured, const Variant& variant, const Groups& groups,
                     std::vector<uint8_t> bytes, const std::vector<ref<Object>>& keep);
void submit_to(const Call& call, const Measured& measured, ref<CommandBuffer> commands);

} // namespace spy
