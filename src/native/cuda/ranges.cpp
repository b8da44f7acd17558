#include "cuda/ranges.h"

#include <nvtx3/nvToolsExt.h>

namespace spy {

namespace {

nvtxDomainHandle_t domain = nullptr;

} // namespace

void CudaRange::attach()
{
    static const bool once = [] {
        domain = nvtxDomainCreateA("slangpy"); // the headers look for a tool; none: null
        return domain != nullptr;
    }();
    s_attached = once;
}

void CudaRange::push(const char* name)
{
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain, &attributes);
}

void CudaRange::pop() { nvtxDomainRangePop(domain); }

} // namespace spy
