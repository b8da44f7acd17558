#pragma once
// Kernels of the Vulkan backend: SPIR-V made fit for the device, pipelines and the layout of their descriptors.
#include "vulkan/context.h"

#include "device/device.h"

#include <utility>

namespace spy {

constexpr size_t spirv_header_words = 5;

/// SPIR-V made fit for a device: see spirv.cpp.
struct SpirvOptions {
    const VulkanFeatures* features = nullptr;
    const VkPhysicalDeviceVulkan11Properties* properties = nullptr;
    bool spill_push_constants = false;
    uint32_t spill_set = 0;           ///< where the spilled push constants are bound (binding 0)
    bool scalar_phis = false;         ///< see split_phis()
    bool shifted_conversions = false; ///< see shift_conversions()
    bool wide_negations = false;      ///< see widen_negations()
    std::string label, device_name;
};
struct SpirvResult {
    std::vector<uint32_t> code;
    std::string entry_point; ///< the name in the code
    /// (set, binding) of storage images whose texel format had to be fixed, with the VkFormat they now take.
    std::map<std::pair<uint32_t, uint32_t>, VkFormat> fixed_formats;
};
SpirvResult prepare_spirv(std::string_view code, const ProgramLayout& layout, const SpirvOptions& options);
/// The code with an OpPhi for each scalar in place of those of what holds bool, and, if asked, of vectors, which
/// llvmpipe gets wrong: scalar_phis.cpp.
std::vector<uint32_t> split_phis(std::vector<uint32_t> words, bool of_vectors);
/// The code whose loops carry uint in place of bool, which NVIDIA's driver does not survive: bool_phis.cpp.
std::vector<uint32_t> number_bools(std::vector<uint32_t> words);
/// The code without copies of arrays that nothing needs beside their copy: whole_arrays.cpp.
std::vector<uint32_t> merge_whole_arrays(std::vector<uint32_t> words);
/// The code with remainders of signed integers that are defined for negative ones: remainders.cpp.
std::vector<uint32_t> define_remainders(const std::vector<uint32_t>& words);
/// The code with shifts behind conversions to int64_t, which llvmpipe compares wrongly: wide_conversions.cpp.
std::vector<uint32_t> shift_conversions(std::vector<uint32_t> words);
/// The code that negates integers of 8 and 16 bits in 32, for NVIDIA's driver: narrow_negations.cpp.
std::vector<uint32_t> widen_negations(const std::vector<uint32_t>& words);
/// The code with products and sums for mad() of integers: integer_mads.cpp.
std::vector<uint32_t> expand_integer_mads(const std::vector<uint32_t>& words);
/// The code with every product and sum rounded by itself.
std::string forbid_contraction(std::string_view code, const std::string& label);
/// True when the code reads push constants of 8 or 16 bits that the device lacks.
bool needs_push_constant_spill(std::string_view code, const VulkanFeatures& features);

/// One descriptor to write at a launch.
struct DescriptorSource {
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bool is_scope = false; ///< index is that of a scope, else of a slot
    uint32_t index = 0;
    VkFormat fixed_format = VK_FORMAT_UNDEFINED;
};
union DescriptorData {
    VkDescriptorBufferInfo buffer;
    VkDescriptorImageInfo image;
    VkBufferView view;
};
struct DescriptorSetLayout {
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
    std::vector<DescriptorSource> sources; ///< in the order of the update template
};

class VulkanKernel final : public Kernel {
public:
    VulkanKernel(ref<Device> device, const KernelDesc& desc);
    ~VulkanKernel() override { retire(); }
    void release() noexcept override;
    NativeHandle native_handle() const override { return {NativeHandleType::VkPipeline, uint64_t(m_pipeline)}; }

    VkPipeline pipeline() const { return m_pipeline; }
    VkPipelineLayout pipeline_layout() const { return m_pipeline_layout; }
    const std::vector<DescriptorSetLayout>& sets() const { return m_sets; }
    int push_scope() const { return m_push_scope; }    ///< scope whose bytes are push constants (or spilled); -1
    uint32_t push_size() const { return m_push_size; } ///< bytes, a multiple of 4
    int spill_set() const { return m_spill_set; }      ///< set of the spilled push constants; -1 = not spilled

private:
    void check_descriptor_counts(const VkPhysicalDeviceLimits& limits, const std::string& device_name) const;
    void create_set_layouts(const SpirvResult& spirv);
    void create_pipeline(const SpirvResult& spirv);

    VkPipeline m_pipeline = VK_NULL_HANDLE;
    VkPipelineLayout m_pipeline_layout = VK_NULL_HANDLE;
    std::vector<DescriptorSetLayout> m_sets;
    int m_push_scope = -1, m_spill_set = -1;
    uint32_t m_push_size = 0;
};

} // namespace spy
