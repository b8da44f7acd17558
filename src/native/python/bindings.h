#pragma once
// What the binding files share. Include before anything else: core/ref.h gets its type caster from nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h> // everywhere or nowhere: nb::cast<std::string> must mean the same in every file

#include "core/error.h"
#include "core/gil.h"
#include "core/ref.h"

namespace nb = nanobind;

namespace spy {

void bind_core(nb::module_& m);
void bind_device(nb::module_& m);

// Linked in by their own files; module.cpp calls those that exist.
__attribute__((weak)) void bind_math(nb::module_& m);
__attribute__((weak)) void bind_cursor(nb::module_& m);
__attribute__((weak)) void bind_call(nb::module_& m);
__attribute__((weak)) void bind_array(nb::module_& m);

/// Lets the intrusive counts of this extension module hand ownership to Python. First thing in NB_MODULE.
inline void init_intrusive()
{
    // An acquire that fails means that the interpreter is gone: the process is ending, nothing to free.
    nb::intrusive_init(
        [](PyObject* o) noexcept {
            if (has_lock()) {
                Py_INCREF(o);
                return;
            }
            GilAcquire guard;
            if (guard.is_valid())
                Py_INCREF(o);
        },
        [](PyObject* o) noexcept {
            if (has_lock()) {
                Py_DECREF(o);
                return;
            }
            GilAcquire guard;
            if (guard.is_valid())
                Py_DECREF(o);
        });
}

/// Python class of each ErrorKind; SlangCompileError is looked up in slangpy.errors. Once per extension module.
void register_error_translator();
/// Makes native waits interruptible (core/interrupt.h).
void install_wait_hooks();
/// In a catch block of a slot that Python calls directly: makes the C++ exception Python's.
void set_error_in_flight() noexcept;
/// Of the error that is set: forgets the traceback if all of it lies in this package, so that the line of the user's
/// that called it stands last.
void hide_own_frames() noexcept;
void bind_frames(nb::module_& m);

} // namespace spy
