// Render passes.
#include "vulkan/recorder.h"

#include "core/error.h"

namespace spy {

void VulkanRecorder::record(const command::ClearDepthStencil&)
{
    fail(ErrorKind::not_implemented, "clear_texture_depth_stencil is not implemented on vulkan");
}

void VulkanRecorder::record(const command::RenderPass&)
{
    fail(ErrorKind::not_implemented, "render passes are not implemented on vulkan");
}

} // namespace spy
