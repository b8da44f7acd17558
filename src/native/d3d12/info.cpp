// What a device reports of itself: limits, features, the target to compile for, formats.
#include "d3d12/device.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint32_t max_groups_per_dimension = 65535; // d3d12.h names both, but not everybody's d3d12.h
constexpr uint32_t max_visible_samplers = 2048;

DeviceLimits limits_of(const D3D12Context& context)
{
    DeviceLimits to; // feature level 11 and later state them all
    to.max_texture_dimension_1d = D3D12_REQ_TEXTURE1D_U_DIMENSION;
    to.max_texture_dimension_2d = D3D12_REQ_TEXTURE2D_U_OR_V_DIMENSION;
    to.max_texture_dimension_3d = D3D12_REQ_TEXTURE3D_U_V_OR_W_DIMENSION;
    to.max_texture_dimension_cube = D3D12_REQ_TEXTURECUBE_DIMENSION;
    to.max_texture_layers = D3D12_REQ_TEXTURE2D_ARRAY_AXIS_DIMENSION;
    to.max_vertex_input_elements = D3D12_IA_VERTEX_INPUT_RESOURCE_SLOT_COUNT;
    to.max_vertex_input_element_offset = 2048;
    to.max_vertex_streams = D3D12_IA_VERTEX_INPUT_RESOURCE_SLOT_COUNT;
    to.max_vertex_stream_stride = 2048;
    to.max_compute_threads_per_group = 1024;
    to.max_compute_thread_group_size = {1024, 1024, 64};
    to.max_compute_dispatch_thread_groups.fill(max_groups_per_dimension);
    to.min_wave_size = context.features.options1.WaveLaneCountMin;
    to.max_wave_size = std::max(context.features.options1.WaveLaneCountMax, to.min_wave_size);
    to.max_viewports = D3D12_VIEWPORT_AND_SCISSORRECT_OBJECT_COUNT_PER_PIPELINE;
    to.max_viewport_dimensions = {D3D12_VIEWPORT_BOUNDS_MAX, D3D12_VIEWPORT_BOUNDS_MAX};
    to.max_framebuffer_dimensions = {D3D12_REQ_TEXTURE2D_U_OR_V_DIMENSION, D3D12_REQ_TEXTURE2D_U_OR_V_DIMENSION, 1};
    to.max_shader_visible_samplers = max_visible_samplers;
    to.max_entry_point_uniform_size = D3D12_REQ_CONSTANT_BUFFER_ELEMENT_COUNT * 16;
    to.sample_counts = context.sample_counts(Format::rgba8_unorm) & context.sample_counts(Format::d32_float);
    to.max_buffer_size = (window_count / 2) * window_size;
    return to;
}

std::vector<std::string> features_of(const D3D12Context& context)
{
    const D3D12Features& f = context.features;
    std::vector<std::string> features;
    auto add = [&](const char* name, bool present) {
        if (present)
            features.push_back(name);
    };
    add("hardware_device", !context.adapter.info.is_software);
    add("software_device", context.adapter.info.is_software);
    add("parameter_block", true);
    add("timestamp_query", context.timestamp_frequency != 0);
    add("half", f.native_16bit);
    add("int16", f.native_16bit);
    add("double", f.options.DoublePrecisionFloatShaderOps);
    add("int64", f.options1.Int64ShaderOps);
    add("wave_ops", f.options1.WaveOps);
    add("custom_border_color", true);
    add("rasterization", true);
    add("multi_draw_indirect_count", true);
    add("conservative_rasterization",
        f.options.ConservativeRasterizationTier != D3D12_CONSERVATIVE_RASTERIZATION_TIER_NOT_SUPPORTED);
    add("sm_5_1", true);
    for (int minor = 0; minor <= std::min(f.shader_model - 60, 6); ++minor)
        features.push_back(cat("sm_6_", minor));
    return features;
}

} // namespace

DeviceInfo d3d12_info(const D3D12Context& context)
{
    DeviceInfo info;
    info.type = DeviceType::d3d12;
    info.api_name = "D3D12";
    info.adapter_name = context.name();
    info.timestamp_frequency = context.timestamp_frequency;
    info.luid = context.adapter.info.luid;
    info.limits = limits_of(context);
    info.features = features_of(context);
    return info;
}

CompileTarget d3d12_target(const D3D12Context& context)
{
    CompileTarget target;
    target.format = "hlsl";
    target.profile = cat("sm_6_", context.features.shader_model - 60);
    target.defines = {{"__TARGET_D3D12__", "1"}};
    return target;
}

uint32_t D3D12Device::format_support(Format format)
{
    require_open("get_format_support");
    const D3D12_FEATURE_DATA_FORMAT_SUPPORT data = m_context.format_support(format);
    const UINT one = data.Support1, two = data.Support2;
    uint32_t support = 0;
    auto add = [&](FormatSupport flag, bool has) {
        if (has)
            support |= uint32_t(flag);
    };
    const UINT texture = D3D12_FORMAT_SUPPORT1_TEXTURE1D | D3D12_FORMAT_SUPPORT1_TEXTURE2D |
        D3D12_FORMAT_SUPPORT1_TEXTURE3D | D3D12_FORMAT_SUPPORT1_TEXTURECUBE;
    const bool depth = one & D3D12_FORMAT_SUPPORT1_DEPTH_STENCIL;
    add(FormatSupport::buffer, one & D3D12_FORMAT_SUPPORT1_BUFFER);
    add(FormatSupport::vertex_buffer, one & D3D12_FORMAT_SUPPORT1_IA_VERTEX_BUFFER);
    add(FormatSupport::index_buffer, one & D3D12_FORMAT_SUPPORT1_IA_INDEX_BUFFER);
    add(FormatSupport::texture, one & texture);
    add(FormatSupport::render_target, one & D3D12_FORMAT_SUPPORT1_RENDER_TARGET);
    add(FormatSupport::depth_stencil, depth);
    add(FormatSupport::blendable, one & D3D12_FORMAT_SUPPORT1_BLENDABLE);
    add(FormatSupport::multisampling, m_context.sample_counts(format) > 1); // as creating a texture asks
    add(FormatSupport::resolvable,
        (one & D3D12_FORMAT_SUPPORT1_MULTISAMPLE_RESOLVE) && !format_info(format).is_integer_format());
    add(FormatSupport::shader_load, (one & D3D12_FORMAT_SUPPORT1_SHADER_LOAD) || depth);
    add(FormatSupport::shader_sample, one & D3D12_FORMAT_SUPPORT1_SHADER_SAMPLE);
    add(FormatSupport::shader_uav_load, two & D3D12_FORMAT_SUPPORT2_UAV_TYPED_LOAD);
    add(FormatSupport::shader_uav_store, two & D3D12_FORMAT_SUPPORT2_UAV_TYPED_STORE);
    add(FormatSupport::shader_atomic, two & D3D12_FORMAT_SUPPORT2_UAV_ATOMIC_ADD);
    add(FormatSupport::copy_source, one & texture);
    add(FormatSupport::copy_destination, one & texture);
    return support;
}

} // namespace spy
