// What Slang's C++ and CUDA preludes have for integers of 32 and 64 bits only, or for none.
#pragma once

#if defined(__CUDACC__)
#define _SPY_INLINE __host__ __device__ __forceinline__
#else
#define _SPY_INLINE inline
#endif

_SPY_INLINE int I8_sign(signed char v) { return (v > 0) - (v < 0); }
_SPY_INLINE int I16_sign(short v) { return (v > 0) - (v < 0); }
_SPY_INLINE int I32_sign(int v) { return (v > 0) - (v < 0); }
_SPY_INLINE int I64_sign(long long v) { return (v > 0) - (v < 0); }
_SPY_INLINE signed char I8_abs(signed char v) { return static_cast<signed char>(v < 0 ? -v : v); }
_SPY_INLINE signed char I8_min(signed char a, signed char b) { return a < b ? a : b; }
_SPY_INLINE signed char I8_max(signed char a, signed char b) { return a < b ? b : a; }
_SPY_INLINE unsigned char U8_abs(unsigned char v) { return v; }
_SPY_INLINE unsigned char U8_min(unsigned char a, unsigned char b) { return a < b ? a : b; }
_SPY_INLINE unsigned char U8_max(unsigned char a, unsigned char b) { return a < b ? b : a; }
_SPY_INLINE short I16_abs(short v) { return static_cast<short>(v < 0 ? -v : v); }
_SPY_INLINE short I16_min(short a, short b) { return a < b ? a : b; }
_SPY_INLINE short I16_max(short a, short b) { return a < b ? b : a; }
_SPY_INLINE unsigned short U16_abs(unsigned short v) { return v; }
_SPY_INLINE unsigned short U16_min(unsigned short a, unsigned short b) { return a < b ? a : b; }
_SPY_INLINE unsigned short U16_max(unsigned short a, unsigned short b) { return a < b ? b : a; }
// mad(): products and sums of unsigned numbers, which wrap around.
_SPY_INLINE signed char I8_fma(signed char a, signed char b, signed char c)
{
    return static_cast<signed char>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
_SPY_INLINE unsigned char U8_fma(unsigned char a, unsigned char b, unsigned char c)
{
    return static_cast<unsigned char>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
_SPY_INLINE short I16_fma(short a, short b, short c)
{
    return static_cast<short>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
_SPY_INLINE unsigned short U16_fma(unsigned short a, unsigned short b, unsigned short c)
{
    return static_cast<unsigned short>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
_SPY_INLINE int I32_fma(int a, int b, int c)
{
    return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b) + static_cast<unsigned>(c));
}
_SPY_INLINE unsigned U32_fma(unsigned a, unsigned b, unsigned c) { return a * b + c; }
_SPY_INLINE long long I64_fma(long long a, long long b, long long c)
{
    return static_cast<long long>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b) +
                                  static_cast<unsigned long long>(c));
}
_SPY_INLINE unsigned long long U64_fma(unsigned long long a, unsigned long long b, unsigned long long c)
{
    return a * b + c;
}
// Bits of narrow integers. Of a negative number, the highest bit is the highest 0.
_SPY_INLINE unsigned U16_firstbitlow(unsigned short v)
{
    for (unsigned at = 0; at < 16; at++)
        if (v >> at & 1)
            return at;
    return ~0u;
}
_SPY_INLINE unsigned U16_firstbithigh(unsigned short v)
{
    unsigned at = 16;
    while (at-- && !(v >> at & 1)) { }
    return at;
}
_SPY_INLINE unsigned short U16_reversebits(unsigned short v)
{
    unsigned turned = 0;
    for (unsigned at = 0; at < 16; at++)
        turned |= (v >> at & 1u) << (15 - at);
    return static_cast<unsigned short>(turned);
}
_SPY_INLINE unsigned U8_firstbitlow(unsigned char v) { return U16_firstbitlow(v); }
_SPY_INLINE unsigned U8_firstbithigh(unsigned char v) { return U16_firstbithigh(v); }
_SPY_INLINE unsigned char U8_reversebits(unsigned char v) { return static_cast<unsigned char>(U16_reversebits(v) >> 8); }
_SPY_INLINE unsigned I8_firstbitlow(signed char v) { return U8_firstbitlow(static_cast<unsigned char>(v)); }
_SPY_INLINE unsigned I8_firstbithigh(signed char v)
{
    return U8_firstbithigh(static_cast<unsigned char>(v < 0 ? ~v : v));
}
_SPY_INLINE signed char I8_reversebits(signed char v)
{
    return static_cast<signed char>(U8_reversebits(static_cast<unsigned char>(v)));
}
_SPY_INLINE unsigned I16_firstbitlow(short v) { return U16_firstbitlow(static_cast<unsigned short>(v)); }
_SPY_INLINE unsigned I16_firstbithigh(short v) { return U16_firstbithigh(static_cast<unsigned short>(v < 0 ? ~v : v)); }
_SPY_INLINE short I16_reversebits(short v)
{
    return static_cast<short>(U16_reversebits(static_cast<unsigned short>(v)));
}
