#pragma once
// Textures as kernels see them: the functions of SpyHost.
#include "../../slangpy/slang/host_cpp.h"

namespace spy::cpu::sampling {

void load_texel(const SpyTexture* texture, const int32_t* at, int32_t layer, int32_t mip, bool wants_integers,
                SpyTexel* out);
void store_texel(const SpyTexture* texture, const int32_t* at, int32_t layer, bool has_integers, const SpyTexel* value);
void* find_texel(const SpyTexture* texture, const int32_t* at, int32_t layer);
void sample(const SpyTexture* texture, const SpySampler* sampler, const SpySample* sample, SpyTexel* out);

} // namespace spy::cpu::sampling
