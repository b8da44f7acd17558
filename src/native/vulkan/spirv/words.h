#pragma once
// SPIR-V as words, for what goes through it and writes it anew.
#include <spirv/spirv.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spy {

constexpr size_t spirv_header_words = 5;

/// Of the instruction that begins at word i.
inline uint32_t spirv_opcode(const std::vector<uint32_t>& words, size_t i) { return words[i] & spv::OpCodeMask; }
inline size_t spirv_count(const std::vector<uint32_t>& words, size_t i)
{
    return std::max<size_t>(words[i] >> spv::WordCountShift, 1);
}

/// Whether what a block hands on must stand before this instruction.
inline bool ends_spirv_block(uint32_t op)
{
    return op == spv::OpSelectionMerge || op == spv::OpLoopMerge || (op >= spv::OpBranch && op <= spv::OpUnreachable) ||
        op == spv::OpTerminateInvocation;
}

template <typename Operands>
void emit_spirv(std::vector<uint32_t>& out, uint32_t op, const Operands& operands)
{
    out.push_back(uint32_t(operands.size() + 1) << spv::WordCountShift | op);
    out.insert(out.end(), operands.begin(), operands.end());
}

inline void copy_spirv(std::vector<uint32_t>& out, const std::vector<uint32_t>& words, size_t i)
{
    out.insert(out.end(), words.begin() + long(i), words.begin() + long(i + spirv_count(words, i)));
}

} // namespace spy
