// How the leaves of one call depend on the call index: decides which compiled form of the kernel runs.
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

/// Whether a kernel over the flat index alone reaches this view: it stands still, and is reached by its strides, or
/// it advances with the call without gaps, the elements of one invocation included.
bool Launch::flattens(const LeafPlan& plan, const Shape& shape, const Shape& strides) const
{
    if (classify(plan, shape, strides, true) == AccessClass::uniform)
        return true;
    int64_t step = 1;
    for (size_t dim = plan.vector_dims + plan.inner.size(); dim-- > plan.vector_dims;) {
        if (plan.inner[dim - plan.vector_dims] < 0 || (strides[dim] != step && shape[dim] != 1))
            return plan.whole && is_broadcast(plan, shape, strides); // a tensor parameter has its strides with it
        step *= shape[dim];
    }
    if (is_broadcast(plan, shape, strides)) // all sizes of the call are 1
        return true;
    if (plan.vector_dims != m_plan.call_rank)
        return false;
    for (uint32_t i = plan.vector_dims; i-- > 0;) {
        if (plan.map[i] != i || shape[i] != m_call[i] || (strides[i] != step && shape[i] != 1))
            return false;
        step *= shape[i];
    }
    return true;
}

AccessClass Launch::classify(const LeafPlan& plan, const Shape& shape, const Shape& strides, bool flatten) const
{
    uint64_t used = 0;
    bool moves = false;
    for (uint32_t i = 0; i < plan.vector_dims; ++i)
        // a size of 1 goes along with a call dimension of size 1, so that small shapes need no kernel of their own
        if (shape[i] == 1 ? m_call[plan.map[i]] == 1 : strides[i] != 0) {
            moves |= shape[i] != 1;
            used |= 1ull << plan.map[i];
        }
    bool covers = true; // every call dimension moves the element: no two invocations share one
    for (uint32_t c = 0; c < m_plan.call_rank; ++c)
        covers &= m_call[c] == 1 || (used >> c & 1);
    if (!used || (!moves && !covers))
        return AccessClass::uniform;
    return flatten || covers ? AccessClass::linear : AccessClass::general;
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
        if (grad && classify(plan, grad->shape, gradient_strides(leaf, *grad), flatten) != access)
            return m_plan.is_forward_mode ? AccessClass::general : shared_access(plan, target, flatten);
    if (m_plan.is_forward_mode)
        return access; // tangents are stored where the primal is
    if (!target || access == AccessClass::uniform)
        return access;
    if (access == AccessClass::general)
        return shared_access(plan, target, flatten);
    // a plain addition needs an element that no other invocation adds to, through this argument or another
    if (!is_injective(plan, target->shape, target->strides))
        return AccessClass::general;
    for (size_t other = 0; other < m_plan.leaves.size(); ++other) {
        const TensorBase* second = gradients(m_plan.leaves[other], m_signature.leaves[other])[1];
        if (other != index && second && may_collide(plan, *target, m_plan.leaves[other], *second))
            return AccessClass::general;
    }
    return access;
}

AccessClass Launch::shared_access(const LeafPlan& plan, const TensorBase* target, bool flatten)
{
    bool whole = std::find(plan.inner.begin(), plan.inner.end(), -1) != plan.inner.end();
    if (!target || flatten || whole || !m_plan.tile.empty())
        return AccessClass::general;
    int64_t period = period_of(plan, target->shape, target->strides, m_call);
    if (period == 0 || period > max_period)
        return AccessClass::general;
    m_period = std::max(m_period, period);
    return AccessClass::periodic;
}

/// Whether the kernel works on a copy of a host array, which has no gaps.
bool Launch::is_packed(const LeafPlan& plan, const Leaf& leaf) const
{
    if (leaf.kind != ValueKind::array)
        return false;
    const int64_t item = scalar_info(leaf.scalar).size;
    if (leaf.is_apart || !m_on_host || plan.element_size != item || m_signature.reserved.append_to)
        return true;
    bool aligned = leaf.address % uint64_t(item) == 0;
    for (size_t i = 0; i < leaf.shape.size(); ++i)
        aligned &= leaf.shape[i] <= 1 || leaf.strides[i] % item == 0;
    return !aligned;
}

/// Strides of the memory that the kernel works on, in elements.
Shape Launch::view_strides(const LeafPlan& plan, const Leaf& leaf) const
{
    return is_packed(plan, leaf) ? leaf.shape.contiguous_strides() : element_strides(plan, leaf);
}

Shape Launch::gradient_strides(const Leaf& leaf, const TensorBase& grad) const
{
    return leaf.kind == ValueKind::array ? grad.shape.contiguous_strides() : grad.strides; // a tensor of torch that was copied
}

bool Launch::flattens_leaf(const LeafPlan& plan, const Leaf& leaf, bool has_class) const
{
    const Shape shape = shape_of(plan, leaf), strides = view_strides(plan, leaf);
    if (!flattens(plan, shape, strides))
        return false;
    if (!has_class && classify(plan, shape, strides, true) != AccessClass::linear)
        return false; // the key has no room for it: the kernel takes it to advance
    for (const TensorBase* grad : gradients(plan, leaf)) { // one flat index must serve the gradients too
        if (!grad)
            continue;
        const Shape steps = gradient_strides(leaf, *grad);
        if (!flattens(plan, shape, steps) || is_broadcast(plan, shape, steps) != is_broadcast(plan, shape, strides))
            return false;
    }
    return true;
}

VariantKey Launch::choose_variant()
{
    bool flatten = m_plan.can_flatten && m_plan.call_rank >= 1;
    uint32_t position = 0;
    for (size_t i = 0; flatten && i < m_plan.leaves.size(); ++i)
        if (m_plan.leaves[i].classed)
            flatten = flattens_leaf(m_plan.leaves[i], m_signature.leaves[i], position++ < max_classed_leaves);
    VariantKey key = (flatten ? 1 : 0) | (tiles() * m_plan.tile.element_count() >= (int64_t(1) << 31) ? 2 : 0);
    position = 0;
    bool aligned = true;
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Leaf& leaf = m_signature.leaves[i];
        if (!plan.classed) {
            clear_fresh(leaf);
            continue;
        }
        AccessClass access = classify(plan, shape_of(plan, leaf), view_strides(plan, leaf), flatten);
        const bool in_place = leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch || (m_on_host && leaf.kind == ValueKind::array);
        aligned &= access == AccessClass::uniform || !in_place || leaf.address % 16 == 0;
        aligned &= access == AccessClass::linear || !plan.writes; // elements that invocations share
        if (position == max_classed_leaves) {
            clear_fresh(leaf);
            continue;
        }
        if (leaf.tensor || leaf.device_type)
            access = gradient_access(i, access, flatten);
        if (access == AccessClass::linear && !plan.whole && i < 64)
            m_owned |= 1ull << i;
        if (access != AccessClass::linear || plan.whole || !gradients(plan, leaf)[1])
            clear_fresh(leaf); // other kernels store into gradients that hold nothing
        key |= uint64_t(access) << (3 + 2 * position++);
    }
    if (flatten && m_plan.can_widen && aligned)
        key |= 4;
    m_flat = flatten;
    m_aligned = aligned;
    return key;
}

} // namespace spy
