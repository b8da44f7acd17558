#pragma once
// SPIR-V made fit for a device: the passes over it, each in a file of its own.
#include "vulkan/bindings.h"

namespace spy {

/// SPIR-V made fit for a device: see prepare.cpp.
struct SpirvOptions {
    const VulkanFeatures* features = nullptr;
    const VkPhysicalDeviceVulkan11Properties* properties = nullptr;
    bool spill_push_constants = false;
    uint32_t spill_set = 0;           ///< where the spilled push constants are bound (binding 0)
    bool scalar_phis = false;         ///< see split_phis()
    bool shifted_conversions = false; ///< see shift_conversions()
    bool wide_negations = false;      ///< see widen_negations()
    std::string label, device_name, entry_point;
};
struct SpirvResult {
    std::vector<uint32_t> code;
    std::string entry_point; ///< the name in the code
    FixedFormats fixed_formats;
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
/// The code with shifts after conversions to int64_t, which llvmpipe compares wrongly: wide_conversions.cpp.
std::vector<uint32_t> shift_conversions(std::vector<uint32_t> words);
/// The code that negates integers of 8 and 16 bits in 32, for NVIDIA's driver: narrow_negations.cpp.
std::vector<uint32_t> widen_negations(const std::vector<uint32_t>& words);
/// The code with products and sums for mad() of integers: integer_mads.cpp.
std::vector<uint32_t> expand_integer_mads(const std::vector<uint32_t>& words);
/// The code with every product and sum rounded by itself.
std::string forbid_contraction(std::string_view code, const std::string& label);
/// True when the code reads push constants of 8 or 16 bits that the device lacks.
bool needs_push_constant_spill(std::string_view code, const VulkanFeatures& features);
/// RuntimeError where a kernel reads a RayQuery that it has not started, or keeps one in a struct.
void refuse_odd_ray_queries(const std::vector<uint32_t>& words, const std::string& label);
/// Code whose variables a driver would compile for hours.
void refuse_large_variables(const std::vector<uint32_t>& code, const std::string& label, bool is_llvmpipe);
/// The code of a vertex shader that sets the size of points to 1, unless it sets one itself: point_size.cpp.
std::vector<uint32_t> set_point_size(std::vector<uint32_t> words);
/// The code of a fragment shader that reads each input where the vertex shader writes it: varyings.cpp.
std::vector<uint32_t> link_fragment_inputs(std::vector<uint32_t> words, const ProgramLayout& layout);
/// The code whose arrays of handles are at the bindings of HandleBinding. Throws NotImplementedError for handles of
/// other resources: handle_arrays.cpp.
std::vector<uint32_t> bind_handle_arrays(std::vector<uint32_t> words, const ProgramLayout& layout,
                                         const std::string& label);

} // namespace spy
