// Values of classes that users registered: their marshalls, in Python, say shape and stored fields.
#include "call/launch.h"
#include "call/launch_util.h"

namespace spy {

Shape Launch::custom_shape(size_t index)
{
    nb::object sizes = m_plan.view.attr("custom_shape")(index, nb::handle(m_signature.leaves[index].object));
    Shape shape;
    for (nb::handle size : sizes)
        shape.push_back(nb::cast<int64_t>(size));
    m_custom.push_back({index, shape, {}});
    m_signature.leaves[index].shape = shape; // for messages
    return shape;
}

void Launch::write_custom(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    if (plan.writes && m_signature.reserved.append_to)
        fail_value(m_plan.label, ": argument ", plan.name, " (", Py_TYPE(leaf.object)->tp_name,
                   ") would have to be read back on the host; pass a Tensor when appending to a command encoder");
    for (Custom& custom : m_custom) {
        if (custom.leaf != index)
            continue;
        custom.data = m_plan.view.attr("custom_calldata")(index, nb::handle(leaf.object));
        write_value_slot(plan.value, custom.data.ptr(), plan.name);
        for (uint32_t i = 0; i < plan.vector_dims && plan.stride_offset >= 0; ++i) // a size of 1 is spread
            put<int64_t>(plan.stride_offset + int32_t(8 * i), custom.shape[i] == 1 ? 0 : 1);
    }
}

/// A result class: its marshall makes the object that is written, and turns it into what the call returns.
void Launch::prepare_custom_result()
{
    const LeafPlan& leaf = m_plan.result.leaf;
    if (m_signature.reserved.append_to)
        fail_value(m_plan.label, ": a result of a registered class would have to be read back on the host; pass an "
                   "instance or a Tensor as _result when appending to a command encoder");
    m_result.object = m_plan.view.attr("custom_create")();
    if (m_total == 0)
        return;
    m_result_data = m_plan.view.attr("custom_calldata")(-1, m_result.object);
    write_value_slot(leaf.value, m_result_data.ptr(), leaf.name);
    for (uint32_t i = 0; i < leaf.vector_dims && leaf.stride_offset >= 0; ++i)
        put<int64_t>(leaf.stride_offset + int32_t(8 * i), 1);
}

void Launch::finish_custom_result()
{
    m_result.object = m_plan.view.attr("custom_result")(m_result.object, m_result_data.is_valid() ? m_result_data : nb::object(nb::none()));
}

void Launch::finish_custom()
{
    for (const Custom& custom : m_custom)
        if (m_plan.leaves[custom.leaf].writes && custom.data.is_valid())
            m_plan.view.attr("custom_read")(custom.leaf, nb::handle(m_signature.leaves[custom.leaf].object), custom.data);
}

} // namespace spy
