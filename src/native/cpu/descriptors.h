#pragma once
// Textures, buffers of texels and samplers as kernels read them.
#include "cpu/host.h"
#include "device/host.h"

#include <deque>

namespace spy::cpu {

/// What the handles of a texture and its sampler point to.
struct Descriptors {
    SpyTexture texture;
    SpySampler sampler;
};

void fill(const HostTexture& texture, const TextureView* view, SpyTexture& out);
/// What follows the last whole element does not count.
void fill(const Buffer& buffer, const std::string& path, bool is_writable, SpyTexture& out);
void fill(const SamplerDesc& desc, SpySampler& out);

/// Those that descriptor handles are the addresses of. Once one was taken, its memory stays: a texture that is gone
/// has no texels.
class HandleDescriptors {
public:
    Descriptors& take();
    void give_back(Descriptors& descriptors) noexcept;

private:
    std::deque<Descriptors> m_all;
    std::vector<Descriptors*> m_free;
};

} // namespace spy::cpu
