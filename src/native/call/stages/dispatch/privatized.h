#pragma once
// Privatised gradients: copies that warps add to.
#include "call/stages.h"

namespace spy {

/// How many copies of its gradients this launch adds to; 0: to the gradients themselves.
uint64_t privatized_copies(const Call& call, const Measured& measured, const Written& written);
/// Makes the copies of this launch and their table.
void prepare_privatized(const Call& call, const Measured& measured, uint64_t copies, Written& written);
/// Adds the copies to their gradients.
void add_privatized_copies(const Call& call, const Measured& measured, uint64_t copies, const Written& written);
/// Copies that one thread of the second kernel adds up; slangpy/plan/derive/sums.py knows it, too.
constexpr uint64_t privatized_copies_per_thread = 16;

} // namespace spy
