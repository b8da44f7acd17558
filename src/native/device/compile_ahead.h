#pragma once
#include "device/device.h"

namespace spy {

/// What a device also is whose compiler can begin before a text is known.
class CompileAhead {
public:
    virtual ~CompileAhead() = default;
    /// Texts that begin with this one's source will be compiled soon, with the same options: gets ready for them.
    virtual void expect_compile(const CompileDesc& desc) = 0;
};

} // namespace spy
