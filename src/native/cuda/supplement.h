#pragma once
// CUDA code that completes Slang's CUDA library, put between library and program when the program needs it.
//
// The library leaves 1-D Load() and formatted stores to layered surfaces empty (the program compiles and does nothing),
// knows Load() for 32-bit texels only and no sampling of half. Calls in the program are renamed to these functions.

namespace spy {

/// Load() of texels: a raw fetch of four 32-bit values, then the texel type made of them.
inline constexpr const char* cuda_fetch_supplement = R"(
template<typename T> struct _spy_texel;
#define SPY_TEXEL(T, R, C)                                                                                             \
    template<> struct _spy_texel<T> { typedef R raw; static __device__ T make(R v) { return T(C(v.x)); } };
#define SPY_TEXELS(T, R, C)                                                                                            \
    SPY_TEXEL(T, R, C)                                                                                                 \
    template<> struct _spy_texel<T##2> { typedef R raw; static __device__ T##2 make(R v) { return T##2{C(v.x), C(v.y)}; } };                   \
    template<> struct _spy_texel<T##3> { typedef R raw; static __device__ T##3 make(R v) { return T##3{C(v.x), C(v.y), C(v.z)}; } };           \
    template<> struct _spy_texel<T##4> { typedef R raw; static __device__ T##4 make(R v) { return T##4{C(v.x), C(v.y), C(v.z), C(v.w)}; } };
SPY_TEXELS(float, float4, float)
SPY_TEXELS(int, int4, int)
SPY_TEXELS(uint, uint4, uint)
SPY_TEXELS(short, int4, short)
SPY_TEXELS(ushort, uint4, ushort)
SPY_TEXELS(char, int4, char)
SPY_TEXELS(uchar, uint4, uchar)
#if SLANG_CUDA_ENABLE_HALF
SPY_TEXELS(__half, float4, __float2half)
#endif
#define SPY_FETCH_RAW(R, dtype, c)                                                                                     \
    __device__ inline void _spy_raw_1d(R& o, CUtexObject t, int x, int m) /* integer coordinates give 0 in 1-D */        \
    {                                                                                                                  \
        int w; asm("txq.level.width.b32 %0, [%1], %2;" : "=r"(w) : "l"(t), "r"(m));                                    \
        asm volatile("tex.level.1d.v4." dtype ".f32 {%0, %1, %2, %3}, [%4, {%5}], %6;" : c(o.x), c(o.y), c(o.z), c(o.w) : "l"(t), "f"((x + 0.5f) / w), "f"((float)m)); \
        if ((unsigned)x >= (unsigned)w) o = R{0, 0, 0, 0};                                                             \
    }                                                                                                                  \
    __device__ inline void _spy_raw_2d(R& o, CUtexObject t, int x, int y, int m)                                       \
    { asm volatile("tex.level.2d.v4." dtype ".s32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;" : c(o.x), c(o.y), c(o.z), c(o.w) : "l"(t), "r"(x), "r"(y), "r"(m)); } \
    __device__ inline void _spy_raw_3d(R& o, CUtexObject t, int x, int y, int z, int m)                                \
    { asm volatile("tex.level.3d.v4." dtype ".s32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}], %8;" : c(o.x), c(o.y), c(o.z), c(o.w) : "l"(t), "r"(x), "r"(y), "r"(z), "r"(m)); } \
    __device__ inline void _spy_raw_a1d(R& o, CUtexObject t, int x, int l, int m)                                      \
    { asm volatile("tex.level.a1d.v4." dtype ".s32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;" : c(o.x), c(o.y), c(o.z), c(o.w) : "l"(t), "r"(l), "r"(x), "r"(m)); } \
    __device__ inline void _spy_raw_a2d(R& o, CUtexObject t, int x, int y, int l, int m)                               \
    { asm volatile("tex.level.a2d.v4." dtype ".s32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}], %8;" : c(o.x), c(o.y), c(o.z), c(o.w) : "l"(t), "r"(l), "r"(x), "r"(y), "r"(m)); }
SPY_FETCH_RAW(float4, "f32", "=f")
SPY_FETCH_RAW(int4, "s32", "=r")
SPY_FETCH_RAW(uint4, "u32", "=r")
template<typename T> __device__ inline T _spy_tex1Dfetch(CUtexObject t, int x, int m) { typename _spy_texel<T>::raw o; _spy_raw_1d(o, t, x, m); return _spy_texel<T>::make(o); }
template<typename T> __device__ inline T _spy_tex2Dfetch(CUtexObject t, int x, int y, int m) { typename _spy_texel<T>::raw o; _spy_raw_2d(o, t, x, y, m); return _spy_texel<T>::make(o); }
template<typename T> __device__ inline T _spy_tex3Dfetch(CUtexObject t, int x, int y, int z, int m) { typename _spy_texel<T>::raw o; _spy_raw_3d(o, t, x, y, z, m); return _spy_texel<T>::make(o); }
template<typename T> __device__ inline T _spy_tex1DArrayfetch(CUtexObject t, int x, int l, int m) { typename _spy_texel<T>::raw o; _spy_raw_a1d(o, t, x, l, m); return _spy_texel<T>::make(o); }
template<typename T> __device__ inline T _spy_tex2DArrayfetch(CUtexObject t, int x, int y, int l, int m) { typename _spy_texel<T>::raw o; _spy_raw_a2d(o, t, x, y, l, m); return _spy_texel<T>::make(o); }
)";

/// Sampling of half textures: CUDA's functions return float.
inline constexpr const char* cuda_half_sampling_supplement = R"(
#define SPY_HALF_SAMPLE(F, P, A)                                                                                       \
    __device__ inline void F(__half* o, cudaTextureObject_t t, P) { float v; F(&v, t, A); *o = __float2half(v); }     \
    __device__ inline void F(__half2* o, cudaTextureObject_t t, P) { float2 v; F(&v, t, A); *o = __half2{__float2half(v.x), __float2half(v.y)}; }   \
    __device__ inline void F(__half4* o, cudaTextureObject_t t, P)                                                     \
    { float4 v; F(&v, t, A); *o = __half4{__float2half(v.x), __float2half(v.y), __float2half(v.z), __float2half(v.w)}; }
#define SPY_LIST(...) __VA_ARGS__
SPY_HALF_SAMPLE(tex1DLod, SPY_LIST(float x, float m), SPY_LIST(x, m))
SPY_HALF_SAMPLE(tex2DLod, SPY_LIST(float x, float y, float m), SPY_LIST(x, y, m))
SPY_HALF_SAMPLE(tex3DLod, SPY_LIST(float x, float y, float z, float m), SPY_LIST(x, y, z, m))
SPY_HALF_SAMPLE(texCubemapLod, SPY_LIST(float x, float y, float z, float m), SPY_LIST(x, y, z, m))
SPY_HALF_SAMPLE(tex1DLayeredLod, SPY_LIST(float x, int l, float m), SPY_LIST(x, l, m))
SPY_HALF_SAMPLE(tex2DLayeredLod, SPY_LIST(float x, float y, int l, float m), SPY_LIST(x, y, l, m))
SPY_HALF_SAMPLE(texCubemapLayeredLod, SPY_LIST(float x, float y, float z, int l, float m), SPY_LIST(x, y, z, l, m))
)";

/// SamplerComparisonState takes room among the parameters, although CUDA cannot compare.
inline constexpr const char* cuda_comparison_sampler_supplement =
    "\ntypedef SamplerStateUnused* SamplerComparisonState;\n";

/// For constants (see constants.h): vectors that the compiler makes, and the operators between a vector or matrix and a
/// number, which Slang writes out in functions and leaves as they are in constants.
inline constexpr const char* cuda_constants_supplement = R"(
template<typename V> using _spy_component = decltype(V::x);
template<typename V, typename A> __device__ constexpr V _spy_made1(A a) { return V{_spy_component<V>(a)}; }
template<typename V, typename A> __device__ constexpr V _spy_made2(A a) { return V{_spy_component<V>(a), _spy_component<V>(a)}; }
template<typename V, typename A, typename B> __device__ constexpr V _spy_made2(A a, B b)
{
    return V{_spy_component<V>(a), _spy_component<V>(b)};
}
template<typename V, typename A> __device__ constexpr V _spy_made3(A a)
{
    return V{_spy_component<V>(a), _spy_component<V>(a), _spy_component<V>(a)};
}
template<typename V, typename A, typename B, typename C> __device__ constexpr V _spy_made3(A a, B b, C c)
{
    return V{_spy_component<V>(a), _spy_component<V>(b), _spy_component<V>(c)};
}
template<typename V, typename A> __device__ constexpr V _spy_made4(A a)
{
    return V{_spy_component<V>(a), _spy_component<V>(a), _spy_component<V>(a), _spy_component<V>(a)};
}
template<typename V, typename A, typename B, typename C, typename D> __device__ constexpr V _spy_made4(A a, B b, C c, D d)
{
    return V{_spy_component<V>(a), _spy_component<V>(b), _spy_component<V>(c), _spy_component<V>(d)};
}
template<typename V> __device__ inline auto _spy_set_y(V& v, _spy_component<V> s, int) -> decltype(void(v.y = s)) { v.y = s; }
template<typename V> __device__ inline void _spy_set_y(V&, _spy_component<V>, long) { }
template<typename V> __device__ inline auto _spy_set_z(V& v, _spy_component<V> s, int) -> decltype(void(v.z = s)) { v.z = s; }
template<typename V> __device__ inline void _spy_set_z(V&, _spy_component<V>, long) { }
template<typename V> __device__ inline auto _spy_set_w(V& v, _spy_component<V> s, int) -> decltype(void(v.w = s)) { v.w = s; }
template<typename V> __device__ inline void _spy_set_w(V&, _spy_component<V>, long) { }
template<typename V> __device__ inline V _spy_splat(_spy_component<V> s)
{
    V v;
    v.x = s;
    _spy_set_y(v, s, 0);
    _spy_set_z(v, s, 0);
    _spy_set_w(v, s, 0);
    return v;
}
template<typename T> struct _spy_same { typedef T type; };
#define SPY_OPERATOR(op)                                                                                               \
    template<typename V> __device__ inline auto operator op(const V& a, _spy_component<V> b) { return a op _spy_splat<V>(b); } \
    template<typename V> __device__ inline auto operator op(_spy_component<V> a, const V& b) { return _spy_splat<V>(a) op b; } \
    template<typename T, int R, int C>                                                                                 \
    __device__ inline auto operator op(const Matrix<T, R, C>& a, typename _spy_same<T>::type b)                        \
    {                                                                                                                  \
        return a op makeMatrix<T, R, C>(b);                                                                            \
    }                                                                                                                  \
    template<typename T, int R, int C>                                                                                 \
    __device__ inline auto operator op(typename _spy_same<T>::type a, const Matrix<T, R, C>& b)                        \
    {                                                                                                                  \
        return makeMatrix<T, R, C>(a) op b;                                                                            \
    }
SPY_OPERATOR(+)
SPY_OPERATOR(-)
SPY_OPERATOR(*)
SPY_OPERATOR(/)
SPY_OPERATOR(%)
SPY_OPERATOR(&)
SPY_OPERATOR(|)
SPY_OPERATOR(^)
SPY_OPERATOR(<<)
SPY_OPERATOR(>>)
SPY_OPERATOR(<)
SPY_OPERATOR(<=)
SPY_OPERATOR(>)
SPY_OPERATOR(>=)
SPY_OPERATOR(==)
SPY_OPERATOR(!=)
#undef SPY_OPERATOR
#if SLANG_CUDA_ENABLE_HALF
/// Rounds to nearest, ties to even.
__device__ constexpr unsigned short _spy_half_bits(double v)
{
    if (v != v)
        return 0x7fff;
    const unsigned short sign = v < 0 ? 0x8000 : 0;
    v = v < 0 ? -v : v;
    if (v >= 65520)
        return sign | 0x7c00;
    int exponent = -14;
    double scaled = v * 16777216; // in units of the smallest half
    for (; scaled >= 2048; ++exponent)
        scaled /= 2;
    unsigned bits = unsigned(scaled);
    const double rest = scaled - bits;
    bits += rest > 0.5 || (rest == 0.5 && (bits & 1)) ? 1 : 0;
    return sign | ((exponent + 14 << 10) + bits);
}
__device__ constexpr __half _spy_half(double v) { return __half(__half_raw{_spy_half_bits(v)}); }
#endif
)";

} // namespace spy
