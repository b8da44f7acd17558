// Opening a CUDA device, what it reports of itself, and its errors.
#include "cuda/cuda_backend.h"
#include "device/backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace spy {

namespace {

AdapterInfo adapter_info(const CudaApi& api, CUdevice device)
{
    AdapterInfo info;
    char name[256] = {};
    api.cuDeviceGetName(name, sizeof(name) - 1, device);
    info.name = name;
    info.vendor_id = 0x10de;
    int pci_device = 0;
    api.cuDeviceGetAttribute(&pci_device, CU_DEVICE_PCI_DEVICE_ID, device);
    info.device_id = uint32_t(pci_device);
    unsigned node_mask = 0;
    char luid[8] = {};
    // A LUID exists on Windows only; elsewhere the first bytes of the UUID tell adapters apart.
    if (api.cuDeviceGetLuid && api.cuDeviceGetLuid(luid, &node_mask, device) == CUDA_SUCCESS) {
        std::memcpy(info.luid.data(), luid, sizeof(luid));
    } else {
        CUuuid uuid{};
        api.cuDeviceGetUuid(&uuid, device);
        std::memcpy(info.luid.data(), uuid.bytes, sizeof(uuid.bytes));
    }
    return info;
}

std::vector<AdapterInfo> enumerate_cuda()
{
    std::vector<AdapterInfo> adapters;
    const CudaApi* api = CudaApi::find();
    int count = 0;
    if (!api || api->cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return adapters;
    for (int i = 0; i < count; ++i)
        if (CUdevice device = 0; api->cuDeviceGet(&device, i) == CUDA_SUCCESS)
            adapters.push_back(adapter_info(*api, device));
    return adapters;
}

ref<Device> create_cuda(const DeviceDesc& desc) { return ref<Device>(new CudaDevice(desc)); }

/// Holds a primary context for the life of the process, as torch does: the driver faults after some hundred times of
/// making and destroying one, and each time costs a tenth of a second.
void keep_primary_context(const CudaApi& api, CUdevice device)
{
    static std::mutex mutex;
    static std::set<CUdevice> kept;
    std::lock_guard lock(mutex);
    CUcontext context = nullptr;
    if (kept.insert(device).second)
        api.cuDevicePrimaryCtxRetain(&context, device);
}

/// Errors after which no call of the context succeeds any more.
bool is_sticky(CUresult result)
{
    switch (result) {
    case 214: // ECC_UNCORRECTABLE
    case 220: // NVLINK_UNCORRECTABLE
    case 226: // CONTAINED
    case 700: // ILLEGAL_ADDRESS
    case 702: // LAUNCH_TIMEOUT
    case 709: // CONTEXT_IS_DESTROYED
    case 710: // ASSERT
    case 714: // HARDWARE_STACK_ERROR
    case 715: // ILLEGAL_INSTRUCTION
    case 716: // MISALIGNED_ADDRESS
    case 717: // INVALID_ADDRESS_SPACE
    case 718: // INVALID_PC
    case 719: // LAUNCH_FAILED
        return true;
    default:
        return false;
    }
}

} // namespace

Backend cuda_backend() { return {DeviceType::cuda, "cuda", enumerate_cuda, create_cuda}; }

std::array<NativeHandle, 3> cuda_current_context_handles()
{
    CUcontext context = nullptr;
    CUdevice device = 0;
    const CudaApi* api = CudaApi::find();
    if (!api || api->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context || api->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        fail_runtime("No current CUDA context found.");
    return {NativeHandle{NativeHandleType::CUdevice, uint64_t(device)}, NativeHandle{NativeHandleType::CUcontext, uint64_t(context)}, {}};
}

// --------------------------------------------------------------------------------------------------- open and close

CudaDevice::CudaDevice(const DeviceDesc& desc) : m_api(CudaApi::get())
{
    m_desc = desc;
    m_desc.type = DeviceType::cuda;
    open_context();
    try {
        Lock lock(*this);
        m_compute = attribute(CU_DEVICE_COMPUTE_MAJOR) * 10 + attribute(CU_DEVICE_COMPUTE_MINOR);
        m_arch = cat("sm_", m_compute);
        m_stream_values = m_api.cuStreamWriteValue64 && m_api.cuStreamWaitValue64 && attribute(CU_DEVICE_64_BIT_STREAM_MEM_OPS);
        create_pool();
        check(m_api.cuEventCreate(&m_own_event, CU_EVENT_DISABLE_TIMING), "create an event");
        check(m_api.cuEventCreate(&m_tail_event, CU_EVENT_DISABLE_TIMING), "create an event");
        fill_info();
    } catch (...) {
        close_backend();
        throw;
    }
}

CudaDevice::~CudaDevice()
{
    close_backend();
    if (m_kept_context && m_primary)
        m_api.cuDevicePrimaryCtxRelease(m_cuda_device);
}

void CudaDevice::open_context()
{
    int count = 0;
    check(m_api.cuDeviceGetCount(&count), "count the devices");
    if (count == 0)
        fail_runtime("CUDA is not available: the driver reports no device (CUDA_VISIBLE_DEVICES may hide them)");
    int ordinal = m_desc.adapter_index < 0 ? 0 : m_desc.adapter_index;
    for (const NativeHandle& handle : m_desc.existing_device_handles) {
        if (handle.type == NativeHandleType::CUcontext && handle.value) {
            m_context = reinterpret_cast<CUcontext>(handle.value);
        } else if (handle.type == NativeHandleType::CUdevice) {
            ordinal = int(handle.value);
        } else if (handle.type != NativeHandleType::undefined) {
            fail_value("existing_device_handles: a cuda device takes a CUdevice or a CUcontext handle");
        }
    }
    if (m_context) {
        Lock lock(*this);
        check(m_api.cuCtxGetDevice(&m_cuda_device), "use the given CUcontext");
        return;
    }
    if (m_desc.has_adapter_luid && m_desc.adapter_index < 0) {
        std::vector<AdapterInfo> adapters = enumerate_cuda();
        auto it = std::find_if(adapters.begin(), adapters.end(), [&](const AdapterInfo& a) { return a.luid == m_desc.adapter_luid; });
        if (it == adapters.end())
            fail_value("adapter_luid: no CUDA adapter has this LUID; Device.enumerate_adapters(DeviceType.cuda) lists them");
        ordinal = int(it - adapters.begin());
    }
    if (ordinal < 0 || ordinal >= count)
        fail(ErrorKind::index, "CUDA device ", ordinal, " does not exist: there are ", count);
    check(m_api.cuDeviceGet(&m_cuda_device, ordinal), "get device ", ordinal);
    check(m_api.cuDevicePrimaryCtxRetain(&m_context, m_cuda_device), "open the primary context of device ", ordinal);
    m_primary = true;
    keep_primary_context(m_api, m_cuda_device);
}

int CudaDevice::attribute(CUdevice_attribute which) const
{
    int value = 0;
    return m_api.cuDeviceGetAttribute(&value, which, m_cuda_device) == CUDA_SUCCESS ? value : 0;
}

void CudaDevice::create_pool()
{
    if (!m_api.cuMemPoolCreate || !m_api.cuMemAllocFromPoolAsync || !m_api.cuMemFreeAsync || !m_api.cuMemPoolSetAttribute ||
        !attribute(CU_DEVICE_MEMORY_POOLS_SUPPORTED))
        return;
    // Devices of a primary context share one pool, which lives as long as the process: the driver faults after some
    // hundred pools have come and gone, and exported memory may outlive its device.
    static std::mutex mutex;
    static std::map<CUdevice, CUmemoryPool> pools;
    std::unique_lock lock(mutex);
    if (m_primary && pools.count(m_cuda_device)) {
        m_pool = pools[m_cuda_device];
        return;
    }
    CUmemPoolProps props{};
    props.allocType = 1; // pinned
    props.location = {1, m_cuda_device};
    if (m_api.cuMemPoolCreate(&m_pool, &props) != CUDA_SUCCESS) {
        m_pool = nullptr;
        return;
    }
    uint64_t keep = UINT64_MAX; // freed memory stays with the pool across synchronisations
    m_api.cuMemPoolSetAttribute(m_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (m_primary)
        pools[m_cuda_device] = m_pool;
}

void CudaDevice::fill_info()
{
    m_info.type = DeviceType::cuda;
    m_info.api_name = "CUDA";
    AdapterInfo adapter = adapter_info(m_api, m_cuda_device);
    m_info.adapter_name = adapter.name;
    m_info.luid = adapter.luid;
    m_info.device_index = m_cuda_device;
    m_info.timestamp_frequency = 1'000'000'000;
    CUuuid uuid{};
    m_api.cuDeviceGetUuid(&uuid, m_cuda_device);
    std::memcpy(m_info.uuid.data(), uuid.bytes, sizeof(uuid.bytes));
    fill_limits();

    m_info.features = {"hardware_device", "parameter_block", "combined_texture_sampler", "timestamp_query", "realtime_clock", "half",
                       "double", "int16", "int64", "atomic_float", "atomic_half", "atomic_int64", "wave_ops", "pointer",
                       "sm_5_1", "sm_6_0", "sm_6_1", "sm_6_2", "sm_6_3", "sm_6_4", "sm_6_5", "sm_6_6", "sm_6_7"};
    if (m_compute >= 80)
        m_info.features.push_back("bfloat16");
    if (m_compute >= 89)
        m_info.features.push_back("float8");

    m_info.capabilities = {"cuda"};
    const std::pair<int, const char*> levels[] = {{10, "cuda_sm_1_0"}, {20, "cuda_sm_2_0"}, {30, "cuda_sm_3_0"}, {35, "cuda_sm_3_5"},
                                                  {40, "cuda_sm_4_0"}, {50, "cuda_sm_5_0"}, {60, "cuda_sm_6_0"}, {70, "cuda_sm_7_0"},
                                                  {80, "cuda_sm_8_0"}, {89, "cuda_sm_8_9"}, {90, "cuda_sm_9_0"}};
    for (auto [level, name] : levels)
        if (m_compute >= level)
            m_info.capabilities.push_back(name);
    m_target.format = "cuda";
    m_target.capabilities = {m_info.capabilities.back()};
    m_target.defines = {{"__TARGET_CUDA__", "1"}, {"SPY_FLOAT_ATOMICS", "1"}};
}

void CudaDevice::fill_limits()
{
    DeviceLimits& limits = m_info.limits;
    auto value = [&](CUdevice_attribute which) { return uint32_t(std::max(0, attribute(which))); };
    limits.max_texture_dimension_1d = value(CU_DEVICE_MAX_TEXTURE1D);
    limits.max_texture_dimension_2d = value(CU_DEVICE_MAX_TEXTURE2D);
    limits.max_texture_dimension_3d = value(CU_DEVICE_MAX_TEXTURE3D);
    limits.max_texture_dimension_cube = value(CU_DEVICE_MAX_TEXTURECUBEMAP);
    limits.max_texture_layers = value(CU_DEVICE_MAX_TEXTURE2D_LAYERS);
    limits.max_compute_threads_per_group = value(CU_DEVICE_MAX_THREADS_PER_BLOCK);
    limits.max_compute_thread_group_size = {value(CU_DEVICE_MAX_BLOCK_DIM_X), value(CU_DEVICE_MAX_BLOCK_DIM_Y), value(CU_DEVICE_MAX_BLOCK_DIM_Z)};
    limits.max_compute_dispatch_thread_groups = {value(CU_DEVICE_MAX_GRID_DIM_X), value(CU_DEVICE_MAX_GRID_DIM_Y), value(CU_DEVICE_MAX_GRID_DIM_Z)};
    limits.min_wave_size = limits.max_wave_size = value(CU_DEVICE_WARP_SIZE);
    limits.max_shader_visible_samplers = 1u << 16;
    limits.max_entry_point_uniform_size = 4096;
    size_t total = 0;
    m_api.cuDeviceTotalMem(&total, m_cuda_device);
    limits.max_buffer_size = total;
}

void CudaDevice::close_backend() noexcept
{
    if (!m_context)
        return;
    {
        Lock lock(*this);
        Relaxed relaxed(m_api);
        // After a fault every call fails; the driver frees all with the process.
        try {
            begin_work(nullptr);
        } catch (const Error&) {
        }
        m_api.cuStreamSynchronize(nullptr);
        for (Garbage& garbage : m_garbage)
            garbage.action();
        m_garbage.clear();
        for (auto [address, size] : m_late_frees)
            free(address, nullptr);
        m_late_frees.clear();
        for (Mark& mark : m_marks)
            m_api.cuEventDestroy(mark.event);
        m_marks.clear();
        for (CUevent event : m_spare_events)
            m_api.cuEventDestroy(event);
        m_spare_events.clear();
        for (void* piece : m_staging)
            m_api.cuMemFreeHost(piece);
        m_staging.clear();
        m_anchor = nullptr;
        for (CUevent* event : {&m_own_event, &m_tail_event})
            if (*event)
                m_api.cuEventDestroy(std::exchange(*event, nullptr));
        if (m_null_memory)
            free(std::exchange(m_null_memory, 0), nullptr);
        if (m_pool) {
            m_api.cuStreamSynchronize(nullptr);
            CUmemoryPool pool = std::exchange(m_pool, nullptr);
            m_primary ? m_api.cuMemPoolTrimTo(pool, 0) : m_api.cuMemPoolDestroy(pool);
        }
        if (m_keep_context)
            m_kept_context = m_context;
        m_context = nullptr; // before the lock goes: other threads may wait for it
    }
    if (!m_keep_context && std::exchange(m_primary, false))
        m_api.cuDevicePrimaryCtxRelease(m_cuda_device);
}

// ------------------------------------------------------------------------------------------------------------ errors

void CudaDevice::raise(CUresult result, const std::string& what)
{
    if (is_sticky(result)) {
        if (m_fault.empty()) {
            std::vector<std::string> names;
            uint32_t known = std::min(m_recent_count, recent_size);
            for (uint32_t i = 0; i < known; ++i) {
                const std::string& name = m_labels[m_recent[(m_recent_count - 1 - i) % recent_size]];
                if (std::find(names.begin(), names.end(), name) == names.end())
                    names.push_back(name);
            }
            std::string list;
            for (const std::string& name : names)
                list += (list.empty() ? "'" : ", '") + name + "'";
            m_fault = cat("a kernel fault, ", m_api.text(result), ", in ",
                          names.empty() ? "work that another library submitted" : names.size() == 1 ? list : cat("one of the kernels launched last (newest first): ", list),
                          ". CUDA cannot be used any more in this process; restart it. Running with 'compute-sanitizer' shows the faulting access");
        }
        fail_runtime(m_fault);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t available = 0, total = 0;
        m_api.cuMemGetInfo(&available, &total);
        fail(ErrorKind::memory, "out of memory: CUDA failed to ", what, "; ", available, " of ", total, " bytes are free on ", m_info.adapter_name);
    }
    fail_runtime("CUDA failed to ", what, ": ", m_api.text(result));
}

void CudaDevice::ensure_usable()
{
    if (!m_fault.empty()) [[unlikely]]
        fail_runtime(m_fault);
    if (!m_context) [[unlikely]]
        fail_runtime("device is closed");
}

uint32_t CudaDevice::intern_label(const std::string& label)
{
    auto it = std::find(m_labels.begin(), m_labels.end(), label);
    if (it == m_labels.end())
        it = m_labels.insert(m_labels.end(), label);
    return uint32_t(it - m_labels.begin());
}

// ---------------------------------------------------------------------------------------------------------- the rest

std::array<NativeHandle, 3> CudaDevice::native_handles()
{
    return {NativeHandle{NativeHandleType::CUdevice, uint64_t(m_cuda_device)}, NativeHandle{NativeHandleType::CUcontext, uint64_t(m_context)}, {}};
}

void CudaDevice::set_context_current()
{
    ensure_usable();
    check(m_api.cuCtxSetCurrent(m_context), "make the context current");
}

std::vector<HeapReport> CudaDevice::heap_reports()
{
    Lock lock(*this);
    ensure_usable();
    HeapReport buffers{"device memory", 0, m_buffer_bytes, m_buffer_bytes, m_buffer_count};
    if (m_pool && m_api.cuMemPoolGetAttribute) {
        uint64_t reserved = 0; // by all devices of this process on the same GPU
        m_api.cuMemPoolGetAttribute(m_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
        buffers.num_pages = reserved >> 25; // the pool grows in 32 MB steps
        buffers.total_mem_usage = reserved;
    }
    uint64_t textures = uint64_t(m_texture_bytes), host = uint64_t(m_host_bytes);
    return {buffers, {"textures", uint64_t(m_texture_count), textures, textures, uint64_t(m_texture_count)},
            {"pinned host memory", uint64_t(m_host_count), host, host, uint64_t(m_host_count)}};
}

} // namespace spy
