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
/// Indices that lie beside [0, n) by less than n; what is still outside is no index that counts.
SPY_LANE_INLINE int32_t _spy_address_near(int32_t i, int32_t n, uint8_t mode)
{
    const int32_t edge = mode == spy_clamp_to_edge ? 0 : -1, last = mode == spy_clamp_to_edge ? n - 1 : -1;
    const int32_t low = mode == spy_wrap ? i + n : edge, high = mode == spy_wrap ? i - n : last;
    return i < 0 ? low : i >= n ? high : i;
}

/// Lanes that found the weighted mean of four texels. first, count: of the numbers of a texel.
template <class Plain, class R>
static __attribute__((noinline)) _spy_mask _spy_bilinear_lanes(const SpyTexture& t, const SpySampler& s,
                                                               const _spy_lanes<float>& x, const _spy_lanes<float>& y,
                                                               const _spy_mask& m, int first, int count, R& r)
{
    typedef int32_t Indices[SPY_LANES];
    typedef float Floats[SPY_LANES];
    alignas(64) Indices above, below, fits;
    alignas(64) Indices step;
    alignas(64) Floats w00, w10, w01, w11;
    const int32_t w = int32_t(t.width), h = int32_t(t.height), row = w * int32_t(Plain::bytes);
    const uint8_t mode_x = s.address[0], mode_y = s.address[1];
    const float *xs = reinterpret_cast<const float*>(x.v), *ys = reinterpret_cast<const float*>(y.v);
    for (int i = 0; i < SPY_LANES; i++) {
        const double u0 = double(xs[i]) * w - 0.5, v0 = double(ys[i]) * h - 0.5;
        const bool is_near = (u0 > -65536) & (v0 > -65536) & (u0 < 65536) & (v0 < 65536);
        const double u = is_near ? u0 : 0.0, v = is_near ? v0 : 0.0;
        const double floor_u = __builtin_floor(u), floor_v = __builtin_floor(v);
        const int32_t a = int32_t(floor_u), b = int32_t(floor_v);
        const float right = float(u - floor_u), under = float(v - floor_v), left = 1 - right, over = 1 - under;
        const int32_t x0 = _spy_address_near(a, w, mode_x), x1 = _spy_address_near(a + 1, w, mode_x);
        const int32_t y0 = _spy_address_near(b, h, mode_y), y1 = _spy_address_near(b + 1, h, mode_y);
        const bool is_in = is_near & (uint32_t(x0) < uint32_t(w)) & (uint32_t(x1) < uint32_t(w)) &
            (uint32_t(y0) < uint32_t(h)) & (uint32_t(y1) < uint32_t(h));
        fits[i] = -int32_t(is_in);
        above[i] = is_in ? y0 * row + x0 * int32_t(Plain::bytes) : 0;
        below[i] = is_in ? y1 * row + x0 * int32_t(Plain::bytes) : 0;
        step[i] = is_in ? (x1 - x0) * int32_t(Plain::bytes) : 0;
        w00[i] = left * over, w10[i] = right * over, w01[i] = left * under, w11[i] = right * under;
    }
    _spy_lanes<int32_t> found;
    __builtin_memcpy(found.v, fits, sizeof fits);
    const _spy_mask done = m & (found != 0);
    for (int i = 0; i < SPY_LANES; i++) // of lanes that take no part, the first texel
        if (!m.get(i))
            above[i] = below[i] = step[i] = 0;
    for (int part = first; part < first + count; part++) {
        alignas(64) Floats t00, t10, t01, t11;
        const uint8_t* from = t.first;
        for (int i = 0; i < SPY_LANES; i++) {
            t00[i] = _spy_texel_part<Plain>(from + above[i], part);
            t10[i] = _spy_texel_part<Plain>(from + above[i] + step[i], part);
            t01[i] = _spy_texel_part<Plain>(from + below[i], part);
            t11[i] = _spy_texel_part<Plain>(from + below[i] + step[i], part);
        }
        alignas(64) Floats sum;
        for (int i = 0; i < SPY_LANES; i++) {
            float all = (w00[i] ? w00[i] * t00[i] : 0.0f) + (w10[i] ? w10[i] * t10[i] : 0.0f);
            all += w01[i] ? w01[i] * t01[i] : 0.0f;
            all += w11[i] ? w11[i] * t11[i] : 0.0f;
            sum[i] = all;
        }
        _spy_lanes<float> given;
        __builtin_memcpy(given.v, sum, sizeof sum);
        _spy_put_parts(r, part - first, given);
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
            left = m & !_spy_bilinear_lanes<typename Texture::Floats>(texture, sampler, at[0], at[1], m, first, count, r);
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
            const bool is_in = (uint32_t(x[i]) < texture.width) & (uint32_t(y[i]) < texture.height) & (mip[i] == 0) & (m.get(i) != 0);
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
        _spy_for_each_alone(left, [&](int i) {
            _spy_put(r, i, Sampled::of(t.Load(Vector<int32_t, 3>{x[i], y[i], mip[i]})));
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
