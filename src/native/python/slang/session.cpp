// Binds sessions: how they load modules, and what they say of themselves.
#include "python/slang/objects.h" // first: nanobind must come before core/ref.h

#include "core/content_hash.h"
#include "core/python_names.h"
#include "slang/session.h"

#include "slang/isolation/worker.h"
#include "slang/reflection/reflection.h"
#include "slang/type_layout.h"

#include <chrono>
#include <fstream>

namespace spy {
namespace {

// ------------------------------------------------------------------------------------------------ running

std::shared_ptr<ModuleData> own_module(const ref<Session>& session, nb::handle value)
{
    nb::object object = nb::borrow(value);
    if (!nb::isinstance<SlangModule>(object) && nb::hasattr(object, in_python::device_module.name))
        object = object.attr(in_python::device_module.name); // a Module
    SlangModule* module = nullptr;
    if (!nb::try_cast(object, module) || !module)
        fail(ErrorKind::type, "expected a SlangModule, got ", nb::cast<std::string>(nb::str(object.type())));
    if (module->session.get() != session.get())
        fail_value("module \"", module->data->name, "\" belongs to another session; load it with this one");
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

ref<SlangModule> load_module(ref<Session> session, nb::handle name)
{
    const std::string text = path_text(name, "load_module 'module_name'");
    return wrap(session, compile(session, "loading a module", [&] { return session->load_module(text); }));
}

ref<SlangModule> load_module_from_source(ref<Session> session, const std::string& name, const std::string& source,
                                         nb::handle path)
{
    const std::string file = path.is_none() ? "" : path_text(path, "load_module_from_source 'path'");
    return wrap(session, compile(session, "loading a module", [&] {
                    return session->load_module_from_source(name, source, file);
                }));
}

std::string bytes_of_file(const std::string& path, uint64_t begin)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff end = file ? std::streamoff(file.tellg()) : -1;
    if (end < std::streamoff(begin))
        fail_runtime("cannot read ", path, " from byte ", begin, " on");
    std::string bytes(size_t(end) - begin, '\0');
    file.seekg(std::streamoff(begin));
    if (!file.read(bytes.data(), std::streamsize(bytes.size())))
        fail_runtime("cannot read ", path);
    return bytes;
}

ref<SlangModule> load_bytes(ref<Session> session, const std::string& name, const std::string& path, std::string bytes)
{
    return wrap(session, compile(session, "loading a module", [&] {
                    return session->load_module_from_blob(name, path, std::move(bytes));
                }));
}

ref<SlangModule> load_module_from_file(ref<Session> session, const std::string& name, const std::string& path,
                                       nb::handle file, uint64_t begin)
{
    return load_bytes(session, name, path, bytes_of_file(path_text(file, "_load_module_from_file 'file'"), begin));
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
            fail_value("entry point \"", entry->data->name,
                       "\" belongs to another session; take it from a module of this one");
        recipe.entry_points.push_back(entry->data);
    }
    recipe.conformances = parse_conformances(conformances);
    recipe.options = parse_link_options(options);
    ref<ShaderProgram> program = make<ShaderProgram>(session);
    program->data = compile(session, "linking", [&] { return session->link(std::move(recipe)); });
    return program;
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

using SessionClass = nb::class_<Session, Object>;

/// The names of all modules that the compiler has loaded, by itself or as asked.
std::vector<std::string> loaded_names(ref<Session> self)
{
    const std::shared_ptr<SessionState> state = self->state();
    const Compiler::Lock lock(*state->compiler);
    std::vector<std::string> names;
    for (SlangInt i = 0; i < state->session->getLoadedModuleCount(); ++i)
        names.emplace_back(state->session->getLoadedModule(i)->getName());
    return names;
}

std::vector<std::string> library_imports(ref<Session> self, const std::string& source, const std::string& name,
                                         const std::string& path)
{
    GilRelease release;
    const std::set<std::string> names = self->state()->files->library_imports(source, name, path);
    return {names.begin(), names.end()};
}

nb::tuple lookups(ref<Session> self, uint64_t since)
{
    std::pair<uint64_t, std::vector<SourceFiles::Lookup>> found;
    {
        GilRelease release;
        found = self->state()->files->lookups(since);
    }
    nb::list items;
    for (const SourceFiles::Lookup& item : found.second)
        items.append(nb::make_tuple(item.asked, item.real, item.hash, item.relative));
    return nb::make_tuple(found.first, items);
}

void bind_session_loading(SessionClass& session)
{
    session.def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def(
            "__init__",
            [](Session* self, nb::object target, nb::dict options) {
                new (self) Session(parse_target(target), parse_options(options));
            },
            nb::arg("target"), nb::arg("options") = nb::dict())
        .def("load_module", load_module, nb::arg("module_name"),
             nb::sig("def load_module(self, module_name: str | os.PathLike[str]) -> SlangModule"),
             "Loads a module from a file: an absolute path or one relative to an include path.")
        .def("load_module", load_module, nb::arg("name"),
             nb::sig("def load_module(self, name: str | os.PathLike[str]) -> SlangModule"),
             "The older name of the parameter.")
        .def("load_module_from_source", load_module_from_source, nb::arg("module_name"), nb::arg("source"),
             nb::arg("path") = nb::none(), "Loads a module from text; `path` is what messages show.")
        .def("load_module_from_source", load_module_from_source, nb::arg("name"), nb::arg("source"),
             nb::arg("path") = nb::none(), "The older name of the parameter.")
        .def(
            "load_module_from_blob",
            [](ref<Session> self, const std::string& name, const std::string& path, nb::bytes blob) {
                return load_bytes(self, name, path, {blob.c_str(), blob.size()});
            },
            nb::arg("name"), nb::arg("path"), nb::arg("blob"), "Loads what SlangModule.serialize() gave.")
        .def("_load_module_from_file", load_module_from_file, nb::arg("name"), nb::arg("path"), nb::arg("file"),
             nb::arg("begin"), "load_module_from_blob of what a file has from a place on, which Python does not hold.")
        .def("compose_modules", compose, nb::arg("name"), nb::arg("modules"), nb::arg("type_conformances") = nb::none(),
             "One module that is seen as all of them: entry points, types and functions. All must be of this session.")
        .def("link", link, nb::arg("modules"), nb::arg("entry_points"), nb::arg("type_conformances") = nb::none(),
             nb::arg("link_options") = nb::none(),
             "The program of modules and entry points. SlangCompileError if they do not fit.")
        .def(
            "link_program",
            [](ref<Session> self, nb::sequence modules, nb::sequence entry_points, nb::handle options) {
                return link(self, modules, entry_points, nb::none(), options);
            },
            nb::arg("modules"), nb::arg("entry_points"), nb::arg("link_options") = nb::none(),
            "The program of modules and entry points. SlangCompileError if they do not fit.")
        .def("load_program", load_program, nb::arg("module_name"), nb::arg("entry_point_names"),
             nb::arg("additional_source") = nb::none(), nb::arg("link_options") = nb::none(),
             "Loads a module by name, with `additional_source` appended to it, and links entry points of it.")
        .def(
            "load_source",
            [](ref<Session> self, const std::string& name) {
                GilRelease release;
                return self->load_source(name);
            },
            nb::arg("module_name"), "The text of the file that load_module(name) reads.")
        .def(
            "reload",
            [](ref<Session> self) {
                compile(self, "reloading", [&] {
                    self->reload();
                    return 0;
                });
            },
            "Loads and links everything again; when that fails, nothing changes and the error is raised.");
}

void bind_session_state(SessionClass& session)
{
    session
        .def(
            "resolve_path",
            [](ref<Session> self, const std::string& name) {
                GilRelease release;
                return self->resolve_path(name);
            },
            nb::arg("name"), "The file that load_module(name) reads.")
        .def_prop_ro("device", [](ref<Session> self) { return device_of(self); })
        .def_prop_ro(
            "desc", [](nb::handle self) { return in_python::session_desc.get()(self); },
            nb::sig("def desc(self) -> slangpy.compiler.session.SlangSessionDesc"),
            "What it was made with; the values are those in force.")
        .def_prop_ro("generation",
                     [](ref<Session> self) {
                         GilRelease release;
                         return self->state()->generation;
                     })
        .def_prop_ro(
            "read_files",
            [](ref<Session> self) {
                GilRelease release;
                return self->state()->files->read_files();
            },
            "Path -> content hash of every file read.")
        .def_prop_ro(
            "missing_files",
            [](ref<Session> self) {
                GilRelease release;
                return self->state()->files->missing_files();
            },
            "Paths that were looked for and not found.")
        .def(
            "text_of",
            [](ref<Session> self, const std::string& path) {
                GilRelease release;
                return self->state()->files->text_of(path);
            },
            nb::arg("path"), "The text that a module was made of, by its path among the dependencies; None for files.")
        .def_prop_ro("loaded_names", &loaded_names,
                     "Names of all modules that the compiler has loaded, by itself or as asked.")
        .def(
            "take_warnings", [](ref<Session> self) { return self->take_warnings(); },
            "Those of a session for whole programs since the last call; others are logged.")
        .def("_library_imports", &library_imports, nb::arg("source"), nb::arg("name"), nb::arg("path"),
             "Modules of our library that a source may import, itself or by what it imports, once it is rewritten. "
             "name: of a module made of text, else empty; path: its file, or what stands for it.")
        .def("lookups", &lookups, nb::arg("since") = 0,
             "A number to go on from, and the files that were looked for after `since`: (path as asked, path found or "
             "\"\", hash of what was read or \"\", whether asked for relative to the working folder).")
        .def_prop_ro(
            "experimental", [](const Session& self) { return self.options().experimental; },
            "Whether Slang's experimental features are on.")
        .def_prop_ro("downstream_args", [](const Session& self) { return self.options().downstream_args; })
        .def_prop_ro("include_paths", [](const Session& self) { return self.options().include_paths; })
        .def_prop_ro("format", [](const Session& self) { return self.target().format; });
}

} // namespace

void bind_slang_session(nb::module_& m)
{
    SessionClass session(m, "SlangSession", nb::dynamic_attr(), nb::is_weak_referenceable(), // ._get_device
                         "A set of compiler options with its modules.");
    bind_session_loading(session);
    bind_session_state(session);
    m.attr("Session") = session;
    bind_programs(m);
    bind_rewrites(m);
}

} // namespace spy
