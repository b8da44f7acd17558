#pragma once
// Kernels that are launched by hand: block and grid come from the caller.
#include "call/raw/pack.h"

namespace spy {

/// The native half of loadModule's Kernel. Python answers `_convert(args, kwargs)`, a launch of arguments that are none
/// of the plain cases; `_prepare(place)`, the device and the compiled kernel; `_spare(place)`, an address;
/// `_stream(index)`.
struct RawKernel {
    vectorcallfunc call = nullptr; ///< where Python's vector calls look: see take_vector_calls
    struct Target {
        TensorPlace place;
        ref<Device> device;
        ref<Kernel> kernel;
    };
    std::string label;
    bool is_plain = false; ///< `parameters` are all that there are
    std::vector<PackParameter> parameters;
    uint32_t size = 0; ///< bytes of the parameters
    bool is_derivative = false;
    std::vector<Target> targets;
    std::vector<std::pair<TensorPlace, uint64_t>> spares;
};

/// Bytes in front of the parameters, for what the CPU's kernels must know of a launch.
constexpr uint32_t raw_header = 64;
/// Bytes of parameters that CUDA takes.
constexpr uint32_t raw_most_bytes = 32764;

/// Arguments of a kernel, ready to be launched, more than once if need be.
struct RawLaunch {
    explicit RawLaunch(nb::object kernel) : kernel(std::move(kernel)) { }
    RawLaunch(const RawLaunch&) = delete;
    ~RawLaunch(); ///< warns where it never ran

    const RawKernel& get() const { return *nb::inst_ptr<RawKernel>(kernel); }

    nb::object kernel; ///< RawKernel
    Packed packed;
    bool is_launched = false;
};

using Sizes = std::array<uint32_t, 3>;

/// The arguments of a call as bytes; false where Python must convert them.
bool pack_raw(nb::handle self, const GivenArguments& given, Packed& out);
/// Calls a RawKernel: a RawLaunch.
nb::object call_raw(nb::handle self, const GivenArguments& given);
/// Up to three sizes from Python; ValueError names kernel and parameter.
Sizes raw_sizes(const RawLaunch& launch, const char* name, nb::handle value, uint32_t least);
/// Blocks that make up `total` threads.
Sizes raw_blocks(const Sizes& total, const Sizes& block);
/// The block of launches that name none.
Sizes raw_block(size_t rank);
void run_raw(RawLaunch& launch, const Sizes& block, const Sizes& grid, nb::handle shared_memory, nb::handle stream);

} // namespace spy
