#include "cpu/fibers.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include "../../slangpy/slang/fibers.h"

#include <sys/mman.h>
#endif

namespace spy::cpu::fibers {
namespace {

constexpr size_t stack_size = size_t(256) << 10;
constexpr size_t guard_size = 4096;
constexpr uint32_t slot_size = 128;
/// Each guard page costs two of the 65530 mappings that Linux grants a process, so most stacks have none.
constexpr uint32_t guarded_stacks = 64;

std::atomic<const char*> last_error{nullptr};

enum class State : uint8_t { ready, at_group, at_wave, done };

struct Fiber {
    void* stack_top = nullptr;
    void* context = nullptr;
    State state = State::done;
    uint32_t site = 0; ///< where in the text of the kernel it waits for its wave
    uint32_t size = 0;
    alignas(16) uint8_t slot[slot_size]; ///< what it shows to the other lanes
};

struct Wave {
    uint32_t mask = 0; ///< lanes of the last exchange
    alignas(16) uint8_t values[32][slot_size];
};

/// The fibers of one thread of the pool: made once, used for group after group.
struct Fibers {
    std::vector<Fiber> fibers;
    std::vector<Wave> waves;
    std::vector<std::pair<void*, size_t>> mappings; ///< the stacks; on Windows its fibers, which own theirs
    uint32_t count = 0, lanes = 1, current = 0;
    void* scheduler = nullptr;
    void (*thread)(void*, uint32_t) = nullptr;
    void* data = nullptr;

    ~Fibers();
    bool reserve(uint32_t wanted);
    void begin(Fiber& fiber);
    void switch_to(Fiber& fiber);
    void run();
    void run_wave(uint32_t first);
    bool release_wave(uint32_t first);
    bool release_group();
    void wait(State state);
};

thread_local Fibers pool;

#ifdef _WIN32

/// The system knows fibers: each runs one thread of a group after the other, so that it is made once.
void WINAPI fiber_main(void*)
{
    for (;;) {
        pool.thread(pool.data, pool.current);
        pool.fibers[pool.current].state = State::done;
        SwitchToFiber(pool.scheduler);
    }
}

Fibers::~Fibers()
{
    for (auto [fiber, size] : mappings)
        DeleteFiber(fiber);
}

bool Fibers::reserve(uint32_t wanted)
{
    if (!scheduler)
        scheduler = IsThreadAFiber() ? GetCurrentFiber() : ConvertThreadToFiber(nullptr);
    while (scheduler && fibers.size() < wanted) {
        void* fiber = CreateFiberEx(0, stack_size, FIBER_FLAG_FLOAT_SWITCH, fiber_main, nullptr);
        if (!fiber)
            return false;
        mappings.push_back({fiber, 0});
        fibers.emplace_back().context = fiber;
    }
    return scheduler != nullptr;
}

void Fibers::begin(Fiber& fiber) { fiber.state = State::ready; }

void Fibers::switch_to(Fiber& fiber) { SwitchToFiber(fiber.context); }

void Fibers::wait(State state)
{
    fibers[current].state = state;
    SwitchToFiber(scheduler);
}

#else

void fiber_main()
{
    pool.thread(pool.data, pool.current);
    pool.fibers[pool.current].state = State::done;
    void* ignored;
    spy_switch(&ignored, pool.scheduler);
    __builtin_unreachable();
}

Fibers::~Fibers()
{
    for (auto [memory, size] : mappings)
        munmap(memory, size);
}

bool Fibers::reserve(uint32_t wanted)
{
    if (wanted <= fibers.size())
        return true;
    const size_t more = wanted - fibers.size(), bytes = more * stack_size;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    mappings.push_back({memory, bytes});
    for (size_t i = 0; i < more; ++i) {
        char* stack = static_cast<char*>(memory) + i * stack_size;
        if (fibers.size() < guarded_stacks)
            mprotect(stack, guard_size, PROT_NONE); // without one an overflow only shows later
        fibers.emplace_back().stack_top = stack + stack_size;
    }
    return true;
}

void Fibers::begin(Fiber& fiber)
{
    fiber.context = spy_first_frame(static_cast<char*>(fiber.stack_top), fiber_main);
    fiber.state = State::ready;
}

void Fibers::switch_to(Fiber& fiber) { spy_switch(&scheduler, fiber.context); }

void Fibers::wait(State state)
{
    Fiber& self = fibers[current];
    self.state = state;
    spy_switch(&self.context, scheduler);
}

#endif

/// When no lane of a wave can go on: those that wait at the earliest place of the text exchange what they show. So
/// lanes in a branch or a loop come before those that wait behind it.
bool Fibers::release_wave(uint32_t first)
{
    const uint32_t end = std::min(first + lanes, count);
    uint32_t site = UINT32_MAX;
    for (uint32_t i = first; i < end; ++i)
        if (fibers[i].state == State::at_wave)
            site = std::min(site, fibers[i].site);
    if (site == UINT32_MAX)
        return false;
    Wave& wave = waves[first / lanes];
    wave.mask = 0;
    for (uint32_t i = first; i < end; ++i) {
        Fiber& fiber = fibers[i];
        if (fiber.state != State::at_wave || fiber.site != site)
            continue;
        wave.mask |= 1u << (i - first);
        std::memcpy(wave.values[i - first], fiber.slot, fiber.size);
        fiber.state = State::ready;
    }
    return true;
}

/// Runs the threads of a wave until each has ended or waits for the group.
void Fibers::run_wave(uint32_t first)
{
    const uint32_t end = std::min(first + lanes, count);
    do {
        for (uint32_t i = first; i < end; ++i) {
            if (fibers[i].state != State::ready)
                continue;
            current = i;
            switch_to(fibers[i]);
        }
    } while (release_wave(first));
}

bool Fibers::release_group()
{
    bool any = false;
    for (uint32_t i = 0; i < count; ++i)
        if (fibers[i].state == State::at_group) {
            fibers[i].state = State::ready;
            any = true;
        }
    return any;
}

void Fibers::run()
{
    for (uint32_t i = 0; i < count; ++i)
        begin(fibers[i]);
    do {
        for (uint32_t first = 0; first < count; first += lanes)
            run_wave(first);
    } while (release_group());
}

} // namespace

void run_group(uint32_t count, uint32_t lanes, void (*thread)(void* data, uint32_t index), void* data)
{
    Fibers& all = pool;
    try {
        if (!all.reserve(count)) {
            last_error = "there is no memory for the stacks of the threads of a group";
            return;
        }
        if (all.waves.size() * lanes < count)
            all.waves.resize((count + lanes - 1) / lanes);
    } catch (const std::bad_alloc&) {
        last_error = "there is no memory for the threads of a group";
        return;
    }
    all.count = count;
    all.lanes = lanes;
    all.thread = thread;
    all.data = data;
    all.run();
}

void group_sync() { pool.wait(State::at_group); }

uint32_t wave_exchange(uint32_t site, const void* value, uint32_t size, void* values)
{
    Fibers& all = pool;
    Fiber& self = all.fibers[all.current];
    if (size > slot_size) { // no scalar, vector or matrix of Slang is larger
        last_error = "a wave operation was given more than 128 bytes";
        size = slot_size;
    }
    std::memcpy(self.slot, value, size);
    self.site = site;
    self.size = size;
    all.wait(State::at_wave);
    // Nobody shows anything new before all lanes of this exchange have run on.
    const Wave& wave = all.waves[all.current / all.lanes];
    for (uint32_t lane = 0; lane < all.lanes; ++lane)
        if (wave.mask >> lane & 1u)
            std::memcpy(static_cast<uint8_t*>(values) + size_t(lane) * size, wave.values[lane], size);
    return wave.mask;
}

uint32_t wave_lane() { return pool.current % pool.lanes; }

const char* take_error() { return last_error.load(std::memory_order_relaxed) ? last_error.exchange(nullptr) : nullptr; }

} // namespace spy::cpu::fibers
