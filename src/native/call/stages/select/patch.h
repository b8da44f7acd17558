#pragma once
// Patches: groups of threads on a GPU that cover part of two dimensions of a call (slangpy/plan/emit/patches.py).
#include "call/stages/leaves.h"
#include "call/stages/dispatch/dispatch.h"

namespace spy {

/// Whether a function that picks elements runs often enough for threads that handle several invocations.
inline bool picks_many(const PlanTraits& traits, const Measured& measured)
{
    return traits.picks_least >= 0 && measured.total >= traits.picks_least;
}

/// What the key of a call's variant has of patches, the classes of crossed views included; 0: it does better without.
VariantKey select_patch(const Call& call, const Measured& measured);

/// The groups of a call by patches.
Groups patch_groups(const Shape& shape, VariantKey key);

} // namespace spy
