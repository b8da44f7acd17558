#pragma once
// Shared by the files that bind the Slang layer (extension module slangpy._slang).
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

// after nanobind.h, so that ref<T> converts
#include "core/gil.h"
#include "core/ref.h"
#include "core/python_names.h"

namespace nb = nanobind;

namespace spy {

void bind_slang_facts(nb::module_& m);
void bind_slang_layouts(nb::module_& m);
void bind_slang_reflection(nb::module_& m);
void bind_slang_session(nb::module_& m);
void bind_slang_syntax(nb::module_& m);

/// A stage of the pipeline by name, as Python's ShaderStage.
inline nb::object stage_object(const std::string& name) { return in_python::shader_stage.get().attr(name.c_str()); }

/// True when another extension module has bound T already; one class is bound once.
template <typename T>
bool is_bound()
{
    return nb::type<T>().is_valid();
}

} // namespace spy
