// The one definition of the intrusive counter's functions in each extension module.
#include "core/ref.h"

#include <nanobind/intrusive/counter.inl>
