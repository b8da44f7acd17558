#pragma once
// torch tensors of a GPU for a device of another API.
#include "call/stages.h"

namespace spy {

/// Whether torch tensors of a GPU must be moved to memory that the device sees.
bool shares_torch(const Call& call, const Measured& measured);
/// Puts a torch tensor into memory that both see; gives its address there.
uint64_t share(const Call& call, const Measured& measured, Placed& placed, nb::handle tensor, const SharedView& view,
               bool copy_in, bool copy_out);

} // namespace spy
