// Arrays of a function that are copied or set as a whole.
//
// Slang hands what loops recorded from the forward to the backward pass of a function by value: it loads each array and
// stores it in another one. Drivers take such values apart into scalars, and NVIDIA's (580) refuses kernels where that
// are too many (copies of two arrays of 576 numbers). So
//  - an array takes the place of its copy where nothing needs both, as registers are coalesced;
//  - zeros are OpConstantNull;
//  - what is still copied or set to zero goes in pieces.
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"
#include "vulkan/spirv/variables.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spy {
namespace {

using Words = std::vector<uint32_t>;

bool describes_any(const Words& words, size_t i, const std::unordered_set<uint32_t>& ids)
{
    const uint32_t op = spirv_opcode(words, i);
    return (op == spv::OpName || op == spv::OpDecorate) && ids.count(words[i + 1]) != 0;
}

/// Drops copies between variables of which no two are needed at once.
class Coalescing {
public:
    explicit Coalescing(const Words& words) : m_words(words), m_variables(words)
    {
        std::unordered_set<uint32_t> taken; // a variable takes part in one merge; what is left comes with the next pass
        for (const auto& [value, copy] : m_variables.copies()) {
            if (taken.count(copy.from) || taken.count(copy.to) || m_variables.interfere(copy))
                continue;
            taken.insert({copy.from, copy.to});
            m_merged[copy.to] = copy.from;
            m_dropped.insert({copy.load, copy.store, m_variables.declaration(copy.to)});
            m_dropped_ids.insert({value, copy.to});
        }
    }

    bool needed() const { return !m_merged.empty(); }

    Words rewritten() const
    {
        Words out(m_words.begin(), m_words.begin() + spirv_header_words);
        for (size_t i = spirv_header_words; i < m_words.size(); i += spirv_count(m_words, i)) {
            if (m_dropped.count(i) || describes_any(m_words, i, m_dropped_ids))
                continue;
            const size_t begin = out.size();
            copy_spirv(out, m_words, i);
            if (i < m_variables.first_function() || spirv_opcode(m_words, i) == spv::OpVariable)
                continue;
            for (size_t k = begin + 1; k < out.size(); ++k)
                if (const auto found = m_merged.find(out[k]); found != m_merged.end())
                    out[k] = found->second;
        }
        return out;
    }

private:
    const Words& m_words;
    FunctionVariables m_variables;
    std::unordered_map<uint32_t, uint32_t> m_merged; ///< the variable that takes another's place
    std::unordered_set<size_t> m_dropped;            ///< where instructions begin
    std::unordered_set<uint32_t> m_dropped_ids;
};

/// Composite constants of zeros alone, as OpConstantNull.
Words shorten_zeros(const Words& words)
{
    std::unordered_set<uint32_t> zeros, arrays;
    Words out(words.begin(), words.begin() + spirv_header_words);
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t* w = &words[i];
        const uint32_t op = spirv_opcode(words, i);
        const uint32_t* end = w + spirv_count(words, i);
        if (op == spv::OpTypeArray)
            arrays.insert(w[1]);
        const bool is_zero = op == spv::OpConstant ? std::all_of(w + 3, end, [](uint32_t bits) { return bits == 0; })
                                                   : op == spv::OpConstantFalse || op == spv::OpConstantNull;
        const bool is_zeros = op == spv::OpConstantComposite &&
            std::all_of(w + 3, end, [&](uint32_t part) { return zeros.count(part) != 0; });
        if (is_zero || is_zeros)
            zeros.insert(w[2]);
        if (is_zeros && arrays.count(w[1]))
            emit_spirv(out, spv::OpConstantNull, std::initializer_list<uint32_t>{w[1], w[2]});
        else
            copy_spirv(out, words, i);
    }
    return out;
}

/// Copies and zeros of large arrays, by parts of their outer dimensions.
class Pieces {
public:
    explicit Pieces(const Words& words) : m_words(words), m_variables(words), m_bound(words[3])
    {
        scan_declarations();
        for (const auto& [value, copy] : m_variables.copies())
            if (is_split(m_variables.type_of(copy.to))) {
                m_copies[copy.store] = copy;
                m_loads.insert(copy.load);
                m_loaded.insert(value);
            }
        for (size_t i = m_variables.first_function(); i < words.size(); i += spirv_count(words, i))
            if (spirv_opcode(words, i) == spv::OpStore && m_null_ids.count(words[i + 2]) &&
                m_variables.contains(words[i + 1]) && is_split(m_variables.type_of(words[i + 1])))
                m_zeros.insert(i);
    }

    bool needed() const { return !m_copies.empty() || !m_zeros.empty(); }

    Words rewritten()
    {
        Words body;
        for (size_t i = m_variables.first_function(); i < m_words.size(); i += spirv_count(m_words, i)) {
            if (const auto copy = m_copies.find(i); copy != m_copies.end())
                write(body, copy->second.to, copy->second.from, m_variables.type_of(copy->second.to), {});
            else if (m_zeros.count(i))
                write(body, m_words[i + 1], 0, m_variables.type_of(m_words[i + 1]), {});
            else if (!m_loads.count(i))
                copy_spirv(body, m_words, i);
        }
        Words out(m_words.begin(), m_words.begin() + spirv_header_words);
        for (size_t i = spirv_header_words; i < m_variables.first_function(); i += spirv_count(m_words, i))
            if (!describes_any(m_words, i, m_loaded))
                copy_spirv(out, m_words, i);
        out.insert(out.end(), m_declared.begin(), m_declared.end());
        out.insert(out.end(), body.begin(), body.end());
        out[3] = m_bound;
        return out;
    }

private:
    static constexpr uint64_t most_scalars = 256; ///< of a piece
    static constexpr uint64_t most_pieces = 256;  ///< else the array stays whole

    struct Type {
        uint64_t scalars = 1;
        uint32_t element = 0, length = 0; ///< of arrays
    };

    Type type_of(uint32_t id) const
    {
        const auto found = m_types.find(id);
        return found == m_types.end() ? Type() : found->second;
    }
    uint64_t pieces(uint32_t id) const
    {
        const Type type = type_of(id);
        return type.scalars <= most_scalars || !type.element ? 1 : type.length * pieces(type.element);
    }
    bool is_split(uint32_t id) const { return pieces(id) > 1 && pieces(id) <= most_pieces; }

    void scan_declarations()
    {
        std::unordered_map<uint32_t, uint32_t> constants;
        for (size_t i = spirv_header_words; i < m_variables.first_function(); i += spirv_count(m_words, i)) {
            const uint32_t* w = &m_words[i];
            switch (spirv_opcode(m_words, i)) {
            case spv::OpTypeInt:
                if (w[2] == 32)
                    m_int = w[1];
                break;
            case spv::OpTypeVector:
            case spv::OpTypeMatrix: m_types[w[1]] = {type_of(w[2]).scalars * w[3], 0, 0}; break;
            case spv::OpTypeArray: {
                const uint32_t length = constants.count(w[3]) ? constants[w[3]] : 1; // a specialization constant: 1
                m_types[w[1]] = {type_of(w[2]).scalars * length, w[2], length};
                break;
            }
            case spv::OpTypeStruct:
                m_types[w[1]].scalars = 0;
                for (size_t k = 2; k < spirv_count(m_words, i); ++k)
                    m_types[w[1]].scalars += type_of(w[k]).scalars;
                break;
            case spv::OpTypePointer:
                if (w[2] == spv::StorageClassFunction)
                    m_pointers[w[3]] = w[1];
                break;
            case spv::OpConstant:
                constants[w[2]] = w[3];
                if (w[1] == m_int)
                    m_indices[w[3]] = w[2];
                break;
            case spv::OpConstantNull:
                m_nulls[w[1]] = w[2];
                m_null_ids.insert(w[2]);
                break;
            default: break;
            }
        }
    }

    void write(Words& out, uint32_t to, uint32_t from, uint32_t id, const Words& indices)
    {
        const Type type = type_of(id);
        if (type.scalars > most_scalars && type.element) {
            for (uint32_t k = 0; k < type.length; ++k) {
                Words inner = indices;
                inner.push_back(index(k));
                write(out, to, from, type.element, inner);
            }
            return;
        }
        uint32_t value = from ? 0 : null(id);
        if (from) {
            const uint32_t source = address(out, from, id, indices);
            emit_spirv(out, spv::OpLoad, std::initializer_list<uint32_t>{id, value = m_bound++, source});
        }
        const uint32_t target = address(out, to, id, indices);
        emit_spirv(out, spv::OpStore, std::initializer_list<uint32_t>{target, value});
    }

    uint32_t address(Words& out, uint32_t variable, uint32_t type, const Words& indices)
    {
        uint32_t& pointer = m_pointers[type];
        if (!pointer) {
            pointer = m_bound++;
            declare(spv::OpTypePointer, {pointer, spv::StorageClassFunction, type});
        }
        Words operands{pointer, m_bound++, variable};
        operands.insert(operands.end(), indices.begin(), indices.end());
        emit_spirv(out, spv::OpAccessChain, operands);
        return operands[1];
    }

    uint32_t index(uint32_t value)
    {
        if (!m_int) {
            m_int = m_bound++;
            declare(spv::OpTypeInt, {m_int, 32, 0});
        }
        uint32_t& id = m_indices[value];
        if (!id) {
            id = m_bound++;
            declare(spv::OpConstant, {m_int, id, value});
        }
        return id;
    }

    uint32_t null(uint32_t type)
    {
        uint32_t& id = m_nulls[type];
        if (!id) {
            id = m_bound++;
            declare(spv::OpConstantNull, {type, id});
        }
        return id;
    }

    void declare(uint32_t op, std::initializer_list<uint32_t> operands) { emit_spirv(m_declared, op, operands); }

    const Words& m_words;
    FunctionVariables m_variables;
    uint32_t m_bound, m_int = 0;
    std::unordered_map<size_t, VariableCopy> m_copies; ///< by the instruction that stores them
    std::unordered_set<size_t> m_loads, m_zeros;       ///< instructions
    std::unordered_set<uint32_t> m_loaded, m_null_ids;
    std::unordered_map<uint32_t, Type> m_types;                            ///< of several scalars
    std::unordered_map<uint32_t, uint32_t> m_pointers, m_indices, m_nulls; ///< by the type, the number, the type
    Words m_declared;
};

} // namespace

std::vector<uint32_t> merge_whole_arrays(std::vector<uint32_t> words)
{
    words = shorten_zeros(words);
    for (bool again = true; again;) {
        const Coalescing coalescing(words);
        again = coalescing.needed();
        if (again)
            words = coalescing.rewritten();
    }
    Pieces pieces(words);
    return pieces.needed() ? pieces.rewritten() : words;
}

} // namespace spy
