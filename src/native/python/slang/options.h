#pragma once
// From Python values to the plain options of the Slang layer.
#include "python/slang/bindings.h"

#include "slang/session.h"

namespace spy {

/// From a format name, a dict, or a device's compile target.
SlangTarget parse_target(nb::handle value);
SessionOptions parse_options(nb::dict values);
/// From SlangLinkOptions, a dict of its fields, or None.
LinkOptions parse_link_options(nb::handle source);
/// From TypeConformance objects or (interface, type[, id]) tuples.
std::vector<TypeConformance> parse_conformances(nb::handle values);

} // namespace spy
