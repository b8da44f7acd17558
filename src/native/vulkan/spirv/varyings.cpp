// Slang numbers the inputs and outputs of each stage by itself. Vulkan links them by these numbers; here it is by
// semantic.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <map>
#include <set>

namespace spy {

std::vector<uint32_t> link_fragment_inputs(std::vector<uint32_t> words, const ProgramLayout& layout)
{
    std::map<uint32_t, uint32_t> places;
    for (const Varying& input : layout.fragment_inputs)
        if (const Varying* output = find_varying(layout.vertex_outputs, input);
            output && output->location != input.location)
            places[input.location] = output->location;
    if (places.empty())
        return words;
    std::set<uint32_t> inputs;
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i))
        if (spirv_opcode(words, i) == spv::OpVariable && words[i + 3] == spv::StorageClassInput)
            inputs.insert(words[i + 2]);
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i))
        if (spirv_opcode(words, i) == spv::OpDecorate && words[i + 2] == spv::DecorationLocation &&
            inputs.count(words[i + 1]))
            if (const auto place = places.find(words[i + 3]); place != places.end())
                words[i + 3] = place->second;
    return words;
}

} // namespace spy
