#include "device/submit.h"

#include "core/error.h"
#include "device/guard.h"
#include "device/resource.h"

namespace spy {

namespace {

uint64_t next_value(const Fence* fence, uint64_t value)
{
    if (value == fence_auto)
        return fence->signaled_value() + 1;
    if (value <= fence->signaled_value())
        fail_value("a fence only counts up: cannot signal ", value, " after ", fence->signaled_value());
    return value;
}

/// Structures keep those that their instances name. What is let go of goes when no work uses it any more.
void hold_instances(const CommandBuffer& buffer)
{
    for (const Command& command : buffer.commands())
        if (const auto* build = std::get_if<command::BuildAccelerationStructure>(&command)) {
            const auto* instances = std::get_if<InstanceGeometry>(&build->desc.inputs.front());
            build->dst->exchange_references(instances ? instances->structures
                                                      : std::vector<ref<AccelerationStructure>>());
            build->dst->note_submitted();
        } else if (const auto* copy = std::get_if<command::CopyAccelerationStructure>(&command)) {
            copy->dst->exchange_references(copy->src->references());
            copy->dst->note_submitted();
        }
}

void add_input_guards(const AccelerationStructureBuildDesc& desc, MemoryGuards& guards)
{
    for (const AccelerationStructureInput& input : desc.inputs) {
        if (const auto* triangles = std::get_if<TriangleGeometry>(&input))
            for (const BufferOffset* at : {&triangles->vertices, &triangles->indices, &triangles->transform})
                add_guard(at->buffer.get(), guards);
        if (const auto* boxes = std::get_if<BoxGeometry>(&input))
            add_guard(boxes->boxes.buffer.get(), guards);
    }
}

} // namespace

void CommandBuffer::check_guards() const
{
    MemoryGuards guards;
    const auto add_draws = [&](const command::RenderPass& pass) {
        for (const command::RenderItem& item : pass.items)
            if (const auto* draw = std::get_if<command::Draw>(&item)) {
                add_guards(draw->bound->keep_alive, guards);
                add_guards(draw->bound->slots, guards);
                for (const BufferOffset& stream : draw->state->vertex_buffers)
                    add_guard(stream.buffer.get(), guards);
                for (const ref<Buffer>& buffer :
                     {draw->state->index_buffer.buffer, draw->indirect.buffer, draw->count.buffer})
                    add_guard(buffer.get(), guards);
            }
    };
    const auto add = [&](const auto& c) {
        if constexpr (requires { c.items; })
            add_draws(c);
        if constexpr (requires { c.desc; })
            add_input_guards(c.desc, guards);
        if constexpr (requires { c.keep_alive; })
            add_guards(c.keep_alive, guards);
        if constexpr (requires { c.slots; })
            add_guards(c.slots, guards);
        if constexpr (requires { c.buffer; })
            add_guard(c.buffer.get(), guards);
        if constexpr (requires { c.src; })
            add_guard(c.src.get(), guards);
        if constexpr (requires { c.dst; })
            add_guard(c.dst.get(), guards);
    };
    for (const Command& command : m_commands)
        std::visit(add, command);
    spy::check_guards(guards);
}

void resolve_fence_values(SubmitRequest& request)
{
    if (request.wait_values.size() > request.wait_fences.size())
        fail_value("submit: ", request.wait_values.size(), " wait_fence_values for ", request.wait_fences.size(),
                   " wait_fences; give one for each");
    if (request.signal_values.size() > request.signal_fences.size())
        fail_value("submit: ", request.signal_values.size(), " signal_fence_values for ", request.signal_fences.size(),
                   " signal_fences; give one for each");
    request.wait_values.resize(request.wait_fences.size(), fence_auto);
    request.signal_values.resize(request.signal_fences.size(), fence_auto);
    for (size_t i = 0; i < request.wait_fences.size(); ++i)
        if (request.wait_values[i] == fence_auto)
            request.wait_values[i] = request.wait_fences[i]->signaled_value();
    for (size_t i = 0; i < request.signal_fences.size(); ++i)
        request.signal_values[i] = next_value(request.signal_fences[i].get(), request.signal_values[i]);
}

uint64_t submit(Device* device, const SubmitRequest& resolved)
{
    std::vector<CommandBuffer*> buffers;
    std::unordered_set<const AccelerationStructure*> filled;
    for (const ref<CommandBuffer>& buffer : resolved.command_buffers) {
        buffer->structures().check(filled);
        buffers.push_back(buffer.get());
    }
    SubmitDesc desc;
    desc.command_buffers = buffers;
    desc.wait_fences = resolved.wait_fences;
    desc.wait_values = resolved.wait_values;
    desc.signal_fences = resolved.signal_fences;
    desc.signal_values = resolved.signal_values;
    desc.stream = resolved.stream;
    const uint64_t id = device->submit(desc);
    for (CommandBuffer* buffer : buffers) {
        buffer->mark_submitted();
        hold_instances(*buffer);
    }
    for (size_t i = 0; i < resolved.signal_fences.size(); ++i)
        resolved.signal_fences[i]->note_signaled(resolved.signal_values[i]);
    return id;
}

uint64_t signal_fence(Fence* fence, uint64_t value)
{
    check_open(fence->frontend());
    value = next_value(fence, value);
    fence->signal(value);
    fence->note_signaled(value);
    return value;
}

ref<Fence> create_fence(Device* device, uint64_t initial_value, bool shared)
{
    check_open(device);
    if (initial_value == fence_auto)
        fail_value("create_fence: the initial value must be less than 2^64 - 1");
    ref<Fence> fence = device->create_fence(initial_value, shared);
    fence->note_created(initial_value, shared);
    return fence;
}

} // namespace spy
