#pragma once
// VK_NV_cooperative_vector, and VK_EXT_shader_replicated_composites, which Slang's code for it uses, as Khronos's
// header declares them, for headers older than that.
#include <vulkan/vulkan_core.h>

#include <cstddef>

#ifndef VK_NV_cooperative_vector
#define VK_NV_cooperative_vector 1
#define VK_NV_COOPERATIVE_VECTOR_EXTENSION_NAME "VK_NV_cooperative_vector"

inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_VECTOR_FEATURES_NV = VkStructureType(1000491000);
inline constexpr auto VK_STRUCTURE_TYPE_CONVERT_COOPERATIVE_VECTOR_MATRIX_INFO_NV = VkStructureType(1000491004);

struct VkPhysicalDeviceCooperativeVectorFeaturesNV {
    VkStructureType sType;
    void* pNext;
    VkBool32 cooperativeVector, cooperativeVectorTraining;
};

/// VkComponentTypeKHR and VkCooperativeVectorMatrixLayoutNV are enumerations of 32 bits.
struct VkConvertCooperativeVectorMatrixInfoNV {
    VkStructureType sType;
    const void* pNext;
    size_t srcSize;
    VkDeviceOrHostAddressConstKHR srcData;
    size_t* pDstSize;
    VkDeviceOrHostAddressKHR dstData;
    uint32_t srcComponentType, dstComponentType;
    uint32_t numRows, numColumns;
    uint32_t srcLayout;
    size_t srcStride;
    uint32_t dstLayout;
    size_t dstStride;
};

using PFN_vkConvertCooperativeVectorMatrixNV = VkResult(VKAPI_PTR*)(VkDevice,
                                                                    const VkConvertCooperativeVectorMatrixInfoNV*);
using PFN_vkCmdConvertCooperativeVectorMatrixNV = void(VKAPI_PTR*)(VkCommandBuffer, uint32_t,
                                                                   const VkConvertCooperativeVectorMatrixInfoNV*);
#endif

#ifndef VK_EXT_shader_replicated_composites
#define VK_EXT_shader_replicated_composites 1
#define VK_EXT_SHADER_REPLICATED_COMPOSITES_EXTENSION_NAME "VK_EXT_shader_replicated_composites"

inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_REPLICATED_COMPOSITES_FEATURES_EXT = VkStructureType(
    1000564000);

struct VkPhysicalDeviceShaderReplicatedCompositesFeaturesEXT {
    VkStructureType sType;
    void* pNext;
    VkBool32 shaderReplicatedComposites;
};
#endif
