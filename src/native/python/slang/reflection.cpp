// Binds the reflection of types, functions, layouts and declarations.
#include "python/slang/bindings.h" // first: nanobind must come before core/ref.h

#include <slang.h>

#include "slang/reflection/reflection.h"
#include "core/python_names.h"

namespace spy {
namespace {

template <typename T>
nb::list as_list(const std::vector<ref<T>>& items)
{
    nb::list result;
    for (const ref<T>& item : items)
        result.append(nb::cast(item));
    return result;
}

/// A property that gives a list of views.
template <typename T, auto Method>
nb::list list_of(const T& self)
{
    return as_list((self.*Method)());
}

template <typename T>
nb::object attribute_at(const T& self, size_t index)
{
    const auto attributes = self.user_attributes();
    if (index >= attributes.size())
        fail(ErrorKind::index, "user attribute ", index, " is out of range: there are ", attributes.size());
    return nb::cast(attributes[index]);
}

template <typename T, typename Class>
void bind_attributes(Class& cls)
{
    cls.def_prop_ro("user_attributes", list_of<T, &T::user_attributes>)
        .def(
            "get_user_attribute_count", [](const T& self) { return self.user_attributes().size(); },
            "How many attributes of users it has.")
        .def("get_user_attribute_by_index", attribute_at<T>, nb::arg("index"),
             "The attribute at an index. IndexError beyond the last one.")
        .def("find_user_attribute_by_name", &T::find_user_attribute, nb::arg("name"),
             "The attribute of this name, or None.");
}

void bind_modifiers(nb::module_& m)
{
    nb::enum_<ModifierID>(m, "ModifierID", "Modifiers of parameters, functions and declarations.")
        .value("shared", ModifierID::shared)
        .value("nodiff", ModifierID::nodiff)
        .value("static", ModifierID::static_)
        .value("const", ModifierID::const_)
        .value("export", ModifierID::export_)
        .value("extern", ModifierID::extern_)
        .value("differentiable", ModifierID::differentiable)
        .value("mutating", ModifierID::mutating)
        .value("inn", ModifierID::inn)
        .value("out", ModifierID::out)
        .value("inout", ModifierID::inout);
    nb::enum_<LayoutRules>(
        m, "LayoutRules",
        "By which rules a type is laid out: those of the target, of structured buffers, of constant buffers.")
        .value("default", LayoutRules::default_)
        .value("structured_buffer", LayoutRules::structured_buffer)
        .value("constant_buffer", LayoutRules::constant_buffer);
}

void bind_parameter_category(nb::handle owner)
{
    nb::enum_<ParameterCategory>(owner, "ParameterCategory",
                                 "What a parameter takes up: bytes (`uniform`), bindings, registers.")
        .value("none", ParameterCategory::None)
        .value("mixed", ParameterCategory::Mixed)
        .value("constant_buffer", ParameterCategory::ConstantBuffer)
        .value("shader_resource", ParameterCategory::ShaderResource)
        .value("unordered_access", ParameterCategory::UnorderedAccess)
        .value("varying_input", ParameterCategory::VaryingInput)
        .value("varying_output", ParameterCategory::VaryingOutput)
        .value("sampler_state", ParameterCategory::SamplerState)
        .value("uniform", ParameterCategory::Uniform)
        .value("descriptor_table_slot", ParameterCategory::DescriptorTableSlot)
        .value("specialization_constant", ParameterCategory::SpecializationConstant)
        .value("push_constant_buffer", ParameterCategory::PushConstantBuffer)
        .value("register_space", ParameterCategory::RegisterSpace)
        .value("generic_resource", ParameterCategory::GenericResource)
        .value("ray_payload", ParameterCategory::RayPayload)
        .value("hit_attributes", ParameterCategory::HitAttributes)
        .value("callable_payload", ParameterCategory::CallablePayload)
        .value("shader_record", ParameterCategory::ShaderRecord)
        .value("existential_type_param", ParameterCategory::ExistentialTypeParam)
        .value("existential_object_param", ParameterCategory::ExistentialObjectParam)
        .value("sub_element_register_space", ParameterCategory::SubElementRegisterSpace);
}

void bind_base(nb::module_& m)
{
    nb::class_<Reflection, Object>(m, "Reflection", "Base of what reflection gives; keeps its program alive.")
        .def("__repr__", [](nb::handle self) { return in_python::native_repr.get()(self); })
        .def_prop_ro("is_valid", &Reflection::is_valid, "False once a reload has replaced the program.")
        .def("__eq__",
             [](const Reflection& self, nb::object other) {
                 const Reflection* that = nullptr;
                 return nb::try_cast(other, that) && that && that->pointer() == self.pointer();
             })
        .def("__hash__", [](const Reflection& self) { return std::hash<const void*>()(self.pointer()); });
}

void bind_types(nb::module_& m)
{
    auto type = nb::class_<TypeReflection, Reflection>(m, "TypeReflection", "A Slang type as its program declares it.");
    type.def_prop_ro("kind", &TypeReflection::kind)
        .def_prop_ro("name", &TypeReflection::name)
        .def_prop_ro("full_name", &TypeReflection::full_name, "Canonical spelling: \"vector<float,3>\", \"A.B\".")
        .def_prop_ro("fields", list_of<TypeReflection, &TypeReflection::fields>)
        .def_prop_ro("element_count", &TypeReflection::element_count,
                     "Of arrays and vectors; -1 when unbounded or not known yet; 0 for other types.")
        .def_prop_ro("element_type", &TypeReflection::element_type)
        .def_prop_ro("row_count", &TypeReflection::row_count)
        .def_prop_ro("col_count", &TypeReflection::col_count)
        .def_prop_ro("scalar_type", &TypeReflection::scalar_type)
        .def_prop_ro("resource_result_type", &TypeReflection::resource_result_type)
        .def_prop_ro("resource_shape", &TypeReflection::resource_shape)
        .def_prop_ro("resource_access", &TypeReflection::resource_access)
        .def_prop_ro("is_combined_texture_sampler", &TypeReflection::is_combined_texture_sampler)
        .def("unwrap_array", &TypeReflection::unwrap_array,
             "The element type without its arrays; of other types the type itself.")
        .def_prop_ro("generic", &TypeReflection::generic, "The generic around it, or None.")
        .def_prop_ro("is_generic", &TypeReflection::is_generic, "True for a generic type without its arguments.")
        .def_prop_ro("differentiable", &TypeReflection::differentiable)
        .def_prop_ro("derivative", &TypeReflection::derivative, "T.Differential, or None.")
        .def("__repr__", [](const TypeReflection& self) {
            return self.is_valid() ? cat("TypeReflection(", self.full_name(), ")") : "TypeReflection(invalidated)";
        });
    type.def_prop_ro(
            "constructors", list_of<TypeReflection, &TypeReflection::constructors>,
            "Its constructors, the member-wise one that Slang makes included. Those of a generic struct speak of\n"
            "its parameters; substitute() gives the types.")
        .def_prop_ro("enum_names", &TypeReflection::enum_names,
                     "The names of an enum's values, in order; of other types none.")
        .def("substitute", &TypeReflection::substitute, nb::arg("type"),
             "The type with this generic type's arguments in place of its parameters.");
    bind_attributes<TypeReflection>(type);
    type.attr("Kind") = nb::type<TypeKind>();
    type.attr("ScalarType") = nb::type<ScalarType>();
    type.attr("ResourceShape") = nb::type<ResourceShape>();
    type.attr("ResourceAccess") = nb::type<ResourceAccess>();
    bind_parameter_category(type);

    auto variable = nb::class_<VariableReflection, Reflection>(
        m, "VariableReflection", "A field, parameter or global variable as it is declared.");
    variable.def_prop_ro("name", &VariableReflection::name)
        .def_prop_ro("type", &VariableReflection::type)
        .def("has_modifier", &VariableReflection::has_modifier, nb::arg("modifier"),
             "Whether it is declared with a modifier. `inout` counts as `out`, too.")
        .def_prop_ro("has_default", &VariableReflection::has_default)
        .def_prop_ro("default_int", &VariableReflection::default_int, "None when it is no integer literal.")
        .def_prop_ro("default_float", &VariableReflection::default_float, "None when it is no float literal.")
        .def("__repr__", [](const VariableReflection& self) {
            return self.is_valid() ? cat("VariableReflection(", self.name(), ": ", self.type()->full_name(), ")")
                                   : "VariableReflection(invalidated)";
        });
    bind_attributes<VariableReflection>(variable);
}

void bind_layouts(nb::module_& m)
{
    nb::class_<TypeLayoutReflection, Reflection>(m, "TypeLayoutReflection",
                                                 "A type with its sizes on one target, in bytes.")
        .def_prop_ro("kind", &TypeLayoutReflection::kind)
        .def_prop_ro("name", &TypeLayoutReflection::name)
        .def_prop_ro("size", &TypeLayoutReflection::size, "Bytes.")
        .def_prop_ro("stride", &TypeLayoutReflection::stride, "Bytes.")
        .def_prop_ro("alignment", &TypeLayoutReflection::alignment, "Bytes.")
        .def_prop_ro("type", &TypeLayoutReflection::type)
        .def_prop_ro("fields", list_of<TypeLayoutReflection, &TypeLayoutReflection::fields>)
        .def_prop_ro("element_type_layout", &TypeLayoutReflection::element_type_layout)
        .def("unwrap_array", &TypeLayoutReflection::unwrap_array,
             "The element type without its arrays; of other types the type itself.")
        .def_prop_ro("parameter_category", &TypeLayoutReflection::parameter_category)
        .def_prop_ro("plain", &TypeLayoutReflection::plain, "The same as plain data: a TypeLayout.");
    nb::class_<VariableLayoutReflection, Reflection>(m, "VariableLayoutReflection",
                                                     "A field or parameter with its place on one target.")
        .def_prop_ro("name", &VariableLayoutReflection::name)
        .def_prop_ro("variable", &VariableLayoutReflection::variable)
        .def_prop_ro("type_layout", &VariableLayoutReflection::type_layout)
        .def_prop_ro("offset", &VariableLayoutReflection::offset, "Bytes.")
        .def("offset_in", &VariableLayoutReflection::offset_in, nb::arg("category"),
             "Its offset by another measure than bytes: the index of a binding, a register.")
        .def_prop_ro("binding_index", &VariableLayoutReflection::binding_index)
        .def_prop_ro("binding_space", &VariableLayoutReflection::binding_space)
        .def_prop_ro("semantic_name", &VariableLayoutReflection::semantic_name);
    nb::class_<EntryPointLayout, Reflection>(m, "EntryPointLayout",
                                             "A shader's entry point: stage, parameters, sizes of its groups.")
        .def_prop_ro("name", &EntryPointLayout::name)
        .def_prop_ro("name_override", &EntryPointLayout::name_override)
        .def_prop_ro("stage", [](const EntryPointLayout& self) { return stage_object(self.stage()); })
        .def_prop_ro(
            "compute_thread_group_size",
            [](const EntryPointLayout& self) {
                const auto size = self.compute_thread_group_size();
                return nb::module_::import_("slangpy._native").attr("uint3")(size[0], size[1], size[2]);
            },
            "Threads of a group in x, y and z: `uint3`.")
        .def_prop_ro("parameters", list_of<EntryPointLayout, &EntryPointLayout::parameters>)
        .def_prop_ro("function", &EntryPointLayout::function)
        .def_prop_ro("type_layout", &EntryPointLayout::type_layout);
}

void bind_function_types(nb::module_& m)
{
    auto function = nb::class_<FunctionReflection, Reflection>(
        m, "FunctionReflection", "A function as it is declared, or all of one name (`overloads`).");
    function.def_prop_ro("name", &FunctionReflection::name)
        .def_prop_ro("return_type", &FunctionReflection::return_type, "None when overloaded.")
        .def_prop_ro("parameters", list_of<FunctionReflection, &FunctionReflection::parameters>)
        .def("has_modifier", &FunctionReflection::has_modifier, nb::arg("modifier"),
             "Whether it is declared with a modifier. `inout` counts as `out`, too.")
        .def_prop_ro("is_overloaded", &FunctionReflection::is_overloaded)
        .def_prop_ro("overloads", list_of<FunctionReflection, &FunctionReflection::overloads>)
        .def("specialize_with_arg_types", &FunctionReflection::specialize_with_arg_types, nb::arg("types"),
             "The overload, with its generics filled in, that a call with arguments of these types selects, or None.")
        .def_prop_ro("generic", &FunctionReflection::generic, "The generic around it, or None.")
        .def("__repr__", [](const FunctionReflection& self) {
            return self.is_valid() ? cat("FunctionReflection(", self.name(), ")") : "FunctionReflection(invalidated)";
        });
    bind_attributes<FunctionReflection>(function);
    nb::class_<GenericReflection, Reflection>(m, "GenericReflection",
                                              "The parameters of a generic, and what stands for them.")
        .def_prop_ro("name", &GenericReflection::name)
        .def_prop_ro("type_parameters", &GenericReflection::type_parameters)
        .def_prop_ro("value_parameters", &GenericReflection::value_parameters)
        .def(
            "constraints",
            [](const GenericReflection& self, const std::string& name) { return as_list(self.constraints(name)); },
            nb::arg("type_parameter"),
            "The interfaces that a type parameter must conform to. KeyError for no parameter.")
        .def("concrete_type", &GenericReflection::concrete_type, nb::arg("type_parameter"),
             "The type that stands for a type parameter, or None. KeyError for no parameter.")
        .def("concrete_value", &GenericReflection::concrete_value, nb::arg("value_parameter"),
             "The integer that stands for a value parameter. KeyError for no parameter.")
        .def_prop_ro("outer", &GenericReflection::outer);
    nb::class_<Attribute, Reflection>(m, "Attribute", "A user's attribute, `[Name(arguments)]`.")
        .def_prop_ro("name", &Attribute::name)
        .def_prop_ro("argument_count", &Attribute::argument_count)
        .def("argument_type", &Attribute::argument_type, nb::arg("index"), "The type of an argument.")
        .def("argument_value_int", &Attribute::argument_value_int, nb::arg("index"),
             "An argument as an int; None if it is none.")
        .def("argument_value_float", &Attribute::argument_value_float, nb::arg("index"),
             "An argument as a float; None if it is none.")
        .def("argument_value_string", &Attribute::argument_value_string, nb::arg("index"),
             "An argument as text; None if it is none.");
}

nb::list children_of(const DeclReflection& self, DeclReflection::Kind kind, const std::optional<std::string>& name)
{
    nb::list result;
    for (const ref<DeclReflection>& child : self.children()) {
        // a generic stands for what it wraps, too
        if (child->kind() == kind && (!name || child->name() == *name))
            result.append(nb::cast(child));
    }
    return result;
}

void bind_decls(nb::module_& m)
{
    auto decl = nb::class_<DeclReflection, Reflection>(
        m, "DeclReflection", "A declaration in the source, with those inside of it: `len`, `[i]`, iteration.");
    nb::enum_<DeclReflection::Kind>(decl, "Kind", "Kinds of declarations.")
        .value("unsupported", DeclReflection::Kind::unsupported)
        .value("struct", DeclReflection::Kind::struct_)
        .value("func", DeclReflection::Kind::func)
        .value("module", DeclReflection::Kind::module)
        .value("generic", DeclReflection::Kind::generic)
        .value("variable", DeclReflection::Kind::variable)
        .value("namespace", DeclReflection::Kind::namespace_)
        .value("enum", DeclReflection::Kind::enum_);
    decl.def_prop_ro("kind", &DeclReflection::kind)
        .def_prop_ro("name", &DeclReflection::name)
        .def_prop_ro("children", list_of<DeclReflection, &DeclReflection::children>)
        .def_prop_ro("child_count", [](const DeclReflection& self) { return self.children().size(); })
        .def_prop_ro("parent", &DeclReflection::parent)
        .def_prop_ro("_inner", &DeclReflection::inner, "What a generic declares; None for others.")
        .def(
            "children_of_kind",
            [](const DeclReflection& self, DeclReflection::Kind kind) { return children_of(self, kind, {}); },
            nb::arg("kind"), "The declarations inside of it that are of a kind.")
        .def(
            "find_children_of_kind",
            [](const DeclReflection& self, DeclReflection::Kind kind, const std::string& name) {
                return children_of(self, kind, name);
            },
            nb::arg("kind"), nb::arg("name"), "Those of a kind and name.")
        .def(
            "find_first_child_of_kind",
            [](const DeclReflection& self, DeclReflection::Kind kind, const std::string& name) -> nb::object {
                nb::list found = children_of(self, kind, name);
                return found.size() ? nb::object(found[0]) : nb::none();
            },
            nb::arg("kind"), nb::arg("name"), "The first one of a kind and name, or None.")
        .def("as_type", &DeclReflection::as_type, "The type that it declares: of structs and enums; None for others.")
        .def("as_variable", &DeclReflection::as_variable, "The variable that it declares; None for others.")
        .def("as_function", &DeclReflection::as_function, "The function that it declares; None for others.")
        .def("has_modifier", &DeclReflection::has_modifier, nb::arg("modifier"),
             "Whether it is declared with a modifier. `inout` counts as `out`, too.")
        .def_prop_ro("location", &DeclReflection::location, "(file, line, column).")
        .def("__len__", [](const DeclReflection& self) { return self.children().size(); })
        .def("__getitem__", [](const DeclReflection& self, int64_t index) {
            const auto children = self.children();
            if (index < 0)
                index += int64_t(children.size());
            if (index < 0 || index >= int64_t(children.size()))
                fail(ErrorKind::index, "child ", index, " is out of range: there are ", children.size());
            return children[size_t(index)];
        });
}

void bind_program_layouts(nb::module_& m)
{
    nb::class_<ProgramReflection, Reflection>(m, "ProgramLayout", "Names and parameters of a module or program.")
        .def_prop_ro("globals_type_layout", &ProgramReflection::globals_type_layout)
        .def_prop_ro("globals_variable_layout", &ProgramReflection::globals_variable_layout)
        .def_prop_ro("parameters", list_of<ProgramReflection, &ProgramReflection::parameters>)
        .def_prop_ro("entry_points", list_of<ProgramReflection, &ProgramReflection::entry_points>)
        .def("find_type_by_name", &ProgramReflection::find_type_by_name, nb::arg("name"),
             "The type of this name, generic arguments included; None when there is none.")
        .def("find_function_by_name", &ProgramReflection::find_function_by_name, nb::arg("name"),
             "The function of this name, generic arguments included; None when there is none.")
        .def("find_function_by_name_in_type", &ProgramReflection::find_function_by_name_in_type, nb::arg("type"),
             nb::arg("name"), "The method of this name, or None.")
        .def("get_type_layout", &ProgramReflection::get_type_layout, nb::arg("type"),
             nb::arg("rules") = LayoutRules::default_, "Sizes and offsets of a type, in bytes.")
        .def("element_layout", &ProgramReflection::element_layout, nb::arg("type"),
             "TypeLayout of the type as an element of a StructuredBuffer.")
        .def("is_sub_type", &ProgramReflection::is_sub_type, nb::arg("type"), nb::arg("super"),
             "Whether `type` conforms to the interface `super`.")
        .def_prop_ro("hashed_strings", &ProgramReflection::hashed_strings)
        .def_prop_ro(
            "_string_hashes",
            [](const ProgramReflection& self) {
                nb::dict texts;
                for (const std::string& text : self.hashed_strings())
                    texts[nb::int_(spComputeStringHash(text.data(), text.size()))] = nb::cast(text);
                return texts;
            },
            "Hash in the code -> literal.")
        .def_prop_ro("generation", &ProgramReflection::generation, "Grows with each reload.");
}

} // namespace

void bind_slang_reflection(nb::module_& m)
{
    bind_modifiers(m);
    bind_base(m);
    bind_types(m);
    bind_layouts(m);
    bind_function_types(m);
    bind_decls(m);
    bind_program_layouts(m);
}

} // namespace spy
