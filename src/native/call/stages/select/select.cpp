// How the leaves of one call depend on the call index: decides which compiled form of the kernel runs.
#include "call/stages/select/access.h"
#include "call/stages/select/patch.h"

#include <algorithm>

namespace spy {

namespace {

/// Gradients of a leaf of torch that was copied have no gaps.
Reach reach_of(const LeafSpec& spec, const Leaf& leaf, const TensorBase& grad)
{
    return {spec, grad.shape, leaf.kind == ValueKind::array ? grad.shape.contiguous_strides() : grad.strides};
}

AccessClass classify(const Measured& measured, const Reach& reach, bool flatten)
{
    const Shape& call = measured.shape;
    uint64_t used = 0;
    bool moves = false;
    for (uint32_t i = 0; i < reach.spec.vector_dims(); ++i)
        // a size of 1 goes along with a call dimension of size 1, so that small shapes need no kernel of their own
        if (reach.shape[i] == 1 ? call[reach.spec.map[i]] == 1 : reach.strides[i] != 0) {
            moves |= reach.shape[i] != 1;
            used |= 1ull << reach.spec.map[i];
        }
    bool covers = true; // every call dimension moves the element: no two invocations share one
    for (uint32_t c = 0; c < call.size(); ++c)
        covers &= call[c] == 1 || (used >> c & 1);
    if (!used || (!moves && !covers))
        return AccessClass::uniform;
    return flatten || covers ? AccessClass::linear : AccessClass::general;
}

/// Whether a kernel over the flat index alone reaches this view: it stands still, and is reached by its strides, or
/// it advances with the call without gaps, the elements of one invocation included.
bool flattens(const Measured& measured, const Reach& reach)
{
    const LeafSpec& spec = reach.spec;
    const uint32_t lead = spec.vector_dims();
    if (classify(measured, reach, true) == AccessClass::uniform)
        return true;
    int64_t step = 1;
    for (size_t dim = lead + spec.inner.size(); dim-- > lead;) {
        if (spec.inner[dim - lead] < 0 || (reach.strides[dim] != step && reach.shape[dim] != 1))
            // a tensor parameter has its strides with it
            return spec.whole && is_broadcast(spec, reach.shape, reach.strides);
        step *= reach.shape[dim];
    }
    if (is_broadcast(spec, reach.shape, reach.strides)) // all sizes of the call are 1
        return true;
    if (lead != measured.shape.size())
        return false;
    for (uint32_t i = lead; i-- > 0;) {
        if (spec.map[i] != i || reach.shape[i] != measured.shape[i] ||
            (reach.strides[i] != step && reach.shape[i] != 1))
            return false;
        step *= reach.shape[i];
    }
    return true;
}

std::array<const TensorBase*, 2> gradients_of(const LeafSpec& spec, const Leaf& leaf)
{
    const auto* view = spec.as<ViewSpec>();
    if (!view || (!view->has(ViewSource::grad_in) && !view->has(ViewSource::grad_out)) ||
        (!leaf.tensor && !leaf.device_type))
        return {};
    return gradients(*view, leaf);
}

/// The most common view, found at once: elements of tensors, one for each invocation, in the order of the call. It is
/// linear, and flattens.
bool is_dense(const Measured& measured, const LeafSpec& spec, const Leaf& leaf)
{
    const size_t rank = measured.shape.size();
    if ((leaf.kind != ValueKind::tensor && leaf.kind != ValueKind::torch) || rank == 0 || !spec.as<ViewSpec>() ||
        !spec.inner.empty() || spec.map.size() != rank || leaf.shape.size() != rank)
        return false;
    const int64_t *sizes = leaf.shape.begin(), *strides = leaf.strides.begin(), *call = measured.shape.begin();
    int64_t step = 1;
    for (size_t i = rank; i-- > 0;) {
        if (spec.map[i] != i || sizes[i] != call[i] || strides[i] != step)
            return false;
        step *= sizes[i];
    }
    return true;
}

bool flattens_leaf(const Call& call, const Measured& measured, const LeafSpec& spec, const Leaf& leaf, bool has_class)
{
    const auto grads = gradients_of(spec, leaf);
    if (!grads[0] && !grads[1] && is_dense(measured, spec, leaf))
        return true;
    const Reach reach = reach_of(call, spec, leaf);
    if (!flattens(measured, reach))
        return false;
    if (!has_class && classify(measured, reach, true) != AccessClass::linear)
        return false;                      // the key has no room for it: the kernel takes it to advance
    for (const TensorBase* grad : grads) { // one flat index must serve the gradients too
        if (!grad)
            continue;
        const Reach steps = reach_of(spec, leaf, *grad);
        if (!flattens(measured, steps) ||
            is_broadcast(spec, reach.shape, steps.strides) != is_broadcast(spec, reach.shape, reach.strides))
            return false;
    }
    return true;
}

AccessClass shared_access(const Call& call, const Measured& measured, Selected& selected, const LeafSpec& spec,
                          const TensorBase* target, bool flatten)
{
    const bool whole = std::find(spec.inner.begin(), spec.inner.end(), -1) != spec.inner.end();
    if (!target || flatten || whole || !call.plan.tile.empty())
        return AccessClass::general;
    const int64_t period = period_of(spec, target->shape, target->strides, measured.shape);
    if (period == 0 || period > max_period)
        return AccessClass::general;
    selected.period = std::max(selected.period, period);
    return AccessClass::periodic;
}

/// The class of a leaf with its gradients, given that of the leaf alone.
AccessClass gradient_access(const Call& call, const Measured& measured, Selected& selected, size_t index,
                            AccessClass access, bool flatten)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const Leaf& leaf = call.leaf(index);
    const bool is_forward_mode = call.plan.traits.is_forward_mode;
    const auto grads = gradients_of(spec, leaf);
    const TensorBase* target = grads[1];
    for (const TensorBase* grad : grads)
        if (grad && classify(measured, reach_of(spec, leaf, *grad), flatten) != access)
            return is_forward_mode ? AccessClass::general
                                   : shared_access(call, measured, selected, spec, target, flatten);
    if (is_forward_mode || !target || access == AccessClass::uniform)
        return access; // tangents are stored where the primal is
    if (access == AccessClass::general)
        return shared_access(call, measured, selected, spec, target, flatten);
    // a plain addition needs an element that no other invocation adds to, through this argument or another
    if (!is_injective(spec, target->shape, target->strides))
        return AccessClass::general;
    for (size_t other = 0; other < call.leaf_count(); ++other) {
        const TensorBase* second = gradients_of(call.plan.leaves[other], call.leaf(other))[1];
        if (other != index && second && may_collide(spec, *target, call.plan.leaves[other], *second))
            return AccessClass::general;
    }
    return access;
}

bool can_flatten(const Call& call, const Measured& measured)
{
    bool flatten = call.plan.traits.can_flatten && call.plan.call_rank >= 1;
    uint32_t position = 0;
    for (size_t i = 0; flatten && i < call.leaf_count(); ++i)
        if (call.plan.leaves[i].classed)
            flatten = flattens_leaf(call, measured, call.plan.leaves[i], call.leaf(i), position++ < max_classed_leaves);
    return flatten;
}

/// Whether the kernel finds the first element at a multiple of 16 bytes. Copies are aligned.
bool begins_aligned(const Call& call, const Leaf& leaf)
{
    const bool in_place = leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch ||
        (call.on_host && leaf.kind == ValueKind::array);
    return !in_place || leaf.address % 16 == 0;
}

/// Notes the class of a leaf in the key, at its position among the classed leaves.
void select_leaf(const Call& call, const Measured& measured, Selected& selected, size_t index, uint32_t position,
                 bool flatten)
{
    const LeafSpec& spec = call.plan.leaves[index];
    const Leaf& leaf = call.leaf(index);
    AccessClass access = is_dense(measured, spec, leaf) ? AccessClass::linear
                                                        : classify(measured, reach_of(call, spec, leaf), flatten);
    selected.aligned &= access == AccessClass::uniform || begins_aligned(call, leaf);
    selected.aligned &= access == AccessClass::linear || !spec.writes; // elements that invocations share
    if (position >= max_classed_leaves)
        return;
    if (leaf.tensor || leaf.device_type)
        access = gradient_access(call, measured, selected, index, access, flatten);
    if (access == AccessClass::linear && !spec.whole && index < 64) {
        selected.owned |= 1ull << index;
        if (gradients_of(spec, leaf)[1])
            selected.stores |= 1ull << index;
    }
    selected.key |= uint64_t(access) << (3 + 2 * position);
}

/// Whether all elements of a view lie within 2^31 of its first; of a whole tensor also, whether neighbours of its last
/// dimension lie side by side.
bool is_near(const Reach& reach, bool primal)
{
    uint64_t span = 0;
    for (size_t i = 0; i < reach.shape.size(); ++i) {
        const uint64_t steps = reach.shape[i] > 0 ? uint64_t(reach.shape[i] - 1) : 0;
        const int64_t stride = reach.strides[i];
        if (stride < -INT32_MAX || stride > INT32_MAX || steps > UINT32_MAX)
            return false;
        span += steps * uint64_t(std::abs(stride));
        if (span > uint64_t(INT32_MAX))
            return false;
    }
    const bool has_rows = primal && reach.spec.whole && reach.shape.size() > reach.spec.vector_dims();
    return !has_rows || reach.strides[reach.shape.size() - 1] == 1;
}

/// Whether a call's kernel computes offsets that are not the flat index, and 32 bits do for them.
bool is_near(const Call& call, bool flatten)
{
    const auto& specs = call.plan.leaves;
    if ((flatten || call.plan.call_rank == 0) &&
        std::none_of(specs.begin(), specs.end(), [](const LeafSpec& spec) { return spec.whole; }))
        return false;
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        if (!spec.classed || !spec.as<ViewSpec>())
            continue;
        const Leaf& leaf = call.leaf(i);
        if (!is_near(reach_of(call, spec, leaf), true))
            return false;
        for (const TensorBase* grad : gradients_of(spec, leaf))
            if (grad && !is_near(reach_of(spec, leaf, *grad), false))
                return false;
    }
    return true;
}

/// Whether rows of tensors of scalars begin at multiples of 16 bytes; those that invocations have parts of are not
/// meant.
bool rows_are_aligned(const Call& call)
{
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        const auto* view = spec.as<ViewSpec>();
        if (!spec.classed || !view || !spec.whole || spec.inner.size() < 2 || spec.vector_dims() > 0)
            continue;
        const Leaf& leaf = call.leaf(i);
        const Reach reach = reach_of(call, spec, leaf);
        if (!begins_aligned(call, leaf))
            return false;
        for (size_t dim = 0; dim + 1 < reach.shape.size(); ++dim)
            if (reach.strides[dim] * int64_t(view->element.size) % 16 != 0)
                return false;
    }
    return true;
}

} // namespace

/// The last group of a call may count some thousand invocations beyond its end.
constexpr int64_t narrow_limit = (int64_t(1) << 31) - 8192;

Selected select(const Call& call, const Measured& measured)
{
    Selected selected;
    if (measured.total == 0)
        return selected; // nothing runs
    const bool flatten = can_flatten(call, measured);
    selected.key = (flatten ? 1 : 0) | (tiles(call, measured) * call.plan.tile.element_count() >= narrow_limit ? 2 : 0);
    selected.aligned = true;
    uint32_t position = 0;
    for (size_t i = 0; i < call.leaf_count(); ++i)
        if (call.plan.leaves[i].classed)
            select_leaf(call, measured, selected, i, position++, flatten);
    const PlanTraits& traits = call.plan.traits;
    if (const VariantKey patch = flatten || (selected.key & 2) ? 0 : select_patch(call, measured))
        selected.key |= patch;
    else if ((traits.can_spread && picks_many(traits, measured)) ||
             (flatten ? traits.can_widen && selected.aligned : traits.can_space))
        selected.key |= 4;
    if (traits.can_be_near && !(selected.key & 2) && is_near(call, flatten))
        selected.key |= traits.can_be_aligned && rows_are_aligned(call) ? near_variant | aligned_variant : near_variant;
    return selected;
}

} // namespace spy
