#pragma once
// What encoders of all passes have in common.
#include "python/device/bindings.h"
#include "python/integers.h"

#include <array>

namespace spy {

inline std::array<float, 3> marker_color(nb::handle value)
{
    if (value.is_none())
        return {1.f, 1.f, 1.f};
    const auto rgb = floats_from(value, "color", 3);
    return {rgb[0], rgb[1], rgb[2]};
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
