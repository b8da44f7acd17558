#pragma once
// Questions about the memory that the invocations of a call share, asked of the gradients that a backward call adds to.
#include "call/plan/plan.h"

namespace spy {

/// Whether a view stands still over the whole call.
bool is_broadcast(const LeafSpec& spec, const Shape& shape, const Shape& strides);

/// Whether no two invocations (nor two consumed elements of one) meet in memory.
bool is_injective(const LeafSpec& spec, const Shape& shape, const Shape& strides);

/// Number of invocations after which a view that some leading call dimensions do not move is back at the same
/// element; 0 when it never is before the call ends.
int64_t period_of(const LeafSpec& spec, const Shape& shape, const Shape& strides, const Shape& call);

/// Whether two gradients lie in one buffer in such a way that different invocations may meet in an element.
bool may_collide(const LeafSpec& a_spec, const TensorBase& a, const LeafSpec& b_spec, const TensorBase& b);

} // namespace spy
