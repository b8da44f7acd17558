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
        if (grad && classify(plan, grad->shape, grad->strides, flatten) != access)
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
        if (other != index && second && may_collide(*target, *second))
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

VariantKey Launch::choose_variant()
{
    bool flatten = m_plan.can_flatten && m_plan.call_rank >= 1;
    for (size_t i = 0; flatten && i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        if (plan.kind != LeafKind::view && plan.kind != LeafKind::packed)
            continue;
        const Leaf& leaf = m_signature.leaves[i];
        Shape shape = shape_of(plan, leaf);
        flatten = flattens(plan, shape, element_strides(plan, leaf));
        for (const TensorBase* grad : gradients(plan, leaf)) // one flat index must serve the gradients too
            flatten = flatten && (!grad || (flattens(plan, shape, grad->strides) &&
                                            is_broadcast(plan, shape, grad->strides) ==
                                                is_broadcast(plan, shape, leaf.strides)));
    }
    VariantKey key = (flatten ? 1 : 0) | (tiles() * m_plan.tile.element_count() >= (int64_t(1) << 31) ? 2 : 0);
    uint32_t position = 0;
    bool aligned = true;
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Leaf& leaf = m_signature.leaves[i];
        if (!plan.classed || position == max_classed_leaves) {
            clear_fresh(leaf);
            continue;
        }
        AccessClass access = classify(plan, shape_of(plan, leaf), element_strides(plan, leaf), flatten);
        if (leaf.tensor || leaf.device_type)
            access = gradient_access(i, access, flatten);
        if (access == AccessClass::linear && !plan.whole && i < 64)
            m_owned |= 1ull << i;
        if (access != AccessClass::linear || plan.whole || !gradients(plan, leaf)[1])
            clear_fresh(leaf); // other kernels store into gradients that hold nothing
        key |= uint64_t(access) << (3 + 2 * position++);
        bool in_place = leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch || (m_on_host && leaf.kind == ValueKind::array);
        aligned &= access == AccessClass::uniform || !in_place || leaf.address % 16 == 0;
        aligned &= access == AccessClass::linear || !plan.writes; // elements that invocations share
    }
    if (flatten && m_plan.can_widen && aligned)
        key |= 4;
    m_flat = flatten;
    m_aligned = aligned;
    return key;
}

} // namespace spy
