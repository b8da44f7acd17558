#pragma once
// Arguments that share memory with one that is written.
#include "call/stages.h"

namespace spy {

/// Keeps arguments from others that are written over them.
void separate(const Call& call, const Measured& measured, Placed& placed);

} // namespace spy
