// Integer divisions of kernels on the CPU. By zero they give 0, and the least number by -1 gives itself, as in NumPy, both
// with remainder 0: processors end the process there, and C++ compilers take for granted that it does not happen.
//
// `a / b` was made `a / _spy_by / b` (slangpy/compiler/text/divisions.py), which leaves the order of what stands around it.
#pragma once

// Set by kernels, read by the device.
#if defined(_MSC_VER)
extern "C" __declspec(dllexport) int _spy_divided_by_zero = 0;
#define SPY_DIVISION_INLINE __forceinline
#define SPY_RARELY(condition) (condition)
#define SPY_NOTE_DIVISION() (void)(*(volatile int*)&_spy_divided_by_zero = 1)
#else
extern "C" __attribute__((visibility("default"))) int _spy_divided_by_zero = 0;
#define SPY_DIVISION_INLINE inline __attribute__((always_inline))
#define SPY_RARELY(condition) __builtin_expect(condition, 0)
#define SPY_NOTE_DIVISION() __atomic_store_n(&_spy_divided_by_zero, 1, __ATOMIC_RELAXED)
#endif

struct _spy_Over {};
static constexpr _spy_Over _spy_by{};

template<class T>
struct _spy_Dividend { const T& value; };
template<class T> SPY_DIVISION_INLINE constexpr _spy_Dividend<T> operator/(const T& a, _spy_Over) { return {a}; }
template<class T> SPY_DIVISION_INLINE constexpr _spy_Dividend<T> operator%(const T& a, _spy_Over) { return {a}; }

template<class T> struct _spy_has_remainders { static constexpr bool value = false; };
#define SPY_INTEGER(T) template<> struct _spy_has_remainders<T> { static constexpr bool value = true; };
SPY_INTEGER(bool) SPY_INTEGER(char)
SPY_INTEGER(signed char) SPY_INTEGER(short) SPY_INTEGER(int) SPY_INTEGER(long) SPY_INTEGER(long long)
SPY_INTEGER(unsigned char) SPY_INTEGER(unsigned short) SPY_INTEGER(unsigned) SPY_INTEGER(unsigned long)
SPY_INTEGER(unsigned long long)
#undef SPY_INTEGER

/// A quotient has the type of its operands, as in Slang; where they differ, that which C++ gives it.
template<bool same, class T, class U> struct _spy_Quotient { typedef T type; };
template<class T, class U> struct _spy_Quotient<false, T, U> { typedef decltype(T() / U()) type; };

#define SPY_DIVISION(op, without_room) \
    template<class T, class U> SPY_DIVISION_INLINE constexpr auto operator op(_spy_Dividend<T> dividend, const U& divisor) \
    { \
        if constexpr (_spy_has_remainders<T>::value && _spy_has_remainders<U>::value) { \
            typedef typename _spy_Quotient<sizeof(T) == sizeof(U), T, U>::type R; \
            const R a = R(dividend.value), b = R(divisor); \
            constexpr bool is_signed = R(-1) < R(0); \
            if (SPY_RARELY(is_signed ? (unsigned long long)(long long)(b) + 1 < 2 : b == 0)) { \
                if (b == 0) \
                    SPY_NOTE_DIVISION(); \
                return b == 0 ? R(0) : R(without_room); \
            } \
            return R(a op b); \
        } else { \
            return dividend.value op divisor; \
        } \
    }
SPY_DIVISION(/, 0 - (unsigned long long)(a))
SPY_DIVISION(%, 0)
#undef SPY_DIVISION

// What the operators of Slang's prelude are for vectors and matrices of integers.
#define SPY_VECTOR_DIVISION(T, op) \
    template<int n> SLANG_FORCE_INLINE Vector<T, n> operator op(const Vector<T, n>& a, const Vector<T, n>& b) \
    { \
        Vector<T, n> result; \
        for (int i = 0; i < n; i++) \
            result[i] = T(a[i] op _spy_by op b[i]); \
        return result; \
    }
#define SPY_MATRIX_DIVISION(T, op) \
    template<int R, int C> Matrix<T, R, C> operator op(const Matrix<T, R, C>& a, const Matrix<T, R, C>& b) \
    { \
        Matrix<T, R, C> result; \
        for (int i = 0; i < R; i++) \
            for (int j = 0; j < C; j++) \
                result.rows[i][j] = T(a.rows[i][j] op _spy_by op b.rows[i][j]); \
        return result; \
    }
