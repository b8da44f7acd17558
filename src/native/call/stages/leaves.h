#pragma once
// What the stages ask of single leaves.
#include "call/stages.h"

#include <array>
#include <cstring>

namespace spy {

inline constexpr const char* slot_names[] = {"tensor", "grad_in", "grad_out"};

/// Sizes of a container, followed by the components of vectors and matrices.
Shape full_shape(const Leaf& leaf);
/// The sizes that a call sees: of a list of structured elements, those of the list.
Shape shape_of(const LeafSpec& spec, const Leaf& leaf);
/// Element strides of a leaf's container; numpy strides are bytes.
Shape element_strides(const LeafSpec& spec, const Leaf& leaf);

/// A view as the classes see it: strides of the memory that the kernel works on, in elements.
struct Reach {
    const LeafSpec& spec;
    Shape shape, strides;
};
Reach reach_of(const Call& call, const LeafSpec& spec, const Leaf& leaf);

/// A strided host array in packed memory of `element` bytes per element (bool may grow to 4).
std::vector<uint8_t> pack_array(const Leaf& leaf, uint32_t element);
/// Packed elements back into the leaf's array.
void unpack_array(const Leaf& leaf, const uint8_t* packed, uint32_t element);

/// The tensor or the gradient of it that a view reaches.
const TensorBase& tensor_of(const Leaf& leaf, ViewSource source);
/// The gradients that a view reaches, read and added to; null where there is none.
std::array<const TensorBase*, 2> gradients(const ViewSpec& view, const Leaf& leaf);

/// Whether the kernel works on a copy of a host array, which has no gaps.
bool is_copied(const Call& call, const ElementSpec& element, const Leaf& leaf);

/// Tells torch which tensors the call writes.
void bump_versions(const Call& call);

/// Zeroes a gradient that a kernel will add to; torch does so on its current stream.
void clear_fresh(const Leaf& leaf);

/// The address that a device has for a buffer.
inline uint64_t address_of(const Buffer& buffer)
{
    const uint64_t address = buffer.device_address();
    return address ? address : reinterpret_cast<uint64_t>(buffer.host_pointer());
}

/// A buffer for the time of a call, its content not set. Usage beyond shaders' access: copies.
ref<Buffer> temporary_buffer(const Call& call, uint64_t size, std::string label = {}, bool uninitialized = true);

} // namespace spy
