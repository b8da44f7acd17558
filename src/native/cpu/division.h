#pragma once
// Integer divisions that have no result: by zero, and of the least number by -1. Processors end the process there; in
// kernels the result is that of NumPy: 0, or the least number again, and remainder 0.
#include <atomic>

namespace spy::cpu {

/// Once for the process, before the first kernel runs.
void install_division_handler();

/// While this lives, the thread runs a piece of a kernel.
class DivisionScope {
public:
    /// `by_zero` is set when a kernel divides by zero.
    explicit DivisionScope(std::atomic<bool>& by_zero);
    ~DivisionScope();
    DivisionScope(const DivisionScope&) = delete;
    DivisionScope& operator=(const DivisionScope&) = delete;

private:
    std::atomic<bool>* m_before;
};

} // namespace spy::cpu
