#include "python/slang_options.h" // first: nanobind must come before core/ref.h
#include "python/collect.h"

#include "slang/session.h"

#include "slang/code_worker.h"
#include "slang/reflection.h"
#include "slang/rewrite.h"
#include "slang/rewrite_inline.h"
#include "slang/rewrite_loops.h"
#include "slang/type_layout.h"

#include <chrono>

namespace spy {
namespace {

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

// ------------------------------------------------------------------------------------------------ running

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
    const std::vector<std::string> warnings = session->take_warnings();
    if (warnings.empty() && seconds <= 1)
        return result;
    nb::object logger = nb::module_::import_("logging").attr("getLogger")("slangpy");
    for (const std::string& warning : warnings)
        logger.attr("warning")("%s", warning);
    if (seconds > 1)
        logger.attr("info")("Slang: %s took %.1f s", what, seconds);
    return result;
}

/// What the settings allow a compile.
CompileLimits compile_limits()
{
    nb::object config = nb::module_::import_("slangpy.config").attr("config");
    CompileLimits limits;
    limits.in_process = nb::cast<bool>(config.attr("compile_in_process"));
    limits.seconds = nb::cast<double>(config.attr("compile_timeout"));
    limits.bytes = nb::cast<uint64_t>(config.attr("compile_memory"));
    limits.fault = nb::cast<std::string>(config.attr("compile_fault"));
    return limits;
}

/// The one that create_session() was given, or None: there was none, or it has gone.
nb::object device_of(const ref<Session>& session)
{
    const nb::object get = nb::getattr(nb::cast(session), "_get_device", nb::none());
    return get.is_none() ? get : get();
}

template <typename T>
ref<T> make(const ref<Session>& session)
{
    ref<T> item = new T();
    item->session = session;
    item->device = device_of(session);
    return item;
}

ref<SlangModule> wrap(const ref<Session>& session, std::shared_ptr<ModuleData> data)
{
    ref<SlangModule> module = make<SlangModule>(session);
    module->data = std::move(data);
    return module;
}

ref<SlangEntryPoint> make_entry_point(const ref<Session>& session, EntryPointData recipe)
{
    ref<SlangEntryPoint> entry = make<SlangEntryPoint>(session);
    entry->data = compile(session, "an entry point", [&] { return session->entry_point(std::move(recipe)); });
    return entry;
}

std::shared_ptr<ModuleData> own_module(const ref<Session>& session, nb::handle value)
{
    nb::object object = nb::borrow(value);
    if (!nb::isinstance<SlangModule>(object) && nb::hasattr(object, "device_module"))
        object = object.attr("device_module"); // a Module
    SlangModule* module = nullptr;
    if (!nb::try_cast(object, module) || !module)
        fail(ErrorKind::type, "expected a SlangModule, got ", nb::cast<std::string>(nb::str(object.type())));
    if (module->session.get() != session.get())
        fail_value("module \"", module->data->name, "\" belongs to another session");
    return module->data;
}

/// A str or a path object.
std::string path_text(nb::handle value, const char* what)
{
    nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
    std::string text;
    if (!path.is_valid() || !nb::try_cast(path, text)) {
        PyErr_Clear();
        fail(ErrorKind::type, what, ": expected a str or a path, got ", nb::cast<std::string>(nb::repr(value)));
    }
    return text;
}

ref<SlangModule> compose(ref<Session> session, const std::string& name, nb::sequence modules, nb::handle conformances)
{
    std::vector<std::shared_ptr<ModuleData>> parts;
    for (nb::handle module : modules)
        parts.push_back(own_module(session, module));
    const auto items = parse_conformances(conformances);
    return wrap(session, compile(session, "composing", [&] { return session->compose_modules(name, parts, items); }));
}

ref<ShaderProgram> link(ref<Session> session, nb::sequence modules, nb::sequence entry_points, nb::handle conformances,
                        nb::handle options)
{
    ProgramData recipe;
    for (nb::handle module : modules)
        recipe.modules.push_back(own_module(session, module));
    for (nb::handle value : entry_points) {
        SlangEntryPoint* entry = nullptr;
        if (!nb::try_cast(value, entry) || !entry)
            fail(ErrorKind::type, "expected a SlangEntryPoint, got ", nb::cast<std::string>(nb::str(value.type())));
        if (entry->session.get() != session.get())
            fail_value("entry point \"", entry->data->name, "\" belongs to another session");
        recipe.entry_points.push_back(entry->data);
    }
    recipe.conformances = parse_conformances(conformances);
    recipe.options = parse_link_options(options);
    ref<ShaderProgram> program = make<ShaderProgram>(session);
    program->data = compile(session, "linking", [&] { return session->link(std::move(recipe)); });
    return program;
}

ref<ProgramReflection> reflection_of(Session& session, const std::shared_ptr<Layout>& layout)
{
    const Compiler::Lock lock(*session.state()->compiler);
    return Reflection::view<ProgramReflection>(layout, layout->program);
}

/// A module, more source beside it, and the entry points named.
ref<ShaderProgram> load_program(ref<Session> session, const std::string& module_name, std::vector<std::string> names,
                                std::optional<std::string> additional_source, nb::handle options)
{
    ProgramData recipe;
    recipe.options = parse_link_options(options);
    ref<ShaderProgram> program = make<ShaderProgram>(session);
    program->data = compile(session, "loading a program", [&] {
        recipe.modules.push_back(session->load_module(module_name));
        if (additional_source)
            recipe.modules.push_back(session->load_module_from_source(
                cat(recipe.modules[0]->name, "_", content_hash(*additional_source)), *additional_source, ""));
        for (const std::string& name : names)
            recipe.entry_points.push_back(session->entry_point({recipe.modules[0], name, {}, {}, {}, {}}));
        return session->link(std::move(recipe));
    });
    return program;
}

// ------------------------------------------------------------------------------------------------ bindings

void bind_session_class(nb::module_& m)
{
    auto session = nb::class_<Session, Object>(m, "SlangSession", nb::dynamic_attr(), // ._get_device
                                                "A set of compiler options with its modules.");
    session
        .def("__repr__", [](nb::handle self) { return nb::module_::import_("slangpy.describe").attr("describe")(self); })
        .def("__init__", [](Session* self, nb::object target, nb::dict options) {
            new (self) Session(parse_target(target), parse_options(options)); },
            nb::arg("target"), nb::arg("options") = nb::dict())
        .def("load_module", [](ref<Session> self, nb::handle name) {
            const std::string text = path_text(name, "load_module 'name'");
            return wrap(self, compile(self, "loading a module", [&] { return self->load_module(text); })); },
            nb::arg("name"), nb::sig("def load_module(self, name: str | os.PathLike[str]) -> SlangModule"), "Loads a module from a file: an absolute path or one relative to an include path.")
        .def("load_module_from_source",
            [](ref<Session> self, const std::string& name, const std::string& source, nb::handle path) {
                const std::string file = path.is_none() ? "" : path_text(path, "load_module_from_source 'path'");
                return wrap(self, compile(self, "loading a module", [&] {
                    return self->load_module_from_source(name, source, file); })); },
            nb::arg("name"), nb::arg("source"), nb::arg("path") = nb::none())
        .def("load_module_from_blob",
            [](ref<Session> self, const std::string& name, const std::string& path, nb::bytes blob) {
                const std::string bytes(blob.c_str(), blob.size());
                return wrap(self, compile(self, "loading a module", [&] {
                    return self->load_module_from_blob(name, path, bytes); })); },
            nb::arg("name"), nb::arg("path"), nb::arg("blob"), "Loads what SlangModule.serialize() gave.")
        .def("compose_modules", compose, nb::arg("name"), nb::arg("modules"), nb::arg("type_conformances") = nb::none())
        .def("link", link, nb::arg("modules"), nb::arg("entry_points"), nb::arg("type_conformances") = nb::none(),
            nb::arg("link_options") = nb::none())
        .def("link_program", [](ref<Session> self, nb::sequence modules, nb::sequence entry_points, nb::handle options) {
            return link(self, modules, entry_points, nb::none(), options); },
            nb::arg("modules"), nb::arg("entry_points"), nb::arg("link_options") = nb::none())
        .def("load_program", load_program, nb::arg("module_name"), nb::arg("entry_point_names"),
            nb::arg("additional_source") = nb::none(), nb::arg("link_options") = nb::none())
        .def("load_source", [](ref<Session> self, const std::string& name) {
            GilRelease release;
            return self->load_source(name); }, nb::arg("module_name"), "The text of the file that load_module(name) reads.")
        .def("reload", [](ref<Session> self) { compile(self, "reloading", [&] { self->reload(); return 0; }); },
            "Loads and links everything again; when that fails, nothing changes and the error is raised.")
        .def("resolve_path", [](ref<Session> self, const std::string& name) {
            GilRelease release;
            return self->resolve_path(name); }, nb::arg("name"), "The file that load_module(name) reads.")
        .def_prop_ro("device", [](ref<Session> self) { return device_of(self); })
        .def_prop_ro("generation", [](ref<Session> self) {
            GilRelease release;
            return self->state()->generation; })
        .def_prop_ro("read_files", [](ref<Session> self) {
            GilRelease release;
            return self->state()->files->read_files(); }, "Path -> content hash of every file read.")
        .def_prop_ro("missing_files", [](ref<Session> self) {
            GilRelease release;
            return self->state()->files->missing_files(); }, "Paths that were looked for and not found.")
        .def_prop_ro("loaded_names", [](ref<Session> self) {
            const std::shared_ptr<SessionState> state = self->state();
            const Compiler::Lock lock(*state->compiler);
            std::vector<std::string> names;
            for (SlangInt i = 0; i < state->session->getLoadedModuleCount(); ++i)
                names.emplace_back(state->session->getLoadedModule(i)->getName());
            return names; }, "Names of all modules that the compiler has loaded, by itself or as asked.")
        .def("lookups", [](ref<Session> self, uint64_t since) {
            std::pair<uint64_t, std::vector<SourceFiles::Lookup>> found;
            {
                GilRelease release;
                found = self->state()->files->lookups(since);
            }
            nb::list items;
            for (const SourceFiles::Lookup& item : found.second)
                items.append(nb::make_tuple(item.asked, item.real, item.hash, item.relative));
            return nb::make_tuple(found.first, items); }, nb::arg("since") = 0,
            "A number to go on from, and the files that were looked for after `since`: (path as asked, path found or \"\", "
            "hash of what was read or \"\", whether asked for relative to the working folder).")
        .def_prop_ro("downstream_args", [](const Session& self) { return self.options().downstream_args; })
        .def_prop_ro("include_paths", [](const Session& self) { return self.options().include_paths; })
        .def_prop_ro("format", [](const Session& self) { return self.target().format; });
    m.attr("Session") = session;
}

void bind_module_class(nb::module_& m)
{
    nb::class_<SlangModule, Object>(m, "SlangModule", nb::type_slots(CollectedSlots<SlangModule>::slots),
        "A loaded module.")
        .def_prop_ro("session", [](const SlangModule& self) { return self.session; })
        .def_prop_ro("device", [](const SlangModule& self) { return self.device; })
        .def_prop_ro("name", [](const SlangModule& self) { return self.data->name; })
        .def_prop_ro("path", [](const SlangModule& self) { return self.data->path; })
        .def_prop_ro("layout", [](SlangModule& self) { return reflection_of(*self.session, self.data->layout); })
        .def_prop_ro("source", [](const SlangModule& self) -> nb::object {
            if (self.data->source != ModuleData::Source::text)
                return nb::none();
            return nb::str(self.data->content.data(), self.data->content.size()); }, nb::sig("def source(self) -> str | None"),
            "The text that it was loaded from; None for files, binary and composed modules.")
        .def_prop_ro("is_composed", [](const SlangModule& self) {
            return self.data->source == ModuleData::Source::composed; })
        .def_prop_ro("source_modules", [](const SlangModule& self) {
            std::vector<ref<SlangModule>> result;
            for (const auto& part : self.data->parts)
                result.push_back(wrap(self.session, part));
            return result; })
        .def_prop_ro("entry_points", [](const SlangModule& self) {
            std::vector<ref<SlangEntryPoint>> result;
            for (const std::string& name : self.session->entry_point_names(self.data))
                result.push_back(make_entry_point(self.session, {self.data, name, {}, {}, {}, {}}));
            return result; })
        .def("entry_point", [](const SlangModule& self, const std::string& name, nb::handle conformances) {
            return make_entry_point(self.session, {self.data, name, {}, {}, parse_conformances(conformances), {}}); },
            nb::arg("name"), nb::arg("type_conformances") = nb::none())
        .def_prop_ro("module_decl", [](const SlangModule& self) {
            if (!self.data->module)
                fail_runtime("module \"", self.data->name,
                             "\" is composed and has no declaration of its own; use its source_modules");
            const Compiler::Lock lock(*self.session->state()->compiler);
            return Reflection::view<DeclReflection>(self.data->layout, self.data->module->getModuleReflection()); })
        .def_prop_ro("dependencies", [](const SlangModule& self) {
            const Compiler::Lock lock(*self.session->state()->compiler);
            return dependency_files(*self.data); }, "Paths of the files it was made of, those of its imports included.")
        .def_prop_ro("imports", [](const SlangModule& self) {
            const Compiler::Lock lock(*self.session->state()->compiler);
            return imported_modules(*self.data); }, "Names of the modules it imports, directly or not.")
        .def("serialize", [](const SlangModule& self) {
            const std::string bytes
                = compile(self.session, "serializing", [&] { return self.session->serialize(self.data); });
            return nb::bytes(bytes.data(), bytes.size()); })
        .def("__repr__", [](const SlangModule& self) {
            return cat("SlangModule(\n  name = \"", self.data->name, "\",\n  path = \"", self.data->path, "\"\n)"); });
}

std::vector<SpecializationArg> parse_arguments(nb::sequence values)
{
    std::vector<SpecializationArg> result;
    for (nb::handle value : values) {
        std::string name;
        if (nb::isinstance<nb::str>(value) && nb::try_cast(value, name))
            result.push_back({true, name});
        else if (nb::hasattr(value, "is_type") && nb::hasattr(value, "text") && nb::try_cast(value.attr("text"), name))
            result.push_back({nb::cast<bool>(value.attr("is_type")), name});
        else
            fail(ErrorKind::type, "specialize: expected SpecializationArg.from_type(...) or .from_expr(...), got ",
                 nb::cast<std::string>(nb::repr(value)));
    }
    return result;
}

void bind_entry_point_class(nb::module_& m)
{
    const auto renamed = [](const SlangEntryPoint& self, const std::string& name) {
        if (name.empty())
            fail_value("rename: the new name is empty");
        EntryPointData recipe = {self.data->module, self.data->name, name, self.data->arguments,
                                 self.data->conformances, {}};
        return make_entry_point(self.session, std::move(recipe));
    };
    const auto layout = [](const SlangEntryPoint& self) {
        const Compiler::Lock lock(*self.session->state()->compiler);
        return Reflection::view<EntryPointLayout>(self.data->layout, self.data->layout->program->getEntryPointByIndex(0));
    };
    nb::class_<SlangEntryPoint, Object>(m, "SlangEntryPoint", nb::type_slots(CollectedSlots<SlangEntryPoint>::slots),
        "An entry point of a module.")
        .def_prop_ro("session", [](const SlangEntryPoint& self) { return self.session; })
        .def_prop_ro("device", [](const SlangEntryPoint& self) { return self.device; })
        .def_prop_ro("module", [](const SlangEntryPoint& self) { return wrap(self.session, self.data->module); })
        .def_prop_ro("name", [](const SlangEntryPoint& self) {
            return self.data->new_name.empty() ? self.data->name : self.data->new_name; })
        .def_prop_ro("layout", layout)
        .def_prop_ro("stage", [layout](const SlangEntryPoint& self) { return layout(self)->stage(); })
        .def("rename", renamed, nb::arg("new_name"), "The same entry point under another name.")
        .def("with_name", renamed, nb::arg("new_name"), "The same entry point under another name.")
        .def("specialize", [](const SlangEntryPoint& self, nb::sequence arguments) {
            EntryPointData recipe = {self.data->module, self.data->name, self.data->new_name,
                                     parse_arguments(arguments), self.data->conformances, {}};
            return make_entry_point(self.session, std::move(recipe)); },
            nb::arg("specialization_args"))
        .def("__repr__", [layout](const SlangEntryPoint& self) {
            return cat("SlangEntryPoint(\n  name = \"", self.data->name, "\",\n  stage = ", layout(self)->stage(),
                       "\n)"); });
}

void bind_program_class(nb::module_& m)
{
    nb::class_<ShaderProgram, Object>(m, "ShaderProgram", nb::type_slots(CollectedSlots<ShaderProgram>::slots),
        "Modules and entry points linked into one.")
        .def("__repr__", [](nb::handle self) { return nb::module_::import_("slangpy.describe").attr("describe")(self); })
        .def_prop_ro("session", [](const ShaderProgram& self) { return self.session; })
        .def_prop_ro("device", [](const ShaderProgram& self) { return self.device; })
        .def_prop_ro("layout", [](ShaderProgram& self) { return reflection_of(*self.session, self.data->layout); })
        .def_prop_ro("reflection", [](nb::handle self) {
            return nb::module_::import_("slangpy.session").attr("ReflectionCursor")(self); })
        .def_prop_ro("entry_point_names", [](const ShaderProgram& self) {
            std::vector<std::string> names;
            for (const auto& entry : self.data->entry_points)
                names.push_back(entry->new_name.empty() ? entry->name : entry->new_name);
            return names; })
        .def_prop_ro("modules", [](const ShaderProgram& self) {
            std::vector<ref<SlangModule>> result;
            for (const auto& module : self.data->modules)
                result.push_back(wrap(self.session, module));
            return result; })
        .def_prop_ro("downstream_args", [](const ShaderProgram& self) {
            return self.data->options.downstream_args.value_or(self.session->options().downstream_args); })
        .def_prop_ro("floating_point_mode", [](const ShaderProgram& self) {
            constexpr const char* names[] = {"default", "fast", "precise"};
            return names[int(self.data->options.floating_point_mode.value_or(self.session->options().floating_point_mode))]; })
        .def_prop_ro("optimization", [](const ShaderProgram& self) {
            return int(self.data->options.optimization.value_or(self.session->options().optimization)); })
        .def_prop_ro("debug_info", [](const ShaderProgram& self) {
            return int(self.data->options.debug_info.value_or(self.session->options().debug_info)); })
        .def_prop_ro("generation", [](const ShaderProgram& self) { return self.data->layout->state->generation; })
        .def("code", [](const ShaderProgram& self, int index) {
            const CompileLimits limits = compile_limits();
            const std::string code
                = compile(self.session, "generating code", [&] { return self.session->code(self.data, index, limits); });
            return nb::bytes(code.data(), code.size()); },
            nb::arg("entry_point_index") = 0, "Target code of one entry point: text, or SPIR-V words.")
        .def("content_key", [](const ShaderProgram& self, int index) {
            return compile(self.session, "hashing", [&] { return self.session->content_key(self.data, index); }); },
            nb::arg("entry_point_index") = 0, "Hash of all that decides what code() gives: the same in every process.")
        .def("get_compilation_report", [](nb::handle self) {
            return nb::module_::import_("slangpy.device_reports").attr("_program_report")(self); },
            nb::sig("def get_compilation_report(self) -> list[dict]"),
            "What building the kernels of this program took; needs a device with enable_compilation_reports.")
        .def("binding_layout", [](const ShaderProgram& self, uint32_t index) {
            const Compiler::Lock lock(*self.session->state()->compiler);
            return make_program_layout(self.data->layout->program, index, self.session->target().format); },
            nb::arg("entry_point_index") = 0, "Where the parameters of one entry point are bound, as plain data.");
}

} // namespace

void bind_slang_session(nb::module_& m)
{
    bind_session_class(m);
    bind_module_class(m);
    bind_entry_point_class(m);
    bind_program_class(m);
    m.def("rewrite_loops", [](const std::string& source) { return rewrite_loops(source); }, nb::arg("source"),
          "Source text with loops that Slang differentiates rightly.");
    m.def("inline_differentiable", [](const std::string& source) { return inline_differentiable(source); }, nb::arg("source"),
          "What is compiled for second derivatives; for tests.");
    m.def("rewrite_constraints", [](const std::string& source) { return rewrite_constraints(source); }, nb::arg("source"),
          "Source text as Slang gets to see it: tensor interfaces in constraint position renamed.");
    m.def("sanitize_name", [](const std::string& name) { return sanitize_name(name); }, nb::arg("name"), "Name text as Slang gets to see it; empty when refused.");
}

} // namespace spy
