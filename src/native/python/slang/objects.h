#pragma once
// The Python classes of modules, entry points and programs.
#include "python/slang/options.h" // first: nanobind must come before core/ref.h
#include "python/collect.h"

#include <chrono>

namespace spy {

/// The Python classes: a session and one thing of it. They hold the device; a session that the device holds does not.
struct SlangModule : Object {
    nb::object device;
    ref<Session> session;
    std::shared_ptr<ModuleData> data;
};

struct SlangEntryPoint : Object {
    nb::object device;
    ref<Session> session;
    std::shared_ptr<EntryPointData> data;
};

struct ShaderProgram : Object {
    nb::object device;
    ref<Session> session;
    std::shared_ptr<ProgramData> data;
};

template <typename T, typename Visit>
int visit_objects(T& item, const Visit& visit)
{
    return visit(item.device);
}
template <typename T>
void clear_objects(T& item)
{
    nb::object old = std::exchange(item.device, nb::none());
}

/// Runs a compile without the interpreter lock, then reports warnings and slowness.
template <typename F>
auto compile(const ref<Session>& session, const char* what, F body)
{
    const auto begin = std::chrono::steady_clock::now();
    auto result = [&] {
        GilRelease release;
        return body();
    }();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool asks = session->options().whole_program; // who compiles kernels takes the warnings
    const std::vector<std::string> warnings = asks ? std::vector<std::string>() : session->take_warnings();
    if (warnings.empty() && seconds <= 1)
        return result;
    nb::object logger = nb::module_::import_("logging").attr("getLogger")("slangpy");
    for (const std::string& warning : warnings)
        logger.attr("warning")("%s", warning);
    if (seconds > 1)
        logger.attr("info")("Slang: %s took %.1f s", what, seconds);
    return result;
}

/// The one that create_session() was given, or None: there was none, or it has gone.
nb::object device_of(const ref<Session>& session);

template <typename T>
ref<T> make(const ref<Session>& session)
{
    ref<T> item = new T();
    item->session = session;
    item->device = device_of(session);
    return item;
}

ref<SlangModule> wrap(const ref<Session>& session, std::shared_ptr<ModuleData> data);
ref<SlangEntryPoint> make_entry_point(const ref<Session>& session, EntryPointData recipe);

void bind_programs(nb::module_& m); // program.cpp
void bind_rewrites(nb::module_& m); // rewrites.cpp

} // namespace spy
