// slangpy._slang: the only extension module that needs libslang. It is imported at the first compile.
#include "python/slang/bindings.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "core/python_names.h"
#include "python/arguments.h"
#include "slang/binding_text.h"
#include "slang/isolation/worker.h"
#include "slang/compiler.h"

#include <dlfcn.h>

#include <nanobind/intrusive/counter.inl>

namespace spy {
namespace {

/// Of those that slangpy.errors defines: its name there; else null.
const char* own_error(ErrorKind kind)
{
    switch (kind) {
    case ErrorKind::value: return "NativeValueError";
    case ErrorKind::type: return "NativeTypeError";
    case ErrorKind::index: return "NativeIndexError";
    case ErrorKind::key: return "NameNotFoundError";
    case ErrorKind::overflow: return "NativeOverflowError"; // of both modules, whichever is asked first
    case ErrorKind::slang_compile: return "SlangCompileError";
    default: return nullptr;
    }
}

PyObject* error_class(ErrorKind kind)
{
    switch (kind) {
    case ErrorKind::memory: return PyExc_MemoryError;
    case ErrorKind::not_implemented: return PyExc_NotImplementedError;
    case ErrorKind::timeout: return PyExc_TimeoutError;
    default: return PyExc_RuntimeError;
    }
}

/// CompilerDiedError(text, reason)
void set_death(const CompilerDeath& death)
{
    try {
        nb::object type = in_python::compiler_died.get();
        PyErr_SetObject(type.ptr(), nb::make_tuple(death.what(), death.reason).ptr());
    } catch (nb::python_error& failure) {
        failure.restore();
    }
}

void translate(const std::exception_ptr& pointer, void*)
{
    try {
        std::rethrow_exception(pointer);
    } catch (const CompilerDeath& death) {
        set_death(death);
    } catch (const Error& error) {
        const char* own = own_error(error.kind());
        if (!own) {
            PyErr_SetString(error_class(error.kind()), error.what());
            return;
        }
        try {
            nb::object type = nb::module_::import_(in_python::errors).attr(own);
            nb::object text = nb::steal(
                PyUnicode_DecodeUTF8(error.what(), Py_ssize_t(strlen(error.what())), "replace"));
            PyErr_SetObject(type.ptr(), text.ptr());
        } catch (nb::python_error& failure) {
            failure.restore();
        }
    } catch (const std::bad_cast&) {
        PyErr_SetString(
            PyExc_TypeError,
            "an object is of another type than is needed here, or was never made: its __init__ did not run");
    } catch (const std::exception&) {
        throw;      // somebody else's
    } catch (...) { // Slang's own exceptions have no common base
        PyErr_Format(PyExc_RuntimeError, "Slang failed inside: %s", Compiler::last_internal_error().c_str());
    }
}

/// Runs on a thread that waits for a compile: lets Ctrl-C through.
void poll_signals()
{
    if (interpreter_ends())
        fail_runtime("the interpreter ends"); // nobody hears: the thread gives up its locks and sleeps
    GilAcquire gil;
    if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
}

void look_after_worker()
{
    if (const std::shared_ptr<CodeWorker> worker = CodeWorker::instance())
        worker->look_after();
}

/// The program lies beside this module.
void find_worker()
{
    Dl_info info = {};
    if (nb::cast<bool>(in_python::config.get().attr(in_python::compile_in_process.name)))
        return;
    if (!dladdr(reinterpret_cast<void*>(&find_worker), &info) || !info.dli_fname)
        return;
    const std::string path = info.dli_fname;
    CodeWorker::enable(path.substr(0, path.rfind('/') + 1) + "_slang_worker");
}

void run_unlocked(const std::function<void()>& body)
{
    if (!PyGILState_Check())
        return body();
    GilRelease release;
    body();
}

void bind_functions(nb::module_& m)
{
    m.def("start_background", &Compiler::start_background,
          "Begins starting the compiler (about 0.3 s) on its own thread and returns at once.");
    m.def(
        "torch_binding_text",
        [](const std::string& path, const std::vector<std::string>& arguments, const std::string& source) {
            GilRelease release;
            return torch_binding_text(path, arguments, source);
        },
        nb::arg("path"), nb::arg("arguments"), nb::arg("source") = "",
        "Host functions of a file (or of its text with more in it), as the C++ text that Slang makes of them for "
        "torch's extensions.");
    m.def("version", &Compiler::version, "Slang's version.");
    m.def(
        "_content_hash", [](nb::bytes data) { return content_hash({data.c_str(), data.size()}); }, nb::arg("data"),
        "The hash by which `read_files` and `lookups` tell contents apart.");
    m.def(
        "worker_process",
        [] {
            const std::shared_ptr<CodeWorker> worker = CodeWorker::instance();
            return worker ? worker->process_id() : 0;
        },
        "Id of the process that generates code; 0 when there is none.");
    m.def(
        "prelude",
        [](const std::string& language) {
            GilRelease release;
            std::shared_ptr<Compiler> compiler = Compiler::instance();
            return compiler->run([compiler, language] { return compiler->prelude(language); });
        },
        nb::arg("language"), "The text that Slang puts before generated \"cpp\" or \"cuda\" code.");
}

} // namespace
} // namespace spy

NB_MODULE(_slang, m)
{
    m.doc() = "The Slang compiler: sessions, modules, programs and reflection.";
    nb::set_leak_warnings(false);
    // Each extension module has its own copy of the counter's two function pointers; the count itself lies in the
    // object, so that an object may be made in one module and dropped in another.
    nb::intrusive_init(
        [](PyObject* object) noexcept {
            spy::GilAcquire gil;
            Py_INCREF(object);
        },
        [](PyObject* object) noexcept {
            spy::GilAcquire gil;
            Py_DECREF(object);
        });
    nb::register_exception_translator(spy::translate, nullptr);
    spy::Compiler::set_hooks({spy::poll_signals, spy::run_unlocked, spy::look_after_worker});
    spy::find_worker();
    spy::FaultWatch::enable();

    try {
        nb::module_::import_("slangpy._native"); // binds the layout types, where it exists
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ModuleNotFoundError))
            throw;
    }
    spy::bind_slang_layouts(m);
    spy::bind_slang_reflection(m);
    spy::bind_slang_session(m);
    spy::bind_slang_syntax(m);
    spy::bind_slang_facts(m);

    spy::bind_functions(m);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        spy::GilRelease release;
        spy::Compiler::drain();
        spy::CodeWorker::disable();
    }));
    spy::explain_wrong_arguments(m);
}
