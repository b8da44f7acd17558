// Results, and what goes back to the host after a launch.
#include "call/launch.h"
#include "call/launch_util.h"
#include "call/torch.h"
#include "call/access.h"
#include "device/encoder.h"
#include "device/shader_object.h"
#include "python/math_bindings.h"
#include "python/value_writer.h"
#include <algorithm>
#include <cstring>
#include <numeric>

namespace spy {

/// Bytes of a result of the call's shape.
uint64_t Launch::result_size(const ResultPlan& result) const
{
    uint64_t size = 0;
    if (__builtin_mul_overflow(uint64_t(m_call.element_count()), uint64_t(result.element->stride), &size))
        fail(ErrorKind::memory, m_plan.label, ": a result of shape ", m_call.str(), " with ", result.element->stride,
             " bytes per element is larger than any memory");
    return std::max<uint64_t>(size, 16);
}

/// A recorded call returns nothing, but its kernel writes its result somewhere.
void Launch::discard_result(const ResultPlan& result)
{
    BufferDesc desc;
    desc.size = result_size(result);
    desc.uninitialized = true;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access;
    ref<Buffer> buffer = m_plan.device->create_buffer(desc);
    uint64_t address = buffer->device_address();
    if (!address)
        address = reinterpret_cast<uint64_t>(buffer->host_pointer());
    if (result.mode == ResultMode::value)
        put<uint64_t>(result.leaf.out.offset, address);
    else
        write_view(result.leaf, result.leaf.views[0], address, m_call, m_call.contiguous_strides());
    m_keep.push_back(ref<Object>(buffer.get()));
}

void Launch::prepare_result()
{
    const ResultPlan& result = m_plan.result;
    if (result.mode == ResultMode::none || result.mode == ResultMode::leaf)
        return;
    if (result.mode == ResultMode::texture)
        return prepare_texture_result(result);
    if (result.mode == ResultMode::custom)
        return prepare_custom_result();
    if (m_signature.reserved.append_to) {
        discard_result(result);
        if (result.tangent)
            discard_result(*result.tangent);
        return;
    }
    prepare_container(result, m_result, false);
    if (result.tangent)
        prepare_container(*result.tangent, m_tangent, true);
}

void Launch::prepare_container(const ResultPlan& result, Container& container, bool is_tangent)
{
    if (result.mode == ResultMode::value) {
        ReadTo to = is_tangent ? ReadTo::result_tangent : ReadTo::result;
        put<uint64_t>(result.leaf.out.offset, readback_memory(result.leaf, nullptr, *result.element, to));
        return;
    }
    if (result.mode == ResultMode::torch && !m_torch_like)
        find_torch_like();
    if (result.mode == ResultMode::torch)
        prepare_torch_result(result, container);
    if (result.mode == ResultMode::torch && (m_on_host || m_torch_like->device_type == 2))
        return;
    if (result.mode == ResultMode::numpy)
        refuse_in_capture("the result is copied to the host (leave out _result for a torch tensor)");
    nb::list sizes;
    for (int64_t size : m_call)
        sizes.append(size);
    if (result.mode == ResultMode::numpy && m_on_host) {
        Shape shape = m_call;
        for (int64_t size : result.element_shape) {
            sizes.append(size);
            shape.push_back(size);
        }
        try {
            container.object = nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), result.dtype);
        } catch (nb::python_error& error) {
            fail(ErrorKind::memory, m_plan.label, ": a NumPy array of shape ", shape.str(), " for the result: ",
                 nb::str(error.value()).c_str());
        }
        NumpyArray array;
        read_numpy(container.object.ptr(), array);
        write_view(result.leaf, result.leaf.views[0], reinterpret_cast<uint64_t>(array.data), m_call,
                   m_call.contiguous_strides());
        return;
    }
    BufferDesc desc;
    desc.size = result_size(result);
    desc.struct_size = result.element->stride;
    desc.uninitialized = true; // every element is written
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                 BufferUsage::copy_source;
    container.buffer = m_plan.device->create_buffer(desc);
    uint64_t address = container.buffer->device_address();
    if (!address)
        address = reinterpret_cast<uint64_t>(container.buffer->host_pointer());
    write_view(result.leaf, result.leaf.views[0], address, m_call, m_call.contiguous_strides());
    m_keep.push_back(ref<Object>(container.buffer.get()));
    if (result.mode != ResultMode::torch && is_tangent)
        container.object = m_plan.view.attr("make_tensor")(nb::cast(container.buffer), nb::tuple(sizes), true);
    else if (result.mode != ResultMode::torch)
        container.object = m_plan.view.attr("make_tensor")(nb::cast(container.buffer), nb::tuple(sizes));
}

void Launch::finish_uploads()
{
    for (Upload& upload : m_uploads) {
        if (!upload.write_back)
            continue;
        const Leaf& leaf = upload.own ? *upload.own : m_signature.leaves[upload.leaf];
        uint32_t item = upload.own ? scalar_info(leaf.scalar).size : m_plan.leaves[upload.leaf].element_size;
        if (upload.buffer) {
            upload.bytes.resize(size_t(leaf.shape.element_count()) * item);
            if (!upload.bytes.empty())
                m_plan.device->read_buffer(upload.buffer, 0, upload.bytes.data(), upload.bytes.size());
        }
        int64_t position = 0;
        copy_strided(upload.bytes.data(), item, reinterpret_cast<uint8_t*>(leaf.address),
                     scalar_info(leaf.scalar).size, leaf.shape, leaf.strides, 0, false, position);
    }
}

void Launch::finish_native_copies()
{
    for (const NativeCopy& native : m_signature.native_copies)
        if (native.leaf < m_plan.leaves.size() && m_plan.leaves[native.leaf].writes)
            nb::module_::import_("numpy").attr("copyto")(native.array, native.copy);
}

void Launch::finish_references()
{
    for (Readback& readback : m_readbacks) {
        if (readback.buffer) {
            readback.bytes.assign((readback.layout->stride + 7) / 8 + 1, 0);
            m_plan.device->read_buffer(readback.buffer, 0, readback.bytes.data(), readback.layout->stride);
        }
        bool is_sum = readback.to == ReadTo::grad && !m_plan.is_forward_mode; // a sum over nothing is zero
        if (m_total == 0 && readback.object && !is_sum)
            continue;
        nb::object value = read_value(*readback.layout, reinterpret_cast<const uint8_t*>(readback.bytes.data()));
        nb::handle object(readback.object);
        switch (readback.to) {
        case ReadTo::result: m_result.object = std::move(value); break;
        case ReadTo::result_tangent: m_tangent.object = std::move(value); break;
        case ReadTo::grad: nb::cast<DiffPair*>(object)->grad = std::move(value); break;
        case ReadTo::pair: {
            auto* pair = nb::cast<DiffPair*>(object);
            pair->primal = value["p"];
            if (pair->needs_grad)
                pair->grad = value["d"];
            break;
        }
        case ReadTo::value:
            if (nb::isinstance<ValueRef>(object))
                nb::cast<ValueRef*>(object)->value = std::move(value);
            else
                nb::cast<DiffPair*>(object)->primal = std::move(value);
        }
    }
}

nb::object Launch::finish_container(const ResultPlan& result, Container& container)
{
    if (result.mode == ResultMode::torch && container.buffer)
        finish_torch_result(result, container);
    if (result.mode != ResultMode::numpy || m_on_host)
        return std::move(container.object);
    if (result.element->kind == TypeKind::struct_)
        return container.object.attr("to_numpy")(nb::arg("structured") = true);
    return container.object.attr("to_numpy")();
}

nb::object Launch::finish_result()
{
    if (m_plan.result.mode == ResultMode::custom)
        finish_custom_result();
    for (ThisUpdate& update : m_signature.updates)
        update.object.attr("update_this")(update.value);
    if (m_plan.result.mode == ResultMode::none || m_plan.result.mode == ResultMode::leaf)
        return nb::none(); // the caller returns what it was given
    nb::object result = finish_container(m_plan.result, m_result);
    if (!m_plan.result.tangent)
        return result;
    return m_plan.view.attr("make_dual")(result, finish_container(*m_plan.result.tangent, m_tangent));
}

} // namespace spy
