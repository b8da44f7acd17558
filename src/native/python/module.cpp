// The module slangpy._native.
#include "core/folder_stamp.h"
#include "core/gil.h"
#include "python/arguments.h"
#include "python/bindings.h"

#include <vector>

namespace {

std::string text_of(nb::handle bytes)
{
    return {PyBytes_AS_STRING(bytes.ptr()), size_t(PyBytes_GET_SIZE(bytes.ptr()))};
}

nb::object stamp_of_folder(nb::bytes folder, nb::typed<nb::list, nb::bytes> endings, nb::bytes except)
{
    std::vector<std::string> texts;
    for (nb::handle ending : endings) {
        if (!PyBytes_Check(ending.ptr()))
            spy::fail(spy::ErrorKind::type, "_folder_stamp: endings is a list of bytes");
        texts.push_back(text_of(ending));
    }
    const std::optional<std::string> found = spy::folder_stamp(text_of(folder), texts, text_of(except));
    return found ? nb::object(nb::bytes(found->data(), found->size())) : nb::none();
}

} // namespace

NB_MODULE(_native, m)
{
    spy::survive_the_end();
    using namespace spy;
    m.doc() = "Native core of slangpy.";
    nb::set_leak_warnings(false);
    init_intrusive();
    register_error_translator();
    install_wait_hooks();
    bind_core(m);
    if (bind_math)
        bind_math(m);
    bind_device(m);
    if (bind_cursor)
        bind_cursor(m);
    if (bind_call)
        bind_call(m);
    if (bind_array)
        bind_array(m);
    m.def("_folder_stamp", &stamp_of_folder, nb::arg("folder"), nb::arg("endings"), nb::arg("except_"),
          nb::sig("def _folder_stamp(folder: bytes, endings: list[bytes], except_: bytes) -> bytes | None"),
          "What tells the files below a folder apart without reading them; None where this platform has no way.");
    explain_wrong_arguments(m);
}
