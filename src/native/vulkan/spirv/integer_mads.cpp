// mad() of integers.
//
// Slang writes it as Fma of GLSL.std.450, which is of floats alone: such code is not valid, and Mesa's driver ends the
// process over it. It becomes a product and a sum.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <array>
#include <unordered_set>

namespace spy {

std::vector<uint32_t> expand_integer_mads(const std::vector<uint32_t>& words)
{
    constexpr uint32_t fma = 50;           // of GLSL.std.450
    constexpr size_t length = 8;           // type, result, set, instruction, three operands
    std::unordered_set<uint32_t> integers; // types
    std::vector<uint32_t> out(words.begin(), words.begin() + spirv_header_words);
    out.reserve(words.size());
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t op = spirv_opcode(words, i);
        if (op == spv::OpTypeInt || (op == spv::OpTypeVector && integers.count(words[i + 2])))
            integers.insert(words[i + 1]);
        const bool mad = op == spv::OpExtInst && spirv_count(words, i) == length && words[i + 4] == fma &&
            integers.count(words[i + 1]);
        if (mad) {
            const uint32_t type = words[i + 1], product = out[3]++; // the bound: ids from here on are free
            emit_spirv(out, spv::OpIMul, std::array{type, product, words[i + 5], words[i + 6]});
            emit_spirv(out, spv::OpIAdd, std::array{type, words[i + 2], product, words[i + 7]});
        } else
            copy_spirv(out, words, i);
    }
    return out;
}

} // namespace spy
