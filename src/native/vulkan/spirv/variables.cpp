// Variables of functions: their uses, copies of one into another, and where their values are needed.
#include "vulkan/spirv/variables.h"

#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <algorithm>

namespace spy {
namespace {

bool is_address(uint32_t op) { return op == spv::OpAccessChain || op == spv::OpInBoundsAccessChain; }

} // namespace

FunctionVariables::FunctionVariables(const std::vector<uint32_t>& words) : m_words(words), m_functions(words.size())
{
    scan_declarations();
    if (m_variables.empty())
        return;
    scan_functions();
    find_copies();
    if (!m_copies.empty())
        find_live();
}

void FunctionVariables::scan_declarations()
{
    std::unordered_set<uint32_t> composites;
    std::unordered_map<uint32_t, uint32_t> pointers; // to composites: their types
    for (size_t i = spirv_header_words; i < m_words.size(); i += spirv_count(m_words, i)) {
        const uint32_t* w = &m_words[i];
        switch (spirv_opcode(m_words, i)) {
        case spv::OpTypeArray:
        case spv::OpTypeStruct: composites.insert(w[1]); break;
        case spv::OpTypePointer:
            if (w[2] == spv::StorageClassFunction && composites.count(w[3]))
                pointers[w[1]] = w[3];
            break;
        case spv::OpFunction: m_functions = std::min(m_functions, i); break;
        case spv::OpLabel: m_blocks[w[1]]; break;
        case spv::OpVariable:
            if (const auto found = pointers.find(w[1]); found != pointers.end() && spirv_count(m_words, i) == 4)
                m_variables[w[2]] = {i, found->second, m_variables.size(), false, {}};
            break;
        default: break;
        }
    }
}

void FunctionVariables::scan_functions()
{
    uint32_t block = 0;
    for (size_t i = m_functions; i < m_words.size(); i += spirv_count(m_words, i)) {
        const uint32_t op = spirv_opcode(m_words, i);
        if (op == spv::OpLabel)
            block = m_words[i + 1];
        else if (op != spv::OpVariable && block)
            scan_instruction(i, block);
    }
}

/// Each word that may name a variable, its address, a loaded value or a block counts as a use of it: a number that
/// happens to be the same costs a merge, no more.
void FunctionVariables::scan_instruction(size_t at, uint32_t block)
{
    const uint32_t op = spirv_opcode(m_words, at);
    const uint32_t* w = &m_words[at];
    const size_t count = spirv_count(m_words, at);
    for (size_t k = 1; k < count; ++k) {
        if (op >= spv::OpBranch && op <= spv::OpSwitch && m_blocks.count(w[k]))
            m_blocks[block].successors.push_back(w[k]);
        note_use(w[k], at, k, block);
        if (const auto load = m_loads.find(w[k]); load != m_loads.end())
            note_user(load->second, at, k);
    }
    if (op == spv::OpLoad && count == 4 && m_variables.count(w[3]))
        m_loads[w[2]] = {w[3], block, at, 0, {}};
}

void FunctionVariables::note_use(uint32_t word, size_t at, size_t operand, uint32_t block)
{
    const auto known = m_roots.find(word);
    const uint32_t root = known == m_roots.end() ? word : known->second;
    const auto found = m_variables.find(root);
    if (found == m_variables.end())
        return;
    const uint32_t op = spirv_opcode(m_words, at);
    const bool is_followed = ((op == spv::OpLoad || is_address(op)) && operand == 3) ||
        (op == spv::OpStore && operand == 1);
    Variable& variable = found->second;
    variable.escapes |= !is_followed;
    variable.sites.push_back(at);
    m_blocks[block].sites.push_back({at, variable.number, op == spv::OpStore && operand == 1 && word == root});
    if (is_address(op) && operand == 3)
        m_roots[m_words[at + 2]] = root;
}

void FunctionVariables::note_user(Load& load, size_t at, size_t operand)
{
    ++load.users;
    const uint32_t target = m_words[at + 1];
    const bool is_stored = spirv_opcode(m_words, at) == spv::OpStore && operand == 2 && spirv_count(m_words, at) == 3;
    if (is_stored && target != load.variable && m_variables.count(target))
        load.copy = {load.variable, target, load.at, at};
}

void FunctionVariables::find_copies()
{
    for (const auto& [value, load] : m_loads) {
        const VariableCopy copy = load.copy;
        if (load.users != 1 || !copy.to || m_variables.at(copy.from).escapes || m_variables.at(copy.to).escapes)
            continue;
        if (is_unchanged_between(copy, load.block))
            m_copies[value] = copy;
    }
}

/// Whether no way from the load of a copy to its store writes one of the two.
bool FunctionVariables::is_unchanged_between(const VariableCopy& copy, uint32_t block) const
{
    const size_t from = m_variables.at(copy.from).number, to = m_variables.at(copy.to).number;
    std::vector<uint32_t> next = {block};
    std::unordered_set<uint32_t> seen;
    for (bool is_first = true; !next.empty(); is_first = false) {
        const Block& current = m_blocks.at(next.back());
        next.pop_back();
        bool arrives = false;
        for (const Site& site : current.sites) {
            if (is_first && site.at <= copy.load)
                continue;
            arrives = site.at == copy.store || site.at == copy.load;
            if (arrives)
                break;
            if ((site.variable == from || site.variable == to) && spirv_opcode(m_words, site.at) == spv::OpStore)
                return false;
        }
        for (const uint32_t successor : current.successors)
            if (!arrives && seen.insert(successor).second)
                next.push_back(successor);
    }
    return true;
}

/// The variables that one of the successors needs.
std::vector<bool> FunctionVariables::needed_after(const Block& block) const
{
    std::vector<bool> needed(m_variables.size());
    for (const uint32_t successor : block.successors)
        for (size_t k = 0; k < needed.size(); ++k)
            needed[k] = needed[k] || m_blocks.at(successor).live[k];
    return needed;
}

void FunctionVariables::find_live()
{
    for (auto& [label, block] : m_blocks)
        block.live.assign(m_variables.size(), false);
    const auto step = [](std::vector<bool>& live, const Site& site) { live[site.variable] = !site.is_set; };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto& [label, block] : m_blocks) {
            std::vector<bool> live = needed_after(block);
            for (auto site = block.sites.rbegin(); site != block.sites.rend(); ++site)
                step(live, *site);
            changed |= live != block.live;
            block.live = std::move(live);
        }
    }
    for (const auto& [label, block] : m_blocks) {
        std::vector<bool> live = needed_after(block);
        for (auto site = block.sites.rbegin(); site != block.sites.rend(); ++site) {
            m_live_after.try_emplace(site->at, live);
            step(live, *site);
        }
    }
}

bool FunctionVariables::interfere(const VariableCopy& copy) const
{
    const Variable &from = m_variables.at(copy.from), &to = m_variables.at(copy.to);
    const auto is_written_under = [&](const Variable& variable, const Variable& other) {
        return std::any_of(variable.sites.begin(), variable.sites.end(), [&](size_t at) {
            return at != copy.store && spirv_opcode(m_words, at) == spv::OpStore && m_live_after.at(at)[other.number];
        });
    };
    return from.type != to.type || is_written_under(from, to) || is_written_under(to, from);
}

uint64_t bytes_in_variables(const std::vector<uint32_t>& words)
{
    std::unordered_map<uint32_t, uint64_t> sizes, lengths,
        pointed; // of types; values of constants; of what pointers mean
    uint64_t sum = 0;
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t* w = &words[i];
        switch (spirv_opcode(words, i)) {
        case spv::OpTypeInt:
        case spv::OpTypeFloat: sizes[w[1]] = w[2] / 8; break;
        case spv::OpTypeBool: sizes[w[1]] = 4; break;
        case spv::OpTypeVector:
        case spv::OpTypeMatrix: sizes[w[1]] = sizes[w[2]] * w[3]; break;
        case spv::OpConstant: lengths[w[2]] = w[3]; break;
        case spv::OpTypeArray: sizes[w[1]] = sizes[w[2]] * lengths[w[3]]; break;
        case spv::OpTypeStruct:
            for (size_t k = 2; k < spirv_count(words, i); ++k)
                sizes[w[1]] += sizes[w[k]];
            break;
        case spv::OpTypePointer:
            if (w[2] == spv::StorageClassFunction)
                pointed[w[1]] = sizes[w[3]];
            break;
        case spv::OpVariable:
            if (w[3] == spv::StorageClassFunction)
                sum += pointed[w[1]];
            break;
        default: break;
        }
    }
    return sum;
}

} // namespace spy
