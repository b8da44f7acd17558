#pragma once
#include "core/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

namespace spy {

/// Sizes (or strides) of dimensions; -1 is an unknown size. An invalid Shape is "no shape at all". Containers and calls
/// have at most `max_rank` dimensions; a shape that is only looked at (push_back_any) may have more, which lie on the
/// heap.
class Shape {
public:
    static constexpr size_t max_rank = 32;

    Shape() noexcept { }
    Shape(const Shape& other) : m_size(other.m_size), m_valid(other.m_valid) { copy_dims(other); }
    Shape& operator=(const Shape& other)
    {
        if (this == &other)
            return *this;
        m_size = other.m_size;
        m_valid = other.m_valid;
        if (m_many)
            m_many.reset();
        copy_dims(other);
        return *this;
    }
    Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) { }
    explicit Shape(std::span<const int64_t> dims)
    {
        for (int64_t dim : dims)
            push_back(dim);
    }
    static Shape invalid()
    {
        Shape shape;
        shape.m_valid = false;
        return shape;
    }

    bool valid() const { return m_valid; }
    size_t size() const { return m_size; }
    bool empty() const { return m_size == 0; }
    int64_t operator[](size_t i) const { return begin()[i]; }
    int64_t& operator[](size_t i) { return m_many ? m_many[i] : m_dims[i]; }
    const int64_t* begin() const { return m_many ? m_many.get() : m_dims.data(); }
    const int64_t* end() const { return begin() + m_size; }
    std::span<const int64_t> dims() const { return {begin(), m_size}; }

    /// No dimensions, and valid.
    void clear()
    {
        m_size = 0;
        m_valid = true;
        if (m_many)
            m_many.reset();
    }

    void push_back(int64_t dim)
    {
        if (m_size >= max_rank)
            fail_value("a shape can have at most ", max_rank, " dimensions");
        m_dims[m_size++] = dim;
    }

    /// As push_back, with no limit.
    void push_back_any(int64_t dim)
    {
        if (m_size < max_rank)
            return push_back(dim);
        if (std::has_single_bit(m_size)) {
            auto more = std::make_unique<int64_t[]>(2 * size_t(m_size));
            std::copy(begin(), end(), more.get());
            m_many = std::move(more);
        }
        m_many[m_size++] = dim;
    }

    bool concrete() const
    {
        return m_valid && std::none_of(begin(), end(), [](int64_t d) { return d < 0; });
    }

    /// Product of the sizes; throws when it does not fit 63 bits.
    int64_t element_count() const
    {
        int64_t count = 1;
        for (int64_t dim : *this)
            if (__builtin_mul_overflow(count, dim, &count))
                fail(ErrorKind::overflow, "shape ", str(), " has more elements than 64-bit indices can address");
        return count;
    }

    /// Row-major strides in elements; throws when one does not fit 63 bits.
    Shape contiguous_strides() const
    {
        Shape strides = *this;
        int64_t step = 1;
        bool fits = true;
        for (size_t i = m_size; i-- > 0;) {
            if (!fits)
                fail(ErrorKind::overflow, "shape ", str(), " has strides that do not fit 64 bits");
            strides[i] = step;
            fits = !__builtin_mul_overflow(step, std::max<int64_t>((*this)[i], 1), &step);
        }
        return strides;
    }

    std::string str() const
    {
        if (!m_valid)
            return "[invalid]";
        std::string text = "[";
        for (size_t i = 0; i < m_size; ++i)
            text += (i ? ", " : "") + std::to_string((*this)[i]);
        return text + "]";
    }

    friend bool operator==(const Shape& a, const Shape& b)
    {
        return a.m_valid == b.m_valid && std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    /// Calls copy shapes all the time: only what is used of them.
    void copy_dims(const Shape& other)
    {
        if (other.m_many)
            m_many = std::make_unique<int64_t[]>(std::bit_ceil(other.m_size));
        int64_t* to = m_many ? m_many.get() : m_dims.data();
        const int64_t* from = other.begin();
        constexpr uint32_t few = 4; // a call of memmove takes longer
        for (uint32_t i = 0; i < few; ++i)
            if (i < m_size)
                to[i] = from[i];
        if (m_size > few)
            std::copy_n(from + few, m_size - few, to + few);
    }

    std::array<int64_t, max_rank> m_dims; ///< the first m_size count
    std::unique_ptr<int64_t[]> m_many;    ///< instead of m_dims, for more than max_rank
    uint32_t m_size = 0;
    bool m_valid = true;
};

} // namespace spy
