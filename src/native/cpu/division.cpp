#include "cpu/division.h"

#include <cstdint>
#include <cstring>
#include <mutex>

#if defined(__linux__) && defined(__x86_64__)
#include <csignal>
#include <ucontext.h>
#define SPY_DIVISION_TRAPS // other processors give 0
#endif

namespace spy::cpu {

namespace {

thread_local std::atomic<bool>* kernel_divides = nullptr;

#ifdef SPY_DIVISION_TRAPS

constexpr int register_slots[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// A DIV or IDIV instruction, as Intel's manual (volume 2, "Instruction Format") lays it out.
class Division {
public:
    explicit Division(greg_t* registers) : m_registers(registers)
    {
        std::memcpy(&m_at, &registers[REG_RIP], sizeof(m_at));
    }

    /// False where the instruction is another one.
    bool decode()
    {
        read_prefixes();
        const uint8_t code = *m_at++, operand = *m_at;
        const unsigned operation = (operand >> 3) & 7;
        if ((code != 0xF6 && code != 0xF7) || operation < 6)
            return false;
        m_bytes = code == 0xF6 ? 1 : m_wide ? 8 : m_bytes;
        read_operand();
        return true;
    }

    bool is_by_zero() const { return m_divisor == 0; }

    /// Goes on behind the instruction: with 0, or, as the division by -1 has no room, with the number itself.
    void finish()
    {
        const uint64_t quotient = is_by_zero() ? 0 : 0 - uint64_t(m_registers[REG_RAX]);
        if (m_bytes == 1) {
            put(REG_RAX, 2, quotient & 0xFF); // the remainder stands above
        } else {
            put(REG_RAX, m_bytes, quotient);
            put(REG_RDX, m_bytes, 0);
        }
        std::memcpy(&m_registers[REG_RIP], &m_at, sizeof(m_at));
    }

private:
    void read_prefixes()
    {
        for (;; ++m_at) {
            if (*m_at == 0x66)
                m_bytes = 2;
            else if (*m_at != 0x2E && *m_at != 0x3E && *m_at != 0xF2 && *m_at != 0xF3)
                break;
        }
        if ((*m_at & 0xF0) == 0x40) {
            m_extension = *m_at++;
            m_wide = m_extension & 8;
        }
    }

    uint64_t value_of(unsigned number) const { return uint64_t(m_registers[register_slots[number]]); }

    void read_operand()
    {
        const unsigned mode = *m_at >> 6, name = *m_at & 7, high = (m_extension & 1) << 3;
        ++m_at;
        uint64_t value = 0;
        if (mode == 3) {
            const bool is_second_byte = m_bytes == 1 && !m_extension && name >= 4; // AH, CH, DH, BH
            value = is_second_byte ? value_of(name - 4) >> 8 : value_of(name + high);
        } else {
            const uint64_t address = read_address(mode, name, high);
            const void* memory = nullptr;
            std::memcpy(&memory, &address, sizeof(memory));
            std::memcpy(&value, memory, m_bytes);
        }
        m_divisor = m_bytes == 8 ? value : value & ((uint64_t(1) << (8 * m_bytes)) - 1);
    }

    uint64_t read_address(unsigned mode, unsigned name, unsigned high)
    {
        uint64_t address = 0;
        bool has_base = true;
        if (name == 4) {
            const unsigned scale = *m_at >> 6, index = ((*m_at >> 3) & 7) + ((m_extension & 2) << 2), base = *m_at & 7;
            ++m_at;
            has_base = base != 5 || mode != 0;
            address = has_base ? value_of(base + high) : 0;
            if (index != 4)
                address += value_of(index) << scale;
        } else if (name == 5 && mode == 0) {
            const uint64_t distance = read_distance(4);
            return uint64_t(reinterpret_cast<uintptr_t>(m_at)) + distance;
        } else {
            address = value_of(name + high);
        }
        return address + read_distance(mode == 1 ? 1 : mode == 2 || !has_base ? 4 : 0);
    }

    uint64_t read_distance(unsigned bytes)
    {
        int32_t distance = 0;
        if (bytes == 1)
            distance = int8_t(*m_at);
        else if (bytes == 4)
            std::memcpy(&distance, m_at, 4);
        m_at += bytes;
        return uint64_t(int64_t(distance));
    }

    void put(int slot, unsigned bytes, uint64_t value)
    {
        if (bytes == 4)
            m_registers[slot] = greg_t(uint32_t(value)); // the upper half becomes zero
        else
            std::memcpy(&m_registers[slot], &value, bytes);
    }

    greg_t* m_registers;
    const uint8_t* m_at = nullptr;
    unsigned m_bytes = 4, m_extension = 0;
    bool m_wide = false;
    uint64_t m_divisor = 0;
};

struct sigaction before;

void on_division(int signal, siginfo_t* info, void* context)
{
    auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (kernel_divides && info->si_code == FPE_INTDIV) {
        Division division(registers);
        if (division.decode()) {
            if (division.is_by_zero())
                kernel_divides->store(true, std::memory_order_relaxed);
            return division.finish();
        }
    }
    if (before.sa_flags & SA_SIGINFO) // not ours; this one stays for the kernels
        return before.sa_sigaction(signal, info, context);
    sigaction(signal, &before, nullptr); // it happens again, and goes the way it went before
}

#endif

} // namespace

void install_division_handler()
{
#ifdef SPY_DIVISION_TRAPS
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = &on_division;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGFPE, &action, &before);
    });
#endif
}

DivisionScope::DivisionScope(std::atomic<bool>& by_zero) : m_before(kernel_divides) { kernel_divides = &by_zero; }
DivisionScope::~DivisionScope() { kernel_divides = m_before; }

} // namespace spy::cpu
