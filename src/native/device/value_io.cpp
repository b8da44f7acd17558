#include "device/value_io.h"

#include "math/half.h"

#include <algorithm>

namespace spy {

uint32_t encode_small_float(double value, int exponent_bits, int mantissa_bits, bool has_inf)
{
    const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
    const uint32_t top = ((1u << exponent_bits) - 1) << mantissa_bits; // exponent all ones
    const uint32_t nan = has_inf ? top | (1u << (mantissa_bits - 1)) : top | ((1u << mantissa_bits) - 1);
    if (std::isnan(value))
        return sign | nan;
    if (std::isinf(value))
        return sign | (has_inf ? top : nan);
    const double magnitude = std::fabs(value);
    if (magnitude == 0)
        return sign;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent;
    std::frexp(magnitude, &exponent);
    exponent = std::max(exponent - 1, 1 - bias); // below: subnormal, same step as the smallest normal
    if (exponent > bias + 1)
        return sign | (has_inf ? top : nan);
    const auto digits = uint32_t(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    // The implicit bit of `digits` adds 1 to the exponent field, and a carry out of rounding another one.
    const uint32_t bits = (uint32_t(exponent + bias - 1) << mantissa_bits) + digits;
    if (has_inf)
        return sign | std::min(bits, top);
    return sign | (bits >= nan ? nan : bits);
}

double decode_small_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_inf)
{
    const uint32_t mantissa_mask = (1u << mantissa_bits) - 1, exponent_mask = (1u << exponent_bits) - 1;
    const uint32_t mantissa = bits & mantissa_mask, exponent = (bits >> mantissa_bits) & exponent_mask;
    const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1.0 : 1.0;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == exponent_mask) {
        if (has_inf && mantissa == 0)
            return sign * std::numeric_limits<double>::infinity();
        if (has_inf || mantissa == mantissa_mask)
            return std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0)
        return sign * std::ldexp(double(mantissa), 1 - bias - mantissa_bits);
    return sign * std::ldexp(double(mantissa | (1u << mantissa_bits)), int(exponent) - bias - mantissa_bits);
}

StoreResult store_small_float(ScalarType target, uint8_t* dst, double value)
{
    switch (target) {
    case ScalarType::float16: store_raw<uint16_t>(dst, float16_from_double(value).bits); break;
    case ScalarType::bfloat16: store_raw<uint16_t>(dst, uint16_t(encode_small_float(value, 8, 7, true))); break;
    case ScalarType::float8_e4m3: *dst = uint8_t(encode_small_float(value, 4, 3, false)); break;
    case ScalarType::float8_e5m2: *dst = uint8_t(encode_small_float(value, 5, 2, true)); break;
    default: fail_runtime("no scalar of type '", scalar_info(target).slang_name, "' can be stored");
    }
    return StoreResult::ok;
}

Number load_number(ScalarType type, uint32_t bool_bytes, const uint8_t* src)
{
    switch (type) {
    case ScalarType::bool_: return Number::from_bool(bool_bytes >= 4 ? load_raw<uint32_t>(src) != 0 : *src != 0);
    case ScalarType::int8: return Number::from_int(load_raw<int8_t>(src));
    case ScalarType::int16: return Number::from_int(load_raw<int16_t>(src));
    case ScalarType::int32: return Number::from_int(load_raw<int32_t>(src));
    case ScalarType::int64: return Number::from_int(load_raw<int64_t>(src));
    case ScalarType::uint8: return Number::from_uint(load_raw<uint8_t>(src));
    case ScalarType::uint16: return Number::from_uint(load_raw<uint16_t>(src));
    case ScalarType::uint32: return Number::from_uint(load_raw<uint32_t>(src));
    case ScalarType::uint64: return Number::from_uint(load_raw<uint64_t>(src));
    case ScalarType::float32: return Number::from_real(load_raw<float>(src));
    case ScalarType::float64: return Number::from_real(load_raw<double>(src));
    case ScalarType::float16: return Number::from_real(float16_to_float({load_raw<uint16_t>(src)}));
    case ScalarType::bfloat16: return Number::from_real(decode_small_float(load_raw<uint16_t>(src), 8, 7, true));
    case ScalarType::float8_e4m3: return Number::from_real(decode_small_float(*src, 4, 3, false));
    case ScalarType::float8_e5m2: return Number::from_real(decode_small_float(*src, 5, 2, true));
    default: fail_runtime("no scalar of type '", scalar_info(type).slang_name, "' can be read");
    }
}

StoreResult store_number_exact(ScalarType target, uint32_t bool_bytes, uint8_t* dst, const Number& n)
{
    uint8_t stored[8] = {};
    const StoreResult result = store_number(target, bool_bytes, stored, n);
    if (result != StoreResult::ok)
        return result;
    if (scalar_info(target).is_float) {
        const double back = load_number(target, bool_bytes, stored).f;
        const bool is_real = n.kind == Number::Kind::real;
        if (is_real ? back != n.f && !(std::isnan(back) && std::isnan(n.f)) : back != n.as_double())
            return StoreResult::out_of_range;
        // as_double() itself rounds integers beyond 53 bits.
        uint8_t integer[8];
        if (!is_real && std::fabs(back) >= 0x1p53) {
            const bool is_signed = n.kind == Number::Kind::signed_;
            const ScalarType type = is_signed ? ScalarType::int64 : ScalarType::uint64;
            if (store_number(type, 0, integer, Number::from_real(back)) != StoreResult::ok ||
                load_raw<uint64_t>(integer) != n.u)
                return StoreResult::out_of_range;
        }
    }
    std::memcpy(dst, stored, target == ScalarType::bool_ ? bool_bytes : scalar_info(target).size);
    return StoreResult::ok;
}

bool same_bits(ScalarType a, ScalarType b)
{
    const ScalarInfo &x = scalar_info(a), &y = scalar_info(b);
    return a == b || (x.is_integer && y.is_integer && x.size == y.size);
}

namespace {

/// Bytes between the rows of a row-major, the columns of a column-major matrix.
uint64_t major_step(const TypeLayout& layout)
{
    if (layout.element_stride)
        return layout.element_stride;
    const uint32_t major = layout.row_major ? layout.rows : layout.cols;
    return major ? layout.size / major : 0;
}

ref<TypeLayout> make_scalar_layout(ScalarType scalar, uint32_t bytes)
{
    ref<TypeLayout> layout = new TypeLayout();
    layout->kind = TypeKind::scalar;
    layout->name = layout->full_name = std::string(scalar_info(scalar).slang_name);
    layout->scalar = scalar;
    layout->rows = layout->cols = 1;
    layout->size = layout->stride = layout->alignment = bytes;
    return layout;
}

ref<TypeLayout> make_row_layout(const TypeLayout& matrix)
{
    const uint32_t bytes = scalar_bytes(matrix);
    ref<TypeLayout> row = new TypeLayout();
    row->kind = TypeKind::vector;
    row->name = "vector";
    row->full_name = cat("vector<", scalar_info(matrix.scalar).slang_name, ",", matrix.cols, ">");
    row->scalar = matrix.scalar;
    row->rows = 1;
    row->cols = matrix.cols;
    row->alignment = bytes;
    row->element_stride = matrix.row_major ? bytes : major_step(matrix);
    row->size = row->element_stride * (matrix.cols - 1) + bytes;
    row->stride = matrix.row_major ? major_step(matrix) : bytes;
    row->element = make_scalar_layout(matrix.scalar, bytes);
    return row;
}

} // namespace

uint32_t scalar_bytes(const TypeLayout& layout)
{
    if (layout.scalar != ScalarType::bool_)
        return scalar_info(layout.scalar).size;
    uint64_t step = layout.size;
    uint32_t count = 1;
    if (layout.kind == TypeKind::vector) {
        count = std::max(layout.cols, 1u);
    } else if (layout.kind == TypeKind::matrix) {
        step = major_step(layout);
        count = std::max(layout.row_major ? layout.cols : layout.rows, 1u);
    }
    return step >= 4 * uint64_t(count) ? 4 : 1;
}

std::string type_text(const TypeLayout& layout)
{
    switch (layout.kind) {
    case TypeKind::scalar: return std::string(scalar_info(layout.scalar).slang_name);
    case TypeKind::vector: return cat(scalar_info(layout.scalar).slang_name, layout.cols);
    case TypeKind::matrix: return cat(scalar_info(layout.scalar).slang_name, layout.rows, "x", layout.cols);
    default: return layout.full_name.empty() ? layout.name : layout.full_name;
    }
}

ref<TypeLayout> element_layout(const TypeLayout& layout)
{
    switch (layout.kind) {
    case TypeKind::array: return layout.element;
    case TypeKind::vector:
        return layout.element ? layout.element : make_scalar_layout(layout.scalar, scalar_bytes(layout));
    case TypeKind::matrix: return make_row_layout(layout);
    default: return nullptr;
    }
}

uint64_t element_step(const TypeLayout& layout)
{
    switch (layout.kind) {
    case TypeKind::array: return layout.element_stride;
    case TypeKind::vector: return layout.element_stride ? layout.element_stride : scalar_bytes(layout);
    case TypeKind::matrix: return layout.row_major ? major_step(layout) : scalar_bytes(layout);
    default: return 0;
    }
}

int64_t element_count(const TypeLayout& layout)
{
    switch (layout.kind) {
    case TypeKind::array: return std::max<int64_t>(layout.element_count, 0);
    case TypeKind::vector: return layout.cols;
    case TypeKind::matrix: return layout.rows;
    default: return 0;
    }
}

std::string ScalarGrid::shape_text() const
{
    std::string text = "(";
    for (uint32_t axis = 0; axis < rank; ++axis)
        text += cat(axis ? ", " : "", shape[axis]);
    return text + (rank == 1 ? ",)" : ")");
}

void ScalarGrid::push(int64_t size, int64_t step)
{
    shape[rank] = size;
    stride[rank++] = step;
}

bool scalar_grid(const TypeLayout& layout, ScalarGrid& grid)
{
    const TypeLayout* leaf = &layout;
    for (; leaf->kind == TypeKind::array; leaf = leaf->element.get()) {
        if (!leaf->element || leaf->element_count < 0 || grid.rank + 3 > ScalarGrid::max_rank)
            return false;
        grid.push(leaf->element_count, int64_t(leaf->element_stride));
    }
    grid.scalar = leaf->scalar;
    grid.scalar_bytes = scalar_bytes(*leaf);
    const auto scalar_step = int64_t(grid.scalar_bytes);
    switch (leaf->kind) {
    case TypeKind::scalar:
    case TypeKind::enum_: return true;
    case TypeKind::vector: grid.push(leaf->cols, int64_t(element_step(*leaf))); return true;
    case TypeKind::matrix: {
        const auto major = int64_t(major_step(*leaf));
        grid.push(leaf->rows, leaf->row_major ? major : scalar_step);
        grid.push(leaf->cols, leaf->row_major ? scalar_step : major);
        return true;
    }
    case TypeKind::pointer:
        grid.scalar = ScalarType::uint64;
        grid.scalar_bytes = 8;
        return true;
    default: return false;
    }
}

namespace {

/// Calls visit(grid offset, host offset) for every scalar.
template <typename Visit>
void visit_scalars(const ScalarGrid& grid, const int64_t* host_strides, uint32_t axis, int64_t offset,
                   int64_t host_offset, const Visit& visit)
{
    if (axis == grid.rank) {
        visit(offset, host_offset);
        return;
    }
    for (int64_t i = 0; i < grid.shape[axis]; ++i)
        visit_scalars(grid, host_strides, axis + 1, offset + i * grid.stride[axis],
                      host_offset + i * host_strides[axis], visit);
}

} // namespace

void write_grid(const ScalarGrid& grid, uint8_t* dst, const uint8_t* src, const int64_t* src_strides)
{
    const uint32_t bytes = grid.scalar_bytes;
    const bool is_bool = grid.scalar == ScalarType::bool_;
    visit_scalars(grid, src_strides, 0, 0, 0, [&](int64_t to, int64_t from) {
        if (is_bool)
            store_bool(dst + to, bytes, src[from] != 0);
        else
            std::memcpy(dst + to, src + from, bytes);
    });
}

void read_grid(const ScalarGrid& grid, const uint8_t* src, uint8_t* packed)
{
    const uint32_t bytes = grid.scalar_bytes;
    const bool is_bool = grid.scalar == ScalarType::bool_;
    int64_t strides[ScalarGrid::max_rank];
    int64_t step = is_bool ? 1 : bytes;
    for (uint32_t axis = grid.rank; axis-- > 0; step *= grid.shape[axis])
        strides[axis] = step;
    visit_scalars(grid, strides, 0, 0, 0, [&](int64_t from, int64_t to) {
        if (is_bool)
            packed[to] = load_number(ScalarType::bool_, bytes, src + from).u != 0;
        else
            std::memcpy(packed + to, src + from, bytes);
    });
}

} // namespace spy
