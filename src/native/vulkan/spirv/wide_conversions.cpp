// Signed integers that become 64 bits wide, for a driver that compares them wrongly.
//
// llvmpipe (seen with Mesa 22.3) takes `int64_t(i) < 7` and the like, with a constant in the range of int, for true or
// for false whatever i is. It does not see the conversion if the sign is extended once more, by two shifts.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <map>
#include <set>

namespace spy {
namespace {

struct WideTypes {
    std::set<uint32_t> scalars;                                ///< of 64-bit integers
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> vectors; ///< of them: component and count
    std::set<uint32_t> converted;                              ///< those that a conversion gives
};

WideTypes wide_types(const std::vector<uint32_t>& words)
{
    WideTypes types;
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t op = spirv_opcode(words, i);
        if (op == spv::OpTypeInt && words[i + 2] == 64)
            types.scalars.insert(words[i + 1]);
        else if (op == spv::OpTypeVector && types.scalars.count(words[i + 2]))
            types.vectors[words[i + 1]] = {words[i + 2], words[i + 3]};
        else if (op == spv::OpSConvert && (types.scalars.count(words[i + 1]) || types.vectors.count(words[i + 1])))
            types.converted.insert(words[i + 1]);
    }
    return types;
}

/// Declares 32, or a vector of it, for each type of a conversion.
std::map<uint32_t, uint32_t> declare_shifts(const WideTypes& types, std::vector<uint32_t>& out)
{
    std::map<uint32_t, uint32_t> shifts;
    const auto scalar = [&](uint32_t type) {
        uint32_t& id = shifts[type];
        if (!id) {
            id = out[3]++; // the bound: ids from here on are free
            emit_spirv(out, spv::OpConstant, std::vector<uint32_t>{type, id, 32, 0});
        }
        return id;
    };
    for (uint32_t type : types.converted) {
        const auto vector = types.vectors.find(type);
        if (vector == types.vectors.end()) {
            scalar(type);
            continue;
        }
        const auto [component, count] = vector->second;
        const uint32_t part = scalar(component), id = out[3]++;
        std::vector<uint32_t> operands{type, id};
        operands.insert(operands.end(), count, part);
        emit_spirv(out, spv::OpConstantComposite, operands);
        shifts[type] = id;
    }
    return shifts;
}

} // namespace

std::vector<uint32_t> shift_conversions(std::vector<uint32_t> words)
{
    const WideTypes types = wide_types(words);
    if (types.converted.empty())
        return words;
    std::vector<uint32_t> out(words.begin(), words.begin() + spirv_header_words);
    std::map<uint32_t, uint32_t> shifts;
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t op = spirv_opcode(words, i);
        if (op == spv::OpFunction && shifts.empty())
            shifts = declare_shifts(types, out);
        if (op != spv::OpSConvert || !types.converted.count(words[i + 1])) {
            copy_spirv(out, words, i);
            continue;
        }
        const uint32_t type = words[i + 1], wide = out[3]++, left = out[3]++, shift = shifts[type];
        emit_spirv(out, spv::OpSConvert, std::vector<uint32_t>{type, wide, words[i + 3]});
        emit_spirv(out, spv::OpShiftLeftLogical, std::vector<uint32_t>{type, left, wide, shift});
        emit_spirv(out, spv::OpShiftRightArithmetic, std::vector<uint32_t>{type, words[i + 2], left, shift});
    }
    return out;
}

} // namespace spy
