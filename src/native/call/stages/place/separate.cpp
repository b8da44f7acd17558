// Arguments that share memory with one that is written: what is read is read before, as in NumPy's ufuncs.
#include "call/stages/place/separate.h"

#include "call/stages/leaves.h"
#include "call/stages/place/overlap.h"
#include "device/encoder.h"
#include "device/submit.h"
#include "values/numpy.h"

#include <utility>

namespace spy {

namespace {

/// Memory that a kernel reaches through one argument, or through one of its gradients.
struct Access {
    size_t leaf;
    ViewSource source;
    bool reads, writes;
    bool adds;    ///< sums, which may meet
    bool on_host; ///< else an address of the device
    uint64_t address;
    int64_t item;
    int64_t unit; ///< bytes of a stride of 1
    const Shape *shape, *strides;
    uint64_t begin = 0, end = 0; ///< of the range that holds all elements; empty without elements

    void measure();
    MemoryView memory() const;
};

void Access::measure()
{
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < shape->size(); ++i) {
        const int64_t last = (*shape)[i] - 1, reach = last * (*strides)[i] * unit;
        if (last < 0)
            return;
        (reach < 0 ? low : high) += reach;
    }
    begin = address + uint64_t(low);
    end = address + uint64_t(high + item);
}

MemoryView Access::memory() const
{
    MemoryView view{address, item, *shape, *strides};
    for (size_t i = 0; i < view.strides.size(); ++i)
        view.strides[i] *= unit;
    return view;
}

std::string access_name(const Call& call, const Access& access)
{
    return cat(access.source == ViewSource::primal ? "argument " : "the gradient of argument ",
               call.plan.leaves[access.leaf].name);
}

void add(std::vector<Access>& found, Access access)
{
    access.measure();
    found.push_back(access);
}

/// A tensor of ours, and its gradients.
void find_tensor(const Call& call, size_t i, const ViewSpec& view, bool reads, bool writes, std::vector<Access>& found)
{
    const Leaf& leaf = call.leaf(i);
    auto add_tensor = [&](ViewSource source, const TensorBase& tensor, bool is_read, bool is_written, bool adds) {
        const int64_t item = tensor.layout->stride;
        add(found,
            {i, source, is_read, is_written, adds, call.on_host, tensor.address(), item, item, &tensor.shape,
             &tensor.strides});
    };
    add_tensor(ViewSource::primal, *leaf.tensor, reads, writes, false);
    for (ViewSource source : {ViewSource::grad_in, ViewSource::grad_out}) {
        const bool is_out = source == ViewSource::grad_out;
        if (view.has(source) && !(is_out && call.plan.leaves[i].whole))
            add_tensor(source, tensor_of(leaf, source), !is_out, is_out, is_out && !call.plan.traits.is_forward_mode);
    }
}

void find_accesses(const Call& call, std::vector<Access>& found)
{
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        const Leaf& leaf = call.leaf(i);
        const auto* view = spec.as<ViewSpec>();
        if (!view)
            continue;
        const bool writes = spec.writes && !spec.whole; // where it writes to a tensor is the function's own matter
        const bool reads = spec.reads && !(spec.writes && spec.whole);
        const int64_t item = scalar_info(leaf.scalar).size;
        if (leaf.kind == ValueKind::array)
            add(found,
                {i, ViewSource::primal, reads, writes, false, true, leaf.address, item, 1, &leaf.shape, &leaf.strides});
        else if (leaf.kind == ValueKind::torch && !(leaf.flags & value_flag::no_primal))
            add(found,
                {i, ViewSource::primal, reads, writes, false, leaf.device_type == 1, leaf.address, item, item,
                 &leaf.shape, &leaf.strides});
        else if (leaf.kind == ValueKind::tensor && leaf.tensor->storage->frontend() == call.plan.device.get())
            find_tensor(call, i, *view, reads, writes, found);
    }
}

bool is_same_memory(const Access& a, const Access& b)
{
    return a.address == b.address && a.item == b.item && a.unit == b.unit && *a.shape == *b.shape &&
        *a.strides == *b.strides;
}

bool is_entry(const LeafSpec& spec)
{
    const auto* view = spec.as<ViewSpec>();
    return view && view->table >= 0;
}

/// One view that every invocation reaches at an element of its own: it reads before it writes.
bool is_same_view(const Call& call, const Measured& measured, const Access& a, const Access& b)
{
    const LeafSpec &first = call.plan.leaves[a.leaf], &second = call.plan.leaves[b.leaf];
    if (!is_same_memory(a, b) || first.map != second.map || first.inner != second.inner || first.whole ||
        second.whole || is_entry(first) || is_entry(second))
        return false;
    if (call.leaf(a.leaf).scalar != call.leaf(b.leaf).scalar)
        return false;
    uint64_t moved = 0;
    for (uint32_t i = 0; i < first.vector_dims(); ++i)
        moved |= uint64_t((*a.shape)[i] != 1) << first.map[i];
    for (uint32_t c = 0; c < call.plan.call_rank; ++c)
        if (measured.shape[c] > 1 && !(moved >> c & 1))
            return false;
    return true;
}

[[noreturn]] void refuse_own(const Call& call, const std::string& name, const Shape& shape)
{
    fail_value(call.plan.label, ": ", name, " of shape ", shape.str(),
               " is written, but some of its elements share memory; pass a copy");
}

/// Refuses an output with elements that share memory.
void check_own(const Call& call, const Access& written)
{
    int64_t step = written.item / written.unit; // without gaps there is nothing to ask
    bool is_dense = true;
    for (size_t i = written.shape->size(); i-- > 0;) {
        is_dense &= (*written.strides)[i] == step;
        step *= (*written.shape)[i];
    }
    if (!is_dense && overlaps_itself(written.memory()))
        refuse_own(call, access_name(call, written), *written.shape);
}

/// The same of arrays that native code sees a copy of.
void check_native_copies(const Call& call)
{
    for (const NativeCopy& native : call.signature.native_copies) {
        NumpyArray array;
        read_numpy(native.array.ptr(), array);
        const size_t rank = size_t(array.ndim);
        const auto sizes = reinterpret_cast<const int64_t*>(array.sizes),
                   strides = reinterpret_cast<const int64_t*>(array.strides);
        const MemoryView memory{reinterpret_cast<uint64_t>(array.data), scalar_info(call.leaf(native.leaf).scalar).size,
                                Shape({sizes, rank}), Shape({strides, rank})};
        if (call.plan.leaves[native.leaf].writes && overlaps_itself(memory))
            refuse_own(call, "argument " + call.plan.leaves[native.leaf].name, memory.shape);
    }
}

/// Copies part of a buffer: by a command in front of a recorded call, else at once.
void copy_part(const Call& call, const Measured& measured, ref<Buffer> to, uint64_t at, ref<Buffer> from,
               uint64_t offset, uint64_t size)
{
    CommandEncoder* recording = nullptr;
    if (call.recorder && nb::try_cast(nb::handle(call.recorder), recording) && recording)
        return recording->copy_buffer(to, at, from, offset, size);
    ref<CommandEncoder> encoder(new CommandEncoder(call.plan.device));
    encoder->copy_buffer(to, at, from, offset, size);
    ref<CommandBuffer> commands = encoder->finish();
    CommandBuffer* list[] = {commands.get()};
    SubmitDesc submission;
    submission.command_buffers = list;
    submission.stream = measured.stream;
    call.plan.device->submit(submission);
}

/// The memory of a tensor, from its first element to its last, as it is before the launch.
void copy_apart(const Call& call, const Measured& measured, const Access& access, Placed& placed)
{
    for (const Apart& known : placed.apart)
        if (known.leaf == access.leaf && known.source == access.source)
            return;
    const TensorBase& tensor = tensor_of(call.leaf(access.leaf), access.source);
    refuse_in_capture(call, measured, access_name(call, access),
                      " overlaps what is written and is copied (pass a copy)");
    const uint64_t begin = access.begin, size = access.end - begin;
    const uint64_t shift = begin % 16; // what is aligned stays so
    ref<Buffer> buffer = temporary_buffer(call, size + shift, cat("copy of ", access_name(call, access)));
    const uint64_t offset = uint64_t(tensor.offset) * tensor.layout->stride - (access.address - begin);
    ref<Buffer> storage(tensor.storage.get());
    copy_part(call, measured, buffer, shift, storage, offset, size);
    const uint64_t first = access.address - begin;
    placed.apart.push_back(
        {access.leaf, access.source, address_of(*buffer) + shift + first, int64_t(first / tensor.layout->stride)});
    placed.keep.push_back(ref<Object>(buffer.get()));
    placed.keep.push_back(ref<Object>(storage.get()));
}

/// Keeps `other` from what is written meanwhile.
void separate_from(const Call& call, const Measured& measured, const Access& written, const Access& other,
                   Placed& placed)
{
    Leaf& leaf = call.leaf(other.leaf);
    Leaf& target = call.leaf(written.leaf);
    const bool both_torch = leaf.kind == ValueKind::torch && target.kind == ValueKind::torch;
    const bool in_place = &leaf == &target && is_same_memory(other, written); // one gradient as both
    if (both_torch || in_place || (!other.reads && !other.writes) || (written.adds && other.adds) ||
        is_same_view(call, measured, written, other) || !shares_memory(written.memory(), other.memory()))
        return;
    refuse_prepared(call, access_name(call, written), " and ", access_name(call, other),
                    " overlap, and one of them would be copied at each call; pass a copy");
    if (!other.writes) {
        if (leaf.kind != ValueKind::tensor)
            leaf.is_apart = true;
        else
            copy_apart(call, measured, other, placed);
        return;
    }
    // both are written: host arrays through copies, which go back in the order of the arguments
    bool ordered = false;
    for (Leaf* side : {&leaf, &target})
        if (side->kind == ValueKind::array)
            ordered = side->is_apart = true;
    if (!ordered)
        fail_value(call.plan.label, ": ", access_name(call, written), " and ", access_name(call, other),
                   " are both written and overlap; pass a copy for one of them");
}

/// Whether anything is written, and not by torch's tensors alone, which follow torch's rules.
bool may_overlap(const Call& call)
{
    bool writes = false, is_ours = false;
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        if (const auto* view = spec.as<ViewSpec>()) {
            writes |= !spec.whole && (spec.writes || view->has(ViewSource::grad_out));
            is_ours |= call.leaf(i).kind != ValueKind::torch;
        }
    }
    return writes && is_ours;
}

} // namespace

void separate(const Call& call, const Measured& measured, Placed& placed)
{
    if (!may_overlap(call))
        return;
    static thread_local std::vector<Access> spare; // most calls find nothing and allocate nothing
    std::vector<Access> all = std::exchange(spare, {});
    all.clear();
    find_accesses(call, all);
    for (const Access& written : all) {
        if (!written.writes)
            continue;
        if (!written.adds && call.leaf(written.leaf).kind != ValueKind::torch)
            check_own(call, written);
        for (const Access& other : all)
            if (&other != &written && other.on_host == written.on_host && other.begin < written.end &&
                written.begin < other.end)
                separate_from(call, measured, written, other, placed);
    }
    spare = std::move(all);
    check_native_copies(call);
}

} // namespace spy
