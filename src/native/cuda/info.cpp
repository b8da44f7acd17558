// What a CUDA device reports of itself.
#include "cuda/device.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

DeviceLimits limits_of(const CudaContext& context)
{
    DeviceLimits limits;
    auto value = [&](CUdevice_attribute which) { return uint32_t(std::max(0, context.attribute(which))); };
    limits.max_texture_dimension_1d = value(CU_DEVICE_MAX_TEXTURE1D);
    limits.max_texture_dimension_2d = value(CU_DEVICE_MAX_TEXTURE2D);
    limits.max_texture_dimension_3d = value(CU_DEVICE_MAX_TEXTURE3D);
    limits.max_texture_dimension_cube = value(CU_DEVICE_MAX_TEXTURECUBEMAP);
    limits.max_texture_layers = value(CU_DEVICE_MAX_TEXTURE2D_LAYERS);
    limits.max_compute_threads_per_group = value(CU_DEVICE_MAX_THREADS_PER_BLOCK);
    limits.max_compute_thread_group_size = {value(CU_DEVICE_MAX_BLOCK_DIM_X), value(CU_DEVICE_MAX_BLOCK_DIM_Y),
                                            value(CU_DEVICE_MAX_BLOCK_DIM_Z)};
    limits.max_compute_dispatch_thread_groups = {value(CU_DEVICE_MAX_GRID_DIM_X), value(CU_DEVICE_MAX_GRID_DIM_Y),
                                                 value(CU_DEVICE_MAX_GRID_DIM_Z)};
    limits.min_wave_size = limits.max_wave_size = value(CU_DEVICE_WARP_SIZE);
    limits.max_shader_visible_samplers = 1u << 16;
    limits.max_entry_point_uniform_size = 4096;
    size_t total = 0;
    context.api().cuDeviceTotalMem(&total, context.device());
    limits.max_buffer_size = total;
    return limits;
}

} // namespace

DeviceInfo cuda_info(const CudaContext& context)
{
    const CudaApi& api = context.api();
    DeviceInfo info;
    info.type = DeviceType::cuda;
    info.api_name = "CUDA";
    AdapterInfo adapter = cuda_adapter_info(api, context.device());
    info.adapter_name = adapter.name;
    info.luid = adapter.luid;
    info.device_index = context.device();
    info.timestamp_frequency = 1'000'000'000;
    CUuuid uuid{};
    api.cuDeviceGetUuid(&uuid, context.device());
    std::memcpy(info.uuid.data(), uuid.bytes, sizeof(uuid.bytes));
    info.limits = limits_of(context);

    info.features = {"hardware_device", "parameter_block", "combined_texture_sampler",
                     "timestamp_query", "realtime_clock",  "half",
                     "double",          "int16",           "int64",
                     "atomic_float",    "atomic_half",     "atomic_int64",
                     "wave_ops",        "pointer",         "sm_5_1",
                     "sm_6_0",          "sm_6_1",          "sm_6_2",
                     "sm_6_3",          "sm_6_4",          "sm_6_5",
                     "sm_6_6",          "sm_6_7",          "bindless"};
    if (context.compute() >= 80)
        info.features.push_back("bfloat16");
    if (context.compute() >= 89)
        info.features.push_back("float8");

    info.capabilities = {"cuda"};
    const std::pair<int, const char*> levels[] = {{10, "cuda_sm_1_0"}, {20, "cuda_sm_2_0"}, {30, "cuda_sm_3_0"},
                                                  {35, "cuda_sm_3_5"}, {40, "cuda_sm_4_0"}, {50, "cuda_sm_5_0"},
                                                  {60, "cuda_sm_6_0"}, {70, "cuda_sm_7_0"}, {80, "cuda_sm_8_0"},
                                                  {89, "cuda_sm_8_9"}, {90, "cuda_sm_9_0"}};
    for (auto [level, name] : levels)
        if (context.compute() >= level)
            info.capabilities.push_back(name);
    return info;
}

CompileTarget cuda_target(const DeviceInfo& info)
{
    CompileTarget target;
    target.format = "cuda";
    target.capabilities = {info.capabilities.back()};
    target.defines = {{"__TARGET_CUDA__", "1"}, {"SPY_FLOAT_ATOMICS", "1"}};
    return target;
}

} // namespace spy
