#pragma once
// What the signature walk knows about one Python value: enough to write it into a kernel's arguments later.
#include "values/nb.h" // first

#include "core/format.h"
#include "core/layout.h"
#include "core/shape.h"
#include "device/device.h"

#include <array>
#include <vector>

namespace spy {

/// The native half of slangpy.Tensor: a view (storage, element layout, shape, strides, offset) with gradients.
/// Strides and offset count elements.
struct TensorBase {
    ref<Buffer> storage;
    ref<TypeLayout> layout; ///< element layout in a buffer of the device
    Shape shape, strides;
    int64_t offset = 0;
    uint32_t type_id = 0; ///< equal for equal full names and, of structs, equal layouts
    bool writable = false;
    nb::object dtype, grad_in, grad_out; ///< grads: TensorBase or None
    uint64_t raw_address = 0;            ///< memory of somebody else (torch); then there is no storage
    uint32_t raw_item = 0;               ///< bytes of one of its elements

    uint64_t address() const;
};

enum class GeneratorKind : uint8_t { range, grid, call_id, thread_id, wang_hash, rand_float };

/// Values made inside the kernel.
struct Generator {
    GeneratorKind kind = GeneratorKind::range;
    int64_t dims = -1;             ///< demanded components, -1 = what the parameter has
    Shape shape, offset, stride;   ///< grid; range: one entry each (size, start, step)
    uint32_t seed = 0, warmup = 0; ///< seed after hashing
    double min = 0, max = 1;
};

struct ValueRef {
    nb::object value;
};

struct DiffPair {
    nb::object primal, grad;
    bool needs_grad = true;
};

/// A torch tensor with its gradient, for backward calls by hand.
struct TorchPair {
    nb::object primal, grad;
    nb::object seed;    ///< gradient that is read, where it is another tensor than `grad`, which is added to
    bool fresh = false; ///< `grad` holds nothing yet
};

/// Stands for the next of the torch tensors that a call is given beside its arguments.
struct TorchSlot { };

enum class ValueKind : uint8_t {
    none,
    boolean,
    integer,
    floating,
    scalar,
    vector,
    matrix,
    list,
    array,
    tensor,
    dict,
    buffer,
    texture,
    texture_view,
    sampler,
    descriptor_handle,
    acceleration_structure,
    generator,
    value_ref,
    diff_pair,
    torch,
    custom,
    unsupported,
};
const char* to_string(ValueKind kind);

namespace value_flag {
constexpr uint8_t writable = 1, grad_in = 2, grad_out = 4, shared_grad = 8, fresh = 16, huge = 32, needs_grad = 128,
                  no_primal = 64;
}

struct PackedArg;

/// One value without parts (dict fields are leaves of their own), in the order of the walk.
struct Leaf {
    ValueKind kind = ValueKind::none;
    ScalarType scalar = ScalarType::none;
    uint8_t flags = 0;
    uint8_t rows = 0, cols = 0; ///< vectors (rows = 1), matrices
    PyObject* object = nullptr; ///< borrowed from the arguments or from Signature::keep
    uint64_t address = 0;       ///< arrays, tensors: first element
    Shape shape;                ///< container dimensions
    Shape strides;              ///< arrays: bytes; tensors: elements
    TensorBase* tensor = nullptr;
    std::array<TensorBase*, 2> grads{};        ///< torch: gradient read, gradient added to; owned by the signature
    int32_t device_type = 0, device_index = 0; ///< torch: DLPack device
    std::vector<nb::object> items; ///< flattened list; owned, since other code may run before they are written
    bool is_apart = false;         ///< another argument is written over it: the kernel works on a copy
    PackedArg* packed = nullptr;   ///< the packed value that this is a part of
    uint32_t packed_index = 0;     ///< number of the leaf in it
};

/// A value that never changes (slangpy.pack): walked once, and what of it goes to the device goes there once.
struct PackedArg {
    struct Upload {
        uint32_t leaf;
        ScalarType scalar;
        uint32_t element_size;
        ref<Buffer> buffer;
    };
    nb::object value;    ///< what calls bind
    bool walked = false; ///< the rest is filled
    std::string key;
    std::vector<Leaf> leaves;
    std::vector<nb::object> keep, answers;
    std::vector<Upload> uploads;
};

nb::tuple to_tuple(const Shape& shape);

/// Process-wide number of an element type: of its full name and, where it holds structs, of where their fields lie.
/// Modules may define different structs of one name, and an edited source moves fields.
uint32_t type_id(const TypeLayout& layout);
/// Whether a type is a struct, or arrays of one.
bool holds_struct(const TypeLayout& layout);

} // namespace spy
