// Reflection of programs.
#include "slang/reflection/util.h"
#include "slang/type_layout.h"

namespace spy {

using namespace reflecting;

ref<TypeLayoutReflection> ProgramReflection::globals_type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getGlobalParamsTypeLayout());
}

ref<VariableLayoutReflection> ProgramReflection::globals_variable_layout() const
{
    const auto lock = enter();
    return view<VariableLayoutReflection>(slang()->getGlobalParamsVarLayout());
}

std::vector<ref<VariableLayoutReflection>> ProgramReflection::parameters() const
{
    const auto lock = enter();
    return views<VariableLayoutReflection>(slang()->getParameterCount(),
                                           [this](unsigned i) { return slang()->getParameterByIndex(i); });
}

std::vector<ref<EntryPointLayout>> ProgramReflection::entry_points() const
{
    const auto lock = enter();
    return views<EntryPointLayout>(slang()->getEntryPointCount(),
                                   [this](unsigned i) { return slang()->getEntryPointByIndex(i); });
}

ref<TypeReflection> ProgramReflection::find_type_by_name(const std::string& name) const
{
    const auto lock = enter();
    return view<TypeReflection>(m_layout->find_type(name));
}

ref<FunctionReflection> ProgramReflection::find_function_by_name(const std::string& name) const
{
    const auto lock = enter();
    return view<FunctionReflection>(m_layout->look_up<slang::FunctionReflection>(
        "function:", name, [&](const char* text) { return slang()->findFunctionByName(text); }));
}

void ProgramReflection::check_own(const TypeReflection& type, const char* function) const
{
    if (!type.is_valid())
        fail_runtime(function, ": Reflection object has been invalidated by a reload; look the type up again");
    if (type.layout()->state != m_layout->state)
        fail_value(function, ": type \"", full_type_name(type.slang()),
                   "\" belongs to another session; look it up in this layout");
}

ref<FunctionReflection> ProgramReflection::find_function_by_name_in_type(const TypeReflection& type,
                                                                         const std::string& name) const
{
    const auto lock = enter();
    check_own(type, "find_function_by_name_in_type");
    if (name == "$init" || name == "__init") { // Slang's name of constructors, which no other function can have
        const std::string key = cat("method:", type.pointer(), ":$init");
        if (!m_layout->found.count(key))
            m_layout->found[key] = slang()->findFunctionByNameInType(type.slang(), "$init");
        return view<FunctionReflection>(static_cast<slang::FunctionReflection*>(m_layout->found[key]));
    }
    return view<FunctionReflection>(
        m_layout->look_up<slang::FunctionReflection>(cat("method:", type.pointer(), ":"), name, [&](const char* text) {
            return slang()->findFunctionByNameInType(type.slang(), text);
        }));
}

ref<TypeLayoutReflection> ProgramReflection::get_type_layout(const TypeReflection& type, LayoutRules rules) const
{
    const auto lock = enter();
    check_own(type, "get_type_layout");
    const slang::LayoutRules wanted = rules == LayoutRules::structured_buffer
        ? slang::LayoutRules::DefaultStructuredBuffer
        : rules == LayoutRules::constant_buffer ? slang::LayoutRules::DefaultConstantBuffer
                                                : slang::LayoutRules::Default;
    slang::TypeLayoutReflection* layout = nullptr;
    try { // Slang throws for generics without arguments
        layout = slang()->getTypeLayout(type.slang(), wanted);
    } catch (...) {
        layout = nullptr;
    }
    if (!layout)
        fail_value("type \"", full_type_name(type.slang()), "\" has no layout");
    return view<TypeLayoutReflection>(layout);
}

ref<TypeLayout> ProgramReflection::element_layout(const TypeReflection& type) const
{
    const auto lock = enter();
    check_own(type, "element_layout");
    slang::ISession* session = m_layout->state->session.get();
    slang::TypeLayoutReflection* element = nullptr;
    ComPtr<ISlangBlob> diagnostics;
    try { // Slang throws for generics without arguments
        slang::TypeReflection* buffer = session->getContainerType(type.slang(), slang::ContainerType::StructuredBuffer,
                                                                  diagnostics.put());
        slang::TypeLayoutReflection* layout = buffer ? slang()->getTypeLayout(buffer) : nullptr;
        element = layout ? layout->getElementTypeLayout() : nullptr;
    } catch (...) {
        element = nullptr;
    }
    if (!element)
        fail_value("type \"", full_type_name(type.slang()), "\" has no layout in a buffer", diagnostics ? ":\n" : "",
                   blob_text(diagnostics.get()));
    return make_type_layout(element, m_layout->program);
}

bool ProgramReflection::is_sub_type(const TypeReflection& type, const TypeReflection& super) const
{
    const auto lock = enter();
    check_own(type, "is_sub_type");
    check_own(super, "is_sub_type");
    const auto kind = type.slang()->getKind();
    const bool is_generic = full_type_name(type.slang()).find('<') != std::string::npos;
    if ((kind == slang::TypeReflection::Kind::Struct && !is_generic) ||
        kind == slang::TypeReflection::Kind::Interface ||
        super.slang()->getKind() != slang::TypeReflection::Kind::Interface)
        return super.slang()->getKind() == slang::TypeReflection::Kind::Interface
            ? slang()->isSubType(type.slang(), super.slang())
            : type.slang() == super.slang();
    // isSubType overflows the stack for the built-in types of Slang 2026.12, and for Tensor<T, D>
    const auto says_so = [&](bool sees_imports) {
        slang::ProgramLayout* probe = m_layout->probe(
            cat("void _spy_probe<T : ", full_type_name(super.slang()), ">(T value) {}\n"), sees_imports);
        return probe &&
            probe->findFunctionByName(cat("_spy_probe<", full_type_name(type.slang()), ">").c_str()) != nullptr;
    };
    return says_so(false) || (!m_layout->imported_by_modules().empty() && says_so(true)); // by an extension there
}

std::vector<std::string> ProgramReflection::hashed_strings() const
{
    const auto lock = enter();
    std::vector<std::string> result;
    for (SlangUInt i = 0; i < slang()->getHashedStringCount(); ++i) {
        size_t size = 0;
        const char* text = slang()->getHashedString(i, &size);
        result.emplace_back(text, size);
    }
    return result;
}

} // namespace spy
