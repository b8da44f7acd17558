// Samples of textures for lanes (lanes_cpp.h): places and weights are computed for all lanes at once, in the steps of
// textures_cpp.h, whose bits these are. Where the device has to say, it is asked for one lane after the other.
#pragma once
#if SPY_HAS_LANES

/// A number of a texel.
template <class Plain>
SPY_LANE_INLINE float _spy_texel_part(const uint8_t* texel, int part)
{
    if constexpr (Plain::kind == spy_plain_bytes)
        return float(texel[part]) / 255.0f;
    float v;
    __builtin_memcpy(&v, texel + 4 * part, 4);
    return v;
}
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
SPY_LANE_INLINE void _spy_put_parts(_spy_lanes<float>& r, int, const _spy_lanes<float>& x) { r = x; }
template <int N>
SPY_LANE_INLINE void _spy_put_parts(Vector<_spy_lanes<float>, N>& r, int part, const _spy_lanes<float>& x)
{
    r[part] = x;
}
/// What lanes read along one axis: two indices and the weight of the second; `fits` where these are known here.
struct _spy_axis {
    typedef double D __attribute__((vector_size(SPY_VECTOR_BYTES)));
    typedef float F __attribute__((vector_size(SPY_VECTOR_BYTES / 2)));
    typedef int I __attribute__((vector_size(SPY_VECTOR_BYTES / 2)));
    _spy_lanes<int32_t> first, second, fits;
    _spy_lanes<float> weight;

    static SPY_LANE_INLINE I near(I i, int n, uint8_t mode)
    {
        const I edge = I{} + (mode == spy_clamp_to_edge ? 0 : -1),
                last = I{} + (mode == spy_clamp_to_edge ? n - 1 : -1);
        const I low = mode == spy_wrap ? i + n : edge, high = mode == spy_wrap ? i - n : last;
        return i < 0 ? low : i >= n ? high : i;
    }
    SPY_LANE_INLINE _spy_axis(const _spy_lanes<float>& at, int n, uint8_t mode)
    {
        const float turn = mode == spy_wrap ? 1.0f / n : 0.0f;
        for (int k = 0; k < SPY_LANES; k += SPY_VECTOR_BYTES / 8) {
            F x;
            __builtin_memcpy(&x, reinterpret_cast<const char*>(at.v) + 4 * k, sizeof x);
            D u = __builtin_convertvector(x, D) * double(n) - 0.5;
            const auto is_near = (u > -65536.0) & (u < 65536.0);
            u = is_near ? u : D{};
            I low = __builtin_convertvector(u, I);
            low += __builtin_convertvector(__builtin_convertvector(low, D) > u, I); // rounds down
            const F part = __builtin_convertvector(u - __builtin_convertvector(low, D), F);
            low -= n * __builtin_convertvector(__builtin_convertvector(low, F) * turn, I); // a texture away at the most
            const I one = near(low, n, mode), two = near(low + 1, n, mode);
            const I in = __builtin_convertvector(is_near, I) & (one >= 0) & (one < n) & (two >= 0) & (two < n);
            const I from = one & in, to = two & in;
            put(first, k, from), put(second, k, to), put(fits, k, in), put(weight, k, part);
        }
    }
    template <class L, class V>
    static SPY_LANE_INLINE void put(L& lanes, int k, V v)
    {
        __builtin_memcpy(reinterpret_cast<char*>(lanes.v) + 4 * k, &v, sizeof v);
    }
};

/// Lanes that found the weighted mean of four texels. first, count: of the numbers of a texel.
template <class Plain, class R>
static __attribute__((noinline)) _spy_mask _spy_bilinear_lanes(const SpyTexture& t, const SpySampler& s,
                                                               const _spy_lanes<float>& x, const _spy_lanes<float>& y,
                                                               const _spy_mask& m, int first, int count, R& r)
{
    typedef _spy_lanes<int32_t> I;
    typedef _spy_lanes<float> F;
    constexpr int32_t bytes = Plain::bytes;
    const _spy_axis u(x, int(t.width), s.address[0]), v(y, int(t.height), s.address[1]);
    const _spy_mask done = m & ((u.fits & v.fits) != 0);
    const int32_t row = int32_t(t.width) * bytes;
    // of lanes that take no part, the first texel
    const I nothing(0), above = v.first * row, below = v.second * row, left = u.first * bytes, right = u.second * bytes;
    const I p00 = _spy_pick(done, above + left, nothing), p10 = _spy_pick(done, above + right, nothing);
    const I p01 = _spy_pick(done, below + left, nothing), p11 = _spy_pick(done, below + right, nothing);
    const F over = 1.0f - v.weight, before = 1.0f - u.weight, zero(0.0f);
    const F w00 = before * over, w10 = u.weight * over, w01 = before * v.weight, w11 = u.weight * v.weight;
    for (int part = first; part < first + count; part++) {
        F t00, t10, t01, t11;
        const uint8_t* from = t.first;
        for (int i = 0; i < SPY_LANES; i++) {
            t00.put(i, _spy_texel_part<Plain>(from + p00.get(i), part));
            t10.put(i, _spy_texel_part<Plain>(from + p10.get(i), part));
            t01.put(i, _spy_texel_part<Plain>(from + p01.get(i), part));
            t11.put(i, _spy_texel_part<Plain>(from + p11.get(i), part));
        }
        F sum = _spy_pick(w00 != 0, w00 * t00, zero) + _spy_pick(w10 != 0, w10 * t10, zero);
        sum = sum + _spy_pick(w01 != 0, w01 * t01, zero);
        sum = sum + _spy_pick(w11 != 0, w11 * t11, zero);
        _spy_put_parts(r, part - first, sum);
    }
    return done;
}
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
    _spy_mask left = m;
    if (sampler.is_bilinear && (level <= 0 || texture.mip_count == 1) && _spy_is_small(texture)) {
        if (texture.plain == Texture::Floats::kind)
            left = m &
                !_spy_bilinear_lanes<typename Texture::Floats>(texture, sampler, at[0], at[1], m, first, count, r);
        else if (texture.plain == spy_plain_bytes)
            left = m & !_spy_bilinear_lanes<_spy_plain_bytes>(texture, sampler, at[0], at[1], m, first, count, r);
    }
    if (_spy_any(left))
        _spy_for_each_alone(left, [&](int i) {
            const Vector<float, 2> place{at[0].get(i), at[1].get(i)};
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
static __attribute__((noinline)) typename _spy_many<typename _spy_sampled<part, T>::type>::type
_spy_lanes_load(const _spy_mask& m, const _spy_texture<T, 2, false, false>& t, const Vector<_spy_lanes<int32_t>, 3>& at)
{
    typedef typename _spy_texture<T, 2, false, false>::Floats Plain;
    typedef _spy_sampled<part, T> Sampled;
    constexpr int count = part >= 0 ? 1 : _spy_texel_type<T>::count, first = part >= 0 ? part : 0;
    typename _spy_many<typename Sampled::type>::type r;
    const SpyTexture& texture = *t.texture;
    const int32_t *x = reinterpret_cast<const int32_t*>(at[0].v), *y = reinterpret_cast<const int32_t*>(at[1].v);
    const int32_t* mip = reinterpret_cast<const int32_t*>(at[2].v);
    _spy_mask left = m;
    if (texture.plain == Plain::kind && _spy_is_small(texture)) {
        alignas(64) int32_t place[SPY_LANES], fits[SPY_LANES];
        for (int i = 0; i < SPY_LANES; i++) {
            const bool is_in = (uint32_t(x[i]) < texture.width) & (uint32_t(y[i]) < texture.height) & (mip[i] == 0) &
                (m.get(i) != 0);
            fits[i] = -int32_t(is_in);
            place[i] = is_in ? (y[i] * int32_t(texture.width) + x[i]) * int32_t(Plain::bytes) : 0;
        }
        for (int k = first; k < first + count; k++) {
            _spy_lanes<float> given;
            for (int i = 0; i < SPY_LANES; i++)
                given.put(i, _spy_texel_part<Plain>(texture.first + place[i], k));
            _spy_put_parts(r, k - first, given);
        }
        _spy_lanes<int32_t> found;
        __builtin_memcpy(found.v, fits, sizeof fits);
        left = m & (found == 0);
    }
    if (_spy_any(left))
        _spy_for_each_alone(
            left, [&](int i) { _spy_put(r, i, Sampled::of(t.Load(Vector<int32_t, 3>{x[i], y[i], mip[i]}))); });
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
