#pragma once
// Small helpers that the parts of Launch share.
#include "call/plan.h"

#include <cstring>

namespace spy {

inline constexpr const char* slot_names[] = {"tensor", "grad_in", "grad_out"};

inline bool is_host_device(const Device& device)
{
    return device.info().type == DeviceType::cpu || device.info().type == DeviceType::null;
}

/// Copies a strided host array into packed memory of `element` bytes per element (bool may grow to 4), or back.
inline void copy_strided(uint8_t* packed, uint32_t element, uint8_t* base, uint32_t item, const Shape& shape,
                  const Shape& strides, size_t dim, bool into_packed, int64_t& position)
{
    if (dim == shape.size()) {
        uint8_t* at = packed + position++ * element;
        if (into_packed) {
            std::memcpy(at, base, std::min(item, element));
            if (element > item)
                std::memset(at + item, 0, element - item);
        } else {
            std::memcpy(base, at, std::min(item, element));
        }
        return;
    }
    for (int64_t i = 0; i < shape[dim]; ++i)
        copy_strided(packed, element, base + i * strides[dim], item, shape, strides, dim + 1, into_packed, position);
}

inline std::vector<uint8_t> pack_array(const Leaf& leaf, uint32_t element)
{
    std::vector<uint8_t> bytes(size_t(leaf.shape.element_count()) * element);
    int64_t position = 0;
    copy_strided(bytes.data(), element, reinterpret_cast<uint8_t*>(leaf.address), scalar_info(leaf.scalar).size,
                 leaf.shape, leaf.strides, 0, true, position);
    return bytes;
}

/// Sizes of a container, with the components of vectors and matrices behind them.
inline Shape full_shape(const Leaf& leaf)
{
    Shape shape = leaf.shape;
    if (leaf.kind == ValueKind::vector || leaf.kind == ValueKind::matrix || (leaf.kind == ValueKind::list && leaf.cols)) {
        if (leaf.rows > 1 || leaf.kind == ValueKind::matrix)
            shape.push_back(leaf.rows);
        shape.push_back(leaf.cols);
    }
    return shape;
}

/// The sizes that a call sees: of a list of structured elements, those of the list.
inline Shape shape_of(const LeafPlan& plan, const Leaf& leaf)
{
    Shape shape = full_shape(leaf);
    const size_t count = plan.vector_dims + plan.inner.size();
    if (plan.kind == LeafKind::packed && plan.value.layout && shape.size() > count)
        shape = Shape(std::span<const int64_t>(shape.begin(), count));
    return shape;
}

/// Element strides of a leaf's container; numpy strides are bytes.
inline Shape element_strides(const LeafPlan& plan, const Leaf& leaf)
{
    if (leaf.kind != ValueKind::array)
        return leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch ? leaf.strides
                                                                              : shape_of(plan, leaf).contiguous_strides();
    Shape strides = leaf.strides;
    int64_t item = scalar_info(leaf.scalar).size;
    for (size_t i = 0; i < strides.size(); ++i)
        strides[i] /= item;
    return strides;
}

} // namespace spy
