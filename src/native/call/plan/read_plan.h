#pragma once
// A call plan from the planner's records (slangpy/plan/specification.py).
#include "call/plan/plan.h"

namespace spy {

/// Throws where the specification names a kind or a mode that native code does not know.
std::shared_ptr<CallPlan> read_plan(nb::handle native_plan);

} // namespace spy
