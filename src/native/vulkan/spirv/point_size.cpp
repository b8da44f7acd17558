// Vulkan leaves the size of points undefined unless the vertex shader writes it, and Slang writes it only if asked.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <spirv/spirv.hpp>

namespace spy {

namespace {

uint32_t word(uint32_t count, uint32_t op) { return count << spv::WordCountShift | op; }

/// Where the parts of a module stand, and the types that it has already.
struct PointSizeParts {
    size_t entry_point = 0, first_annotation = 0, first_function = 0, body = 0;
    uint32_t function = 0, float_type = 0;
    bool has_size = false;
};

PointSizeParts find_parts(const std::vector<uint32_t>& words)
{
    PointSizeParts parts;
    bool in_function = false;
    for (size_t i = spirv_header_words; i < words.size(); i += words[i] >> spv::WordCountShift) {
        const uint32_t op = words[i] & spv::OpCodeMask;
        if (op == spv::OpEntryPoint) {
            parts.entry_point = i;
            parts.function = words[i + 2];
        } else if (op == spv::OpDecorate || op == spv::OpMemberDecorate) {
            parts.first_annotation = parts.first_annotation ? parts.first_annotation : i;
            const size_t at = op == spv::OpDecorate ? i + 2 : i + 3;
            parts.has_size |= words[at] == spv::DecorationBuiltIn && words[at + 1] == spv::BuiltInPointSize;
        } else if (op == spv::OpTypeFloat && words[i + 2] == 32) {
            parts.float_type = words[i + 1];
        } else if (op == spv::OpFunction) {
            parts.first_function = parts.first_function ? parts.first_function : i;
            in_function = words[i + 2] == parts.function;
        } else if (in_function && op == spv::OpLabel && !parts.body) {
            parts.body = i + 2;
        } else if (parts.body == i && op == spv::OpVariable) {
            parts.body = i + (words[i] >> spv::WordCountShift); // variables come first in a block
        }
    }
    return parts;
}

} // namespace

std::vector<uint32_t> set_point_size(std::vector<uint32_t> words)
{
    const PointSizeParts parts = find_parts(words);
    if (parts.has_size || !parts.body || !parts.first_annotation)
        return words;
    uint32_t next = words[3];
    const uint32_t float_type = parts.float_type ? parts.float_type : next++;
    const uint32_t pointer = next++, variable = next++, one = next++;
    std::vector<uint32_t> types;
    if (!parts.float_type)
        types.insert(types.end(), {word(3, spv::OpTypeFloat), float_type, 32});
    types.insert(types.end(), {word(4, spv::OpTypePointer), pointer, spv::StorageClassOutput, float_type});
    types.insert(types.end(), {word(4, spv::OpVariable), pointer, variable, spv::StorageClassOutput});
    types.insert(types.end(), {word(4, spv::OpConstant), float_type, one, 0x3f800000u});
    std::vector<uint32_t> out(words.begin(), words.begin() + spirv_header_words);
    out[3] = next;
    for (size_t i = spirv_header_words; i <= words.size();) {
        if (i == parts.body)
            out.insert(out.end(), {word(3, spv::OpStore), variable, one});
        if (i == words.size())
            break;
        if (i == parts.first_annotation)
            out.insert(out.end(), {word(4, spv::OpDecorate), variable, spv::DecorationBuiltIn, spv::BuiltInPointSize});
        if (i == parts.first_function)
            out.insert(out.end(), types.begin(), types.end());
        const size_t count = words[i] >> spv::WordCountShift, begin = out.size();
        out.insert(out.end(), words.begin() + ptrdiff_t(i), words.begin() + ptrdiff_t(i + count));
        if (i == parts.entry_point) {
            out.push_back(variable);
            out[begin] = word(uint32_t(count) + 1, spv::OpEntryPoint);
        }
        i += count;
    }
    return out;
}

} // namespace spy
