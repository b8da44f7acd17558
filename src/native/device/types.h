#pragma once
// Plain descriptors of the device contract.
#include "core/layout.h"
#include "core/ref.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace spy {

enum class DeviceType : uint8_t { automatic, d3d12, vulkan, metal, cpu, cuda, wgpu, null };
enum class MemoryType : uint8_t { device_local, upload, read_back };
enum class CommandQueueType : uint8_t { graphics };

enum class BufferUsage : uint32_t {
    none = 0,
    vertex_buffer = 1,
    index_buffer = 2,
    constant_buffer = 4,
    shader_resource = 8,
    unordered_access = 16,
    indirect_argument = 32,
    copy_source = 64,
    copy_destination = 128,
    acceleration_structure = 256,
    acceleration_structure_build_input = 512,
    shader_table = 1024,
    shared = 2048,
};
enum class TextureUsage : uint32_t {
    none = 0,
    shader_resource = 1,
    unordered_access = 2,
    render_target = 4,
    depth_stencil = 8,
    present = 16,
    copy_source = 32,
    copy_destination = 64,
    resolve_source = 128,
    resolve_destination = 256,
    typeless = 512,
    shared = 1024,
};
template <typename E>
    requires std::is_enum_v<E>
constexpr E operator|(E a, E b)
{
    return E(uint32_t(a) | uint32_t(b));
}
template <typename E>
    requires std::is_enum_v<E>
constexpr E without_flags(E value, E flags)
{
    return E(uint32_t(value) & ~uint32_t(flags));
}
template <typename E>
    requires std::is_enum_v<E>
constexpr bool has_flag(E value, E flag)
{
    return (uint32_t(value) & uint32_t(flag)) == uint32_t(flag);
}

enum class ResourceState : uint8_t {
    undefined,
    general,
    vertex_buffer,
    index_buffer,
    constant_buffer,
    stream_output,
    shader_resource,
    unordered_access,
    render_target,
    depth_read,
    depth_write,
    present,
    indirect_argument,
    copy_source,
    copy_destination,
    resolve_source,
    resolve_destination,
    acceleration_structure_read,
    acceleration_structure_write,
    acceleration_structure_build_output,
};

enum class TextureType : uint8_t {
    texture_1d,
    texture_1d_array,
    texture_2d,
    texture_2d_array,
    texture_2d_ms,
    texture_2d_ms_array,
    texture_3d,
    texture_cube,
    texture_cube_array,
};
enum class TextureFilteringMode : uint8_t { point, linear };
enum class TextureAddressingMode : uint8_t { wrap, clamp_to_edge, clamp_to_border, mirror_repeat, mirror_once };
enum class TextureReductionOp : uint8_t { average, comparison, minimum, maximum };
enum class ComparisonFunc : uint8_t { never, less, equal, less_equal, greater, not_equal, greater_equal, always };
enum class TextureAspect : uint8_t { all, depth_only, stencil_only };
enum class QueryType : uint8_t {
    timestamp,
    acceleration_structure_compacted_size,
    acceleration_structure_current_size,
};

/// Texel formats: the enum and its table (bytes, channels, bits, DXGI and Vulkan numbers) are in device/texel_format.h.
enum class Format : uint16_t;

enum class NativeHandleType : uint16_t {
    undefined,
    win32,
    file_descriptor,
    CUdevice,
    CUdeviceptr,
    CUstream,
    CUcontext,
    CUtexObject,
    CUsurfObject,
    CUmipmappedArray,
    CUevent,
    CUarray,
    VkInstance,
    VkPhysicalDevice,
    VkDevice,
    VkQueue,
    VkCommandBuffer,
    VkBuffer,
    VkImage,
    VkImageView,
    VkSampler,
    VkPipeline,
    VkSemaphore,
    VkAccelerationStructureKHR,
    D3D12Device,
    D3D12CommandQueue,
    D3D12GraphicsCommandList,
    D3D12Resource,
    D3D12Fence,
    D3D12PipelineState,
    D3D12DescriptorHandle,
    D3D12StateObject,
};
struct NativeHandle {
    NativeHandleType type = NativeHandleType::undefined;
    uint64_t value = 0;
};

struct AdapterInfo {
    std::string name;
    uint32_t vendor_id = 0, device_id = 0;
    std::array<uint8_t, 16> luid{};
    bool is_software = false;
};

struct DeviceLimits {
    uint32_t max_texture_dimension_1d = 0, max_texture_dimension_2d = 0, max_texture_dimension_3d = 0;
    uint32_t max_texture_dimension_cube = 0, max_texture_layers = 0;
    uint32_t max_vertex_input_elements = 0, max_vertex_input_element_offset = 0, max_vertex_streams = 0;
    uint32_t max_vertex_stream_stride = 0;
    uint32_t max_compute_threads_per_group = 0;
    std::array<uint32_t, 3> max_compute_thread_group_size{};
    std::array<uint32_t, 3> max_compute_dispatch_thread_groups{};
    uint32_t min_wave_size = 0, max_wave_size = 0;
    uint32_t max_viewports = 0;
    std::array<uint32_t, 2> max_viewport_dimensions{};
    std::array<uint32_t, 3> max_framebuffer_dimensions{};
    uint32_t max_shader_visible_samplers = 0;
    uint64_t max_entry_point_uniform_size = 0; ///< bytes that fit a launch without spilling
    uint64_t max_buffer_size = 0;
    uint32_t acceleration_structure_scratch_alignment = 0;      ///< of offsets; 0: any
    uint64_t max_ray_dispatch = 0;                              ///< rays of one dispatch; 0: any number
    uint32_t max_ray_recursion = 0, max_ray_attribute_size = 0; ///< 0: any
    uint32_t sample_counts = 0;                                 ///< that it draws with, as flags: 1 | 4; 0: not known
};

struct DeviceInfo {
    DeviceType type = DeviceType::null;
    bool on_host = false; ///< its memory is the host's, and its work is done when a call returns
    std::string api_name, adapter_name;
    uint64_t timestamp_frequency = 0; ///< ticks per second
    uint32_t optix_version = 0;
    DeviceLimits limits;
    std::vector<std::string> features;     ///< names of Feature values that are true
    std::vector<std::string> capabilities; ///< Slang capability names
    std::array<uint8_t, 16> luid{}, uuid{};
    int device_index = 0; ///< CUDA ordinal
};

/// What the Slang layer must know to generate code for a device.
struct CompileTarget {
    std::string format;  ///< "cpp", "cuda", "spirv", "hlsl"
    std::string profile; ///< "spirv_1_5", "sm_6_6", ... or empty
    std::vector<std::string> capabilities;
    std::vector<std::pair<std::string, std::string>> defines; ///< __TARGET_CPU__=1, SPY_FLOAT_ATOMICS=1, ...
};

/// How many descriptor handles of each kind there may be at a time.
struct BindlessDesc {
    uint32_t buffer_count = 1024, texture_count = 1024, sampler_count = 128, acceleration_structure_count = 128;
};

struct DeviceDesc {
    DeviceType type = DeviceType::automatic;
    bool enable_debug_layers = false;
    bool enable_rhi_validation = true;
    bool enable_cuda_interop = false;
    bool enable_print = false;
    bool enable_hot_reload = true;
    bool enable_compilation_reports = false;
    bool bounds_checks = true; ///< CPU: indices outside read zeros, are not written, and give a warning
    int adapter_index = -1;    ///< -1: the first; otherwise an index into enumerate_adapters(type)
    bool has_adapter_luid = false;
    std::array<uint8_t, 16> adapter_luid{};
    std::array<NativeHandle, 3> existing_device_handles{};
    BindlessDesc bindless;
    std::vector<std::string> additional_vulkan_instance_extensions, additional_vulkan_device_extensions;
    std::string label;
};

struct BufferDesc {
    uint64_t size = 0;
    uint64_t struct_size = 0;
    Format format = Format(0);
    MemoryType memory_type = MemoryType::device_local;
    BufferUsage usage = BufferUsage::none;
    BufferUsage asked_copies = BufferUsage::none; ///< copy flags in `usage` that the creator named; others are implied
    ResourceState default_state = ResourceState::undefined;
    std::string label;
    bool uninitialized = false; ///< the creator writes it all: it need not be zeroed
};

struct SamplerDesc {
    TextureFilteringMode min_filter = TextureFilteringMode::linear, mag_filter = TextureFilteringMode::linear,
                         mip_filter = TextureFilteringMode::linear;
    TextureReductionOp reduction_op = TextureReductionOp::average;
    TextureAddressingMode address_u = TextureAddressingMode::wrap, address_v = TextureAddressingMode::wrap,
                          address_w = TextureAddressingMode::wrap;
    float mip_lod_bias = 0.f;
    uint32_t max_anisotropy = 1;
    ComparisonFunc comparison_func = ComparisonFunc::never;
    std::array<float, 4> border_color{1.f, 1.f, 1.f, 1.f};
    float min_lod = -1000.f, max_lod = 1000.f;
    std::string label;
};

struct TextureDesc {
    TextureType type = TextureType::texture_2d;
    Format format = Format(0);
    uint32_t width = 1, height = 1, depth = 1;
    uint32_t array_length = 1, mip_count = 1; ///< mip_count is resolved (never ALL_MIPS) when a backend sees it
    uint32_t sample_count = 1, sample_quality = 0;
    MemoryType memory_type = MemoryType::device_local;
    TextureUsage usage = TextureUsage::none;
    ResourceState default_state = ResourceState::undefined;
    std::string label;

    bool is_cube() const { return type == TextureType::texture_cube || type == TextureType::texture_cube_array; }
    uint32_t layer_count() const { return array_length * (is_cube() ? 6 : 1); }
};

struct SubresourceRange {
    uint32_t layer = 0, layer_count = 1, mip = 0, mip_count = 1; ///< resolved counts
};

struct TextureViewDesc {
    Format format = Format(0);
    TextureAspect aspect = TextureAspect::all;
    SubresourceRange range;
    std::string label;
};

struct HeapReport {
    std::string label;
    uint64_t num_pages = 0, total_allocated = 0, total_mem_usage = 0, num_allocations = 0;
};

/// How often a process with devices has forked on the way to this one: what a driver made at another count is the
/// parent's.
uint32_t fork_count() noexcept;

} // namespace spy
