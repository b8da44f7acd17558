// The CPU device: its properties, compilation, and launches as ranges of groups shared among threads.
#include "core/error.h"
#include "core/warning.h"
#include "cpu/ahead.h"
#include "cpu/device.h"
#include "cpu/fibers.h"
#include "cpu/null_pointers.h"
#include "cpu/texel.h"
#include "device/backend.h"
#include "device/profile.h"
#include "device/texel_format.h"

#include <cstring>

namespace spy::cpu {

namespace {

unsigned thread_count()
{
    const unsigned wanted = config().thread_count;
    return wanted ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

DeviceInfo make_info()
{
    DeviceInfo info;
    info.type = DeviceType::cpu;
    info.on_host = true;
    info.api_name = "CPU";
    info.adapter_name = processor_name();
    info.timestamp_frequency = 1'000'000'000;
    DeviceLimits& limits = info.limits;
    limits.max_texture_dimension_1d = limits.max_texture_dimension_2d = limits.max_texture_dimension_cube = 16384;
    limits.max_texture_dimension_3d = limits.max_texture_layers = 2048;
    limits.max_shader_visible_samplers = 1u << 16;
    limits.max_compute_threads_per_group = 1u << 20;
    limits.max_compute_thread_group_size = {1u << 20, 1u << 20, 1u << 20};
    limits.max_compute_dispatch_thread_groups = {0x7fffffff, 0x7fffffff, 0x7fffffff};
    limits.min_wave_size = limits.max_wave_size = config().wave_lanes;
    limits.max_entry_point_uniform_size = 1u << 20;
    info.features = {"software_device",
                     "parameter_block",
                     "timestamp_query",
                     "realtime_clock",
                     "half",
                     "double",
                     "int16",
                     "int64",
                     "atomic_float",
                     "atomic_half",
                     "atomic_int64",
                     "pointer",
                     "wave_ops",
                     "combined_texture_sampler",
                     "custom_border_color",
                     "bindless",
                     "sm_5_1",
                     "sm_6_0"};
    info.capabilities = {"cpp"};
    return info;
}

std::vector<std::string> compiler_flags(const CompileDesc& desc)
{
    std::vector<std::string> flags{"-std=c++17",
                                   "-shared",
                                   "-fPIC",
                                   "-fvisibility=hidden",
                                   "-march=native",
                                   "-fwrapv",
                                   "-fno-strict-aliasing",
                                   "-fno-semantic-interposition",
                                   "-fno-math-errno",
                                   "-fno-trapping-math"};
    flags.push_back(desc.optimization == 0 ? "-O0" : "-O3");
    if (desc.debug_info)
        flags.push_back("-g");
    // How much stack a kernel needs is read off the warnings (stack_of); of the others, clang can be spared all.
    if (compiler().is_clang)
        flags.push_back("-Wno-everything");
    flags.push_back("-Wframe-larger-than=2048");
    // GCC vectorises a loop when it has neither been written out before, as the loops that fill a cache line would be,
    // nor calls a function that was too large to be put in its place.
    if (!compiler().is_clang)
        flags.insert(flags.end(),
                     {"--param=max-completely-peel-times=15", "--param=max-inline-insns-auto=200",
                      "-fno-isolate-erroneous-paths-dereference"});
#if defined(__GLIBC__) && defined(__x86_64__)
    else if (!compiler().is_zig && desc.float_mode != CompileDesc::FloatMode::precise)
        flags.push_back("-fveclib=libmvec"); // as the prelude's declarations do for GCC
#endif
    if (desc.float_mode >= CompileDesc::FloatMode::uncontracted)
        flags.push_back("-ffp-contract=off");
    if (desc.float_mode == CompileDesc::FloatMode::precise)
        flags.push_back("-DSPY_SCALAR_MATH");
    // Not -ffast-math: it breaks isnan, and with GCC it makes the whole process flush denormals to zero.
    if (desc.float_mode == CompileDesc::FloatMode::fast)
        flags.insert(flags.end(),
                     {"-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-ffp-contract=fast"});
    flags.insert(flags.end(), desc.downstream_args.begin(), desc.downstream_args.end());
    return flags;
}

/// Runs groups [begin, end), counted x fastest, as few boxes.
void run_groups(CpuKernel::Function function, const std::array<uint32_t, 3>& count, uint64_t begin, uint64_t end,
                void* entry_point, void* globals)
{
    const uint64_t nx = count[0], ny = count[1];
    auto call = [&](GroupRange range) { function(&range, entry_point, globals); };
    while (begin < end) {
        const uint64_t x = begin % nx, row = begin / nx, y = row % ny, z = row / ny;
        if (x || end - begin < nx) { // part of a row
            const uint64_t stop = std::min(end - begin, nx - x);
            call({{uint32_t(x), uint32_t(y), uint32_t(z)}, {uint32_t(x + stop), uint32_t(y + 1), uint32_t(z + 1)}});
            begin += stop;
            continue;
        }
        const uint64_t rows = std::min((end - begin) / nx, ny - y);
        call({{0, uint32_t(y), uint32_t(z)}, {uint32_t(nx), uint32_t(y + rows), uint32_t(z + 1)}});
        begin += rows * nx;
    }
}

std::vector<AdapterInfo> enumerate()
{
    AdapterInfo adapter;
    adapter.name = processor_name();
    adapter.is_software = true;
    return {adapter};
}

} // namespace

CpuDevice::CpuDevice(const DeviceDesc& desc) : m_pool(thread_count())
{
    watch_null_pointers();
    m_desc = desc;
    if (desc.enable_debug_layers)
        m_heap = std::make_shared<HostHeap>(true);
    m_info = make_info();
    m_target = {"cpp",
                "",
                {},
                {{"__TARGET_CPU__", "1"},
                 {"SPY_WAVE_LANES", std::to_string(m_info.limits.max_wave_size)},
                 {"SPY_BOUNDS_CHECKS", desc.bounds_checks ? "1" : "0"}}};
}

CpuDevice::~CpuDevice() = default;

void CpuDevice::close_backend() noexcept
{
    m_pool.stop();
    m_spare.clear();
}

ref<Texture> CpuDevice::create_texture(const TextureDesc& desc) { return new HostTexture(this, desc); }

ref<Sampler> CpuDevice::create_sampler(const SamplerDesc& desc) { return new Sampler(this, desc); }

uint32_t CpuDevice::format_support(Format format)
{
    if (format == Format::undefined)
        return 0;
    auto support = FormatSupport::texture | FormatSupport::copy_source | FormatSupport::copy_destination;
    const TexelCodec& codec = texel_codec(format);
    if (codec.is_readable())
        support = support | FormatSupport::shader_load | FormatSupport::shader_sample;
    if (codec.encode)
        support = support | FormatSupport::shader_uav_load | FormatSupport::shader_uav_store;
    if (codec.encode && codec.channels == 1 && codec.bytes >= 4 && codec.is_integer)
        support = support | FormatSupport::shader_atomic;
    if (format_info(format).is_depth())
        support = support | FormatSupport::depth_stencil;
    return uint32_t(support);
}

std::string CpuDevice::compile(const CompileDesc& desc)
{
    return compile_shared_library(desc.source, desc.whole_source, compiler_flags(desc), desc.label);
}

void CpuDevice::expect_compile(const CompileDesc& desc)
{
    try {
        compile_ahead(desc.source, compiler_flags(desc));
    } catch (const Error&) { // no C++ compiler, which the compile itself will say if it comes
    }
}

std::string CpuDevice::compiler_fingerprint()
{
    std::string text = "cpu 3\n" + compiler().identity + "\n" + processor_identity();
    for (const std::string& flag : compiler_flags({}))
        text += flag + " ";
    return text;
}

ref<Kernel> CpuDevice::create_kernel(const KernelDesc& desc) { return new CpuKernel(this, desc); }

bool CpuDevice::run(const CpuKernel& kernel, const LaunchDesc& desc, void* entry_point, void* globals)
{
    std::atomic<bool> met_null{false};
    const uint64_t count = uint64_t(desc.group_count[0]) * desc.group_count[1] * desc.group_count[2];
    auto run_plain = [&](uint64_t begin, uint64_t end) {
        auto groups = [&] { run_groups(kernel.function(), desc.group_count, begin, end, entry_point, globals); };
        if (!ends_without_null([](void* data) { (*static_cast<decltype(groups)*>(data))(); }, &groups))
            met_null.store(true, std::memory_order_relaxed);
    };
    auto run = [&](uint64_t begin, uint64_t end) {
        if (!kernel.needs_stack())
            return run_plain(begin, end);
        auto body = [&] { run_plain(begin, end); };
        const fibers::StackSize groups(kernel.group_stack());
        fibers::run_on_stack(kernel.group_stack(), [](void* data) { (*static_cast<decltype(body)*>(data))(); }, &body);
    };
    if (!kernel.set_adds()) {
        m_pool.run(count, run);
        return !met_null;
    }
    adding().lock_patiently();
    const std::lock_guard alone(
        adding(), std::adopt_lock); // plain additions of another Python thread's launch may go to the same memory
    SharedAdds adds(kernel.set_adds(), desc.added, m_pool, m_spare);
    auto run_adding = [&](uint64_t begin, uint64_t end) {
        const SharedAdds::Piece piece(adds);
        run(begin, end);
    };
    m_pool.run(count, run_adding, &adds);
    adds.add_copies();
    return !met_null;
}

void CpuDevice::launch(const LaunchDesc& desc)
{
    if (m_closed) // the code is unloaded
        fail_runtime("device is closed");
    const auto* kernel = static_cast<const CpuKernel*>(desc.kernel);
    alignas(64) uint8_t small[2048];
    HostMemory large;
    uint8_t* block = small;
    if (kernel->block_size() > sizeof(small)) {
        large = HostMemory(heap(), kernel->block_size(), true);
        block = large.data();
        if (!block)
            fail(ErrorKind::memory, kernel->label(), ": no memory for ", kernel->block_size(), " bytes of arguments");
    } else {
        std::memset(small, 0, kernel->block_size());
    }
    kernel->fill_block(desc.arguments, block);
    void* globals = kernel->scope(block, 0);
    void* entry_point = kernel->scope(block, 1);
    Profiler* const profiler = this->profiler();
    const uint64_t begin_ticks = profiler ? host_ticks() : 0;
    const bool is_whole = run(*kernel, desc, entry_point, globals);
    if (profiler)
        profiler->note(work_of(desc), begin_ticks, host_ticks());
    ++m_submit_id;
    if (!is_whole)
        fail_runtime(kernel->label(),
                     ": a null pointer was read or written through; pass a Buffer, a Tensor or an "
                     "address for it, or let the kernel ask first: if (p != nullptr)");
    if (const char* error = fibers::take_error()) {
        if (!kernel->needs_stack())
            fail_runtime(kernel->label(), ": ", error);
        fail_runtime(kernel->label(), ": ", error, ": its local variables, recorded states of loops included, take ",
                     kernel->stack(),
                     " bytes for each thread; use smaller groups or local arrays, or lower [MaxIters(n)]");
    }
    if (kernel->overran())
        fail_runtime(
            kernel->label(),
            ": a backward derivative indexed an array beyond its end, so its gradients are wrong: a "
            "loop takes more trips than its [MaxIters(n)] says (make n larger), or is nested in another loop and the "
            "length of one of them is not written as a number or constant of its file (give both loops "
            "[MaxIters(n)] with the larger n)");
    if (kernel->divided())
        warn(cat(kernel->label(), ": an integer was divided by zero: the result is 0 (told once for each kernel)"));
    if (kernel->went_outside())
        warn(
            cat(kernel->label(),
                ": an index was outside of a buffer or an array: reads gave 0, writes were dropped (told once for each "
                "kernel; a device with bounds_checks=False checks nothing)"));
}

} // namespace spy::cpu

namespace spy {

Backend cpu_backend()
{
    return {DeviceType::cpu, "cpu", cpu::enumerate,
            [](const DeviceDesc& desc) -> ref<Device> { return new cpu::CpuDevice(desc); }};
}

} // namespace spy
