#include "call/launch.h"
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

namespace {

constexpr const char* slot_names[] = {"tensor", "grad_in", "grad_out"};

bool is_host_device(const Device& device)
{
    return device.info().type == DeviceType::cpu || device.info().type == DeviceType::null;
}

/// Copies a strided host array into packed memory of `element` bytes per element (bool may grow to 4), or back.
void copy_strided(uint8_t* packed, uint32_t element, uint8_t* base, uint32_t item, const Shape& shape,
                  const Shape& strides, size_t dim, bool into_packed, int64_t& position)
{
    if (dim == shape.size()) {
        uint8_t* at = packed + position++ * element;
        if (into_packed) {
            std::memcpy(at, base, std::min(item, element));
            if (element > item)
                std::memset(at + item, 0, element - item);
        } else {
            std::memcpy(base, at, std::min(item, element));
        }
        return;
    }
    for (int64_t i = 0; i < shape[dim]; ++i)
        copy_strided(packed, element, base + i * strides[dim], item, shape, strides, dim + 1, into_packed, position);
}

std::vector<uint8_t> pack_array(const Leaf& leaf, uint32_t element)
{
    std::vector<uint8_t> bytes(size_t(leaf.shape.element_count()) * element);
    int64_t position = 0;
    copy_strided(bytes.data(), element, reinterpret_cast<uint8_t*>(leaf.address), scalar_info(leaf.scalar).size,
                 leaf.shape, leaf.strides, 0, true, position);
    return bytes;
}

} // namespace

namespace {

/// Sizes of a container, with the components of vectors and matrices behind them.
Shape full_shape(const Leaf& leaf)
{
    Shape shape = leaf.shape;
    if (leaf.kind == ValueKind::vector || leaf.kind == ValueKind::matrix || (leaf.kind == ValueKind::list && leaf.cols)) {
        if (leaf.rows > 1 || leaf.kind == ValueKind::matrix)
            shape.push_back(leaf.rows);
        shape.push_back(leaf.cols);
    }
    return shape;
}

/// Element strides of a leaf's container; numpy strides are bytes.
Shape element_strides(const Leaf& leaf)
{
    if (leaf.kind != ValueKind::array)
        return leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch ? leaf.strides
                                                                              : full_shape(leaf).contiguous_strides();
    Shape strides = leaf.strides;
    int64_t item = scalar_info(leaf.scalar).size;
    for (size_t i = 0; i < strides.size(); ++i)
        strides[i] /= item;
    return strides;
}

} // namespace

Launch::Launch(CallPlan& plan, Signature& signature, const RunOptions& options)
    : m_plan(plan), m_signature(signature), m_options(options), m_on_host(is_host_device(*plan.device))
{
}

nb::object Launch::run()
{
    measure();
    apply_thread_count();
    m_plan.last_call_shape = m_call;
    m_bytes.assign(m_plan.argument_size, 0);
    prepare_result();
    if (m_total > 0 || m_signature.reserved.append_to) {
        for (size_t i = 0; i < m_plan.leaves.size(); ++i)
            try {
                write_leaf(i);
            } catch (const Error& error) { // values are written by code that knows parameters only
                std::string text = error.what();
                throw Error(error.kind(), text.starts_with(m_plan.label) ? text : cat(m_plan.label, ": argument ", text));
            }
        put<int64_t>(m_plan.total_offset, m_total);
        for (size_t i = 0; i < m_call.size() && m_plan.shape_offset >= 0; ++i)
            put<int64_t>(m_plan.shape_offset + int32_t(8 * i), m_call[i]);
        if (m_total > 0)
            dispatch();
    } else {
        for (size_t i = 0; i < m_plan.leaves.size(); ++i)
            if (m_plan.leaves[i].out_is_grad) // a sum over nothing is zero
                write_leaf(i);
    }
    if (m_signature.reserved.append_to)
        return nb::none();
    finish_uploads();
    finish_references();
    return finish_result();
}

void Launch::fail_shape(const char* kind, size_t leaf, int64_t dim, int64_t got, int64_t expected)
{
    nb::list shapes;
    for (const Leaf& other : m_signature.used()) {
        nb::list sizes;
        for (int64_t size : other.shape)
            sizes.append(size);
        shapes.append(nb::tuple(sizes));
    }
    m_plan.view.attr("fail_shape")(kind, leaf, dim, got, expected, shapes);
    fail_value(m_plan.label, ": ", kind, " of argument ", leaf); // fail_shape always raises
}

void Launch::check_inner(size_t index, const LeafPlan& plan, const Shape& shape)
{
    if (shape.size() != plan.vector_dims + plan.inner.size())
        fail_shape("rank", index, -1, int64_t(shape.size()), int64_t(plan.vector_dims + plan.inner.size()));
    for (size_t i = 0; i < plan.inner.size(); ++i) {
        int64_t got = shape[plan.vector_dims + i];
        if (plan.inner[i] >= 0 && got != plan.inner[i])
            fail_shape("inner", index, int64_t(plan.vector_dims + i), got, plan.inner[i]);
    }
}

void Launch::merge_shape(size_t index, const LeafPlan& plan, const Shape& shape)
{
    for (uint32_t i = 0; i < plan.vector_dims; ++i) {
        int64_t size = shape[i];
        int64_t& call = m_call[plan.map[i]];
        if (size == -1 || size == 1 || size == call)
            continue;
        if (call != 1)
            fail_shape("mismatch", index, plan.map[i], size, call);
        call = size;
    }
}

void Launch::measure()
{
    for (uint32_t i = 0; i < m_plan.call_rank; ++i)
        m_call.push_back(1);
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Leaf& leaf = m_signature.leaves[i];
        // a CPU number beside CUDA tensors does not decide
        if (leaf.device_type && (!m_torch_like || (m_torch_like->device_type == 1 && leaf.device_type == 2)))
            m_torch_like = &leaf;
        if (plan.kind == LeafKind::view || plan.kind == LeafKind::packed) {
            Shape shape = full_shape(leaf);
            check_inner(i, plan, shape);
            merge_shape(i, plan, shape);
        } else if (plan.kind == LeafKind::generator && plan.vector_dims) {
            merge_shape(i, plan, leaf.shape);
        }
    }
    m_total = m_call.element_count();
}

void Launch::apply_thread_count()
{
    PyObject* count = m_signature.reserved.thread_count;
    if (!count)
        return;
    if (!PyLong_Check(count) || PyBool_Check(count))
        fail_value(m_plan.label, ": _thread_count must be a positive int, got ", Py_TYPE(count)->tp_name);
    int64_t threads = PyLong_AsLongLong(count);
    if (threads <= 0) {
        PyErr_Clear();
        fail_value(m_plan.label, ": _thread_count must be a positive int, got ", short_repr(count));
    }
    if (m_plan.call_rank != 0)
        fail_value(m_plan.label, ": _thread_count needs a zero-dimensional call, but the call rank is ",
                   m_plan.call_rank, " with shape ", m_call.str());
    m_total = threads;
}

bool Launch::flattens(const LeafPlan& plan, const Shape& shape, const Shape& strides) const
{
    bool broadcast = true, full = plan.vector_dims == m_plan.call_rank;
    int64_t step = plan.inner.element_count();
    for (size_t i = 0; i < plan.inner.size(); ++i)
        step = plan.inner[i] < 0 ? -1 : step;
    for (int64_t i = int64_t(plan.vector_dims) - 1; i >= 0; --i) {
        broadcast &= shape[i] == 1 || strides[i] == 0;
        full &= plan.map[i] == i && shape[i] == m_call[i] && (strides[i] == step || shape[i] == 1);
        step *= shape[i];
    }
    if (broadcast || !full)
        return broadcast;
    // the consumed dimensions must be contiguous too, so that one stride serves all
    int64_t inner_step = 1;
    for (int64_t i = int64_t(plan.inner.size()) - 1; i >= 0; --i) {
        size_t dim = plan.vector_dims + size_t(i);
        if (plan.inner[i] < 0 || (strides[dim] != inner_step && shape[dim] != 1))
            return false;
        inner_step *= shape[dim];
    }
    return true;
}

AccessClass Launch::classify(const LeafPlan& plan, const Shape& shape, const Shape& strides, bool flatten) const
{
    uint64_t used = 0;
    bool uniform = true;
    for (uint32_t i = 0; i < plan.vector_dims; ++i)
        // a size of 1 moves with a call dimension of size 1, so that small shapes need no kernel of their own
        if (shape[i] == 1 ? m_call[plan.map[i]] == 1 : strides[i] != 0) {
            uniform = false;
            used |= 1ull << plan.map[i];
        }
    if (uniform)
        return AccessClass::uniform;
    if (flatten)
        return AccessClass::linear;
    for (uint32_t c = 0; c < m_plan.call_rank; ++c)
        if (m_call[c] != 1 && !(used >> c & 1))
            return AccessClass::general;
    return AccessClass::linear; // every call dimension moves the element: no two invocations share one
}

std::array<const TensorBase*, 2> Launch::gradients(const LeafPlan& plan, const Leaf& leaf)
{
    auto get = [&](ViewSource source, const nb::object& grad) {
        bool used = leaf.tensor && plan.views[size_t(source)].data >= 0;
        return used ? nb::cast<TensorBase*>(grad) : nullptr;
    };
    if (!leaf.tensor) // torch; absent gradients are null
        return {plan.views[size_t(ViewSource::grad_in)].data >= 0 ? leaf.grads[0] : nullptr,
                plan.views[size_t(ViewSource::grad_out)].data >= 0 ? leaf.grads[1] : nullptr};
    return {get(ViewSource::grad_in, leaf.tensor->grad_in), get(ViewSource::grad_out, leaf.tensor->grad_out)};
}

AccessClass Launch::gradient_access(size_t index, AccessClass access, bool flatten)
{
    const LeafPlan& plan = m_plan.leaves[index];
    const Leaf& leaf = m_signature.leaves[index];
    auto grads = gradients(plan, leaf);
    const TensorBase* target = grads[1];
    for (const TensorBase* grad : grads)
        if (grad && classify(plan, grad->shape, grad->strides, flatten) != access)
            return shared_access(plan, target, flatten);
    if (!target || access == AccessClass::uniform)
        return access;
    if (access == AccessClass::general)
        return shared_access(plan, target, flatten);
    // a plain addition needs an element that no other invocation adds to, through this argument or another
    if (!is_injective(plan, target->shape, target->strides))
        return AccessClass::general;
    for (size_t other = 0; other < m_plan.leaves.size(); ++other) {
        const TensorBase* second = gradients(m_plan.leaves[other], m_signature.leaves[other])[1];
        if (other != index && second && may_collide(*target, *second))
            return AccessClass::general;
    }
    return access;
}

AccessClass Launch::shared_access(const LeafPlan& plan, const TensorBase* target, bool flatten)
{
    bool whole = std::find(plan.inner.begin(), plan.inner.end(), -1) != plan.inner.end();
    if (!target || flatten || whole)
        return AccessClass::general;
    int64_t period = period_of(plan, target->shape, target->strides, m_call);
    if (period == 0 || period > max_period)
        return AccessClass::general;
    m_period = std::max(m_period, period);
    return AccessClass::periodic;
}

VariantKey Launch::choose_variant()
{
    bool flatten = m_plan.can_flatten && m_plan.call_rank >= 1;
    for (size_t i = 0; flatten && i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        if (plan.kind != LeafKind::view && plan.kind != LeafKind::packed)
            continue;
        const Leaf& leaf = m_signature.leaves[i];
        Shape shape = full_shape(leaf);
        flatten = flattens(plan, shape, element_strides(leaf));
        for (const TensorBase* grad : gradients(plan, leaf)) // one flat index must serve the gradients too
            flatten = flatten && (!grad || (flattens(plan, shape, grad->strides) &&
                                            is_broadcast(plan, shape, grad->strides) ==
                                                is_broadcast(plan, shape, leaf.strides)));
    }
    VariantKey key = (flatten ? 1 : 0) | (m_total >= (int64_t(1) << 31) ? 2 : 0);
    uint32_t position = 0;
    bool aligned = true;
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        if (!plan.classed || position == max_classed_leaves)
            continue;
        const Leaf& leaf = m_signature.leaves[i];
        AccessClass access = classify(plan, full_shape(leaf), element_strides(leaf), flatten);
        if (leaf.tensor || leaf.device_type)
            access = gradient_access(i, access, flatten);
        key |= uint64_t(access) << (3 + 2 * position++);
        bool in_place = leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch || (m_on_host && leaf.kind == ValueKind::array);
        aligned &= access == AccessClass::uniform || !in_place || leaf.address % 16 == 0;
    }
    if (flatten && m_plan.can_widen && aligned)
        key |= 4;
    m_flat = flatten;
    m_aligned = aligned;
    return key;
}

void Launch::write_view(const LeafPlan& plan, const ViewSlot& slot, uint64_t address, const Shape& shape,
                        const Shape& strides)
{
    put<uint64_t>(slot.data, address);
    auto stride32 = [&](int64_t stride) {
        if (stride != int32_t(stride))
            fail_value(m_plan.label, ": argument ", plan.name, " has a stride of ", stride,
                       " elements; kernels take strides up to 2147483647: pass a contiguous copy");
        return int32_t(stride);
    };
    for (uint32_t i = 0; i < plan.vector_dims && slot.lead_strides >= 0; ++i)
        put<int32_t>(slot.lead_strides + int32_t(4 * i), shape[i] == 1 ? 0 : stride32(strides[i]));
    for (size_t i = 0; i < plan.inner.size(); ++i) {
        size_t dim = plan.vector_dims + i;
        if (slot.inner_strides >= 0)
            put<int32_t>(slot.inner_strides + int32_t(4 * i), stride32(strides[dim]));
        if (slot.inner_shape >= 0)
            put<uint32_t>(slot.inner_shape + int32_t(4 * i), uint32_t(shape[dim]));
    }
}

void Launch::write_tensor(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    for (size_t source = 0; source < size_t(ViewSource::count_); ++source) {
        const ViewSlot& slot = plan.views[source];
        if (slot.data < 0)
            continue;
        TensorBase* tensor = leaf.tensor;
        if (source == size_t(ViewSource::grad_in)) tensor = nb::cast<TensorBase*>(leaf.tensor->grad_in);
        if (source == size_t(ViewSource::grad_out)) tensor = nb::cast<TensorBase*>(leaf.tensor->grad_out);
        if (tensor->storage->frontend() != m_plan.device.get() && tensor->storage->device() != m_plan.device.get())
            m_plan.view.attr("fail_device")(index, slot_names[source]);
        if (!(tensor->shape == leaf.shape))
            fail_value(m_plan.label, ": the ", slot_names[source], " of argument ", plan.name, " has shape ",
                       tensor->shape.str(), ", but its tensor has shape ", leaf.shape.str());
        write_view(plan, slot, tensor->address(), tensor->shape, tensor->strides);
        if (!m_on_host || m_signature.reserved.append_to)
            m_keep.push_back(ref<Object>(tensor->storage.get()));
    }
}

uint64_t Launch::upload(size_t leaf, std::vector<uint8_t> bytes, bool write_back)
{
    Upload upload{leaf, {}, {}, write_back};
    uint64_t address;
    if (m_on_host && !m_signature.reserved.append_to) {
        upload.bytes = std::move(bytes);
        address = reinterpret_cast<uint64_t>(upload.bytes.data());
    } else {
        BufferDesc desc;
        desc.size = std::max<size_t>(bytes.size(), 4);
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                     BufferUsage::copy_source;
        desc.label = "argument " + m_plan.leaves[leaf].name;
        desc.uninitialized = true;
        upload.buffer = m_plan.device->create_buffer(desc);
        if (!bytes.empty())
            m_plan.device->write_buffer(upload.buffer, 0, bytes.data(), bytes.size());
        address = upload.buffer->device_address();
        m_keep.push_back(ref<Object>(upload.buffer.get()));
    }
    m_uploads.push_back(std::move(upload));
    return address;
}

void Launch::write_array(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    uint32_t item = scalar_info(leaf.scalar).size;
    bool aligned = leaf.address % item == 0;
    for (int64_t stride : leaf.strides)
        aligned &= stride % int64_t(item) == 0;
    if (m_on_host && aligned && plan.element_size == item && !m_signature.reserved.append_to) {
        Shape strides = element_strides(leaf);
        write_view(plan, plan.views[0], leaf.address, leaf.shape, strides);
        return;
    }
    if (plan.writes && m_signature.reserved.append_to)
        fail_value(m_plan.label, ": argument ", plan.name, " is a NumPy array that would have to be read back; pass a ",
                   "Tensor when appending to a command encoder");
    // one upload for an array that is passed twice, so that both parameters see one content
    for (Upload& other : m_uploads)
        if (!other.own && m_signature.leaves[other.leaf].object == leaf.object && plan.element_size == m_plan.leaves[other.leaf].element_size) {
            other.write_back |= plan.writes;
            uint64_t address = other.buffer ? other.buffer->device_address() : reinterpret_cast<uint64_t>(other.bytes.data());
            write_view(plan, plan.views[0], address, leaf.shape, leaf.shape.contiguous_strides());
            return;
        }
    uint64_t address = upload(index, pack_array(leaf, plan.element_size), plan.writes);
    write_view(plan, plan.views[0], address, leaf.shape, leaf.shape.contiguous_strides());
}

std::vector<uint8_t> Launch::pack_numbers(const LeafPlan& plan, const Leaf& leaf)
{
    uint32_t bool_bytes = plan.scalar == ScalarType::bool_ ? plan.element_size : 1;
    std::vector<uint8_t> bytes(size_t(full_shape(leaf).element_count()) * plan.element_size);
    uint8_t* at = bytes.data();
    ValuePath path{nullptr, plan.name, 0};
    auto write_math = [&](PyObject* value) {
        const MathTypeInfo* info = find_math_base(Py_TYPE(value));
        const uint8_t* source = static_cast<const uint8_t*>(math_data(value));
        uint32_t item = info->size / info->count;
        for (uint32_t i = 0; i < info->count; ++i, at += plan.element_size, source += item) {
            if (info->scalar == plan.scalar && item == plan.element_size) {
                std::memcpy(at, source, item);
            } else if (info->scalar == plan.scalar) {
                std::memset(at, 0, plan.element_size);
                std::memcpy(at, source, std::min(item, plan.element_size));
            } else {
                nb::object number = nb::steal(PySequence_GetItem(value, Py_ssize_t(i)));
                write_scalar(plan.scalar, bool_bytes, at, number.ptr(), path);
            }
        }
    };
    if (leaf.kind != ValueKind::list)
        write_math(leaf.object);
    for (PyObject* item : leaf.items) {
        if (leaf.cols) {
            write_math(item);
            continue;
        }
        write_scalar(plan.scalar, bool_bytes, at, item, path);
        at += plan.element_size;
    }
    return bytes;
}

void Launch::write_packed(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    if (plan.writes && leaf.kind != ValueKind::list && leaf.kind != ValueKind::vector && leaf.kind != ValueKind::matrix)
        fail_value(m_plan.label, ": argument ", plan.name, " cannot be written");
    Shape shape = full_shape(leaf);
    uint64_t address = upload(index, pack_numbers(plan, leaf), false);
    write_view(plan, plan.views[0], address, shape, shape.contiguous_strides());
}

void Launch::write_generator(const LeafPlan& plan, const Leaf& leaf)
{
    auto* generator = nb::cast<Generator*>(nb::handle(leaf.object));
    put<uint32_t>(plan.seed_offset, generator->seed);
    if (plan.seed_offset >= 0)
        put<uint32_t>(plan.seed_offset + 4, generator->warmup);
    if (plan.min_offset >= 0) {
        if (plan.range_scalar == ScalarType::float64) {
            put<double>(plan.min_offset, generator->min);
            put<double>(plan.max_offset, generator->max);
        } else {
            put<float>(plan.min_offset, float(generator->min));
            put<float>(plan.max_offset, float(generator->max));
        }
    }
    for (size_t i = 0; i < generator->shape.size(); ++i) {
        if (plan.offset_offset >= 0)
            put<int64_t>(plan.offset_offset + int32_t(8 * i), generator->offset.empty() ? 0 : generator->offset[i]);
        if (plan.stride_offset >= 0)
            put<int64_t>(plan.stride_offset + int32_t(8 * i), generator->stride.empty() ? 1 : generator->stride[i]);
    }
}

void Launch::write_value_slot(const ValueSlot& slot, PyObject* value, const std::string& name)
{
    if (slot.offset < 0)
        return;
    std::vector<ref<Object>> keep;
    write_value(*slot.layout, m_bytes.data() + slot.offset, value, ValuePath{nullptr, name, 0}, &keep);
    for (auto& object : keep)
        m_keep.push_back(std::move(object));
}

uint64_t Launch::readback_memory(const LeafPlan& plan, PyObject* object, uint64_t size, bool clear)
{
    if (m_signature.reserved.append_to)
        fail_value(m_plan.label, ": argument ", plan.name, " (", object ? Py_TYPE(object)->tp_name : "result",
                   ") would have to be read back on the host; pass a Tensor when appending to a command encoder");
    Readback readback{&plan, object, {}, {}};
    uint64_t address;
    if (m_on_host) {
        readback.bytes.assign((size + 7) / 8 + 1, 0);
        address = reinterpret_cast<uint64_t>(readback.bytes.data());
    } else {
        BufferDesc desc;
        desc.size = std::max<uint64_t>(size, 4);
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                     BufferUsage::copy_source;
        desc.uninitialized = true;
        readback.buffer = m_plan.device->create_buffer(desc);
        std::vector<uint8_t> zeros(desc.size, 0);
        if (clear)
            m_plan.device->write_buffer(readback.buffer, 0, zeros.data(), zeros.size());
        address = readback.buffer->device_address();
    }
    m_readbacks.push_back(std::move(readback));
    return address;
}

void Launch::write_reference(const LeafPlan& plan, const Leaf& leaf)
{
    PyObject *value = leaf.object, *grad = nullptr;
    if (leaf.kind == ValueKind::value_ref) {
        value = nb::cast<ValueRef*>(nb::handle(leaf.object))->value.ptr();
    } else if (leaf.kind == ValueKind::diff_pair) {
        auto* pair = nb::cast<DiffPair*>(nb::handle(leaf.object));
        value = pair->primal.ptr();
        grad = pair->grad.ptr();
    }
    write_value_slot(plan.value, value, plan.name);
    if (grad && grad != Py_None)
        write_value_slot(plan.seed, grad, plan.name + ".grad");
    if (plan.out.offset >= 0)
        put<uint64_t>(plan.out.offset, readback_memory(plan, leaf.object, plan.out.layout->stride, true));
}

void Launch::write_pointer(const LeafPlan& plan, const Leaf& leaf)
{
    uint64_t address = 0;
    ref<Object> owner;
    if (leaf.tensor) {
        if (!(leaf.tensor->strides == leaf.tensor->shape.contiguous_strides()))
            fail_value(m_plan.label, ": argument ", plan.name, " must be contiguous to serve as a pointer");
        address = leaf.address;
        owner = ref<Object>(leaf.tensor->storage.get());
    } else if (!pointer_from_python(leaf.object, address, owner, ValuePath{nullptr, plan.name, 0})) {
        fail(ErrorKind::type, m_plan.label, ": argument ", plan.name, " must be an address, Buffer or Tensor, got ",
             Py_TYPE(leaf.object)->tp_name);
    }
    put<uint64_t>(plan.value.offset, address);
    if (owner)
        m_keep.push_back(std::move(owner));
}

void Launch::write_resource(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    if (m_slots.size() <= size_t(plan.slot))
        m_slots.resize(size_t(plan.slot) + 1);
    if (leaf.tensor) {
        if (leaf.tensor->offset != 0 || !(leaf.tensor->strides == leaf.tensor->shape.contiguous_strides()))
            fail_value(m_plan.label, ": argument ", plan.name,
                       " must be contiguous with offset 0 to be bound as a buffer; pass .contiguous()");
        m_slots[size_t(plan.slot)] = ref<Object>(leaf.tensor->storage.get());
    } else if (leaf.kind == ValueKind::buffer) {
        m_slots[size_t(plan.slot)] = ref<Object>(nb::cast<Buffer*>(nb::handle(leaf.object)));
    } else if (leaf.kind == ValueKind::texture) {
        m_slots[size_t(plan.slot)] = ref<Object>(nb::cast<Texture*>(nb::handle(leaf.object)));
    } else if (leaf.kind == ValueKind::texture_view) {
        m_slots[size_t(plan.slot)] = ref<Object>(nb::cast<TextureView*>(nb::handle(leaf.object)));
    } else if (leaf.kind == ValueKind::sampler) {
        m_slots[size_t(plan.slot)] = ref<Object>(nb::cast<Sampler*>(nb::handle(leaf.object)));
    } else {
        // arrays and lists become a temporary structured buffer
        if (leaf.kind != ValueKind::array && leaf.kind != ValueKind::list)
            fail(ErrorKind::type, m_plan.label, ": argument ", plan.name, " cannot be bound as a resource");
        std::vector<uint8_t> bytes =
            leaf.kind == ValueKind::array ? pack_array(leaf, plan.element_size) : pack_numbers(plan, leaf);
        BufferDesc desc;
        desc.size = std::max<size_t>(bytes.size(), 4);
        desc.struct_size = plan.element_size;
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                     BufferUsage::copy_source;
        ref<Buffer> buffer = m_plan.device->create_buffer(desc);
        if (!bytes.empty())
            m_plan.device->write_buffer(buffer, 0, bytes.data(), bytes.size());
        m_slots[size_t(plan.slot)] = ref<Object>(buffer.get());
        m_uploads.push_back({index, buffer, {}, plan.writes});
    }
}

void Launch::write_leaf(size_t index)
{
    const LeafPlan& plan = m_plan.leaves[index];
    const Leaf& leaf = m_signature.leaves[index];
    switch (plan.kind) {
    case LeafKind::skip: return;
    case LeafKind::value: return write_value_slot(plan.value, leaf.object, plan.name);
    case LeafKind::view:
        if (leaf.kind == ValueKind::torch)
            return write_torch(index, plan);
        return leaf.kind == ValueKind::tensor ? write_tensor(index, plan, leaf) : write_array(index, plan, leaf);
    case LeafKind::packed: return write_packed(index, plan, leaf);
    case LeafKind::generator: return write_generator(plan, leaf);
    case LeafKind::reference: return write_reference(plan, leaf);
    case LeafKind::pointer: return write_pointer(plan, leaf);
    case LeafKind::resource: return write_resource(index, plan, leaf);
    }
}

void Launch::check_torch(const LeafPlan& plan, Leaf& leaf)
{
    const DeviceInfo& info = m_plan.device->info();
    bool on_cpu = leaf.device_type == 1, is_cuda = info.type == DeviceType::cuda;
    const char* name = plan.name.c_str();
    if (is_cuda && on_cpu && leaf.shape.empty() && m_torch_like->device_type == 2 && !plan.writes) {
        // a number beside CUDA tensors, as in torch
        nb::object moved = nb::handle(leaf.object).attr("to")(nb::handle(m_torch_like->object).attr("device"));
        TorchTensor found;
        read_torch(moved.ptr(), found);
        leaf.address = found.address;
        leaf.device_type = found.device_type;
        leaf.device_index = found.device_index;
        m_signature.keep.push_back(std::move(moved));
        return;
    }
    if (is_cuda && on_cpu)
        fail_value(m_plan.label, ": argument ", name, " is a CPU tensor, but the module's device is CUDA; pass ", name,
                   ".cuda()");
    if (is_cuda && leaf.device_index != info.device_index)
        fail_value(m_plan.label, ": argument ", name, " is on cuda:", leaf.device_index,
                   " but the module's device is cuda:", info.device_index);
    if (!is_cuda && !on_cpu)
        fail_value(m_plan.label, ": argument ", name, " is on cuda:", leaf.device_index, " but the module's device is ",
                   m_on_host ? "cpu" : info.api_name, "; pass ", name, ".cpu()");
    if (plan.reads && leaf.flags & value_flag::no_primal)
        fail_value(m_plan.label, ": argument ", name, " is a diff_pair without a primal, but its value is read");
}

void Launch::write_torch(size_t index, const LeafPlan& plan)
{
    Leaf& leaf = m_signature.leaves[index];
    check_torch(plan, leaf);
    if (leaf.device_type == 2 && !m_stream.value)
        m_stream = {NativeHandleType::CUstream,
                    torch_stream(leaf.object, {0, leaf.scalar, {}, {}, leaf.device_type, leaf.device_index})};
    if (plan.writes)
        check_overlap(index, plan);
    bool direct = leaf.device_type == 2 || (m_on_host && !m_signature.reserved.append_to);
    if (direct && plan.element_size && plan.element_size != scalar_info(leaf.scalar).size) {
        if (leaf.device_type == 2)
            fail(ErrorKind::not_implemented, m_plan.label, ": argument ", plan.name, " of dtype ",
                 scalar_info(leaf.scalar).slang_name, " needs a conversion; pass a slangpy.Tensor");
        direct = false;
    }
    auto grads = gradients(plan, leaf);
    if (!direct) { // memory that the device cannot read: staged
        for (size_t i = 0; i < 2; ++i)
            if (grads[i])
                stage_gradient(index, plan, *grads[i], plan.views[i + 1], i == 1);
        for (size_t i = 0; i < leaf.strides.size(); ++i)
            leaf.strides[i] *= scalar_info(leaf.scalar).size;
        leaf.kind = ValueKind::array;
        return write_array(index, plan, leaf);
    }
    write_view(plan, plan.views[0], leaf.address, leaf.shape, leaf.strides);
    for (size_t i = 0; i < 2; ++i)
        if (grads[i])
            write_view(plan, plan.views[i + 1], grads[i]->raw_address, grads[i]->shape, grads[i]->strides);
}

void Launch::stage_gradient(size_t index, const LeafPlan& plan, const TensorBase& grad, const ViewSlot& slot, bool added)
{
    auto copy = std::make_unique<Leaf>();
    copy->kind = ValueKind::array;
    copy->scalar = ScalarType(grad.type_id);
    copy->address = grad.raw_address;
    copy->shape = grad.shape;
    copy->strides = grad.strides;
    for (size_t i = 0; i < copy->strides.size(); ++i)
        copy->strides[i] *= grad.raw_item;
    uint64_t address = upload(index, pack_array(*copy, grad.raw_item), added);
    m_uploads.back().own = std::move(copy);
    write_view(plan, slot, address, grad.shape, grad.shape.contiguous_strides());
}

/// As torch has it: exact for tensors without gaps, silent about others.
void Launch::check_overlap(size_t index, const LeafPlan& plan)
{
    const Leaf& leaf = m_signature.leaves[index];
    for (size_t i = 0; i < leaf.shape.size(); ++i)
        if (leaf.strides[i] == 0 && leaf.shape[i] > 1)
            fail_runtime(m_plan.label, ": argument ", plan.name,
                         ": unsupported operation: more than one element of the written-to tensor refers to a single "
                         "memory location. Please clone() the tensor before performing the operation.");
    if (leaf.strides != leaf.shape.contiguous_strides())
        return;
    auto end = [](const Leaf& l) {
        return l.address + uint64_t(l.shape.element_count()) * scalar_info(l.scalar).size;
    };
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const Leaf& other = m_signature.leaves[i];
        if (i == index || !other.device_type || other.strides != other.shape.contiguous_strides())
            continue;
        bool same = other.address == leaf.address && other.shape == leaf.shape && other.scalar == leaf.scalar;
        if (!same && other.address < end(leaf) && leaf.address < end(other))
            fail_runtime(m_plan.label, ": argument ", plan.name,
                         ": unsupported operation: some elements of the input tensor and the written-to tensor refer "
                         "to a single memory location. Please clone() the tensor before performing the operation.");
    }
}

void Launch::prepare_torch_result(const ResultPlan& result)
{
    Shape shape = m_call;
    for (int64_t size : result.element_shape)
        shape.push_back(size);
    const Leaf& like = *m_torch_like;
    TorchTensor description{0, like.scalar, {}, {}, like.device_type, like.device_index};
    m_result = new_torch(description, like.object, result.leaf.scalar, shape);
    if (like.device_type == 1 && !m_on_host)
        return; // copied from a device buffer afterwards
    read_torch(m_result.ptr(), description);
    write_view(result.leaf, result.leaf.views[0], description.address, m_call, m_call.contiguous_strides());
}

void Launch::bump_versions()
{
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const Leaf& leaf = m_signature.leaves[i];
        if (leaf.device_type != 0 && m_plan.leaves[i].writes)
            bump_torch_version(leaf.object);
    }
}

/// A recorded call returns nothing, but its kernel writes its result somewhere.
void Launch::discard_result(const ResultPlan& result)
{
    BufferDesc desc;
    desc.size = std::max<uint64_t>(uint64_t(std::max<int64_t>(m_call.element_count(), 1)) * result.element->stride, 16);
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
    if (m_signature.reserved.append_to)
        return discard_result(result);
    if (result.mode == ResultMode::value) {
        put<uint64_t>(result.leaf.out.offset, readback_memory(result.leaf, nullptr, result.element->stride, false));
        return;
    }
    if (result.mode == ResultMode::torch)
        prepare_torch_result(result);
    if (result.mode == ResultMode::torch && (m_on_host || m_torch_like->device_type == 2))
        return;
    nb::list sizes;
    for (int64_t size : m_call)
        sizes.append(size);
    Shape shape = m_call;
    if (result.mode == ResultMode::numpy && m_on_host) {
        for (int64_t size : result.element_shape) {
            sizes.append(size);
            shape.push_back(size);
        }
        m_result = nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), result.dtype);
        NumpyArray array;
        read_numpy(m_result.ptr(), array);
        write_view(result.leaf, result.leaf.views[0], reinterpret_cast<uint64_t>(array.data), m_call,
                   m_call.contiguous_strides());
        return;
    }
    BufferDesc desc;
    desc.size = std::max<uint64_t>(uint64_t(m_call.element_count()) * result.element->stride, 16);
    desc.struct_size = result.element->stride;
    desc.uninitialized = true; // every element is written
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                 BufferUsage::copy_source;
    m_result_buffer = m_plan.device->create_buffer(desc);
    uint64_t address = m_result_buffer->device_address();
    if (!address)
        address = reinterpret_cast<uint64_t>(m_result_buffer->host_pointer());
    write_view(result.leaf, result.leaf.views[0], address, m_call, m_call.contiguous_strides());
    m_keep.push_back(ref<Object>(m_result_buffer.get()));
    if (result.mode != ResultMode::torch)
        m_result = m_plan.view.attr("make_tensor")(nb::cast(m_result_buffer), nb::tuple(sizes));
}

void Launch::dispatch()
{
    VariantKey key = choose_variant();
    auto found = m_plan.variants.find(key);
    if (found == m_plan.variants.end()) {
        m_plan.view.attr("build_variant")(key);
        found = m_plan.variants.find(key);
        if (found == m_plan.variants.end())
            fail_runtime(m_plan.label, ": no kernel was built for variant ", key);
    }
    const Variant& variant = found->second;
    int64_t per_group = variant.items_per_group;
    if (per_group == 0) { // CPU: blocks large enough to vectorise, small enough to share out
        per_group = variant.max_groups == 1 ? m_total : std::clamp<int64_t>(m_total / 64, 1024, 32768);
        put<int64_t>(m_plan.block_offset, per_group);
        // results beyond the caches are worth writing around them
        put<int64_t>(m_plan.flags_offset, m_aligned && m_total >= (int64_t(1) << 22));
    }
    int64_t groups = (m_total + per_group - 1) / per_group;
    if (variant.max_groups && variant.items_per_group) {
        // whole periods: what a thread adds to does not change while it strides over the call
        int64_t unit = m_period / std::gcd(m_period, per_group);
        groups = std::min<int64_t>(groups, variant.max_groups);
        groups = std::max<int64_t>(groups / unit, 1) * unit;
    }
    put<int64_t>(m_plan.period_offset, m_period);
    const auto& limit = m_plan.device->info().limits.max_compute_dispatch_thread_groups;
    uint32_t limit_x = limit[0] ? limit[0] : 0xffffffffu;
    std::array<uint32_t, 3> count{uint32_t(std::min<int64_t>(groups, limit_x)), 1, 1};
    if (groups > limit_x) { // the kernel recovers the flat group index from x + y * gridDim.x
        count[1] = uint32_t((groups + limit_x - 1) / limit_x);
        if (limit[1] && count[1] > limit[1])
            fail_value(m_plan.label, ": ", m_total, " invocations are more than one dispatch of this device can hold");
    }
    if (variant.items_per_group != 0)
        put<int64_t>(m_plan.block_offset, count[0]);
    if (!m_options.uniforms.is_none() && m_options.uniforms.is_valid())
        m_uniforms = m_options.uniforms(m_plan.view);
    if (m_signature.reserved.append_to)
        return record(variant, count);

    std::span<const uint8_t> scopes[2] = {{}, {m_bytes.data(), m_bytes.size()}};
    LaunchDesc desc;
    desc.kernel = variant.kernel.get();
    desc.group_count = count;
    desc.stream = m_options.stream.value ? m_options.stream : m_stream;
    ArgumentData data;
    if (m_uniforms.is_valid() && !m_uniforms.is_none()) {
        nb::cast<ShaderObject*>(m_uniforms)->gather(data);
        if (data.scopes.size() < 2)
            data.scopes.resize(2);
        data.scopes[1] = scopes[1];
        data.slots.resize(std::max(data.slots.size(), m_slots.size()));
        for (size_t i = 0; i < m_slots.size(); ++i)
            if (m_slots[i])
                data.slots[i] = m_slots[i];
        for (auto& object : m_keep)
            data.keep_alive.push_back(object);
        desc.arguments = data.arguments();
    } else {
        desc.arguments = {scopes, m_slots, m_keep};
    }
    nb::gil_scoped_release release;
    m_plan.device->launch(desc);
}

void Launch::record(const Variant& variant, std::array<uint32_t, 3> groups)
{
    nb::handle target(m_signature.reserved.append_to);
    CommandEncoder* encoder = nullptr;
    if (!nb::try_cast(target, encoder) || !encoder)
        fail_value("Expected _append_to to be a CommandEncoder, got ", Py_TYPE(target.ptr())->tp_name);
    encoder->check_recording("append_to");
    if (m_options.stream.value)
        fail_value(m_plan.label, ": Cannot specify a CUDA stream when appending to a command encoder");
    command::Dispatch dispatch;
    dispatch.kernel = variant.kernel;
    dispatch.group_count = groups;
    if (m_uniforms.is_valid() && !m_uniforms.is_none())
        nb::cast<ShaderObject*>(m_uniforms)->copy_to(dispatch.scopes, dispatch.slots, dispatch.keep_alive);
    dispatch.scopes.resize(std::max<size_t>(dispatch.scopes.size(), 2));
    dispatch.scopes[1] = m_bytes;
    dispatch.slots.resize(std::max(dispatch.slots.size(), m_slots.size()));
    for (size_t i = 0; i < m_slots.size(); ++i)
        if (m_slots[i])
            dispatch.slots[i] = m_slots[i];
    dispatch.keep_alive.insert(dispatch.keep_alive.end(), m_keep.begin(), m_keep.end());
    encoder->add(std::move(dispatch));
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

void Launch::finish_references()
{
    for (Readback& readback : m_readbacks) {
        const ref<TypeLayout>& layout = readback.object ? readback.plan->out.layout : m_plan.result.element;
        if (readback.buffer) {
            readback.bytes.assign((layout->stride + 7) / 8 + 1, 0);
            m_plan.device->read_buffer(readback.buffer, 0, readback.bytes.data(), layout->stride);
        }
        if (m_total == 0 && readback.object && !readback.plan->out_is_grad)
            continue;
        nb::object value = read_value(*layout, reinterpret_cast<const uint8_t*>(readback.bytes.data()));
        if (!readback.object) {
            m_result = std::move(value);
        } else if (Py_TYPE(readback.object) == (PyTypeObject*)nb::type<ValueRef>().ptr() ||
                   nb::isinstance<ValueRef>(nb::handle(readback.object))) {
            nb::cast<ValueRef*>(nb::handle(readback.object))->value = std::move(value);
        } else if (readback.plan->out_is_grad) {
            nb::cast<DiffPair*>(nb::handle(readback.object))->grad = std::move(value);
        } else {
            nb::cast<DiffPair*>(nb::handle(readback.object))->primal = std::move(value);
        }
    }
}

void Launch::finish_torch_result()
{
    TorchTensor target;
    read_torch(m_result.ptr(), target);
    uint64_t size = uint64_t(m_call.element_count()) * m_plan.result.element->size;
    if (m_plan.result.element->size != m_plan.result.element->stride)
        fail(ErrorKind::not_implemented, m_plan.label, ": a torch result of ", m_plan.result.element->full_name,
             " has padding on this device; use _result=\"tensor\"");
    if (size)
        m_plan.device->read_buffer(m_result_buffer, 0, reinterpret_cast<void*>(target.address), size);
}

nb::object Launch::finish_result()
{
    if (m_signature.has_torch)
        bump_versions();
    if (m_plan.result.mode == ResultMode::torch && m_result_buffer)
        finish_torch_result();
    for (ThisUpdate& update : m_signature.updates)
        update.object.attr("update_this")(update.value);
    switch (m_plan.result.mode) {
    case ResultMode::none: return nb::none();
    case ResultMode::leaf: return nb::none(); // the caller returns what it was given
    case ResultMode::numpy:
        if (m_on_host)
            return m_result;
        if (m_plan.result.element->kind == TypeKind::struct_)
            return m_result.attr("to_numpy")(nb::arg("structured") = true);
        return m_result.attr("to_numpy")();
    default: return m_result;
    }
}

} // namespace spy
