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

/// Runs body(data) on a stack of so many bytes, beside the thread's own.
void run_on_stack(uint64_t bytes, void (*body)(void* data), void* data);
/// While it lives, the threads of groups that this thread runs have stacks of so many bytes.
class StackSize {
public:
    explicit StackSize(uint64_t bytes);
    ~StackSize();
    StackSize(const StackSize&) = delete;
    StackSize& operator=(const StackSize&) = delete;
};
/// What a thread of a group has unless a kernel needs more.
constexpr uint64_t usual_stack = 256 << 10;

/// What went wrong in a group since the last question, or null.
const char* take_error();

} // namespace spy::cpu::fibers
