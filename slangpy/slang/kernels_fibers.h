// Barriers and warp functions on the host: every thread of a block is a fiber, and a fiber that waits gives way to the next.
// Included after kernels_host.h by programs that need it.
#pragma once

#include <stdlib.h>
#include <sys/mman.h>

#define warpSize 32
typedef int WarpMask;

/// What a lane shows when it waits for its warp, and what it finds there when it goes on.
constexpr size_t spy_slot_size = 160;

struct SpyFiber;
/// Turns what the lanes `there` show into what each of them gets. `warp`: the first fiber.
typedef void (*SpyExchange)(SpyFiber* warp, uint there);

struct SpyFiber {
    void* stack = nullptr;
    void* context = nullptr;
    uint3 index = {};
    uint mask = 0; ///< lanes that it waits for
    SpyExchange exchange = nullptr;
    const void* place = nullptr; ///< in the code, where it asks who else is there
    alignas(16) unsigned char slot[spy_slot_size];
};

/// The lanes of a warp, one bit each.
struct SpyWarp {
    uint ready, at_warp, at_block, alive;
};

/// Of each fiber; the device sets it before the first launch where the frames of the kernels are larger.
extern "C" __attribute__((visibility("default"))) size_t _spy_stack_bytes = size_t(256) << 10;
/// Of all fibers of a block, where that is so.
constexpr size_t spy_most_stacks = size_t(1) << 30;

/// The fibers of one worker thread: made once, used for block after block. A fiber that waits goes on with the next one of
/// its warp; back to the scheduler goes the last.
struct SpyFibers {
    const size_t stack_size = _spy_stack_bytes;
    /// Each guard page costs two of the 65530 mappings that Linux grants a process, so most stacks have none.
    static constexpr uint guarded_stacks = 64;
    SpyFiber* fibers = nullptr;
    SpyWarp* warps = nullptr;
    uint count = 0, capacity = 0, current = 0;
    void* mappings[32] = {}; ///< of the stacks from 2^(k-1) on, up to 2^k
    void* scheduler = nullptr;
    uint3* index = nullptr; ///< threadIdx of the block
    void (*body)(void*) = nullptr;
    void* argument = nullptr;

    ~SpyFibers()
    {
        for (uint k = 5; k < 32; k++)
            if (mappings[k])
                munmap(mappings[k], stack_size << (k > 5 ? k - 1 : k));
        free(fibers);
        free(warps);
    }
    SpyFiber& self() { return fibers[current]; }
    SpyWarp& warp() { return warps[current / 32]; }
    uint lane_bit() { return 1u << (current & 31u); }
    bool reserve(uint wanted);
    bool grow(uint k);
    bool run(uint3 block, uint3* thread_index, void (*function)(void*), void* data);
    void go_on();
    bool release_warp(uint first);
    bool release_block();
};

static thread_local SpyFibers spy_fibers;
static thread_local SpyFibers* spy_fibers_here = nullptr; ///< the same, for less

bool SpyFibers::reserve(uint wanted)
{
    if (wanted <= capacity)
        return true;
    if (stack_size > size_t(256) << 10 && wanted > spy_most_stacks / stack_size)
        return false;
    for (uint k = 5; capacity < wanted; k++)
        if (capacity < 1u << k && !grow(k))
            return false;
    return true;
}

/// Room for 2^k fibers.
bool SpyFibers::grow(uint k)
{
    const uint wanted = 1u << k;
    void* more_warps = realloc(warps, sizeof(SpyWarp) * (wanted / 32));
    if (!more_warps)
        return false;
    warps = static_cast<SpyWarp*>(more_warps);
    void* grown = nullptr;
    if (posix_memalign(&grown, 64, sizeof(SpyFiber) * wanted))
        return false;
    if (capacity)
        memcpy(grown, static_cast<void*>(fibers), sizeof(SpyFiber) * capacity);
    free(fibers);
    fibers = static_cast<SpyFiber*>(grown);
    const size_t bytes = stack_size * (wanted - capacity);
    void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED)
        return false;
    mappings[k] = stacks;
    for (char* stack = static_cast<char*>(stacks); capacity < wanted; capacity++, stack += stack_size) {
        if (capacity < guarded_stacks)
            mprotect(stack, 4096, PROT_NONE); // a stack that overflows must not run into the next
        fibers[capacity].stack = stack;
    }
    return true;
}

/// From a fiber that waits, or has ended, to the next one; returns when its turn comes again.
void SpyFibers::go_on()
{
    const uint last = current, first = last & ~31u;
    SpyWarp& lanes = warps[first / 32];
    if (!lanes.ready && !release_warp(first)) {
        spy_switch(&fibers[last].context, scheduler);
        return;
    }
    const uint bit = lanes.ready & -lanes.ready;
    lanes.ready ^= bit;
    current = first + uint(__builtin_ctz(bit));
    *index = fibers[current].index;
    if (current != last)
        spy_switch(&fibers[last].context, fibers[current].context);
}

static void spy_fiber_main()
{
    SpyFibers& all = spy_fibers;
    all.body(all.argument);
    all.warp().alive &= ~all.lane_bit();
    all.go_on();
    __builtin_unreachable();
}

/// Frees the lanes of a warp that wait for lanes which all have come, or have ended.
bool SpyFibers::release_warp(uint first)
{
    SpyWarp& lanes = warps[first / 32];
    SpyFiber* warp = fibers + first;
    const void* place = nullptr;
    for (uint rest = lanes.at_warp; rest; rest &= rest - 1) {
        const SpyFiber& fiber = warp[__builtin_ctz(rest)];
        if (fiber.place && (!place || fiber.place < place))
            place = fiber.place;
        const uint needed = fiber.mask & lanes.alive;
        bool complete = !fiber.place && !(needed & ~lanes.at_warp);
        for (uint others = needed; others && complete; others &= others - 1) {
            const SpyFiber& other = warp[__builtin_ctz(others)];
            complete = other.mask == fiber.mask && other.exchange == fiber.exchange && !other.place;
        }
        if (!complete)
            continue;
        if (fiber.exchange)
            fiber.exchange(warp, needed);
        lanes.at_warp &= ~needed;
        lanes.ready |= needed;
        rest &= lanes.at_warp | (rest & -rest);
    }
    if (lanes.ready || !place)
        return lanes.ready;
    uint there = 0; // nobody can go on: those at the earliest place that asks are together
    for (uint rest = lanes.at_warp; rest; rest &= rest - 1)
        if (warp[__builtin_ctz(rest)].place == place)
            there |= rest & -rest;
    warp[__builtin_ctz(there)].exchange(warp, there);
    lanes.at_warp &= ~there;
    lanes.ready |= there;
    return true;
}

bool SpyFibers::release_block()
{
    uint waiting = 0;
    for (uint i = 0; i < (count + 31) / 32; i++) {
        if (warps[i].alive != warps[i].at_block)
            return false;
        waiting |= warps[i].at_block;
    }
    for (uint i = 0; i < (count + 31) / 32; i++) {
        warps[i].ready = warps[i].at_block;
        warps[i].at_block = 0;
    }
    return waiting;
}

/// Runs one block. False when its threads wait for each other for ever, or there is no memory for them.
bool SpyFibers::run(uint3 block, uint3* thread_index, void (*function)(void*), void* data)
{
    count = block.x * block.y * block.z;
    if (!reserve(count))
        return false;
    spy_fibers_here = this;
    index = thread_index;
    body = function;
    argument = data;
    for (uint i = 0; i < count; i++) {
        SpyFiber& fiber = fibers[i];
        fiber.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
        // not all at the same place of their pages: they would fight for the same lines of the cache
        char* top = static_cast<char*>(fiber.stack) + stack_size - i % 32 * 128;
        fiber.context = spy_first_frame(top, spy_fiber_main);
    }
    for (uint i = 0; i < count; i += 32) {
        const uint all = count - i < 32 ? (1u << (count - i)) - 1u : 0xffffffffu;
        warps[i / 32] = {all, 0, 0, all};
    }
    do {
        bool alive = false;
        for (uint first = 0; first < count; first += 32) {
            SpyWarp& lanes = warps[first / 32];
            if (lanes.ready || release_warp(first)) {
                const uint bit = lanes.ready & -lanes.ready;
                lanes.ready ^= bit;
                current = first + uint(__builtin_ctz(bit));
                *index = fibers[current].index;
                spy_switch(&scheduler, fibers[current].context);
            }
            alive = alive || lanes.alive;
        }
        if (!alive)
            return true;
    } while (release_block());
    return false;
}

#define SPY_WAITS __attribute__((noinline))

// --- barriers

SPY_WAITS static void __syncthreads()
{
    SpyFibers& all = *spy_fibers_here;
    all.warp().at_block |= all.lane_bit();
    all.go_on();
}

/// Waits for the lanes of the mask. The slot then holds what the exchange makes of theirs.
SPY_WAITS static void spy_wait(uint mask, SpyExchange exchange, const void* place = nullptr)
{
    SpyFibers& all = *spy_fibers_here;
    SpyFiber& self = all.self();
    self.mask = mask | all.lane_bit();
    self.exchange = exchange;
    self.place = place;
    all.warp().at_warp |= all.lane_bit();
    all.go_on();
}
static void __syncwarp(uint mask = 0xffffffffu) { spy_wait(mask, nullptr); }

// --- warps: each lane shows a value; when all have come, one of them works out what each gets

static uint _getLaneId() { return spy_fibers_here->current & 31u; }
static WarpMask _getLaneLtMask() { return WarpMask((1u << _getLaneId()) - 1u); }

template <class T> static T& spy_slot(SpyFiber& fiber)
{
    static_assert(sizeof(T) <= spy_slot_size && alignof(T) <= 16, "too large for a warp function");
    return *reinterpret_cast<T*>(fiber.slot);
}
/// Calls look(lane) for each of these lanes.
template <class Look> static void spy_each(uint lanes, Look look)
{
    for (; lanes; lanes &= lanes - 1)
        look(uint(__builtin_ctz(lanes)));
}
/// Shows a value, waits and gives what the exchange has left.
template <class Result, class T> static Result spy_exchange(uint mask, const T& value, SpyExchange exchange)
{
    memcpy(&spy_slot<T>(spy_fibers_here->self()), &value, sizeof(T));
    spy_wait(mask, exchange);
    return spy_slot<Result>(spy_fibers_here->self());
}

static void spy_ballot(SpyFiber* warp, uint there)
{
    uint bits = 0;
    spy_each(there, [&](uint lane) { bits |= spy_slot<uint>(warp[lane]) << lane; });
    spy_each(there, [&](uint lane) { spy_slot<uint>(warp[lane]) = bits; });
}
static uint __ballot_sync(uint mask, bool v) { return spy_exchange<uint>(mask, uint(v), spy_ballot); }

/// The lanes that are at this place of the code.
SPY_WAITS static uint __activemask()
{
    spy_slot<uint>(spy_fibers_here->self()) = 1;
    spy_wait(0, spy_ballot, __builtin_return_address(0));
    return spy_slot<uint>(spy_fibers_here->self());
}
SPY_WAITS static WarpMask _getActiveMask()
{
    spy_slot<uint>(spy_fibers_here->self()) = 1;
    spy_wait(0, spy_ballot, __builtin_return_address(0));
    return WarpMask(spy_slot<uint>(spy_fibers_here->self()));
}
static int __any_sync(uint mask, bool v) { return __ballot_sync(mask, v) != 0; }
static int __all_sync(uint mask, bool v) { return __ballot_sync(mask, !v) == 0; }

/// A value, and the lane whose value is asked for.
template <class T> struct SpyAsked {
    T value;
    int source;
};
template <class T> static void spy_shuffle(SpyFiber* warp, uint there)
{
    T values[32];
    spy_each(there, [&](uint lane) { memcpy(static_cast<void*>(&values[lane]), warp[lane].slot, sizeof(T)); });
    spy_each(there, [&](uint lane) {
        const uint source = uint(spy_slot<SpyAsked<T>>(warp[lane]).source);
        if (source < 32 && (there >> source & 1u)) // else one's own
            spy_slot<T>(warp[lane]) = values[source];
    });
}
/// The value of a lane; one's own when that takes no part.
template <class T> static T spy_lane(uint mask, T v, int source)
{
    return spy_exchange<T>(mask, SpyAsked<T>{v, source}, spy_shuffle<T>);
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
template <class T> static void spy_match(SpyFiber* warp, uint there)
{
    uint bits[32] = {};
    spy_each(there, [&](uint lane) {
        spy_each(there, [&](uint other) {
            bits[lane] |= uint(memcmp(warp[lane].slot, warp[other].slot, sizeof(T)) == 0) << other;
        });
    });
    spy_each(there, [&](uint lane) { spy_slot<uint>(warp[lane]) = bits[lane]; });
}
template <class T> static uint __match_any_sync(uint mask, T v) { return spy_exchange<uint>(mask, v, spy_match<T>); }
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
SPY_INLINE static bool _waveIsFirstLane() { return uint(__ffs(int(__activemask())) - 1) == _getLaneId(); }

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
template <class Op, class T> static void spy_reduce_all(SpyFiber* warp, uint there)
{
    T result = spy_slot<T>(warp[__builtin_ctz(there)]);
    spy_each(there & (there - 1), [&](uint lane) { result = spy_apply<Op>(result, spy_slot<T>(warp[lane])); });
    spy_each(there, [&](uint lane) { spy_slot<T>(warp[lane]) = result; });
}
/// Every lane gets what those up to it make together.
template <class Op, class T> static void spy_reduce_up_to(SpyFiber* warp, uint there)
{
    T result = spy_slot<T>(warp[__builtin_ctz(there)]);
    spy_each(there & (there - 1), [&](uint lane) { result = spy_slot<T>(warp[lane]) = spy_apply<Op>(result, spy_slot<T>(warp[lane])); });
}
/// What those below it make together; its own value, the neutral one, comes after the first.
template <class T> struct SpyBelow {
    T value, none;
};
template <class Op, class T> static void spy_reduce_below(SpyFiber* warp, uint there)
{
    const SpyBelow<T> first = spy_slot<SpyBelow<T>>(warp[__builtin_ctz(there)]);
    T result = first.value;
    spy_slot<T>(warp[__builtin_ctz(there)]) = first.none;
    spy_each(there & (there - 1), [&](uint lane) {
        const T next = spy_apply<Op>(result, spy_slot<T>(warp[lane]));
        spy_slot<T>(warp[lane]) = result;
        result = next;
    });
}
template <class V> struct SpyFill { static V with(double number) { return V(number); } };
template <class T, int N> struct SpyFill<Vector<T, N>> { static Vector<T, N> with(double number) { return spy_make<T, N>(T(number)); } };
template <class T, int R, int C> struct SpyFill<Matrix<T, R, C>> { static Matrix<T, R, C> with(double number) { return makeMatrix<T, R, C>(T(number)); } };

#define SPY_WAVE(NAME, OP, NONE) \
    template <class T> static T _wave##NAME(uint mask, T v) { return spy_exchange<T>(mask, v, spy_reduce_all<OP, T>); } \
    template <class T> static T _wave##NAME##Multiple(uint mask, T v) { return spy_exchange<T>(mask, v, spy_reduce_all<OP, T>); } \
    template <class T> static T _wavePrefix##NAME(uint mask, T v) { return spy_exchange<T>(mask, SpyBelow<T>{v, SpyFill<T>::with(NONE)}, spy_reduce_below<OP, T>); } \
    template <class T> static T _wavePrefix##NAME##Multiple(uint mask, T v) { return _wavePrefix##NAME(mask, v); } \
    template <class T> static T _wavePrefixInclusive##NAME(uint mask, T v) { return spy_exchange<T>(mask, v, spy_reduce_up_to<OP, T>); } \
    template <class T> static T _wavePrefixInclusive##NAME##Multiple(uint mask, T v) { return _wavePrefixInclusive##NAME(mask, v); }
SPY_WAVE(Sum, SpySum, 0)
SPY_WAVE(Product, SpyProduct, 1)
SPY_WAVE(Or, SpyOr, 0)
SPY_WAVE(And, SpyAnd, -1)
SPY_WAVE(Xor, SpyXor, 0)
SPY_WAVE(Min, SpyLeast, INFINITY)
SPY_WAVE(Max, SpyMost, -INFINITY)
#undef SPY_WAVE
