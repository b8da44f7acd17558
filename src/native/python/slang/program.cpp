// SlangModule, SlangEntryPoint, ShaderProgram.
#include "python/slang/objects.h" // first: nanobind must come before core/ref.h

#include "slang/isolation/worker.h"
#include "slang/reflection/reflection.h"
#include "slang/type_layout.h"
#include "core/python_names.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <numeric>

namespace spy {

nb::object device_of(const ref<Session>& session)
{
    const nb::object get = nb::getattr(nb::cast(session), "_get_device", nb::none());
    return get.is_none() ? get : get();
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

namespace {

/// What the settings allow a compile.
CompileLimits compile_limits()
{
    nb::object config = in_python::config.get();
    CompileLimits limits;
    limits.in_process = nb::cast<bool>(config.attr(in_python::compile_in_process.name));
    limits.seconds = nb::cast<double>(config.attr(in_python::compile_timeout.name));
    limits.bytes = nb::cast<uint64_t>(config.attr(in_python::compile_memory.name));
    limits.fault = nb::cast<std::string>(config.attr(in_python::compile_fault.name));
    return limits;
}

ref<ProgramReflection> reflection_of(Session& session, const std::shared_ptr<Layout>& layout)
{
    const Compiler::Lock lock(*session.state()->compiler);
    return Reflection::view<ProgramReflection>(layout, layout->program);
}

using ModuleClass = nb::class_<SlangModule, Object>;

void bind_module_content(ModuleClass& cls)
{
    cls.def_prop_ro("module_decl",
                    [](const SlangModule& self) {
                        if (!self.data->module)
                            fail_runtime("module \"", self.data->name,
                                         "\" is composed and has no declaration of its own; use its source_modules");
                        const Compiler::Lock lock(*self.session->state()->compiler);
                        return Reflection::view<DeclReflection>(self.data->layout,
                                                                self.data->module->getModuleReflection());
                    })
        .def_prop_ro(
            "dependencies",
            [](const SlangModule& self) {
                const Compiler::Lock lock(*self.session->state()->compiler);
                return dependency_files(*self.data);
            },
            "Paths of the files it was made of, those of its imports included.")
        .def_prop_ro(
            "imports",
            [](const SlangModule& self) {
                const Compiler::Lock lock(*self.session->state()->compiler);
                return imported_modules(*self.data);
            },
            "Names of the modules it imports, directly or not.")
        .def(
            "serialize",
            [](const SlangModule& self) {
                const std::string bytes = compile(self.session, "serializing",
                                                  [&] { return self.session->serialize(self.data); });
                return nb::bytes(bytes.data(), bytes.size());
            },
            "The module in Slang's serialised form, as bytes.")
        .def("__repr__", [](const SlangModule& self) {
            return cat("SlangModule(\n  name = \"", self.data->name, "\",\n  path = \"", self.data->path, "\"\n)");
        });
}

void bind_module_class(nb::module_& m)
{
    ModuleClass cls(m, "SlangModule", nb::type_slots(CollectedSlots<SlangModule>::slots), "A loaded module.");
    cls.def_prop_ro("session", [](const SlangModule& self) { return self.session; })
        .def_prop_ro("device", [](const SlangModule& self) { return self.device; })
        .def_prop_ro("name", [](const SlangModule& self) { return self.data->name; })
        .def_prop_ro("path", [](const SlangModule& self) { return self.data->path; })
        .def_prop_ro("layout", [](SlangModule& self) { return reflection_of(*self.session, self.data->layout); })
        .def_prop_ro(
            "source",
            [](const SlangModule& self) -> nb::object {
                if (self.data->source != ModuleData::Source::text)
                    return nb::none();
                return nb::str(self.data->content.data(), self.data->content.size());
            },
            nb::sig("def source(self) -> str | None"),
            "The text that it was loaded from; None for files, binary and composed modules.")
        .def_prop_ro("is_composed",
                     [](const SlangModule& self) { return self.data->source == ModuleData::Source::composed; })
        .def_prop_ro("is_binary", [](const SlangModule& self) { return self.data->source == ModuleData::Source::blob; })
        .def_prop_ro("source_modules",
                     [](const SlangModule& self) {
                         std::vector<ref<SlangModule>> result;
                         for (const auto& part : self.data->parts)
                             result.push_back(wrap(self.session, part));
                         return result;
                     })
        .def_prop_ro("entry_points",
                     [](const SlangModule& self) {
                         std::vector<ref<SlangEntryPoint>> result;
                         for (const std::string& name : self.session->entry_point_names(self.data))
                             result.push_back(make_entry_point(self.session, {self.data, name, {}, {}, {}, {}}));
                         return result;
                     })
        .def(
            "entry_point",
            [](const SlangModule& self, const std::string& name, nb::handle conformances) {
                return make_entry_point(self.session, {self.data, name, {}, {}, parse_conformances(conformances), {}});
            },
            nb::arg("name"), nb::arg("type_conformances") = nb::none(),
            "The entry point of this name. `type_conformances`: TypeConformance or tuples (interface, type[, id]). "
            "SlangCompileError if there is none.");
    bind_module_content(cls);
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
        EntryPointData recipe = {self.data->module,    self.data->name,         name,
                                 self.data->arguments, self.data->conformances, {}};
        return make_entry_point(self.session, std::move(recipe));
    };
    const auto layout = [](const SlangEntryPoint& self) {
        const Compiler::Lock lock(*self.session->state()->compiler);
        return Reflection::view<EntryPointLayout>(self.data->layout,
                                                  self.data->layout->program->getEntryPointByIndex(0));
    };
    nb::class_<SlangEntryPoint, Object>(m, "SlangEntryPoint", nb::type_slots(CollectedSlots<SlangEntryPoint>::slots),
                                        "An entry point of a module.")
        .def_prop_ro("session", [](const SlangEntryPoint& self) { return self.session; })
        .def_prop_ro("device", [](const SlangEntryPoint& self) { return self.device; })
        .def_prop_ro("module", [](const SlangEntryPoint& self) { return wrap(self.session, self.data->module); })
        .def_prop_ro("name",
                     [](const SlangEntryPoint& self) {
                         return self.data->new_name.empty() ? self.data->name : self.data->new_name;
                     })
        .def_prop_ro("layout", layout)
        .def_prop_ro(
            "stage", [layout](const SlangEntryPoint& self) { return stage_object(layout(self)->stage()); },
            nb::sig("def stage(self) -> slangpy.compiler.enums.ShaderStage"))
        .def("rename", renamed, nb::arg("new_name"), "The same entry point under another name.")
        .def("with_name", renamed, nb::arg("new_name"), "The same entry point under another name.")
        .def(
            "specialize",
            [](const SlangEntryPoint& self, nb::sequence arguments) {
                EntryPointData recipe = {self.data->module,          self.data->name,         self.data->new_name,
                                         parse_arguments(arguments), self.data->conformances, {}};
                return make_entry_point(self.session, std::move(recipe));
            },
            nb::arg("specialization_args"),
            "The entry point with types or values for its generic parameters: a list of SpecializationArg. "
            "SlangCompileError for a type that is not found.")
        .def("__repr__", [layout](const SlangEntryPoint& self) {
            return cat("SlangEntryPoint(\n  name = \"", self.data->name, "\",\n  stage = ", layout(self)->stage(),
                       "\n)");
        });
}

/// Bytes of a type without padding; 0 where it holds what has no bytes.
uint64_t packed_size(slang::TypeReflection* type)
{
    using Kind = slang::TypeReflection::Kind;
    switch (type->getKind()) {
    case Kind::Struct: {
        uint64_t size = 0;
        for (unsigned i = 0; i < type->getFieldCount(); ++i)
            size += packed_size(type->getFieldByIndex(i)->getType());
        return size;
    }
    case Kind::Array: return type->getElementCount() * packed_size(type->getElementType());
    case Kind::Vector:
    case Kind::Matrix:
    case Kind::Scalar: {
        const uint64_t count = std::max(type->getRowCount(), 1u) * std::max(type->getColumnCount(), 1u);
        const ScalarInfo& info = scalar_info(scalar_of(type));
        return count * info.size;
    }
    default: return 0;
    }
}

using RaySizes = std::tuple<std::string, std::string, std::pair<uint64_t, uint64_t>>;

std::vector<RaySizes> ray_sizes(const ShaderProgram& self)
{
    const Compiler::Lock lock(*self.session->state()->compiler);
    slang::ProgramLayout* program = self.data->layout->program;
    std::vector<RaySizes> out;
    for (size_t i = 0; i < self.data->entry_points.size(); ++i) {
        slang::EntryPointReflection* entry = program->getEntryPointByIndex(i);
        std::pair<uint64_t, uint64_t> sizes{};
        for (unsigned k = 0; k < entry->getParameterCount(); ++k) {
            slang::TypeLayoutReflection* type = entry->getParameterByIndex(k)->getTypeLayout();
            for (unsigned c = 0; c < type->getCategoryCount(); ++c) {
                if (type->getCategoryByIndex(c) == slang::ParameterCategory::RayPayload)
                    sizes.first = packed_size(type->getType());
                if (type->getCategoryByIndex(c) == slang::ParameterCategory::HitAttributes)
                    sizes.second = packed_size(type->getType());
            }
        }
        out.emplace_back(entry->getName(), stage_name(ShaderStage(entry->getStage())), sizes);
    }
    return out;
}

using ProgramClass = nb::class_<ShaderProgram, Object>;

void bind_program_code(ProgramClass& cls)
{
    cls.def(
           "code",
           [](const ShaderProgram& self, int index) {
               const CompileLimits limits = compile_limits();
               const std::string code = compile(self.session, "generating code",
                                                [&] { return self.session->code(self.data, index, limits); });
               return nb::bytes(code.data(), code.size());
           },
           nb::arg("entry_point_index") = 0, "Target code of one entry point: text, or SPIR-V words.")
        .def(
            "whole_code",
            [](const ShaderProgram& self) {
                const std::string code = compile(self.session, "generating code",
                                                 [&] { return self.session->whole_code(self.data); });
                return nb::bytes(code.data(), code.size());
            },
            "Target code of all functions that are marked for export; of sessions with `whole_program`.")
        .def(
            "content_key",
            [](const ShaderProgram& self, int index) {
                return compile(self.session, "hashing", [&] { return self.session->content_key(self.data, index); });
            },
            nb::arg("entry_point_index") = 0, "Hash of all that decides what code() gives: the same in every process.")
        .def(
            "get_compilation_report",
            [](nb::handle self) { return self.attr("device").attr(in_python::program_report.name)(self); },
            nb::sig("def get_compilation_report(self) -> dict[str, typing.Any]"),
            "What building this program and its kernels took; needs a device with enable_compilation_reports.")
        .def(
            "binding_layout",
            [](const ShaderProgram& self, uint32_t index) {
                const Compiler::Lock lock(*self.session->state()->compiler);
                return make_program_layout(self.data->layout->program, {index}, self.session->target().format);
            },
            nb::arg("entry_point_index") = 0, "Where the parameters of one entry point are bound, as plain data.")
        .def(
            "pipeline_layout",
            [](const ShaderProgram& self) {
                std::vector<uint32_t> all(self.data->entry_points.size());
                std::iota(all.begin(), all.end(), 0u);
                if (all.empty())
                    fail_value("the program has no entry point; link one with link_program()");
                const Compiler::Lock lock(*self.session->state()->compiler);
                return make_program_layout(self.data->layout->program, all, self.session->target().format);
            },
            "The same of all entry points together, as a render pipeline binds them.")
        .def_prop_ro(
            "stages",
            [](const ShaderProgram& self) {
                const Compiler::Lock lock(*self.session->state()->compiler);
                slang::ProgramLayout* program = self.data->layout->program;
                std::vector<std::string> names;
                for (size_t i = 0; i < self.data->entry_points.size(); ++i)
                    names.emplace_back(stage_name(ShaderStage(program->getEntryPointByIndex(i)->getStage())));
                return names;
            },
            "Of each entry point: 'vertex', 'fragment', 'compute', ...");
}

void bind_program_class(nb::module_& m)
{
    ProgramClass cls(m, "ShaderProgram", nb::type_slots(CollectedSlots<ShaderProgram>::slots),
                     nb::is_weak_referenceable(), "Modules and entry points linked into one.");
    cls.def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def("ray_sizes", &ray_sizes,
             "(name, stage, (bytes of the payload, bytes of the attributes)) of each ray-tracing entry point, without "
             "padding.")
        .def_prop_ro("session", [](const ShaderProgram& self) { return self.session; })
        .def_prop_ro("device", [](const ShaderProgram& self) { return self.device; })
        .def_prop_ro("layout", [](ShaderProgram& self) { return reflection_of(*self.session, self.data->layout); })
        .def_prop_ro("reflection", [](nb::handle self) { return in_python::reflection_cursor.get()(self); })
        .def_prop_ro("entry_point_names",
                     [](const ShaderProgram& self) {
                         std::vector<std::string> names;
                         for (const auto& entry : self.data->entry_points)
                             names.push_back(entry->new_name.empty() ? entry->name : entry->new_name);
                         return names;
                     })
        .def_prop_ro("modules",
                     [](const ShaderProgram& self) {
                         std::vector<ref<SlangModule>> result;
                         for (const auto& module : self.data->modules)
                             result.push_back(wrap(self.session, module));
                         return result;
                     })
        .def_prop_ro("downstream_args",
                     [](const ShaderProgram& self) {
                         return self.data->options.downstream_args.value_or(self.session->options().downstream_args);
                     })
        .def_prop_ro("floating_point_mode",
                     [](const ShaderProgram& self) {
                         constexpr const char* names[] = {"default", "fast", "precise"};
                         return names[int(self.data->options.floating_point_mode.value_or(
                             self.session->options().floating_point_mode))];
                     })
        .def_prop_ro("optimization",
                     [](const ShaderProgram& self) {
                         return int(self.data->options.optimization.value_or(self.session->options().optimization));
                     })
        .def_prop_ro("debug_info",
                     [](const ShaderProgram& self) {
                         return int(self.data->options.debug_info.value_or(self.session->options().debug_info));
                     })
        .def_prop_ro("generation", [](const ShaderProgram& self) { return self.data->layout->state->generation; });
    bind_program_code(cls);
}

} // namespace

void bind_programs(nb::module_& m)
{
    bind_module_class(m);
    bind_entry_point_class(m);
    bind_program_class(m);
}

} // namespace spy
