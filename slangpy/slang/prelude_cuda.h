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

// Adds to two or four neighbours in global memory: in one instruction where there is one, for addresses that it takes.
__device__ __forceinline__ void _spy_add_f32x2(float2* p, float2 v)
{
#if __CUDA_ARCH__ >= 900
    if ((reinterpret_cast<unsigned long long>(p) & 7u) == 0) {
        asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(v.x), "f"(v.y) : "memory");
        return;
    }
#endif
    atomicAdd(&p->x, v.x);
    atomicAdd(&p->y, v.y);
}
__device__ __forceinline__ void _spy_add_f32x4(float4* p, float4 v)
{
#if __CUDA_ARCH__ >= 900
    if ((reinterpret_cast<unsigned long long>(p) & 15u) == 0) {
        asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
        return;
    }
#endif
    _spy_add_f32x2(reinterpret_cast<float2*>(p), make_float2(v.x, v.y));
    _spy_add_f32x2(reinterpret_cast<float2*>(p) + 1, make_float2(v.z, v.w));
}

// A pointer that is known to be a multiple of 16: the compiler then joins loads of neighbours.
template <typename T> __device__ __forceinline__ T* _spy_aligned(T* p)
{
    return static_cast<T*>(__builtin_assume_aligned(p, 16));
}

// Arrays and structs in memory, by 16 bytes at a time where they begin at multiples of that. All elements of a tensor do or none.
template <typename T> __device__ __forceinline__ bool _spy_by_16(const T* p)
{
    return sizeof(T) >= 16 && sizeof(T) % 16 == 0 && alignof(T) < 16 && (reinterpret_cast<unsigned long long>(p) & 15u) == 0;
}

// CUDA makes vectors of signed char, Slang's library of char: a call that mixes int8_t and literals fits both.
template <typename A, typename B> __device__ __forceinline__ char2 make_char2(A x, B y)
{
    char2 v;
    v.x = (signed char)x, v.y = (signed char)y;
    return v;
}
template <typename A, typename B, typename C> __device__ __forceinline__ char3 make_char3(A x, B y, C z)
{
    char3 v;
    v.x = (signed char)x, v.y = (signed char)y, v.z = (signed char)z;
    return v;
}
template <typename A, typename B, typename C, typename D> __device__ __forceinline__ char4 make_char4(A x, B y, C z, D w)
{
    char4 v;
    v.x = (signed char)x, v.y = (signed char)y, v.z = (signed char)z, v.w = (signed char)w;
    return v;
}

// Shifts of vectors and matrices by those of another type, which Slang's library leaves out.
template <typename V> struct _spy_whole { };
#define _SPY_WHOLE(name, T) \
    template <> struct _spy_whole<name##2> { typedef T type; static constexpr int size = 2; }; \
    template <> struct _spy_whole<name##3> { typedef T type; static constexpr int size = 3; }; \
    template <> struct _spy_whole<name##4> { typedef T type; static constexpr int size = 4; };
_SPY_WHOLE(char, signed char) _SPY_WHOLE(uchar, unsigned char) _SPY_WHOLE(short, short) _SPY_WHOLE(ushort, unsigned short)
_SPY_WHOLE(int, int) _SPY_WHOLE(uint, unsigned) _SPY_WHOLE(longlong, long long) _SPY_WHOLE(ulonglong, unsigned long long)
#undef _SPY_WHOLE
template <int a, int b, typename T, typename U> struct _spy_shifted { };
template <int a, typename T, typename U> struct _spy_shifted<a, a, T, U> { typedef T type; };
template <int a, typename T> struct _spy_shifted<a, a, T, T> { };
template <typename T, int R, int C> struct Matrix;
#define _SPY_SHIFT(op) \
    template <typename V, typename W, typename T = typename _spy_whole<V>::type, typename U = typename _spy_whole<W>::type, \
              typename = typename _spy_shifted<_spy_whole<V>::size, _spy_whole<W>::size, T, U>::type> \
    __device__ __forceinline__ V operator op(V a, const W& b) \
    { \
        for (int i = 0; i < _spy_whole<V>::size; i++) \
            (&a.x)[i] = T((&a.x)[i] op (&b.x)[i]); \
        return a; \
    } \
    template <typename T, typename U, int R, int C, typename = typename _spy_shifted<0, 0, T, U>::type> \
    __device__ __forceinline__ Matrix<T, R, C> operator op(Matrix<T, R, C> a, const Matrix<U, R, C>& b) \
    { \
        for (int i = 0; i < R; i++) \
            a.rows[i] = a.rows[i] op b.rows[i]; \
        return a; \
    }
_SPY_SHIFT(<<)
_SPY_SHIFT(>>)
#undef _SPY_SHIFT

// What makes the operators of Slang's library for vectors and matrices of integers wrap around; see wrapping.h.
#define SPY_VECTOR_BINARY_OP(T, n, op) \
    SLANG_FORCE_INLINE SLANG_CUDA_CALL T##n operator op(T##n a, T##n b) \
    { \
        for (int i = 0; i < n; i++) \
            (&a.x)[i] = (&a.x)[i] op _spy_wrap op (&b.x)[i]; \
        return a; \
    }
#define SPY_VECTOR_UNARY_OP(T, n, minus) \
    SLANG_FORCE_INLINE SLANG_CUDA_CALL T##n operator-(T##n a) \
    { \
        for (int i = 0; i < n; i++) \
            (&a.x)[i] = _spy_minus((&a.x)[i]); \
        return a; \
    }
#define SPY_MATRIX_BINARY_OP(T, op) \
    template <int R, int C> SLANG_FORCE_INLINE SLANG_CUDA_CALL Matrix<T, R, C> operator op(Matrix<T, R, C> a, const Matrix<T, R, C>& b) \
    { \
        for (int i = 0; i < R; i++) \
            for (int j = 0; j < C; j++) \
                (&a.rows[i].x)[j] = (&a.rows[i].x)[j] op _spy_wrap op (&b.rows[i].x)[j]; \
        return a; \
    }

// Of two types where a literal has another name for its own.
template <typename T, typename U> __device__ __forceinline__ auto _slang_select(bool condition, T a, U b)
{
    return condition ? a : b;
}
