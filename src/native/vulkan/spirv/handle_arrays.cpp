// Slang reads handles as indices into arrays without a size, all of them in one descriptor set. Here each of these
// arrays gets the binding at which that set has descriptors of its kind.
#include "vulkan/spirv/spirv.h"

#include "vulkan/handles.h"

#include "core/error.h"
#include "vulkan/spirv/words.h"

#include <cstring>
#include <unordered_map>

namespace spy {

namespace {

constexpr size_t first_word = 5; // after the header

/// The arrays of handles of a module: variables without a size that are no parameters.
class HandleArrays {
public:
    HandleArrays(const std::vector<uint32_t>& words, const ProgramLayout& layout) : m_words(words)
    {
        for (size_t i = first_word; i < words.size(); i += spirv_count(words, i)) {
            if (spirv_opcode(words, i) == spv::OpFunction)
                break;
            scan(i);
        }
        for (const uint32_t variable : m_unsized) {
            const auto place = m_places.find(variable);
            if (place != m_places.end() && !is_parameter(layout, place->second.first, place->second.second))
                m_found[variable] = place->second.first;
        }
    }

    /// Variable -> descriptor set.
    const std::unordered_map<uint32_t, uint32_t>& found() const { return m_found; }

    /// Of one of them; throws for what has no handles here.
    HandleBinding binding(uint32_t variable, const std::string& label) const
    {
        const uint32_t element = m_elements.at(m_pointees.at(m_pointers.at(variable)));
        const size_t type = m_types.count(element) ? m_types.at(element) : 0;
        const uint32_t storage = m_storage.at(variable);
        switch (type ? spirv_opcode(m_words, type) : uint32_t(spv::OpNop)) {
        case spv::OpTypeSampler: return HandleBinding::sampler;
        case spv::OpTypeSampledImage: return HandleBinding::combined;
        case spv::OpTypeStruct:
            if (storage == spv::StorageClassStorageBuffer)
                return HandleBinding::buffer;
            break;
        case spv::OpTypeImage:
            if (m_words[type + 3] != spv::DimBuffer)
                return m_words[type + 7] == 2 ? HandleBinding::rw_texture : HandleBinding::texture;
            break;
        default: break;
        }
        fail(ErrorKind::not_implemented, "kernel '", label, "' uses a descriptor handle of ",
             storage == spv::StorageClassUniform ? "a ConstantBuffer<T>" : "a Buffer<T> or a RWBuffer<T>",
             ", which the vulkan device does not have: use handles of structured buffers, byte-address buffers, "
             "textures, samplers and acceleration structures");
    }

private:
    void scan(size_t i)
    {
        const uint32_t* w = &m_words[i];
        switch (spirv_opcode(m_words, i)) {
        case spv::OpDecorate:
            if (w[2] == spv::DecorationDescriptorSet)
                m_places[w[1]].first = w[3];
            else if (w[2] == spv::DecorationBinding)
                m_places[w[1]].second = w[3];
            break;
        case spv::OpTypeRuntimeArray: m_elements[w[1]] = w[2]; break;
        case spv::OpTypePointer: m_pointees[w[1]] = w[3]; break;
        case spv::OpTypeSampler:
        case spv::OpTypeSampledImage:
        case spv::OpTypeStruct:
        case spv::OpTypeImage: m_types[w[1]] = i; break;
        case spv::OpVariable:
            m_pointers[w[2]] = w[1];
            m_storage[w[2]] = w[3];
            if (m_elements.count(m_pointees[w[1]]))
                m_unsized.push_back(w[2]);
            break;
        default: break;
        }
    }

    static bool is_parameter(const ProgramLayout& layout, uint32_t set, uint32_t binding)
    {
        return std::any_of(layout.slots.begin(), layout.slots.end(),
                           [&](const SlotLayout& slot) { return slot.set == set && slot.binding == binding; });
    }

    const std::vector<uint32_t>& m_words;
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> m_places; ///< set, binding
    std::unordered_map<uint32_t, uint32_t> m_elements, m_pointees, m_pointers, m_storage, m_found;
    std::unordered_map<uint32_t, size_t> m_types; ///< first word
    std::vector<uint32_t> m_unsized;
};

/// Most code has none, which its first instructions tell.
bool may_use_handles(const std::vector<uint32_t>& words)
{
    for (size_t i = first_word; i < words.size() && spirv_opcode(words, i) == spv::OpCapability;
         i += spirv_count(words, i))
        if (words[i + 1] == spv::CapabilityRuntimeDescriptorArray)
            return true;
    return false;
}

} // namespace

int handle_set(std::string_view code, const ProgramLayout& layout)
{
    std::vector<uint32_t> words(code.size() / 4);
    std::memcpy(words.data(), code.data(), words.size() * 4);
    if (!may_use_handles(words))
        return -1;
    const HandleArrays arrays(words, layout);
    return arrays.found().empty() ? -1 : int(arrays.found().begin()->second);
}

std::vector<uint32_t> bind_handle_arrays(std::vector<uint32_t> words, const ProgramLayout& layout,
                                         const std::string& label)
{
    if (!may_use_handles(words))
        return words;
    const HandleArrays arrays(words, layout);
    for (size_t i = first_word; i < words.size() && spirv_opcode(words, i) != spv::OpFunction;
         i += spirv_count(words, i))
        if (spirv_opcode(words, i) == spv::OpDecorate && words[i + 2] == spv::DecorationBinding &&
            arrays.found().count(words[i + 1]))
            words[i + 3] = uint32_t(arrays.binding(words[i + 1], label));
    return words;
}

} // namespace spy
