#include "call/stages/place/overlap.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace spy {

namespace {

/// step * x with 0 <= x <= most.
struct Term {
    int64_t step, most;
};

/// Whether a sum of terms has a given value: depth first, the largest steps first, with what the rest can reach and its
/// greatest common divisor to tell dead ends.
class BoundedSum {
public:
    void add(int64_t step, int64_t most)
    {
        step = std::abs(step);
        if (step == 0 || most <= 0)
            return;
        for (size_t i = 0; i < m_count; ++i)
            if (m_terms[i].step == step) {
                m_terms[i].most += most;
                return;
            }
        m_terms[m_count++] = {step, most};
    }

    bool reaches(int64_t value)
    {
        std::sort(m_terms.begin(), m_terms.begin() + m_count, [](Term a, Term b) { return a.step > b.step; });
        m_reach[m_count] = m_divisor[m_count] = 0;
        for (size_t i = m_count; i-- > 0;) {
            m_reach[i] = m_reach[i + 1] + m_terms[i].step * m_terms[i].most;
            m_divisor[i] = std::gcd(m_divisor[i + 1], m_terms[i].step);
        }
        m_effort = most_effort;
        return search(0, value);
    }

private:
    static constexpr int64_t most_effort = 20000;

    bool search(size_t level, int64_t value)
    {
        if (value == 0)
            return true;
        if (value < 0 || value > m_reach[level] || value % m_divisor[level])
            return false; // also of the last level, which reaches 0 only
        const Term term = m_terms[level];
        const int64_t rest = m_reach[level + 1], divisor = m_divisor[level + 1];
        const int64_t least = value > rest ? (value - rest + term.step - 1) / term.step : 0;
        for (int64_t x = std::min(term.most, value / term.step); x >= least; --x) {
            if (--m_effort < 0)
                return true;
            const int64_t left = value - x * term.step;
            if (left == 0 || (divisor && left % divisor == 0 && search(level + 1, left)))
                return true;
        }
        return false;
    }

    std::array<Term, 2 * Shape::max_rank + 1> m_terms{};
    std::array<int64_t, 2 * Shape::max_rank + 2> m_reach{}, m_divisor{};
    size_t m_count = 0;
    int64_t m_effort = 0;
};

/// Elements one after the other, in any order of dimensions, each beyond all those before.
bool is_plainly_apart(const MemoryView& view)
{
    std::array<Term, Shape::max_rank> dims{};
    size_t count = 0;
    for (size_t i = 0; i < view.shape.size(); ++i)
        if (view.shape[i] > 1)
            dims[count++] = {std::abs(view.strides[i]), view.shape[i] - 1};
    std::sort(dims.begin(), dims.begin() + count, [](Term a, Term b) { return a.step < b.step; });
    int64_t reach = view.item;
    for (size_t i = 0; i < count; ++i) {
        if (dims[i].step < reach)
            return false;
        reach += dims[i].step * dims[i].most;
    }
    return true;
}

} // namespace

bool MemoryView::is_empty() const
{
    return std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size == 0; });
}

uint64_t MemoryView::begin() const
{
    int64_t low = 0;
    for (size_t i = 0; i < shape.size(); ++i)
        low += std::min<int64_t>(strides[i], 0) * (shape[i] - 1);
    return address + uint64_t(low);
}

uint64_t MemoryView::end() const
{
    int64_t high = item;
    for (size_t i = 0; i < shape.size(); ++i)
        high += std::max<int64_t>(strides[i], 0) * (shape[i] - 1);
    return address + uint64_t(high);
}

bool may_share_memory(const MemoryView& a, const MemoryView& b)
{
    return !a.is_empty() && !b.is_empty() && a.begin() < b.end() && b.begin() < a.end();
}

bool shares_memory(const MemoryView& a, const MemoryView& b)
{
    if (!may_share_memory(a, b))
        return false;
    // a.begin + (steps of a) + (byte in its item) = b.end - 1 - (steps of b, from the end) - (byte, from the end)
    BoundedSum sum;
    for (const MemoryView* view : {&a, &b}) {
        for (size_t i = 0; i < view->shape.size(); ++i)
            sum.add(view->strides[i], view->shape[i] - 1);
        sum.add(1, view->item - 1);
    }
    return sum.reaches(int64_t(b.end() - 1 - a.begin()));
}

bool overlaps_itself(const MemoryView& view)
{
    if (view.is_empty() || is_plainly_apart(view))
        return false;
    // two indices that differ first, and by a step upwards, in dimension k: their difference, counted from the least
    for (size_t k = 0; k < view.shape.size(); ++k) {
        if (view.shape[k] <= 1)
            continue;
        BoundedSum sum;
        const int64_t step = std::abs(view.strides[k]);
        int64_t value = view.item - 1 - step;
        sum.add(step, view.shape[k] - 2);
        for (size_t i = k + 1; i < view.shape.size(); ++i) {
            sum.add(view.strides[i], 2 * (view.shape[i] - 1));
            value += std::abs(view.strides[i]) * (view.shape[i] - 1);
        }
        sum.add(1, 2 * (view.item - 1));
        if (value >= 0 && sum.reaches(value))
            return true;
    }
    return false;
}

} // namespace spy
