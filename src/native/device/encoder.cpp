#include "device/encoder.h"

#include "core/error.h"
#include "device/resource.h"

#include <algorithm>
#include <utility>

namespace spy {

namespace {

std::atomic<uint64_t> next_recording_id{1};

void check_query_range(const QueryPool* pool, uint32_t index, uint32_t count, const char* call)
{
    if (index >= pool->count())
        fail(ErrorKind::index, call, ": 'index' out of range (", index, " of ", pool->count(), " queries)");
    if (count > pool->count() - index)
        fail(ErrorKind::index, call, ": 'count' out of range (", index, " + ", count, " of ", pool->count(),
             " queries)");
}

} // namespace

CommandEncoder::CommandEncoder(ref<Device> device)
    : DeviceObject(std::move(device)),
      m_recording(std::make_shared<Recording>()),
      m_recording_id(next_recording_id++)
{
    m_recording->id = m_recording_id;
    m_recording->device = m_device.get();
}

void CommandEncoder::check_recording(const char* call, bool from_pass) const
{
    if (m_finished)
        fail_runtime("Command encoder is finished: ", call, " came after finish(); create a new command encoder");
    check_open(m_device.get());
    if (m_pass_open && !from_pass)
        fail_runtime(call, ": a ", m_pass_open, " pass is open on this command encoder; call end() on it first");
}

ref<ComputePassEncoder> CommandEncoder::begin_compute_pass()
{
    check_recording("begin_compute_pass");
    m_pass_open = "compute";
    return new ComputePassEncoder(this);
}

void CommandEncoder::copy_buffer(ref<Buffer> dst, uint64_t dst_offset, ref<Buffer> src, uint64_t src_offset,
                                 uint64_t size)
{
    check_recording("copy_buffer");
    check_same_device(m_device.get(), dst.get(), "copy_buffer 'dst'");
    check_same_device(m_device.get(), src.get(), "copy_buffer 'src'");
    check_buffer_range(dst.get(), dst_offset, size, "copy_buffer 'dst'");
    check_buffer_range(src.get(), src_offset, size, "copy_buffer 'src'");
    if (dst.get() == src.get() && dst_offset < src_offset + size && src_offset < dst_offset + size)
        fail_value("copy_buffer: source and destination overlap (", size, " bytes from ", src_offset, " to ",
                   dst_offset, " of the same buffer)");
    dst->set_content(dst_offset == src_offset ? src->content() : ScalarType::none);
    if (size)
        add(command::CopyBuffer{std::move(dst), dst_offset, std::move(src), src_offset, size});
}

void CommandEncoder::fill_buffer(ref<Buffer> buffer, uint32_t value, BufferRange range, const char* call)
{
    check_recording(call);
    check_same_device(m_device.get(), buffer.get(), call);
    if (range.size == ~0ull)
        range.size = range.offset <= buffer->desc().size ? buffer->desc().size - range.offset : 0;
    check_buffer_range(buffer.get(), range.offset, range.size, call);
    if (range.offset % 4)
        fail_value(call, ": the offset (", range.offset, ") must be a multiple of 4");
    buffer->set_content(ScalarType::none);
    // GPUs fill whole words; up to three bytes at the end are uploaded.
    const uint64_t whole = range.size / 4 * 4;
    if (whole)
        add(command::FillBuffer{buffer, range.offset, whole, value});
    if (const uint64_t rest = range.size - whole) {
        std::vector<uint8_t> bytes(rest);
        for (uint64_t i = 0; i < rest; ++i)
            bytes[i] = uint8_t(value >> (8 * i));
        add(command::UploadBuffer{std::move(buffer), range.offset + whole, std::move(bytes)});
    }
}

void CommandEncoder::upload_buffer_data(ref<Buffer> buffer, uint64_t offset, std::span<const uint8_t> data)
{
    check_recording("upload_buffer_data");
    check_same_device(m_device.get(), buffer.get(), "upload_buffer_data 'buffer'");
    const uint64_t total = buffer->desc().size;
    if (offset > total || data.size() > total - offset)
        fail(ErrorKind::index, "upload_buffer_data: upload would exceed the size of the destination buffer (offset ",
             offset, " + ", data.size(), " bytes into ", total, ")");
    buffer->set_content(ScalarType::none);
    if (!data.empty())
        add(command::UploadBuffer{std::move(buffer), offset, {data.begin(), data.end()}});
}

void CommandEncoder::write_timestamp(ref<QueryPool> pool, uint32_t index, bool from_pass)
{
    check_recording("write_timestamp", from_pass);
    check_query(m_device.get(), pool.get(), index);
    add(command::WriteTimestamp{std::move(pool), index});
}

void CommandEncoder::resolve_query(ref<QueryPool> pool, uint32_t index, uint32_t count, ref<Buffer> buffer,
                                   uint64_t offset)
{
    check_recording("resolve_query");
    check_same_device(m_device.get(), pool.get(), "resolve_query 'query_pool'");
    check_same_device(m_device.get(), buffer.get(), "resolve_query 'buffer'");
    check_query_range(pool.get(), index, count, "resolve_query");
    check_buffer_range(buffer.get(), offset, uint64_t(count) * 8, "resolve_query 'buffer'");
    if (offset % 8)
        fail_value("resolve_query: the offset (", offset, ") must be a multiple of 8");
    buffer->set_content(ScalarType::none);
    if (count)
        add(command::ResolveQuery{std::move(pool), index, count, std::move(buffer), offset});
}

void CommandEncoder::global_barrier()
{
    check_recording("global_barrier");
    add(command::Barrier{});
}

void CommandEncoder::debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color,
                                  bool from_pass)
{
    using Kind = command::DebugMarker::Kind;
    check_recording("debug marker", from_pass);
    if (kind == Kind::pop && m_debug_depth == 0)
        fail_runtime("pop_debug_group: no debug group is open");
    m_debug_depth += kind == Kind::push ? 1 : kind == Kind::pop ? -1 : 0;
    add(command::DebugMarker{kind, std::move(name), color});
}

void CommandEncoder::execute_callback(std::function<void(NativeHandle)> function)
{
    check_recording("execute_callback");
    add(command::Callback{std::move(function)});
}

ref<CommandBuffer> CommandEncoder::finish()
{
    check_recording("finish");
    if (m_debug_depth)
        fail_runtime("finish: ", m_debug_depth, " debug group(s) were not popped; call pop_debug_group() for each");
    m_finished = true;
    return new CommandBuffer(m_device, std::exchange(m_commands, {}), std::move(m_recording), std::move(m_structures));
}

// --- compute pass

void check_query(const Device* device, const QueryPool* pool, uint32_t index)
{
    check_same_device(device, pool, "write_timestamp 'query_pool'");
    if (pool->type() != QueryType::timestamp)
        fail_value("write_timestamp 'query_pool': the pool was not created with QueryType.timestamp");
    check_query_range(pool, index, 1, "write_timestamp");
}

void bind_print_buffer(Device* device, int print_slot, std::vector<ref<Object>>& slots)
{
    if (print_slot < 0)
        return;
    const auto slot = size_t(print_slot);
    if (slots.size() <= slot)
        slots.resize(slot + 1);
    slots[slot] = device->print_buffer();
}

std::array<uint64_t, 3> groups_for_threads(const ProgramLayout& layout, std::array<uint64_t, 3> thread_count)
{
    std::array<uint64_t, 3> groups;
    for (size_t i = 0; i < 3; ++i) {
        const uint64_t size = std::max(1u, layout.group_size[i]);
        groups[i] = thread_count[i] / size + (thread_count[i] % size ? 1 : 0);
    }
    return groups;
}

void check_group_count(const Device* device, const Kernel& kernel, std::array<uint64_t, 3> group_count)
{
    const auto& limit = device->info().limits.max_compute_dispatch_thread_groups;
    for (size_t i = 0; i < 3; ++i) {
        const uint64_t most = limit[i] ? limit[i] : 0xffffffffu;
        if (group_count[i] > most)
            fail_value("dispatch of ", kernel.label(), ": ", group_count[i], " thread groups in ", "xyz"[i],
                       ", but the device's limit is ", most, "; dispatch parts, one after the other");
    }
    const double all = double(group_count[0]) * double(group_count[1]) * double(group_count[2]);
    if (all > 0x1p63) // they are counted in 64 bits
        fail_value("dispatch of ", kernel.label(), ": ", group_count[0], " x ", group_count[1], " x ", group_count[2],
                   " thread groups are more than any device runs");
}

/// What rays walk through must be a whole structure of instances: a GPU need not come back from anything else.
static void check_traceable(AccelerationStructure& structure, const std::string& path, const std::string& label,
                            StructureUses* uses)
{
    const AccelerationStructure::Content& content = structure.content();
    if (!content.is_built)
        fail_value(label, ": parameter '", path, "' is ", summary(&structure),
                   ", which was never built; record and submit its build_acceleration_structure first");
    if (!content.is_top_level)
        fail_value(
            label, ": parameter '", path, "' is ", summary(&structure),
            ", which was built from triangles or boxes; rays are traced through one that was built from instances "
            "(AccelerationStructureInstanceList)");
    if (uses)
        uses->use(ref<AccelerationStructure>(&structure));
    else if (!structure.is_submitted())
        fail_value(label, ": parameter '", path, "' is ", summary(&structure),
                   ", whose build_acceleration_structure was recorded but not submitted; submit it first");
}

void check_arguments(const Device* device, const ProgramLayout& layout, const std::string& label,
                     std::span<const ref<Object>> slots, StructureUses* uses)
{
    for (size_t i = 0; i < std::min(slots.size(), layout.slots.size()); ++i) {
        const SlotLayout& slot = layout.slots[i];
        if (!slots[i])
            continue;
        auto* object = dynamic_cast<DeviceObject*>(slots[i].get());
        if (!object)
            continue;
        if (const Device* owner = object->frontend(); owner != device)
            check_bindable(device, object, cat(label, " parameter '", slot.path, "'").c_str());
        if (slot.kind == SlotKind::acceleration_structure) {
            auto* structure = dynamic_cast<AccelerationStructure*>(object);
            if (!structure)
                fail(ErrorKind::type, label, ": parameter '", slot.path, "' takes an AccelerationStructure, got ",
                     summary(object));
            check_traceable(*structure, slot.path, label, uses);
            continue;
        }
        uint32_t usage, read_only, writable;
        if (slot.kind == SlotKind::structured_buffer || slot.kind == SlotKind::byte_address_buffer) {
            const auto* buffer = static_cast<const Buffer*>(object);
            usage = uint32_t(buffer->desc().usage);
            read_only = uint32_t(BufferUsage::shader_resource);
            writable = uint32_t(BufferUsage::unordered_access);
        } else if (slot.kind == SlotKind::texture) {
            const auto* view = dynamic_cast<const TextureView*>(object);
            const auto* texture = view ? view->texture() : static_cast<const Texture*>(object);
            usage = uint32_t(texture->desc().usage);
            if (!usage) [[unlikely]]
                check_current(texture, cat(label, " parameter '", slot.path, "'").c_str());
            read_only = uint32_t(TextureUsage::shader_resource);
            writable = uint32_t(TextureUsage::unordered_access);
        } else {
            continue;
        }
        if (usage & (slot.writable ? writable : read_only | writable))
            continue;
        fail_value(label, ": parameter '", slot.path, "' is ", slot.writable ? "written" : "read", ", but ",
                   summary(object), " was created without the usage flag ",
                   slot.writable ? "unordered_access" : "shader_resource (or unordered_access)");
    }
}

ref<ShaderObject> root_for(Device* device, const ProgramLayout& layout, const std::string& label,
                           ref<ShaderObject> root)
{
    if (!root)
        return new ShaderObject(device, const_cast<ProgramLayout*>(&layout));
    if (root->device()->backend() != device->backend())
        fail_value("bind_pipeline: the root object belongs to ",
                   other_device(*root->device(), *device, "it is bound with"));
    // Another link of the same program has its own layout object; what counts is that it is laid out alike.
    if (root->program() != &layout && (!root->program() || serialize(*root->program()) != serialize(layout)))
        fail_value("bind_pipeline: the root object was made for another program than ", label);
    return root;
}

void ComputePassEncoder::check_ready(const char* call) const
{
    if (m_ended)
        fail_runtime(call, ": the compute pass has ended; begin another with begin_compute_pass()");
    m_encoder->check_recording(call, true);
    if (!m_kernel)
        fail_runtime(call, ": no pipeline is bound; call bind_pipeline first");
}

ref<ShaderObject> ComputePassEncoder::bind_kernel(ref<Kernel> kernel, ref<ShaderObject> root)
{
    if (m_ended)
        fail_runtime("bind_pipeline: the compute pass has ended; begin another with begin_compute_pass()");
    m_encoder->check_recording("bind_pipeline", true);
    check_same_device(m_encoder->device(), kernel.get(), "bind_pipeline 'pipeline'");
    m_root = root_for(m_encoder->device(), kernel->layout(), kernel->label(), std::move(root));
    m_kernel = std::move(kernel);
    return m_root;
}

void ComputePassEncoder::dispatch(std::array<uint64_t, 3> thread_count)
{
    check_ready("dispatch");
    dispatch_compute(groups_for_threads(m_kernel->layout(), thread_count));
}

template <typename Dispatch>
void ComputePassEncoder::add(Dispatch dispatch)
{
    dispatch.kernel = m_kernel;
    m_root->check_bound(m_encoder->device()->desc().enable_rhi_validation);
    m_root->copy_to(dispatch.scopes, dispatch.slots, dispatch.keep_alive);
    check_arguments(m_encoder->device(), *m_kernel, dispatch.slots, &m_encoder->m_structures);
    m_encoder->add(std::move(dispatch));
}

void ComputePassEncoder::dispatch_compute(std::array<uint64_t, 3> group_count)
{
    check_ready("dispatch_compute");
    check_group_count(m_encoder->device(), *m_kernel, group_count);
    if (!group_count[0] || !group_count[1] || !group_count[2])
        return;
    command::Dispatch dispatch;
    for (size_t i = 0; i < 3; ++i)
        dispatch.group_count[i] = uint32_t(group_count[i]);
    add(std::move(dispatch));
}

void ComputePassEncoder::dispatch_compute_indirect(ref<Buffer> buffer, uint64_t offset)
{
    check_ready("dispatch_compute_indirect");
    check_same_device(m_encoder->device(), buffer.get(), "dispatch_compute_indirect 'buffer'");
    check_buffer_range(buffer.get(), offset, 12, "dispatch_compute_indirect");
    if (offset % 4)
        fail_value("dispatch_compute_indirect: the offset (", offset, ") must be a multiple of 4");
    if (!has_flag(buffer->desc().usage, BufferUsage::indirect_argument))
        fail_value("dispatch_compute_indirect: ", summary(buffer.get()),
                   " was created without the usage flag indirect_argument");
    command::DispatchIndirect dispatch;
    dispatch.buffer = std::move(buffer);
    dispatch.offset = offset;
    add(std::move(dispatch));
}

void ComputePassEncoder::write_timestamp(ref<QueryPool> pool, uint32_t index)
{
    if (m_ended)
        fail_runtime("write_timestamp: the compute pass has ended; begin another with begin_compute_pass()");
    m_encoder->write_timestamp(std::move(pool), index, true);
}

void ComputePassEncoder::debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color)
{
    if (m_ended)
        fail_runtime("debug marker: the compute pass has ended; begin another with begin_compute_pass()");
    m_encoder->debug_marker(kind, std::move(name), color, true);
}

void ComputePassEncoder::end()
{
    if (m_ended)
        return;
    m_ended = true;
    m_encoder->m_pass_open = nullptr;
    m_kernel.reset();
    m_root.reset();
}

} // namespace spy
