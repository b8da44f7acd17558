// The fixed set of argument writers: one for each kind of leaf.
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

void Launch::write_view(const LeafPlan& plan, const ViewSlot& slot, uint64_t address, const Shape& shape,
                        const Shape& strides)
{
    put<uint64_t>(slot.data, address);
    if (const size_t rank = shape.size(); plan.vectors && rank && shape[rank - 1] > 1 && strides[rank - 1] != 1)
        fail_value(m_plan.label, ": argument ", plan.name, " has a stride of ", strides[rank - 1],
                   " elements in its last dimension; a TensorView<float", plan.vectors, "> takes ", plan.vectors,
                   " floats that lie side by side: pass a contiguous copy");
    if (plan.sum_ratio && &slot == &plan.views[size_t(ViewSource::grad_out)])
        note_sums(plan, address, shape, strides);
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
            put<int32_t>(slot.inner_strides + int32_t(4 * i), shape[dim] == 1 ? int32_t(strides[dim]) : stride32(strides[dim]));
        if (slot.inner_shape >= 0) {
            if (shape[dim] > int64_t(UINT32_MAX))
                fail_value(m_plan.label, ": argument ", plan.name, " has a dimension of ", shape[dim],
                           " elements; parameters of tensor type take up to 4294967295: pass parts of it");
            put<uint32_t>(slot.inner_shape + int32_t(4 * i), uint32_t(shape[dim]));
        }
    }
}

void Launch::write_tensor(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    for (size_t source = 0; source < size_t(ViewSource::count_); ++source) {
        const ViewSlot& slot = plan.views[source];
        if (slot.data < 0)
            continue;
        const TensorBase* tensor = &tensor_of(leaf, ViewSource(source));
        if (tensor->storage->frontend() != m_plan.device.get() && tensor->storage->device() != m_plan.device.get())
            m_plan.view.attr("fail_device")(index, slot_names[source]);
        if (!(tensor->shape == leaf.shape))
            fail_value(m_plan.label, ": the ", slot_names[source], " of argument ", plan.name, " has shape ",
                       tensor->shape.str(), ", but its tensor has shape ", leaf.shape.str());
        const Apart* apart = m_apart.empty() ? nullptr : apart_of(index, ViewSource(source));
        write_view(plan, slot, apart ? apart->address : tensor->address(), tensor->shape, tensor->strides);
        put<int64_t>(slot.first, apart ? apart->first : tensor->offset);
        if (!m_on_host || m_signature.reserved.append_to)
            m_keep.push_back(ref<Object>(tensor->storage.get()));
    }
}

uint64_t Launch::upload(size_t leaf, std::vector<uint8_t> bytes, bool write_back)
{
    Upload upload{leaf, {}, {}, write_back};
    if (bytes.empty()) // the kernel of a function that reads the first element of nothing must not end the process
        bytes.resize(16);
    uint64_t address;
    if (m_on_host && !m_signature.reserved.append_to) {
        upload.bytes = std::move(bytes);
        address = reinterpret_cast<uint64_t>(upload.bytes.data());
    } else {
        refuse_in_capture(cat("argument ", m_plan.leaves[leaf].name, " is copied from the host (pass a torch tensor)"));
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

/// Whether one copy of an array serves two parameters: what one writes, no other invocation reads.
static bool reaches_alike(const LeafPlan& a, const LeafPlan& b)
{
    const bool same = a.map == b.map && a.inner == b.inner && !a.whole && !b.whole;
    return a.element_size == b.element_size && (same || (!a.writes && !b.writes) || (a.whole && b.whole));
}

void Launch::write_array(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    if (!is_packed(plan, leaf)) {
        Shape strides = element_strides(plan, leaf);
        write_view(plan, plan.views[0], leaf.address, leaf.shape, strides);
        return;
    }
    if (plan.writes && m_signature.reserved.append_to)
        fail_value(m_plan.label, ": argument ", plan.name, leaf.device_type ? " is a torch tensor" : " is a NumPy array",
                   " that would have to be read back; pass a Tensor when appending to a command encoder");
    // one upload for an array that is passed twice, so that both parameters see one content
    for (Upload& other : m_uploads)
        if (!other.own && m_signature.leaves[other.leaf].object == leaf.object && reaches_alike(plan, m_plan.leaves[other.leaf])) {
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
    for (const nb::object& item : leaf.items) {
        if (leaf.cols) {
            write_math(item.ptr());
            continue;
        }
        write_scalar(plan.scalar, bool_bytes, at, item.ptr(), path);
        at += plan.element_size;
    }
    return bytes;
}

/// The elements of a list as the type that a tensor or buffer parameter holds.
std::vector<uint8_t> Launch::pack_elements(const LeafPlan& plan, const Leaf& leaf)
{
    const TypeLayout& layout = *plan.value.layout;
    const size_t depth = plan.vector_dims + plan.inner.size();
    std::vector<uint8_t> bytes;
    auto pack = [&](auto& self, PyObject* value, size_t level, const ValuePath& path) -> void {
        if (level == depth) {
            const size_t at = bytes.size();
            bytes.resize(at + layout.stride, 0);
            return write_value(layout, bytes.data() + at, value, path, &m_value_owners);
        }
        const bool is_list = PyList_Check(value) || PyTuple_Check(value);
        if (!is_list || PySequence_Fast_GET_SIZE(value) != leaf.shape[level])
            fail_at(path, ErrorKind::value, cat("nested lists must have equal lengths: expected ", leaf.shape[level], " elements"));
        for (int64_t i = 0; i < leaf.shape[level]; ++i)
            self(self, PySequence_Fast_GET_ITEM(value, i), level + 1, ValuePath{&path, {}, i});
    };
    pack(pack, leaf.object, 0, ValuePath{nullptr, plan.name, 0});
    for (auto& owner : m_value_owners)
        m_keep.push_back(std::move(owner));
    m_value_owners.clear();
    return bytes;
}

void Launch::write_packed(size_t index, const LeafPlan& plan, const Leaf& leaf)
{
    if (plan.writes && leaf.kind != ValueKind::list && leaf.kind != ValueKind::vector && leaf.kind != ValueKind::matrix)
        fail_value(m_plan.label, ": argument ", plan.name, " cannot be written");
    Shape shape = shape_of(plan, leaf);
    uint64_t address;
    if (plan.value.layout) {
        address = upload(index, pack_elements(plan, leaf), false);
    } else if (leaf.packed) {
        ref<Buffer> buffer = packed_buffer(plan, leaf);
        address = buffer->device_address() ? buffer->device_address() : reinterpret_cast<uint64_t>(buffer->host_pointer());
        m_keep.push_back(ref<Object>(buffer.get()));
    } else {
        address = upload(index, pack_numbers(plan, leaf), false);
    }
    write_view(plan, plan.views[0], address, shape, shape.contiguous_strides());
}

/// The numbers of a packed list on the device: written by the first call that wants them as this scalar type.
ref<Buffer> Launch::packed_buffer(const LeafPlan& plan, const Leaf& leaf)
{
    for (const PackedArg::Upload& known : leaf.packed->uploads)
        if (known.leaf == leaf.packed_index && known.scalar == plan.scalar && known.element_size == plan.element_size &&
            known.buffer->frontend() == m_plan.device.get())
            return known.buffer;
    std::vector<uint8_t> bytes = pack_numbers(plan, leaf);
    BufferDesc desc;
    desc.size = std::max<size_t>(bytes.size(), 4);
    desc.struct_size = plan.element_size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::copy_destination | BufferUsage::copy_source;
    desc.label = "packed argument";
    ref<Buffer> buffer = m_plan.device->create_buffer(desc);
    if (!bytes.empty())
        m_plan.device->write_buffer(buffer, 0, bytes.data(), bytes.size());
    leaf.packed->uploads.push_back({leaf.packed_index, plan.scalar, plan.element_size, buffer});
    return buffer;
}

/// The numbers of a range are checked like any other number: the first and the last tell.
static void check_range(const LeafPlan& plan, const Generator& generator)
{
    const int64_t count = generator.shape[0];
    if (count == 0 || plan.scalar == ScalarType::none)
        return;
    const __int128 last = __int128(generator.offset[0]) + __int128(generator.stride[0]) * (count - 1);
    if (last != int64_t(last))
        fail(ErrorKind::overflow, plan.name, ": a range with numbers beyond 64 bits");
    uint8_t unused[8];
    for (int64_t number : {generator.offset[0], int64_t(last)})
        write_scalar(plan.scalar, 1, unused, nb::int_(number).ptr(), ValuePath{nullptr, plan.name, 0});
}

void Launch::write_generator(const LeafPlan& plan, const Leaf& leaf)
{
    auto* generator = nb::cast<Generator*>(nb::handle(leaf.object));
    if (generator->kind == GeneratorKind::range)
        check_range(plan, *generator);
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

uint64_t Launch::readback_memory(const LeafPlan& plan, PyObject* object, const TypeLayout& layout, ReadTo to)
{
    uint64_t size = layout.stride;
    if (m_signature.reserved.append_to)
        fail_value(m_plan.label, ": argument ", plan.name, " (", object ? Py_TYPE(object)->tp_name : "result",
                   ") would have to be read back on the host; pass a Tensor when appending to a command encoder");
    Readback readback{&layout, object, to, {}, {}};
    uint64_t address;
    if (m_on_host) {
        readback.bytes.assign((size + 7) / 8 + 1, 0);
        address = reinterpret_cast<uint64_t>(readback.bytes.data());
    } else {
        refuse_in_capture(cat(object ? "argument " + plan.name : std::string("the result"), " is copied to the host"));
        BufferDesc desc;
        desc.size = std::max<uint64_t>(size, 4);
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                     BufferUsage::copy_source;
        desc.uninitialized = true;
        readback.buffer = m_plan.device->create_buffer(desc);
        std::vector<uint8_t> zeros(desc.size, 0);
        if (object) // gradients are added to it
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
    if (plan.tangent.offset >= 0)
        put<uint64_t>(plan.tangent.offset, readback_memory(plan, leaf.object, *plan.tangent.layout, ReadTo::grad));
    if (plan.out.offset < 0)
        return;
    ReadTo to = plan.out_is_pair ? ReadTo::pair : plan.out_is_grad ? ReadTo::grad : ReadTo::value;
    const uint64_t address = readback_memory(plan, leaf.object, *plan.out.layout, to);
    put<uint64_t>(plan.out.offset, address);
    if (plan.sum_ratio)
        note_sums(plan, address, {}, {});
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
    if (leaf.kind == ValueKind::torch)
        torch_as_array(plan, m_signature.leaves[index]);
    if (leaf.kind == ValueKind::texture || leaf.kind == ValueKind::texture_view)
        return write_texture(index, plan, leaf);
    if (leaf.tensor) {
        if (leaf.tensor->offset != 0 || !(leaf.tensor->strides == leaf.tensor->shape.contiguous_strides()))
            fail_value(m_plan.label, ": argument ", plan.name,
                       " must be contiguous with offset 0 to be bound as a buffer; pass .contiguous()");
        check_device(index, *leaf.tensor->storage, "the tensor");
        bind_slot(plan.slot, ref<Object>(leaf.tensor->storage.get()));
    } else if (leaf.kind == ValueKind::buffer) {
        auto* buffer = nb::cast<Buffer*>(nb::handle(leaf.object));
        check_buffer(index, plan, *buffer);
        bind_slot(plan.slot, ref<Object>(buffer));
    } else if (leaf.kind == ValueKind::sampler) {
        auto* sampler = nb::cast<Sampler*>(nb::handle(leaf.object));
        check_device(index, *sampler, "the sampler");
        bind_slot(plan.slot, ref<Object>(sampler));
    } else {
        if (leaf.packed && leaf.kind == ValueKind::list && !plan.value.layout) {
            bind_slot(plan.slot, ref<Object>(packed_buffer(plan, leaf).get()));
            return;
        }
        // arrays and lists become a temporary structured buffer
        if (leaf.kind != ValueKind::array && leaf.kind != ValueKind::list)
            fail(ErrorKind::type, m_plan.label, ": argument ", plan.name, " cannot be bound as a resource");
        refuse_in_capture(cat("argument ", plan.name, " is copied from the host (pass a slangpy.Tensor)"));
        std::vector<uint8_t> bytes = leaf.kind == ValueKind::array ? pack_array(leaf, plan.element_size)
                                     : plan.value.layout           ? pack_elements(plan, leaf)
                                                                   : pack_numbers(plan, leaf);
        BufferDesc desc;
        desc.size = std::max<size_t>(bytes.size(), 4);
        desc.struct_size = plan.value.layout ? uint32_t(plan.value.layout->stride) : plan.element_size;
        desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                     BufferUsage::copy_source;
        ref<Buffer> buffer = m_plan.device->create_buffer(desc);
        if (!bytes.empty())
            m_plan.device->write_buffer(buffer, 0, bytes.data(), bytes.size());
        bind_slot(plan.slot, ref<Object>(buffer.get()));
        m_uploads.push_back({index, buffer, {}, plan.writes});
    }
}

/// An entry of a list of containers: what is stored goes into its row.
void Launch::write_entry(size_t index, const LeafPlan& plan)
{
    for (Table& table : m_tables) {
        if (table.leaf != size_t(plan.table))
            continue;
        m_bytes.swap(table.bytes);
        m_in_entry = true;
        try {
            write_leaf(index);
        } catch (...) {
            m_bytes.swap(table.bytes);
            m_in_entry = false;
            throw;
        }
        m_bytes.swap(table.bytes);
        m_in_entry = false;
    }
}

void Launch::finish_tables()
{
    for (Table& table : m_tables) {
        const LeafPlan& plan = m_plan.leaves[table.leaf];
        if (table.bytes.empty()) // a list of generators or resources: only its shape counts
            continue;
        uint64_t address = upload(table.leaf, std::move(table.bytes), false);
        write_view(plan, plan.views[0], address, plan.table_shape, plan.table_shape.contiguous_strides());
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
        if (plan.table >= 0 && !m_in_entry)
            return write_entry(index, plan);
        if (leaf.kind == ValueKind::torch)
            return write_torch(index, plan);
        return leaf.kind == ValueKind::tensor ? write_tensor(index, plan, leaf) : write_array(index, plan, leaf);
    case LeafKind::packed: return write_packed(index, plan, leaf);
    case LeafKind::generator: return write_generator(plan, leaf);
    case LeafKind::reference: return write_reference(plan, leaf);
    case LeafKind::pointer:
        return plan.table >= 0 && !m_in_entry ? write_entry(index, plan) : write_pointer(plan, leaf);
    case LeafKind::resource: return write_resource(index, plan, leaf);
    case LeafKind::custom: return write_custom(index, plan, leaf);
    case LeafKind::table: m_tables.push_back({index, std::vector<uint8_t>(plan.table_bytes)}); return;
    }
}

void Launch::stage_gradient(size_t index, const LeafPlan& plan, const TensorBase& grad, const ViewSlot& slot, bool added)
{
    for (size_t i = 0; added && i < grad.shape.size(); ++i)
        if (grad.strides[i] == 0 && grad.shape[i] > 1) // each element of the copy would have a part of the sum
            fail_value(m_plan.label, ": argument ", plan.name, ": its gradient of shape ", grad.shape.str(),
                       " has elements that share memory; pass a clone()");
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
    if (leaf.shape.element_count() == 0)
        return; // no memory to share; torch gives such tensors strides of any kind
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
        if (i == index || !other.device_type || other.shape.element_count() == 0 || other.strides != other.shape.contiguous_strides())
            continue;
        bool same = other.address == leaf.address && other.shape == leaf.shape && other.scalar == leaf.scalar;
        if (!same && other.address < end(leaf) && leaf.address < end(other))
            fail_runtime(m_plan.label, ": argument ", plan.name,
                         ": unsupported operation: some elements of the input tensor and the written-to tensor refer "
                         "to a single memory location. Please clone() the tensor before performing the operation.");
    }
}

} // namespace spy
