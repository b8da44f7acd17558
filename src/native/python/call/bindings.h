#pragma once
// The files that bind calls.
#include "python/bindings.h"

namespace spy {

void bind_values(nb::module_& m);     // values.cpp
void bind_generators(nb::module_& m); // generators.cpp
void bind_torch(nb::module_& m);      // torch.cpp
void bind_raw(nb::module_& m);        // raw.cpp
void bind_graph(nb::module_& m);      // graph.cpp
void bind_prepared(nb::module_& m);   // prepared.cpp

} // namespace spy
