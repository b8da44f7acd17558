// Filtering as Vulkan describes it (chapter "Image Operations"), coordinates in double.
#include "cpu/sampling.h"

#include "cpu/texel.h"
#include "device/types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace spy::cpu::sampling {
namespace {

using Addressing = TextureAddressingMode;

/// A texel of a compressed texture. The last blocks are kept, by their bytes: a kernel reads the texels of a block one
/// after the other.
void decode_in_block(const TexelCodec& codec, const uint8_t* block, int32_t x, int32_t y, SpyTexel& out)
{
    struct Decoded {
        BlockDecoder decoder = nullptr;
        uint8_t bytes[16] = {};
        SpyTexel texels[16];
    };
    static thread_local std::unique_ptr<Decoded[]> kept; // as many as a bilinear filter reads
    if (!kept)
        kept = std::make_unique<Decoded[]>(4);
    Decoded& decoded = kept[size_t(y / 4 % 2 * 2 + x / 4 % 2)];
    if (decoded.decoder != codec.decode_block || std::memcmp(decoded.bytes, block, codec.bytes) != 0) {
        decoded.decoder = codec.decode_block;
        std::memcpy(decoded.bytes, block, codec.bytes);
        codec.decode_block(block, decoded.texels);
    }
    out = decoded.texels[y % 4 * 4 + x % 4];
}

/// One mip of a texture. The samples of a texel are as many slices.
struct Level {
    const SpyTexture& texture;
    const TexelCodec& codec;
    uint32_t mip; ///< of the whole texture
    int32_t size[3];

    Level(const SpyTexture& t, uint32_t mip_of_view)
        : texture(t),
          codec(texel_codec(t.format)),
          mip(t.mip + mip_of_view)
    {
        for (int d = 0; d < 3; ++d)
            size[d] = t.size[d] ? int32_t(std::max(1u, t.size[d] >> mip)) : 0;
    }
    uint8_t* at(const int32_t* p, uint32_t layer) const
    {
        uint64_t x = uint64_t(p[0]), y = uint64_t(p[1]), width = uint64_t(size[0]), height = uint64_t(size[1]);
        if (codec.decode_block) {
            x /= 4, y /= 4;
            width = (width + 3) / 4, height = (height + 3) / 4;
        }
        const uint64_t index = (uint64_t(p[2]) * height + y) * width + x;
        return texture.data + texture.offsets[(texture.layer + layer) * texture.mip_stride + mip] + index * codec.bytes;
    }
    void read(const int32_t* p, uint32_t layer, SpyTexel& out) const
    {
        if (codec.decode_block)
            decode_in_block(codec, at(p, layer), p[0], p[1], out);
        else
            codec.decode(at(p, layer), out);
    }
    bool has(const int32_t* p) const
    {
        for (int d = 0; d < 3; ++d)
            if (p[d] < 0 || p[d] >= size[d])
                return false;
        return true;
    }
};

void convert(const TexelCodec& codec, bool wants_integers, SpyTexel& texel)
{
    if (codec.is_integer == wants_integers)
        return;
    const SpyTexel from = texel;
    for (int c = 0; c < 4; ++c) {
        if (wants_integers)
            texel.i[c] = std::isnan(from.f[c]) ? 0 : int64_t(std::clamp(from.f[c], -9e18f, 9e18f));
        else
            texel.f[c] = float(from.i[c]);
    }
}

int32_t positive_modulo(int64_t i, int64_t n) { return int32_t(((i % n) + n) % n); }

/// The index within [0, n), or -1 for the border.
int32_t address(int64_t i, int32_t n, Addressing mode)
{
    if (uint64_t(i) < uint64_t(n))
        return int32_t(i);
    switch (mode) {
    case Addressing::wrap: return positive_modulo(i, n);
    case Addressing::mirror_repeat: {
        const int32_t m = positive_modulo(i, 2 * int64_t(n));
        return m < n ? m : 2 * n - 1 - m;
    }
    case Addressing::mirror_once: return int32_t(std::min<int64_t>(i < 0 ? -(i + 1) : i, n - 1));
    case Addressing::clamp_to_edge: return int32_t(std::clamp<int64_t>(i, 0, n - 1));
    case Addressing::clamp_to_border: return i < 0 || i >= n ? -1 : int32_t(i);
    }
    return -1;
}

bool compares(ComparisonFunc function, float reference, float value)
{
    switch (function) {
    case ComparisonFunc::never: return false;
    case ComparisonFunc::less: return reference < value;
    case ComparisonFunc::equal: return reference == value;
    case ComparisonFunc::less_equal: return reference <= value;
    case ComparisonFunc::greater: return reference > value;
    case ComparisonFunc::not_equal: return reference != value;
    case ComparisonFunc::greater_equal: return reference >= value;
    case ComparisonFunc::always: return true;
    }
    return false;
}

// --- cubes

/// Where a direction meets a face: s and t from -1 to 1.
struct FacePoint {
    int face;
    double s, t, depth;
};

FacePoint face_point(int face, double x, double y, double z)
{
    const double depth = std::abs(face < 2 ? x : face < 4 ? y : z);
    const double s = face == 0 ? -z : face == 1 ? z : face == 5 ? -x : x;
    const double t = face == 2 ? z : face == 3 ? -z : -y;
    return {face, s, t, depth};
}

int face_of(double x, double y, double z)
{
    const double ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
    if (az >= ax && az >= ay)
        return z < 0 ? 5 : 4;
    if (ay >= ax)
        return y < 0 ? 3 : 2;
    return x < 0 ? 1 : 0;
}

void direction_of(int face, double s, double t, double out[3])
{
    switch (face) {
    case 0: out[0] = 1, out[1] = -t, out[2] = -s; break;
    case 1: out[0] = -1, out[1] = -t, out[2] = s; break;
    case 2: out[0] = s, out[1] = 1, out[2] = t; break;
    case 3: out[0] = s, out[1] = -1, out[2] = -t; break;
    case 4: out[0] = s, out[1] = -t, out[2] = 1; break;
    default: out[0] = -s, out[1] = -t, out[2] = -1; break;
    }
}

// --- one lookup

struct Lookup {
    const SpyTexture& texture;
    const SpySampler& sampler;
    const SpySample& request;
    double at[3];
    int axes;
    uint32_t layer;
    int face = -1;

    Lookup(const SpyTexture& t, const SpySampler& s, const SpySample& r)
        : texture(t),
          sampler(s),
          request(r),
          at{r.at[0], r.at[1], r.at[2]},
          axes(t.dimensions == 4 ? 2 : int(t.dimensions))
    {
        const uint32_t layers = texture.dimensions == 4 ? std::max(texture.layer_count / 6, 1u) : texture.layer_count;
        const float wanted = std::isnan(r.layer) ? 0.f : std::nearbyint(r.layer);
        layer = uint32_t(std::clamp(wanted, 0.f, float(layers - 1)));
        if (texture.dimensions == 4) {
            face = face_of(at[0], at[1], at[2]);
            const FacePoint p = face_point(face, at[0], at[1], at[2]);
            at[0] = (p.s / p.depth + 1) / 2;
            at[1] = (p.t / p.depth + 1) / 2;
            at[2] = 0;
            layer *= 6;
        }
    }

    double gradient_length(const float* d, const Level& level) const
    {
        double sum = 0, v[3] = {d[0], d[1], d[2]};
        if (face >= 0) { // derivatives of s / depth and t / depth
            const FacePoint p = face_point(face, request.at[0], request.at[1], request.at[2]);
            FacePoint q = face_point(face, d[0], d[1], d[2]);
            const double component = face < 2 ? d[0] : face < 4 ? d[1] : d[2];
            q.depth = face % 2 ? -component : component;
            v[0] = (q.s * p.depth - p.s * q.depth) / (p.depth * p.depth) / 2;
            v[1] = (q.t * p.depth - p.t * q.depth) / (p.depth * p.depth) / 2;
        }
        for (int a = 0; a < axes; ++a)
            sum += v[a] * level.size[a] * v[a] * level.size[a];
        return std::sqrt(sum);
    }

    float level_of_detail() const
    {
        float lod = request.lod;
        if (request.level == spy_level_gradients) {
            const Level base(texture, 0);
            const double most = std::max(gradient_length(request.dx, base), gradient_length(request.dy, base));
            lod = most > 0 ? float(std::log2(most)) : -1000.f;
        }
        lod = std::max(lod + sampler.lod_bias, request.least_lod);
        return std::isnan(lod) ? 0.f : std::min(std::max(lod, sampler.min_lod), sampler.max_lod);
    }

    void border(const TexelCodec& codec, SpyTexel& out) const
    {
        for (int c = 0; c < 4; ++c) {
            const float value = uint32_t(c) < codec.channels ? sampler.border[c] : float(c == 3);
            if (codec.is_integer)
                out.i[c] = int64_t(value);
            else
                out.f[c] = value;
        }
    }

    /// The texel of a face beside its edge is one of the neighbouring face; at a corner there is none.
    bool across_edge(const Level& level, int64_t x, int64_t y, SpyTexel& out) const
    {
        const int64_t n = level.size[0];
        const bool out_x = x < 0 || x >= n, out_y = y < 0 || y >= n;
        if (!out_x && !out_y)
            return false;
        if (out_x && out_y) {
            SpyTexel three[3];
            const int64_t cx = std::clamp<int64_t>(x, 0, n - 1), cy = std::clamp<int64_t>(y, 0, n - 1);
            texel(level, cx, cy, 0, three[0]);
            texel(level, x, cy, 0, three[1]);
            texel(level, cx, y, 0, three[2]);
            out = three[0];
            if (!level.codec.is_integer)
                for (int c = 0; c < 4; ++c)
                    out.f[c] = (three[0].f[c] + three[1].f[c] + three[2].f[c]) / 3;
            return true;
        }
        const double edge = 1 + 1.0 / double(n);
        const double s = x < 0 ? -edge : x >= n ? edge : (2 * (double(x) + 0.5) / double(n) - 1);
        const double t = y < 0 ? -edge : y >= n ? edge : (2 * (double(y) + 0.5) / double(n) - 1);
        double d[3];
        direction_of(face, s, t, d);
        const int other = face_of(d[0], d[1], d[2]);
        const FacePoint p = face_point(other, d[0], d[1], d[2]);
        const auto index = [&](double v) {
            return int32_t(std::clamp<int64_t>(int64_t(std::floor((v / p.depth + 1) / 2 * double(n))), 0, n - 1));
        };
        const int32_t there[3] = {index(p.s), index(p.t), 0};
        level.read(there, layer + uint32_t(other), out);
        return true;
    }

    void texel(const Level& level, int64_t x, int64_t y, int64_t z, SpyTexel& out) const
    {
        if (face >= 0 && across_edge(level, x, y, out))
            return;
        const int64_t wanted[3] = {x, y, z};
        int32_t p[3] = {0, 0, 0};
        for (int a = 0; a < axes; ++a)
            if ((p[a] = face >= 0 ? int32_t(wanted[a])
                                  : address(wanted[a], level.size[a], Addressing(sampler.address[a]))) < 0)
                return border(level.codec, out);
        level.read(p, layer + uint32_t(std::max(face, 0)), out);
    }

    /// Comparisons take the place of what is compared.
    void tap(const Level& level, const int64_t* p, SpyTexel& out) const
    {
        texel(level, p[0], p[1], p[2], out);
        if (!request.is_comparison)
            return;
        float reference = request.reference;
        if (Format(texture.format) == Format::d16_unorm)
            reference = std::min(std::max(reference, 0.f), 1.f);
        const bool is_true = compares(ComparisonFunc(sampler.comparison), reference, out.f[0]);
        out = {{float(is_true), float(is_true), float(is_true), float(is_true)}};
    }

    double unnormalised(int axis, const Level& level) const
    {
        const double u = at[axis] * level.size[axis];
        return std::isfinite(u) ? std::clamp(u, -1e15, 1e15) : 0.0;
    }

    void nearest(const Level& level, SpyTexel& out) const
    {
        int64_t p[3] = {0, 0, 0};
        for (int a = 0; a < axes; ++a) {
            p[a] = int64_t(std::floor(unnormalised(a, level))) + request.offset[a];
            if (face >= 0)
                p[a] = std::clamp<int64_t>(p[a], 0, level.size[a] - 1);
        }
        tap(level, p, out);
    }

    void linear(const Level& level, SpyTexel& out) const
    {
        int64_t first[3] = {0, 0, 0};
        float weight[3] = {0, 0, 0};
        for (int a = 0; a < axes; ++a) {
            const double u = unnormalised(a, level) - 0.5, low = std::floor(u);
            first[a] = int64_t(low) + request.offset[a];
            weight[a] = float(u - low);
        }
        const auto reduction = TextureReductionOp(sampler.reduction);
        if (face < 0 && !request.is_comparison && reduction == TextureReductionOp::average)
            return average(level, first, weight, out);
        bool any = false;
        SpyTexel sum{{0, 0, 0, 0}};
        for (int corner = 0; corner < 1 << axes; ++corner) {
            int64_t p[3] = {0, 0, 0};
            float w = 1;
            for (int a = 0; a < axes; ++a) {
                p[a] = first[a] + (corner >> a & 1);
                w *= corner >> a & 1 ? weight[a] : 1 - weight[a];
            }
            if (w == 0)
                continue;
            SpyTexel texel;
            tap(level, p, texel);
            for (int c = 0; c < 4; ++c) {
                if (reduction == TextureReductionOp::minimum)
                    sum.f[c] = any ? std::min(sum.f[c], texel.f[c]) : texel.f[c];
                else if (reduction == TextureReductionOp::maximum)
                    sum.f[c] = any ? std::max(sum.f[c], texel.f[c]) : texel.f[c];
                else
                    sum.f[c] += w * texel.f[c];
            }
            any = true;
        }
        out = sum;
    }

    /// The weighted mean of the corners, each axis addressed once for its two places.
    void average(const Level& level, const int64_t* first, const float* weight, SpyTexel& out) const
    {
        int32_t place[3][2] = {{0, 0}, {0, 0}, {0, 0}};
        for (int a = 0; a < axes; ++a)
            for (int k = 0; k < 2; ++k)
                place[a][k] = address(first[a] + k, level.size[a], Addressing(sampler.address[a]));
        float sum[4] = {0, 0, 0, 0};
        for (int corner = 0; corner < 1 << axes; ++corner) {
            int32_t p[3] = {0, 0, 0};
            float w = 1;
            bool inside = true;
            for (int a = 0; a < axes; ++a) {
                p[a] = place[a][corner >> a & 1];
                inside = inside && p[a] >= 0;
                w *= corner >> a & 1 ? weight[a] : 1 - weight[a];
            }
            if (w == 0)
                continue;
            SpyTexel texel;
            if (inside)
                level.read(p, layer, texel);
            else
                border(level.codec, texel);
            for (int c = 0; c < 4; ++c)
                sum[c] += w * texel.f[c];
        }
        std::memcpy(out.f, sum, sizeof sum);
    }

    void filtered(uint32_t mip, bool is_linear, SpyTexel& out) const
    {
        const Level level(texture, mip);
        is_linear && !level.codec.is_integer ? linear(level, out) : nearest(level, out);
    }

    void gather(SpyTexel& out) const
    {
        const Level level(texture, 0);
        constexpr int order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
        for (int i = 0; i < 4; ++i) {
            int64_t p[3] = {0, 0, 0};
            for (int a = 0; a < 2; ++a)
                p[a] = int64_t(std::floor(unnormalised(a, level) - 0.5)) + order[i][a] + request.offset[a] +
                    request.gather_offsets[i][a];
            SpyTexel texel;
            tap(level, p, texel);
            if (level.codec.is_integer)
                out.i[i] = texel.i[request.channel];
            else
                out.f[i] = texel.f[request.channel];
        }
    }

    void run(SpyTexel& out) const
    {
        if (request.is_gather)
            return gather(out);
        const float lod = level_of_detail();
        const bool is_linear = lod <= 0 ? sampler.linear_mag : sampler.linear_min;
        const float last = float(texture.mip_count - 1), level = std::clamp(lod, 0.f, last);
        if (!sampler.linear_mip || level == last || texel_codec(texture.format).is_integer)
            return filtered(uint32_t(std::clamp(std::ceil(level + 0.5f) - 1, 0.f, last)), is_linear, out);
        const float low = std::floor(level), part = level - low;
        filtered(uint32_t(low), is_linear, out);
        if (part == 0)
            return;
        SpyTexel next;
        filtered(uint32_t(low) + 1, is_linear, next);
        for (int c = 0; c < 4; ++c)
            out.f[c] += (next.f[c] - out.f[c]) * part;
    }
};

/// The layer within the view, or -1.
int64_t layer_in(const SpyTexture& texture, int32_t layer)
{
    return layer >= 0 && uint32_t(layer) < texture.layer_count ? layer : -1;
}

} // namespace

void load_texel(const SpyTexture* texture, const int32_t* at, int32_t layer, int32_t mip, bool wants_integers,
                SpyTexel* out)
{
    const Level level(*texture, mip >= 0 && uint32_t(mip) < texture->mip_count ? uint32_t(mip) : 0);
    const bool is_inside = mip >= 0 && uint32_t(mip) < texture->mip_count && layer_in(*texture, layer) >= 0 &&
        level.has(at);
    if (!is_inside || !level.codec.is_readable()) {
        std::memset(out, 0, sizeof(*out));
        return;
    }
    level.read(at, uint32_t(layer), *out);
    convert(level.codec, wants_integers, *out);
}

void store_texel(const SpyTexture* texture, const int32_t* at, int32_t layer, bool has_integers, const SpyTexel* value)
{
    const Level level(*texture, 0);
    if (!level.codec.encode || layer_in(*texture, layer) < 0 || !level.has(at))
        return;
    SpyTexel texel = *value;
    if (has_integers != level.codec.is_integer) {
        TexelCodec given;
        given.is_integer = has_integers;
        convert(given, level.codec.is_integer, texel);
    }
    level.codec.encode(texel, level.at(at, uint32_t(layer)));
}

void* find_texel(const SpyTexture* texture, const int32_t* at, int32_t layer)
{
    const Level level(*texture, 0);
    return layer_in(*texture, layer) >= 0 && level.has(at) ? level.at(at, uint32_t(layer)) : nullptr;
}

void sample(const SpyTexture* texture, const SpySampler* sampler, const SpySample* sample, SpyTexel* out)
{
    const TexelCodec& codec = texel_codec(texture->format);
    if (!texture->size[0] || !codec.is_readable()) {
        std::memset(out, 0, sizeof(*out));
        return;
    }
    Lookup(*texture, *sampler, *sample).run(*out);
    convert(codec, sample->wants_integers, *out);
}

} // namespace spy::cpu::sampling
