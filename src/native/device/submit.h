#pragma once
// Submission and fences as users see them: values may be left to the fence.
#include "device/command.h"

namespace spy {

/// Signal the next value; wait for the last that anything was told to signal.
inline constexpr uint64_t fence_auto = ~0ull;
inline constexpr uint64_t timeout_infinite = ~0ull;

struct SubmitRequest {
    std::vector<ref<CommandBuffer>> command_buffers;
    std::vector<ref<Fence>> wait_fences, signal_fences;
    std::vector<uint64_t> wait_values, signal_values; ///< shorter lists are filled up with fence_auto
    NativeHandle stream;
};

/// Resolves AUTO values; throws on values that go back. Then `submit` may be called.
void resolve_fence_values(SubmitRequest& request);
uint64_t submit(Device* device, const SubmitRequest& resolved);

/// Host side signal; returns the value.
uint64_t signal_fence(Fence* fence, uint64_t value);
ref<Fence> create_fence(Device* device, uint64_t initial_value, bool shared);

} // namespace spy
