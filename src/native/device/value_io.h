#pragma once
// Numbers and grids of numbers in bytes laid out by a TypeLayout. No Python here: values/writer.h builds on it.
#include "core/error.h"
#include "core/layout.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace spy {

/// A scalar on its way between host and laid-out bytes.
struct Number {
    enum class Kind : uint8_t {
        boolean,
        signed_,
        unsigned_,
        real,
        huge, ///< an integer beyond 64 bits; `f` is its nearest double
    };
    Kind kind = Kind::signed_;
    union {
        int64_t i = 0;
        uint64_t u;
        double f;
    };

    static Number from_bool(bool value)
    {
        Number n;
        n.kind = Kind::boolean;
        n.u = value;
        return n;
    }
    static Number from_int(int64_t value)
    {
        Number n;
        n.i = value;
        return n;
    }
    static Number from_uint(uint64_t value)
    {
        Number n;
        n.kind = Kind::unsigned_;
        n.u = value;
        return n;
    }
    static Number from_real(double value)
    {
        Number n;
        n.kind = Kind::real;
        n.f = value;
        return n;
    }
    static Number from_huge(double value)
    {
        Number n;
        n.kind = Kind::huge;
        n.f = value;
        return n;
    }

    double as_double() const
    {
        switch (kind) {
        case Kind::signed_: return double(i);
        case Kind::boolean:
        case Kind::unsigned_: return double(u);
        default: return f;
        }
    }
};

enum class StoreResult : uint8_t {
    ok,
    out_of_range, ///< the value does not fit the integer type
    fraction,     ///< a float with a fraction, inf or nan for an integer type
    wrong_kind,   ///< a float for bool
};

/// bfloat16 and the 8-bit formats (float16 is in math/half.h), rounded to nearest even straight from double. `has_inf`
/// is false for E4M3, whose overflow is nan.
uint32_t encode_small_float(double value, int exponent_bits, int mantissa_bits, bool has_inf);
double decode_small_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_inf);

template <typename T>
inline void store_raw(uint8_t* dst, T value)
{
    std::memcpy(dst, &value, sizeof(T));
}

template <typename T>
inline T load_raw(const uint8_t* src)
{
    T value;
    std::memcpy(&value, src, sizeof(T));
    return value;
}

/// A device's bool takes `bool_bytes` (1 or 4) and is stored as 0 or 1.
inline void store_bool(uint8_t* dst, uint32_t bool_bytes, bool value)
{
    if (bool_bytes >= 4)
        store_raw<uint32_t>(dst, value);
    else
        *dst = value;
}

template <typename T>
inline StoreResult store_integer(uint8_t* dst, const Number& n)
{
    using Limits = std::numeric_limits<T>;
    switch (n.kind) {
    case Number::Kind::signed_:
        if constexpr (std::is_signed_v<T>) {
            if (n.i < int64_t(Limits::min()) || n.i > int64_t(Limits::max()))
                return StoreResult::out_of_range;
        } else if (n.i < 0 || uint64_t(n.i) > uint64_t(Limits::max())) {
            return StoreResult::out_of_range;
        }
        break;
    case Number::Kind::boolean:
    case Number::Kind::unsigned_:
        if (n.u > uint64_t(Limits::max()))
            return StoreResult::out_of_range;
        break;
    case Number::Kind::huge: return StoreResult::out_of_range;
    case Number::Kind::real:
        if (!std::isfinite(n.f) || n.f != std::trunc(n.f))
            return StoreResult::fraction;
        // 2^digits is exact in double where max() itself is not.
        if (n.f < double(Limits::min()) || n.f >= std::ldexp(1.0, Limits::digits))
            return StoreResult::out_of_range;
        store_raw<T>(dst, T(n.f));
        return StoreResult::ok;
    }
    store_raw<T>(dst, T(n.u));
    return StoreResult::ok;
}

StoreResult store_small_float(ScalarType target, uint8_t* dst, double value);

/// Writes one number as `target`. Integers are exact or refused, floats are rounded to nearest, overflow gives inf.
inline StoreResult store_number(ScalarType target, uint32_t bool_bytes, uint8_t* dst, const Number& n)
{
    switch (target) {
    case ScalarType::float32:
        // int64 goes straight to float: a stop at double would round twice.
        store_raw<float>(dst,
                         n.kind == Number::Kind::signed_         ? float(n.i)
                             : n.kind == Number::Kind::unsigned_ ? float(n.u)
                                                                 : float(n.as_double()));
        return StoreResult::ok;
    case ScalarType::float64: store_raw<double>(dst, n.as_double()); return StoreResult::ok;
    case ScalarType::int32: return store_integer<int32_t>(dst, n);
    case ScalarType::uint32: return store_integer<uint32_t>(dst, n);
    case ScalarType::int64: return store_integer<int64_t>(dst, n);
    case ScalarType::uint64: return store_integer<uint64_t>(dst, n);
    case ScalarType::int8: return store_integer<int8_t>(dst, n);
    case ScalarType::uint8: return store_integer<uint8_t>(dst, n);
    case ScalarType::int16: return store_integer<int16_t>(dst, n);
    case ScalarType::uint16: return store_integer<uint16_t>(dst, n);
    case ScalarType::bool_:
        if (n.kind == Number::Kind::real)
            return StoreResult::wrong_kind;
        store_bool(dst, bool_bytes, n.kind == Number::Kind::huge || n.u != 0);
        return StoreResult::ok;
    default: return store_small_float(target, dst, n.as_double());
    }
}

/// Integers and bool as such, every float type as real.
Number load_number(ScalarType type, uint32_t bool_bytes, const uint8_t* src);

/// Whether a finite number was stored as an infinite one (or as nan, where a type has no other): it is beyond the
/// range.
inline bool became_infinite(ScalarType target, const uint8_t* stored, const Number& n)
{
    if (!scalar_info(target).is_float || target == ScalarType::float64)
        return false;
    const double back = target == ScalarType::float32 ? load_raw<float>(stored) : load_number(target, 1, stored).f;
    return !std::isfinite(back) && std::isfinite(n.as_double());
}

/// store_number that also refuses a float target which cannot hold the value exactly (out_of_range).
StoreResult store_number_exact(ScalarType target, uint32_t bool_bytes, uint8_t* dst, const Number& n);

/// Same type, or integers of one size that differ in sign only: bits may be copied.
bool same_bits(ScalarType a, ScalarType b);

// --- layouts

/// Bytes of one scalar of a scalar, enum, vector or matrix as the device stores it.
uint32_t scalar_bytes(const TypeLayout& layout);
/// Name for messages: "float3", "float2x3", "int[4]", "Light".
std::string type_text(const TypeLayout& layout);
/// Layout of what find_element gives: array elements, vector components, matrix rows; null when there are none.
ref<TypeLayout> element_layout(const TypeLayout& layout);
/// Bytes between those elements, and their number. Unbounded arrays have no elements that could be walked into.
uint64_t element_step(const TypeLayout& layout);
int64_t element_count(const TypeLayout& layout);

/// The axes of nested arrays of a scalar, vector or matrix, down to scalars: (count, ..., R, C).
struct ScalarGrid {
    static constexpr uint32_t max_rank = 10;
    ScalarType scalar = ScalarType::none;
    uint32_t scalar_bytes = 0;
    uint32_t rank = 0;
    int64_t shape[max_rank] = {}, stride[max_rank] = {}; ///< strides in bytes

    std::string shape_text() const; ///< "(4, 3)"
    void push(int64_t size, int64_t step);
};
/// False for types that are not made of scalars alone, and for unbounded arrays.
bool scalar_grid(const TypeLayout& layout, ScalarGrid& grid);

/// Copies scalars of the same bits (bool: one byte on the host) from strided host memory into the grid.
void write_grid(const ScalarGrid& grid, uint8_t* dst, const uint8_t* src, const int64_t* src_strides);
/// Copies the grid into packed C-ordered host memory (bool: one byte).
void read_grid(const ScalarGrid& grid, const uint8_t* src, uint8_t* packed);

} // namespace spy
