// What all views on reflection have in common.
#include "slang/reflection/util.h"

namespace spy {

using namespace reflecting;

namespace {

/// Removes what only Slang's printer adds: spaces after commas in the types that the canonical spelling writes tight.
std::string tighten(std::string name)
{
    // default arguments of built-in generics
    for (const std::string_view noise :
         {", Access.ReadWrite, AddressSpace.Device, DefaultDataLayout", ", DefaultDataLayout"})
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

ScalarType narrow_scalar(slang::TypeReflection* type)
{
    if (type->getKind() != slang::TypeReflection::Kind::Struct || type->getFieldCount() != 1 ||
        text_or_empty(type->getFieldByIndex(0)->getName()) != "_spy_bits")
        return ScalarType::none;
    for (const ScalarType scalar : {ScalarType::bfloat16, ScalarType::float8_e4m3, ScalarType::float8_e5m2})
        if (text_or_empty(type->getName()) == scalar_info(scalar).slang_name)
            return scalar;
    return ScalarType::none;
}

slang::TypeReflection::Kind kind_of(slang::TypeReflection* type)
{
    return narrow_scalar(type) == ScalarType::none ? type->getKind() : slang::TypeReflection::Kind::Scalar;
}

slang::TypeReflection::Kind kind_of(slang::TypeLayoutReflection* layout)
{
    slang::TypeReflection* type = layout->getType();
    return type && narrow_scalar(type) != ScalarType::none ? slang::TypeReflection::Kind::Scalar : layout->getKind();
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
    case slang::TypeReflection::Kind::Struct: return narrow_scalar(type);
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

namespace {

/// Where the arguments between the last <> of a name begin and end; empty where the name has none.
std::vector<std::pair<size_t, size_t>> argument_ranges(std::string_view name)
{
    std::vector<std::pair<size_t, size_t>> found;
    if (!name.ends_with('>'))
        return found;
    size_t end = name.size() - 1;
    int depth = 1;
    for (size_t at = end; at-- > 0 && depth;) {
        depth += name[at] == '>' ? 1 : name[at] == '<' ? -1 : 0;
        if (depth > 1 || (depth == 1 && name[at] != ','))
            continue;
        const size_t begin = name.find_first_not_of(' ', at + 1);
        found.insert(found.begin(), {begin, end});
        end = at;
    }
    return found;
}

bool is_number(std::string_view text)
{
    return text.starts_with("bool(") || text.find_first_not_of("-0123456789") == text.npos;
}

bool may_have_bools(std::string_view name)
{
    for (const std::string_view mark : {"bool(", "<0", "<1", ",0", ",1", " 0", " 1"})
        if (name.find(mark) != name.npos)
            return true;
    return false;
}

/// "S<1>" -> "S<true>": Slang 2026.12 prints a bool among the arguments as a number, and reads that as another type.
std::string with_bools(std::string name, slang::TypeReflection* type)
{
    if (!may_have_bools(name) || name.find("<error>") != name.npos)
        return name;
    const auto ranges = argument_ranges(name);
    slang::GenericReflection* generic = ranges.empty() ? nullptr : type->getGenericContainer();
    const auto text = [&](const std::pair<size_t, size_t>& range) {
        return std::string_view(name).substr(range.first, range.second - range.first);
    };
    const auto is_value = [&](const auto& range) { return is_number(text(range)); };
    const auto count = size_t(std::count_if(ranges.begin(), ranges.end(), is_value));
    if (!generic || count != generic->getValueParameterCount() ||
        ranges.size() - count != generic->getTypeParameterCount())
        return name;
    std::string result = name.substr(0, ranges[0].first);
    unsigned values = 0, types = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
        std::string argument(text(ranges[i]));
        if (is_value(ranges[i])) {
            slang::TypeReflection* kind = generic->getValueParameter(values++)->getType();
            if (kind && kind->getScalarType() == slang::TypeReflection::ScalarType::Bool)
                argument = argument == "0" || argument == "bool(0)" ? "false" : "true";
        } else if (slang::TypeReflection* inner = generic->getConcreteType(generic->getTypeParameter(types++));
                   inner && may_have_bools(argument)) {
            argument = full_type_name(inner);
        }
        const size_t next = i + 1 < ranges.size() ? ranges[i + 1].first : name.size();
        result += argument + name.substr(ranges[i].second, next - ranges[i].second);
    }
    return result;
}

} // namespace

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
            if (type->getScalarType() != slang::TypeReflection::IntPtr &&
                type->getScalarType() != slang::TypeReflection::UIntPtr)
                return std::string(scalar_info(scalar).slang_name);
    ComPtr<ISlangBlob> blob;
    if (SLANG_FAILED(type->getFullName(blob.put())) || !blob)
        return to_text(type->getName());
    return with_bools(tighten(restore_constraints(static_cast<const char*>(blob->getBufferPointer()))), type);
}

Reflection::Reflection(std::shared_ptr<Layout> layout, void* pointer, int kind)
    : m_layout(std::move(layout)),
      m_pointer(pointer),
      m_kind(kind)
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

} // namespace spy
