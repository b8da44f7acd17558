// Sums over the lanes of a warp, called by the text that atomics.slang emits. Goes in front of Slang's CUDA output.
// Slang's own wave operations are not used on CUDA: they follow lane masks that Slang builds from the structure of the
// code, and where lanes have left a kernel early such a mask can name lanes that never arrive, for which the others wait
// for ever. Here each operation asks the hardware which lanes run with it.

// The lanes that run this together, if all have the same i; else 0.
__device__ __forceinline__ unsigned int _spy_wave_meet(long long i)
{
    const unsigned int lanes = __activemask();
    int equal;
    __match_all_sync(lanes, i, &equal);
    return equal ? lanes : 0u;
}

__device__ __forceinline__ bool _spy_wave_first(unsigned int lanes)
{
    unsigned int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return __ffs(lanes) - 1 == int(lane);
}

// The sum over `lanes`, all of which call this together; each gets it. In lane order, so it does not vary.
template <typename T> __device__ __forceinline__ T _spy_wave_sum(unsigned int lanes, T v)
{
    if (lanes == 0xffffffffu) {
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
            v = v + __shfl_xor_sync(0xffffffffu, v, offset);
        return v;
    }
    T sum = __shfl_sync(lanes, v, __ffs(lanes) - 1);
    for (unsigned int rest = lanes & (lanes - 1u); rest != 0u; rest &= rest - 1u)
        sum = sum + __shfl_sync(lanes, v, __ffs(rest) - 1);
    return sum;
}
