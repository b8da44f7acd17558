// Remainders of negative numbers, which Vulkan leaves undefined.
//
// Slang writes `a % b` of signed integers as OpSRem. Vulkan's environment for SPIR-V says of it (as of OpSMod) that the
// result is undefined where an operand is negative, and NVIDIA's driver makes use of that: -7 % 3 is not -1 there.
// OpSDiv is defined for all signs, so the remainder is computed from it: a - a / b * b.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <vector>

namespace spy {

std::vector<uint32_t> define_remainders(const std::vector<uint32_t>& words)
{
    constexpr uint32_t length = 5; // of each of the four instructions: type, result, two operands
    const auto head = [](uint32_t op) { return length << spv::WordCountShift | op; };
    std::vector<uint32_t> out(words.begin(), words.begin() + spirv_header_words);
    out.reserve(words.size());
    for (size_t i = spirv_header_words; i < words.size();) {
        const size_t count = words[i] >> spv::WordCountShift;
        if ((words[i] & spv::OpCodeMask) == spv::OpSRem && count == length) {
            const uint32_t type = words[i + 1], result = words[i + 2], a = words[i + 3], b = words[i + 4];
            const uint32_t quotient = out[3]++, product = out[3]++; // the bound: ids from here on are free
            out.insert(out.end(), {head(spv::OpSDiv), type, quotient, a, b});
            out.insert(out.end(), {head(spv::OpIMul), type, product, quotient, b});
            out.insert(out.end(), {head(spv::OpISub), type, result, a, product});
        } else
            out.insert(out.end(), words.begin() + long(i), words.begin() + long(i + count));
        i += count;
    }
    return out;
}

} // namespace spy
