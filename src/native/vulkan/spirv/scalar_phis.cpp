// Values that blocks hand on, component by component, for drivers that mix up vectors.
//
// llvmpipe (seen with Mesa 22.3) copies a vector that a loop hands on (`last = now`) once too often in invocations that
// have left the loop while others run on. It is right with scalars, so each OpPhi of vectors, or of values that hold
// vectors, becomes one OpPhi for each scalar, with the value put together after them.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spy {
namespace {

constexpr size_t most_scalars = 4096; ///< of one value; what holds more stays

struct Composite {
    uint32_t kind;
    std::vector<uint32_t> parts; ///< the type of each part
};

class PhiSplitter {
public:
    PhiSplitter(const std::vector<uint32_t>& words, bool of_vectors) : m_words(words), m_of_vectors(of_vectors)
    {
        scan();
    }

    bool needed() const { return !m_phis.empty(); }

    std::vector<uint32_t> split()
    {
        std::vector<uint32_t> out(m_words.begin(), m_words.begin() + spirv_header_words);
        m_bound = m_words[3];
        for (Phi& phi : m_phis)
            number(phi);
        uint32_t block = 0;
        bool left = true;               // whether what the block hands on has been taken apart
        std::vector<const Phi*> joined; // by the instructions before
        for (size_t i = spirv_header_words; i < m_words.size(); i += count(i)) {
            const uint32_t op = opcode(i);
            if (op == spv::OpLabel)
                block = m_words[i + 1], left = false;
            if (op != spv::OpPhi && op != spv::OpLine && op != spv::OpNoLine && !joined.empty()) {
                for (const Phi* phi : joined)
                    join(phi->type, phi->id, phi->scalars, 0, out);
                joined.clear();
            }
            if (!left && ends_spirv_block(op)) {
                take_apart(block, out);
                left = true;
            }
            const auto found = op == spv::OpPhi ? m_index.find(m_words[i + 2]) : m_index.end();
            if (found == m_index.end()) {
                out.insert(out.end(), m_words.begin() + long(i), m_words.begin() + long(i + count(i)));
                continue;
            }
            const Phi& phi = m_phis[found->second];
            emit_scalars(phi, out);
            joined.push_back(&phi);
        }
        out[3] = m_bound;
        return out;
    }

private:
    struct Leaf {
        uint32_t type;
        std::vector<uint32_t> path;
    };
    struct Phi {
        uint32_t type, id;
        std::vector<std::pair<uint32_t, uint32_t>> sources; ///< value, block
        std::vector<Leaf> leaves;
        std::vector<uint32_t> scalars;            ///< the new results
        std::vector<std::vector<uint32_t>> taken; ///< for each source
    };

    uint32_t opcode(size_t i) const { return spirv_opcode(m_words, i); }
    size_t count(size_t i) const { return spirv_count(m_words, i); }

    void scan()
    {
        for (size_t i = spirv_header_words; i < m_words.size(); i += count(i)) {
            const uint32_t* w = &m_words[i];
            switch (opcode(i)) {
            case spv::OpTypeBool: m_bool = w[1]; break;
            case spv::OpTypeVector:
            case spv::OpTypeMatrix: m_types[w[1]] = {opcode(i), std::vector<uint32_t>(w[3], w[2])}; break;
            case spv::OpTypeArray:
                if (const auto size = m_numbers.find(w[3]); size != m_numbers.end() && size->second <= most_scalars)
                    m_types[w[1]] = {opcode(i), std::vector<uint32_t>(size->second, w[2])};
                break;
            case spv::OpTypeStruct: m_types[w[1]] = {opcode(i), std::vector<uint32_t>(w + 2, w + count(i))}; break;
            case spv::OpConstant:
                if (count(i) == 4)
                    m_numbers[w[2]] = w[3];
                break;
            case spv::OpPhi: add(i); break;
            default: break;
            }
        }
    }

    void add(size_t i)
    {
        const uint32_t* w = &m_words[i];
        if (!is_split(w[1]))
            return;
        Phi phi{w[1], w[2], {}, {}, {}, {}};
        std::vector<uint32_t> path;
        if (!list_leaves(phi.type, path, phi.leaves))
            return;
        for (size_t k = 3; k + 1 < count(i); k += 2) {
            phi.sources.emplace_back(w[k], w[k + 1]);
            m_leaving[w[k + 1]].emplace_back(m_phis.size(), phi.sources.size() - 1);
        }
        m_index[phi.id] = m_phis.size();
        m_phis.push_back(std::move(phi));
    }

    /// Whether a value holds vectors, where they are asked for, or bool.
    bool is_split(uint32_t type) const
    {
        const auto found = m_types.find(type);
        if (found == m_types.end())
            return false;
        const std::vector<uint32_t>& parts = found->second.parts;
        return (m_of_vectors && (found->second.kind == spv::OpTypeVector || found->second.kind == spv::OpTypeMatrix)) ||
            std::any_of(parts.begin(), parts.end(), [this](uint32_t part) { return part == m_bool || is_split(part); });
    }

    bool list_leaves(uint32_t type, std::vector<uint32_t>& path, std::vector<Leaf>& leaves) const
    {
        const auto found = m_types.find(type);
        if (found == m_types.end()) {
            leaves.push_back({type, path});
            return leaves.size() <= most_scalars;
        }
        for (uint32_t k = 0; k < found->second.parts.size(); ++k) {
            path.push_back(k);
            if (!list_leaves(found->second.parts[k], path, leaves))
                return false;
            path.pop_back();
        }
        return true;
    }

    void number(Phi& phi)
    {
        for (size_t k = 0; k < phi.leaves.size(); ++k)
            phi.scalars.push_back(m_bound++);
        for (size_t source = 0; source < phi.sources.size(); ++source) {
            phi.taken.emplace_back();
            for (size_t k = 0; k < phi.leaves.size(); ++k)
                phi.taken.back().push_back(m_bound++);
        }
    }

    /// The scalars of all values that a block hands to others, at its end.
    void take_apart(uint32_t block, std::vector<uint32_t>& out) const
    {
        const auto found = m_leaving.find(block);
        if (found == m_leaving.end())
            return;
        for (const auto& [index, source] : found->second) {
            const Phi& phi = m_phis[index];
            for (size_t k = 0; k < phi.leaves.size(); ++k) {
                std::vector<uint32_t> operands = {phi.leaves[k].type, phi.taken[source][k], phi.sources[source].first};
                operands.insert(operands.end(), phi.leaves[k].path.begin(), phi.leaves[k].path.end());
                emit_spirv(out, spv::OpCompositeExtract, operands);
            }
        }
    }

    static void emit_scalars(const Phi& phi, std::vector<uint32_t>& out)
    {
        for (size_t k = 0; k < phi.leaves.size(); ++k) {
            std::vector<uint32_t> operands = {phi.leaves[k].type, phi.scalars[k]};
            for (size_t source = 0; source < phi.sources.size(); ++source)
                operands.insert(operands.end(), {phi.taken[source][k], phi.sources[source].second});
            emit_spirv(out, spv::OpPhi, operands);
        }
    }

    /// Puts a value together from scalars, of which `next` is its first. Returns the one after its last.
    size_t join(uint32_t type, uint32_t id, const std::vector<uint32_t>& scalars, size_t next,
                std::vector<uint32_t>& out)
    {
        std::vector<uint32_t> operands = {type, id};
        for (const uint32_t part : m_types.at(type).parts) {
            if (!m_types.count(part)) {
                operands.push_back(scalars[next++]);
                continue;
            }
            operands.push_back(m_bound++);
            next = join(part, operands.back(), scalars, next, out);
        }
        emit_spirv(out, spv::OpCompositeConstruct, operands);
        return next;
    }

    const std::vector<uint32_t>& m_words;
    bool m_of_vectors;
    uint32_t m_bool = 0;
    std::unordered_map<uint32_t, Composite> m_types;
    std::unordered_map<uint32_t, uint32_t> m_numbers; ///< constants of 32 bits
    std::vector<Phi> m_phis;
    std::unordered_map<uint32_t, size_t> m_index; ///< by result
    /// block -> (place in m_phis, source)
    std::unordered_map<uint32_t, std::vector<std::pair<size_t, size_t>>> m_leaving;
    uint32_t m_bound = 0;
};

} // namespace

std::vector<uint32_t> split_phis(std::vector<uint32_t> words, bool of_vectors)
{
    PhiSplitter splitter(words, of_vectors);
    return splitter.needed() ? splitter.split() : words;
}

} // namespace spy
