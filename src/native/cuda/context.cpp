// The context of a CUDA device, and the errors of its driver calls.
#include "cuda/context.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace spy {

namespace {

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
    default: return false;
    }
}

} // namespace

AdapterInfo cuda_adapter_info(const CudaApi& api, CUdevice device)
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
            adapters.push_back(cuda_adapter_info(*api, device));
    return adapters;
}

// --------------------------------------------------------------------------------------------------- open and close

/// The number of the device that `desc` names.
int CudaContext::find_ordinal(const DeviceDesc& desc)
{
    int count = 0;
    check(m_api.cuDeviceGetCount(&count), "count the devices");
    if (count == 0)
        fail_runtime("CUDA is not available: the driver reports no device (CUDA_VISIBLE_DEVICES may hide them)");
    int ordinal = desc.adapter_index < 0 ? 0 : desc.adapter_index;
    for (const NativeHandle& handle : desc.existing_device_handles) {
        if (handle.type == NativeHandleType::CUcontext && handle.value) {
            m_context = reinterpret_cast<CUcontext>(handle.value);
        } else if (handle.type == NativeHandleType::CUdevice) {
            ordinal = int(handle.value);
        } else if (handle.type != NativeHandleType::undefined) {
            fail_value("existing_device_handles: a cuda device takes a CUdevice or a CUcontext handle");
        }
    }
    if (m_context) // says itself which device it is of
        return ordinal;
    if (desc.has_adapter_luid && desc.adapter_index < 0) {
        std::vector<AdapterInfo> adapters = enumerate_cuda();
        auto it = std::find_if(adapters.begin(), adapters.end(),
                               [&](const AdapterInfo& a) { return a.luid == desc.adapter_luid; });
        if (it == adapters.end())
            fail_value(
                "adapter_luid: no CUDA adapter has this LUID; Device.enumerate_adapters(DeviceType.cuda) lists them");
        ordinal = int(it - adapters.begin());
    }
    if (ordinal < 0 || ordinal >= count)
        fail(ErrorKind::index, "CUDA device ", ordinal, " does not exist: there are ", count,
             "; 'adapter_index' counts from 0 (Device.enumerate_adapters(DeviceType.cuda) lists them)");
    return ordinal;
}

CudaContext::CudaContext() : m_api(CudaApi::get()) { }

CudaContext::~CudaContext()
{
    if (m_kept && m_primary)
        m_api.cuDevicePrimaryCtxRelease(m_device);
}

void CudaContext::open(const DeviceDesc& desc)
{
    const int ordinal = find_ordinal(desc);
    if (m_context) {
        Lock lock(*this);
        check(m_api.cuCtxGetDevice(&m_device), "use the given CUcontext");
        read_attributes();
        return;
    }
    check(m_api.cuDeviceGet(&m_device, ordinal), "get device ", ordinal);
    check(m_api.cuDevicePrimaryCtxRetain(&m_context, m_device), "open the primary context of device ", ordinal);
    m_primary = true;
    keep_primary_context(m_api, m_device);
    read_attributes();
}

void CudaContext::read_attributes()
{
    m_compute = attribute(CU_DEVICE_COMPUTE_MAJOR) * 10 + attribute(CU_DEVICE_COMPUTE_MINOR);
    m_arch = cat("sm_", m_compute);
    m_stream_values = m_api.cuStreamWriteValue64 && m_api.cuStreamWaitValue64 &&
        attribute(CU_DEVICE_64_BIT_STREAM_MEM_OPS);
}

void CudaContext::forget()
{
    if (m_keep)
        m_kept = m_context;
    m_context = nullptr; // before the lock goes: other threads may wait for it
}

void CudaContext::release() noexcept
{
    if (!m_keep && std::exchange(m_primary, false))
        m_api.cuDevicePrimaryCtxRelease(m_device);
}

int CudaContext::attribute(CUdevice_attribute which) const
{
    int value = 0;
    return m_api.cuDeviceGetAttribute(&value, which, m_device) == CUDA_SUCCESS ? value : 0;
}

void CudaContext::set_current()
{
    ensure_usable();
    check(m_api.cuCtxSetCurrent(m_context), "make the context current");
}

void CudaContext::free_after_close(CUdeviceptr address, void* host) noexcept
{
    if (!m_kept || m_api.cuCtxPushCurrent(m_kept) != CUDA_SUCCESS)
        return;
    host ? m_api.cuMemFreeHost(host) : m_api.cuMemFree(address);
    leave();
}

// ------------------------------------------------------------------------------------------------------------ errors

void CudaContext::raise(CUresult result, const std::string& what)
{
    if (is_sticky(result)) {
        if (m_fault.empty()) {
            const std::vector<std::string> names = m_labels.newest();
            std::string list;
            for (const std::string& name : names)
                list += (list.empty() ? "'" : ", '") + name + "'";
            m_fault = cat("a kernel fault, ", m_api.text(result), ", in ",
                          names.empty()           ? "work that another library submitted"
                              : names.size() == 1 ? list
                                                  : cat("one of the kernels launched last (newest first): ", list),
                          ". CUDA cannot be used any more in this process; restart it. Running with "
                          "'compute-sanitizer' shows the faulting access");
        }
        fail_runtime(m_fault);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t available = 0, total = 0;
        m_api.cuMemGetInfo(&available, &total);
        fail(ErrorKind::memory, "out of memory: CUDA failed to ", what, "; ", available, " of ", total,
             " bytes are free on ", cuda_adapter_info(m_api, m_device).name);
    }
    fail_runtime("CUDA failed to ", what, ": ", m_api.text(result));
}

void CudaContext::ensure_usable()
{
    if (!m_fault.empty()) [[unlikely]]
        fail_runtime(m_fault);
    if (!m_context) [[unlikely]]
        fail_runtime("device is closed");
}

uint32_t CudaLabels::intern(const std::string& label)
{
    auto it = std::find(m_all.begin(), m_all.end(), label);
    if (it == m_all.end())
        it = m_all.insert(m_all.end(), label);
    return uint32_t(it - m_all.begin());
}

std::vector<std::string> CudaLabels::newest() const
{
    std::vector<std::string> names;
    const uint32_t known = std::min(m_recent_count, uint32_t(m_recent.size()));
    for (uint32_t i = 0; i < known; ++i) {
        const std::string& name = m_all[m_recent[(m_recent_count - 1 - i) % m_recent.size()]];
        if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    }
    return names;
}

} // namespace spy
