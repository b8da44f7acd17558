// Launches; their resources: handles into the argument bytes, texture parts that CUDA cannot address as copies.
#include "cuda/launch.h"
#include "cuda/device.h"
#include "cuda/copy.h"
#include "cuda/fence.h"
#include "cuda/ranges.h"
#include "device/profile.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

CudaLauncher::CudaLauncher(CudaDevice& device)
    : m_device(device),
      m_context(device.context()),
      m_queue(device.queue()),
      m_memory(device.memory())
{
}

void CudaLauncher::launch(const LaunchDesc& desc)
{
    CudaContext::Lock lock(m_context);
    m_context.ensure_usable();
    CUstream stream = cuda_stream_of(desc.stream);
    CudaQueue::Work work(m_queue, stream);
    if (!work.tracked) // recorded into a graph: it does not run now
        return launch_on(desc, stream, false);
    timed(
        m_device, desc,
        [&](const command::WriteTimestamp& c) { static_cast<CudaQueryPool*>(c.pool.get())->write(c.index, stream); },
        [&] { launch_on(desc, stream, true); });
}

void CudaLauncher::launch_on(const LaunchDesc& desc, CUstream stream, bool tracked)
{
    CudaKernel& kernel = *static_cast<CudaKernel*>(desc.kernel);
    if (!desc.group_size[0]) {
        run(kernel, desc.group_count, desc.arguments, stream, tracked);
        return;
    }
    if (!kernel.m_function || !kernel.m_plain)
        fail_runtime("'", kernel.m_label,
                     "' was released with its device, or has parameters outside of its entry point");
    const uint32_t threads = desc.group_size[0] * desc.group_size[1] * desc.group_size[2];
    if (threads > kernel.m_max_group_threads)
        fail_value("'", kernel.m_label, "': a block of ", threads, " threads; on this device the kernel can have ",
                   kernel.m_max_group_threads, ", because of the registers that it uses; make the block smaller");
    if (desc.shared_memory > 48 * 1024)
        m_context.check(m_context.api().cuFuncSetAttribute(kernel.m_function,
                                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                           int(desc.shared_memory)),
                        "give '", kernel.m_label, "' ", desc.shared_memory, " bytes of shared memory");
    const std::span<const uint8_t> bytes = desc.arguments.scopes.size() > 1 ? desc.arguments.scopes[1]
                                                                            : std::span<const uint8_t>();
    if (bytes.size() < kernel.m_parameter_bytes)
        fail_runtime("'", kernel.m_label, "' takes ", kernel.m_parameter_bytes, " bytes of parameters, got ",
                     bytes.size());
    start(kernel, desc.group_count, const_cast<uint8_t*>(bytes.data()), stream, desc.group_size.data(),
          desc.shared_memory);
}

void CudaLauncher::start(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, void* parameters, CUstream stream,
                         const uint32_t* size, uint32_t shared_memory)
{
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &kernel.m_parameter_bytes,
                     CU_LAUNCH_PARAM_END};
    if (!size)
        size = kernel.m_layout->group_size;
    m_context.labels().note(kernel.m_label_index);
    const CudaRange range(kernel.m_label);
    CUresult result = m_context.api().cuLaunchKernel(kernel.m_function, groups[0], groups[1], groups[2], size[0],
                                                     size[1], size[2], shared_memory + kernel.m_shared_bytes, stream,
                                                     nullptr, kernel.m_parameter_bytes ? extra : nullptr);
    if (result != CUDA_SUCCESS) [[unlikely]] {
        int registers = 0, threads = 0;
        m_context.api().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.m_function);
        m_context.api().cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.m_function);
        m_context.raise(result,
                        cat("launch '", kernel.m_label, "' with ", groups[0], " x ", groups[1], " x ", groups[2],
                            " groups of ", size[0], " x ", size[1], " x ", size[2], " threads (the kernel uses ",
                            registers, " registers and allows ", threads, " threads in a group)"));
    }
}

void CudaLauncher::run(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments,
                       CUstream stream, bool tracked)
{
    if (!kernel.m_function)
        fail_runtime("'", kernel.m_label, "' was released with its device");
    if (!groups[0] || !groups[1] || !groups[2])
        return;
    if (!kernel.m_plain) {
        run_bound(kernel, groups, arguments, stream, tracked);
        return;
    }
    std::span<const uint8_t> bytes = arguments.scopes.size() > 1 ? arguments.scopes[1] : std::span<const uint8_t>();
    if (bytes.size() >= kernel.m_parameter_bytes) [[likely]] {
        start(kernel, groups, const_cast<uint8_t*>(bytes.data()), stream); // the driver copies them before it returns
        return;
    }
    if (!bytes.empty())
        std::memcpy(kernel.m_scratch.data(), bytes.data(), bytes.size());
    std::memset(kernel.m_scratch.data() + bytes.size(), 0, kernel.m_parameter_bytes - bytes.size());
    start(kernel, groups, kernel.m_scratch.data(), stream);
}

void CudaLauncher::run_bound(CudaKernel& kernel, const std::array<uint32_t, 3>& groups, const Arguments& arguments,
                             CUstream stream, bool tracked)
{
    uint8_t* scratch = kernel.m_scratch.data();
    const auto& scopes = kernel.m_layout->scopes;
    std::memset(scratch, 0, kernel.m_scratch.size());
    for (size_t scope = 0; scope < scopes.size() && scope < arguments.scopes.size(); ++scope)
        if (!arguments.scopes[scope].empty())
            std::memcpy(scratch + kernel.m_scratch_offset[scope], arguments.scopes[scope].data(),
                        std::min<size_t>(arguments.scopes[scope].size(), scopes[scope].size));
    std::vector<Shadow> shadows;
    for (size_t slot = 0; slot < kernel.m_slots.size(); ++slot)
        bind_slot(kernel, slot, arguments, stream, shadows);

    if (!tracked && (kernel.m_block_bytes || kernel.m_global_bytes || !shadows.empty()))
        fail_runtime("'", kernel.m_label,
                     "' cannot be recorded into a CUDA graph: it has parameters outside of its entry point (globals, "
                     "ConstantBuffer, "
                     "ParameterBlock) or texture views that are copied; pass them as entry point parameters");
    CudaTemporary block{m_memory, stream};
    if (kernel.m_block_bytes) {
        block.address = m_memory.allocate(kernel.m_block_bytes, stream, "parameter blocks");
        for (size_t scope = 2; scope < scopes.size(); ++scope) {
            if (scopes[scope].parent < 0)
                continue;
            CUdeviceptr address = block.address + (kernel.m_scratch_offset[scope] - kernel.m_block_begin);
            std::memcpy(scratch + kernel.m_scratch_offset[size_t(scopes[scope].parent)] + scopes[scope].parent_offset,
                        &address, sizeof(address));
        }
        // Pageable memory: the driver takes a copy before it returns.
        m_context.check(m_context.api().cuMemcpyHtoDAsync(block.address, scratch + kernel.m_block_begin,
                                                          kernel.m_block_bytes, stream),
                        "upload the parameter blocks of '", kernel.m_label, "'");
    }
    if (kernel.m_globals) {
        const uint8_t* globals = scratch + kernel.m_scratch_offset[0];
        if (!kernel.m_globals_uploaded || std::memcmp(globals, kernel.m_globals_now.data(), kernel.m_global_bytes)) {
            kernel.m_globals_uploaded = false;
            m_context.check(m_context.api().cuMemcpyHtoDAsync(kernel.m_globals, globals, kernel.m_global_bytes, stream),
                            "upload the global parameters of '", kernel.m_label, "'");
            std::memcpy(kernel.m_globals_now.data(), globals, kernel.m_global_bytes);
            kernel.m_globals_uploaded = true;
        }
    }
    start(kernel, groups, scratch + kernel.m_scratch_offset[1], stream);
    for (const Shadow& shadow : shadows)
        if (shadow.write_back)
            copy_shadow(shadow, true, stream);
    for (const Shadow& shadow : shadows)
        m_queue.retire(shadow.copy); // freed once this work counts as submitted
}

void CudaLauncher::bind_slot(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream,
                             std::vector<Shadow>& shadows)
{
    const CudaSlot& slot = kernel.m_slots[index];
    Object* object = index < arguments.slots.size() ? arguments.slots[index].get() : nullptr;
    const bool is_buffer = slot.kind == SlotKind::structured_buffer || slot.kind == SlotKind::byte_address_buffer;
    if (slot.kind == SlotKind::sampler || (!object && !is_buffer))
        return; // null stays zero; samplers go into texture objects
    uint64_t words[2] = {};
    const std::string& path = kernel.m_layout->slots[index].path;
    switch (slot.kind) {
    case SlotKind::structured_buffer:
    case SlotKind::byte_address_buffer: {
        if (!object) {
            words[0] = m_memory.null_memory(slot.writable, stream);
            break;
        }
        auto* buffer = static_cast<CudaBuffer*>(object);
        words[0] = buffer->device_address();
        words[1] = slot.kind == SlotKind::structured_buffer && slot.element_stride
            ? buffer->desc().size / slot.element_stride
            : buffer->desc().size;
        break;
    }
    case SlotKind::texture:
    case SlotKind::combined_texture_sampler: words[0] = bind_texture(kernel, index, arguments, stream, shadows); break;
    case SlotKind::texel_buffer:
        if (slot.writable)
            fail(ErrorKind::not_implemented, "'", kernel.m_label, "': CUDA has no writable RWBuffer<T> ('", path,
                 "'); use RWStructuredBuffer<T>");
        words[0] = static_cast<CudaBuffer*>(object)->texel_object();
        break;
    default:
        fail(ErrorKind::not_implemented, "'", kernel.m_label, "': parameter '", path,
             "' is an acceleration structure, which the cuda device does not have; use a vulkan device, or the Slang "
             "module slangpy.rays, which traces rays on every device");
    }
    std::memcpy(kernel.m_scratch.data() + kernel.m_scratch_offset[slot.scope] + slot.offset, words,
                std::min<size_t>(slot.size ? slot.size : 8, sizeof(words)));
}

namespace {

/// What a kernel expects of a texture: dimensions, layers, cube.
struct TextureKind {
    int dimensions;
    bool array, cube;
    bool operator==(const TextureKind&) const = default;
};

TextureKind kind_of(TextureType type)
{
    switch (type) {
    case TextureType::texture_1d: return {1, false, false};
    case TextureType::texture_1d_array: return {1, true, false};
    case TextureType::texture_2d_array:
    case TextureType::texture_2d_ms_array: return {2, true, false};
    case TextureType::texture_3d: return {3, false, false};
    case TextureType::texture_cube: return {2, false, true};
    case TextureType::texture_cube_array: return {2, true, true};
    default: return {2, false, false};
    }
}

TextureKind kind_of(ResourceShape shape, TextureKind otherwise)
{
    switch (shape) {
    case ResourceShape::texture_1d: return {1, false, false};
    case ResourceShape::texture_2d: return {2, false, false};
    case ResourceShape::texture_3d: return {3, false, false};
    case ResourceShape::texture_cube: return {2, false, true};
    case ResourceShape::texture_1d_array: return {1, true, false};
    case ResourceShape::texture_2d_array: return {2, true, false};
    case ResourceShape::texture_cube_array: return {2, true, true};
    default: return otherwise;
    }
}

TextureType type_of(TextureKind kind)
{
    if (kind.cube)
        return kind.array ? TextureType::texture_cube_array : TextureType::texture_cube;
    if (kind.dimensions == 1)
        return kind.array ? TextureType::texture_1d_array : TextureType::texture_1d;
    if (kind.dimensions == 3)
        return TextureType::texture_3d;
    return kind.array ? TextureType::texture_2d_array : TextureType::texture_2d;
}

/// Surfaces hold bare bits. Slang's plain stores copy them, so texels must be what the format stores; its formatted
/// stores (sust.p) take float, uint or int for formats of these kinds, but cannot know that integers are normalised.
void check_stored_texels(const SlotLayout& layout, Format format, bool converting, const std::string& label)
{
    if (layout.scalar == ScalarType::none)
        return;
    const FormatInfo& info = format_info(format);
    const ScalarInfo& scalar = scalar_info(layout.scalar);
    const ScalarType stored = host_scalar(format);
    const bool same_bits = layout.channels == info.channel_count && stored != ScalarType::none &&
        scalar.size == scalar_info(stored).size;
    if (same_bits && (layout.scalar == stored || (scalar.is_integer && scalar_info(stored).is_integer)))
        return;
    const bool same_kind = info.type == FormatType::float_ ? scalar.is_float
        : info.type == FormatType::uint                    ? scalar.is_integer && !scalar.is_signed
        : info.type == FormatType::sint                    ? scalar.is_integer && scalar.is_signed
                                                           : false;
    if (converting && same_kind)
        return;
    const std::string texels = cat(layout.channels, " x ", scalar.slang_name);
    if (info.is_normalized_format() && scalar.is_float)
        fail_value("'", label, "': parameter '", layout.path, "' stores texels of ", texels,
                   ", and cuda does not convert them to ", format_name(format),
                   ": use a float format, or write the texels of the texture as an out parameter or _result of a call, "
                   "which converts");
    fail_value("'", label, "': parameter '", layout.path, "' stores texels of ", texels,
               ", and cuda does not convert them to ", format_name(format), ": use a format with these texels",
               same_kind ? ", or mark the parameter in Slang, as [format(\"rgba16f\")]" : "");
}

} // namespace

uint64_t CudaLauncher::bind_texture(CudaKernel& kernel, size_t index, const Arguments& arguments, CUstream stream,
                                    std::vector<Shadow>& shadows)
{
    const CudaSlot& slot = kernel.m_slots[index];
    const SlotLayout& layout = kernel.m_layout->slots[index];
    Object* object = arguments.slots[index].get();
    auto* view = dynamic_cast<CudaTextureView*>(object);
    auto* whole = view ? static_cast<CudaTexture*>(view->texture()) : dynamic_cast<CudaTexture*>(object);
    if (!whole)
        fail_value("'", kernel.m_label, "': parameter '", layout.path,
                   "' takes a texture or a texture view of this device");
    CudaArray* texture = &whole->array();
    const TextureDesc& desc = texture->desc();
    SubresourceRange range = view ? view->desc().range : texture->full_range();
    Format format = view && view->desc().format != Format::undefined ? view->desc().format : desc.format;
    TextureKind have = kind_of(desc.type), want = kind_of(layout.shape, have);
    if (have.dimensions != want.dimensions)
        fail_value("'", kernel.m_label, "': parameter '", layout.path, "' takes a ", want.dimensions,
                   "-D texture, got a ", have.dimensions, "-D one");

    if (slot.writable)
        check_stored_texels(layout, format, slot.converts, kernel.m_label);

    // CUDA cannot address a cube's faces or single layers under another type, nor begin a surface at a layer.
    bool all_layers = range.layer == 0 && range.layer_count == desc.layer_count();
    bool needs_copy = want != have || (!all_layers && (slot.writable || have.cube));
    if (needs_copy) {
        uint32_t layers = want.cube ? (want.array ? range.layer_count / 6 * 6 : 6) : want.array ? range.layer_count : 1;
        if (layers == 0 || layers > range.layer_count)
            fail_value("'", kernel.m_label, "': parameter '", layout.path, "' needs ",
                       want.cube ? "at least 6 layers" : "a layer", ", the view has ", range.layer_count);
        range.layer_count = layers;
        if (!view || !view->shadow || type_of(want) != view->shadow->desc().type ||
            layers != view->shadow->desc().layer_count()) {
            TextureDesc part = desc;
            part.type = type_of(want);
            part.width = std::max(1u, desc.width >> range.mip);
            part.height = have.dimensions == 1 ? 1 : std::max(1u, desc.height >> range.mip);
            part.array_length = want.cube ? layers / 6 : layers;
            part.mip_count = range.mip_count;
            part.usage = part.usage | TextureUsage::unordered_access;
            auto copy = std::make_shared<CudaArray>(m_device, part);
            if (view)
                view->shadow = copy;
            shadows.push_back({std::move(copy), texture, range, slot.writable});
        } else {
            shadows.push_back({view->shadow, texture, range, slot.writable});
        }
        copy_shadow(shadows.back(), false, stream);
        texture = shadows.back().copy.get();
        range = texture->full_range();
    }
    if (slot.writable)
        return texture->surface_object(range.mip);
    const bool separate = slot.sampler >= 0 && size_t(slot.sampler) < arguments.slots.size();
    Object* sampler = separate ? arguments.slots[size_t(slot.sampler)].get() : nullptr;
    if (!sampler)
        sampler = sampler_of(object);
    static const CUDA_TEXTURE_DESC default_sampling = CudaSampler::convert(SamplerDesc{});
    return texture->texture_object(range, format,
                                   sampler ? static_cast<CudaSampler*>(sampler)->texture_desc() : default_sampling);
}

void CudaLauncher::copy_shadow(const Shadow& shadow, bool back, CUstream stream)
{
    const SubresourceRange& range = shadow.range;
    for (uint32_t mip = 0; mip < range.mip_count; ++mip) {
        SubresourceLayout layout = subresource_layout(shadow.copy->desc(), mip);
        for (uint32_t layer = 0; layer < range.layer_count; ++layer) {
            CUDA_MEMCPY3D copy = copy_extent(uint64_t(layout.width) * shadow.copy->texel_bytes(), layout.height,
                                             layout.depth);
            const CudaArray& from = back ? *shadow.copy : *shadow.whole;
            const CudaArray& to = back ? *shadow.whole : *shadow.copy;
            uint32_t outer_layer = range.layer + layer, outer_mip = range.mip + mip;
            set_source(copy, from, back ? layer : outer_layer, back ? mip : outer_mip, {});
            set_destination(copy, to, back ? outer_layer : layer, back ? outer_mip : mip, {});
            copy_part(m_context, copy, "copy a part of a texture for a view", stream);
        }
    }
}

} // namespace spy
