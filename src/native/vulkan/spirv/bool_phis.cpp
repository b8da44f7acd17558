// Values of bool that loops carry, as whole numbers.
//
// NVIDIA's driver (580) ends the process while it compiles a loop that hands three values of bool round
// (`t = a; a = b; b = c; c = t`); of whole numbers it compiles the same loop. So each OpPhi of bool at the head of a
// loop becomes one of uint: blocks hand on 1 or 0, and a comparison with 0 follows the OpPhis.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace spy {
namespace {

class BoolPhis {
public:
    explicit BoolPhis(const std::vector<uint32_t>& words) : m_words(words), m_bound(words[3])
    {
        find_heads();
        find_phis();
    }

    bool needed() const { return !m_phis.empty(); }

    std::vector<uint32_t> rewritten()
    {
        for (auto& [block, handed] : m_handed)
            for (Handed& value : handed)
                value.number = m_bound++;
        for (auto& [id, phi] : m_phis)
            phi = m_bound++;
        m_out.assign(m_words.begin(), m_words.begin() + spirv_header_words);
        uint32_t block = 0;
        bool has_types = false, left = true; // left: the block's values have been handed on
        std::vector<uint32_t> compared;      // OpPhis whose comparison is still to come
        for (size_t i = spirv_header_words; i < m_words.size(); i += count(i)) {
            const uint32_t op = opcode(i);
            if (op == spv::OpFunction && !std::exchange(has_types, true))
                add_types();
            if (op == spv::OpLabel)
                block = m_words[i + 1], left = false;
            if (op != spv::OpPhi && op != spv::OpLine && op != spv::OpNoLine)
                for (; !compared.empty(); compared.pop_back())
                    emit(spv::OpINotEqual, {m_bool, compared.back(), m_phis.at(compared.back()), m_zero});
            if (!left && ends_spirv_block(op)) {
                hand_on(block);
                left = true;
            }
            if (op != spv::OpPhi || !m_phis.count(m_words[i + 2])) {
                m_out.insert(m_out.end(), m_words.begin() + long(i), m_words.begin() + long(i + count(i)));
                continue;
            }
            write_phi(i);
            compared.push_back(m_words[i + 2]);
        }
        m_out[3] = m_bound;
        return std::move(m_out);
    }

private:
    struct Handed {
        uint32_t value;
        uint32_t number = 0; ///< the same as uint
    };

    uint32_t opcode(size_t i) const { return spirv_opcode(m_words, i); }
    size_t count(size_t i) const { return spirv_count(m_words, i); }

    void find_heads()
    {
        uint32_t block = 0;
        for (size_t i = spirv_header_words; i < m_words.size(); i += count(i)) {
            const uint32_t* w = &m_words[i];
            switch (opcode(i)) {
            case spv::OpTypeBool: m_bool = w[1]; break;
            case spv::OpTypeInt:
                if (w[2] == 32 && w[3] == 0)
                    m_uint = w[1];
                break;
            case spv::OpLabel: block = w[1]; break;
            case spv::OpLoopMerge: m_heads.insert(block); break;
            default: break;
            }
        }
    }

    void find_phis()
    {
        uint32_t block = 0;
        for (size_t i = spirv_header_words; i < m_words.size(); i += count(i)) {
            const uint32_t* w = &m_words[i];
            if (opcode(i) == spv::OpLabel)
                block = w[1];
            if (opcode(i) != spv::OpPhi || w[1] != m_bool || !m_heads.count(block))
                continue;
            m_phis[w[2]] = 0;
            for (size_t k = 3; k + 1 < count(i); k += 2)
                if (!find_handed(w[k + 1], w[k]))
                    m_handed[w[k + 1]].push_back({w[k]});
        }
    }

    Handed* find_handed(uint32_t block, uint32_t value)
    {
        for (Handed& handed : m_handed[block])
            if (handed.value == value)
                return &handed;
        return nullptr;
    }

    void emit(uint32_t op, std::initializer_list<uint32_t> operands) { emit_spirv(m_out, op, operands); }

    /// The type and its two values, after all other types.
    void add_types()
    {
        if (!m_uint) {
            m_uint = m_bound++;
            emit(spv::OpTypeInt, {m_uint, 32, 0});
        }
        m_zero = m_bound++;
        m_one = m_bound++;
        emit(spv::OpConstant, {m_uint, m_zero, 0});
        emit(spv::OpConstant, {m_uint, m_one, 1});
    }

    void hand_on(uint32_t block)
    {
        if (const auto found = m_handed.find(block); found != m_handed.end())
            for (const Handed& handed : found->second)
                emit(spv::OpSelect, {m_uint, handed.number, handed.value, m_one, m_zero});
    }

    void write_phi(size_t i)
    {
        m_out.push_back(m_words[i]);
        m_out.insert(m_out.end(), {m_uint, m_phis.at(m_words[i + 2])});
        for (size_t k = i + 3; k + 1 < i + count(i); k += 2)
            m_out.insert(m_out.end(), {find_handed(m_words[k + 1], m_words[k])->number, m_words[k + 1]});
    }

    const std::vector<uint32_t>& m_words;
    std::vector<uint32_t> m_out;
    uint32_t m_bound;
    uint32_t m_bool = 0, m_uint = 0, m_zero = 0, m_one = 0;
    std::unordered_set<uint32_t> m_heads;                       ///< blocks that begin a loop
    std::unordered_map<uint32_t, uint32_t> m_phis;              ///< the new result, by the old one
    std::unordered_map<uint32_t, std::vector<Handed>> m_handed; ///< by the block that hands them on
};

} // namespace

std::vector<uint32_t> number_bools(std::vector<uint32_t> words)
{
    BoolPhis phis(words);
    return phis.needed() ? phis.rewritten() : words;
}

} // namespace spy
