#pragma once
// The stages of one call and their records, in the order in which they are made:
// measure -> place -> select -> write -> dispatch -> finish (launch.cpp). A record is not changed after its stage.
#include "call/launch.h"

#include <cstring>

namespace spy {

/// What all stages are given.
struct Call {
    CallPlan& plan;
    Signature& signature;
    const RunOptions& options;
    bool on_host;                        ///< the device's memory is the host's
    PyObject* recorder;                  ///< the command encoder that the call is appended to; null: it runs at once
    bool is_prepared = false;            ///< launched again with the same memory: nothing may be copied for one launch
    const nb::object* globals = nullptr; ///< known beforehand; null: they are asked for

    size_t leaf_count() const { return plan.leaves.size(); }
    Leaf& leaf(size_t index) const { return signature.leaves[index]; }
};

// --- measure: how large the call is

/// A value of a registered class.
struct CustomShape {
    size_t leaf;
    Shape shape;
};

struct Measured {
    Shape shape;                      ///< of the call
    int64_t total = 1;                ///< invocations
    const Leaf* torch_like = nullptr; ///< decides where a torch result is made
    NativeHandle stream;              ///< that the launch goes to
    std::vector<CustomShape> custom;
    /// Stands for the torch argument of a call that has none but gives a torch tensor.
    std::unique_ptr<Leaf> torch_default;
};
Measured measure(const Call& call);

/// What a launch counts: tiles of a call in groups, else invocations.
int64_t tiles(const Call& call, const Measured& measured);

/// Raises when the call is being recorded into a CUDA graph.
template <typename... What>
void refuse_in_capture(const Call& call, const Measured& measured, const What&... what)
{
    if (measured.stream.value && call.plan.device->is_capturing(measured.stream))
        fail_runtime(call.plan.label, ": ", what..., ", which cannot be recorded into a CUDA graph");
}

/// Raises when the call is being prepared: what is copied for one launch would be old in the next.
template <typename... What>
void refuse_prepared(const Call& call, const What&... what)
{
    if (call.is_prepared)
        fail(ErrorKind::not_implemented, call.plan.label, ": prepare: ", what...);
}

// --- place: what memory the kernel works on

/// A copy of a tensor, or of its gradient, that another argument is written over.
struct Apart {
    size_t leaf;
    ViewSource source;
    uint64_t address; ///< of the view's first element in the copy
    int64_t first;    ///< elements before it
};

/// What tells two torch views apart.
struct SharedView {
    uint64_t address;
    ScalarType scalar;
    Shape shape, strides;
    bool operator==(const SharedView&) const = default;
};
/// A torch tensor of a GPU, in memory that the device sees too.
struct SharedTensor {
    SharedView view;
    nb::object tensor, inside; ///< the user's, and the same in `piece`
    SharedPiece piece;
    bool copy_out;
};

struct Placed {
    std::vector<Apart> apart;
    std::vector<SharedTensor> shared;
    std::vector<ref<Object>> keep;
};
Placed place(const Call& call, const Measured& measured);

// --- select: which compiled form of the kernel runs

struct Selected {
    VariantKey key = 0;
    bool aligned = false; ///< all that is written is written in whole lines of elements
    int64_t period = 1;   ///< of all periodic gradients: each one's divides it
    uint64_t owned = 0;   ///< bit per leaf: each invocation adds to elements of its own
    uint64_t stores = 0;  ///< bit per leaf: the kernel stores its gradient, which may hold nothing yet
};
Selected select(const Call& call, const Measured& measured);

// --- write: the kernel's arguments

struct KernelArguments {
    std::vector<uint8_t> bytes;
    std::vector<ref<Object>> slots, keep;

    template <typename T>
    void put(int32_t offset, T value)
    {
        if (offset >= 0)
            std::memcpy(bytes.data() + offset, &value, sizeof value);
    }
};

/// Host memory that the kernel works on a copy of.
struct Upload {
    size_t leaf;
    ref<Buffer> buffer;         ///< null: the device reads `bytes`
    std::vector<uint8_t> bytes; ///< packed
    bool write_back;
    uint32_t item = 0;              ///< bytes of one element of the copy
    std::unique_ptr<Leaf> own = {}; ///< torch gradients: memory that is no leaf's
};

enum class ReadTo : uint8_t { value, grad, pair, result, result_tangent };
/// A value that the kernel stores in memory of its own.
struct Readback {
    const TypeLayout* layout;
    PyObject* object; ///< ValueRef, DiffPair; null: the result
    ReadTo to;
    ref<Buffer> buffer;
    std::vector<uint64_t> bytes; ///< host memory of the CPU device
};

/// What create_calldata() of a registered class returned.
struct CustomData {
    size_t leaf;
    nb::object data;
};

/// What the call makes.
struct Container {
    nb::object object;
    ref<Buffer> buffer;
};

/// What is to be done once the kernel has run.
struct Pending {
    std::vector<Upload> uploads;
    std::vector<Readback> readbacks;
    std::vector<CustomData> custom;
    std::vector<SharedTensor> shared;
    Container result, tangent; ///< the tangent in forward mode only
    nb::object result_data;    ///< of a result of a registered class
};

/// A gradient that is summed beside its memory.
struct Sums {
    size_t leaf;
    SumSpec spec;
    uint64_t begin; ///< of the gradient's memory
    uint64_t count; ///< elements, gaps between strides included
    uint64_t sums;  ///< address
};

struct Written {
    KernelArguments arguments;
    std::vector<size_t> keep_ends; ///< prepared calls: where in arguments.keep each leaf's own begins, and the end
    std::vector<Sums> sums;
    std::vector<AddedRange> added;    ///< gradients that invocations add to anywhere
    std::vector<uint64_t> privatized; ///< the table of their copies, where there are copies (dispatch/privatized.cpp)
    Pending pending;
};
Written write(const Call& call, const Measured& measured, const Selected& selected, Placed&& placed);
/// Bytes, slots and keep of some leaves anew, into arguments that were written before.
void rewrite(const Call& call, const Measured& measured, const Selected& selected, size_t first, size_t count,
             Written& written);

// --- dispatch, finish

/// Launches the kernel, or appends it to the recorder; sums are added to their gradients and indices checked.
Pending dispatch(const Call& call, const Measured& measured, const Selected& selected, Written&& written);
/// Brings back what the kernel wrote; gives what the call returns.
nb::object finish(const Call& call, const Measured& measured, Pending&& pending);

} // namespace spy
