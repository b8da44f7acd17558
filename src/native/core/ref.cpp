// The one definition of the intrusive counter's functions in each extension module.
#include <nanobind/nanobind.h>

#include "core/ref.h"

#include <nanobind/intrusive/counter.inl>
