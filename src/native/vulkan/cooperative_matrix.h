#pragma once
// VK_KHR_cooperative_matrix as Khronos's header declares it, for headers older than that.
#include <vulkan/vulkan_core.h>

#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_cooperative_matrix 1
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"

inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR = VkStructureType(1000506000);
inline constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR = VkStructureType(1000506001);

struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
    VkStructureType sType;
    void* pNext;
    VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};

/// VkComponentTypeKHR: float16 is 0, float32 is 1; VkScopeKHR: subgroup is 3.
inline constexpr uint32_t VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
                          VK_SCOPE_SUBGROUP_KHR = 3;

struct VkCooperativeMatrixPropertiesKHR {
    VkStructureType sType;
    void* pNext;
    uint32_t MSize, NSize, KSize;
    uint32_t AType, BType, CType, ResultType;
    VkBool32 saturatingAccumulation;
    uint32_t scope;
};

using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*,
                                                                                   VkCooperativeMatrixPropertiesKHR*);
#endif
