// Textures and samplers of kernels on the CPU, in place of those of Slang's prelude, whose names they take. Comes after
// Slang's own prelude, in front of kernels that use them. The work is done by the device (src/native/cpu/sampling.cpp).
#pragma once

// --- texels as scalars and vectors

template <class T> struct _spy_texel_type {
    static constexpr int count = 1;
    typedef T element;
    static T& at(T& v, int) { return v; }
};
template <class T, int N> struct _spy_texel_type<Vector<T, N>> {
    static constexpr int count = N;
    typedef T element;
    static T& at(Vector<T, N>& v, int i) { return *_slang_vector_get_element_ptr(&v, i); }
};
template <class T> constexpr bool _spy_is_integer = std::is_integral<typename _spy_texel_type<T>::element>::value;

template <class T>
T _spy_from_texel(const SpyTexel& texel)
{
    typedef _spy_texel_type<T> Type;
    T value;
    for (int i = 0; i < Type::count; i++) {
        if constexpr (_spy_is_integer<T>)
            Type::at(value, i) = typename Type::element(texel.i[i]);
        else
            Type::at(value, i) = typename Type::element(texel.f[i]);
    }
    return value;
}

template <class T>
SpyTexel _spy_to_texel(T value)
{
    typedef _spy_texel_type<T> Type;
    SpyTexel texel = {};
    for (int i = 0; i < Type::count; i++) {
        if constexpr (_spy_is_integer<T>)
            texel.i[i] = int64_t(Type::at(value, i));
        else
            texel.f[i] = float(Type::at(value, i));
    }
    return texel;
}

/// Component i of a scalar or vector; 0 past its end.
template <class V>
typename _spy_texel_type<V>::element _spy_part(V v, int i)
{
    return i < _spy_texel_type<V>::count ? _spy_texel_type<V>::at(v, i) : 0;
}

/// A texel that was read to change some of its components: written back when it has changed.
template <class T, class Texture>
struct _spy_held : T {
    Texture texture;
    int32_t place[4];
    T before;
    _spy_held(T v, const Texture& t, const int32_t* p) : T(v), texture(t), before(v) { SPY_COPY(place, p, sizeof(place)); }
    ~_spy_held()
    {
        T now = *this;
        if (memcmp(&now, &before, sizeof(T)))
            texture.store_at(place, now);
    }
    template <class U> _spy_held& operator=(const U& v) { static_cast<T&>(*this) = v; return *this; }
};

/// A texel of a writable texture.
template <class T, class Texture>
struct _spy_texel_ref {
    Texture texture;
    int32_t place[4];
    operator T() const { return texture.load_at(place, 0); }
    const _spy_texel_ref& operator=(const T& v) const
    {
        texture.store_at(place, v);
        return *this;
    }
    const _spy_texel_ref& operator=(const _spy_texel_ref& other) const { return *this = T(other); }
    _spy_held<T, Texture> operator*() const { return {T(*this), texture, place}; }
    /// Its memory, for atomics. Outside of the texture they change a word that nobody reads.
    T* pointer() const
    {
        static thread_local T nowhere;
        void* found = _spy_host->find_texel(texture.texture, place, place[3]);
        return found ? static_cast<T*>(found) : &nowhere;
    }
    operator T*() const { return pointer(); }
};
#define SPY_TEXEL_ATOMIC(NAME) \
    template <class T, class X, class U> T NAME(const _spy_texel_ref<T, X>& to, U v) { return NAME(to.pointer(), T(v)); }
SPY_TEXEL_ATOMIC(_spy_fetch_add)
SPY_TEXEL_ATOMIC(_spy_fetch_min)
SPY_TEXEL_ATOMIC(_spy_fetch_max)
SPY_TEXEL_ATOMIC(_spy_fetch_and)
SPY_TEXEL_ATOMIC(_spy_fetch_or)
SPY_TEXEL_ATOMIC(_spy_fetch_xor)
SPY_TEXEL_ATOMIC(_spy_fetch_exchange)
template <class T, class X, class U> T _spy_fetch_compare(const _spy_texel_ref<T, X>& to, U expected, U v)
{
    return _spy_fetch_compare(to.pointer(), T(expected), T(v));
}

// --- what kernels read themselves

typedef float _spy_four __attribute__((vector_size(16)));

/// Texels of `channels` floats.
template <int channels> struct _spy_plain_floats {
    static constexpr uint32_t kind = channels, bytes = 4 * channels;
    static _spy_four read(const uint8_t* from)
    {
        _spy_four v = {0, 0, 0, 1};
        SPY_COPY(&v, from, bytes);
        return v;
    }
};
struct _spy_plain_bytes {
    static constexpr uint32_t kind = spy_plain_bytes, bytes = 4;
    static _spy_four read(const uint8_t* from)
    {
        typedef uint8_t Four __attribute__((vector_size(4)));
        Four v;
        SPY_COPY(&v, from, 4);
        return __builtin_convertvector(v, _spy_four) / 255.0f;
    }
};

/// The index within [0, n) of a place beside it; negative where the device has to say.
inline int32_t _spy_address(int32_t i, int32_t n, uint8_t mode)
{
    if (uint32_t(i) < uint32_t(n))
        return i;
    if (mode == spy_clamp_to_edge)
        return i < 0 ? 0 : n - 1;
    if (mode != spy_wrap)
        return -1;
    const int32_t near = i < 0 ? i + n : i - n;
    if (uint32_t(near) < uint32_t(n))
        return near;
    const int32_t rest = i % n;
    return rest < 0 ? rest + n : rest;
}
/// The weighted mean of four texels; false where the device has to find it.
template <class Plain>
inline bool _spy_bilinear(const SpyTexture& t, const SpySampler& s, float x, float y, int32_t dx, int32_t dy, _spy_four& out)
{
    if (t.plain != Plain::kind)
        return false;
    const double u = double(x) * int32_t(t.width) - 0.5, v = double(y) * int32_t(t.height) - 0.5;
    if (!(u > -65536 && v > -65536 && u < 65536 && v < 65536))
        return false;
    const double floor_u = __builtin_floor(u), floor_v = __builtin_floor(v);
    const uint32_t i = uint32_t(int32_t(floor_u)) + uint32_t(dx), j = uint32_t(int32_t(floor_v)) + uint32_t(dy);
    const float right = float(u - floor_u), below = float(v - floor_v), left = 1 - right, above = 1 - below;
    const uint64_t row = uint64_t(t.width) * Plain::bytes;
    const uint8_t *at = t.first + j * row + i * uint64_t(Plain::bytes), *under = at + row;
    uint64_t step = Plain::bytes;
    if (i >= t.width - 1 || j >= t.height - 1) {
        const int32_t w = int32_t(t.width), h = int32_t(t.height);
        const int32_t x0 = _spy_address(int32_t(i), w, s.address[0]), x1 = _spy_address(int32_t(i + 1), w, s.address[0]);
        const int32_t y0 = _spy_address(int32_t(j), h, s.address[1]), y1 = _spy_address(int32_t(j + 1), h, s.address[1]);
        if ((x0 | x1 | y0 | y1) < 0)
            return false;
        at = t.first + uint32_t(y0) * row + uint32_t(x0) * uint64_t(Plain::bytes);
        under = t.first + uint32_t(y1) * row + uint32_t(x0) * uint64_t(Plain::bytes);
        step = uint64_t(int64_t(x1 - x0) * int64_t(Plain::bytes));
    }
    // a texel of no weight may be infinite
    const auto part = [](float w, _spy_four texel) { return w ? w * texel : _spy_four{}; };
    out = part(left * above, Plain::read(at)) + part(right * above, Plain::read(at + step));
    out += part(left * below, Plain::read(under));
    out += part(right * below, Plain::read(under + step));
    return true;
}

template <class T>
T _spy_from_four(_spy_four v)
{
    T value;
    for (int i = 0; i < _spy_texel_type<T>::count; i++)
        _spy_texel_type<T>::at(value, i) = typename _spy_texel_type<T>::element(v[i]);
    return value;
}

// --- textures of `axes` dimensions; cubes are sampled by 3 coordinates

template <class T, int axes, bool is_cube, bool is_array>
struct _spy_texture_base {
    SpyTexture* texture;
    static constexpr int coordinates = is_cube ? 3 : axes;
    /// Its texels may be such as kernels read themselves.
    static constexpr bool is_plane = axes == 2 && !is_cube && !is_array && !_spy_is_integer<T>;
    typedef _spy_plain_floats<_spy_texel_type<T>::count> Floats;

    T load_at(const int32_t* place, int32_t mip) const
    {
        if constexpr (is_plane) {
            const SpyTexture& t = *texture;
            const uint32_t x = uint32_t(place[0]), y = uint32_t(place[1]);
            if (t.plain == Floats::kind && mip == 0 && x < t.width && y < t.height)
                return _spy_from_four<T>(Floats::read(t.first + (y * uint64_t(t.width) + x) * Floats::bytes));
        }
        SpyTexel texel;
        _spy_host->load_texel(texture, place, place[3], mip, _spy_is_integer<T>, &texel);
        return _spy_from_texel<T>(texel);
    }
    void store_at(const int32_t* place, T v) const
    {
        const SpyTexel texel = _spy_to_texel(v);
        _spy_host->store_texel(texture, place, place[3], _spy_is_integer<T>, &texel);
    }
    /// x, y, z and the layer.
    template <class L>
    static void put(const L& location, int32_t* place)
    {
        for (int i = 0; i < 3; i++)
            place[i] = i < axes ? int32_t(_spy_part(location, i)) : 0;
        place[3] = is_array ? int32_t(_spy_part(location, axes)) : 0;
    }
    uint32_t extent(int axis, uint32_t mip) const
    {
        const uint32_t size = texture->size[axis] >> (texture->mip + mip);
        return texture->size[axis] ? (size ? size : 1) : 0;
    }

    // the sizes that the texture has, then its layers
    template <class N> void sizes(uint32_t mip, N** out) const
    {
        for (int i = 0; i < axes; i++)
            **out++ = N(extent(i, mip));
        if constexpr (is_array)
            **out = N(is_cube ? texture->layer_count / 6 : texture->layer_count);
    }
    template <class N, class... M> void GetDimensions(N* first, M*... others) const
    {
        N* out[] = {first, others...};
        sizes(0, out);
    }
    template <class N, class... M> void GetDimensions(uint32_t mip, N* first, M*... others) const
    {
        N* out[] = {first, others...};
        sizes(mip, out);
        *out[sizeof...(others)] = N(texture->mip_count);
    }
};

template <class T, int axes, bool is_cube, bool is_array>
struct _spy_texture : _spy_texture_base<T, axes, is_cube, is_array> {
    typedef _spy_texture_base<T, axes, is_cube, is_array> Base;
    using Base::texture;

    template <class L> T operator[](const L& location) const
    {
        int32_t place[4];
        Base::put(location, place);
        return Base::load_at(place, 0);
    }
    /// The level follows the coordinates.
    template <class L> T Load(const L& location) const
    {
        int32_t place[4];
        Base::put(location, place);
        return Base::load_at(place, int32_t(_spy_part(location, axes + is_array)));
    }
    template <class L, class O> T Load(const L& location, const O& offset) const
    {
        int32_t place[4];
        Base::put(location, place);
        for (int i = 0; i < axes; i++)
            place[i] += int32_t(_spy_part(offset, i));
        return Base::load_at(place, int32_t(_spy_part(location, axes + is_array)));
    }

    template <class L> static SpySample request(const L& location)
    {
        SpySample sample;
        for (int i = 0; i < Base::coordinates; i++)
            sample.at[i] = float(_spy_part(location, i));
        sample.layer = is_array ? float(_spy_part(location, Base::coordinates)) : 0.0f;
        return sample;
    }
    template <class O> static SpySample& moved(SpySample& sample, const O& offset)
    {
        for (int i = 0; i < axes; i++)
            sample.offset[i] = int32_t(_spy_part(offset, i));
        return sample;
    }
    template <class R, class S> R run(const S& sampler, SpySample& sample) const
    {
        SpyTexel texel;
        sample.wants_integers = _spy_is_integer<R>;
        _spy_host->sample(texture, reinterpret_cast<const SpySampler*>(sampler.state), &sample, &texel);
        return _spy_from_texel<R>(texel);
    }

    // There are no derivatives between threads: what asks for them takes level 0.
    template <class L> T Sample(SamplerState s, const L& l) const { return SampleLevel(s, l, 0.0f); }
    template <class L, class O> T Sample(SamplerState s, const L& l, const O& o) const { return SampleLevel(s, l, 0.0f, o); }
    template <class L, class O> T Sample(SamplerState s, const L& l, const O& o, float clamp) const
    {
        return SampleBias(s, l, 0.0f, o, clamp);
    }
    template <class L> T SampleBias(SamplerState s, const L& l, float bias) const { return SampleBias(s, l, bias, 0, -1e30f); }
    template <class L, class O> T SampleBias(SamplerState s, const L& l, float bias, const O& o) const
    {
        return SampleBias(s, l, bias, o, -1e30f);
    }
    template <class L, class O> T SampleBias(SamplerState s, const L& l, float bias, const O& o, float clamp) const
    {
        SpySample sample = request(l);
        sample.level = spy_level_bias;
        sample.lod = bias;
        sample.least_lod = clamp;
        return run<T>(s, moved(sample, o));
    }
    template <class L> T SampleLevel(SamplerState s, const L& l, float level) const { return SampleLevel(s, l, level, 0); }
    template <class L, class O> T SampleLevel(SamplerState s, const L& l, float level, const O& o) const
    {
        if constexpr (Base::is_plane) {
            const float x = float(_spy_part(l, 0)), y = float(_spy_part(l, 1));
            const int32_t dx = int32_t(_spy_part(o, 0)), dy = int32_t(_spy_part(o, 1));
            const SpySampler& sampler = *reinterpret_cast<const SpySampler*>(s.state);
            const bool is_base = sampler.is_bilinear && (level <= 0 || texture->mip_count == 1);
            _spy_four four;
            if (is_base && _spy_bilinear<typename Base::Floats>(*texture, sampler, x, y, dx, dy, four))
                return _spy_from_four<T>(four);
            if (is_base && _spy_bilinear<_spy_plain_bytes>(*texture, sampler, x, y, dx, dy, four))
                return _spy_from_four<T>(four);
        }
        return sample_level(s, l, level, o);
    }
    template <class L, class O>
    __attribute__((noinline)) T sample_level(SamplerState s, const L& l, float level, const O& o) const
    {
        SpySample sample = request(l);
        sample.lod = level;
        return run<T>(s, moved(sample, o));
    }
    template <class L, class D> T SampleGrad(SamplerState s, const L& l, const D& dx, const D& dy) const
    {
        return SampleGrad(s, l, dx, dy, 0);
    }
    template <class L, class D, class O> T SampleGrad(SamplerState s, const L& l, const D& dx, const D& dy, const O& o) const
    {
        return SampleGrad(s, l, dx, dy, o, -1e30f);
    }
    template <class L, class D, class O>
    T SampleGrad(SamplerState s, const L& l, const D& dx, const D& dy, const O& o, float clamp) const
    {
        SpySample sample = request(l);
        sample.level = spy_level_gradients;
        sample.least_lod = clamp;
        for (int i = 0; i < Base::coordinates; i++) {
            sample.dx[i] = _spy_part(dx, i);
            sample.dy[i] = _spy_part(dy, i);
        }
        return run<T>(s, moved(sample, o));
    }

    template <class L> float SampleCmp(SamplerComparisonState s, const L& l, float reference, float level) const
    {
        return SampleCmp(s, l, reference, level, 0);
    }
    template <class L, class O>
    float SampleCmp(SamplerComparisonState s, const L& l, float reference, float level, const O& o) const
    {
        SpySample sample = request(l);
        sample.is_comparison = true;
        sample.reference = reference;
        sample.lod = level;
        return run<float>(s, moved(sample, o));
    }

    template <class L> static SpySample gather(const L& location, int channel)
    {
        SpySample sample = request(location);
        sample.is_gather = true;
        sample.channel = uint8_t(channel);
        return sample;
    }
    typedef Vector<typename _spy_texel_type<T>::element, 4> Four;
    template <class L> Four Gather(SamplerState s, const L& l, int channel) const
    {
        SpySample sample = gather(l, channel);
        return run<Four>(s, sample);
    }
    template <class L, class O> Four Gather(SamplerState s, const L& l, int channel, const O& o) const
    {
        SpySample sample = gather(l, channel);
        return run<Four>(s, moved(sample, o));
    }
    template <class L, class O>
    Four Gather(SamplerState s, const L& l, int channel, const O& o0, const O& o1, const O& o2, const O& o3) const
    {
        SpySample sample = gather(l, channel);
        const O offsets[4] = {o0, o1, o2, o3};
        for (int i = 0; i < 8; i++)
            sample.gather_offsets[i / 2][i % 2] = int32_t(_spy_part(offsets[i / 2], i % 2));
        return run<Four>(s, sample);
    }
    template <class L> Vector<float, 4> GatherCmp(SamplerComparisonState s, const L& l, float reference) const
    {
        return GatherCmp(s, l, reference, 0);
    }
    template <class L, class O>
    Vector<float, 4> GatherCmp(SamplerComparisonState s, const L& l, float reference, const O& o) const
    {
        SpySample sample = gather(l, 0);
        sample.is_comparison = true;
        sample.reference = reference;
        return run<Vector<float, 4>>(s, moved(sample, o));
    }
};

template <class T, int axes, bool is_array>
struct _spy_rw_texture : _spy_texture_base<T, axes, false, is_array> {
    typedef _spy_texture_base<T, axes, false, is_array> Base;

    template <class L> _spy_texel_ref<T, Base> operator[](const L& location) const
    {
        _spy_texel_ref<T, Base> ref{*this, {}};
        Base::put(location, ref.place);
        return ref;
    }
    template <class L> T Load(const L& location) const { return (*this)[location]; }
};

/// Buffer<T> and RWBuffer<T>: textures of one dimension.
template <class T> struct _spy_Buffer : _spy_texture<T, 1, false, false> {
    template <class L> T Load(L location) const { return (*this)[location]; }
    uint32_t count() const { return this->extent(0, 0); }
};
/// An element whose components may be changed one by one: written back, when it was, at the end of the expression.
template <class T, class Texture>
struct _spy_element_ref : _spy_texel_ref<T, Texture> {
    T value = {};
    bool is_held = false;
    explicit _spy_element_ref(const _spy_texel_ref<T, Texture>& ref) : _spy_texel_ref<T, Texture>(ref) {}
    _spy_element_ref(const _spy_element_ref&) = delete;
    ~_spy_element_ref()
    {
        if (is_held)
            this->texture.store_at(this->place, value);
    }
    T& operator*()
    {
        is_held = true;
        return value = this->texture.load_at(this->place, 0);
    }
};
template <class T> struct _spy_RWBuffer : _spy_rw_texture<T, 1, false> {
    typedef _spy_rw_texture<T, 1, false> Texture;
    template <class L> _spy_element_ref<T, typename Texture::Base> operator[](L location) const
    {
        return _spy_element_ref<T, typename Texture::Base>(Texture::operator[](location));
    }
    template <class L> void Store(L location, const T& v) const { Texture::operator[](location) = v; }
    uint32_t count() const { return this->extent(0, 0); }
};

/// Textures of several samples, which are slices to the device.
template <class T, bool is_array>
struct _spy_samples_base : _spy_texture_base<T, 2, false, is_array> {
    typedef _spy_texture_base<T, 2, false, is_array> Base;
    using Base::texture;

    template <class L> static void put(const L& location, int32_t index, int32_t* place)
    {
        Base::put(location, place);
        place[2] = index;
    }
    template <class L> T Load(const L& location, int32_t index) const { return Load(location, index, 0); }
    template <class L, class O> T Load(const L& location, int32_t index, const O& offset) const
    {
        int32_t place[4];
        put(location, index, place);
        for (int i = 0; i < 2; i++)
            place[i] += int32_t(_spy_part(offset, i));
        SpyTexel texel;
        _spy_host->load_texel(texture, place, place[3], 0, _spy_is_integer<T>, &texel);
        return _spy_from_texel<T>(texel);
    }
    template <class L> void Store(const L& location, int32_t index, const T& value) const
    {
        int32_t place[4];
        put(location, index, place);
        Base::store_at(place, value);
    }
    // the sizes, the layers where there are some, and the samples
    template <class N, class... M> void GetDimensions(N* first, M*... others) const
    {
        N* out[] = {first, others...};
        Base::sizes(0, out);
        *out[sizeof...(others)] = N(texture->size[2]);
    }
    /// Where a sample lies within its texel, seen from the middle: the places that Direct3D and Vulkan call standard.
    Vector<float, 2> GetSamplePosition(int32_t index) const
    {
        static constexpr uint8_t places[][2] = { // in sixteenths
            {8, 8},
            {12, 12}, {4, 4},
            {6, 2}, {14, 6}, {2, 10}, {10, 14},
            {9, 5}, {7, 11}, {13, 9}, {5, 3}, {3, 13}, {1, 7}, {11, 15}, {15, 1},
            {9, 9}, {7, 5}, {5, 10}, {12, 7}, {3, 6}, {10, 13}, {13, 11}, {11, 3},
            {6, 14}, {8, 1}, {4, 2}, {2, 12}, {0, 8}, {15, 4}, {14, 15}, {1, 0},
        };
        const uint32_t count = texture->size[2];
        if (count > 16 || uint32_t(index) >= count)
            return {0.0f, 0.0f};
        const uint8_t* place = places[count - 1 + uint32_t(index)];
        return {place[0] / 16.0f - 0.5f, place[1] / 16.0f - 0.5f};
    }
};
/// `texture.sample[index][location]`, as Slang writes it.
template <class T, bool is_array> struct _spy_sample : _spy_samples_base<T, is_array> {
    int32_t index;
    template <class L> T operator[](const L& location) const { return this->Load(location, index); }
};
template <class T, bool is_array> struct _spy_all_samples : _spy_samples_base<T, is_array> {
    _spy_sample<T, is_array> operator[](int32_t index) const { return {*this, index}; }
};
template <class T, bool is_array> union _spy_samples {
    _spy_all_samples<T, is_array> sample;
    SpyTexture* texture;

    template <class L> T operator[](const L& location) const { return sample.Load(location, 0); }
    template <class... A> T Load(const A&... a) const { return sample.Load(a...); }
    template <class L> void Store(const L& l, int32_t index, const T& v) const { sample.Store(l, index, v); }
    template <class... A> void GetDimensions(A*... a) const { sample.GetDimensions(a...); }
    Vector<float, 2> GetSamplePosition(int32_t index) const { return sample.GetSamplePosition(index); }
};

template <class T> using _spy_Texture2DMS = _spy_samples<T, false>;
template <class T> using _spy_Texture2DMSArray = _spy_samples<T, true>;
template <class T> using _spy_Texture1D = _spy_texture<T, 1, false, false>;
template <class T> using _spy_Texture2D = _spy_texture<T, 2, false, false>;
template <class T> using _spy_Texture3D = _spy_texture<T, 3, false, false>;
template <class T> using _spy_TextureCube = _spy_texture<T, 2, true, false>;
template <class T> using _spy_Texture1DArray = _spy_texture<T, 1, false, true>;
template <class T> using _spy_Texture2DArray = _spy_texture<T, 2, false, true>;
template <class T> using _spy_TextureCubeArray = _spy_texture<T, 2, true, true>;
template <class T> using _spy_RWTexture1D = _spy_rw_texture<T, 1, false>;
template <class T> using _spy_RWTexture2D = _spy_rw_texture<T, 2, false>;
template <class T> using _spy_RWTexture3D = _spy_rw_texture<T, 3, false>;
template <class T> using _spy_RWTexture1DArray = _spy_rw_texture<T, 1, true>;
template <class T> using _spy_RWTexture2DArray = _spy_rw_texture<T, 2, true>;

#define Texture2DMS _spy_Texture2DMS
#define Texture2DMSArray _spy_Texture2DMSArray
#define RWTexture2DMS _spy_Texture2DMS
#define RWTexture2DMSArray _spy_Texture2DMSArray
#define Buffer _spy_Buffer
#define RWBuffer _spy_RWBuffer
#define Texture1D _spy_Texture1D
#define Texture2D _spy_Texture2D
#define Texture3D _spy_Texture3D
#define TextureCube _spy_TextureCube
#define Texture1DArray _spy_Texture1DArray
#define Texture2DArray _spy_Texture2DArray
#define TextureCubeArray _spy_TextureCubeArray
#define RWTexture1D _spy_RWTexture1D
#define RWTexture2D _spy_RWTexture2D
#define RWTexture3D _spy_RWTexture3D
#define RWTexture1DArray _spy_RWTexture1DArray
#define RWTexture2DArray _spy_RWTexture2DArray
