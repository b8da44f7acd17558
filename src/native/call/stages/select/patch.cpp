// When groups cover patches, and of which dimensions.
//
// Threads side by side should reach memory side by side. Results decide along which dimension of the call they lie (x).
// A view whose neighbours lie along another one (y) is loaded by the whole group in that order, 32 x 32 elements of it,
// and read from the group's memory.
#include "call/stages/select/patch.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace spy {

namespace {

constexpr size_t most_dims = 4;
/// What memory is read in. Elements that are closer to each other than that share it.
constexpr int64_t sector = 32;
/// Bytes of an element of all crossed views; 33 * 32 of them fit what Vulkan promises a group (16 KiB).
constexpr uint32_t most_shared = 12;

/// A view's way through the call.
struct Walked {
    const LeafSpec* spec = nullptr;
    uint32_t position = 0;                  ///< among the classed leaves
    std::array<int64_t, most_dims> steps{}; ///< bytes from one index of a call dimension to the next
    size_t nearest = most_dims;             ///< the dimension of the least step; most_dims: it does not move
};

Walked walk_of(const Call& call, const LeafSpec& spec, const Leaf& leaf, uint32_t position)
{
    Walked found{&spec, position};
    const Reach reach = reach_of(call, spec, leaf);
    const int64_t size = spec.as<ViewSpec>()->element.size;
    for (uint32_t i = 0; i < spec.vector_dims(); ++i)
        if (reach.shape[i] > 1)
            found.steps[spec.map[i]] += reach.strides[i] * size;
    for (size_t dim = 0; dim < most_dims; ++dim) {
        found.steps[dim] = std::abs(found.steps[dim]);
        if (found.steps[dim] && (found.nearest == most_dims || found.steps[dim] <= found.steps[found.nearest]))
            found.nearest = dim;
    }
    return found;
}

/// Of all elements that invocations have of their own. More than `max_classed_leaves` are not looked at.
std::vector<Walked> walks_of(const Call& call)
{
    std::vector<Walked> found;
    uint32_t position = 0;
    for (size_t i = 0; i < call.leaf_count() && position < max_classed_leaves; ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        if (!spec.classed)
            continue;
        const uint32_t own = position++;
        if (spec.as<ViewSpec>() && !spec.whole && spec.vector_dims() > 0)
            found.push_back(walk_of(call, spec, call.leaf(i), own));
    }
    return found;
}

/// The dimension along which results are stored.
size_t x_of(const Call& call, const std::vector<Walked>& walks)
{
    const size_t last = call.plan.call_rank - 1;
    const ResultMode mode = call.plan.result.mode;
    if (mode == ResultMode::tensor || mode == ResultMode::numpy || mode == ResultMode::torch)
        return last; // made by the call, without gaps
    for (const Walked& walk : walks)
        if (walk.spec->writes && walk.nearest < most_dims)
            return walk.steps[last] && walk.steps[last] < sector ? last : walk.nearest;
    return last;
}

struct Crossing {
    size_t y = most_dims;
    VariantKey classes = 0;
};

/// The views that lie along another dimension than x; of several such dimensions, the first view's.
Crossing crossing_of(const std::vector<Walked>& walks, size_t x)
{
    Crossing found;
    uint32_t shared = 0;
    for (const Walked& walk : walks) {
        const uint32_t bytes = walk.spec->crosses;
        const bool is_crossed = bytes && walk.nearest != x && walk.nearest < most_dims && walk.steps[x] >= sector &&
            walk.steps[walk.nearest] < sector;
        if (!is_crossed || (found.y < most_dims && walk.nearest != found.y) || shared + bytes > most_shared)
            continue;
        found.y = walk.nearest;
        shared += bytes;
        found.classes |= VariantKey(AccessClass::crossed) << (3 + 2 * walk.position);
    }
    return found;
}

/// Invocations along x and y; as `Patch.size` in slangpy/plan/trampoline/variant.py.
std::array<int64_t, 2> patch_size(VariantKey key)
{
    if (key & crossed_variant)
        return {32, 32};
    return {128, 8};
}

struct Sides {
    size_t x, y;
};

Sides sides_of(size_t rank, VariantKey key)
{
    const size_t code = size_t((key & patch_mask) >> patch_shift);
    return {rank - 1 - (code & 3), rank - 1 - (code >> 2)};
}

/// Whether patches of these dimensions are mostly inside the call, and its groups no more than a launch may have.
bool fits(const Call& call, const Measured& measured, VariantKey key)
{
    const Shape& shape = measured.shape;
    const Sides sides = sides_of(shape.size(), key);
    const auto [across, along] = patch_size(key);
    const int64_t x = (shape[sides.x] + across - 1) / across, y = (shape[sides.y] + along - 1) / along;
    if (2 * shape[sides.x] * shape[sides.y] < x * across * y * along)
        return false;
    const int64_t counts[] = {x, y, measured.total / (shape[sides.x] * shape[sides.y])};
    const auto& limit = call.plan.device->info().limits.max_compute_dispatch_thread_groups;
    for (size_t i = 0; i < 3; ++i)
        if (limit[i] && counts[i] > int64_t(limit[i]))
            return false;
    return true;
}

} // namespace

VariantKey select_patch(const Call& call, const Measured& measured)
{
    const PlanTraits& traits = call.plan.traits;
    const size_t rank = measured.shape.size();
    if (traits.patch_least < 0 || rank < 2 || rank > most_dims)
        return 0;
    const bool picks = picks_many(traits, measured);
    if (measured.total < traits.patch_least && !picks)
        return 0;
    const auto walks = walks_of(call);
    const size_t x = x_of(call, walks);
    Crossing crossing;
    if (measured.total >= traits.patch_least)
        crossing = crossing_of(walks, x);
    const bool is_crossed = crossing.classes != 0;
    if (!is_crossed && x == rank - 1 && !picks)
        return 0;
    const size_t y = is_crossed ? crossing.y : x == rank - 1 ? rank - 2 : rank - 1;
    const VariantKey key = VariantKey((rank - 1 - x) | (rank - 1 - y) << 2) << patch_shift | crossing.classes |
        (is_crossed ? crossed_variant : 0);
    return fits(call, measured, key) ? key : 0;
}

Groups patch_groups(const Shape& shape, VariantKey key)
{
    const Sides sides = sides_of(shape.size(), key);
    const auto [across, along] = patch_size(key);
    const int64_t x = (shape[sides.x] + across - 1) / across, y = (shape[sides.y] + along - 1) / along;
    return {uint32_t(x), uint32_t(y), uint32_t(shape.element_count() / (shape[sides.x] * shape[sides.y]))};
}

} // namespace spy
