#pragma once
// The stages of pipelines of several entry points.
#include "device/render.h"
#include "vulkan/context.h"

#include <span>
#include <string_view>
#include <vector>

namespace spy {

/// With their modules, while a pipeline is made.
struct PipelineStages {
    const VulkanContext& context;
    std::vector<VkPipelineShaderStageCreateInfo> list;

    ~PipelineStages()
    {
        for (const VkPipelineShaderStageCreateInfo& stage : list)
            context.vk.DestroyShaderModule(context.device, stage.module, nullptr);
    }
};

inline std::vector<std::string_view> codes_of(std::span<const StageCode> stages)
{
    std::vector<std::string_view> codes;
    for (const StageCode& stage : stages)
        codes.push_back(stage.code);
    return codes;
}

} // namespace spy
