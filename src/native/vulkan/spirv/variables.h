#pragma once
// The arrays and structs that functions in SPIR-V keep in variables: where they are used, copied, and still needed.
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace spy {

/// One variable loaded as a whole and stored in another one; no way in between writes one of them.
struct VariableCopy {
    uint32_t from = 0, to = 0;
    size_t load = 0, store = 0; ///< where the instructions begin
};

class FunctionVariables {
public:
    explicit FunctionVariables(const std::vector<uint32_t>& words);

    size_t first_function() const { return m_functions; } ///< where it begins; else the number of words
    bool contains(uint32_t variable) const { return m_variables.count(variable) != 0; }
    size_t declaration(uint32_t variable) const { return m_variables.at(variable).declared; }
    uint32_t type_of(uint32_t variable) const { return m_variables.at(variable).type; }

    /// By the id of the value that is loaded.
    const std::unordered_map<uint32_t, VariableCopy>& copies() const { return m_copies; }
    /// Whether one of the two is written, other than by the copy, where the value of the other one is needed later.
    bool interfere(const VariableCopy& copy) const;

private:
    struct Variable {
        size_t declared = 0; ///< where its OpVariable begins
        uint32_t type = 0;
        size_t number = 0;         ///< among all, as in sets of them
        bool escapes = false;      ///< used in a way that is not followed
        std::vector<size_t> sites; ///< the instructions that use it
    };
    struct Site {
        size_t at = 0, variable = 0; ///< where the instruction begins; a number
        bool is_set = false;         ///< stores all of it
    };
    struct Block {
        std::vector<uint32_t> successors;
        std::vector<Site> sites;
        std::vector<bool> live; ///< the variables needed when it begins
    };
    struct Load {
        uint32_t variable = 0, block = 0;
        size_t at = 0, users = 0;
        VariableCopy copy; ///< if its user stores it in a variable
    };

    void scan_declarations();
    void scan_functions();
    void scan_instruction(size_t at, uint32_t block);
    void note_use(uint32_t word, size_t at, size_t operand, uint32_t block);
    void note_user(Load& load, size_t at, size_t operand);
    void find_copies();
    bool is_unchanged_between(const VariableCopy& copy, uint32_t block) const;
    std::vector<bool> needed_after(const Block& block) const;
    void find_live();

    const std::vector<uint32_t>& m_words;
    size_t m_functions;
    std::unordered_map<uint32_t, Variable> m_variables;
    std::unordered_map<uint32_t, Block> m_blocks;
    std::unordered_map<uint32_t, uint32_t> m_roots; ///< the variables of addresses
    std::unordered_map<uint32_t, Load> m_loads;     ///< by the value
    std::unordered_map<uint32_t, VariableCopy> m_copies;
    std::unordered_map<size_t, std::vector<bool>> m_live_after; ///< by the site
};

/// The bytes of all arrays and structs that the functions of a module keep in variables.
uint64_t bytes_in_variables(const std::vector<uint32_t>& words);

} // namespace spy
