// Negations of integers of 8 and 16 bits, for a driver that takes -(-32768) to be positive.
//
// NVIDIA's driver (seen with 580.159) negates such a number in 32 bits and does not narrow the result where it is
// compared, divided, shifted or widened. Here it is negated in 32 bits, and its sign is extended again by two shifts,
// which the driver keeps; a conversion there and back it takes away.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <array>
#include <map>

namespace spy {
namespace {

class Negations {
public:
    explicit Negations(const std::vector<uint32_t>& words) : m_words(words)
    {
        for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i))
            note(i);
    }

    std::vector<uint32_t> widened()
    {
        if (m_negated.empty())
            return m_words;
        m_out.assign(m_words.begin(), m_words.begin() + spirv_header_words);
        for (size_t i = spirv_header_words; i < m_words.size(); i += spirv_count(m_words, i)) {
            const uint32_t op = spirv_opcode(m_words, i);
            if (op == spv::OpFunction && !m_declared)
                declare();
            if (op == spv::OpSNegate && m_narrow.count(m_words[i + 1]))
                negate(m_words[i + 1], m_words[i + 2], m_words[i + 3]);
            else
                copy_spirv(m_out, m_words, i);
        }
        return m_out;
    }

private:
    struct Narrow {
        uint32_t bits, count; ///< count: components of a vector; 1: a scalar
    };

    void note(size_t i)
    {
        const uint32_t op = spirv_opcode(m_words, i), id = m_words[i + 1];
        if (op == spv::OpTypeInt && m_words[i + 2] < 32)
            m_narrow[id] = {m_words[i + 2], 1};
        else if (op == spv::OpTypeInt && m_words[i + 2] == 32 && m_words[i + 3] == 1)
            m_wide[1] = id;
        else if (op == spv::OpTypeVector && m_narrow.count(m_words[i + 2]))
            m_narrow[id] = {m_narrow[m_words[i + 2]].bits, m_words[i + 3]};
        else if (op == spv::OpTypeVector && m_wide.count(1) && m_words[i + 2] == m_wide[1])
            m_wide[m_words[i + 3]] = id;
        else if (op == spv::OpSNegate && m_narrow.count(id))
            m_negated[m_narrow[id].count] |= m_narrow[id].bits;
    }

    uint32_t fresh() { return m_out[3]++; } // the bound: ids from here on are free

    void declare()
    {
        m_declared = true;
        if (!m_wide.count(1))
            emit_spirv(m_out, spv::OpTypeInt, std::array<uint32_t, 3>{m_wide[1] = fresh(), 32, 1});
        for (const auto& [count, bits] : m_negated) {
            if (!m_wide.count(count))
                emit_spirv(m_out, spv::OpTypeVector,
                           std::array<uint32_t, 3>{m_wide[count] = fresh(), m_wide[1], count});
            for (uint32_t width : {8u, 16u})
                if (bits & width)
                    declare_shift(count, width);
        }
    }

    /// How far a number of `width` bits is from the sign of 32, for each component.
    void declare_shift(uint32_t count, uint32_t width)
    {
        const uint32_t scalar = fresh();
        emit_spirv(m_out, spv::OpConstant, std::array<uint32_t, 3>{m_wide[1], scalar, 32 - width});
        uint32_t& shift = m_shift[{count, width}];
        shift = scalar;
        if (count == 1)
            return;
        std::vector<uint32_t> operands{m_wide[count], shift = fresh()};
        operands.insert(operands.end(), count, scalar);
        emit_spirv(m_out, spv::OpConstantComposite, operands);
    }

    void negate(uint32_t type, uint32_t result, uint32_t value)
    {
        const auto [bits, count] = m_narrow[type];
        const uint32_t wide = m_wide[count], shift = m_shift[{count, bits}];
        const uint32_t extended = fresh(), negated = fresh(), left = fresh(), narrowed = fresh();
        emit_spirv(m_out, spv::OpSConvert, std::array{wide, extended, value});
        emit_spirv(m_out, spv::OpSNegate, std::array{wide, negated, extended});
        emit_spirv(m_out, spv::OpShiftLeftLogical, std::array{wide, left, negated, shift});
        emit_spirv(m_out, spv::OpShiftRightArithmetic, std::array{wide, narrowed, left, shift});
        emit_spirv(m_out, spv::OpSConvert, std::array{type, result, narrowed});
    }

    const std::vector<uint32_t>& m_words;
    std::vector<uint32_t> m_out;
    std::map<uint32_t, Narrow> m_narrow;
    std::map<uint32_t, uint32_t> m_wide;    ///< signed 32 bits, by components
    std::map<uint32_t, uint32_t> m_negated; ///< widths that are negated, by components
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> m_shift;
    bool m_declared = false;
};

} // namespace

std::vector<uint32_t> widen_negations(const std::vector<uint32_t>& words) { return Negations(words).widened(); }

} // namespace spy
