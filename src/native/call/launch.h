#pragma once
// A planned call: its arguments written, the launch, and its result.
#include "call/plan/plan.h"
#include "values/signature.h"

namespace spy {

/// What a call may override when it runs: not part of the key.
struct RunOptions {
    nb::object uniforms; ///< callable(plan view) -> ShaderObject with the globals, or None
    NativeHandle stream;

    bool has_uniforms() const { return uniforms.is_valid() && !uniforms.is_none(); }
};

/// Runs the stages of stages.h; gives what the call returns.
nb::object launch(CallPlan& plan, Signature& signature, const RunOptions& options);

/// The stream that a call with torch tensors runs on: the function's own, else torch's current one; none on a CPU.
NativeHandle torch_call_stream(const RunOptions& options, const Leaf* torch_leaf);
/// Raises when the call is being recorded into a CUDA graph: what it lacks cannot be built then. `owner` is the
/// FunctionNode or the plan's view.
void refuse_cold_capture(Device& device, const RunOptions& options, std::span<const Leaf> leaves, nb::handle owner);

} // namespace spy
