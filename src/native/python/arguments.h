#pragma once
#include <nanobind/nanobind.h>

namespace spy {

/// Of all functions that the module and its classes have by now: wrong arguments are named.
void explain_wrong_arguments(nanobind::module_& m);

} // namespace spy
