// Samples of textures for lanes (lanes_cpp.h): places and weights are computed for all lanes at once, in the steps of
// textures_cpp.h, whose bits these are. Where the device has to say, it is asked for one lane after the other.
#pragma once
#if SPY_HAS_LANES

template <int part, class T, bool = (part >= 0)>
struct _spy_sampled {
    typedef T type;
    static T of(const T& v) { return v; }
};
template <int part, class T>
struct _spy_sampled<part, T, true> {
    typedef float type;
    static float of(const T& v) { return v[part]; }
};
SPY_LANE_INLINE _spy_lanes<float>* _spy_numbers(_spy_lanes<float>& r) { return &r; }
template <int N>
SPY_LANE_INLINE _spy_lanes<float>* _spy_numbers(Vector<_spy_lanes<float>, N>& r)
{
    static_assert(sizeof r == N * sizeof(_spy_lanes<float>));
    return &r[0];
}

/// Numbers of as many lanes as one vector holds.
namespace spy_lane_texels {

typedef _spy_lanes<float>::Part F;
typedef _spy_lanes<int32_t>::Part I;
typedef _spy_lanes<uint32_t>::Part U;
typedef _spy_mask::Part M;
constexpr int per = _spy_lanes<float>::per;
typedef double D __attribute__((vector_size(4 * per)));
typedef float Fs __attribute__((vector_size(2 * per)));
typedef int Is __attribute__((vector_size(2 * per)));

/// How many vectors hold all lanes; not known to compilers, which would write code for each of them.
SPY_LANE_INLINE int vectors()
{
    int count = _spy_lanes<float>::count;
    __asm__("" : "+r"(count));
    return count;
}
SPY_LANE_INLINE D doubles(Fs x)
{
#if SPY_BIT_MASKS
    return __builtin_ia32_cvtps2pd512_mask(x, D{}, -1, 4); // one instruction, of which convertvector makes four
#else
    return __builtin_convertvector(x, D);
#endif
}
SPY_LANE_INLINE D rounded_down(D x)
{
    D r;
    for (int i = 0; i < per / 2; i++)
        r[i] = __builtin_floor(x[i]);
    return r;
}
SPY_LANE_INLINE F rounded_down(F x)
{
    F r;
    for (int i = 0; i < per; i++)
        r[i] = __builtin_floorf(x[i]);
    return r;
}
template <class V, class H>
SPY_LANE_INLINE V joined(H low, H high)
{
#if SPY_BIT_MASKS && __GNUC__ >= 12
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    V r;
    __builtin_memcpy(&r, &low, sizeof low);
    __builtin_memcpy(reinterpret_cast<char*>(&r) + sizeof low, &high, sizeof high);
    return r;
#endif
}
SPY_LANE_INLINE M less(U a, U b)
{
#if SPY_BIT_MASKS
    return M(_spy_lane_mask<uint32_t>::compare<1, 1>(a, b));
#else
    return a < b;
#endif
}
/// w * t; a texel of no weight may be infinite.
SPY_LANE_INLINE F weighted(F w, F t)
{
#if SPY_BIT_MASKS
    return __builtin_ia32_blendmps_512_mask(F{}, w * t, _spy_lane_mask<float>::compare<4, 4>(w, F{}));
#else
    return w != 0 ? w * t : F{};
#endif
}

/// What lanes read along one axis: two indices and the weight of the second; `fits` where these are known here.
struct Axis {
    I first, second;
    F weight;
    M fits;
    /// from: the lanes' numbers.
    SPY_LANE_INLINE Axis(const float* from, int n, uint8_t mode)
    {
        Fs weights[2];
        Is lows[2];
        _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++)
        {
            Fs x;
            __builtin_memcpy(&x, from + half * (per / 2), sizeof x);
            const D u = doubles(x) * double(n) - 0.5, low = rounded_down(u);
            weights[half] = __builtin_convertvector(u - low, Fs);
            lows[half] = __builtin_convertvector(low, Is); // the least integer where it is none
        }
        weight = joined<F>(weights[0], weights[1]);
        const I low = joined<I>(lows[0], lows[1]);
        fits = less(U(low + 65535), U{} + 131071u);
        if (mode == spy_wrap) {
            if (n & (n - 1)) {
                const I turns = __builtin_convertvector(rounded_down(__builtin_convertvector(low, F) * (1.0f / n)), I);
                first = low - turns * n;
                first += first < 0 ? I{} + n : I{};
                first -= first >= n ? I{} + n : I{};
            } else
                first = low & (n - 1);
            second = first + 1 == n ? I{} : first + 1;
        } else if (mode == spy_clamp_to_edge) {
            const I last = I{} + (n - 1), under = low < last ? low : last, over = low + 1 < last ? low + 1 : last;
            first = under > 0 ? under : I{};
            second = over > 0 ? over : I{};
        } else {
            fits &= less(U(low), U{} + (n - 1u));
            first = low;
            second = low + 1;
        }
    }
};

/// Numbers of 32 bits that lanes read at places between 0 and `count`. Where these are near to each other, one vector
/// from `begin` on has all of them.
struct Window {
    int32_t begin;
    SPY_LANE_INLINE Window(I at, M taking, int32_t count)
    {
        int first = 0, last = per - 1;
#if SPY_BIT_MASKS
        first = __builtin_ctz(taking | 0x8000u);
        last = 31 - __builtin_clz(taking | 1u);
#endif
        alignas(64) int32_t all[per];
        __builtin_memcpy(all, &at, sizeof all);
        const int32_t least = all[first] < all[last] ? all[first] : all[last], most = count - per;
        begin = least > most ? most : least;
        begin = begin < 0 ? 0 : begin;
    }
    SPY_LANE_INLINE F numbers(const uint8_t* from) const
    {
        F r;
        __builtin_memcpy(&r, from + int64_t(begin) * 4, sizeof r);
        return r;
    }
};
SPY_LANE_INLINE U larger(U a, U b) { return a > b ? a : b; }
SPY_LANE_INLINE F gathered(const uint8_t* from, I at, M taking)
{
#if SPY_BIT_MASKS
    return __builtin_ia32_gathersiv16sf(F{}, from, at, taking, 4);
#else
    F r;
    at &= taking;
    for (int i = 0; i < per; i++)
        __builtin_memcpy(reinterpret_cast<float*>(&r) + i, from + int64_t(at[i]) * 4, 4);
    return r;
#endif
}
/// Where it is in a texture: numbers of 32 bits of a texel, the first and the count of those that are asked for.
struct Texels {
    int32_t words, first, count;
    bool is_bytes;
    SPY_LANE_INLINE int32_t word(int part) const { return is_bytes ? 0 : first + part; }
    SPY_LANE_INLINE F number(F word, int part) const
    {
        if (!is_bytes)
            return word;
        return __builtin_convertvector(((I)word >> 8 * (first + part)) & 255, F) / 255.0f;
    }
};

/// Lanes that found the weighted mean of four texels.
static __attribute__((noinline)) _spy_mask bilinear(const SpyTexture& t, const SpySampler& s,
                                                    const _spy_lanes<float>& x, const _spy_lanes<float>& y, _spy_mask m,
                                                    Texels texels, _spy_lanes<float>* r)
{
    const int32_t width = int32_t(t.width), height = int32_t(t.height), words = texels.words;
    const int32_t all = width * height * words;
    const uint32_t near = uint32_t(per - words + 1);
    for (int k = 0, count = vectors(); k < count; k++) {
        const Axis u(reinterpret_cast<const float*>(x.v) + k * per, width, s.address[0]);
        const Axis v(reinterpret_cast<const float*>(y.v) + k * per, height, s.address[1]);
        const M done = M(m.v[k] & u.fits & v.fits);
        m.v[k] = done;
        const I above = v.first * (width * words), below = v.second * (width * words);
        const I p00 = above + u.first * words, p10 = above + u.second * words;
        const I p01 = below + u.first * words, p11 = below + u.second * words;
        const Window upper(p00, done, all), lower(p01, done, all);
        const I d00 = p00 - upper.begin, d10 = p10 - upper.begin, d01 = p01 - lower.begin, d11 = p11 - lower.begin;
        const M far = M(done & ~less(larger(larger(U(d00), U(d10)), larger(U(d01), U(d11))), U{} + near));
        _spy_mask any(false);
        any.v[0] = far;
        const F over = 1.0f - v.weight, before = 1.0f - u.weight;
        const F w00 = before * over, w10 = u.weight * over, w01 = before * v.weight, w11 = u.weight * v.weight;
        const bool is_near = all >= per && !_spy_any(any);
        for (int part = 0; part < texels.count; part++) {
            F t00, t10, t01, t11;
            const int32_t word = texels.word(part);
            if (is_near) {
                const F one = upper.numbers(t.first), two = lower.numbers(t.first);
                t00 = __builtin_shuffle(one, d00 + word);
                t10 = __builtin_shuffle(one, d10 + word);
                t01 = __builtin_shuffle(two, d01 + word);
                t11 = __builtin_shuffle(two, d11 + word);
            } else {
                t00 = gathered(t.first, p00 + word, done);
                t10 = gathered(t.first, p10 + word, done);
                t01 = gathered(t.first, p01 + word, done);
                t11 = gathered(t.first, p11 + word, done);
            }
            F sum = weighted(w00, texels.number(t00, part)) + weighted(w10, texels.number(t10, part));
            sum = sum + weighted(w01, texels.number(t01, part));
            r[part].v[k] = sum + weighted(w11, texels.number(t11, part));
        }
    }
    return m;
}
/// Lanes that found a texel.
static __attribute__((noinline)) _spy_mask loaded(const SpyTexture& t, const _spy_lanes<int32_t>& x,
                                                  const _spy_lanes<int32_t>& y, const _spy_lanes<int32_t>& mip,
                                                  _spy_mask m, Texels texels, _spy_lanes<float>* r)
{
    const int32_t width = int32_t(t.width), all = width * int32_t(t.height) * texels.words;
    const uint32_t near = uint32_t(per - texels.words + 1);
    for (int k = 0, count = vectors(); k < count; k++) {
        const M done = M(m.v[k] & less(U(x.v[k]), U{} + t.width) & less(U(y.v[k]), U{} + t.height) &
                         less(U(mip.v[k]), U{} + 1u));
        m.v[k] = done;
        const I place = (y.v[k] * width + x.v[k]) * texels.words;
        const Window window(place, done, all);
        const I at = place - window.begin;
        _spy_mask any(false);
        any.v[0] = M(done & ~less(U(at), U{} + near));
        const bool is_near = all >= per && !_spy_any(any);
        for (int part = 0; part < texels.count; part++) {
            const int32_t word = texels.word(part);
            const F number = is_near ? __builtin_shuffle(window.numbers(t.first), at + word)
                                     : gathered(t.first, place + word, done);
            r[part].v[k] = texels.number(number, part);
        }
    }
    return m;
}
} // namespace spy_lane_texels

/// Whether 32 bits count the bytes of a texture.
SPY_LANE_INLINE bool _spy_is_small(const SpyTexture& t) { return uint64_t(t.width) * t.height < (1u << 27); }

template <int part, class T>
SPY_LANE_INLINE auto _spy_lanes_samplelevel(const _spy_mask& m, const _spy_texture<T, 2, false, false>& t,
                                            const Vector<_spy_lanes<float>, 2>& at, SamplerState s, float level)
{
    typedef _spy_texture<T, 2, false, false> Texture;
    typedef _spy_sampled<part, T> Sampled;
    constexpr int count = part >= 0 ? 1 : _spy_texel_type<T>::count, first = part >= 0 ? part : 0;
    typename _spy_many<typename Sampled::type>::type r;
    const SpyTexture& texture = *t.texture;
    const SpySampler& sampler = *reinterpret_cast<const SpySampler*>(s.state);
    const _spy_lanes<float> x = at[0], y = at[1]; // so that those of a loop stay in registers
    _spy_mask left = m;
    const bool is_bytes = texture.plain == spy_plain_bytes;
    if (sampler.is_bilinear && (level <= 0 || texture.mip_count == 1) && _spy_is_small(texture) &&
        (is_bytes || texture.plain == Texture::Floats::kind)) {
        const spy_lane_texels::Texels texels{is_bytes ? 1 : int32_t(Texture::Floats::kind), first, count, is_bytes};
        left = m & !spy_lane_texels::bilinear(texture, sampler, x, y, m, texels, _spy_numbers(r));
    }
    if (_spy_any(left))
        _spy_for_each_alone(left, [&](int i) {
            const Vector<float, 2> place{x.get(i), y.get(i)};
            _spy_put(r, i, Sampled::of(t.SampleLevel(s, place, level)));
        });
    return r;
}
template <int part, class T>
SPY_LANE_INLINE auto _spy_lanes_sample(const _spy_mask& m, const _spy_texture<T, 2, false, false>& t,
                                       const Vector<_spy_lanes<float>, 2>& at, SamplerState s)
{
    return _spy_lanes_samplelevel<part>(m, t, at, s, 0.0f);
}
template <int part, class T>
SPY_LANE_INLINE typename _spy_many<typename _spy_sampled<part, T>::type>::type
_spy_lanes_load(const _spy_mask& m, const _spy_texture<T, 2, false, false>& t, const Vector<_spy_lanes<int32_t>, 3>& at)
{
    typedef typename _spy_texture<T, 2, false, false>::Floats Plain;
    typedef _spy_sampled<part, T> Sampled;
    constexpr int count = part >= 0 ? 1 : _spy_texel_type<T>::count, first = part >= 0 ? part : 0;
    typename _spy_many<typename Sampled::type>::type r;
    const SpyTexture& texture = *t.texture;
    const _spy_lanes<int32_t> x = at[0], y = at[1], mip = at[2];
    _spy_mask left = m;
    if (texture.plain == Plain::kind && _spy_is_small(texture)) {
        const spy_lane_texels::Texels texels{int32_t(Plain::kind), first, count, false};
        left = m & !spy_lane_texels::loaded(texture, x, y, mip, m, texels, _spy_numbers(r));
    }
    if (_spy_any(left))
        _spy_for_each_alone(left, [&](int i) {
            _spy_put(r, i, Sampled::of(t.Load(Vector<int32_t, 3>{x.get(i), y.get(i), mip.get(i)})));
        });
    return r;
}
template <int part, class T, class U>
SPY_LANE_INLINE auto _spy_lanes_load(const _spy_mask& m, const _spy_texture<T, 2, false, false>& t,
                                     const Vector<_spy_lanes<U>, 2>& at)
{
    Vector<_spy_lanes<int32_t>, 3> place;
    place[0] = _spy_lanes<int32_t>(at[0]);
    place[1] = _spy_lanes<int32_t>(at[1]);
    place[2] = _spy_lanes<int32_t>(0);
    return _spy_lanes_load<part, T>(m, t, place);
}
#endif
