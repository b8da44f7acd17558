#include "slang/reflection.h"

#include "slang/rewrite.h"
#include "slang/type_layout.h"

namespace spy {
namespace {

/// "name" of things that may have none.
std::string to_text(const char* text) { return std::string(text_or_empty(text)); }

constexpr size_t slang_unsized = 0x7fffffff; // what Slang 2026.12 says of `T[]`

/// -1 for sizes that do not exist (yet). Slang throws when a size is a generic parameter.
template <typename Get>
int64_t to_count(Get get)
{
    try {
        const size_t count = get();
        return count == SLANG_UNBOUNDED_SIZE || count == SLANG_UNKNOWN_SIZE || count == slang_unsized ? -1
                                                                                                        : int64_t(count);
    } catch (...) {
        return -1;
    }
}

uint64_t to_bytes(size_t size) { return size == SLANG_UNBOUNDED_SIZE || size == SLANG_UNKNOWN_SIZE ? 0 : size; }

template <typename Thing>
std::vector<ref<Attribute>> attributes_of(const Reflection& view, Thing* thing)
{
    std::vector<ref<Attribute>> result;
    for (unsigned i = 0; i < thing->getUserAttributeCount(); ++i)
        result.push_back(view.view<Attribute>(thing->getUserAttributeByIndex(i)));
    return result;
}

ref<Attribute> pick(const std::vector<ref<Attribute>>& attributes, const std::string& name)
{
    for (const ref<Attribute>& attribute : attributes)
        if (attribute->name() == name)
            return attribute;
    return nullptr;
}

/// Looks a name up once per layout: Slang makes a new object for each lookup of an overloaded or generic name.
template <typename Thing, typename Find>
Thing* look_up(Layout& layout, const std::string& kind, const std::string& name, Find find)
{
    const std::string clean = sanitize_name(name);
    if (clean.empty())
        return nullptr;
    const std::string key = kind + clean;
    if (const auto known = layout.found.find(key); known != layout.found.end())
        return static_cast<Thing*>(known->second);
    Thing* thing = find(clean.c_str());
    layout.found[key] = thing;
    return thing;
}

/// Removes what only Slang's printer adds: spaces after commas in the types that the canonical spelling writes tight.
std::string tighten(std::string name)
{
    // default arguments of built-in generics
    for (const std::string_view noise : {", Access.ReadWrite, AddressSpace.Device, DefaultDataLayout", ", DefaultDataLayout"})
        for (size_t at = name.find(noise); at != name.npos; at = name.find(noise, at))
            name.erase(at, noise.size());
    for (const std::string_view prefix : {"vector<", "matrix<"})
        for (size_t at = name.find(prefix); at != name.npos; at = name.find(prefix, at + 1)) {
            int depth = 0;
            for (size_t pos = at; pos < name.size(); ++pos) {
                depth += name[pos] == '<' ? 1 : name[pos] == '>' ? -1 : 0;
                if (name[pos] == ',' && pos + 1 < name.size() && name[pos + 1] == ' ')
                    name.erase(pos + 1, 1);
                if (name[pos] == '>' && depth == 0)
                    break;
            }
        }
    return name;
}

} // namespace

// ------------------------------------------------------------------------------------------------ conversions

TypeKind to_type_kind(slang::TypeReflection::Kind kind)
{
    switch (int(kind)) {
    case SLANG_TYPE_KIND_STRUCT: return TypeKind::struct_;
    case SLANG_TYPE_KIND_ARRAY: return TypeKind::array;
    case SLANG_TYPE_KIND_MATRIX: return TypeKind::matrix;
    case SLANG_TYPE_KIND_VECTOR: return TypeKind::vector;
    case SLANG_TYPE_KIND_SCALAR: return TypeKind::scalar;
    case SLANG_TYPE_KIND_CONSTANT_BUFFER: return TypeKind::constant_buffer;
    case SLANG_TYPE_KIND_RESOURCE: return TypeKind::resource;
    case SLANG_TYPE_KIND_SAMPLER_STATE: return TypeKind::sampler_state;
    case SLANG_TYPE_KIND_TEXTURE_BUFFER: return TypeKind::texture_buffer;
    case SLANG_TYPE_KIND_SHADER_STORAGE_BUFFER: return TypeKind::shader_storage_buffer;
    case SLANG_TYPE_KIND_PARAMETER_BLOCK: return TypeKind::parameter_block;
    case SLANG_TYPE_KIND_GENERIC_TYPE_PARAMETER: return TypeKind::generic_type_parameter;
    case SLANG_TYPE_KIND_INTERFACE: return TypeKind::interface;
    case SLANG_TYPE_KIND_OUTPUT_STREAM:
    case SLANG_TYPE_KIND_MESH_OUTPUT: return TypeKind::output_stream;
    case SLANG_TYPE_KIND_SPECIALIZED: return TypeKind::specialized;
    case SLANG_TYPE_KIND_FEEDBACK: return TypeKind::feedback;
    case SLANG_TYPE_KIND_POINTER: return TypeKind::pointer;
    case SLANG_TYPE_KIND_DYNAMIC_RESOURCE: return TypeKind::dynamic_resource;
    case SLANG_TYPE_KIND_ENUM: return TypeKind::enum_;
    default: return TypeKind::none;
    }
}

ScalarType to_scalar_type(slang::TypeReflection::ScalarType type)
{
    switch (unsigned(type)) {
    case SLANG_SCALAR_TYPE_VOID: return ScalarType::void_;
    case SLANG_SCALAR_TYPE_BOOL: return ScalarType::bool_;
    case SLANG_SCALAR_TYPE_INT8: return ScalarType::int8;
    case SLANG_SCALAR_TYPE_INT16: return ScalarType::int16;
    case SLANG_SCALAR_TYPE_INT32: return ScalarType::int32;
    case SLANG_SCALAR_TYPE_INT64:
    case SLANG_SCALAR_TYPE_INTPTR: return ScalarType::int64;
    case SLANG_SCALAR_TYPE_UINT8: return ScalarType::uint8;
    case SLANG_SCALAR_TYPE_UINT16: return ScalarType::uint16;
    case SLANG_SCALAR_TYPE_UINT32: return ScalarType::uint32;
    case SLANG_SCALAR_TYPE_UINT64:
    case SLANG_SCALAR_TYPE_UINTPTR: return ScalarType::uint64;
    case SLANG_SCALAR_TYPE_FLOAT16: return ScalarType::float16;
    case SLANG_SCALAR_TYPE_FLOAT32: return ScalarType::float32;
    case SLANG_SCALAR_TYPE_FLOAT64: return ScalarType::float64;
    case SLANG_SCALAR_TYPE_BFLOAT16: return ScalarType::bfloat16;
    case SLANG_SCALAR_TYPE_FLOAT_E4M3: return ScalarType::float8_e4m3;
    case SLANG_SCALAR_TYPE_FLOAT_E5M2: return ScalarType::float8_e5m2;
    default: return ScalarType::none;
    }
}

ResourceShape to_resource_shape(SlangResourceShape shape)
{
    switch (unsigned(shape) & ~unsigned(SLANG_TEXTURE_COMBINED_FLAG | SLANG_TEXTURE_SHADOW_FLAG)) {
    case SLANG_TEXTURE_1D: return ResourceShape::texture_1d;
    case SLANG_TEXTURE_2D: return ResourceShape::texture_2d;
    case SLANG_TEXTURE_3D: return ResourceShape::texture_3d;
    case SLANG_TEXTURE_CUBE: return ResourceShape::texture_cube;
    case SLANG_TEXTURE_BUFFER: return ResourceShape::texture_buffer;
    case SLANG_STRUCTURED_BUFFER: return ResourceShape::structured_buffer;
    case SLANG_BYTE_ADDRESS_BUFFER: return ResourceShape::byte_address_buffer;
    case SLANG_ACCELERATION_STRUCTURE: return ResourceShape::acceleration_structure;
    case SLANG_TEXTURE_SUBPASS: return ResourceShape::texture_subpass;
    case SLANG_TEXTURE_1D_ARRAY: return ResourceShape::texture_1d_array;
    case SLANG_TEXTURE_2D_ARRAY: return ResourceShape::texture_2d_array;
    case SLANG_TEXTURE_CUBE_ARRAY: return ResourceShape::texture_cube_array;
    case SLANG_TEXTURE_2D_MULTISAMPLE: return ResourceShape::texture_2d_multisample;
    case SLANG_TEXTURE_2D_MULTISAMPLE_ARRAY: return ResourceShape::texture_2d_multisample_array;
    case SLANG_RESOURCE_NONE: return ResourceShape::none;
    default: return ResourceShape::unknown;
    }
}

ResourceAccess to_resource_access(SlangResourceAccess access)
{
    switch (access) {
    case SLANG_RESOURCE_ACCESS_READ: return ResourceAccess::read;
    case SLANG_RESOURCE_ACCESS_READ_WRITE: return ResourceAccess::read_write;
    case SLANG_RESOURCE_ACCESS_RASTER_ORDERED: return ResourceAccess::raster_ordered;
    case SLANG_RESOURCE_ACCESS_APPEND: return ResourceAccess::append;
    case SLANG_RESOURCE_ACCESS_CONSUME: return ResourceAccess::consume;
    case SLANG_RESOURCE_ACCESS_WRITE: return ResourceAccess::write;
    case SLANG_RESOURCE_ACCESS_FEEDBACK: return ResourceAccess::feedback;
    default: return ResourceAccess::none;
    }
}

ScalarType scalar_of(slang::TypeReflection* type)
{
    switch (type->getKind()) {
    case slang::TypeReflection::Kind::Scalar:
    case slang::TypeReflection::Kind::Vector:
    case slang::TypeReflection::Kind::Matrix: return to_scalar_type(type->getScalarType());
    case slang::TypeReflection::Kind::Enum: {
        const ScalarType direct = to_scalar_type(type->getScalarType());
        if (direct != ScalarType::none)
            return direct;
        slang::TypeReflection* tag = type->getElementType();
        return tag ? to_scalar_type(tag->getScalarType()) : ScalarType::int32;
    }
    default: return ScalarType::none;
    }
}

slang::TypeReflection* element_of(slang::TypeReflection* type)
{
    slang::TypeReflection* element = type->getElementType();
    if (element || type->getKind() != slang::TypeReflection::Kind::Pointer)
        return element;
    // Slang 2026.12 tells what a pointer points to only as the argument of Ptr<T, ...>
    slang::GenericReflection* arguments = type->getGenericContainer();
    return arguments && arguments->getTypeParameterCount() ? arguments->getConcreteType(arguments->getTypeParameter(0))
                                                           : nullptr;
}

std::string full_type_name(slang::TypeReflection* type)
{
    // built at once: these are asked for most, and their canonical spelling is ours
    using Kind = slang::TypeReflection::Kind;
    if (type->getKind() == Kind::Array) {
        const int64_t count = to_count([&] { return type->getElementCount(); });
        if (slang::TypeReflection* element = type->getElementType(); element && count > 0)
            return full_type_name(element) + cat("[", count, "]");
    }
    if (type->getKind() == Kind::Scalar)
        if (const ScalarType scalar = to_scalar_type(type->getScalarType()); scalar != ScalarType::none)
            if (type->getScalarType() != slang::TypeReflection::IntPtr
                && type->getScalarType() != slang::TypeReflection::UIntPtr)
                return std::string(scalar_info(scalar).slang_name);
    ComPtr<ISlangBlob> blob;
    if (SLANG_FAILED(type->getFullName(blob.put())) || !blob)
        return to_text(type->getName());
    return tighten(restore_constraints(static_cast<const char*>(blob->getBufferPointer())));
}

slang::TypeReflection* Layout::find_type(const std::string& name)
{
    return look_up<slang::TypeReflection>(*this, "type:", name, [&](const char* text) {
        slang::TypeReflection* type = program->findTypeByName(text);
        // `Gen<int, x>` with an x that is no constant: a type on which everything else crashes
        return type && full_type_name(type).find("<error>") == std::string::npos ? type : nullptr;
    });
}

// ------------------------------------------------------------------------------------------------ base

Reflection::Reflection(std::shared_ptr<Layout> layout, void* pointer, int kind)
    : m_layout(std::move(layout)), m_pointer(pointer), m_kind(kind)
{
    m_layout->state->wrappers[{m_pointer, m_layout->program, m_kind}] = this;
}

Reflection::~Reflection()
{
    auto& wrappers = m_layout->state->wrappers;
    const auto found = wrappers.find({m_pointer, m_layout->program, m_kind});
    if (found != wrappers.end() && found->second == this)
        wrappers.erase(found);
}

Reflection* Reflection::find(const Layout& layout, const void* pointer, int kind)
{
    const auto found = layout.state->wrappers.find({pointer, layout.program, kind});
    return found == layout.state->wrappers.end() ? nullptr : found->second;
}

Compiler::Lock Reflection::enter() const
{
    if (!is_valid())
        fail_runtime("Reflection object has been invalidated by a reload; ask the module for it again");
    return Compiler::Lock(*m_layout->state->compiler);
}

// ------------------------------------------------------------------------------------------------ types

TypeKind TypeReflection::kind() const
{
    const auto lock = enter();
    return to_type_kind(slang()->getKind());
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
    std::vector<ref<VariableReflection>> result;
    if (slang()->getKind() == slang::TypeReflection::Kind::Struct)
        for (unsigned i = 0; i < slang()->getFieldCount(); ++i)
            result.push_back(view<VariableReflection>(slang()->getFieldByIndex(i)));
    return result;
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
    return slang()->getKind() == slang::TypeReflection::Kind::Resource
        && (unsigned(slang()->getResourceShape()) & SLANG_TEXTURE_COMBINED_FLAG) != 0;
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

/// The struct declaration at path[depth...] below `decl`.
slang::DeclReflection* find_struct(slang::DeclReflection* decl, const std::vector<std::string>& path, size_t depth)
{
    using Kind = slang::DeclReflection::Kind;
    for (unsigned i = 0; i < decl->getChildrenCount(); ++i) {
        slang::DeclReflection* child = decl->getChild(i);
        Kind kind = child->getKind();
        if (path[depth] != text_or_empty(child->getName()))
            continue;
        if (kind == Kind::Generic) {
            slang::GenericReflection* generic = child->asGeneric();
            child = generic ? generic->getInnerDecl() : nullptr;
            kind = child ? child->getKind() : Kind::Unsupported;
        }
        if (kind != Kind::Struct && kind != Kind::Namespace)
            continue;
        if (depth + 1 == path.size()) {
            if (kind == Kind::Struct)
                return child;
        } else if (slang::DeclReflection* found = find_struct(child, path, depth + 1)) {
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
    if (slang()->getKind() != slang::TypeReflection::Kind::Struct)
        return result;
    const std::vector<std::string> path = path_of(full_type_name(slang()));
    slang::ISession* session = m_layout->state->session.get();
    const bool is_instance = slang()->getGenericContainer() != nullptr;
    for (SlangInt i = 0; i < session->getLoadedModuleCount(); ++i) {
        slang::DeclReflection* found = find_struct(session->getLoadedModule(i)->getModuleReflection(), path, 0);
        if (!found || (!is_instance && found->getType() != slang()))
            continue; // a struct of the same name in another module
        for (unsigned k = 0; k < found->getChildrenCount(); ++k) {
            slang::DeclReflection* child = found->getChild(k);
            if (child->getKind() != slang::DeclReflection::Kind::Func || text_or_empty(child->getName()) != "$init")
                continue;
            result.push_back(view<FunctionReflection>(child->asFunction()));
        }
        break;
    }
    return result;
}

ref<TypeReflection> TypeReflection::substitute(const TypeReflection& type) const
{
    const auto lock = enter();
    slang::GenericReflection* arguments = slang()->getGenericContainer();
    if (type.layout()->state != m_layout->state)
        fail_value("substitute: the type belongs to another session");
    return view<TypeReflection>(arguments ? type.slang()->applySpecializations(arguments) : type.slang());
}

// ------------------------------------------------------------------------------------------------ variables

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

namespace {

template <typename Thing>
bool has(Thing* thing, ModifierID modifier)
{
    const auto find = [&](ModifierID id) { return thing->findModifier(slang::Modifier::ID(int(id))) != nullptr; };
    if (modifier == ModifierID::out)
        return find(ModifierID::out) || find(ModifierID::inout);
    return find(modifier);
}

} // namespace

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

// ------------------------------------------------------------------------------------------------ layouts

TypeKind TypeLayoutReflection::kind() const
{
    const auto lock = enter();
    return to_type_kind(slang()->getKind());
}

std::string TypeLayoutReflection::name() const
{
    const auto lock = enter();
    return slang()->getType() ? restore_constraints(text_or_empty(slang()->getName())) : std::string();
}

uint64_t TypeLayoutReflection::size() const
{
    const auto lock = enter();
    return to_bytes(slang()->getSize());
}

uint64_t TypeLayoutReflection::stride() const
{
    const auto lock = enter();
    return to_bytes(slang()->getStride());
}

uint64_t TypeLayoutReflection::alignment() const
{
    const auto lock = enter();
    return uint64_t(std::max(slang()->getAlignment(), 1));
}

ref<TypeReflection> TypeLayoutReflection::type() const
{
    const auto lock = enter();
    return view<TypeReflection>(slang()->getType());
}

std::vector<ref<VariableLayoutReflection>> TypeLayoutReflection::fields() const
{
    const auto lock = enter();
    std::vector<ref<VariableLayoutReflection>> result;
    if (slang()->getKind() == slang::TypeReflection::Kind::Struct)
        for (unsigned i = 0; i < slang()->getFieldCount(); ++i)
            result.push_back(view<VariableLayoutReflection>(slang()->getFieldByIndex(i)));
    return result;
}

ref<TypeLayoutReflection> TypeLayoutReflection::element_type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getElementTypeLayout());
}

ref<TypeLayoutReflection> TypeLayoutReflection::unwrap_array() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->unwrapArray());
}

ParameterCategory TypeLayoutReflection::parameter_category() const
{
    const auto lock = enter();
    return slang()->getParameterCategory();
}

ref<TypeLayout> TypeLayoutReflection::plain() const
{
    const auto lock = enter();
    return make_type_layout(slang(), m_layout->program);
}

std::string VariableLayoutReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

ref<VariableReflection> VariableLayoutReflection::variable() const
{
    const auto lock = enter();
    return view<VariableReflection>(slang()->getVariable());
}

ref<TypeLayoutReflection> VariableLayoutReflection::type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getTypeLayout());
}

uint64_t VariableLayoutReflection::offset() const { return offset_in(ParameterCategory::Uniform); }

uint64_t VariableLayoutReflection::offset_in(ParameterCategory category) const
{
    const auto lock = enter();
    return to_bytes(slang()->getOffset(category));
}

uint32_t VariableLayoutReflection::binding_index() const
{
    const auto lock = enter();
    return slang()->getBindingIndex();
}

uint32_t VariableLayoutReflection::binding_space() const
{
    const auto lock = enter();
    return slang()->getBindingSpace();
}

std::string VariableLayoutReflection::semantic_name() const
{
    const auto lock = enter();
    return to_text(slang()->getSemanticName());
}

// ------------------------------------------------------------------------------------------------ functions

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
    std::vector<ref<VariableReflection>> result;
    if (!slang()->isOverloaded())
        for (unsigned i = 0; i < slang()->getParameterCount(); ++i)
            result.push_back(view<VariableReflection>(slang()->getParameterByIndex(i)));
    return result;
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
    std::vector<ref<FunctionReflection>> result;
    if (slang()->isOverloaded())
        for (unsigned i = 0; i < slang()->getOverloadCount(); ++i)
            result.push_back(view<FunctionReflection>(slang()->getOverload(i)));
    return result;
}

ref<FunctionReflection> FunctionReflection::specialize_with_arg_types(
    const std::vector<ref<TypeReflection>>& types) const
{
    const auto lock = enter();
    std::vector<slang::TypeReflection*> arguments;
    std::string key = cat("specialize:", m_pointer);
    for (const ref<TypeReflection>& type : types) {
        if (!type->is_valid() || type->layout()->state != m_layout->state)
            fail_value("specialize_with_arg_types: type \"", type->name(), "\" belongs to another session");
        arguments.push_back(type->slang());
        key += cat(",", type->pointer());
    }
    const auto known = m_layout->found.find(key);
    void* found = known != m_layout->found.end()
        ? known->second
        : slang()->specializeWithArgTypes(unsigned(arguments.size()), arguments.data());
    m_layout->found[key] = found;
    return view<FunctionReflection>(static_cast<slang::FunctionReflection*>(found));
}

ref<GenericReflection> FunctionReflection::generic() const
{
    const auto lock = enter();
    return slang()->isOverloaded() ? ref<GenericReflection>() : view<GenericReflection>(slang()->getGenericContainer());
}

// ------------------------------------------------------------------------------------------------ generics

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
    std::vector<ref<TypeReflection>> result;
    for (unsigned i = 0; i < slang()->getTypeParameterConstraintCount(parameter); ++i)
        result.push_back(view<TypeReflection>(slang()->getTypeParameterConstraintType(parameter, i)));
    return result;
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

// ------------------------------------------------------------------------------------------------ declarations

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
    std::vector<ref<DeclReflection>> result;
    for (unsigned i = 0; i < slang()->getChildrenCount(); ++i)
        result.push_back(view<DeclReflection>(slang()->getChild(i)));
    return result;
}

ref<DeclReflection> DeclReflection::parent() const
{
    const auto lock = enter();
    return view<DeclReflection>(slang()->getParent());
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

// ------------------------------------------------------------------------------------------------ entry points

std::string EntryPointLayout::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

std::string EntryPointLayout::name_override() const
{
    const auto lock = enter();
    return to_text(slang()->getNameOverride());
}

std::string EntryPointLayout::stage() const
{
    const auto lock = enter();
    static constexpr const char* names[]
        = {"none",       "vertex", "hull",     "domain", "geometry",     "fragment",    "compute", "ray_generation",
           "intersection", "any_hit", "closest_hit", "miss", "callable", "mesh", "amplification", "dispatch"};
    const size_t stage = size_t(slang()->getStage());
    return stage < std::size(names) ? names[stage] : "none";
}

std::array<uint32_t, 3> EntryPointLayout::compute_thread_group_size() const
{
    const auto lock = enter();
    SlangUInt size[3] = {1, 1, 1};
    slang()->getComputeThreadGroupSize(3, size);
    return {uint32_t(size[0]), uint32_t(size[1]), uint32_t(size[2])};
}

std::vector<ref<VariableLayoutReflection>> EntryPointLayout::parameters() const
{
    const auto lock = enter();
    std::vector<ref<VariableLayoutReflection>> result;
    for (unsigned i = 0; i < slang()->getParameterCount(); ++i)
        result.push_back(view<VariableLayoutReflection>(slang()->getParameterByIndex(i)));
    return result;
}

ref<FunctionReflection> EntryPointLayout::function() const
{
    const auto lock = enter();
    return view<FunctionReflection>(slang()->getFunction());
}

ref<TypeLayoutReflection> EntryPointLayout::type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getTypeLayout());
}

// ------------------------------------------------------------------------------------------------ attributes

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

// ------------------------------------------------------------------------------------------------ programs

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
    std::vector<ref<VariableLayoutReflection>> result;
    for (unsigned i = 0; i < slang()->getParameterCount(); ++i)
        result.push_back(view<VariableLayoutReflection>(slang()->getParameterByIndex(i)));
    return result;
}

std::vector<ref<EntryPointLayout>> ProgramReflection::entry_points() const
{
    const auto lock = enter();
    std::vector<ref<EntryPointLayout>> result;
    for (SlangUInt i = 0; i < slang()->getEntryPointCount(); ++i)
        result.push_back(view<EntryPointLayout>(slang()->getEntryPointByIndex(i)));
    return result;
}

ref<TypeReflection> ProgramReflection::find_type_by_name(const std::string& name) const
{
    const auto lock = enter();
    return view<TypeReflection>(m_layout->find_type(name));
}

ref<FunctionReflection> ProgramReflection::find_function_by_name(const std::string& name) const
{
    const auto lock = enter();
    return view<FunctionReflection>(look_up<slang::FunctionReflection>(
        *m_layout, "function:", name, [&](const char* text) { return slang()->findFunctionByName(text); }));
}

ref<FunctionReflection> ProgramReflection::find_function_by_name_in_type(const TypeReflection& type,
                                                                         const std::string& name) const
{
    const auto lock = enter();
    return view<FunctionReflection>(look_up<slang::FunctionReflection>(
        *m_layout, cat("method:", type.pointer(), ":"), name,
        [&](const char* text) { return slang()->findFunctionByNameInType(type.slang(), text); }));
}

ref<TypeLayoutReflection> ProgramReflection::get_type_layout(const TypeReflection& type, LayoutRules rules) const
{
    const auto lock = enter();
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
    slang::ISession* session = m_layout->state->session.get();
    slang::TypeLayoutReflection* element = nullptr;
    ComPtr<ISlangBlob> diagnostics;
    try { // Slang throws for generics without arguments
        slang::TypeReflection* buffer
            = session->getContainerType(type.slang(), slang::ContainerType::StructuredBuffer, diagnostics.put());
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

namespace {

/// A module with a generic function that takes only what conforms to `interface_name`.
slang::ProgramLayout* conformance_probe(Layout& layout, const std::string& interface_name)
{
    const std::string key = "probe:" + interface_name;
    if (const auto known = layout.found.find(key); known != layout.found.end())
        return static_cast<slang::ProgramLayout*>(known->second);
    std::string source;
    for (const std::string& module : layout.modules)
        source += "import \"" + module + "\";\n";
    source += "void _spy_probe<T : " + interface_name + ">(T value) {}\n";
    const std::string name = "_spy_probe_" + content_hash(source);
    ComPtr<ISlangBlob> diagnostics;
    slang::IModule* module = slang_loadModuleFromSource(layout.state->session.get(), name.c_str(), name.c_str(),
                                                        source.data(), source.size(), diagnostics.put());
    slang::ProgramLayout* probe = module ? module->getLayout(0, diagnostics.put()) : nullptr;
    layout.found[key] = probe;
    return probe;
}

} // namespace

bool ProgramReflection::is_sub_type(const TypeReflection& type, const TypeReflection& super) const
{
    const auto lock = enter();
    if (type.layout()->state != m_layout->state || super.layout()->state != m_layout->state)
        fail_value("is_sub_type: the types belong to another session");
    const auto kind = type.slang()->getKind();
    if (kind == slang::TypeReflection::Kind::Struct || kind == slang::TypeReflection::Kind::Interface
        || super.slang()->getKind() != slang::TypeReflection::Kind::Interface)
        return super.slang()->getKind() == slang::TypeReflection::Kind::Interface
            ? slang()->isSubType(type.slang(), super.slang())
            : type.slang() == super.slang();
    // isSubType overflows the stack for the built-in types of Slang 2026.12
    slang::ProgramLayout* probe = conformance_probe(*m_layout, full_type_name(super.slang()));
    return probe
        && probe->findFunctionByName(cat("_spy_probe<", full_type_name(type.slang()), ">").c_str()) != nullptr;
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
