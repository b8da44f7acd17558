// Functions of one number for lanes (lanes_cpp.h), with the bits that glibc gives for one number: expf, exp2f, logf,
// log2f, powf, sinf and cosf compute in double with small tables, and the same steps are done here for many numbers at
// once. The steps and tables are those of Arm's optimized routines, which glibc has had since 2.28: Copyright (c)
// 1999-2019, Arm Limited (third_party/arm-optimized-routines/LICENSE). What is out of their range is computed by the
// function itself.
#pragma once
#if SPY_HAS_LANES

#if defined(__AVX2__) && defined(__FMA__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 28)
#define SPY_HAS_LANE_MATH 1
#endif
#endif
#ifdef SPY_HAS_LANE_MATH

namespace spy_lane_math {

typedef double D __attribute__((vector_size(SPY_VECTOR_BYTES)));
typedef long long Q __attribute__((vector_size(SPY_VECTOR_BYTES)));
typedef float F __attribute__((vector_size(SPY_VECTOR_BYTES / 2)));
typedef int I __attribute__((vector_size(SPY_VECTOR_BYTES / 2)));
typedef unsigned U __attribute__((vector_size(SPY_VECTOR_BYTES / 2)));
constexpr int width = SPY_VECTOR_BYTES / 8;

SPY_LANE_INLINE D doubles(F x) { return __builtin_convertvector(x, D); }
SPY_LANE_INLINE F floats(D x) { return __builtin_convertvector(x, F); }
SPY_LANE_INLINE Q wide(I x) { return __builtin_convertvector(x, Q); }

/// Of a table of 16 numbers.
SPY_LANE_INLINE D of_16(const double* table, Q at)
{
#if SPY_VECTOR_BYTES == 64
    D low, high;
    __builtin_memcpy(&low, table, sizeof low);
    __builtin_memcpy(&high, table + 8, sizeof high);
    return __builtin_shuffle(low, high, at);
#else
    return __builtin_ia32_gatherdiv4df(D{}, table, at, (D)(at == at), 8);
#endif
}
/// Bits of 2^(i / 32), less what i adds to the exponent below.
alignas(64) static const long long powers[32] = {
    0x3ff0000000000000, 0x3fefd9b0d3158574, 0x3fefb5586cf9890f, 0x3fef9301d0125b51, 0x3fef72b83c7d517b,
    0x3fef54873168b9aa, 0x3fef387a6e756238, 0x3fef1e9df51fdee1, 0x3fef06fe0a31b715, 0x3feef1a7373aa9cb,
    0x3feedea64c123422, 0x3feece086061892d, 0x3feebfdad5362a27, 0x3feeb42b569d4f82, 0x3feeab07dd485429,
    0x3feea47eb03a5585, 0x3feea09e667f3bcd, 0x3fee9f75e8ec5f74, 0x3feea11473eb0187, 0x3feea589994cce13,
    0x3feeace5422aa0db, 0x3feeb737b0cdc5e5, 0x3feec49182a3f090, 0x3feed503b23e255d, 0x3feee89f995ad3ad,
    0x3feeff76f2fb5e47, 0x3fef199bdd85529c, 0x3fef3720dcef9069, 0x3fef5818dcfba487, 0x3fef7c97337b9b5f,
    0x3fefa4afa2a490da, 0x3fefd0765b6e4540,
};
SPY_LANE_INLINE Q power(Q at)
{
    const double* table = reinterpret_cast<const double*>(powers);
#if SPY_VECTOR_BYTES == 64
    return (at & 16) != 0 ? (Q)of_16(table + 16, at) : (Q)of_16(table, at);
#else
    return (Q)of_16(table, at & 31);
#endif
}
/// 2^x, where `steps` is 1 / 32 as x counts it.
SPY_LANE_INLINE D raised(D z, double shift, double a, double b, double c)
{
    D kd = z + shift;
    __asm__("" : "+x"(kd)); // rounds; no algebra of compilers takes it away
    const Q ki = (Q)kd;
    const D r = z - (kd - shift);
    const D s = (D)(power(ki) + (ki << 47));
    const D r2 = r * r;
    return ((a * r + b) * r2 + (c * r + 1.0)) * s;
}
SPY_LANE_INLINE F exp(F x, I&)
{
    const D z = 0x1.71547652b82fep+5 * doubles(x);
    const F y = floats(raised(z, 0x1.8p+52, 0x1.c6af84b912394p-20, 0x1.ebfce50fac4f3p-13, 0x1.62e42ff0c52d6p-6));
    const F high = x > 0x1.62e42ep6f ? F{} + __builtin_inff() : y;
    return x != x ? x + x : x < -0x1.9fe368p6f ? F{} : high;
}
SPY_LANE_INLINE F exp2(F x, I&)
{
    const F y = floats(raised(doubles(x), 0x1.8p+47, 0x1.c6af84b912394p-5, 0x1.ebfce50fac4f3p-3, 0x1.62e42ff0c52d6p-1));
    const F high = x >= 128.0f ? F{} + __builtin_inff() : y;
    return x != x ? x + x : x <= -150.0f ? F{} : high;
}

/// x as 2^k z, with z near 1: r of z = (1 + r) / c for one of 16 numbers c.
struct Parts {
    D k, r;
    Q at;
};
alignas(64) static const double inverses[16] = {
    0x1.661ec79f8f3bep+0, 0x1.571ed4aaf883dp+0, 0x1.49539f0f010b0p+0, 0x1.3c995b0b80385p+0,
    0x1.30d190c8864a5p+0, 0x1.25e227b0b8ea0p+0, 0x1.1bb4a4a1a343fp+0, 0x1.12358f08ae5bap+0,
    0x1.0953f419900a7p+0, 0x1.0000000000000p+0, 0x1.e608cfd9a47acp-1, 0x1.ca4b31f026aa0p-1,
    0x1.b2036576afce6p-1, 0x1.9c2d163a1aa2dp-1, 0x1.886e6037841edp-1, 0x1.767dcf5534862p-1,
};
alignas(64) static const double logarithms[16] = {
    -0x1.57bf7808caadep-2, -0x1.2bef0a7c06ddbp-2, -0x1.01eae7f513a67p-2, -0x1.b31d8a68224e9p-3, -0x1.6574f0ac07758p-3,
    -0x1.1aa2bc79c8100p-3, -0x1.a4e76ce8c0e5ep-4, -0x1.1973c5a611cccp-4, -0x1.252f438e10c1ep-5, 0x0.0p+0,
    0x1.aa5aa5df25984p-5,  0x1.c5e53aa362eb4p-4,  0x1.526e57720db08p-3,  0x1.bc2860d224770p-3,  0x1.1058bc8a07ee1p-2,
    0x1.4043057b6ee09p-2,
};
alignas(64) static const double logarithms_2[16] = {
    -0x1.efec65b963019p-2, -0x1.b0b6832d4fca4p-2, -0x1.7418b0a1fb77bp-2, -0x1.39de91a6dcf7bp-2, -0x1.01d9bf3f2b631p-2,
    -0x1.97c1d1b3b7af0p-3, -0x1.2f9e393af3c9fp-3, -0x1.960cbbf788d5cp-4, -0x1.a6f9db6475fcep-5, 0x0.0p+0,
    0x1.338ca9f24f53dp-4,  0x1.476a9543891bap-3,  0x1.e840b4ac4e4d2p-3,  0x1.40645f0c6651cp-2,  0x1.88e9c2c1b9ff8p-2,
    0x1.ce0a44eb17bccp-2,
};
SPY_LANE_INLINE Parts parts(F x, I& out)
{
    const I bits = (I)x;
    out |= (U)bits - 0x00800000u >= 0x7f000000u; // zero, subnormal, negative, infinite, no number
    const I from = bits - 0x3f330000;
    const Q at = wide((from >> 19) & 15);
    const D z = doubles((F)(bits - (from & int(0xff800000))));
    return {__builtin_convertvector(from >> 23, D), z * of_16(inverses, at) - 1.0, at};
}
SPY_LANE_INLINE F log(F x, I& out)
{
    const Parts p = parts(x, out);
    const D y0 = of_16(logarithms, p.at) + p.k * 0x1.62e42fefa39efp-1, r2 = p.r * p.r;
    const D y = -0x1.00ea348b88334p-2 * r2 + (0x1.5575b0be00b6ap-2 * p.r + -0x1.ffffef20a4123p-2);
    return floats(y * r2 + (y0 + p.r));
}
SPY_LANE_INLINE F log2(F x, I& out)
{
    const Parts p = parts(x, out);
    const D y0 = of_16(logarithms_2, p.at) + p.k, r2 = p.r * p.r;
    const D y = -0x1.712b6f70a7e4dp-2 * r2 + (0x1.ecabf496832e0p-2 * p.r + -0x1.715479ffae3dep-1);
    return floats(y * r2 + (0x1.715475f35c8b8p+0 * p.r + y0));
}
SPY_LANE_INLINE F pow(F x, F y, I& out)
{
    const Parts p = parts(x, out);
    const D y0 = of_16(logarithms_2, p.at) + p.k, r2 = p.r * p.r, r4 = r2 * r2;
    const D a = 0x1.27616c9496e0bp-2 * p.r + -0x1.71969a075c67ap-2,
            b = 0x1.ec70a6ca7baddp-2 * p.r + -0x1.7154748bef6c8p-1;
    const D c = 0x1.71547652ab82bp+0 * p.r + y0;
    const D z = doubles(y) * (a * r4 + (b * r2 + c));
    const F size = floats(z < 0.0 ? -z : z);
    out |= ~(size < 125.0f) | ((I)y << 1 == 0);
    return floats(raised(z, 0x1.8p+47, 0x1.c6af84b912394p-5, 0x1.ebfce50fac4f3p-3, 0x1.62e42ff0c52d6p-1));
}

/// The sine of x plus so many quarters of a turn.
SPY_LANE_INLINE F wave(F y, int quarters, I& out)
{
    const I size = (I)y & 0x7fffffff;
    out |= size >= 0x42f00000; // 120
    D x = doubles(y);
    const I n = (__builtin_convertvector(x * 0x1.45f306dc9c883p+23, I) + 0x800000) >> 24;
    x = x - __builtin_convertvector(n, D) * 0x1.921fb54442d18p+0;
    const I turn = n + quarters;
    const D x2 = x * x, x3 = x * x2, x4 = x2 * x2;
    const D s1 = 0x1.1107605230bc4p-7 + x2 * -0x1.994eb3774cf24p-13, x7 = x3 * x2;
    const D s = (x + x3 * -0x1.555545995a603p-3) + x7 * s1;
    const D c2 = -0x1.6c087e89a359dp-10 + x2 * 0x1.99343027bf8c3p-16, c1 = 1.0 + x2 * -0x1.ffffffd0c621cp-2,
            x6 = x4 * x2;
    const D c = (c1 + x4 * 0x1.55553e1068f19p-5) + x6 * c2;
    const F r = floats(wide(turn & 1) != 0 ? c : s);
    return (F)((I)r ^ ((turn & 2) << 30));
}
SPY_LANE_INLINE F sin(F x, I& out)
{
    const F y = wave(x, 0, out);
    return ((I)x & 0x7fffffff) < 0x39800000 ? x : y; // 2^-12
}
SPY_LANE_INLINE F cos(F x, I& out)
{
    const F y = wave(x, 1, out);
    return ((I)x & 0x7fffffff) < 0x39800000 ? F{} + 1.0f : y;
}

} // namespace spy_lane_math

// Not inline: compilers read them once, and loops keep their registers.
#define SPY_LANE_MATH(name, parameters, load, ...)                                                                     \
    static __attribute__((noinline)) _spy_lanes<float> _spy_lanes_of_##name parameters                                 \
    {                                                                                                                  \
        using namespace spy_lane_math;                                                                                 \
        _spy_lanes<float> r;                                                                                           \
        _spy_lanes<int32_t> _spy_bits;                                                                                 \
        for (int k = 0; k < SPY_LANES; k += width) {                                                                   \
            I out = {};                                                                                                \
            load;                                                                                                      \
            __builtin_memcpy(reinterpret_cast<float*>(r.v) + k, &y, sizeof y);                                         \
            __builtin_memcpy(reinterpret_cast<int*>(_spy_bits.v) + k, &out, sizeof out);                               \
        }                                                                                                              \
        const _spy_mask _spy_out = m & (_spy_bits != 0);                                                               \
        if (_spy_any(_spy_out))                                                                                        \
            _spy_for_each_alone(_spy_out, [&](int i) { r.put(i, F32_##name(__VA_ARGS__)); });                          \
        return r;                                                                                                      \
    }
#define SPY_LANE_LOAD(to, from)                                                                                        \
    F to;                                                                                                              \
    __builtin_memcpy(&to, reinterpret_cast<const float*>(from.v) + k, sizeof to)
#define SPY_LANE_MATH_1(name)                                                                                          \
    SPY_LANE_MATH(name, (const _spy_mask& m, const _spy_lanes<float>& a), SPY_LANE_LOAD(x, a);                         \
                  const F y = spy_lane_math::name(x, out), a.get(i))
#define SPY_LANE_MATH_2(name)                                                                                          \
    SPY_LANE_MATH(name, (const _spy_mask& m, const _spy_lanes<float>& a, const _spy_lanes<float>& b),                  \
                  SPY_LANE_LOAD(x, a);                                                                                 \
                  SPY_LANE_LOAD(x2, b); const F y = spy_lane_math::name(x, x2, out), a.get(i), b.get(i))
#else
#define SPY_LANE_MATH_1(name)                                                                                          \
    SPY_LANE_INLINE _spy_lanes<float> _spy_lanes_of_##name(const _spy_mask& m, const _spy_lanes<float>& a)             \
    {                                                                                                                  \
        return _spy_each_alone(m, [&](int i) { return F32_##name(a.get(i)); });                                        \
    }
#define SPY_LANE_MATH_2(name)                                                                                          \
    SPY_LANE_INLINE _spy_lanes<float> _spy_lanes_of_##name(const _spy_mask& m, const _spy_lanes<float>& a,             \
                                                           const _spy_lanes<float>& b)                                 \
    {                                                                                                                  \
        return _spy_each_alone(m, [&](int i) { return F32_##name(a.get(i), b.get(i)); });                              \
    }
#endif
SPY_LANE_MATH_1(exp)
SPY_LANE_MATH_1(exp2)
SPY_LANE_MATH_1(log)
SPY_LANE_MATH_1(log2)
SPY_LANE_MATH_1(sin)
SPY_LANE_MATH_1(cos)
SPY_LANE_MATH_2(pow)
#endif
