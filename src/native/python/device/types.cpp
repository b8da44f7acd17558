// Enums and small value types of the device layer.
#include "python/device/bindings.h"

#include "python/members.h"
#include "device/backend.h"

#include <nanobind/stl/array.h>

namespace spy {

namespace {

constexpr const char* handle_names[] = {
    "undefined",
    "win32",
    "file_descriptor",
    "CUdevice",
    "CUdeviceptr",
    "CUstream",
    "CUcontext",
    "CUtexObject",
    "CUsurfObject",
    "CUmipmappedArray",
    "CUevent",
    "CUarray",
    "VkInstance",
    "VkPhysicalDevice",
    "VkDevice",
    "VkQueue",
    "VkCommandBuffer",
    "VkBuffer",
    "VkImage",
    "VkImageView",
    "VkSampler",
    "VkPipeline",
    "VkSemaphore",
    "VkAccelerationStructureKHR",
    "D3D12Device",
    "D3D12CommandQueue",
    "D3D12GraphicsCommandList",
    "D3D12Resource",
    "D3D12Fence",
    "D3D12PipelineState",
    "D3D12DescriptorHandle",
    "D3D12StateObject",
    // of APIs that no device here has: so that programs can have tables over all of them
    "D3D12CpuDescriptorHandle",
    "D3D12DeviceAddress",
    "OptixDeviceContext",
    "OptixTraversableHandle",
    "MTLDevice",
    "MTLCommandQueue",
    "MTLCommandBuffer",
    "MTLTexture",
    "MTLBuffer",
    "MTLComputePipelineState",
    "MTLRenderPipelineState",
    "MTLSharedEvent",
    "MTLSamplerState",
    "MTLAccelerationStructure",
    "WGPUDevice",
    "WGPUQueue",
    "WGPUCommandEncoder",
    "WGPUCommandBuffer",
    "WGPUBuffer",
    "WGPUTexture",
    "WGPUTextureView",
    "WGPUSampler",
    "WGPURenderPipeline",
    "WGPUComputePipeline",
};
static_assert(std::size(handle_names) >= size_t(NativeHandleType::D3D12StateObject) + 1);

constexpr const char* feature_names[] = {
    "hardware_device",
    "software_device",
    "parameter_block",
    "bindless",
    "rasterization",
    "combined_texture_sampler",
    "acceleration_structure",
    "ray_tracing",
    "ray_query",
    "timestamp_query",
    "timestamp_calibration",
    "realtime_clock",
    "half",
    "double",
    "int16",
    "int64",
    "atomic_float",
    "atomic_half",
    "atomic_int64",
    "wave_ops",
    "pointer",
    "bfloat16",
    "float8",
    "cooperative_vector",
    "cooperative_matrix",
    "sm_5_1",
    "sm_6_0",
    "sm_6_1",
    "sm_6_2",
    "sm_6_3",
    "sm_6_4",
    "sm_6_5",
    "sm_6_6",
    "sm_6_7",
    "sm_6_8",
    "sm_6_9",
    "sm_6_10",
    "surface",
    "pipeline_cache",
    "mesh_shader",
    "barycentrics",
    "multi_view",
    "rasterizer_ordered_views",
    "conservative_rasterization",
    "custom_border_color",
    "fragment_shading_rate",
    "sampler_feedback",
    "programmable_sample_positions",
    "multi_draw_indirect_count",
};

template <typename E>
void values(nb::enum_<E>& cls, std::initializer_list<const char*> names)
{
    int64_t value = 0;
    for (const char* name : names)
        cls.value(name, E(value++));
}

template <typename E>
void flags(nb::enum_<E>& cls, std::initializer_list<const char*> names)
{
    cls.value("none", E(0));
    uint32_t bit = 1;
    for (const char* name : names) {
        cls.value(name, E(bit));
        bit <<= 1;
    }
}

enum class Feature : uint32_t { };
enum class LogLevel : uint32_t { none, debug, info, warn, error, fatal };

void bind_general_enums(nb::module_& m)
{
    auto device_type = nb::enum_<DeviceType>(m, "DeviceType", nb::is_arithmetic(), "Kinds of devices.");
    values(device_type, {"automatic", "d3d12", "vulkan", "metal", "cpu", "cuda", "wgpu", "null"});
    auto memory_type = nb::enum_<MemoryType>(m, "MemoryType", nb::is_arithmetic(), "Where a resource's memory lies.");
    values(memory_type, {"device_local", "upload", "read_back"});
    auto queue_type = nb::enum_<CommandQueueType>(m, "CommandQueueType", nb::is_arithmetic(),
                                                  "Queues of a device; there is one.");
    values(queue_type, {"graphics"});
    auto state = nb::enum_<ResourceState>(m, "ResourceState", nb::is_arithmetic(),
                                          "How a resource is about to be used.");
    values(state,
           {"undefined",
            "general",
            "vertex_buffer",
            "index_buffer",
            "constant_buffer",
            "stream_output",
            "shader_resource",
            "unordered_access",
            "render_target",
            "depth_read",
            "depth_write",
            "present",
            "indirect_argument",
            "copy_source",
            "copy_destination",
            "resolve_source",
            "resolve_destination",
            "acceleration_structure_read",
            "acceleration_structure_write",
            "acceleration_structure_build_output"});
    auto usage = nb::enum_<BufferUsage>(m, "BufferUsage", nb::is_arithmetic(), nb::is_flag(),
                                        "What a buffer may be used for.");
    flags(usage,
          {"vertex_buffer", "index_buffer", "constant_buffer", "shader_resource", "unordered_access",
           "indirect_argument", "copy_source", "copy_destination", "acceleration_structure",
           "acceleration_structure_build_input", "shader_table", "shared"});
    auto log_level = nb::enum_<LogLevel>(m, "LogLevel", nb::is_arithmetic(), "Severities of messages.");
    values(log_level, {"none", "debug", "info", "warn", "error", "fatal"});
    auto query = nb::enum_<QueryType>(m, "QueryType", nb::is_arithmetic(), "What a query pool holds.");
    values(query, {"timestamp", "acceleration_structure_compacted_size", "acceleration_structure_current_size"});
    auto feature = nb::enum_<Feature>(m, "Feature", nb::is_arithmetic(), "What a device may be able to do.");
    uint32_t number = 0;
    for (const char* name : feature_names)
        feature.value(name, Feature(number++));
}

void bind_texture_enums(nb::module_& m)
{
    auto type = nb::enum_<TextureType>(m, "TextureType", nb::is_arithmetic(), "Dimensions of textures.");
    values(type,
           {"texture_1d", "texture_1d_array", "texture_2d", "texture_2d_array", "texture_2d_ms", "texture_2d_ms_array",
            "texture_3d", "texture_cube", "texture_cube_array"});
    auto usage = nb::enum_<TextureUsage>(m, "TextureUsage", nb::is_arithmetic(), nb::is_flag(),
                                         "What a texture may be used for.");
    flags(usage,
          {"shader_resource", "unordered_access", "render_target", "depth_stencil", "present", "copy_source",
           "copy_destination", "resolve_source", "resolve_destination", "typeless", "shared"});
    auto aspect = nb::enum_<TextureAspect>(
        m, "TextureAspect", nb::is_arithmetic(),
        "Which part of a texture a view shows: all, colour, depth, stencil, a plane.");
    values(aspect, {"all", "depth_only", "stencil_only"});
    auto filter = nb::enum_<TextureFilteringMode>(m, "TextureFilteringMode", nb::is_arithmetic(),
                                                  "How a sampler reads between texels.");
    values(filter, {"point", "linear"});
    auto addressing = nb::enum_<TextureAddressingMode>(m, "TextureAddressingMode", nb::is_arithmetic(),
                                                       "What a sampler reads outside of a texture.");
    values(addressing, {"wrap", "clamp_to_edge", "clamp_to_border", "mirror_repeat", "mirror_once"});
    auto reduction = nb::enum_<TextureReductionOp>(m, "TextureReductionOp", nb::is_arithmetic(),
                                                   "What a sampler makes of the texels it reads.");
    values(reduction, {"average", "comparison", "minimum", "maximum"});
    auto comparison = nb::enum_<ComparisonFunc>(m, "ComparisonFunc", nb::is_arithmetic(),
                                                "Comparisons of depth, stencil and samplers.");
    values(comparison, {"never", "less", "equal", "less_equal", "greater", "not_equal", "greater_equal", "always"});
    m.attr("ALL_MIPS") = all_mips;
    m.attr("ALL_LAYERS") = all_layers;
}

void bind_format_info(nb::module_& m);

void bind_formats(nb::module_& m)
{
    auto format = nb::enum_<Format>(m, "Format", nb::is_arithmetic(), "Texel formats.");
    for (uint32_t i = 0; i < uint32_t(Format::count_); ++i)
        format.value(format_info(Format(i)).name.data(), Format(i));
    auto type = nb::enum_<FormatType>(m, "FormatType", nb::is_arithmetic(), "What the channels of a format are.");
    values(type, {"unknown", "float", "unorm", "unorm_srgb", "snorm", "uint", "sint"});
    nb::enum_<FormatChannels>(m, "FormatChannels", nb::is_arithmetic(), nb::is_flag(), "Channels of a format; flags.")
        .value("none", FormatChannels::none)
        .value("r", FormatChannels::r)
        .value("g", FormatChannels::g)
        .value("b", FormatChannels::b)
        .value("a", FormatChannels::a)
        .value("rg", FormatChannels::rg)
        .value("rgb", FormatChannels::rgb)
        .value("rgba", FormatChannels::rgba);
    auto support = nb::enum_<FormatSupport>(m, "FormatSupport", nb::is_arithmetic(), nb::is_flag(),
                                            "What a device can do with a format.");
    flags(support,
          {"buffer", "vertex_buffer", "index_buffer", "texture", "render_target", "depth_stencil", "blendable",
           "resolvable", "shader_load", "shader_sample", "shader_uav_load", "shader_uav_store", "shader_atomic",
           "copy_source", "copy_destination", "multisampling"});
    bind_format_info(m);
}

void bind_format_info(nb::module_& m)
{
    nb::class_<FormatInfo>(m, "FormatInfo", "Properties of a texel format.")
        .def_ro("format", &FormatInfo::format)
        .def_prop_ro("name", [](const FormatInfo& f) { return std::string(f.name); })
        .def_ro("bytes_per_block", &FormatInfo::bytes_per_block, "Bytes of a block; of a texel where blocks are 1 x 1.")
        .def_ro("channel_count", &FormatInfo::channel_count)
        .def_ro("type", &FormatInfo::type)
        .def_prop_ro("is_depth", &FormatInfo::is_depth)
        .def_prop_ro("is_stencil", &FormatInfo::is_stencil)
        .def_prop_ro("is_compressed", &FormatInfo::is_compressed)
        .def_ro("block_width", &FormatInfo::block_width)
        .def_ro("block_height", &FormatInfo::block_height)
        .def_prop_ro(
            "channel_bit_count",
            [](const FormatInfo& f) {
                std::vector<uint32_t> bits(f.channel_bit_count.begin(), f.channel_bit_count.end());
                if (f.is_compressed())
                    bits[0] = 8 * f.bytes_per_block;
                return bits;
            },
            "Bits of each of the four channels; of block formats those of a block, in the first place.")
        .def_ro("dxgi_format", &FormatInfo::dxgi_format)
        .def_ro("vk_format", &FormatInfo::vk_format)
        .def("is_depth_stencil", &FormatInfo::is_depth_stencil, "Whether it has depth or stencil.")
        .def("is_float_format", &FormatInfo::is_float_format, "Whether its channels are floats.")
        .def("is_integer_format", &FormatInfo::is_integer_format,
             "Whether its channels are integers that shaders see as such.")
        .def("is_normalized_format", &FormatInfo::is_normalized_format,
             "Whether its channels are integers that shaders see as 0 to 1, or -1 to 1.")
        .def("is_srgb_format", &FormatInfo::is_srgb_format,
             "Whether its colours are sRGB, which shaders see as linear.")
        .def("get_channels", &FormatInfo::channels, "Its channels as flags.")
        .def(
            "get_channel_bits",
            [](const FormatInfo& f, Member<"get_channel_bits 'channels'", FormatChannels> channels) {
                return f.channel_bits(channels);
            },
            nb::arg("channels"), "Sum over the channels named.")
        .def("has_equal_channel_bits", &FormatInfo::has_equal_channel_bits, "Whether all channels have as many bits.")
        .def("__repr__", [](const FormatInfo& f) {
            return cat("FormatInfo(\n  format = ", f.name, ",\n  bytes_per_block = ", f.bytes_per_block,
                       ",\n  channel_count = ", f.channel_count, ",\n  block = ", f.block_width, " x ", f.block_height,
                       ",\n  dxgi_format = ", f.dxgi_format, ",\n  vk_format = ", f.vk_format, ",\n)");
        });
    m.def(
        "get_format_info", [](Member<"get_format_info 'format'", Format> f) { return format_info(f); },
        nb::arg("format"), "Properties of a format. ValueError for numbers outside of the enum.");
}

void bind_handles(nb::module_& m)
{
    auto type = nb::enum_<NativeHandleType>(m, "NativeHandleType", nb::is_arithmetic(),
                                            "What a NativeHandle is in its API.");
    for (size_t i = 0; i < std::size(handle_names); ++i)
        type.value(handle_names[i], NativeHandleType(i));
    nb::class_<NativeHandle>(m, "NativeHandle", "A handle of the graphics or compute API. True when it is set.")
        .def(nb::init<>())
        .def(
            "__init__",
            [](NativeHandle* self, Member<"NativeHandle 'type'", NativeHandleType> t, uint64_t value) {
                new (self) NativeHandle{t, value};
            },
            nb::arg("type"), nb::arg("value"))
        .def_ro("type", &NativeHandle::type)
        .def_ro("value", &NativeHandle::value)
        .def_static(
            "from_cuda_stream", [](uint64_t stream) { return NativeHandle{NativeHandleType::CUstream, stream}; },
            nb::arg("stream"), "Handle of a CUstream given as an int; 0 is the default stream.")
        .def("__bool__", [](const NativeHandle& h) { return h.type != NativeHandleType::undefined; })
        .def(
            "__eq__",
            [](const NativeHandle& a, nb::handle other) {
                const NativeHandle* b = nullptr;
                return nb::try_cast(other, b) && b && a.type == b->type && a.value == b->value;
            },
            nb::arg().none())
        .def("__hash__", [](const NativeHandle& h) { return std::hash<uint64_t>()(h.value * 64 + uint64_t(h.type)); })
        .def("__repr__", &handle_repr);
    nb::class_<DeviceHandle, NativeHandle>(m, "DeviceHandle", "A NativeHandle that keeps what it names alive.");
}

void bind_limits(nb::module_& m)
{
    auto limits = nb::class_<DeviceLimits>(m, "DeviceLimits", "True values of the device; 0 where meaningless.");
#define LIMIT(name) limits.def_ro(#name, &DeviceLimits::name)
    LIMIT(max_texture_dimension_1d);
    LIMIT(max_texture_dimension_2d);
    LIMIT(max_texture_dimension_3d);
    LIMIT(max_texture_dimension_cube);
    LIMIT(max_texture_layers);
    LIMIT(max_vertex_input_elements);
    LIMIT(max_vertex_input_element_offset);
    LIMIT(max_vertex_streams);
    LIMIT(max_vertex_stream_stride);
    LIMIT(max_compute_threads_per_group);
    LIMIT(min_wave_size);
    LIMIT(max_wave_size);
    LIMIT(max_viewports);
    LIMIT(max_shader_visible_samplers);
    LIMIT(max_entry_point_uniform_size);
    LIMIT(max_buffer_size);
#undef LIMIT
#define LIMIT(name)                                                                                                    \
    limits.def_prop_ro(#name, [](const DeviceLimits& l) { return uints_to_python(l.name.data(), l.name.size()); })
    LIMIT(max_compute_thread_group_size);
    LIMIT(max_compute_dispatch_thread_groups);
    LIMIT(max_viewport_dimensions);
    LIMIT(max_framebuffer_dimensions);
#undef LIMIT
    limits.def("__repr__", [](nb::handle self) {
        std::string text = "DeviceLimits(\n";
        for (nb::handle name : nb::list(nb::module_::import_("builtins").attr("dir")(self))) {
            const std::string key = nb::cast<std::string>(name);
            if (key[0] != '_')
                text += cat("  ", key, " = ", nb::cast<std::string>(nb::repr(self.attr(key.c_str()))), ",\n");
        }
        return text + ")";
    });
}

void bind_info(nb::module_& m)
{
    nb::class_<DeviceInfo>(m, "DeviceInfo", "What a device is.")
        .def_ro("type", &DeviceInfo::type)
        .def_ro("_on_host", &DeviceInfo::on_host,
                "Whether its memory is the host's, and its work is done when a call returns.")
        .def_ro("api_name", &DeviceInfo::api_name)
        .def_ro("adapter_name", &DeviceInfo::adapter_name)
        .def_ro("timestamp_frequency", &DeviceInfo::timestamp_frequency, "Ticks per second.")
        .def_ro("optix_version", &DeviceInfo::optix_version)
        .def_ro("limits", &DeviceInfo::limits)
        .def("__repr__", [](const DeviceInfo& i) {
            return cat("DeviceInfo(\n  type = ", device_type_name(i.type), ",\n  api_name = '", i.api_name,
                       "',\n  adapter_name = '", i.adapter_name, "',\n  timestamp_frequency = ", i.timestamp_frequency,
                       ",\n)");
        });
    nb::class_<AdapterInfo>(m, "AdapterInfo", "One device that an API offers.")
        .def_ro("name", &AdapterInfo::name)
        .def_ro("vendor_id", &AdapterInfo::vendor_id)
        .def_ro("device_id", &AdapterInfo::device_id)
        .def_prop_ro(
            "luid", [](const AdapterInfo& a) { return std::vector<uint32_t>(a.luid.begin(), a.luid.end()); },
            "16 ints.")
        .def_ro("is_software", &AdapterInfo::is_software)
        .def("__repr__", [](const AdapterInfo& a) {
            return cat("AdapterInfo(\n  name = '", a.name, "',\n  vendor_id = ", a.vendor_id,
                       ",\n  device_id = ", a.device_id, ",\n)");
        });
    nb::class_<HeapReport>(m, "HeapReport", "Memory held from the driver and in use, in bytes.")
        .def_ro("label", &HeapReport::label)
        .def_ro("num_pages", &HeapReport::num_pages)
        .def_ro("total_allocated", &HeapReport::total_allocated)
        .def_ro("total_mem_usage", &HeapReport::total_mem_usage)
        .def_ro("num_allocations", &HeapReport::num_allocations)
        .def("__repr__", [](const HeapReport& h) {
            return cat("HeapReport(\n  label = '", h.label, "',\n  num_pages = ", h.num_pages,
                       ",\n  total_allocated = ", h.total_allocated, ",\n  total_mem_usage = ", h.total_mem_usage,
                       ",\n  num_allocations = ", h.num_allocations, ",\n)");
        });
}

} // namespace

const char* handle_type_name(NativeHandleType type)
{
    return size_t(type) < std::size(handle_names) ? handle_names[size_t(type)] : "unknown";
}

std::string handle_repr(const NativeHandle& handle)
{
    std::ostringstream text;
    text << "NativeHandle(type=" << handle_type_name(handle.type) << ", value=0x" << std::hex << handle.value << ")";
    return text.str();
}

void bind_device_types(nb::module_& m)
{
    bind_general_enums(m);
    bind_texture_enums(m);
    bind_formats(m);
    bind_handles(m);
    bind_limits(m);
    bind_info(m);
}

} // namespace spy
