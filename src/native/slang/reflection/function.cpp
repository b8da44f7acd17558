// Reflection of functions and generics.
#include "slang/reflection/core_types.h"
#include "slang/reflection/util.h"

namespace spy {

using namespace reflecting;

std::string FunctionReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

ref<TypeReflection> FunctionReflection::return_type() const
{
    const auto lock = enter();
    return slang()->isOverloaded() ? ref<TypeReflection>() : view<TypeReflection>(slang()->getReturnType());
}

std::vector<ref<VariableReflection>> FunctionReflection::parameters() const
{
    const auto lock = enter();
    return views<VariableReflection>(slang()->isOverloaded() ? 0 : slang()->getParameterCount(),
                                     [this](unsigned i) { return slang()->getParameterByIndex(i); });
}

bool FunctionReflection::has_modifier(ModifierID modifier) const
{
    const auto lock = enter();
    return !slang()->isOverloaded() && has(slang(), modifier);
}

std::vector<ref<Attribute>> FunctionReflection::user_attributes() const
{
    const auto lock = enter();
    return slang()->isOverloaded() ? std::vector<ref<Attribute>>() : attributes_of(*this, slang());
}

ref<Attribute> FunctionReflection::find_user_attribute(const std::string& name) const
{
    return pick(user_attributes(), name);
}

bool FunctionReflection::is_overloaded() const
{
    const auto lock = enter();
    return slang()->isOverloaded();
}

std::vector<ref<FunctionReflection>> FunctionReflection::overloads() const
{
    const auto lock = enter();
    return views<FunctionReflection>(slang()->isOverloaded() ? slang()->getOverloadCount() : 0,
                                     [this](unsigned i) { return slang()->getOverload(i); });
}

ref<FunctionReflection>
FunctionReflection::specialize_with_arg_types(const std::vector<ref<TypeReflection>>& types) const
{
    const auto lock = enter();
    std::vector<slang::TypeReflection*> arguments;
    std::string key = cat("specialize:", m_pointer);
    for (const ref<TypeReflection>& type : types) {
        if (!type)
            fail(ErrorKind::type,
                 "specialize_with_arg_types: expected types, got None (which find_type_by_name gives for names it does "
                 "not know)");
        if (!type->is_valid())
            fail_runtime("specialize_with_arg_types: Reflection object has been invalidated by a reload; look the type "
                         "up again");
        if (type->layout()->state != m_layout->state)
            fail_value("specialize_with_arg_types: type \"", type->name(),
                       "\" belongs to another session; look it up in the module of the function");
        arguments.push_back(type->slang());
        key += cat(",", type->pointer());
    }
    const auto known = m_layout->found.find(key);
    void* found = known != m_layout->found.end() ? known->second : specialize(*m_layout->state, slang(), arguments);
    m_layout->found[key] = found;
    return view<FunctionReflection>(static_cast<slang::FunctionReflection*>(found));
}

ref<GenericReflection> FunctionReflection::generic() const
{
    const auto lock = enter();
    return slang()->isOverloaded() ? ref<GenericReflection>() : view<GenericReflection>(slang()->getGenericContainer());
}

std::string GenericReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

std::vector<std::string> GenericReflection::type_parameters() const
{
    const auto lock = enter();
    std::vector<std::string> names;
    for (unsigned i = 0; i < slang()->getTypeParameterCount(); ++i)
        names.push_back(to_text(slang()->getTypeParameter(i)->getName()));
    return names;
}

std::vector<std::string> GenericReflection::value_parameters() const
{
    const auto lock = enter();
    std::vector<std::string> names;
    for (unsigned i = 0; i < slang()->getValueParameterCount(); ++i)
        names.push_back(to_text(slang()->getValueParameter(i)->getName()));
    return names;
}

slang::VariableReflection* GenericReflection::find_parameter(const std::string& name, bool is_type) const
{
    const unsigned count = is_type ? slang()->getTypeParameterCount() : slang()->getValueParameterCount();
    for (unsigned i = 0; i < count; ++i) {
        slang::VariableReflection* parameter = is_type ? slang()->getTypeParameter(i) : slang()->getValueParameter(i);
        if (name == text_or_empty(parameter->getName()))
            return parameter;
    }
    fail(ErrorKind::key, "generic \"", text_or_empty(slang()->getName()), "\" has no ", is_type ? "type" : "value",
         " parameter \"", name, "\"");
}

std::vector<ref<TypeReflection>> GenericReflection::constraints(const std::string& type_parameter) const
{
    const auto lock = enter();
    slang::VariableReflection* parameter = find_parameter(type_parameter, true);
    return views<TypeReflection>(slang()->getTypeParameterConstraintCount(parameter),
                                 [&](unsigned i) { return slang()->getTypeParameterConstraintType(parameter, i); });
}

ref<TypeReflection> GenericReflection::concrete_type(const std::string& type_parameter) const
{
    const auto lock = enter();
    return view<TypeReflection>(slang()->getConcreteType(find_parameter(type_parameter, true)));
}

int64_t GenericReflection::concrete_value(const std::string& value_parameter) const
{
    const auto lock = enter();
    return slang()->getConcreteIntVal(find_parameter(value_parameter, false));
}

ref<GenericReflection> GenericReflection::outer() const
{
    const auto lock = enter();
    return view<GenericReflection>(slang()->getOuterGenericContainer());
}

std::string Attribute::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

uint32_t Attribute::argument_count() const
{
    const auto lock = enter();
    return slang()->getArgumentCount();
}

void Attribute::check_index(uint32_t index) const
{
    if (index >= slang()->getArgumentCount())
        fail(ErrorKind::index, "argument ", index, " of attribute \"", text_or_empty(slang()->getName()),
             "\" is out of range: it has ", slang()->getArgumentCount());
}

ref<TypeReflection> Attribute::argument_type(uint32_t index) const
{
    const auto lock = enter();
    check_index(index);
    return view<TypeReflection>(slang()->getArgumentType(index));
}

std::optional<int64_t> Attribute::argument_value_int(uint32_t index) const
{
    const auto lock = enter();
    check_index(index);
    int value = 0;
    if (SLANG_FAILED(slang()->getArgumentValueInt(index, &value)))
        return std::nullopt;
    return value;
}

std::optional<double> Attribute::argument_value_float(uint32_t index) const
{
    const auto lock = enter();
    check_index(index);
    float value = 0;
    if (SLANG_FAILED(slang()->getArgumentValueFloat(index, &value)))
        return std::nullopt;
    return value;
}

std::optional<std::string> Attribute::argument_value_string(uint32_t index) const
{
    const auto lock = enter();
    check_index(index);
    size_t size = 0;
    const char* text = slang()->getArgumentValueString(index, &size);
    if (!text)
        return std::nullopt;
    std::string value(text, size);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
    return value;
}

DeclReflection::Kind DeclReflection::kind() const
{
    const auto lock = enter();
    return Kind(int(slang()->getKind()));
}

std::string DeclReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

std::vector<ref<DeclReflection>> DeclReflection::children() const
{
    const auto lock = enter();
    return views<DeclReflection>(slang()->getChildrenCount(), [this](unsigned i) { return slang()->getChild(i); });
}

ref<DeclReflection> DeclReflection::parent() const
{
    const auto lock = enter();
    return view<DeclReflection>(slang()->getParent());
}

ref<DeclReflection> DeclReflection::inner() const
{
    const auto lock = enter();
    slang::GenericReflection* generic = slang()->getKind() == slang::DeclReflection::Kind::Generic
        ? slang()->asGeneric()
        : nullptr;
    return generic ? view<DeclReflection>(generic->getInnerDecl()) : nullptr;
}

ref<TypeReflection> DeclReflection::as_type() const
{
    const auto lock = enter();
    const auto kind = slang()->getKind();
    if (kind != slang::DeclReflection::Kind::Struct && kind != slang::DeclReflection::Kind::Enum)
        return nullptr;
    return view<TypeReflection>(slang()->getType());
}

ref<VariableReflection> DeclReflection::as_variable() const
{
    const auto lock = enter();
    return slang()->getKind() == slang::DeclReflection::Kind::Variable ? view<VariableReflection>(slang()->asVariable())
                                                                       : ref<VariableReflection>();
}

ref<FunctionReflection> DeclReflection::as_function() const
{
    const auto lock = enter();
    return slang()->getKind() == slang::DeclReflection::Kind::Func ? view<FunctionReflection>(slang()->asFunction())
                                                                   : ref<FunctionReflection>();
}

bool DeclReflection::has_modifier(ModifierID modifier) const
{
    const auto lock = enter();
    return has(slang(), modifier);
}

std::tuple<std::string, int64_t, int64_t> DeclReflection::location() const
{
    const auto lock = enter();
    slang::SourceLocation location;
    if (SLANG_FAILED(m_layout->state->session->getDeclSourceLocation(slang(), &location)))
        return {"", 0, 0};
    return {to_text(location.filePath), location.line, location.column};
}

} // namespace spy
