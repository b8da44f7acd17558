// What the CPU device lends to its kernels, and how it hands textures and samplers to them. Both sides include this:
// src/native/cpu, and the C++ code of kernels.
#pragma once

#include <stdint.h>

/// A texture or a view of one. `format` is the number of spy::Format.
struct SpyTexture {
    uint8_t* data;           ///< of the whole texture
    const uint64_t* offsets; ///< of its layers and mips, in bytes from `data`: layer * mip_stride + mip
    uint32_t size[3];        ///< of mip 0 of the whole texture; 0: nothing is bound
    uint32_t dimensions;     ///< 1, 2, 3; 4 is a cube
    uint32_t layer, layer_count, mip, mip_count, mip_stride;
    uint32_t format;
    /// Mip 0 of the view, which kernels read themselves where `plain` is not 0: textures of two dimensions with as many
    /// channels of 32-bit floats, or (spy_plain_bytes) with four bytes from 0 to 1.
    const uint8_t* first;
    uint32_t width, height, plain;
};
constexpr uint32_t spy_plain_bytes = 5;
/// Of spy::TextureAddressingMode.
constexpr uint8_t spy_wrap = 0, spy_clamp_to_edge = 1;

struct SpySampler {
    bool linear_min, linear_mag, linear_mip;
    bool is_bilinear; ///< levels up to 0 are the weighted mean of the nearest texels of mip 0
    uint8_t reduction;  ///< spy::TextureReductionOp
    uint8_t address[3]; ///< spy::TextureAddressingMode
    uint8_t comparison; ///< spy::ComparisonFunc
    float border[4];
    float lod_bias, min_lod, max_lod;
};

/// Formats of whole numbers use `i`, the others `f`.
union SpyTexel {
    float f[4];
    int64_t i[4];
};

enum SpyLevel : uint8_t { spy_level_given, spy_level_bias, spy_level_gradients };

/// What a kernel asks of a sampler.
struct SpySample {
    float at[3] = {};      ///< normalised
    float layer = 0;
    SpyLevel level = spy_level_given;
    bool is_gather = false, is_comparison = false;
    bool wants_integers = false; ///< the kernel's texels are whole numbers
    uint8_t channel = 0;         ///< of a gather
    float lod = 0;               ///< the level, or the bias
    float least_lod = -1e30f;    ///< the optional clamp of the level
    float dx[3] = {}, dy[3] = {};
    int32_t offset[3] = {};
    int32_t gather_offsets[4][2] = {}; ///< one for each texel of a gather
    float reference = 0;
};

struct SpyHost {
    /// Runs thread(data, 0 .. count - 1) so that they can wait for each other.
    void (*run_group)(uint32_t count, uint32_t lanes, void (*thread)(void* data, uint32_t index), void* data);
    void (*group_sync)();
    /// Shows a value (up to 128 bytes) to the lanes of the wave that wait at the same place and takes theirs, one after
    /// the other by lane; returns which lanes those are. `site`: the place in the text; later places have larger numbers.
    uint32_t (*wave_exchange)(uint32_t site, const void* value, uint32_t size, void* values);
    uint32_t (*wave_lane)();

    /// `at`: x, y, z. A texel outside of the texture is 0.
    void (*load_texel)(const SpyTexture* texture, const int32_t* at, int32_t layer, int32_t mip, bool wants_integers, SpyTexel* out);
    void (*store_texel)(const SpyTexture* texture, const int32_t* at, int32_t layer, bool has_integers, const SpyTexel* value);
    /// Where a texel is in memory; null outside of the texture.
    void* (*find_texel)(const SpyTexture* texture, const int32_t* at, int32_t layer);
    void (*sample)(const SpyTexture* texture, const SpySampler* sampler, const SpySample* sample, SpyTexel* out);

    void (*print)(const char* text, uint32_t size);
};
