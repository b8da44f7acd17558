// Integers of kernels in C++ and CUDA: sums, differences, products, shifts and negations have the type of their operands and
// wrap around, as in Slang. C++ computes 8 and 16 bits as int, and compilers take signed overflow for impossible (-fwrapv says
// otherwise; NVRTC has nothing like it).
//
// `a + b` was made `a + _spy_wrap + b` (slangpy/compiler/text/wrapping.py), which leaves the order of what stands around it.
#pragma once

#if defined(__CUDACC__)
#define SPY_WRAPS __host__ __device__ __forceinline__ constexpr
#elif defined(_MSC_VER)
#define SPY_WRAPS __forceinline constexpr
#else
#define SPY_WRAPS inline __attribute__((always_inline)) constexpr
#endif

struct _spy_Wrap {};
#define _spy_wrap _spy_Wrap()

template<class T> struct _spy_Modulo { static constexpr bool is_integer = false; };
#define SPY_MODULO(T, U) template<> struct _spy_Modulo<T> { static constexpr bool is_integer = true; typedef U type; };
SPY_MODULO(char, unsigned) SPY_MODULO(signed char, unsigned) SPY_MODULO(unsigned char, unsigned)
SPY_MODULO(short, unsigned) SPY_MODULO(unsigned short, unsigned) SPY_MODULO(int, unsigned) SPY_MODULO(unsigned, unsigned)
SPY_MODULO(long, unsigned long) SPY_MODULO(unsigned long, unsigned long)
SPY_MODULO(long long, unsigned long long) SPY_MODULO(unsigned long long, unsigned long long)
#undef SPY_MODULO
template<class T> struct _spy_Modulo<const T> : _spy_Modulo<T> {};

/// Of two operands: theirs where it is one (a literal may have another name for it), else what C++ makes of them.
template<bool same, class T, class U> struct _spy_Both { typedef T type; };
template<class T, class U> struct _spy_Both<false, T, U> { typedef decltype(T() + U()) type; };

template<class T> struct _spy_Left { T& value; };
template<class T> struct _spy_Left<T*> { T* value; };

/// An array is where its elements begin.
template<class T, decltype(sizeof 0) n> SPY_WRAPS _spy_Left<T*> operator+(T (&a)[n], _spy_Wrap) { return {a}; }

#if defined(__CUDACC__)
/// What is narrowed stays 32 bits wide until then: of a negation in 16 bits, which NVRTC also makes of products and sums, ptxas
/// (CUDA 13.0) takes -(-32768) to be positive where it is widened again.
__host__ __device__ __forceinline__ int _spy_wide(int value)
{
    asm("" : "+r"(value));
    return value;
}
#else
SPY_WRAPS int _spy_wide(int value) { return value; }
#endif

#define SPY_WRAPPING(op) \
    template<class T> SPY_WRAPS _spy_Left<T> operator op(T& a, _spy_Wrap) { return {a}; } \
    template<class T> SPY_WRAPS _spy_Left<const T> operator op(const T& a, _spy_Wrap) { return {a}; } \
    template<class T, class U> SPY_WRAPS auto operator op(_spy_Left<T> left, const U& b) \
    { \
        if constexpr (_spy_Modulo<T>::is_integer && _spy_Modulo<U>::is_integer) { \
            typedef typename _spy_Both<sizeof(T) == sizeof(U), T, U>::type R; \
            typedef typename _spy_Modulo<R>::type M; \
            if constexpr (sizeof(R) < sizeof(int)) \
                return R(_spy_wide(int(M(left.value) op M(b)))); \
            else \
                return R(M(left.value) op M(b)); \
        } else { \
            return left.value op b; \
        } \
    }
SPY_WRAPPING(+)
SPY_WRAPPING(-)
SPY_WRAPPING(*)
SPY_WRAPPING(&)
SPY_WRAPPING(|)
SPY_WRAPPING(^)
#undef SPY_WRAPPING

template<class T> SPY_WRAPS _spy_Left<const T> operator<<(const T& a, _spy_Wrap) { return {a}; }
template<class T, class U> SPY_WRAPS auto operator<<(_spy_Left<T> left, const U& b)
{
    if constexpr (_spy_Modulo<T>::is_integer)
        return T(typename _spy_Modulo<T>::type(left.value) << b);
    else
        return left.value << b;
}
template<class T> SPY_WRAPS _spy_Left<const T> operator>>(const T& a, _spy_Wrap) { return {a}; }
template<class T, class U> SPY_WRAPS auto operator>>(_spy_Left<T> left, const U& b)
{
    if constexpr (_spy_Modulo<T>::is_integer)
        return T(left.value >> b);
    else
        return left.value >> b;
}

template<class T> SPY_WRAPS auto _spy_minus(const T& a)
{
    if constexpr (_spy_Modulo<T>::is_integer && sizeof(T) < sizeof(int))
        return T(_spy_wide(-int(a)));
    else if constexpr (_spy_Modulo<T>::is_integer)
        return T(0u - typename _spy_Modulo<T>::type(a));
    else
        return -a;
}
template<class T> SPY_WRAPS auto _spy_inverse(const T& a)
{
    if constexpr (_spy_Modulo<T>::is_integer)
        return T(~a);
    else
        return ~a;
}
