// Machine code to kernels.
#include "cuda/pipeline.h"
#include "cuda/compile.h"
#include "cuda/device.h"

#include "core/align.h"

#include <algorithm>
#include <utility>

namespace spy {

CudaKernel::CudaKernel(ref<CudaDevice> device, const KernelDesc& desc) : Kernel(device, desc.layout, desc.label)
{
    CudaContext::Lock lock(device->context());
    device->context().ensure_usable();
    CudaContext::Relaxed relaxed(device->context().api());
    const CudaApi& api = device->context().api();
    char log[4096] = {};
    CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
    std::string code(desc.code); // PTX must end with a zero byte
    device->context().check(api.cuModuleLoadDataEx(&m_module, code.c_str(), 2, keys, values), "load the code of '",
                            m_label, "' for ", device->context().arch(), " (driver ", api.driver_version / 1000, ".",
                            api.driver_version % 1000 / 10, ")", log[0] ? " " : "", log);
    try {
        CUresult result = api.cuModuleGetFunction(&m_function, m_module, m_layout->entry_point().name.c_str());
        device->context().check(result, "find the entry point '", m_layout->entry_point().name, "' of '", m_label, "'");
        find_globals();
        check_parameters();
        read_limits();
        read_shared_memory();
        find_scopes();
        find_slots();
        m_label_index = device->context().labels().intern(m_label);
    } catch (...) {
        api.cuModuleUnload(m_module);
        throw;
    }
}

void CudaKernel::release() noexcept
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    if (!m_module || !device.context().alive())
        return;
    CudaContext::Lock lock(device.context());
    CudaContext::Relaxed relaxed(device.context().api());
    device.queue().defer(
        [api = &device.context().api(), module = std::exchange(m_module, nullptr)] { api->cuModuleUnload(module); });
    m_function = nullptr;
}

void CudaKernel::find_globals()
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    CUresult result = device.context().api().cuModuleGetGlobal(&m_globals, &m_global_bytes, m_module,
                                                               "SLANG_globalParams");
    if (result != CUDA_SUCCESS) { // the kernel uses no global parameter
        m_globals = 0;
        m_global_bytes = 0;
    }
}

/// The bytes that the compiler reserved must be those of the layout: else the kernel would read wrong arguments.
void CudaKernel::check_parameters()
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    std::vector<const FieldLayout*> fields;
    if (const TypeLayout* own = m_layout->entry_point().parameters.get())
        for (const FieldLayout& field : own->fields)
            if (field.type && (field.type->size || field.type->slot_count || field.type->scope_count))
                fields.push_back(&field); // system values and empty structs are no parameters of the code
    // The driver wants the end of the last parameter, without the padding of a struct.
    for (const FieldLayout* field : fields)
        m_parameter_bytes = std::max<size_t>(m_parameter_bytes, field->offset + field->type->size);
    for (const SlotLayout& slot : m_layout->slots)
        if (slot.scope == 1)
            m_parameter_bytes = std::max<size_t>(m_parameter_bytes, slot.offset + slot.size);
    for (const ScopeLayout& scope : m_layout->scopes)
        if (scope.parent == 1)
            m_parameter_bytes = std::max<size_t>(m_parameter_bytes, scope.parent_offset + sizeof(CUdeviceptr));
    if (!device.context().api().cuFuncGetParamInfo)
        return;
    size_t end = 0, count = 0;
    std::vector<size_t> offsets;
    for (size_t offset = 0, size = 0;
         device.context().api().cuFuncGetParamInfo(m_function, count, &offset, &size) == CUDA_SUCCESS; ++count) {
        end = std::max(end, offset + size);
        offsets.push_back(offset);
    }
    if (count == fields.size())
        for (size_t i = 0; i < count; ++i)
            if (offsets[i] != fields[i]->offset)
                fail_runtime("internal error: parameter '", fields[i]->name, "' of '", m_label, "' lies at byte ",
                             offsets[i], " in the CUDA code but at ", fields[i]->offset, " in its reflection");
    if (count && end > m_parameter_bytes)
        fail_runtime("internal error: '", m_label, "' takes ", end, " bytes of parameters in the CUDA code but ",
                     m_parameter_bytes, " in its reflection");
    m_parameter_bytes = end; // an unused parameter block still counts, a parameterless kernel takes nothing
}

/// Scratch holds the bytes of every scope while a launch is put together; nested blocks stand together at its end.
void CudaKernel::find_scopes()
{
    constexpr size_t alignment = 256;
    const auto& scopes = m_layout->scopes;
    m_scratch_offset.resize(std::max<size_t>(scopes.size(), 2));
    size_t at = 0;
    auto place = [&](size_t scope, size_t size) {
        m_scratch_offset[scope] = at;
        at += round_up(size, alignment);
    };
    uint64_t global_size = scopes.empty() ? 0 : scopes[0].size;
    place(1, std::max<size_t>(m_parameter_bytes, scopes.size() > 1 ? scopes[1].size : 0));
    place(0, std::max<size_t>(global_size, m_global_bytes));
    m_block_begin = at;
    for (size_t scope = 2; scope < scopes.size(); ++scope)
        place(scope, scopes[scope].size);
    m_block_bytes = at - m_block_begin;
    m_scratch.resize(at + 16);
    m_globals_now.resize(m_global_bytes);
    // Code with groupshared memory alone may have an empty global block, which nothing is written to.
    m_plain = m_layout->slots.empty() && !(m_globals && global_size) && !m_block_bytes;
}

/// For kernels whose group size is chosen at each launch.
void CudaKernel::read_limits()
{
    const CudaApi& api = static_cast<CudaDevice*>(m_device.get())->context().api();
    int most = 0;
    if (api.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, m_function) == CUDA_SUCCESS && most > 0)
        m_max_group_threads = uint32_t(most);
}

/// Code says by the size of this symbol how many KiB its groups share, beyond what it declares itself.
void CudaKernel::read_shared_memory()
{
    CudaContext& context = static_cast<CudaDevice*>(m_device.get())->context();
    CUdeviceptr mark = 0;
    size_t kib = 0;
    if (context.api().cuModuleGetGlobal(&mark, &kib, m_module, "_spy_shared_kib") != CUDA_SUCCESS)
        return;
    m_shared_bytes = uint32_t(kib * 1024);
    context.check(context.api().cuFuncSetAttribute(m_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   int(m_shared_bytes)),
                  "give '", m_label, "' ", m_shared_bytes, " bytes of shared memory");
}

bool CudaKernel::converts(const std::string& path) const
{
    CUdeviceptr mark = 0;
    size_t size = 0;
    const std::string symbol = cuda_conversion_mark(path);
    return static_cast<CudaDevice*>(m_device.get())
               ->context()
               .api()
               .cuModuleGetGlobal(&mark, &size, m_module, symbol.c_str()) == CUDA_SUCCESS;
}

void CudaKernel::find_slots()
{
    const auto& slots = m_layout->slots;
    for (const SlotLayout& slot : slots)
        m_slots.push_back(
            {slot.kind, slot.writable, false, slot.scope, -1, slot.offset, slot.size, slot.element_stride});
    // CUDA bakes the sampler into the texture object, and the code does not tell which goes with which: take the next
    // sampler declared after the texture in its scope, else the last before it, else any of the kernel.
    for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].kind != SlotKind::texture)
            continue;
        int32_t best = -1, score = 0;
        for (size_t j = 0; j < slots.size(); ++j) {
            if (slots[j].kind != SlotKind::sampler)
                continue;
            int32_t value = slots[j].scope != slots[i].scope ? 1 : j < i ? 2 : 3;
            if (value > score || (value == score && value == 2)) {
                best = int32_t(j);
                score = value;
            }
        }
        m_slots[i].sampler = best;
        m_slots[i].converts = slots[i].writable && converts(slots[i].path);
    }
}

} // namespace spy
