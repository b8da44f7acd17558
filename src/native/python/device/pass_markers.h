#pragma once
// What encoders of passes have in common.
#include "python/device/bindings.h"
#include "python/integers.h"
#include "core/python_names.h"

#include <array>

namespace spy {

inline std::array<float, 3> marker_color(nb::handle value)
{
    if (value.is_none())
        return {1.f, 1.f, 1.f};
    const auto rgb = floats_from(value, "color", 3);
    return {rgb[0], rgb[1], rgb[2]};
}

/// A native pipeline from what users bind: anything with a `compiled_pipeline` (a RenderPipeline). kind, maker: for
/// messages.
template <class Pipeline>
ref<Pipeline> pipeline_from(nb::handle pipeline, const char* kind, const char* maker)
{
    nb::object value = nb::borrow(pipeline);
    if (!nb::isinstance<Pipeline>(value) && nb::hasattr(value.type(), in_python::compiled_pipeline.name))
        value = value.attr(in_python::compiled_pipeline.name); // may compile now, and fail
    ref<Pipeline> native;
    if (value.is_none() || !nb::try_cast(value, native) || !native)
        fail(ErrorKind::type, "bind_pipeline: expected a ", kind, " (", maker, " makes one), got ",
             short_text(pipeline), " (", class_name(pipeline), ")");
    return native;
}

/// The root object given, or null for a fresh one.
inline ref<ShaderObject> root_from(nb::handle root)
{
    ref<ShaderObject> object;
    if (!root.is_none() && !nb::try_cast(root, object))
        fail(ErrorKind::type, "bind_pipeline 'root': expected a ShaderObject, got ", short_text(root));
    return object;
}

/// Tells the root object what the pipeline's code uses, where that is known.
inline ref<ShaderObject> with_used(ref<ShaderObject> root, nb::handle pipeline)
{
    if (nb::object used = nb::getattr(pipeline, in_python::used.name, nb::none()); !used.is_none())
        root->set_used(nb::cast<ref<UsedParameters>>(used));
    return root;
}

/// Timestamps, debug groups and markers.
template <class Pass>
void bind_pass_markers(nb::class_<Pass, Object>& cls)
{
    using Marker = command::DebugMarker::Kind;
    cls.def(
           "write_timestamp",
           [](Pass& p, ref<QueryPool> pool, Int<"write_timestamp 'index'"> index) { p.write_timestamp(pool, index); },
           nb::arg("query_pool"), nb::arg("index"),
           "Writes the time, when the work before it is done, to a query of the pool.")
        .def(
            "push_debug_group",
            [](Pass& p, std::string name, nb::object color) {
                p.debug_marker(Marker::push, std::move(name), marker_color(color));
            },
            nb::arg("name"), nb::arg("color") = nb::none(),
            "Opens a group of commands that debuggers show by name. `color`: red, green, blue from 0 to 1.")
        .def(
            "pop_debug_group", [](Pass& p) { p.debug_marker(Marker::pop, "", {}); }, "Closes the group opened last.")
        .def(
            "insert_debug_marker",
            [](Pass& p, std::string name, nb::object color) {
                p.debug_marker(Marker::insert, std::move(name), marker_color(color));
            },
            nb::arg("name"), nb::arg("color") = nb::none(),
            "A mark that debuggers show by name. `color`: red, green, blue from 0 to 1.");
}

} // namespace spy
