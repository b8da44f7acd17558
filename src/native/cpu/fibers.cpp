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

constexpr size_t guard_size = 4096;
/// Of all threads of a group together, where they need more than usual.
constexpr size_t most_stacks = size_t(1) << 30;
constexpr uint32_t slot_size = 128;
/// Each guard page costs two of the 65530 mappings that Linux grants a process, so most stacks have none: they are as
/// large as the kernel's compiler says.
constexpr uint32_t guarded_stacks = 64;
constexpr const char* no_stacks = "there is no memory for the stacks of the threads of a group";

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
    size_t stack_size = usual_stack;
    void* scheduler = nullptr;
    void (*thread)(void*, uint32_t) = nullptr;
    void* data = nullptr;

    ~Fibers() { clear(); }
    void clear();
    void use_stacks(size_t bytes);
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

void Fibers::clear()
{
    for (auto [fiber, size] : mappings)
        DeleteFiber(fiber);
    mappings.clear();
    fibers.clear();
}

bool Fibers::reserve(uint32_t wanted)
{
    if (!scheduler)
        scheduler = IsThreadAFiber() ? GetCurrentFiber() : ConvertThreadToFiber(nullptr);
    if (stack_size > usual_stack && wanted > most_stacks / stack_size)
        return false;
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

void Fibers::clear()
{
    for (auto [memory, size] : mappings)
        munmap(memory, size);
    mappings.clear();
    fibers.clear();
}

bool Fibers::reserve(uint32_t wanted)
{
    if (wanted <= fibers.size())
        return true;
    if (stack_size > usual_stack && wanted > most_stacks / stack_size)
        return false;
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

/// Stacks of another size than before; large ones are given back as soon as they are not used.
void Fibers::use_stacks(size_t bytes)
{
    if (bytes != stack_size)
        clear();
    stack_size = bytes;
}

/// When no lane of a wave can go on: those that wait at the earliest place of the text exchange what they show. So
/// lanes in a branch or a loop come before those that wait after it.
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
            last_error = no_stacks;
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

StackSize::StackSize(uint64_t bytes) { pool.use_stacks(bytes); }
StackSize::~StackSize() { pool.use_stacks(usual_stack); }

#ifdef _WIN32

namespace {

struct Visit {
    void (*body)(void*);
    void *data, *caller;
};

void WINAPI visit_main(void* data)
{
    const Visit& visit = *static_cast<Visit*>(data);
    visit.body(visit.data);
    SwitchToFiber(visit.caller);
}

} // namespace

void run_on_stack(uint64_t bytes, void (*body)(void* data), void* data)
{
    Visit visit{body, data, IsThreadAFiber() ? GetCurrentFiber() : ConvertThreadToFiber(nullptr)};
    void* fiber = visit.caller ? CreateFiberEx(0, bytes, FIBER_FLAG_FLOAT_SWITCH, visit_main, &visit) : nullptr;
    if (!fiber) {
        last_error = "there is no memory for its stack";
        return;
    }
    SwitchToFiber(fiber);
    DeleteFiber(fiber);
}

#else

namespace {

/// The stack beside a thread's own, and what runs on it.
struct Visit {
    void (*body)(void*) = nullptr;
    void *data = nullptr, *caller = nullptr;
};
thread_local Visit visit;

void visit_main()
{
    visit.body(visit.data);
    void* ignored;
    spy_switch(&ignored, visit.caller);
    __builtin_unreachable();
}

} // namespace

void run_on_stack(uint64_t bytes, void (*body)(void* data), void* data)
{
    const size_t size = (bytes + 2 * guard_size - 1) / guard_size * guard_size;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        last_error = "there is no memory for its stack";
        return;
    }
    mprotect(memory, guard_size, PROT_NONE);
    visit = {body, data, nullptr};
    spy_switch(&visit.caller, spy_first_frame(static_cast<char*>(memory) + size, visit_main));
    munmap(memory, size);
}

#endif

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
