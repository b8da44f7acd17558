#pragma once
// What the dispatch stage is made of: groups and globals of a launch, gradients summed beside their memory, checks of
// indices.
#include "call/stages.h"

#include <array>

namespace spy {

using Groups = std::array<uint32_t, 3>;

const Variant& variant_of(const Call& call, VariantKey key);
/// Groups of a launch as the device takes them.
Groups group_grid(const Call& call, const Measured& measured, int64_t groups);

/// Groups of the launch; writes what the kernel must know of them.
Groups share_out(const Call& call, const Measured& measured, const Selected& selected, const Variant& variant,
                 KernelArguments& arguments);
/// The values of globals, or nothing.
nb::object find_globals(const Call& call, const Variant& variant);
/// The call's slots over those of the globals.
void merge_slots(std::vector<ref<Object>>& slots, const std::vector<ref<Object>>& own);

/// Makes the sums of this launch and their table.
void prepare_sums(const Call& call, const Measured& measured, Written& written);
/// Adds the sums to their gradients.
void add_sums(const Call& call, const Measured& measured, const Written& written);

/// Launches, or records, a kernel that brings sums to their gradients; `bytes` are its arguments.
void launch_addition(const Call& call, const Measured& measured, const Variant& variant, const Groups& groups,
                     std::vector<uint8_t> bytes, const std::vector<ref<Object>>& keep);
void submit_to(const Call& call, const Measured& measured, ref<CommandBuffer> commands);

/// How many copies of its gradients this launch adds to; 0: to the gradients themselves.
uint64_t private_copies(const Call& call, const Measured& measured, const Written& written);
/// Makes the copies of this launch and their table.
void prepare_privates(const Call& call, const Measured& measured, uint64_t copies, Written& written);
/// Adds the copies to their gradients.
void add_private_copies(const Call& call, const Measured& measured, uint64_t copies, const Written& written);
/// Copies that one thread of the second kernel adds up; slangpy/plan/derive/sums.py knows it, too.
constexpr uint64_t private_copies_per_thread = 16;

/// Where a kernel reports indices outside: in these words themselves, or in a buffer that they are read from.
struct BoundsReport {
    static constexpr uint32_t word_count = 2 + 2 * Shape::max_rank; ///< see slangpy/slang/tensor.slang
    uint32_t words[word_count] = {};
    ref<Buffer> buffer;
    bool is_asked = false;
};
void prepare_bounds(const Call& call, const Measured& measured, KernelArguments& arguments, BoundsReport& report);
/// Tells the first index outside that the kernel met: raises where set_check_bounds asks for it, else warns once.
void check_bounds(const Call& call, BoundsReport& report);

} // namespace spy
