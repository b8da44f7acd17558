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
