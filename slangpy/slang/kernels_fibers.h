// Barriers and warp functions on the host: every thread of a block is a fiber, and a fiber that waits gives way to the next.
// Included after kernels_host.h by programs that need it.
#pragma once

#include <stdlib.h>
#include <sys/mman.h>

#define warpSize 32
typedef int WarpMask;

struct SpyFiber {
    void* stack = nullptr;
    void* context = nullptr;
    uint3 index = {};
    enum State : uint8_t { ready, at_block, at_warp, done } state = done;
    uint mask = 0;     ///< lanes that it waits for
    alignas(16) unsigned char slot[64]; ///< what it shows to the other lanes
};

/// The fibers of one worker thread: made once, used for block after block.
struct SpyFibers {
    static constexpr size_t stack_size = size_t(256) << 10;
    SpyFiber* fibers = nullptr;
    uint count = 0, capacity = 0, current = 0;
    void* scheduler = nullptr;
    uint3* index = nullptr; ///< threadIdx of the block
    void (*body)(void*) = nullptr;
    void* argument = nullptr;

    ~SpyFibers()
    {
        for (uint i = 0; i < capacity; i++)
            munmap(fibers[i].stack, stack_size);
        free(fibers);
    }
    bool reserve(uint wanted)
    {
        if (wanted <= capacity)
            return true;
        void* grown = nullptr;
        if (posix_memalign(&grown, 64, sizeof(SpyFiber) * wanted))
            return false;
        if (capacity)
            memcpy(grown, static_cast<void*>(fibers), sizeof(SpyFiber) * capacity);
        free(fibers);
        fibers = static_cast<SpyFiber*>(grown);
        for (; capacity < wanted; capacity++) {
            void* stack = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack == MAP_FAILED)
                return false;
            mprotect(stack, 4096, PROT_NONE); // a stack that overflows must not run into the next
            fibers[capacity].stack = stack;
        }
        return true;
    }
    void wait(SpyFiber::State state, uint mask)
    {
        SpyFiber& self = fibers[current];
        self.state = state;
        self.mask = mask;
        spy_switch(&self.context, scheduler);
    }
    bool run(uint3 block, uint3* thread_index, void (*function)(void*), void* data);
    bool release_warp(uint first);
    bool release_block();
};

static thread_local SpyFibers spy_fibers;


static void spy_fiber_main()
{
    SpyFibers& all = spy_fibers;
    all.body(all.argument);
    all.fibers[all.current].state = SpyFiber::done;
    void* ignored;
    spy_switch(&ignored, all.scheduler);
    __builtin_unreachable();
}

/// Frees the lanes of a warp that wait for lanes which all have come, or have ended.
bool SpyFibers::release_warp(uint first)
{
    bool any = false;
    const uint last = first + 32 < count ? first + 32 : count;
    for (uint i = first; i < last; i++) {
        if (fibers[i].state != SpyFiber::at_warp)
            continue;
        const uint mask = fibers[i].mask;
        bool complete = true;
        for (uint j = first; j < last && complete; j++)
            if (mask >> (j - first) & 1u)
                complete = fibers[j].state == SpyFiber::done || (fibers[j].state == SpyFiber::at_warp && fibers[j].mask == mask);
        if (!complete)
            continue;
        for (uint j = first; j < last; j++)
            if ((mask >> (j - first) & 1u) && fibers[j].state == SpyFiber::at_warp)
                fibers[j].state = SpyFiber::ready;
        any = true;
    }
    return any;
}

bool SpyFibers::release_block()
{
    for (uint i = 0; i < count; i++)
        if (fibers[i].state != SpyFiber::done && fibers[i].state != SpyFiber::at_block)
            return false;
    bool any = false;
    for (uint i = 0; i < count; i++)
        if (fibers[i].state == SpyFiber::at_block) {
            fibers[i].state = SpyFiber::ready;
            any = true;
        }
    return any;
}

/// Runs one block. False when its threads wait for each other for ever, or there is no memory for them.
bool SpyFibers::run(uint3 block, uint3* thread_index, void (*function)(void*), void* data)
{
    count = block.x * block.y * block.z;
    if (!reserve(count))
        return false;
    index = thread_index;
    body = function;
    argument = data;
    for (uint i = 0; i < count; i++) {
        SpyFiber& fiber = fibers[i];
        fiber.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
        fiber.context = spy_first_frame(static_cast<char*>(fiber.stack) + stack_size, spy_fiber_main);
        fiber.state = SpyFiber::ready;
    }
    for (;;) {
        bool progress = false, alive = false;
        for (uint first = 0; first < count; first += 32) {
            for (bool again = true; again;) {
                for (uint i = first; i < first + 32 && i < count; i++) {
                    if (fibers[i].state != SpyFiber::ready)
                        continue;
                    current = i;
                    *index = fibers[i].index;
                    spy_switch(&scheduler, fibers[i].context);
                    progress = true;
                }
                again = release_warp(first);
            }
        }
        for (uint i = 0; i < count; i++)
            alive = alive || fibers[i].state != SpyFiber::done;
        if (!alive)
            return true;
        if (!release_block() && !progress)
            return false;
    }
}

#define SPY_WAITS __attribute__((noinline))

// --- barriers

SPY_WAITS static void __syncthreads() { spy_fibers.wait(SpyFiber::at_block, 0); }
SPY_WAITS static void __syncwarp(uint mask = 0xffffffffu) { spy_fibers.wait(SpyFiber::at_warp, mask); }

// --- warps: each lane shows a value, all wait, each looks at the others' values, all wait

static uint _getLaneId() { return spy_fibers.current & 31u; }
static WarpMask _getLaneLtMask() { return WarpMask((1u << _getLaneId()) - 1u); }

/// Calls look(lane, value) for each lane of the mask that takes part.
template <class T, class Look>
SPY_WAITS static void spy_exchange(uint mask, T value, Look look)
{
    static_assert(sizeof(T) <= sizeof(SpyFiber::slot), "too large for a warp function");
    SpyFibers& all = spy_fibers;
    const uint self = all.current, first = self & ~31u;
    memcpy(all.fibers[self].slot, &value, sizeof(T));
    all.wait(SpyFiber::at_warp, mask);
    uint there = 0; // before any lane goes on: one that ends would be missed
    for (uint lane = 0; lane < 32 && first + lane < all.count; lane++)
        if ((mask >> lane & 1u) && all.fibers[first + lane].state != SpyFiber::done)
            there |= 1u << lane;
    T values[32];
    for (uint lane = 0; lane < 32; lane++)
        if (there >> lane & 1u)
            memcpy(static_cast<void*>(&values[lane]), all.fibers[first + lane].slot, sizeof(T));
    all.wait(SpyFiber::at_warp, mask);
    for (uint lane = 0; lane < 32; lane++)
        if (there >> lane & 1u)
            look(lane, values[lane]);
}

static uint __ballot_sync(uint mask, bool v)
{
    uint bits = 0;
    spy_exchange(mask, v, [&](uint lane, bool x) { bits |= uint(x) << lane; });
    return bits;
}
static uint __activemask() { return __ballot_sync(0xffffffffu, true); }
static WarpMask _getActiveMask() { return WarpMask(__activemask()); }
static int __any_sync(uint mask, bool v) { return __ballot_sync(mask, v) != 0; }
static int __all_sync(uint mask, bool v) { return __ballot_sync(mask, !v) == 0; }

/// The value of a lane; one's own when that takes no part.
template <class T>
static T spy_lane(uint mask, T v, int source)
{
    T result = v;
    spy_exchange(mask, v, [&](uint lane, T x) {
        if (int(lane) == source)
            result = x;
    });
    return result;
}
template <class T> static T __shfl_sync(uint mask, T v, int source, int width = 32)
{
    const int self = int(_getLaneId());
    return spy_lane(mask, v, (self & ~(width - 1)) | (source & (width - 1)));
}
template <class T> static T __shfl_up_sync(uint mask, T v, uint delta, int width = 32)
{
    const int self = int(_getLaneId()), from = self - int(delta);
    return spy_lane(mask, v, from < (self & ~(width - 1)) ? self : from);
}
template <class T> static T __shfl_down_sync(uint mask, T v, uint delta, int width = 32)
{
    const int self = int(_getLaneId()), from = self + int(delta);
    return spy_lane(mask, v, from > (self | (width - 1)) ? self : from);
}
template <class T> static T __shfl_xor_sync(uint mask, T v, int lanes, int width = 32)
{
    const int self = int(_getLaneId()), from = self ^ lanes;
    return spy_lane(mask, v, from > (self | (width - 1)) ? self : from);
}
template <class T> static uint __match_any_sync(uint mask, T v)
{
    uint bits = 0;
    spy_exchange(mask, v, [&](uint lane, T x) { bits |= uint(memcmp(&x, &v, sizeof(T)) == 0) << lane; });
    return bits;
}
template <class T> static uint __match_all_sync(uint mask, T v, int* all)
{
    *all = (__match_any_sync(mask, v) & mask) == (__ballot_sync(mask, true) & mask);
    return *all ? mask : 0;
}
template <class T> static uint4 _waveMatchScalar(uint mask, T v) { return make_uint4(__match_any_sync(mask, v), 0u, 0u, 0u); }
template <class T> static uint4 _waveMatchMultiple(uint mask, T v) { return _waveMatchScalar(mask, v); }
template <class T> static bool _waveAllEqual(uint mask, T v)
{
    int all;
    __match_all_sync(mask, v, &all);
    return all;
}
template <class T> static bool _waveAllEqualMultiple(uint mask, T v) { return _waveAllEqual(mask, v); }
template <class T> static T _waveReadFirst(uint mask, T v) { return spy_lane(mask, v, __ffs(int(__ballot_sync(mask, true))) - 1); }
template <class T> static T _waveReadFirstMultiple(uint mask, T v) { return _waveReadFirst(mask, v); }
template <class T> static T _waveShuffleMultiple(uint mask, T v, int lane) { return __shfl_sync(mask, v, lane); }
static bool _waveIsFirstLane() { return uint(__ffs(int(__activemask())) - 1) == _getLaneId(); }

struct SpySum { template <class T> static T of(T a, T b) { return a + b; } };
struct SpyProduct { template <class T> static T of(T a, T b) { return a * b; } };
struct SpyOr { template <class T> static T of(T a, T b) { return a | b; } };
struct SpyAnd { template <class T> static T of(T a, T b) { return a & b; } };
struct SpyXor { template <class T> static T of(T a, T b) { return a ^ b; } };
struct SpyLeast {
    template <class T> static T of(T a, T b) { return b < a ? b : a; }
    template <class T, int N> static Vector<T, N> of(Vector<T, N> a, Vector<T, N> b) { return _slang_select(b < a, b, a); }
};
struct SpyMost {
    template <class T> static T of(T a, T b) { return b > a ? b : a; }
    template <class T, int N> static Vector<T, N> of(Vector<T, N> a, Vector<T, N> b) { return _slang_select(b > a, b, a); }
};
/// The operation over matrices row by row.
template <class Op, class T> static T spy_apply(T a, T b) { return Op::of(a, b); }
template <class Op, class T, int R, int C> static Matrix<T, R, C> spy_apply(Matrix<T, R, C> a, Matrix<T, R, C> b)
{
    for (int i = 0; i < R; i++)
        a.rows[i] = Op::of(a.rows[i], b.rows[i]);
    return a;
}
/// Over the lanes below `end`; `none` where there are none.
template <class Op, class T> static T spy_reduce(uint mask, T v, uint end, T none)
{
    bool first = true;
    spy_exchange(mask, v, [&](uint lane, T x) {
        if (lane >= end)
            return;
        none = first ? x : spy_apply<Op>(none, x);
        first = false;
    });
    return none;
}
template <class T> static T spy_filled(double number)
{
    return T(number);
}
template <class V> struct SpyFill { static V with(double number) { return V(number); } };
template <class T, int N> struct SpyFill<Vector<T, N>> { static Vector<T, N> with(double number) { return spy_make<T, N>(T(number)); } };
template <class T, int R, int C> struct SpyFill<Matrix<T, R, C>> { static Matrix<T, R, C> with(double number) { return makeMatrix<T, R, C>(T(number)); } };

#define SPY_WAVE(NAME, OP, NONE) \
    template <class T> static T _wave##NAME(uint mask, T v) { return spy_reduce<OP>(mask, v, 32, v); } \
    template <class T> static T _wave##NAME##Multiple(uint mask, T v) { return spy_reduce<OP>(mask, v, 32, v); } \
    template <class T> static T _wavePrefix##NAME(uint mask, T v) { return spy_reduce<OP>(mask, v, _getLaneId(), SpyFill<T>::with(NONE)); } \
    template <class T> static T _wavePrefix##NAME##Multiple(uint mask, T v) { return _wavePrefix##NAME(mask, v); } \
    template <class T> static T _wavePrefixInclusive##NAME(uint mask, T v) { return spy_reduce<OP>(mask, v, _getLaneId() + 1, v); } \
    template <class T> static T _wavePrefixInclusive##NAME##Multiple(uint mask, T v) { return _wavePrefixInclusive##NAME(mask, v); }
SPY_WAVE(Sum, SpySum, 0)
SPY_WAVE(Product, SpyProduct, 1)
SPY_WAVE(Or, SpyOr, 0)
SPY_WAVE(And, SpyAnd, -1)
SPY_WAVE(Xor, SpyXor, 0)
SPY_WAVE(Min, SpyLeast, INFINITY)
SPY_WAVE(Max, SpyMost, -INFINITY)
#undef SPY_WAVE
