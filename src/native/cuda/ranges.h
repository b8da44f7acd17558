#pragma once
// Names for the time line of NVIDIA's tools (NVTX): a launch stands under the name of its function.
#include <string>

namespace spy {

/// Costs one branch where no tool is attached. Tools come in by the environment of the process (NVTX_INJECTION64_PATH),
/// so whether there is one is known once.
class CudaRange {
public:
    explicit CudaRange(const std::string& name) : m_open(s_attached)
    {
        if (m_open) [[unlikely]]
            push(name.c_str());
    }
    ~CudaRange()
    {
        if (m_open) [[unlikely]]
            pop();
    }
    CudaRange(const CudaRange&) = delete;

    /// Looks for a tool; before the first launch of a process.
    static void attach();

private:
    static void push(const char* name);
    static void pop();

    static inline bool s_attached = false;
    bool m_open;
};

} // namespace spy
