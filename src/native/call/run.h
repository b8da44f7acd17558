#pragma once
// Calls of a FunctionNode: from Python's arguments to a plan and its launch.
#include "call/site.h"

namespace spy {

/// Calls the function. Every error names it. `slots`: what TorchSlots among the arguments stand for, in walk order.
nb::object call_function(nb::handle self, nb::args args, nb::kwargs kwargs, std::span<PyObject* const> slots = {});
/// Records a call into a command encoder: one with `_append_to`.
void append_function(nb::handle self, nb::handle encoder, nb::args args, nb::kwargs kwargs);
/// Plans without running: the plan's Python view.
nb::object plan_of(nb::handle self, nb::args args, nb::kwargs kwargs);
/// Builds the kernel that a call needs, without running it.
void build_call(nb::handle self, nb::args args, nb::kwargs kwargs);
/// The arguments as the planner sees them.
nb::object describe_call(nb::handle self, nb::args args, nb::kwargs kwargs);

/// A call up to its launch: its plan, and the result where that is an argument.
struct PlannedCall {
    std::shared_ptr<CallPlan> plan;
    nb::object given;
};
/// Walks the arguments into `signature` and `parts`, for a call that is launched later. What the leaves borrow from
/// `args` and `kwargs` is the caller's to keep.
PlannedCall plan_prepared(nb::handle self, nb::args args, nb::kwargs kwargs, Signature& signature,
                          std::vector<ArgumentPart>& parts);

/// Plans calls from now on with checks of the indices into tensors.
void set_check_bounds(bool enabled);
/// Whether an index outside is an error.
bool checks_bounds();

/// What a call returns, given what its launch gave.
nb::object returned(const CallPlan& plan, const CallArguments& arguments, const Signature& signature,
                    nb::object result);

/// Every error of a call names the function.
[[noreturn]] void fail_labelled(nb::handle self, const Error& error);

/// Signatures are reused by a thread; a nested call (get_this calling back) takes the next one.
class SignatureLease {
public:
    SignatureLease();
    ~SignatureLease();
    SignatureLease(const SignatureLease&) = delete;
    SignatureLease& operator=(const SignatureLease&) = delete;

    Signature* signature;
};

} // namespace spy
