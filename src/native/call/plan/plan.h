#pragma once
// A call plan: plain data that says how the leaves of a signature are written into a kernel's arguments.
// Python builds it once per key (slangpy/plan), native code repeats it.
#include "values/value.h"

#include <memory>
#include <unordered_map>
#include <variant>

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

/// What memory holds of one element.
struct ElementSpec {
    ScalarType scalar = ScalarType::none;
    uint32_t size = 0;      ///< bytes of one stored element on the device; 0: not known
    ref<TypeLayout> layout; ///< lists of structured elements: each is written as this
};

/// A gradient that kernels add to beside its memory.
struct SumSpec {
    uint32_t ratio = 0; ///< bytes of sums per byte; 0: kernels add to the gradient itself
    uint32_t item = 0;  ///< bytes of one stored element of the gradient
};

enum class ViewSource : uint8_t { primal, grad_in, grad_out, count_ };

// --- the kinds of leaf: what each stores

/// Nothing.
struct SkipSpec { };

/// A value in the argument bytes.
struct ValueSpec {
    ValueSlot value;
};

/// Memory that the kernel reaches through an address and strides, with its gradients.
struct ViewSpec {
    ViewSlot views[size_t(ViewSource::count_)];
    ElementSpec element;
    uint32_t vectors = 0; ///< of a TensorView: how many scalars it takes to lie side by side; 1 = its own elements
    uint32_t packs = 0;   ///< of a Tensor of vectors over scalars: how many a vector has; 1: its address is taken
    SumSpec sums;
    int32_t table = -1; ///< entry of a list: leaf of the list, whose rows `views` are offsets into

    bool has(ViewSource source) const { return views[size_t(source)].data >= 0; }
};

/// Numbers of a list, vector or matrix: written to memory for the call.
struct PackedSpec {
    ViewSlot view;
    ElementSpec element;
    uint32_t vectors = 0;
};

struct GeneratorSpec {
    int32_t offset = -1, stride = -1;     ///< int64 per dimension
    int32_t seed = -1;                    ///< two uint32: seed, warm-up
    int32_t min = -1, max = -1;           ///< float
    ScalarType scalar = ScalarType::none; ///< of integers that must hold all numbers
};

struct PointerSpec {
    ValueSlot value;
    int32_t table = -1; ///< as of views
};

struct ResourceSpec {
    int32_t slot = -1;      ///< with a map: a texture, one texel per invocation
    int32_t read_slot = -1; ///< textures that are read through a second parameter
    int32_t steps = -1;     ///< textures with a map: int32 per vectorised dimension, 0 where broadcast
    ElementSpec element;
};

/// ValueRef, DiffPair: a value that is read, and memory for what comes back.
struct ReferenceSpec {
    ValueSlot value, seed;    ///< value read, seed gradient read
    ValueSlot out, tangent;   ///< address of the value written; forward mode: of the tangent
    bool out_is_grad = false; ///< the written value goes to DiffPair.grad
    bool out_is_pair = false; ///< both halves of a DiffPair are written, as a struct with fields p and d
    SumSpec sums;
};

/// Values of registered classes.
struct CustomSpec {
    ValueSlot value;
    int32_t steps = -1; ///< int64 per vectorised dimension, 0 where broadcast
};

/// A list of containers: a row for each.
struct TableSpec {
    ViewSlot view;
    Shape shape;        ///< sizes of the list
    uint32_t bytes = 0; ///< of all rows
};

using LeafKind = std::variant<SkipSpec, ValueSpec, ViewSpec, PackedSpec, GeneratorSpec, PointerSpec, ResourceSpec,
                              ReferenceSpec, CustomSpec, TableSpec>;

struct LeafSpec {
    std::string name;         ///< parameter or field path, for messages
    std::vector<uint8_t> map; ///< call dimension of each leading dimension, which are spread over the call
    Shape inner;              ///< demanded sizes of the trailing dimensions, -1 = any
    bool reads = true, writes = false;
    bool carries = false; ///< torch: autograd may send a gradient through it
    std::string lost;     ///< torch: the struct that it is in, where that alone has no derivative
    bool whole = false;   ///< a tensor parameter: the function picks the elements
    bool classed = false; ///< takes part in the variant key
    uint32_t crosses = 0; ///< bytes of an element in memory of a group; 0: it cannot lie there
    LeafKind kind;

    uint32_t vector_dims() const { return uint32_t(map.size()); }
    /// What it stores as a leaf of that kind; null for other kinds.
    template <typename Kind>
    const Kind* as() const
    {
        return std::get_if<Kind>(&kind);
    }
};

enum class ResultMode : uint8_t { none, value, tensor, numpy, leaf, torch, texture, custom };

struct ResultSpec {
    ResultMode mode = ResultMode::none;
    LeafSpec leaf;                        ///< how the new container is written (mode tensor, numpy, value)
    ScalarType scalar = ScalarType::none; ///< mode torch
    ref<TypeLayout> element;              ///< element layout on the device
    nb::object dtype;                     ///< numpy dtype or slangpy type
    Shape element_shape;                  ///< appended to numpy results
    bool carries = false;                 ///< its elements have gradients
    std::shared_ptr<ResultSpec> tangent;  ///< forward mode: the container of the tangent, made like this one
};

/// How a leaf depends on the call index at run time; 2 bits of a variant key. Only gradients are periodic, and only
/// views of calls without gradients crossed.
enum class AccessClass : uint8_t { general, linear, uniform, periodic, crossed = periodic };
/// Most invocations after which a periodic gradient repeats its elements.
constexpr int64_t max_period = 1024;

/// One compiled form of a plan's kernel.
struct Variant {
    ref<Kernel> kernel;
    uint32_t items_per_group = 0; ///< invocations of one group; 0 = the CPU block given by the call's `block` field
    uint32_t max_groups = 0;      ///< 0 = any; else each thread handles every (groups * items)-th invocation
    bool needs_globals = false;   ///< it uses global resources
};

/// bit 0: flattened to one dimension; bit 1: more than 2^31 invocations; bit 2: several elements of a thread,
/// moved together where it is flat (views are aligned to 16 bytes); then 2 bits for each classed leaf; the dimensions
/// of patches; crossed_variant, near_variant, aligned_variant and privatized_variant.
using VariantKey = uint64_t;
constexpr uint32_t max_classed_leaves = 26;
/// On a GPU: groups cover patches of two dimensions of the call, x and y. Two bits each say how far from the last they
/// are; 0: no patches (patch.h).
constexpr uint32_t patch_shift = 55;
constexpr VariantKey patch_mask = 15ull << patch_shift;
/// With patches: views of the class `crossed` lie along y, and groups load their part of them together.
constexpr VariantKey crossed_variant = 1ull << 59;
/// On a GPU: no view reaches 2^31 elements or further, and whole tensors have a stride of 1 in their last dimension.
constexpr VariantKey near_variant = 1ull << 61;
/// A near one: rows of tensors that the function picks elements of begin at multiples of 16 bytes.
constexpr VariantKey aligned_variant = 1ull << 60;
/// Adds to copies of small gradients (stages/dispatch/privatized.cpp).
constexpr VariantKey privatized_variant = 1ull << 62;
/// Fewest invocations whose gradients are worth copies: a clearing and a second launch take as long as these add.
constexpr int64_t privatized_least = 1 << 17;
/// Not a form of the kernel: adds the sums of the leaf in the low bits to its gradient.
constexpr VariantKey addition_variant = 1ull << 63;

/// Where the fields of the call itself lie in the argument bytes; -1 = not stored.
struct CallOffsets {
    int32_t total = -1, block = -1, flags = -1, shape = -1, divisor = -1, period = -1, sum_table = -1, bounds = -1;
};

struct PlanTraits {
    bool size_dependent = false;  ///< list lengths belong to the key
    bool shape_dependent = false; ///< so do the sizes of containers
    bool can_flatten = false;
    bool can_widen = false;       ///< threads of flat GPU kernels may move several neighbours together
    bool can_space = false;       ///< threads of others may handle several elements each
    bool can_be_aligned = false;  ///< and such that know rows to be aligned
    bool can_be_near = false;     ///< there are kernels that compute offsets in 32 bits
    bool can_privatize = false;   ///< GPU kernels may add to copies of small gradients
    int64_t patch_least = -1;     ///< fewest invocations that go by patches where views are crossed; -1: none do
    int64_t picks_least = -1;     ///< fewest of a function that picks elements whose threads handle several
    bool can_spread = false;      ///< those threads may do so in calls without patches
    bool keeps_memory = false;    ///< what the call gives or writes holds addresses: it keeps alive what they lie in
    bool has_loops = false;       ///< CPU: an invocation may take long
    bool is_forward_mode = false; ///< gradients are tangents: stored, never added up
};

/// Memory that torch and a device of another API see, kept from call to call.
struct SharedPiece {
    uint64_t stream = 0, size = 0;
    ref<Buffer> buffer;
    nb::object bytes; ///< as a torch tensor
};

struct CallPlan;
struct Repeat; // call/stages/repeat.h

/// What is remembered of calls whose arguments lay in the same places.
struct Repeats {
    std::array<uint64_t, 8> seen{}; ///< hashes of what calls were told apart by
    std::array<std::shared_ptr<const Repeat>, 4> known;
    uint8_t next_seen = 0, next_known = 0;
};

/// The Tensor that a call of a plan gave, apart from its memory and shape: those that follow give the like.
struct MadeTensor {
    nb::object cls; ///< null: no call has given one
    TensorBase like;
};

/// What calls of a plan leave behind for those that follow.
struct PlanState {
    std::unordered_map<uint64_t, Variant> variants;
    Shape last_call_shape;
    std::vector<SharedPiece> shared_pieces;
    Repeats repeats;
    std::array<MadeTensor, 2> made; ///< the result, and in forward mode the tangent
    /// torch: backward plans by the set of torch arguments that gradients are wanted of (bits by position; the highest:
    /// sums in a fixed order).
    std::vector<std::pair<uint64_t, std::weak_ptr<CallPlan>>> backward;
    bool has_warned_of_bounds = false;
    bool has_warned_of_gradients = false;
    bool is_unchecked = false; ///< its derivatives are to be compared with others after the first run
};

struct CallPlan {
    std::string label;
    ref<Device> device;
    std::vector<LeafSpec> leaves; ///< by leaf index of the signature
    ResultSpec result;
    uint32_t call_rank = 0;
    uint32_t argument_size = 0;
    CallOffsets offsets;
    PlanTraits traits;
    Shape tile;      ///< call groups, in all dimensions of the call: a launch counts tiles; empty without groups
    nb::object view; ///< the planner's record: builds variants, formats errors
    PlanState state;
};

} // namespace spy
