// Makes SPIR-V fit for the device at hand. Slang emits for "Vulkan", not for one driver; these things are settled here:
//   - capabilities that the device lacks give an error that names the feature, instead of a driver crash;
//   - so do matrices of integers that Slang leaves as they are;
//   - push constants that do not fit are turned into a uniform buffer, so that kernels of any argument size look alike;
//   - where the device cannot read storage images of unknown format, they get the format of their element type;
//   - remainders of negative numbers are defined (remainders.cpp);
//   - mad() of integers becomes a product and a sum (integer_mads.cpp);
//   - signed integers that become 64 bits wide are shifted, where the driver compares them wrongly
//   (wide_conversions.cpp);
//   - integers of 8 and 16 bits are negated in 32, where the driver gets the least of them wrong
//   (narrow_negations.cpp);
//   - loops carry bool as whole numbers (bool_phis.cpp);
//   - structs that are copied between layouts lose their names, which Mesa before 23 takes for a part of the type.
#include "vulkan/spirv/spirv.h"

#include "vulkan/handles.h"
#include "vulkan/spirv/words.h"

#include "core/error.h"

#include <cstring>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace spy {

namespace {

struct Instruction {
    uint32_t op;
    size_t begin, count; ///< in words
};

std::vector<uint32_t> to_words(std::string_view code, const std::string& label)
{
    if (code.size() < spirv_header_words * 4 || code.size() % 4)
        fail_runtime("kernel '", label, "': the code is not SPIR-V (", code.size(), " bytes)");
    std::vector<uint32_t> words(code.size() / 4);
    std::memcpy(words.data(), code.data(), code.size());
    if (words[0] != spv::MagicNumber)
        fail_runtime("kernel '", label, "': the code is not SPIR-V (wrong magic number)");
    return words;
}

std::vector<Instruction> split(const std::vector<uint32_t>& words, const std::string& label)
{
    std::vector<Instruction> list;
    for (size_t i = spirv_header_words; i < words.size();) {
        const size_t count = words[i] >> spv::WordCountShift;
        if (!count || count > words.size() - i)
            fail_runtime("kernel '", label, "': the SPIR-V code is damaged at word ", i);
        list.push_back({words[i] & spv::OpCodeMask, i, count});
        i += count;
    }
    return list;
}

struct CapabilityRule {
    uint32_t number;
    const char* name;
    const char* feature; ///< what users call it
    bool (*supported)(const SpirvOptions&);
};

#define CAPABILITY(x) spv::Capability##x, #x
#define CORE(x) [](const SpirvOptions& o) -> bool { return o.features->core.features.x; }
#define V11(x) [](const SpirvOptions& o) -> bool { return o.features->v11.x; }
#define V12(x) [](const SpirvOptions& o) -> bool { return o.features->v12.x; }
#define EXT(x) [](const SpirvOptions& o) -> bool { return o.features->x; }
#define WAVE(x)                                                                                                        \
    [](const SpirvOptions& o) -> bool {                                                                                \
        return o.properties->subgroupSupportedOperations & VK_SUBGROUP_FEATURE_##x##_BIT;                              \
    }
constexpr CapabilityRule capability_rules[] = {
    {CAPABILITY(Float16), "half", V12(shaderFloat16)},
    {CAPABILITY(Float64), "double", CORE(shaderFloat64)},
    {CAPABILITY(Int64), "int64", CORE(shaderInt64)},
    {CAPABILITY(Int64Atomics), "64-bit atomics", V12(shaderBufferInt64Atomics)},
    {CAPABILITY(Int16), "int16", CORE(shaderInt16)},
    {CAPABILITY(Int8), "int8", V12(shaderInt8)},
    {CAPABILITY(ImageGatherExtended), "gather with offsets", CORE(shaderImageGatherExtended)},
    {CAPABILITY(StorageImageMultisample), "writable multisample textures", CORE(shaderStorageImageMultisample)},
    {CAPABILITY(ImageCubeArray), "cube arrays", CORE(imageCubeArray)},
    {CAPABILITY(MinLod), "minimum LOD", CORE(shaderResourceMinLod)},
    {CAPABILITY(SampledCubeArray), "cube arrays", CORE(imageCubeArray)},
    {CAPABILITY(StorageImageExtendedFormats), "extended storage formats", CORE(shaderStorageImageExtendedFormats)},
    {CAPABILITY(GroupNonUniform), "wave operations", WAVE(BASIC)},
    {CAPABILITY(GroupNonUniformVote), "wave votes", WAVE(VOTE)},
    {CAPABILITY(GroupNonUniformArithmetic), "wave arithmetic", WAVE(ARITHMETIC)},
    {CAPABILITY(GroupNonUniformBallot), "wave ballots", WAVE(BALLOT)},
    {CAPABILITY(GroupNonUniformShuffle), "wave shuffles", WAVE(SHUFFLE)},
    {CAPABILITY(GroupNonUniformShuffleRelative), "relative wave shuffles", WAVE(SHUFFLE_RELATIVE)},
    {CAPABILITY(GroupNonUniformClustered), "clustered wave operations", WAVE(CLUSTERED)},
    {CAPABILITY(GroupNonUniformQuad), "quad operations", WAVE(QUAD)},
    {CAPABILITY(StorageBuffer16BitAccess), "16-bit storage", V11(storageBuffer16BitAccess)},
    {CAPABILITY(UniformAndStorageBuffer16BitAccess), "16-bit storage", V11(uniformAndStorageBuffer16BitAccess)},
    {CAPABILITY(VariablePointersStorageBuffer), "variable pointers", V11(variablePointersStorageBuffer)},
    {CAPABILITY(VariablePointers), "variable pointers", V11(variablePointers)},
    {CAPABILITY(StorageBuffer8BitAccess), "8-bit storage", V12(storageBuffer8BitAccess)},
    {CAPABILITY(UniformAndStorageBuffer8BitAccess), "8-bit storage", V12(uniformAndStorageBuffer8BitAccess)},
    {CAPABILITY(RayQueryKHR), "ray queries", EXT(ray_query.rayQuery)},
    {CAPABILITY(RayTracingKHR), "ray tracing", EXT(ray_tracing.rayTracingPipeline)},
    {CAPABILITY(Int64ImageEXT), "64-bit texels in atomics", EXT(image_atomic_int64.shaderImageInt64Atomics)},
    {CAPABILITY(ShaderClockKHR), "the real-time clock", EXT(clock.shaderSubgroupClock)},
    {CAPABILITY(RuntimeDescriptorArray), "arrays of textures without a size", V12(runtimeDescriptorArray)},
    {CAPABILITY(SampledImageArrayNonUniformIndexing), "arrays of textures indexed by thread",
     V12(shaderSampledImageArrayNonUniformIndexing)},
    {CAPABILITY(StorageBufferArrayNonUniformIndexing), "arrays of buffers indexed by thread",
     V12(shaderStorageBufferArrayNonUniformIndexing)},
    {CAPABILITY(StorageImageArrayNonUniformIndexing), "arrays of writable textures indexed by thread",
     V12(shaderStorageImageArrayNonUniformIndexing)},
    {CAPABILITY(VulkanMemoryModel), "the Vulkan memory model", V12(vulkanMemoryModel)},
    {CAPABILITY(AtomicFloat32MinMaxEXT), "float atomics (min, max)",
     EXT(atomic_float2.shaderBufferFloat32AtomicMinMax)},
    {CAPABILITY(AtomicFloat64MinMaxEXT), "double atomics (min, max)",
     EXT(atomic_float2.shaderBufferFloat64AtomicMinMax)},
    {CAPABILITY(AtomicFloat16MinMaxEXT), "half atomics (min, max)", EXT(atomic_float2.shaderBufferFloat16AtomicMinMax)},
    {CAPABILITY(MeshShadingEXT), "mesh shaders", EXT(mesh.meshShader)},
    {CAPABILITY(FragmentBarycentricKHR), "barycentrics", EXT(barycentrics.fragmentShaderBarycentric)},
    {CAPABILITY(Geometry), "geometry shaders, or the primitive's number in fragment shaders", CORE(geometryShader)},
    {CAPABILITY(Tessellation), "tessellation", CORE(tessellationShader)},
    {CAPABILITY(SampleRateShading), "shading of each sample", CORE(sampleRateShading)},
    {CAPABILITY(ClipDistance), "clip distances", CORE(shaderClipDistance)},
    {CAPABILITY(CullDistance), "cull distances", CORE(shaderCullDistance)},
    {CAPABILITY(MultiViewport), "several viewports", CORE(multiViewport)},
    {CAPABILITY(DrawParameters), "SV_VertexID, SV_InstanceID or what else a draw starts with",
     V11(shaderDrawParameters)},
    {CAPABILITY(ShaderLayer), "layers chosen by vertex shaders", V12(shaderOutputLayer)},
    {CAPABILITY(ShaderViewportIndex), "viewports chosen by vertex shaders", V12(shaderOutputViewportIndex)},
    {CAPABILITY(CooperativeMatrixKHR), "cooperative matrices", EXT(coop_matrix.cooperativeMatrix)},
    {CAPABILITY(CooperativeVectorNV), "cooperative vectors", EXT(coop_vec.cooperativeVector)},
    {CAPABILITY(CooperativeVectorTrainingNV), "training with cooperative vectors",
     EXT(coop_vec.cooperativeVectorTraining)},
    {CAPABILITY(AtomicFloat32AddEXT), "float atomics", EXT(atomic_float.shaderBufferFloat32AtomicAdd)},
    {CAPABILITY(AtomicFloat64AddEXT), "double atomics", EXT(atomic_float.shaderBufferFloat64AtomicAdd)},
    {CAPABILITY(AtomicFloat16AddEXT), "half atomics", EXT(atomic_float2.shaderBufferFloat16AtomicAdd)},
};
#undef CAPABILITY
#undef CORE
#undef V11
#undef V12
#undef EXT
#undef WAVE

void check_capability(uint32_t capability, const SpirvOptions& options)
{
    for (const CapabilityRule& rule : capability_rules)
        if (rule.number == capability && !rule.supported(options))
            fail(ErrorKind::not_implemented, "kernel '", options.label, "' uses ", rule.feature, " (SPIR-V capability ",
                 rule.name, "), which the Vulkan device ", options.device_name,
                 " cannot run; use a device that has it, or a function without it");
}

/// SPIR-V has matrices of floats only. Slang 2026.12 makes arrays of matrices of bool, int and uint, but leaves those
/// of other integers as they are; those of bool it transposes as if they were matrices.
void check_matrices(const std::vector<uint32_t>& words, const std::vector<Instruction>& list,
                    const SpirvOptions& options)
{
    std::unordered_map<uint32_t, uint32_t> bits; // by the id of an integer type, or of a vector of integers
    std::unordered_set<uint32_t> arrays;
    for (const Instruction& i : list) {
        const uint32_t* w = &words[i.begin];
        if (i.op == spv::OpTypeArray)
            arrays.insert(w[1]);
        if (i.op == spv::OpTranspose && arrays.count(w[1]))
            fail_runtime("kernel '", options.label,
                         "' transposes a matrix of bool, which Slang cannot write for Vulkan: transpose one of int, or "
                         "pick its elements, or run on a cpu or cuda device");
        if (i.op == spv::OpTypeInt && i.count > 2)
            bits[w[1]] = w[2];
        else if (i.op == spv::OpTypeVector && i.count > 2 && bits.count(w[2]))
            bits[w[1]] = bits[w[2]];
        else if (i.op == spv::OpTypeMatrix && i.count > 2 && bits.count(w[2]))
            fail_runtime(
                "kernel '", options.label, "' uses a matrix of ", bits[w[2]],
                "-bit integers, which kernels for Vulkan cannot have: use a matrix of int or uint, or an array of "
                "vectors, or run on a cpu or cuda device");
    }
}

/// SPIR-V image format and VkFormat with 32 bits per channel.
std::pair<uint32_t, VkFormat> natural_format(ScalarType scalar, uint32_t channels)
{
    const ScalarInfo& info = scalar_info(scalar);
    const size_t column = channels <= 1 ? 0 : channels == 2 ? 1 : 2;
    if (info.is_float) {
        constexpr std::pair<uint32_t, VkFormat> table[] = {{spv::ImageFormatR32f, VK_FORMAT_R32_SFLOAT},
                                                           {spv::ImageFormatRg32f, VK_FORMAT_R32G32_SFLOAT},
                                                           {spv::ImageFormatRgba32f, VK_FORMAT_R32G32B32A32_SFLOAT}};
        return table[column];
    }
    if (info.is_signed) {
        constexpr std::pair<uint32_t, VkFormat> table[] = {{spv::ImageFormatR32i, VK_FORMAT_R32_SINT},
                                                           {spv::ImageFormatRg32i, VK_FORMAT_R32G32_SINT},
                                                           {spv::ImageFormatRgba32i, VK_FORMAT_R32G32B32A32_SINT}};
        return table[column];
    }
    constexpr std::pair<uint32_t, VkFormat> table[] = {{spv::ImageFormatR32ui, VK_FORMAT_R32_UINT},
                                                       {spv::ImageFormatRg32ui, VK_FORMAT_R32G32_UINT},
                                                       {spv::ImageFormatRgba32ui, VK_FORMAT_R32G32B32A32_UINT}};
    return table[column];
}

/// Gives a format to storage images that have none, for devices that cannot read (or write) such images. Slang shares
/// one image type among variables, so each variable gets a type with its own format; the types of arrays are changed in
/// place.
class ImageFormats {
public:
    ImageFormats(std::vector<uint32_t>& words, const std::vector<Instruction>& list, const ProgramLayout& layout,
                 const SpirvOptions& options)
        : m_words(words),
          m_layout(layout),
          m_options(options)
    {
        for (const Instruction& i : list)
            scan(i);
        const VkPhysicalDeviceFeatures& core = options.features->core.features;
        std::set<uint32_t> unformatted; // image types
        for (const Instruction& i : list) {
            const bool read = i.op == spv::OpImageRead || i.op == spv::OpImageSparseRead;
            if (read && i.count > 3 && !core.shaderStorageImageReadWithoutFormat)
                unformatted.insert(m_loaded_type[m_words[i.begin + 3]]);
            if (i.op == spv::OpImageWrite && i.count > 1 && !core.shaderStorageImageWriteWithoutFormat)
                unformatted.insert(m_loaded_type[m_words[i.begin + 1]]);
        }
        for (const auto& [variable, pointer] : m_variables) {
            const uint32_t type = strip_arrays(m_pointee[pointer]);
            if (unformatted.count(type) && m_images.count(type))
                fix(variable, pointer, type);
        }
    }

    bool needs_extended_formats() const { return m_extended; }
    const std::map<std::pair<uint32_t, uint32_t>, VkFormat>& fixed() const { return m_fixed; }

    /// Type instructions to put before a variable; empty for most.
    const std::vector<uint32_t>& types_before(uint32_t variable) { return m_new_types[variable]; }

    void rewrite(const Instruction& i)
    {
        uint32_t* w = &m_words[i.begin];
        if (i.op == spv::OpVariable && m_new_pointer.count(w[2]))
            w[1] = m_new_pointer[w[2]];
        else if (i.op == spv::OpLoad && i.count >= 4 && m_new_image.count(w[3]))
            w[1] = m_new_image[w[3]];
    }

private:
    void fix(uint32_t variable, uint32_t pointer, uint32_t type)
    {
        const auto place = m_places[variable];
        const SlotLayout* slot = find_slot(place);
        if (!slot)
            return;
        const auto [spirv_format, vk_format] = natural_format(slot->scalar, slot->channels);
        m_fixed[place] = vk_format;
        m_extended |= spirv_format == spv::ImageFormatRg32f || spirv_format == spv::ImageFormatRg32i ||
            spirv_format == spv::ImageFormatRg32ui;
        const size_t first = m_images[type];
        if (m_pointee[pointer] != type) { // an array
            uint32_t& word = m_words[first + 8];
            if (word != spv::ImageFormatUnknown && word != spirv_format)
                fail_runtime("kernel '", m_options.label, "': the Vulkan device ", m_options.device_name,
                             " needs the format of textures that are read and written; add [format(\"...\")] to '",
                             slot->path, "'");
            word = spirv_format;
            return;
        }
        std::vector<uint32_t> image(m_words.begin() + first + 2,
                                    m_words.begin() + first + (m_words[first] >> spv::WordCountShift));
        image[6] = spirv_format;
        auto& made = m_made[image];
        if (!made.first) {
            made = {m_words[3], m_words[3] + 1}; // the header's bound: larger ids are free
            m_words[3] += 2;
            std::vector<uint32_t>& out = m_new_types[variable];
            out = {uint32_t(image.size() + 2) << spv::WordCountShift | spv::OpTypeImage, made.first};
            out.insert(out.end(), image.begin(), image.end());
            out.insert(out.end(),
                       {4u << spv::WordCountShift | spv::OpTypePointer, made.second, spv::StorageClassUniformConstant,
                        made.first});
        }
        m_new_image[variable] = made.first;
        m_new_pointer[variable] = made.second;
    }

    void scan(const Instruction& i)
    {
        const uint32_t* w = &m_words[i.begin];
        if (i.op == spv::OpTypeImage && i.count >= 9 && w[7] == 2 && w[8] == spv::ImageFormatUnknown)
            m_images[w[1]] = i.begin;
        else if ((i.op == spv::OpTypeArray || i.op == spv::OpTypeRuntimeArray) && i.count >= 3)
            m_element[w[1]] = w[2];
        else if (i.op == spv::OpTypePointer && i.count >= 4)
            m_pointee[w[1]] = w[3];
        else if (i.op == spv::OpVariable && i.count >= 4)
            m_variables[w[2]] = w[1];
        else if (i.op == spv::OpLoad && i.count >= 4)
            m_loaded_type[w[2]] = w[1];
        else if (i.op == spv::OpDecorate && i.count == 4 && w[2] == spv::DecorationBinding)
            m_places[w[1]].second = w[3];
        else if (i.op == spv::OpDecorate && i.count == 4 && w[2] == spv::DecorationDescriptorSet)
            m_places[w[1]].first = w[3];
    }

    uint32_t strip_arrays(uint32_t type) const
    {
        for (auto it = m_element.find(type); it != m_element.end(); it = m_element.find(type))
            type = it->second;
        return type;
    }

    const SlotLayout* find_slot(std::pair<uint32_t, uint32_t> place) const
    {
        for (const SlotLayout& slot : m_layout.slots)
            if ((slot.kind == SlotKind::texture || slot.kind == SlotKind::texel_buffer) && slot.set == place.first &&
                slot.binding == place.second)
                return &slot;
        return nullptr;
    }

    std::vector<uint32_t>& m_words;
    const ProgramLayout& m_layout;
    const SpirvOptions& m_options;
    std::unordered_map<uint32_t, size_t> m_images; ///< storage image types of unknown format -> first word
    std::unordered_map<uint32_t, uint32_t> m_element, m_pointee, m_loaded_type;
    std::map<uint32_t, uint32_t> m_variables; ///< variable -> pointer type
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> m_places;
    std::map<std::vector<uint32_t>, std::pair<uint32_t, uint32_t>> m_made; ///< operands -> image type, pointer type
    std::unordered_map<uint32_t, std::vector<uint32_t>> m_new_types;
    std::unordered_map<uint32_t, uint32_t> m_new_image, m_new_pointer; ///< by variable
    std::map<std::pair<uint32_t, uint32_t>, VkFormat> m_fixed;
    bool m_extended = false;
};

std::string literal_string(const uint32_t* words, size_t count)
{
    std::string text(reinterpret_cast<const char*>(words), count * 4);
    return text.substr(0, text.find('\0'));
}

std::string find_entry_point(const std::vector<uint32_t>& words, const std::vector<Instruction>& list,
                             const std::string& wanted, const std::string& label)
{
    std::vector<std::string> names;
    for (const Instruction& i : list)
        if (i.op == spv::OpEntryPoint && i.count > 3) {
            names.push_back(literal_string(&words[i.begin + 3], i.count - 3));
            if (names.back() == wanted)
                return wanted;
        }
    // Slang calls the only entry point "main" whatever its name in the source.
    if (names.size() != 1)
        fail_runtime("kernel '", label, "': the code has no entry point '", wanted, "'");
    return names[0];
}

/// All struct types, if OpCopyLogical copies between two layouts of one struct, which Slang names differently; else
/// none.
std::set<uint32_t> copied_structs(const std::vector<uint32_t>& words, const std::vector<Instruction>& list)
{
    std::set<uint32_t> structs;
    bool copies = false;
    for (const Instruction& i : list) {
        copies |= i.op == spv::OpCopyLogical;
        if (i.op == spv::OpTypeStruct && i.count > 1)
            structs.insert(words[i.begin + 1]);
    }
    return copies ? structs : std::set<uint32_t>();
}

/// The words of the code, with remainders and loops that all drivers handle; vectors that blocks hand on are split into
/// scalars if the driver needs that.
std::vector<uint32_t> checked_words(std::string_view code, const SpirvOptions& options)
{
    std::vector<uint32_t> words = to_words(code, options.label);
    split(words, options.label); // refuses damaged code
    refuse_odd_ray_queries(words, options.label);
    words = merge_whole_arrays(expand_integer_mads(define_remainders(words)));
    if (options.shifted_conversions)
        words = shift_conversions(std::move(words));
    if (options.wide_negations)
        words = widen_negations(words);
    return number_bools(split_phis(std::move(words), options.scalar_phis));
}

} // namespace

bool needs_push_constant_spill(std::string_view code, const VulkanFeatures& features)
{
    const std::vector<uint32_t> words = to_words(code, "");
    for (const Instruction& i : split(words, "")) {
        if (i.op != spv::OpCapability)
            return false; // capabilities come first
        const uint32_t capability = words[i.begin + 1];
        if ((capability == spv::CapabilityStoragePushConstant16 && !features.v11.storagePushConstant16) ||
            (capability == spv::CapabilityStoragePushConstant8 && !features.v12.storagePushConstant8))
            return true;
    }
    return false;
}

std::string forbid_contraction(std::string_view code, const std::string& label)
{
    const std::vector<uint32_t> words = to_words(code, label);
    const std::vector<Instruction> list = split(words, label);
    std::vector<uint32_t> decorations;
    size_t place = 0; // decorations lie between names and types
    for (const Instruction& i : list) {
        if (!place &&
            (i.op == spv::OpDecorate || i.op == spv::OpMemberDecorate ||
             (i.op >= spv::OpTypeVoid && i.op <= spv::OpTypeForwardPointer)))
            place = i.begin;
        const bool arithmetic = i.op == spv::OpFNegate || i.op == spv::OpFAdd || i.op == spv::OpFSub ||
            i.op == spv::OpFMul || i.op == spv::OpFDiv || (i.op >= spv::OpFRem && i.op <= spv::OpDot);
        if (arithmetic && i.count > 2)
            decorations.insert(
                decorations.end(),
                {3u << spv::WordCountShift | spv::OpDecorate, words[i.begin + 2], spv::DecorationNoContraction});
    }
    std::vector<uint32_t> out(words.begin(), words.begin() + place);
    out.insert(out.end(), decorations.begin(), decorations.end());
    out.insert(out.end(), words.begin() + place, words.end());
    return std::string(reinterpret_cast<const char*>(out.data()), out.size() * 4);
}

SpirvResult prepare_spirv(std::string_view code, const ProgramLayout& layout, const SpirvOptions& options)
{
    SpirvResult result;
    std::vector<uint32_t> words = bind_handle_arrays(checked_words(code, options), layout, options.label);
    const std::vector<Instruction> list = split(words, options.label);
    result.entry_point = find_entry_point(words, list, options.entry_point, options.label);
    check_matrices(words, list, options);
    ImageFormats images(words, list, layout, options);
    result.fixed_formats = images.fixed();
    const std::set<uint32_t> nameless = copied_structs(words, list);
    const VkPhysicalDeviceFeatures& core = options.features->core.features;

    std::vector<uint32_t>& out = result.code;
    out.assign(words.begin(), words.begin() + spirv_header_words);
    out.reserve(words.size() + 16);
    auto emit = [&](std::initializer_list<uint32_t> instruction) { out.insert(out.end(), instruction); };
    if (images.needs_extended_formats())
        emit({2u << spv::WordCountShift | spv::OpCapability, spv::CapabilityStorageImageExtendedFormats});
    uint32_t spilled = 0;
    if (options.spill_push_constants)
        for (const Instruction& i : list)
            if (i.op == spv::OpVariable && words[i.begin + 3] == spv::StorageClassPushConstant)
                spilled = words[i.begin + 2];
    bool decorated = false;
    for (const Instruction& i : list) {
        uint32_t* w = &words[i.begin];
        if (i.op == spv::OpCapability) {
            if ((w[1] == spv::CapabilityStorageImageReadWithoutFormat && !core.shaderStorageImageReadWithoutFormat) ||
                (w[1] == spv::CapabilityStorageImageWriteWithoutFormat && !core.shaderStorageImageWriteWithoutFormat))
                continue;
            if (options.spill_push_constants &&
                (w[1] == spv::CapabilityStoragePushConstant16 || w[1] == spv::CapabilityStoragePushConstant8))
                w[1] = w[1] == spv::CapabilityStoragePushConstant16 ? spv::CapabilityUniformAndStorageBuffer16BitAccess
                                                                    : spv::CapabilityUniformAndStorageBuffer8BitAccess;
            check_capability(w[1], options);
        }
        if (spilled) {
            if (i.op == spv::OpTypePointer && w[2] == spv::StorageClassPushConstant)
                w[2] = spv::StorageClassUniform;
            if (i.op == spv::OpVariable && w[3] == spv::StorageClassPushConstant)
                w[3] = spv::StorageClassUniform;
            if (!decorated && (i.op == spv::OpDecorate || i.op == spv::OpMemberDecorate)) {
                emit({4u << spv::WordCountShift | spv::OpDecorate, spilled, spv::DecorationDescriptorSet,
                      options.spill_set});
                emit({4u << spv::WordCountShift | spv::OpDecorate, spilled, spv::DecorationBinding, 0});
                decorated = true;
            }
        }
        if (i.op == spv::OpName && i.count > 1 && nameless.count(w[1]))
            continue;
        if (i.op == spv::OpSource && i.count > 1 && w[1] > spv::SourceLanguageCPP_for_OpenCL)
            w[1] = spv::SourceLanguageUnknown; // older tools refuse languages they have not heard of, Slang among them
        images.rewrite(i);
        if (i.op == spv::OpVariable) {
            const std::vector<uint32_t>& types = images.types_before(w[2]);
            out.insert(out.end(), types.begin(), types.end());
        }
        out.insert(out.end(), w, w + i.count);
    }
    return result;
}

} // namespace spy
