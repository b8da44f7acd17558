#include "call/stages/select/access.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace spy {

bool is_broadcast(const LeafSpec& spec, const Shape& shape, const Shape& strides)
{
    for (uint32_t i = 0; i < spec.vector_dims(); ++i)
        if (shape[i] != 1 && strides[i] != 0)
            return false;
    return true;
}

bool is_injective(const LeafSpec& spec, const Shape& shape, const Shape& strides)
{
    // sizes and steps per call dimension (a call dimension may move several of the view's), then the consumed ones
    std::array<int64_t, Shape::max_rank> steps{};
    std::array<std::pair<int64_t, int64_t>, 2 * Shape::max_rank> dims;
    std::array<int64_t, Shape::max_rank> sizes{};
    size_t count = 0;
    for (uint32_t i = 0; i < spec.vector_dims(); ++i) {
        steps[spec.map[i]] += shape[i] == 1 ? 0 : strides[i];
        sizes[spec.map[i]] = std::max(sizes[spec.map[i]], shape[i]);
    }
    for (size_t c = 0; c < sizes.size(); ++c)
        if (sizes[c] > 1)
            dims[count++] = {std::abs(steps[c]), sizes[c]};
    for (size_t i = 0; i < spec.inner.size(); ++i)
        if (shape[spec.vector_dims() + i] > 1)
            dims[count++] = {std::abs(strides[spec.vector_dims() + i]), shape[spec.vector_dims() + i]};
    std::sort(dims.begin(), dims.begin() + count);
    int64_t reach = 0; // offset of the last element reached by the dimensions so far
    for (size_t i = 0; i < count; ++i) {
        if (dims[i].first <= reach)
            return false;
        reach += dims[i].first * (dims[i].second - 1);
    }
    return true;
}

int64_t period_of(const LeafSpec& spec, const Shape& shape, const Shape& strides, const Shape& call)
{
    size_t first = call.size();
    for (uint32_t i = 0; i < spec.vector_dims(); ++i)
        if (shape[i] != 1 && strides[i] != 0)
            first = std::min<size_t>(first, spec.map[i]);
    int64_t period = 1, total = call.element_count();
    for (size_t c = first; c < call.size(); ++c)
        period *= call[c];
    return period < total ? period : 0;
}

bool may_collide(const LeafSpec& a_spec, const TensorBase& a, const LeafSpec& b_spec, const TensorBase& b)
{
    // one view, reached alike: what an invocation adds to twice is its own
    const bool same = a.address() == b.address() && a.strides == b.strides && a.shape == b.shape &&
        a_spec.map == b_spec.map && a_spec.inner == b_spec.inner;
    if (!a.storage || !b.storage) { // of torch, which may hand out parts of one allocation
        auto range = [](const TensorBase& t) {
            int64_t low = 0, high = 0;
            for (size_t i = 0; i < t.shape.size(); ++i)
                (t.strides[i] < 0 ? low : high) += (t.shape[i] - 1) * t.strides[i];
            int64_t item = t.storage ? int64_t(t.layout->stride) : int64_t(t.raw_item);
            return std::pair(int64_t(t.address()) + low * item, int64_t(t.address()) + (high + 1) * item);
        };
        auto [a_low, a_high] = range(a);
        auto [b_low, b_high] = range(b);
        if (a_high <= b_low || b_high <= a_low)
            return false;
        return !same;
    }
    return a.storage == b.storage && !same;
}

} // namespace spy
