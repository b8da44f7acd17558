// How large a call is: its shape from the shapes of its arguments.
#include "call/stages/leaves.h"
#include "call/stages/repeat.h"
#include "core/class_name.h"
#include "core/python_names.h"
#include "values/torch.h"
#include "values/writer.h"

#include <array>

namespace spy {

namespace {

[[noreturn]] void fail_shape(const Call& call, const char* kind, size_t leaf, int64_t dim, int64_t got,
                             int64_t expected)
{
    nb::list shapes;
    for (const Leaf& other : call.signature.used())
        shapes.append(to_tuple(other.shape));
    call.plan.view.attr(in_python::fail_shape.name)(kind, leaf, dim, got, expected, shapes);
    fail_value(call.plan.label, ": ", kind, " of argument ", leaf); // fail_shape always raises
}

void check_inner(const Call& call, size_t index, const Shape& shape)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const size_t lead = spec.vector_dims();
    if (shape.size() != lead + spec.inner.size())
        fail_shape(call, "rank", index, -1, int64_t(shape.size()), int64_t(lead + spec.inner.size()));
    for (size_t i = 0; i < spec.inner.size(); ++i)
        if (spec.inner[i] >= 0 && shape[lead + i] != spec.inner[i])
            fail_shape(call, "inner", index, int64_t(lead + i), shape[lead + i], spec.inner[i]);
}

void merge_shape(const Call& call, Measured& measured, size_t index, const Shape& shape)
{
    const LeafSpec& spec = call.plan.leaves[index];
    for (uint32_t i = 0; i < spec.vector_dims(); ++i) {
        const int64_t size = shape[i];
        int64_t& merged = measured.shape[spec.map[i]];
        if (size == -1 || size == 1 || size == merged)
            continue;
        if (merged != 1)
            fail_shape(call, "mismatch", index, spec.map[i], size, merged);
        merged = size;
    }
}

Shape custom_shape(const Call& call, Measured& measured, size_t index)
{
    Leaf& leaf = call.leaf(index);
    nb::object sizes = call.plan.view.attr(in_python::custom_shape.name)(index, nb::handle(leaf.object));
    Shape shape;
    for (nb::handle size : sizes)
        shape.push_back(nb::cast<int64_t>(size));
    measured.custom.push_back({index, shape});
    leaf.shape = shape; // for messages
    return shape;
}

void measure_leaf(const Call& call, Measured& measured, size_t index)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const Leaf& leaf = call.leaf(index);
    if (spec.as<ViewSpec>() && (leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch)) {
        check_inner(call, index, leaf.shape);
        merge_shape(call, measured, index, leaf.shape);
    } else if (spec.as<ViewSpec>() || spec.as<PackedSpec>()) {
        const Shape shape = shape_of(spec, leaf);
        check_inner(call, index, shape);
        merge_shape(call, measured, index, shape);
    } else if (spec.vector_dims() && (spec.as<GeneratorSpec>() || spec.as<ResourceSpec>())) {
        merge_shape(call, measured, index, leaf.shape);
    } else if (const auto* table = spec.as<TableSpec>()) {
        merge_shape(call, measured, index, table->shape);
    } else if (spec.as<CustomSpec>()) {
        merge_shape(call, measured, index, custom_shape(call, measured, index));
    }
}

/// Whether a leaf is written at an element for each invocation. References keep the value of some one invocation, and
/// where a function writes to a tensor or a texture that it was given whole is its own matter.
bool is_spread_output(const LeafSpec& spec)
{
    if (!spec.writes || spec.whole)
        return false;
    const auto* resource = spec.as<ResourceSpec>();
    return spec.as<ViewSpec>() || (resource && resource->steps >= 0) || (spec.as<CustomSpec>() && spec.vector_dims());
}

/// What a call does to an output is `out[...] = f(...)`, which broadcasts f but not out.
void check_covered(const Call& call, const Measured& measured, size_t index)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const Leaf& leaf = call.leaf(index);
    const Shape &shape = measured.shape, own = shape_of(spec, leaf);
    std::array<bool, Shape::max_rank> covered{};
    for (uint32_t i = 0; i < spec.vector_dims(); ++i)
        covered[spec.map[i]] = own[i] == shape[spec.map[i]] || own[i] == -1;
    for (size_t i = 0; i < shape.size(); ++i)
        if (shape[i] > 1 && !covered[i])
            fail_value(call.plan.label, ": argument ", spec.name, " of shape ", own.str(),
                       " is written, but has no element of its own for each invocation of the call, whose shape is ",
                       shape.str(), "; pass one of that shape");
}

[[noreturn]] void fail_overlap(const Call& call, const LeafSpec& spec, const char* what)
{
    fail_runtime(call.plan.label, ": argument ", spec.name, ": unsupported operation: ", what,
                 " memory location. Please clone() the tensor before performing the operation.");
}

/// Of a torch tensor that is written, as torch has it: exact for tensors without gaps, silent about others.
void check_overlap(const Call& call, size_t index)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const Leaf& leaf = call.leaf(index);
    if (leaf.shape.element_count() == 0)
        return; // no memory to share; torch gives such tensors strides of any kind
    for (size_t i = 0; i < leaf.shape.size(); ++i)
        if (leaf.strides[i] == 0 && leaf.shape[i] > 1)
            fail_overlap(call, spec, "more than one element of the written-to tensor refers to a single");
    if (leaf.strides != leaf.shape.contiguous_strides())
        return;
    auto end = [](const Leaf& l) { return l.address + uint64_t(l.shape.element_count()) * scalar_info(l.scalar).size; };
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const Leaf& other = call.leaf(i);
        if (i == index || !other.device_type || other.shape.element_count() == 0 ||
            other.strides != other.shape.contiguous_strides())
            continue;
        const bool same = other.address == leaf.address && other.shape == leaf.shape && other.scalar == leaf.scalar;
        if (!same && other.address < end(leaf) && leaf.address < end(other))
            fail_overlap(call, spec, "some elements of the input tensor and the written-to tensor refer to a single");
    }
}

void apply_thread_count(const Call& call, Measured& measured)
{
    PyObject* count = call.signature.reserved.thread_count;
    if (!count)
        return;
    const std::string& label = call.plan.label;
    if (!PyLong_Check(count) || PyBool_Check(count))
        fail_value(label, ": _thread_count must be a positive int, got ", class_name(count));
    int64_t threads = PyLong_AsLongLong(count);
    if (threads <= 0) {
        PyErr_Clear();
        fail_value(label, ": _thread_count must be a positive int, got ", short_repr(count));
    }
    if (call.plan.call_rank != 0)
        fail_value(label, ": _thread_count needs a zero-dimensional call, but the call rank is ", call.plan.call_rank,
                   " with shape ", measured.shape.str());
    measured.total = threads;
}

/// Without a torch argument, results go to the torch device whose tensors the module's device takes.
void find_torch_like(const Call& call, Measured& measured)
{
    nb::object made = call.plan.view.attr(in_python::torch_like.name)();
    TorchTensor found;
    read_torch(made.ptr(), found);
    measured.torch_default = std::make_unique<Leaf>();
    measured.torch_default->object = made.ptr();
    measured.torch_default->scalar = found.scalar;
    measured.torch_default->device_type = found.device_type;
    measured.torch_default->device_index = found.device_index;
    call.signature.keep.push_back(std::move(made));
    measured.torch_like = measured.torch_default.get();
}

/// The torch argument that decides where the call runs: a CPU number beside CUDA tensors does not.
void note_torch(Measured& measured, const Leaf& leaf)
{
    if (leaf.device_type && (!measured.torch_like || (measured.torch_like->device_type == 1 && leaf.device_type == 2)))
        measured.torch_like = &leaf;
}

} // namespace

Measured measure_again(const Call& call, const Repeat& repeat)
{
    Measured measured;
    measured.shape = repeat.shape;
    measured.total = repeat.total;
    if (call.signature.has_torch)
        for (const Leaf& leaf : call.signature.used())
            note_torch(measured, leaf);
    measured.stream = torch_call_stream(call.options, measured.torch_like);
    return measured;
}

Measured measure(const Call& call)
{
    Measured measured;
    for (uint32_t i = 0; i < call.plan.call_rank; ++i)
        measured.shape.push_back(1);
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const Leaf& leaf = call.leaf(i);
        note_torch(measured, leaf);
        if (call.plan.leaves[i].writes && leaf.kind == ValueKind::torch)
            check_overlap(call, i);
        measure_leaf(call, measured, i);
    }
    for (size_t i = 0; i < call.leaf_count(); ++i)
        if (is_spread_output(call.plan.leaves[i]))
            check_covered(call, measured, i);
    measured.total = measured.shape.element_count();
    apply_thread_count(call, measured);
    if (!measured.torch_like && call.plan.result.mode == ResultMode::torch && !call.recorder)
        find_torch_like(call, measured);
    measured.stream = torch_call_stream(call.options, measured.torch_like);
    return measured;
}

int64_t tiles(const Call& call, const Measured& measured)
{
    if (call.plan.tile.empty())
        return measured.total;
    int64_t count = 1;
    for (size_t i = 0; i < measured.shape.size(); ++i)
        count *= (measured.shape[i] + call.plan.tile[i] - 1) / call.plan.tile[i];
    return count;
}

} // namespace spy
