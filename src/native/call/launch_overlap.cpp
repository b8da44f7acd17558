// Arguments that share memory with one that is written: what is read is read before, as in NumPy's ufuncs.
#include "call/launch.h"
#include "call/launch_util.h"
#include "call/overlap.h"
#include "call/torch.h"
#include "device/encoder.h"
#include "device/submit.h"

#include <utility>

namespace spy {

/// Memory that a kernel reaches through one argument, or through one of its gradients.
struct Launch::Access {
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

void Launch::Access::measure()
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

MemoryView Launch::Access::memory() const
{
    MemoryView view{address, item, *shape, *strides};
    for (size_t i = 0; i < view.strides.size(); ++i)
        view.strides[i] *= unit;
    return view;
}

const TensorBase& Launch::tensor_of(const Leaf& leaf, ViewSource source)
{
    return source == ViewSource::grad_in    ? *nb::cast<TensorBase*>(leaf.tensor->grad_in)
           : source == ViewSource::grad_out ? *nb::cast<TensorBase*>(leaf.tensor->grad_out)
                                            : *leaf.tensor;
}

std::string Launch::access_name(const Access& access) const
{
    return cat(access.source == ViewSource::primal ? "argument " : "the gradient of argument ", m_plan.leaves[access.leaf].name);
}

void Launch::find_accesses(std::vector<Access>& found) const
{
    auto add = [&](Access access) {
        access.measure();
        found.push_back(access);
    };
    auto add_tensor = [&](size_t i, ViewSource source, const TensorBase& tensor, bool reads, bool writes, bool adds) {
        const int64_t item = tensor.layout->stride;
        add({i, source, reads, writes, adds, m_on_host, tensor.address(), item, item, &tensor.shape, &tensor.strides});
    };
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Leaf& leaf = m_signature.leaves[i];
        if (plan.kind != LeafKind::view)
            continue;
        const bool writes = plan.writes && !plan.whole; // where it writes to a tensor is the function's own matter
        const bool reads = plan.reads && !(plan.writes && plan.whole);
        const int64_t item = scalar_info(leaf.scalar).size;
        if (leaf.kind == ValueKind::array)
            add({i, ViewSource::primal, reads, writes, false, true, leaf.address, item, 1, &leaf.shape, &leaf.strides});
        else if (leaf.kind == ValueKind::torch && !(leaf.flags & value_flag::no_primal))
            add({i, ViewSource::primal, reads, writes, false, leaf.device_type == 1, leaf.address, item, item, &leaf.shape, &leaf.strides});
        if (leaf.kind != ValueKind::tensor || leaf.tensor->storage->frontend() != m_plan.device.get())
            continue;
        add_tensor(i, ViewSource::primal, *leaf.tensor, reads, writes, false);
        for (ViewSource source : {ViewSource::grad_in, ViewSource::grad_out}) {
            const bool is_out = source == ViewSource::grad_out;
            if (plan.views[size_t(source)].data >= 0 && !(is_out && plan.whole))
                add_tensor(i, source, tensor_of(leaf, source), !is_out, is_out, is_out && !m_plan.is_forward_mode);
        }
    }
}

bool Launch::is_same_memory(const Access& a, const Access& b)
{
    return a.address == b.address && a.item == b.item && a.unit == b.unit && *a.shape == *b.shape && *a.strides == *b.strides;
}

/// One view that every invocation reaches at an element of its own: it reads before it writes.
bool Launch::is_same_view(const Access& a, const Access& b) const
{
    const LeafPlan &first = m_plan.leaves[a.leaf], &second = m_plan.leaves[b.leaf];
    if (!is_same_memory(a, b) || first.map != second.map || first.inner != second.inner || first.whole || second.whole ||
        first.table >= 0 || second.table >= 0)
        return false;
    if (m_signature.leaves[a.leaf].scalar != m_signature.leaves[b.leaf].scalar)
        return false;
    uint64_t moved = 0;
    for (uint32_t i = 0; i < first.vector_dims; ++i)
        moved |= uint64_t((*a.shape)[i] != 1) << first.map[i];
    for (uint32_t c = 0; c < m_plan.call_rank; ++c)
        if (m_call[c] > 1 && !(moved >> c & 1))
            return false;
    return true;
}

void Launch::refuse_own(const std::string& name, const Shape& shape) const
{
    fail_value(m_plan.label, ": ", name, " of shape ", shape.str(),
               " is written, but some of its elements share memory; pass a copy");
}

/// Refuses an output with elements that share memory.
void Launch::check_own(const Access& written) const
{
    int64_t step = written.item / written.unit; // without gaps there is nothing to ask
    bool is_dense = true;
    for (size_t i = written.shape->size(); i-- > 0;) {
        is_dense &= (*written.strides)[i] == step;
        step *= (*written.shape)[i];
    }
    if (!is_dense && overlaps_itself(written.memory()))
        refuse_own(access_name(written), *written.shape);
}

/// Makes copies of what is read of memory that another argument writes; refuses outputs that overlap themselves.
void Launch::separate()
{
    bool writes = false, is_ours = false; // tensors of torch alone follow torch's rules
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        if (plan.kind != LeafKind::view)
            continue;
        writes |= !plan.whole && (plan.writes || plan.views[size_t(ViewSource::grad_out)].data >= 0);
        is_ours |= m_signature.leaves[i].kind != ValueKind::torch;
    }
    if (!writes || !is_ours)
        return;
    static thread_local std::vector<Access> spare; // most calls find nothing and allocate nothing
    std::vector<Access> all = std::exchange(spare, {});
    all.clear();
    find_accesses(all);
    for (const Access& written : all) {
        if (!written.writes)
            continue;
        if (!written.adds && m_signature.leaves[written.leaf].kind != ValueKind::torch)
            check_own(written);
        for (const Access& other : all)
            if (&other != &written && other.on_host == written.on_host && other.begin < written.end && written.begin < other.end)
                separate(written, other);
    }
    spare = std::move(all);
    for (const NativeCopy& native : m_signature.native_copies) {
        NumpyArray array;
        read_numpy(native.array.ptr(), array);
        const size_t rank = size_t(array.ndim);
        const auto sizes = reinterpret_cast<const int64_t*>(array.sizes), strides = reinterpret_cast<const int64_t*>(array.strides);
        const MemoryView memory{reinterpret_cast<uint64_t>(array.data), scalar_info(m_signature.leaves[native.leaf].scalar).size,
                                Shape({sizes, rank}), Shape({strides, rank})};
        if (m_plan.leaves[native.leaf].writes && overlaps_itself(memory))
            refuse_own("argument " + m_plan.leaves[native.leaf].name, memory.shape);
    }
}

/// Keeps `other` from what is written meanwhile.
void Launch::separate(const Access& written, const Access& other)
{
    Leaf& leaf = m_signature.leaves[other.leaf];
    Leaf& target = m_signature.leaves[written.leaf];
    const bool both_torch = leaf.kind == ValueKind::torch && target.kind == ValueKind::torch;
    const bool in_place = &leaf == &target && is_same_memory(other, written); // one gradient as both
    if (both_torch || in_place || (!other.reads && !other.writes) || (written.adds && other.adds) || is_same_view(written, other) ||
        !shares_memory(written.memory(), other.memory()))
        return;
    if (!other.writes) {
        if (leaf.kind != ValueKind::tensor)
            leaf.is_apart = true;
        else
            copy_apart(other);
        return;
    }
    // both are written: host arrays through copies, which go back in the order of the arguments
    bool ordered = false;
    for (Leaf* side : {&leaf, &target})
        if (side->kind == ValueKind::array)
            ordered = side->is_apart = true;
    if (!ordered)
        fail_value(m_plan.label, ": ", access_name(written), " and ", access_name(other),
                   " are both written and overlap; pass a copy for one of them");
}

/// The memory of a tensor, from its first element to its last, as it is before the launch.
void Launch::copy_apart(const Access& access)
{
    for (const Apart& known : m_apart)
        if (known.leaf == access.leaf && known.source == access.source)
            return;
    const TensorBase& tensor = tensor_of(m_signature.leaves[access.leaf], access.source);
    refuse_in_capture(cat(access_name(access), " overlaps what is written and is copied (pass a copy)"));
    const uint64_t begin = access.begin, size = access.end - begin;
    const uint64_t shift = begin % 16; // what is aligned stays so
    BufferDesc desc;
    desc.size = size + shift;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                 BufferUsage::copy_source;
    desc.label = cat("copy of ", access_name(access));
    desc.uninitialized = true;
    ref<Buffer> buffer = m_plan.device->create_buffer(desc);
    const uint64_t offset = uint64_t(tensor.offset) * tensor.layout->stride - (access.address - begin);
    ref<Buffer> storage(tensor.storage.get());
    CommandEncoder* recording = nullptr;
    if (nb::handle target(m_signature.reserved.append_to); target && nb::try_cast(target, recording) && recording) {
        recording->copy_buffer(buffer, shift, storage, offset, size);
    } else {
        ref<CommandEncoder> encoder(new CommandEncoder(m_plan.device));
        encoder->copy_buffer(buffer, shift, storage, offset, size);
        ref<CommandBuffer> commands = encoder->finish();
        CommandBuffer* list[] = {commands.get()};
        SubmitDesc submission;
        submission.command_buffers = list;
        submission.stream = torch_call_stream(m_options, m_torch_like);
        m_plan.device->submit(submission);
    }
    uint64_t address = buffer->device_address();
    if (!address)
        address = reinterpret_cast<uint64_t>(buffer->host_pointer());
    const uint64_t first = access.address - begin;
    m_apart.push_back({access.leaf, access.source, address + shift + first, int64_t(first / tensor.layout->stride)});
    m_keep.push_back(ref<Object>(buffer.get()));
    m_keep.push_back(ref<Object>(storage.get()));
}

const Launch::Apart* Launch::apart_of(size_t leaf, ViewSource source) const
{
    for (const Apart& apart : m_apart)
        if (apart.leaf == leaf && apart.source == source)
            return &apart;
    return nullptr;
}

} // namespace spy
