#include "call/stages/leaves.h"

#include <algorithm>

namespace spy {

namespace {

/// Copies a strided host array into packed memory, or back.
void copy_strided(uint8_t* packed, uint32_t element, const Leaf& leaf, uint8_t* base, size_t dim, bool into_packed,
                  int64_t& position)
{
    const uint32_t item = scalar_info(leaf.scalar).size;
    if (dim == leaf.shape.size()) {
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
    for (int64_t i = 0; i < leaf.shape[dim]; ++i)
        copy_strided(packed, element, leaf, base + i * leaf.strides[dim], dim + 1, into_packed, position);
}

} // namespace

std::vector<uint8_t> pack_array(const Leaf& leaf, uint32_t element)
{
    std::vector<uint8_t> bytes(size_t(leaf.shape.element_count()) * element);
    int64_t position = 0;
    copy_strided(bytes.data(), element, leaf, reinterpret_cast<uint8_t*>(leaf.address), 0, true, position);
    return bytes;
}

void unpack_array(const Leaf& leaf, const uint8_t* packed, uint32_t element)
{
    int64_t position = 0;
    copy_strided(const_cast<uint8_t*>(packed), element, leaf, reinterpret_cast<uint8_t*>(leaf.address), 0, false,
                 position);
}

Shape full_shape(const Leaf& leaf)
{
    Shape shape = leaf.shape;
    if (leaf.kind == ValueKind::vector || leaf.kind == ValueKind::matrix ||
        (leaf.kind == ValueKind::list && leaf.cols)) {
        if (leaf.rows > 1 || leaf.kind == ValueKind::matrix)
            shape.push_back(leaf.rows);
        shape.push_back(leaf.cols);
    }
    return shape;
}

Shape shape_of(const LeafSpec& spec, const Leaf& leaf)
{
    Shape shape = full_shape(leaf);
    const size_t count = spec.vector_dims() + spec.inner.size();
    const auto* packed = spec.as<PackedSpec>();
    if (packed && packed->element.layout && shape.size() > count)
        shape = Shape(std::span<const int64_t>(shape.begin(), count));
    return shape;
}

Shape element_strides(const LeafSpec& spec, const Leaf& leaf)
{
    if (leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch)
        return leaf.strides;
    if (leaf.kind != ValueKind::array)
        return shape_of(spec, leaf).contiguous_strides();
    Shape strides = leaf.strides;
    int64_t item = scalar_info(leaf.scalar).size;
    for (size_t i = 0; i < strides.size(); ++i)
        strides[i] /= item;
    return strides;
}

const TensorBase& tensor_of(const Leaf& leaf, ViewSource source)
{
    return source == ViewSource::grad_in ? *nb::cast<TensorBase*>(leaf.tensor->grad_in)
        : source == ViewSource::grad_out ? *nb::cast<TensorBase*>(leaf.tensor->grad_out)
                                         : *leaf.tensor;
}

std::array<const TensorBase*, 2> gradients(const ViewSpec& view, const Leaf& leaf)
{
    const bool reads = view.has(ViewSource::grad_in), adds = view.has(ViewSource::grad_out);
    if (!leaf.tensor) // torch; absent gradients are null
        return {reads ? leaf.grads[0] : nullptr, adds ? leaf.grads[1] : nullptr};
    return {reads ? &tensor_of(leaf, ViewSource::grad_in) : nullptr,
            adds ? &tensor_of(leaf, ViewSource::grad_out) : nullptr};
}

bool is_copied(const Call& call, const ElementSpec& element, const Leaf& leaf)
{
    if (leaf.kind != ValueKind::array)
        return false;
    const int64_t item = scalar_info(leaf.scalar).size;
    if (leaf.is_apart || !call.on_host || element.size != item || call.recorder)
        return true;
    bool aligned = leaf.address % uint64_t(item) == 0;
    for (size_t i = 0; i < leaf.shape.size(); ++i)
        aligned &= leaf.shape[i] <= 1 || leaf.strides[i] % item == 0;
    return !aligned;
}

Reach reach_of(const Call& call, const LeafSpec& spec, const Leaf& leaf)
{
    const auto* view = spec.as<ViewSpec>();
    if (is_copied(call, view ? view->element : spec.as<PackedSpec>()->element, leaf))
        return {spec, leaf.shape, leaf.shape.contiguous_strides()};
    return {spec, shape_of(spec, leaf), element_strides(spec, leaf)};
}

void clear_fresh(const Leaf& leaf)
{
    if (leaf.flags & value_flag::fresh && leaf.grads[1])
        leaf.grads[1]->dtype.attr("zero_")();
}

ref<Buffer> temporary_buffer(const Call& call, uint64_t size, std::string label, bool uninitialized)
{
    BufferDesc desc;
    desc.size = size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
        BufferUsage::copy_source;
    desc.label = std::move(label);
    desc.uninitialized = uninitialized;
    return call.plan.device->create_buffer(desc);
}

} // namespace spy
