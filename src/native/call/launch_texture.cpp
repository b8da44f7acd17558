// Resources that a call binds: textures whole or texel by texel, textures as results, and checks that all share.
#include "call/launch.h"
#include "call/texture.h"
#include "device/resource.h"

namespace spy {

void Launch::bind_slot(int32_t slot, ref<Object> object)
{
    if (m_slots.size() <= size_t(slot))
        m_slots.resize(size_t(slot) + 1);
    m_slots[size_t(slot)] = std::move(object);
}

void Launch::check_device(size_t index, const DeviceObject& object, const char* what)
{
    if (object.frontend() != m_plan.device.get() && object.device() != m_plan.device.get())
        m_plan.view.attr("fail_device")(index, what);
}

void Launch::check_buffer(size_t index, const LeafPlan& plan, const Buffer& buffer)
{
    check_device(index, buffer, "the buffer");
    if (plan.element_size && buffer.desc().size % plan.element_size)
        fail_value(m_plan.label, ": argument ", plan.name, " has ", buffer.desc().size,
                   " bytes, which is no multiple of the ", plan.element_size,
                   " bytes of one element of its parameter; pass a Buffer of whole elements");
}

void Launch::write_texture(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    DeviceObject* object = nullptr;
    if (leaf.kind == ValueKind::texture)
        object = nb::cast<Texture*>(nb::handle(leaf.object));
    else
        object = nb::cast<TextureView*>(nb::handle(leaf.object));
    check_device(index, *object, "the texture");
    bind_slot(plan.slot, ref<Object>(object));
    if (plan.read_slot >= 0)
        bind_slot(plan.read_slot, ref<Object>(object));
    const int32_t steps = plan.views[0].lead_strides; // a size of 1 is spread over the call by a step of 0
    for (uint32_t i = 0; i < plan.vector_dims && steps >= 0; ++i) {
        if (leaf.shape[i] < 0)
            fail_value(m_plan.label, ": argument ", plan.name, " is a view of a cube array whose layers are no multiple "
                       "of 6; begin at a face 0 and take whole cubes");
        put<int32_t>(steps + int32_t(4 * i), leaf.shape[i] == 1 ? 0 : 1);
    }
}

/// The planner's record makes the texture: it knows type, format and usage.
void Launch::prepare_texture_result(const ResultPlan& result)
{
    nb::list sizes;
    for (int64_t size : m_call) {
        if (size == 0)
            fail_value(m_plan.label, ": the call has shape ", m_call.str(),
                       ", and a texture has no sizes of 0; use _result=\"tensor\"");
        sizes.append(size);
    }
    nb::object texture = m_plan.view.attr("make_texture")(nb::tuple(sizes));
    bind_slot(result.leaf.slot, ref<Object>(nb::cast<Texture*>(texture)));
    if (!m_signature.reserved.append_to)
        m_result.object = std::move(texture);
}

} // namespace spy
