#pragma once
// A call plan: plain data that says how the leaves of a signature are written into a kernel's arguments.
// Python builds it once per key (slangpy/call), native code repeats it.
#include "call/value.h"

#include <memory>
#include <unordered_map>

namespace spy {

/// Where one view of a leaf goes in the argument bytes; -1 = not stored.
struct ViewSlot {
    int32_t data = -1;          ///< address of the first element, 8 bytes
    int32_t lead_strides = -1;  ///< int32 per vectorised dimension, 0 where broadcast
    int32_t inner_strides = -1; ///< int32 per consumed dimension
    int32_t inner_shape = -1;   ///< uint32 per consumed dimension
    int32_t first = -1;         ///< int64: storage element that the address is of
};

/// A value stored at a fixed offset, with its layout.
struct ValueSlot {
    int32_t offset = -1;
    ref<TypeLayout> layout;
};

enum class ViewSource : uint8_t { primal, grad_in, grad_out, count_ };

enum class LeafKind : uint8_t { skip, value, view, packed, generator, pointer, resource, reference, custom, table };

/// How a leaf depends on the call index at run time; 2 bits of a variant key.
enum class AccessClass : uint8_t { general, linear, uniform, periodic };
/// Most invocations after which a periodic gradient repeats its elements.
constexpr int64_t max_period = 1024;

struct LeafPlan {
    LeafKind kind = LeafKind::skip;
    std::string name; ///< parameter or field path, for messages
    uint32_t vector_dims = 0;      ///< leading dimensions spread over the call
    std::vector<uint8_t> map;      ///< call dimension of each
    Shape inner;                   ///< demanded sizes of the trailing dimensions, -1 = any
    bool reads = true, writes = false;
    ScalarType scalar = ScalarType::none; ///< packed: element type in the kernel
    uint32_t element_size = 0;            ///< bytes of one stored element on the device
    uint32_t vectors = 0; ///< a view of vectors over scalars: how many scalars it takes to lie side by side
    ViewSlot views[size_t(ViewSource::count_)];
    ValueSlot value, seed, out; ///< references: value read, seed gradient read, address of the value written; custom: value
    ValueSlot tangent; ///< references, forward mode: address of the tangent written
    bool out_is_grad = false;   ///< the written value goes to DiffPair.grad
    bool out_is_pair = false;   ///< both halves of a DiffPair are written, as a struct with fields p and d
    int32_t shape_offset = -1, offset_offset = -1, stride_offset = -1; ///< generators, custom (stride): int64 entries
    int32_t seed_offset = -1, min_offset = -1, max_offset = -1;
    ScalarType range_scalar = ScalarType::float32; ///< of min and max
    int32_t slot = -1;   ///< resources; with a map: a texture, one texel per invocation
    int32_t read_slot = -1; ///< textures that are read through a second parameter
    bool carries = false; ///< torch: autograd may send a gradient through it
    bool whole = false;   ///< a tensor parameter: the function picks the elements
    uint32_t sum_ratio = 0; ///< gradient target: bytes of sums per byte; 0: kernels add to the gradient itself
    uint32_t sum_item = 0;  ///< bytes of one stored element of the gradient
    Shape table_shape;        ///< table: sizes of the list
    uint32_t table_bytes = 0; ///< table: bytes of all rows
    int32_t table = -1;       ///< entry of a list: leaf of the list, whose rows `views` are offsets into
    bool classed = false; ///< takes part in the variant key
};

enum class ResultMode : uint8_t { none, value, tensor, numpy, leaf, torch, texture, custom };

struct ResultPlan {
    ResultMode mode = ResultMode::none;
    LeafPlan leaf;                ///< how the new container is written (mode tensor, numpy, value)
    ref<TypeLayout> element;      ///< element layout on the device
    nb::object dtype;             ///< numpy dtype or slangpy type
    Shape element_shape;          ///< appended to numpy results
    bool carries = false;         ///< its elements have gradients
    std::shared_ptr<ResultPlan> tangent; ///< forward mode: the container of the tangent, made like this one
};

/// One compiled form of a plan's kernel.
struct Variant {
    ref<Kernel> kernel;
    uint32_t items_per_group = 0; ///< invocations of one group; 0 = the CPU block given by `block_offset`
    uint32_t max_groups = 0;      ///< 0 = any; else each thread handles every (groups * items)-th invocation
};

/// Memory that torch and a device of another API see, kept from call to call.
struct SharedPiece {
    uint64_t stream = 0, size = 0;
    ref<Buffer> buffer;
    nb::object bytes; ///< as a torch tensor
};

struct CallPlan {
    std::string label;
    ref<Device> device;
    std::vector<LeafPlan> leaves; ///< by leaf index of the signature
    ResultPlan result;
    uint32_t call_rank = 0;
    uint32_t argument_size = 0;
    int32_t total_offset = -1, block_offset = -1, flags_offset = -1, shape_offset = -1, period_offset = -1,
            redirects_offset = -1, bounds_offset = -1;
    bool size_dependent = false;  ///< list lengths belong to the key
    bool shape_dependent = false; ///< so do the sizes of containers
    bool can_flatten = false;
    Shape tile; ///< call groups, in all dimensions of the call: a launch counts tiles; empty without groups
    bool can_widen = false; ///< flat kernels may move several neighbours per thread
    bool is_forward_mode = false; ///< gradients are tangents: stored, never added up
    bool is_unchecked = false;    ///< its derivatives are to be compared with others after the first run
    uint32_t min_call_rank = 0;
    std::unordered_map<uint64_t, Variant> variants;
    nb::object view;     ///< the planner's record: builds variants, formats errors
    Shape last_call_shape;
    std::vector<SharedPiece> shared_pieces;
    /// torch: backward plans by the set of torch arguments that gradients are wanted of (bits by position; the highest:
    /// sums in a fixed order).
    std::vector<std::pair<uint64_t, std::weak_ptr<CallPlan>>> backward;
    bool strict = false;
    bool needs_globals = false; ///< the kernel uses global resources
};

/// bit 0: flattened to one dimension; bit 1: more than 2^31 invocations; bit 2: wide accesses (16-byte aligned views);
/// then 2 bits for each classed leaf.
using VariantKey = uint64_t;
constexpr uint32_t max_classed_leaves = 30;
/// Not a form of the kernel: settles the sums of the leaf in the low bits.
constexpr VariantKey settle_variant = 1ull << 63;

} // namespace spy
