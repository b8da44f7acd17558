// The module slangpy._native.
#include "core/gil.h"
#include "python/arguments.h"
#include "python/bindings.h"

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
    explain_wrong_arguments(m);
}
