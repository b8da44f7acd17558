#pragma once
// Groups, globals and slots of a launch.
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

} // namespace spy
