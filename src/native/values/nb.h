#pragma once
// nanobind as native code below the bindings uses it. Before core/ref.h, which then adds its type caster.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h> // everywhere or nowhere: nb::cast<std::string> must mean the same in every file

#include "core/error.h"
#include "core/gil.h"
#include "core/ref.h"

namespace spy {

namespace nb = nanobind;

} // namespace spy
