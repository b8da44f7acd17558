// Values as arguments: numbers, lists, generators, pointers, references.
#include "call/stages/write/writing.h"
#include "core/class_name.h"
#include "core/python_names.h"
#include "values/math.h"
#include "values/writer.h"

#include <algorithm>

namespace spy {

namespace {

/// The components of a vector or matrix as the kernel's scalar type; gives the place after them.
uint8_t* write_components(const ElementSpec& element, PyObject* value, uint8_t* at, const ValuePath& path)
{
    const MathTypeInfo* info = find_math_base(Py_TYPE(value));
    const uint8_t* source = static_cast<const uint8_t*>(math_data(value));
    const uint32_t item = info->size / info->count;
    const uint32_t bool_bytes = element.scalar == ScalarType::bool_ ? element.size : 1;
    for (uint32_t i = 0; i < info->count; ++i, at += element.size, source += item) {
        if (info->scalar == element.scalar) {
            std::memcpy(at, source, std::min(item, element.size)); // what is wider is zero before
        } else {
            nb::object number = nb::steal(PySequence_GetItem(value, Py_ssize_t(i)));
            write_scalar(element.scalar, bool_bytes, at, number.ptr(), path);
        }
    }
    return at;
}

/// Whether an integer type holds all numbers between two, which may be in either order.
bool holds(ScalarType scalar, __int128 first, __int128 last)
{
    const ScalarInfo& info = scalar_info(scalar);
    const __int128 limit = __int128(1) << (info.size * 8 - (info.is_signed ? 1 : 0));
    const __int128 least = info.is_signed ? -limit : 0;
    return std::min(first, last) >= least && std::max(first, last) < limit;
}

/// Integers that a kernel makes are checked like any other number: the first and the last tell.
void check_ends(const std::string& name, ScalarType scalar, int64_t first, __int128 last)
{
    if (holds(scalar, first, last))
        return;
    if (last != int64_t(last))
        fail(ErrorKind::overflow, name, ": numbers beyond 64 bits, which no parameter takes");
    uint8_t unused[8];
    for (int64_t number : {first, int64_t(last)})
        write_scalar(scalar, 1, unused, nb::int_(number).ptr(), ValuePath{nullptr, name, 0});
}

int64_t count_of(const Writing& w, const LeafSpec& leaf, const Generator& generator, size_t dim)
{
    const int64_t own = generator.shape[dim];
    return own >= 0 || dim >= leaf.map.size() ? own : w.measured.shape[leaf.map[dim]];
}

void check_numbers(const Writing& w, const LeafSpec& leaf, ScalarType scalar, const Generator& generator)
{
    if (scalar == ScalarType::none || !w.measured.total)
        return;
    if (generator.kind == GeneratorKind::thread_id)
        check_ends(leaf.name, scalar, 0, w.measured.total - 1);
    if (generator.kind == GeneratorKind::call_id)
        for (size_t i = 0; i < w.measured.shape.size(); ++i)
            check_ends(leaf.name, scalar, 0, w.measured.shape[i] - 1);
    if (generator.kind == GeneratorKind::range || generator.kind == GeneratorKind::grid)
        for (size_t i = 0; i < generator.shape.size(); ++i)
            check_ends(leaf.name, scalar, generator.offset[i],
                       generator.offset[i] + __int128(generator.stride[i]) * (count_of(w, leaf, generator, i) - 1));
}

/// A number that a reference holds for a vector: that many of it, as where the number itself is passed. Else null.
nb::object widened_number(const ValueSlot& slot, PyObject* value)
{
    Number number;
    if (slot.offset < 0 || slot.layout->kind != TypeKind::vector || !value || PySequence_Check(value) ||
        !number_from_python(value, number))
        return {};
    nb::list components;
    for (uint32_t i = 0; i < slot.layout->cols; ++i)
        components.append(nb::handle(value));
    return components;
}

} // namespace

std::vector<uint8_t> pack_numbers(const LeafSpec& spec, const ElementSpec& element, const Leaf& leaf)
{
    const uint32_t bool_bytes = element.scalar == ScalarType::bool_ ? element.size : 1;
    std::vector<uint8_t> bytes(size_t(full_shape(leaf).element_count()) * element.size);
    uint8_t* at = bytes.data();
    const ValuePath path{nullptr, spec.name, 0};
    if (leaf.kind != ValueKind::list)
        write_components(element, leaf.object, at, path);
    for (const nb::object& item : leaf.items) {
        if (leaf.cols) {
            at = write_components(element, item.ptr(), at, path);
            continue;
        }
        write_scalar(element.scalar, bool_bytes, at, item.ptr(), path);
        at += element.size;
    }
    return bytes;
}

std::vector<uint8_t> pack_elements(Writing& w, const LeafSpec& spec, const TypeLayout& layout, const Leaf& leaf)
{
    const size_t depth = spec.vector_dims() + spec.inner.size();
    std::vector<uint8_t> bytes;
    std::vector<ref<Object>> owners; // of pointers inside of elements
    auto pack = [&](auto& self, PyObject* value, size_t level, const ValuePath& path) -> void {
        if (level == depth) {
            const size_t at = bytes.size();
            bytes.resize(at + layout.stride, 0);
            return write_value(layout, bytes.data() + at, value, path, &owners, w.call.plan.device.get());
        }
        const bool is_list = PyList_Check(value) || PyTuple_Check(value);
        if (!is_list || PySequence_Fast_GET_SIZE(value) != leaf.shape[level])
            fail_at(path, ErrorKind::value,
                    cat("nested lists must have equal lengths: expected ", leaf.shape[level], " elements"));
        for (int64_t i = 0; i < leaf.shape[level]; ++i)
            self(self, PySequence_Fast_GET_ITEM(value, i), level + 1, ValuePath{&path, {}, i});
    };
    pack(pack, leaf.object, 0, ValuePath{nullptr, spec.name, 0});
    for (auto& owner : owners)
        w.keep(std::move(owner));
    return bytes;
}

ref<Buffer> packed_buffer(Writing& w, const LeafSpec& spec, const ElementSpec& element, const Leaf& leaf)
{
    Device& device = *w.call.plan.device;
    for (const PackedArg::Upload& known : leaf.packed->uploads)
        if (known.leaf == leaf.packed_index && known.scalar == element.scalar && known.element_size == element.size &&
            known.buffer->frontend() == &device)
            return known.buffer;
    const std::vector<uint8_t> bytes = pack_numbers(spec, element, leaf);
    BufferDesc desc;
    desc.size = std::max<size_t>(bytes.size(), 4);
    desc.struct_size = element.size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::copy_destination | BufferUsage::copy_source;
    desc.label = "packed argument";
    ref<Buffer> buffer = device.create_buffer(desc);
    if (!bytes.empty())
        device.write_buffer(buffer, 0, bytes.data(), bytes.size());
    leaf.packed->uploads.push_back({leaf.packed_index, element.scalar, element.size, buffer});
    return buffer;
}

void write_kind(Writing& w, size_t index, const PackedSpec& packed)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    if (spec.writes && leaf.kind != ValueKind::list && leaf.kind != ValueKind::vector && leaf.kind != ValueKind::matrix)
        fail_value(w.label(), ": argument ", spec.name,
                   " cannot be written: the function writes to it; pass a Tensor or an array");
    const Shape shape = shape_of(spec, leaf);
    uint64_t address;
    if (packed.element.layout) {
        address = upload(w, index, pack_elements(w, spec, *packed.element.layout, leaf), false, packed.element.size);
    } else if (leaf.packed) {
        ref<Buffer> buffer = packed_buffer(w, spec, packed.element, leaf);
        address = address_of(*buffer);
        w.keep(ref<Object>(buffer.get()));
    } else {
        address = upload(w, index, pack_numbers(spec, packed.element, leaf), false, packed.element.size);
    }
    write_view(w, spec, packed.view, address, shape, shape.contiguous_strides(), packed.vectors);
}

void write_kind(Writing& w, size_t index, const GeneratorSpec& spec)
{
    auto* generator = nb::cast<Generator*>(nb::handle(w.leaf(index).object));
    check_numbers(w, w.spec(index), spec.scalar, *generator);
    w.put<uint32_t>(spec.seed, generator->seed);
    if (spec.seed >= 0)
        w.put<uint32_t>(spec.seed + 4, generator->warmup);
    if (spec.min >= 0) {
        w.put<float>(spec.min, float(generator->min));
        w.put<float>(spec.max, float(generator->max));
    }
    for (size_t i = 0; i < generator->shape.size(); ++i) {
        if (spec.offset >= 0)
            w.put<int64_t>(spec.offset + int32_t(8 * i), generator->offset[i]);
        if (spec.stride >= 0)
            w.put<int64_t>(spec.stride + int32_t(8 * i), generator->shape[i] == 1 ? 0 : generator->stride[i]);
    }
}

void write_value_slot(Writing& w, const ValueSlot& slot, PyObject* value, const std::string& name)
{
    if (slot.offset < 0)
        return;
    std::vector<ref<Object>> keep;
    write_value(*slot.layout, w.out.arguments.bytes.data() + slot.offset, value, ValuePath{nullptr, name, 0}, &keep,
                w.call.plan.device.get());
    for (auto& object : keep)
        w.keep(std::move(object));
}

void write_kind(Writing& w, size_t index, const ValueSpec& value)
{
    write_value_slot(w, value.value, w.leaf(index).object, w.spec(index).name);
}

uint64_t readback_memory(Writing& w, const std::string& name, PyObject* object, const TypeLayout& layout, ReadTo to)
{
    const uint64_t size = layout.stride;
    if (w.call.recorder)
        fail_value(w.label(), ": argument ", name, " (", object ? class_name(object) : "result",
                   ") would have to be read back on the host; pass a Tensor when appending to a command encoder");
    Readback readback{&layout, object, to, {}, {}};
    uint64_t address;
    if (w.call.on_host) {
        readback.bytes.assign((size + 7) / 8 + 1, 0);
        address = reinterpret_cast<uint64_t>(readback.bytes.data());
    } else {
        refuse_in_capture(w.call, w.measured, object ? "argument " + name : std::string("the result"),
                          " is copied to the host");
        readback.buffer = temporary_buffer(w.call, std::max<uint64_t>(size, 4));
        const std::vector<uint8_t> zeros(readback.buffer->desc().size, 0);
        if (object) // gradients are added to it
            w.call.plan.device->write_buffer(readback.buffer, 0, zeros.data(), zeros.size());
        address = readback.buffer->device_address();
    }
    w.out.pending.readbacks.push_back(std::move(readback));
    return address;
}

void write_kind(Writing& w, size_t index, const ReferenceSpec& reference)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    PyObject *value = leaf.object, *grad = nullptr;
    if (leaf.kind == ValueKind::value_ref) {
        value = nb::cast<ValueRef*>(nb::handle(leaf.object))->value.ptr();
    } else if (leaf.kind == ValueKind::diff_pair) {
        auto* pair = nb::cast<DiffPair*>(nb::handle(leaf.object));
        value = pair->primal.ptr();
        grad = pair->grad.ptr();
    }
    const nb::object widened = widened_number(reference.value, value);
    write_value_slot(w, reference.value, widened ? widened.ptr() : value, spec.name);
    if (grad && grad != Py_None)
        write_value_slot(w, reference.seed, grad, spec.name + ".grad");
    const ValueSlot &tangent = reference.tangent, &out = reference.out;
    if (tangent.offset >= 0)
        w.put<uint64_t>(tangent.offset, readback_memory(w, spec.name, leaf.object, *tangent.layout, ReadTo::grad));
    if (out.offset < 0)
        return;
    const ReadTo to = reference.out_is_pair ? ReadTo::pair : reference.out_is_grad ? ReadTo::grad : ReadTo::value;
    const uint64_t address = readback_memory(w, spec.name, leaf.object, *out.layout, to);
    w.put<uint64_t>(out.offset, address);
    if (reference.sums.ratio)
        note_sums(w, index, reference.sums, address, {}, {});
}

void write_kind(Writing& w, size_t index, const PointerSpec& pointer)
{
    if (pointer.table >= 0 && !w.in_entry)
        return write_entry(w, index, pointer.table);
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    uint64_t address = 0;
    ref<Object> owner;
    if (leaf.tensor) {
        if (!(leaf.tensor->strides == leaf.tensor->shape.contiguous_strides()))
            fail_value(w.label(), ": argument ", spec.name, " must be contiguous to serve as a pointer");
        address = leaf.address;
        owner = ref<Object>(leaf.tensor->storage.get());
    } else if (!pointer_from_python(leaf.object, address, owner, ValuePath{nullptr, spec.name, 0})) {
        fail(ErrorKind::type, w.label(), ": argument ", spec.name, " must be an address, Buffer or Tensor, got ",
             class_name(leaf.object));
    }
    w.put<uint64_t>(pointer.value.offset, address);
    if (owner)
        w.keep(std::move(owner));
}

void write_kind(Writing& w, size_t index, const CustomSpec& custom)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    if (spec.writes && w.call.recorder)
        fail_value(w.label(), ": argument ", spec.name, " (", class_name(leaf.object),
                   ") would have to be read back on the host; pass a Tensor when appending to a command encoder");
    for (const CustomShape& known : w.measured.custom) {
        if (known.leaf != index)
            continue;
        nb::object data = w.call.plan.view.attr(in_python::custom_calldata.name)(index, nb::handle(leaf.object));
        write_value_slot(w, custom.value, data.ptr(), spec.name);
        for (uint32_t i = 0; i < spec.vector_dims() && custom.steps >= 0; ++i) // a size of 1 is spread
            w.put<int64_t>(custom.steps + int32_t(8 * i), known.shape[i] == 1 ? 0 : 1);
        w.out.pending.custom.push_back({index, std::move(data)});
    }
}

} // namespace spy
