#pragma once
#include "core/error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace spy {

/// Sizes (or strides) of up to `max_rank` dimensions; -1 is an unknown size. An invalid Shape is "no shape at all".
class Shape {
public:
    static constexpr size_t max_rank = 32;

    Shape() noexcept { }
    Shape(const Shape& other) noexcept : m_size(other.m_size), m_valid(other.m_valid) { copy_dims(other); }
    Shape& operator=(const Shape& other) noexcept
    {
        m_size = other.m_size;
        m_valid = other.m_valid;
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
    int64_t operator[](size_t i) const { return m_dims[i]; }
    int64_t& operator[](size_t i) { return m_dims[i]; }
    const int64_t* begin() const { return m_dims.data(); }
    const int64_t* end() const { return m_dims.data() + m_size; }
    std::span<const int64_t> dims() const { return {m_dims.data(), m_size}; }

    void push_back(int64_t dim)
    {
        if (m_size == max_rank)
            fail_value("a shape can have at most ", max_rank, " dimensions");
        m_dims[m_size++] = dim;
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

    /// Row-major strides in elements.
    Shape contiguous_strides() const
    {
        Shape strides = *this;
        int64_t step = 1;
        for (size_t i = m_size; i-- > 0;) {
            strides.m_dims[i] = step;
            step *= std::max<int64_t>(m_dims[i], 1);
        }
        return strides;
    }

    std::string str() const
    {
        if (!m_valid)
            return "[invalid]";
        std::string text = "[";
        for (size_t i = 0; i < m_size; ++i)
            text += (i ? ", " : "") + std::to_string(m_dims[i]);
        return text + "]";
    }

    friend bool operator==(const Shape& a, const Shape& b)
    {
        return a.m_valid == b.m_valid && std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    /// Calls copy shapes all the time: only what is used of them.
    void copy_dims(const Shape& other) noexcept { std::copy_n(other.m_dims.data(), other.m_size, m_dims.data()); }

    std::array<int64_t, max_rank> m_dims; ///< the first m_size count
    uint32_t m_size = 0;
    bool m_valid = true;
};

} // namespace spy
