// What a device reports of itself: limits, features, the target to compile for, formats.
#include "vulkan/device.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace spy {

namespace {

DeviceLimits limits_of(const VulkanContext& context)
{
    const VkPhysicalDeviceLimits& from = context.adapter->properties.limits;
    DeviceLimits to;
    to.max_texture_dimension_1d = from.maxImageDimension1D;
    to.max_texture_dimension_2d = from.maxImageDimension2D;
    to.max_texture_dimension_3d = from.maxImageDimension3D;
    to.max_texture_dimension_cube = from.maxImageDimensionCube;
    to.max_texture_layers = from.maxImageArrayLayers;
    to.max_vertex_input_elements = from.maxVertexInputAttributes;
    to.max_vertex_input_element_offset = from.maxVertexInputAttributeOffset;
    to.max_vertex_streams = from.maxVertexInputBindings;
    to.max_vertex_stream_stride = from.maxVertexInputBindingStride;
    to.max_compute_threads_per_group = from.maxComputeWorkGroupInvocations;
    std::copy_n(from.maxComputeWorkGroupSize, 3, to.max_compute_thread_group_size.begin());
    std::copy_n(from.maxComputeWorkGroupCount, 3, to.max_compute_dispatch_thread_groups.begin());
    to.min_wave_size = to.max_wave_size = context.adapter->v11.subgroupSize;
    to.max_viewports = from.maxViewports;
    std::copy_n(from.maxViewportDimensions, 2, to.max_viewport_dimensions.begin());
    to.max_framebuffer_dimensions = {from.maxFramebufferWidth, from.maxFramebufferHeight, from.maxFramebufferLayers};
    to.max_shader_visible_samplers = from.maxPerStageDescriptorSamplers;
    to.max_entry_point_uniform_size = from.maxPushConstantsSize;
    to.max_buffer_size = context.adapter->max_buffer_size;
    if (context.has_acceleration())
        to.acceleration_structure_scratch_alignment = context.adapter->acceleration
                                                          .minAccelerationStructureScratchOffsetAlignment;
    if (context.can_trace_rays()) {
        to.max_ray_dispatch = context.adapter->ray_tracing.maxRayDispatchInvocationCount;
        to.max_ray_recursion = context.adapter->ray_tracing.maxRayRecursionDepth;
        to.max_ray_attribute_size = context.adapter->ray_tracing.maxRayHitAttributeSize;
    }
    to.sample_counts = from.framebufferColorSampleCounts & from.framebufferDepthSampleCounts;
    return to;
}

std::vector<std::string> features_of(const VulkanContext& context)
{
    const VkPhysicalDeviceFeatures& core = context.features.core.features;
    const VkPhysicalDeviceVulkan11Features& v11 = context.features.v11;
    const VkPhysicalDeviceVulkan12Features& v12 = context.features.v12;
    const VkPhysicalDeviceVulkan11Properties& p11 = context.adapter->v11;
    constexpr VkSubgroupFeatureFlags wave_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
        VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    const bool wave_ops = (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
        (p11.subgroupSupportedOperations & wave_operations) == wave_operations;
    const bool half = v12.shaderFloat16 && v11.storageBuffer16BitAccess;
    const bool int16 = core.shaderInt16 && v11.storageBuffer16BitAccess;
    const bool atomic_int64 = core.shaderInt64 && v12.shaderBufferInt64Atomics;
    const bool software = context.adapter->is_software();
    std::vector<std::string> features;
    auto add = [&](const char* name, bool present) {
        if (present)
            features.push_back(name);
    };
    add("hardware_device", !software);
    add("software_device", software);
    add("parameter_block", true);
    add("combined_texture_sampler", true);
    add("pointer", true);
    add("timestamp_query", context.timestamp_bits != 0);
    add("realtime_clock", context.features.clock.shaderDeviceClock);
    add("half", half);
    add("double", core.shaderFloat64);
    add("int16", int16);
    add("int64", core.shaderInt64);
    add("atomic_float", context.features.atomic_float.shaderBufferFloat32AtomicAdd);
    add("atomic_half", context.features.atomic_float2.shaderBufferFloat16AtomicAdd);
    add("atomic_int64", atomic_int64);
    add("wave_ops", wave_ops);
    add("rasterization", context.can_draw());
    add("surface", context.can_show());
    add("mesh_shader", context.can_draw() && context.features.mesh.meshShader);
    add("barycentrics", context.can_draw() && context.features.barycentrics.fragmentShaderBarycentric);
    add("multi_view", context.can_draw() && v11.multiview);
    add("conservative_rasterization",
        context.can_draw() && context.has_extension(VK_EXT_CONSERVATIVE_RASTERIZATION_EXTENSION_NAME));
    add("acceleration_structure", context.has_acceleration());
    add("ray_query", context.can_query_rays());
    add("ray_tracing", context.can_trace_rays());
    add("cooperative_vector", context.has_coop_vec());
    add("cooperative_matrix", context.features.coop_matrix.cooperativeMatrix);
    add("multi_draw_indirect_count", context.can_draw() && v12.drawIndirectCount);
    add("bindless", has_handles(context.features));
    add("custom_border_color", context.features.border.customBorderColors);
    // Shader models are D3D's; the names stand for the features that each step brought.
    add("sm_5_1", true);
    add("sm_6_0", true);
    bool reached = wave_ops;
    add("sm_6_1", reached);
    add("sm_6_2", reached = reached && half && int16);
    for (const char* name : {"sm_6_3", "sm_6_4", "sm_6_5"})
        add(name, reached);
    add("sm_6_6", reached && atomic_int64);
    return features;
}

} // namespace

DeviceInfo vulkan_info(const VulkanContext& context)
{
    DeviceInfo info;
    const VulkanAdapter& adapter = *context.adapter;
    info.type = DeviceType::vulkan;
    info.api_name = "Vulkan";
    info.adapter_name = adapter.properties.deviceName;
    const double period = adapter.properties.limits.timestampPeriod; // nanoseconds per tick
    info.timestamp_frequency = context.timestamp_bits && period > 0 ? uint64_t(std::llround(1e9 / period)) : 0;
    info.luid = adapter.info().luid;
    std::memcpy(info.uuid.data(), adapter.v11.deviceUUID, VK_UUID_SIZE);
    info.limits = limits_of(context);
    info.features = features_of(context);
    return info;
}

CompileTarget vulkan_target(const VulkanContext& context)
{
    CompileTarget target;
    const VulkanFeatures& f = context.features;
    const VkSubgroupFeatureFlags waves = (context.adapter->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
        ? context.adapter->v11.subgroupSupportedOperations
        : 0;
    target.format = "spirv";
    target.profile = "spirv_1_5";
    auto& names = target.capabilities;
    auto add = [&](const char* name, bool present) {
        if (present)
            names.push_back(name);
    };
    add("SPV_EXT_physical_storage_buffer", true);
    add("spvImageQuery", true);
    add("spvGroupNonUniform", waves & VK_SUBGROUP_FEATURE_BASIC_BIT);
    add("spvGroupNonUniformVote", waves & VK_SUBGROUP_FEATURE_VOTE_BIT);
    add("spvGroupNonUniformArithmetic", waves & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    add("spvGroupNonUniformBallot", waves & VK_SUBGROUP_FEATURE_BALLOT_BIT);
    add("spvGroupNonUniformShuffle", waves & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
    add("spvGroupNonUniformShuffleRelative", waves & VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT);
    add("spvGroupNonUniformClustered", waves & VK_SUBGROUP_FEATURE_CLUSTERED_BIT);
    add("spvGroupNonUniformQuad", waves & VK_SUBGROUP_FEATURE_QUAD_BIT);
    add("spvAtomicFloat32AddEXT", f.atomic_float.shaderBufferFloat32AtomicAdd);
    add("spvAtomicFloat64AddEXT", f.atomic_float.shaderBufferFloat64AtomicAdd);
    add("spvAtomicFloat16AddEXT", f.atomic_float2.shaderBufferFloat16AtomicAdd);
    add("spvAtomicFloat32MinMaxEXT", f.atomic_float2.shaderBufferFloat32AtomicMinMax);
    add("spvInt64Atomics", f.v12.shaderBufferInt64Atomics);
    add("spvShaderClockKHR", f.clock.shaderDeviceClock);
    add("spvImageGatherExtended", f.core.features.shaderImageGatherExtended);
    add("spvMeshShadingEXT", f.mesh.meshShader);
    add("spvFragmentBarycentricKHR", f.barycentrics.fragmentShaderBarycentric);
    add("spvShaderNonUniform",
        has_handles(f) && f.v12.shaderSampledImageArrayNonUniformIndexing &&
            f.v12.shaderStorageBufferArrayNonUniformIndexing);
    add("spvRayQueryKHR", context.can_query_rays());
    add("spvRayTracingKHR", context.can_trace_rays());
    add("spvCooperativeVectorNV", context.has_coop_vec());
    add("spvCooperativeVectorTrainingNV", f.coop_vec.cooperativeVectorTraining);
    add("spvCooperativeMatrixKHR", context.features.coop_matrix.cooperativeMatrix);
    add("spvMinLod", f.core.features.shaderResourceMinLod);
    target.defines = {{"__TARGET_VULKAN__", "1"}};
    if (f.atomic_float.shaderBufferFloat32AtomicAdd)
        target.defines.emplace_back("SPY_FLOAT_ATOMICS", "1");
    return target;
}

uint32_t VulkanDevice::format_support(Format format)
{
    require_open("get_format_support");
    const VkFormatProperties properties = m_context.format_properties(format);
    const VkFormatFeatureFlags image = properties.optimalTilingFeatures, buffer = properties.bufferFeatures;
    uint32_t support = 0;
    auto add = [&](FormatSupport flag, VkFormatFeatureFlags have, VkFormatFeatureFlags want) {
        if (have & want)
            support |= uint32_t(flag);
    };
    add(FormatSupport::buffer, buffer,
        VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT | VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT);
    add(FormatSupport::vertex_buffer, buffer, VK_FORMAT_FEATURE_VERTEX_BUFFER_BIT);
    if (format == Format::r16_uint || format == Format::r32_uint)
        support |= uint32_t(FormatSupport::index_buffer);
    add(FormatSupport::texture, image, ~0u);
    add(FormatSupport::render_target, image, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT);
    add(FormatSupport::depth_stencil, image, VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT);
    add(FormatSupport::blendable, image, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BLEND_BIT);
    if (!format_info(format).is_integer_format())
        add(FormatSupport::resolvable, image, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT);
    if (m_context.sample_counts(format) & VK_SAMPLE_COUNT_4_BIT)
        support |= uint32_t(FormatSupport::multisampling);
    add(FormatSupport::shader_load, image, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT);
    add(FormatSupport::shader_sample, image, VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT);
    add(FormatSupport::shader_uav_load, image, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT);
    add(FormatSupport::shader_uav_store, image, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT);
    add(FormatSupport::shader_atomic, image, VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT);
    add(FormatSupport::copy_source, image, VK_FORMAT_FEATURE_TRANSFER_SRC_BIT);
    add(FormatSupport::copy_destination, image, VK_FORMAT_FEATURE_TRANSFER_DST_BIT);
    return support;
}

} // namespace spy
