// Reflection of types.
#include "slang/reflection/util.h"

namespace spy {

using namespace reflecting;

TypeKind TypeReflection::kind() const
{
    const auto lock = enter();
    return to_type_kind(kind_of(slang()));
}

std::string TypeReflection::name() const
{
    const auto lock = enter();
    return restore_constraints(text_or_empty(slang()->getName()));
}

std::string TypeReflection::full_name() const
{
    const auto lock = enter();
    return full_type_name(slang());
}

std::vector<ref<VariableReflection>> TypeReflection::fields() const
{
    const auto lock = enter();
    const bool is_struct = kind_of(slang()) == slang::TypeReflection::Kind::Struct;
    return views<VariableReflection>(is_struct ? slang()->getFieldCount() : 0,
                                     [this](unsigned i) { return slang()->getFieldByIndex(i); });
}

int64_t TypeReflection::element_count() const
{
    const auto lock = enter();
    const auto kind = slang()->getKind();
    if (kind != slang::TypeReflection::Kind::Array && kind != slang::TypeReflection::Kind::Vector)
        return 0;
    const int64_t count = to_count(
        [&] { return slang()->getElementCount(reinterpret_cast<SlangReflection*>(m_layout->program)); });
    return kind == slang::TypeReflection::Kind::Array && count == 0 ? -1 : count;
}

ref<TypeReflection> TypeReflection::element_type() const
{
    const auto lock = enter();
    return view<TypeReflection>(element_of(slang()));
}

int64_t TypeReflection::row_count() const
{
    const auto lock = enter();
    return to_count([&] { return size_t(slang()->getRowCount()); });
}

int64_t TypeReflection::col_count() const
{
    const auto lock = enter();
    return to_count([&] { return size_t(slang()->getColumnCount()); });
}

ScalarType TypeReflection::scalar_type() const
{
    const auto lock = enter();
    return scalar_of(slang());
}

ref<TypeReflection> TypeReflection::resource_result_type() const
{
    const auto lock = enter();
    if (slang()->getKind() != slang::TypeReflection::Kind::Resource)
        return nullptr;
    return view<TypeReflection>(slang()->getResourceResultType());
}

ResourceShape TypeReflection::resource_shape() const
{
    const auto lock = enter();
    return slang()->getKind() == slang::TypeReflection::Kind::Resource ? to_resource_shape(slang()->getResourceShape())
                                                                       : ResourceShape::none;
}

bool TypeReflection::is_combined_texture_sampler() const
{
    const auto lock = enter();
    return slang()->getKind() == slang::TypeReflection::Kind::Resource &&
        (unsigned(slang()->getResourceShape()) & SLANG_TEXTURE_COMBINED_FLAG) != 0;
}

ResourceAccess TypeReflection::resource_access() const
{
    const auto lock = enter();
    return slang()->getKind() == slang::TypeReflection::Kind::Resource
        ? to_resource_access(slang()->getResourceAccess())
        : ResourceAccess::none;
}

ref<TypeReflection> TypeReflection::unwrap_array() const
{
    const auto lock = enter();
    return view<TypeReflection>(slang()->unwrapArray());
}

std::vector<ref<Attribute>> TypeReflection::user_attributes() const
{
    const auto lock = enter();
    return attributes_of(*this, slang());
}

ref<Attribute> TypeReflection::find_user_attribute(const std::string& name) const
{
    return pick(user_attributes(), name);
}

ref<GenericReflection> TypeReflection::generic() const
{
    const auto lock = enter();
    return view<GenericReflection>(slang()->getGenericContainer());
}

bool TypeReflection::is_generic() const
{
    const auto lock = enter();
    const auto kind = slang()->getKind();
    slang::GenericReflection* container = slang()->getGenericContainer();
    if (!container || (kind != slang::TypeReflection::Kind::Struct && kind != slang::TypeReflection::Kind::Interface))
        return false;
    for (unsigned i = 0; i < container->getTypeParameterCount(); ++i) {
        slang::TypeReflection* concrete = container->getConcreteType(container->getTypeParameter(i));
        if (!concrete || concrete->getKind() == slang::TypeReflection::Kind::GenericTypeParameter)
            return true;
    }
    if (container->getTypeParameterCount() || !container->getValueParameterCount())
        return false;
    // values have no "not given": without its arguments the type is printed with its own parameters
    std::string own = "<";
    for (unsigned i = 0; i < container->getValueParameterCount(); ++i)
        own += cat(i ? ", " : "", text_or_empty(container->getValueParameter(i)->getName()));
    return full_type_name(slang()).ends_with(own + ">");
}

bool TypeReflection::differentiable() const
{
    const auto lock = enter();
    const auto kind = slang()->getKind();
    if (kind == slang::TypeReflection::Kind::Interface || kind == slang::TypeReflection::Kind::GenericTypeParameter)
        if (slang::TypeReflection* root = m_layout->program->findTypeByName("IDifferentiable"))
            return m_layout->program->isSubType(slang(), root);
    // isSubType overflows the stack for the built-in types of Slang 2026.12; this generic asks the same
    return m_layout->find_type(cat("DifferentialPair<", full_type_name(slang()), ">")) != nullptr;
}

ref<TypeReflection> TypeReflection::derivative() const
{
    const auto lock = enter();
    if (!differentiable())
        return nullptr;
    return view<TypeReflection>(m_layout->find_type(full_type_name(slang()) + ".Differential"));
}

namespace {

/// "A.B<float>.C" -> {"A", "B", "C"}
std::vector<std::string> path_of(const std::string& full_name)
{
    std::vector<std::string> path(1);
    int depth = 0;
    for (char c : full_name) {
        depth += c == '<' ? 1 : c == '>' ? -1 : 0;
        if (depth > 0 || c == '>')
            continue;
        if (c == '.')
            path.emplace_back();
        else
            path.back() += c;
    }
    return path;
}

using DeclKind = slang::DeclReflection::Kind;

/// The declaration of this kind at path[depth...] below `decl`.
slang::DeclReflection* find_declared(slang::DeclReflection* decl, DeclKind wanted, const std::vector<std::string>& path,
                                     size_t depth = 0)
{
    for (unsigned i = 0; i < decl->getChildrenCount(); ++i) {
        slang::DeclReflection* child = decl->getChild(i);
        DeclKind kind = child->getKind();
        if (path[depth] != text_or_empty(child->getName()))
            continue;
        if (kind == DeclKind::Generic) {
            slang::GenericReflection* generic = child->asGeneric();
            child = generic ? generic->getInnerDecl() : nullptr;
            kind = child ? child->getKind() : DeclKind::Unsupported;
        }
        if (depth + 1 == path.size()) {
            if (kind == wanted)
                return child;
        } else if (kind == DeclKind::Struct || kind == DeclKind::Namespace) {
            if (slang::DeclReflection* found = find_declared(child, wanted, path, depth + 1))
                return found;
        }
    }
    return nullptr;
}

} // namespace

std::vector<ref<FunctionReflection>> TypeReflection::constructors() const
{
    const auto lock = enter();
    std::vector<ref<FunctionReflection>> result;
    if (kind_of(slang()) != slang::TypeReflection::Kind::Struct)
        return result;
    const std::vector<std::string> path = path_of(full_type_name(slang()));
    slang::ISession* session = m_layout->state->session.get();
    slang::GenericReflection* generic = slang()->getGenericContainer();
    slang::DeclReflection* declared = generic ? generic->getInnerDecl() : nullptr;
    for (SlangInt i = 0; i < session->getLoadedModuleCount(); ++i) {
        slang::DeclReflection* found = find_declared(session->getLoadedModule(i)->getModuleReflection(),
                                                     DeclKind::Struct, path);
        if (!found || (generic ? found != declared : found->getType() != slang()))
            continue; // a struct of the same name in another module
        for (unsigned k = 0; k < found->getChildrenCount(); ++k) {
            slang::DeclReflection* child = found->getChild(k);
            if (child->getKind() == DeclKind::Generic) // __init<T>(T value)
                child = child->asGeneric() ? child->asGeneric()->getInnerDecl() : nullptr;
            if (!child || child->getKind() != DeclKind::Func || text_or_empty(child->getName()) != "$init")
                continue;
            result.push_back(view<FunctionReflection>(child->asFunction()));
        }
        break;
    }
    return result;
}

std::vector<std::string> TypeReflection::enum_names() const
{
    const auto lock = enter();
    std::vector<std::string> names;
    const std::vector<std::string> path = path_of(full_type_name(slang()));
    slang::ISession* session = m_layout->state->session.get();
    for (SlangInt i = 0; i < session->getLoadedModuleCount() && names.empty(); ++i) {
        slang::DeclReflection* found = find_declared(session->getLoadedModule(i)->getModuleReflection(), DeclKind::Enum,
                                                     path);
        for (unsigned k = 0; found && k < found->getChildrenCount(); ++k) {
            std::string name = to_text(found->getChild(k)->getName());
            if (!name.empty() && name.find('$') == std::string::npos)
                names.push_back(std::move(name));
        }
    }
    return names;
}

ref<TypeReflection> TypeReflection::substitute(const TypeReflection& type) const
{
    const auto lock = enter();
    slang::GenericReflection* arguments = slang()->getGenericContainer();
    if (type.layout()->state != m_layout->state)
        fail_value("substitute: the type belongs to another session; look it up in the same layout");
    return view<TypeReflection>(arguments ? type.slang()->applySpecializations(arguments) : type.slang());
}

std::string VariableReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

ref<TypeReflection> VariableReflection::type() const
{
    const auto lock = enter();
    return view<TypeReflection>(slang()->getType());
}

bool VariableReflection::has_modifier(ModifierID modifier) const
{
    const auto lock = enter();
    return has(slang(), modifier);
}

bool VariableReflection::has_default() const
{
    const auto lock = enter();
    return slang()->hasDefaultValue();
}

std::optional<int64_t> VariableReflection::default_int() const
{
    const auto lock = enter();
    int64_t value = 0;
    if (!slang()->hasDefaultValue() || SLANG_FAILED(slang()->getDefaultValueInt(&value)))
        return std::nullopt;
    return value;
}

std::optional<double> VariableReflection::default_float() const
{
    const auto lock = enter();
    float value = 0;
    if (!slang()->hasDefaultValue() || SLANG_FAILED(slang()->getDefaultValueFloat(&value)))
        return std::nullopt;
    return value;
}

std::vector<ref<Attribute>> VariableReflection::user_attributes() const
{
    const auto lock = enter();
    return attributes_of(*this, slang());
}

ref<Attribute> VariableReflection::find_user_attribute(const std::string& name) const
{
    return pick(user_attributes(), name);
}

} // namespace spy
