// Tracebacks end at the user's own line: errors leave this package without the frames inside of it.
#include "python/bindings.h"

#include <algorithm>

namespace spy {
namespace {

/// Folder of the package, with a separator at the end; empty: all frames are kept.
std::string& own_folder()
{
    static auto* folder = new std::string();
    return *folder;
}

bool is_own(nb::handle trace)
{
    const std::string path = nb::cast<std::string>(trace.attr("tb_frame").attr("f_code").attr("co_filename"));
    return path.starts_with(own_folder());
}

/// Whether all frames of a traceback are this package's: others are of the user's functions that it called.
bool is_all_own(nb::handle trace)
{
    if (own_folder().empty() || trace.is_none())
        return false;
    nb::object at = nb::borrow(trace);
    while (!at.is_none()) {
        if (!is_own(at))
            return false;
        at = at.attr("tb_next");
    }
    return true;
}

} // namespace

void hide_own_frames() noexcept
{
    if (own_folder().empty() || !PyErr_Occurred())
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    try {
        if (trace && value && is_all_own(trace)) {
            Py_CLEAR(trace);
            PyException_SetTraceback(value, Py_None);
        }
    } catch (const std::exception&) { // a path that is no text: the traceback stays
        PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
}

void bind_frames(nb::module_& m)
{
    m.def(
        "_hide_frames", [](const std::string& folder) { own_folder() = folder; }, nb::arg("folder"),
        "Errors leave native code without frames of files in this folder; empty: with all of them.");
    m.def("_is_own_traceback", &is_all_own, nb::arg("traceback").none(),
          "Whether all frames of a traceback lie in the folder of _hide_frames.");
}

} // namespace spy
