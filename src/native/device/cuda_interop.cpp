#include "device/cuda_interop.h"

#include "core/error.h"

#if !SPY_HAS_CUDA // else in cuda/interop.cpp

namespace spy {

bool CudaInterop::matches(const std::array<uint8_t, 16>&) { return false; }

std::shared_ptr<CudaInterop> CudaInterop::open(const std::array<uint8_t, 16>&, const std::string&)
{
    fail_runtime("enable_cuda_interop: this build has no CUDA support");
}

} // namespace spy

#endif
