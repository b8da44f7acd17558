#include "call/stages/repeat.h"
#include "call/stages/leaves.h"

#include <algorithm>

namespace spy {

namespace {

/// Facts in the making. Many calls per microsecond come this way: room is asked for once per view.
class Facts {
public:
    explicit Facts(std::vector<int64_t>& memory) : m_memory(memory) { m_next = m_memory.data(); }

    void reserve(size_t count)
    {
        const size_t used = size_t(m_next - m_memory.data());
        if (used + count > m_memory.size()) [[unlikely]] {
            m_memory.resize(2 * (used + count));
            m_next = m_memory.data() + used;
        }
    }
    void put(int64_t fact) { *m_next++ = fact; }
    /// Sizes and strides of one view; `reserve` is the caller's.
    void put_view(uint64_t address, const Shape& shape, const Shape& strides)
    {
        put(int64_t(address));
        put(int64_t(shape.size())); // of a gradient, not known from the key
        const int64_t *size = shape.begin(), *stride = strides.begin();
        for (size_t i = 0; i < shape.size(); ++i) {
            put(size[i]);
            put(stride[i]);
        }
    }
    std::span<const int64_t> found() const { return {m_memory.data(), m_next}; }

private:
    std::vector<int64_t>& m_memory;
    int64_t* m_next;
};

/// A tensor of ours, or a gradient of one, whose address is known.
bool add_tensor(const Call& call, const TensorBase& tensor, uint64_t address, Facts& facts)
{
    if (!tensor.storage || tensor.storage->frontend() != call.plan.device.get() ||
        tensor.strides.size() != tensor.shape.size())
        return false;
    facts.reserve(4 + 2 * tensor.shape.size());
    facts.put(reinterpret_cast<intptr_t>(tensor.storage.get()));
    facts.put(tensor.offset);
    facts.put_view(address, tensor.shape, tensor.strides);
    return true;
}

bool add_torch(const Call& call, const Leaf& leaf, Facts& facts)
{
    const bool is_cuda = call.plan.device->info().type == DeviceType::cuda;
    if (call.recorder) // guarded until the commands run
        return false;
    if (leaf.device_type != (is_cuda ? 2 : 1) || (!is_cuda && !call.on_host))
        return false; // copied, shared or refused
    facts.reserve(5 + 2 * leaf.shape.size());
    facts.put(leaf.device_index);
    facts.put_view(leaf.address, leaf.shape, leaf.strides);
    for (const TensorBase* grad : leaf.grads) {
        facts.reserve(3 + (grad ? 2 * grad->shape.size() : 0));
        facts.put(grad != nullptr);
        if (grad)
            facts.put_view(grad->raw_address, grad->shape, grad->strides);
    }
    return true;
}

bool add_array(const Call& call, const ViewSpec& view, const Leaf& leaf, Facts& facts)
{
    if (leaf.device_type || is_copied(call, view.element, leaf))
        return false;
    facts.reserve(2 + 2 * leaf.shape.size());
    facts.put_view(leaf.address, leaf.shape, leaf.strides);
    return true;
}

bool add_view(const Call& call, const ViewSpec& view, const Leaf& leaf, Facts& facts)
{
    if (view.table >= 0 || leaf.packed)
        return false;
    if (leaf.kind == ValueKind::torch)
        return add_torch(call, leaf, facts);
    if (leaf.kind == ValueKind::array)
        return add_array(call, view, leaf, facts);
    if (leaf.kind != ValueKind::tensor || !add_tensor(call, *leaf.tensor, leaf.address, facts))
        return false;
    for (ViewSource source : {ViewSource::grad_in, ViewSource::grad_out}) {
        if (!view.has(source))
            continue;
        const TensorBase& grad = tensor_of(leaf, source);
        if (!add_tensor(call, grad, grad.address(), facts))
            return false;
    }
    return true;
}

/// Values that each call writes anew; of what spreads over the call, the sizes are facts.
bool add_value(const LeafSpec& spec, const Leaf& leaf, Facts& facts)
{
    if (spec.as<GeneratorSpec>()) {
        facts.reserve(2 + 2 * leaf.shape.size());
        facts.put_view(0, leaf.shape, leaf.shape);
        return true;
    }
    return spec.as<SkipSpec>() || spec.as<ValueSpec>() || spec.as<ReferenceSpec>();
}

bool is_repeatable(const Call& call)
{
    const Signature& signature = call.signature;
    const ResultMode mode = call.plan.result.mode;
    const bool makes_result = mode != ResultMode::none && mode != ResultMode::leaf;
    return !(call.recorder && makes_result) && !call.is_prepared && !signature.reserved.thread_count &&
        signature.native_copies.empty() && mode != ResultMode::custom &&
        !(mode == ResultMode::torch && !signature.has_torch);
}

uint64_t hash_of(std::span<const int64_t> facts)
{
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (int64_t fact : facts)
        hash = (hash ^ uint64_t(fact)) * 0xff51afd7ed558ccd, hash ^= hash >> 32;
    return hash;
}

} // namespace

std::span<const int64_t> repeat_facts(const Call& call)
{
    if (!is_repeatable(call))
        return {};
    Facts facts(call.signature.facts);
    facts.reserve(1);
    facts.put(int64_t(2 * call.leaf_count() + (call.recorder ? 1 : 0)));
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        const auto* view = spec.as<ViewSpec>();
        if (view ? !add_view(call, *view, call.leaf(i), facts) : !add_value(spec, call.leaf(i), facts))
            return {};
    }
    return facts.found();
}

std::shared_ptr<const Repeat> find_repeat(const Call& call, std::span<const int64_t> facts)
{
    if (facts.empty())
        return nullptr;
    for (const auto& repeat : call.plan.state.repeats.known)
        if (repeat && std::equal(facts.begin(), facts.end(), repeat->facts.begin(), repeat->facts.end()))
            return repeat;
    return nullptr;
}

RepeatNote::RepeatNote(const Call& call, std::span<const int64_t> facts) : m_call(call)
{
    if (facts.empty())
        return;
    Repeats& repeats = call.plan.state.repeats;
    const uint64_t hash = hash_of(facts);
    if (std::find(repeats.seen.begin(), repeats.seen.end(), hash) == repeats.seen.end()) {
        repeats.seen[repeats.next_seen++ % repeats.seen.size()] = hash;
        return;
    }
    m_repeat = std::make_shared<Repeat>();
    m_repeat->facts.assign(facts.begin(), facts.end());
}

void RepeatNote::remember(const Measured& measured, const Selected& selected, bool is_placed, const Written& written)
{
    if (!m_repeat || is_placed || measured.total == 0 || !measured.custom.empty() || measured.torch_default ||
        !written.pending.uploads.empty() || !written.pending.custom.empty() || !written.pending.shared.empty())
        return;
    Written views = write_views(m_call, measured, selected);
    m_repeat->shape = measured.shape;
    m_repeat->total = measured.total;
    m_repeat->selected = selected;
    m_repeat->bytes = std::move(views.arguments.bytes);
    m_repeat->sums = std::move(views.sums);
    m_repeat->added = std::move(views.added);
    Repeats& repeats = m_call.plan.state.repeats;
    repeats.known[repeats.next_known++ % repeats.known.size()] = std::move(m_repeat);
}

} // namespace spy
