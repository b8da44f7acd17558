// Views of memory as arguments: tensors of ours and of torch, and host arrays.
#include "call/stages/write/writing.h"

#include "values/numpy.h"
#include "values/torch.h"

namespace spy {

namespace {

int32_t stride32(const Writing& w, const LeafSpec& spec, int64_t stride)
{
    if (stride != int32_t(stride))
        fail_value(w.label(), ": argument ", spec.name, " has a stride of ", stride,
                   " elements; kernels take strides up to 2147483647: pass a contiguous copy");
    return int32_t(stride);
}

/// Of a view of vectors over floats: those of one vector lie side by side, and on a GPU the first begins at a multiple
/// of its size.
void check_vectors(const Writing& w, const LeafSpec& spec, uint64_t address, const Shape& shape, const Shape& strides,
                   uint32_t vectors)
{
    const size_t rank = shape.size();
    if (vectors < 2)
        return;
    if (rank && shape[rank - 1] > 1 && strides[rank - 1] != 1)
        fail_value(w.label(), ": argument ", spec.name, " has a stride of ", strides[rank - 1],
                   " elements in its last dimension; a TensorView<float", vectors, "> takes ", vectors,
                   " floats that lie side by side: pass a contiguous copy");
    const uint64_t size = sizeof(float) * (vectors == 3 ? 1 : vectors);
    if (w.call.plan.device->info().type == DeviceType::cuda && address % size && shape.element_count() > 0)
        fail_value(w.label(), ": argument ", spec.name, " does not begin at a multiple of ", size,
                   " bytes, where a GPU reads the vectors of a TensorView<float", vectors, ">; pass a copy");
}

/// Of a tensor of vectors over an array of scalars: those of one vector lie side by side, and the vectors lie at
/// multiples of their size. One whose address is taken is contiguous.
void check_packs(const Writing& w, const LeafSpec& spec, const ViewSpec& view, uint64_t address, const Shape& shape,
                 const Shape& strides)
{
    if (view.packs == 1) {
        bool follows = true;
        int64_t step = 1;
        for (size_t i = shape.size(); i-- > 0; step *= shape[i])
            follows &= shape[i] == 1 || strides[i] == step;
        if (!follows && shape.element_count() > 0)
            fail_value(w.label(), ": argument ", spec.name, " has strides of ", strides.str(),
                       " elements; the function "
                       "takes the address of its numbers, one after the other: pass a contiguous copy");
        return;
    }
    const size_t last = shape.size() - 1;
    bool fits = shape[last] == 1 || strides[last] == 1;
    for (size_t i = 0; i < last; ++i)
        fits &= shape[i] == 1 || strides[i] % int64_t(view.packs) == 0;
    const uint64_t size = uint64_t(view.element.size) * (view.packs == 3 ? 1 : view.packs);
    fits &= w.call.plan.device->info().type != DeviceType::cuda || address % size == 0;
    if (!fits && shape.element_count() > 0)
        fail_value(w.label(), ": argument ", spec.name, " has strides of ", strides.str(),
                   " elements; a tensor of vectors takes ", view.packs,
                   " numbers that lie side by side, and vectors at multiples of their size: pass a contiguous copy");
}

/// A TensorView holds its strides as 32-bit numbers of bytes without sign.
void check_view_strides(const Writing& w, const LeafSpec& spec, const Shape& shape, const Shape& strides, int64_t item)
{
    for (size_t i = 0; i < shape.size(); ++i)
        if (shape[i] > 1 && (strides[i] < 0 || strides[i] * item > int64_t(UINT32_MAX)))
            fail_value(w.label(), ": argument ", spec.name, " has a stride of ", strides[i], " elements in dimension ",
                       i, "; a TensorView takes strides of 0 to 4294967295 bytes: pass a contiguous copy");
}

/// Bytes of one element of a container, at most.
int64_t item_of(const ViewSpec& view, const Leaf& leaf, ViewSource source)
{
    if (leaf.tensor)
        return int64_t(tensor_of(leaf, source).layout->stride);
    return source == ViewSource::primal ? view.element.size : sizeof(double);
}

const Apart* apart_of(const Placed& placed, size_t leaf, ViewSource source)
{
    for (const Apart& apart : placed.apart)
        if (apart.leaf == leaf && apart.source == source)
            return &apart;
    return nullptr;
}

/// A gradient that the function adds to at places of its choice: threads may have copies of it.
void note_added(Writing& w, size_t index, const ViewSpec& view, uint64_t address, const Shape& shape,
                const Shape& strides)
{
    const Call& call = w.call;
    const Leaf& leaf = w.leaf(index);
    const bool is_read = view.has(ViewSource::grad_in); // what was added must be there at once
    if (!w.spec(index).whole || is_read || call.recorder || call.signature.deterministic || view.sums.ratio ||
        call.plan.traits.is_forward_mode)
        return;
    const bool on_cpu = call.plan.device->info().type == DeviceType::cpu;
    if (!on_cpu && !(call.plan.traits.can_privatize && w.measured.total >= privatized_least))
        return;
    ScalarType scalar = ScalarType::none;
    uint32_t item = 0;
    if (leaf.tensor) {
        const TypeLayout& layout = *tensor_of(leaf, ViewSource::grad_out).layout;
        const bool is_plain = layout.kind == TypeKind::scalar || layout.kind == TypeKind::vector;
        scalar = is_plain ? layout.scalar : ScalarType::none;
        item = layout.stride;
    } else if (leaf.grads[1]) {
        scalar = ScalarType(leaf.grads[1]->type_id);
        item = leaf.grads[1]->raw_item;
    }
    if (scalar != ScalarType::float32 && scalar != ScalarType::float64)
        return;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0)
            return;
        (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    }
    w.out.added.push_back({index, address + uint64_t(low * int64_t(item)), uint64_t(high - low + 1) * item,
                           scalar == ScalarType::float64});
}

/// One view of a leaf; sums of its gradient are noted.
void write_source(Writing& w, size_t index, const ViewSpec& view, ViewSource source, uint64_t address,
                  const Shape& shape, const Shape& strides)
{
    write_view(w, w.spec(index), view.views[size_t(source)], address, shape, strides, view.vectors);
    if (view.vectors)
        check_view_strides(w, w.spec(index), shape, strides, item_of(view, w.leaf(index), source));
    if (view.packs)
        check_packs(w, w.spec(index), view, address, shape, strides);
    if (source != ViewSource::grad_out)
        return;
    if (view.sums.ratio)
        note_sums(w, index, view.sums, address, shape, strides);
    note_added(w, index, view, address, shape, strides);
}

void write_tensor(Writing& w, size_t index, const ViewSpec& view)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    for (size_t i = 0; i < size_t(ViewSource::count_); ++i) {
        const ViewSlot& slot = view.views[i];
        if (slot.data < 0)
            continue;
        const TensorBase& tensor = tensor_of(leaf, ViewSource(i));
        check_device(w, index, *tensor.storage, slot_names[i]);
        if (!(tensor.shape == leaf.shape))
            fail_value(w.label(), ": the ", slot_names[i], " of argument ", spec.name, " has shape ",
                       tensor.shape.str(), ", but its tensor has shape ", leaf.shape.str());
        const Apart* apart = w.placed.apart.empty() ? nullptr : apart_of(w.placed, index, ViewSource(i));
        write_source(w, index, view, ViewSource(i), apart ? apart->address : tensor.address(), tensor.shape,
                     tensor.strides);
        w.put<int64_t>(slot.first, apart ? apart->first : tensor.offset);
        if (!w.call.on_host || w.call.recorder || w.call.is_prepared)
            w.keep(ref<Object>(tensor.storage.get()));
    }
}

/// The call runs later: the tensor stays, and is looked at again before.
void guard_torch(Writing& w, size_t index, PyObject* tensor, const TorchPlace& place, const char* part)
{
    w.keep(ref<Object>(new TorchGuard(tensor, place, cat(w.label(), ": ", part, "argument ", w.spec(index).name))));
}

/// A torch tensor whose memory the device reads in place.
void write_torch(Writing& w, size_t index, const ViewSpec& view)
{
    const Leaf& leaf = w.leaf(index);
    const bool is_later = w.call.recorder || w.call.is_prepared;
    if (is_later && !(leaf.flags & value_flag::no_primal))
        guard_torch(w, index, leaf.object, torch_place(leaf.object, leaf.scalar, leaf.shape, leaf.strides), "");
    write_source(w, index, view, ViewSource::primal, leaf.address, leaf.shape, leaf.strides);
    const auto grads = gradients(view, leaf);
    for (size_t i = 0; i < 2; ++i) {
        if (!grads[i])
            continue;
        const TensorBase& grad = *grads[i];
        if (is_later)
            guard_torch(w, index, grad.dtype.ptr(),
                        torch_place(grad.dtype.ptr(), ScalarType(grad.type_id), grad.shape, grad.strides),
                        "the gradient of ");
        write_source(w, index, view, ViewSource(i + 1), grad.raw_address, grad.shape, grad.strides);
    }
}

/// A gradient of torch in memory that the device cannot read; `added`: what the kernel makes of it goes back.
uint64_t stage_gradient(Writing& w, size_t index, const ViewSpec& view, const TensorBase& grad, bool added)
{
    for (size_t i = 0; added && i < grad.shape.size(); ++i)
        if (grad.strides[i] == 0 && grad.shape[i] > 1) // each element of the copy would have a part of the sum
            fail_value(w.label(), ": argument ", w.spec(index).name, ": its gradient of shape ", grad.shape.str(),
                       " has elements that share memory; pass a clone()");
    auto copy = std::make_unique<Leaf>();
    copy->kind = ValueKind::array;
    copy->scalar = ScalarType(grad.type_id);
    copy->address = grad.raw_address;
    copy->shape = grad.shape;
    copy->strides = grad.strides;
    for (size_t i = 0; i < copy->strides.size(); ++i)
        copy->strides[i] *= grad.raw_item;
    const uint64_t address = upload(w, index, pack_array(*copy, grad.raw_item), added, grad.raw_item);
    w.out.pending.uploads.back().own = std::move(copy);
    write_source(w, index, view, ViewSource(added ? 2 : 1), address, grad.shape, grad.shape.contiguous_strides());
    return address;
}

void stage_gradients(Writing& w, size_t index, const ViewSpec& view)
{
    refuse_prepared(w.call, "argument ", w.spec(index).name,
                    " is a torch tensor that is copied to the device and back at each call; pass a Tensor");
    const auto grads = gradients(view, w.leaf(index));
    const bool shared = grads[0] && grads[1] && grads[0]->raw_address == grads[1]->raw_address;
    uint64_t address = 0;
    for (size_t i = shared ? 1 : 0; i < 2; ++i)
        if (grads[i])
            address = stage_gradient(w, index, view, *grads[i], i == 1);
    if (shared) // in place: kernels tell by the address
        write_source(w, index, view, ViewSource::grad_in, address, grads[0]->shape,
                     grads[0]->shape.contiguous_strides());
}

/// Whether one copy of an array serves two parameters: what one writes, no other invocation reads.
bool reaches_alike(const LeafSpec& a, const LeafSpec& b)
{
    const auto *first = a.as<ViewSpec>(), *second = b.as<ViewSpec>();
    const bool same = a.map == b.map && a.inner == b.inner && !a.whole && !b.whole;
    return first && second && first->element.size == second->element.size &&
        (same || (!a.writes && !b.writes) || (a.whole && b.whole));
}

/// The upload of an array that is passed twice, so that both parameters see one content; null: there is none yet.
Upload* upload_of(Writing& w, size_t index)
{
    for (Upload& other : w.out.pending.uploads)
        if (!other.own && w.leaf(other.leaf).object == w.leaf(index).object &&
            reaches_alike(w.spec(index), w.spec(other.leaf)))
            return &other;
    return nullptr;
}

void write_array(Writing& w, size_t index, const ViewSpec& view)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    if (w.call.is_prepared && leaf.object && is_numpy_array(leaf.object))
        w.keep(ref<Object>(new ArrayGuard(leaf.object, cat(w.label(), ": argument ", spec.name))));
    if (!is_copied(w.call, view.element, leaf))
        return write_source(w, index, view, ViewSource::primal, leaf.address, leaf.shape, element_strides(spec, leaf));
    if (spec.writes && w.call.recorder)
        fail_value(w.label(), ": argument ", spec.name, leaf.device_type ? " is a torch tensor" : " is a NumPy array",
                   " that would have to be read back; pass a Tensor when appending to a command encoder");
    refuse_prepared(w.call, "argument ", spec.name, leaf.device_type ? " is a torch tensor" : " is a NumPy array",
                    " that is copied for the kernel at each call; pass a Tensor");
    uint64_t address;
    if (Upload* other = upload_of(w, index)) {
        other->write_back |= spec.writes;
        address = other->buffer ? other->buffer->device_address() : reinterpret_cast<uint64_t>(other->bytes.data());
    } else {
        address = upload(w, index, pack_array(leaf, view.element.size), spec.writes, view.element.size);
    }
    write_source(w, index, view, ViewSource::primal, address, leaf.shape, leaf.shape.contiguous_strides());
}

} // namespace

void write_view(Writing& w, const LeafSpec& spec, const ViewSlot& slot, uint64_t address, const Shape& shape,
                const Shape& strides, uint32_t vectors)
{
    w.put<uint64_t>(slot.data, address);
    if (vectors)
        check_vectors(w, spec, address, shape, strides, vectors);
    const uint32_t lead = spec.vector_dims();
    for (uint32_t i = 0; i < lead && slot.lead_strides >= 0; ++i)
        w.put<int32_t>(slot.lead_strides + int32_t(4 * i), shape[i] == 1 ? 0 : stride32(w, spec, strides[i]));
    for (size_t i = 0; i < spec.inner.size(); ++i) {
        const size_t dim = lead + i;
        if (slot.inner_strides >= 0)
            w.put<int32_t>(slot.inner_strides + int32_t(4 * i),
                           shape[dim] == 1 ? int32_t(strides[dim]) : stride32(w, spec, strides[dim]));
        if (slot.inner_shape < 0)
            continue;
        if (shape[dim] > int64_t(UINT32_MAX))
            fail_value(w.label(), ": argument ", spec.name, " has a dimension of ", shape[dim],
                       " elements; parameters of tensor type take up to 4294967295: pass parts of it");
        w.put<uint32_t>(slot.inner_shape + int32_t(4 * i), uint32_t(shape[dim]));
    }
}

/// Kernels never find null where they read or add a gradient: the call has it, or the plan is not for such calls.
static void require_gradients(const Writing& w, size_t index, const ViewSpec& view)
{
    const Leaf& leaf = w.leaf(index);
    for (const ViewSource source : {ViewSource::grad_in, ViewSource::grad_out}) {
        const nb::object* attached = !leaf.tensor ? nullptr
            : source == ViewSource::grad_in       ? &leaf.tensor->grad_in
                                                  : &leaf.tensor->grad_out;
        const bool is_there = attached ? !attached->is_none() : leaf.grads[size_t(source) - 1] != nullptr;
        if (view.has(source) && !is_there)
            fail_runtime(w.label(), ": argument ", w.spec(index).name, " has no ", slot_names[size_t(source)],
                         ", which this kernel uses; pass one, a slangpy.diff_pair or a Tensor with_grads()");
    }
}

void write_kind(Writing& w, size_t index, const ViewSpec& view)
{
    if (view.table >= 0 && !w.in_entry)
        return write_entry(w, index, view.table);
    const Leaf& leaf = w.leaf(index);
    require_gradients(w, index, view);
    if (leaf.kind == ValueKind::torch)
        return write_torch(w, index, view);
    if (leaf.kind == ValueKind::tensor)
        return write_tensor(w, index, view);
    if (leaf.device_type)
        stage_gradients(w, index, view);
    write_array(w, index, view);
}

} // namespace spy
