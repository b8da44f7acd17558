#pragma once
// Groups whose threads wait for each other: every thread of a group is a fiber of the thread of the pool that runs the
// group, and one that waits gives way to the next.
#include <cstdint>

namespace spy::cpu::fibers {

/// Runs thread(data, 0 .. count - 1); see SpyHost.
void run_group(uint32_t count, uint32_t lanes, void (*thread)(void* data, uint32_t index), void* data);
void group_sync();
uint32_t wave_exchange(uint32_t site, const void* value, uint32_t size, void* values);
uint32_t wave_lane();

/// What went wrong in a group since the last question, or null.
const char* take_error();

} // namespace spy::cpu::fibers
