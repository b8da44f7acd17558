#include "slang/type_layout.h"

#include "slang/binding_walker.h"

#include "core/format.h"

#include <cctype>
#include <map>
#include <set>

namespace spy {
namespace {

using Kind = slang::TypeReflection::Kind;

DescriptorHandleType handle_type_of(slang::TypeReflection* resource)
{
    using Type = DescriptorHandleType;
    if (resource->getKind() == Kind::SamplerState)
        return Type::sampler;
    if (resource->getKind() != Kind::Resource)
        return Type::undefined;
    const ResourceAccess access = to_resource_access(resource->getResourceAccess());
    const bool writable = access != ResourceAccess::read && access != ResourceAccess::none;
    switch (to_resource_shape(resource->getResourceShape())) {
    case ResourceShape::acceleration_structure: return Type::acceleration_structure;
    case ResourceShape::structured_buffer:
    case ResourceShape::byte_address_buffer:
    case ResourceShape::texture_buffer: return writable ? Type::rw_buffer : Type::buffer;
    default: break;
    }
    if (unsigned(resource->getResourceShape()) & SLANG_TEXTURE_COMBINED_FLAG)
        return Type::combined_texture_sampler;
    return writable ? Type::rw_texture : Type::texture;
}

class TypeBuilder {
public:
    explicit TypeBuilder(slang::ProgramLayout* program) : m_program(program) { }

    ref<TypeLayout> build(slang::TypeLayoutReflection* source)
    {
        if (const auto known = m_done.find(source); known != m_done.end())
            return known->second;
        m_open.insert(source);
        ref<TypeLayout> result = new TypeLayout();
        result->kind = to_type_kind(kind_of(source));
        if (slang::TypeReflection* type = source->getType()) {
            result->name = text_or_empty(type->getName());
            result->full_name = full_type_name(type);
        }
        result->size = byte_size(source);
        result->alignment = uint64_t(std::max(source->getAlignment(), 1));
        result->stride = (result->size + result->alignment - 1) / result->alignment * result->alignment;
        fill(*result, source);
        m_open.erase(source);
        m_done[source] = result;
        return result;
    }

    ref<TypeLayout> build_struct(slang::TypeLayoutReflection* source, bool bindable_only)
    {
        ref<TypeLayout> result = new TypeLayout();
        result->kind = TypeKind::struct_;
        result->size = byte_size(source);
        result->alignment = uint64_t(std::max(source->getAlignment(), 1));
        result->stride = (result->size + result->alignment - 1) / result->alignment * result->alignment;
        fill_struct(*result, source, bindable_only);
        return result;
    }

private:
    void fill(TypeLayout& result, slang::TypeLayoutReflection* source)
    {
        slang::TypeReflection* type = source->getType();
        switch (kind_of(source)) {
        case Kind::Scalar:
        case Kind::Enum:
            result.scalar = scalar_of(type);
            result.rows = result.cols = 1;
            break;
        case Kind::Vector:
            result.scalar = scalar_of(type);
            result.rows = 1;
            result.cols = uint32_t(known_size(type->getElementCount(), "length of a vector"));
            result.element_stride = result.cols ? result.size / result.cols : 0;
            result.element = build(source->getElementTypeLayout());
            result.element_stride = result.element->size;
            break;
        case Kind::Matrix: fill_matrix(result, source); break;
        case Kind::Array: fill_array(result, source); break;
        case Kind::Struct:
            fill_struct(result, source, false);
            check_handles(result);
            break;
        case Kind::ConstantBuffer:
        case Kind::ParameterBlock:
            result.element = build(source->getElementVarLayout()->getTypeLayout(), element_of(source->getType()));
            result.slot_count = result.element->slot_count;
            result.scope_count = 1 + result.element->scope_count;
            break;
        case Kind::Resource: fill_resource(result, source); break;
        case Kind::SamplerState:
        case Kind::DynamicResource:
        case Kind::TextureBuffer:
        case Kind::ShaderStorageBuffer: result.slot_count = 1; break;
        case Kind::Pointer: fill_pointer(result, type); break;
        default: break;
        }
    }

    void fill_matrix(TypeLayout& result, slang::TypeLayoutReflection* source)
    {
        result.scalar = scalar_of(source->getType());
        result.rows = source->getRowCount();
        result.cols = source->getColumnCount();
        result.row_major = source->getMatrixLayoutMode() != SLANG_MATRIX_LAYOUT_COLUMN_MAJOR;
        const uint32_t lines = result.row_major ? result.rows : result.cols;
        result.element_stride = lines ? result.size / lines : 0; // every line is padded alike
        // In a constant buffer of HLSL the last line ends with its last number.
        const uint64_t line = lines ? result.rows * result.cols / lines * scalar_info(result.scalar).size : 0;
        const uint64_t step = lines > 1 && result.size >= line ? (result.size - line) / (lines - 1) : 0;
        if (step && step % 16 == 0 && step * (lines - 1) + line == result.size)
            result.element_stride = step;
    }

    /// DescriptorHandle<resource>. On targets without descriptors Slang lays out the resource itself.
    ref<TypeLayout> build_handle(slang::TypeLayoutReflection* source, slang::TypeReflection* type,
                                 slang::TypeReflection* resource)
    {
        ref<TypeLayout> result = new TypeLayout();
        result->kind = TypeKind::descriptor_handle;
        result->name = text_or_empty(type->getName());
        result->full_name = full_type_name(type);
        result->size = byte_size(source);
        result->alignment = uint64_t(std::max(source->getAlignment(), 1));
        result->stride = round_up(result->size, result->alignment);
        result->resource_shape = to_resource_shape(resource->getResourceShape());
        result->resource_access = to_resource_access(resource->getResourceAccess());
        result->handle = handle_type_of(resource);
        if (slang::TypeLayoutReflection* element = source->getElementTypeLayout();
            element && result->resource_shape == ResourceShape::structured_buffer)
            result->element_stride = round_up(byte_size(element), uint64_t(std::max(element->getAlignment(), 1)));
        return result;
    }

    /// What is declared as `type`, whose layout may not say so.
    ref<TypeLayout> build(slang::TypeLayoutReflection* source, slang::TypeReflection* type)
    {
        slang::TypeReflection* resource = resource_of_handle(type);
        return resource ? build_handle(source, type, resource) : build(source);
    }

    void fill_array(TypeLayout& result, slang::TypeLayoutReflection* source)
    {
        const size_t count = source->getElementCount(m_program);
        result.element = build(source->getElementTypeLayout(), element_of(source->getType()));
        result.element_stride = known_size(source->getElementStride(SLANG_PARAMETER_CATEGORY_UNIFORM), "array stride");
        if (result.element->kind == TypeKind::descriptor_handle && result.element_stride < result.element->size)
            fail(ErrorKind::not_implemented, "arrays of ", result.element->full_name,
                 " have a wrong layout in Slang on this device: use a struct with a handle for each");
        result.element_count = count == SLANG_UNBOUNDED_SIZE || count == 0
            ? -1
            : int64_t(known_size(count, "length of an array"));
        const uint32_t times = result.element_count < 0 ? 1 : uint32_t(result.element_count);
        result.slot_count = result.element->slot_count * times;
        result.scope_count = result.element->scope_count * times;
    }

    void fill_struct(TypeLayout& result, slang::TypeLayoutReflection* source, bool bindable_only)
    {
        for (unsigned i = 0; i < source->getFieldCount(); ++i) {
            slang::VariableLayoutReflection* field = source->getFieldByIndex(i);
            if (bindable_only && (!is_bindable(field->getTypeLayout()) || is_own(field)))
                continue;
            ref<TypeLayout> type = build(field->getTypeLayout(), declared_type(field));
            const bool has_bytes = type->size > 0;
            const uint64_t offset = has_bytes ? known_size(field->getOffset(), "offset of a field") : 0;
            result.fields.push_back(
                {std::string(text_or_empty(field->getName())), type, offset, result.slot_count, result.scope_count});
            result.slot_count += type->slot_count;
            result.scope_count += type->scope_count;
        }
    }

    /// Slang 2026.12 counts 8 bytes for a handle of texture and sampler in one that lies in a struct, and emits 16 of
    /// them where each of the two is an address.
    static void check_handles(const TypeLayout& layout)
    {
        for (const FieldLayout& field : layout.fields) {
            if (field.type->kind != TypeKind::descriptor_handle)
                continue;
            const uint64_t end = field.offset + field.type->size;
            bool fits = end <= layout.size;
            for (const FieldLayout& other : layout.fields)
                fits &= other.offset <= field.offset || other.offset >= end;
            if (!fits)
                fail(ErrorKind::not_implemented, layout.full_name, ": on this device, a struct cannot have the field ",
                     field.name, " of type ", field.type->full_name,
                     ": use a handle of the texture and one of the sampler");
        }
    }

    void fill_resource(TypeLayout& result, slang::TypeLayoutReflection* source)
    {
        slang::TypeReflection* type = source->getType();
        result.resource_shape = to_resource_shape(type->getResourceShape());
        result.resource_access = to_resource_access(type->getResourceAccess());
        result.slot_count = 1;
        if (result.resource_shape == ResourceShape::structured_buffer) {
            if (slang::TypeLayoutReflection* element = source->getElementTypeLayout();
                element && !m_open.count(element))
                result.element = build(element, element_of(type));
        } else if (slang::TypeReflection* texel = type->getResourceResultType()) {
            result.scalar = scalar_of(texel);
            result.rows = 1;
            result.cols = texel->getKind() == Kind::Vector ? uint32_t(texel->getElementCount()) : 1;
        }
    }

    /// The pointee is laid out as a buffer element is. A type that points to itself has no `element` inside itself.
    void fill_pointer(TypeLayout& result, slang::TypeReflection* type)
    {
        slang::TypeReflection* pointee = element_of(type);
        if (!pointee || pointee->getKind() == Kind::None || m_pointees.count(pointee))
            return;
        slang::TypeLayoutReflection* layout = m_program->getTypeLayout(pointee,
                                                                       slang::LayoutRules::DefaultStructuredBuffer);
        if (!layout || m_open.count(layout))
            return;
        m_pointees.insert(pointee);
        result.element = build(layout, pointee);
        m_pointees.erase(pointee);
    }

    slang::ProgramLayout* m_program;
    std::map<slang::TypeLayoutReflection*, ref<TypeLayout>> m_done;
    std::set<slang::TypeLayoutReflection*> m_open;
    std::set<slang::TypeReflection*> m_pointees;
};

bool is_block(slang::TypeLayoutReflection* layout)
{
    return layout->getKind() == Kind::ConstantBuffer || layout->getKind() == Kind::ParameterBlock;
}

/// Adds a scope for loose parameters, which Slang wraps in a constant buffer when they have bytes.
slang::TypeLayoutReflection* add_root_scope(ProgramLayout& result, BindingWalker& walker, ScopeKind kind,
                                            slang::VariableLayoutReflection* variable, BindingWalker::Place& place)
{
    ScopeLayout scope;
    scope.kind = kind;
    place = walker.enter({}, variable, "");
    place.offset = 0;
    slang::TypeLayoutReflection* layout = variable->getTypeLayout();
    if (is_block(layout)) {
        place = walker.open_scope(layout, place, scope);
        layout = layout->getElementVarLayout()->getTypeLayout();
    } else {
        scope.size = byte_size(layout);
    }
    place.scope = uint32_t(result.scopes.size());
    result.scopes.push_back(std::move(scope));
    return layout;
}

/// Slang renames what the target language reserves.
std::string target_name(const std::string& name, const std::string& format)
{
    return (format == "cpp" || format == "cuda") && name == "main" ? "main_0" : name;
}

} // namespace

ref<TypeLayout> make_type_layout(slang::TypeLayoutReflection* layout, slang::ProgramLayout* program)
{
    try {
        return TypeBuilder(program).build(layout);
    } catch (const Error&) {
        throw;
    } catch (...) { // Slang throws where a size is a generic parameter
        fail_value("a type has no layout before its generic parameters have values; name a type with arguments, such "
                   "as Box<float>");
    }
}

namespace {

/// The arguments of generated kernels for D3D12 lie in memory, laid out as C does, because a constant buffer pads
/// arrays. For the layers above, the parameter `_spy_calls` (the last one) is the struct that the kernel reads from it.
void open_arguments(ProgramLayout& layout, slang::ProgramLayout* program, TypeBuilder& types)
{
    EntryPoint& entry = layout.entry_points.front();
    if (layout.slots.size() <= entry.slot || layout.slots.back().path != "_spy_calls")
        return;
    slang::TypeReflection* type = program->findTypeByName(
        "_spy_Call_kernel"); // where the user has one (plan/slang_text.py)
    if (!type)
        type = program->findTypeByName("_spy_Call");
    slang::TypeLayoutReflection* call = type ? program->getTypeLayout(type, slang::LayoutRules::DefaultStructuredBuffer)
                                             : nullptr;
    if (!call)
        fail_runtime("a generated kernel has no type _spy_Call");
    ScopeLayout& scope = layout.scopes[1];
    scope.memory = true;
    scope.size = byte_size(call);
    scope.set = layout.slots.back().set;
    scope.binding = layout.slots.back().binding;
    layout.slots.pop_back();
    FieldLayout& field = entry.parameters->fields.back();
    field.name = "_call";
    field.type = types.build(call);
    --entry.parameters->slot_count;
    entry.parameters->size = scope.size;
}

/// Adds what an input or output is made of; it takes one location for each row of a matrix, times the elements of
/// arrays.
void add_varyings(std::vector<Varying>& result, slang::VariableLayoutReflection* variable,
                  slang::ParameterCategory category, uint32_t location = 0, std::string semantic = {})
{
    slang::TypeLayoutReflection* layout = variable->getTypeLayout();
    if (!layout->getSize(category))
        return; // a system value, or of the other direction
    location += uint32_t(known_size(variable->getOffset(category), "location"));
    if (const char* own = variable->getSemanticName(); own && *own)
        semantic = own;
    if (layout->getKind() == Kind::Struct) {
        for (unsigned i = 0; i < layout->getFieldCount(); ++i)
            add_varyings(result, layout->getFieldByIndex(i), category, location, semantic);
        return;
    }
    if (semantic.empty())
        semantic = text_or_empty(variable->getName());
    for (char& c : semantic)
        c = char(std::toupper(static_cast<unsigned char>(c)));
    if (semantic.starts_with("SV_"))
        return;
    slang::TypeReflection* type = layout->getType();
    const bool is_matrix = layout->getKind() == Kind::Matrix;
    const uint32_t lines = uint32_t(layout->getSize(category));
    Varying varying;
    varying.semantic = semantic;
    varying.scalar = scalar_of(type);
    varying.channels = is_matrix            ? layout->getColumnCount()
        : layout->getKind() == Kind::Vector ? uint32_t(type->getElementCount())
                                            : 1;
    for (uint32_t line = 0; line < lines; ++line) {
        varying.semantic_index = uint32_t(variable->getSemanticIndex()) + line;
        varying.location = location + line;
        result.push_back(varying);
    }
}

void add_varyings(ProgramLayout& result, slang::EntryPointReflection* entry)
{
    const auto stage = ShaderStage(entry->getStage());
    const auto add = [&](std::vector<Varying>& to, slang::ParameterCategory category) {
        for (unsigned i = 0; i < entry->getParameterCount(); ++i)
            add_varyings(to, entry->getParameterByIndex(i), category);
    };
    if (stage == ShaderStage::fragment)
        add(result.fragment_inputs, slang::ParameterCategory::VaryingInput);
    if (stage != ShaderStage::vertex)
        return;
    add(result.vertex_inputs, slang::ParameterCategory::VaryingInput);
    add(result.vertex_outputs, slang::ParameterCategory::VaryingOutput);
    if (slang::VariableLayoutReflection* returned = entry->getResultVarLayout())
        add_varyings(result.vertex_outputs, returned, slang::ParameterCategory::VaryingOutput);
}

} // namespace

ref<ProgramLayout> make_program_layout(slang::ProgramLayout* program, const std::vector<uint32_t>& entry_points,
                                       const std::string& format)
{
    const bool pointers = format == "cpp" || format == "cuda";
    ref<ProgramLayout> result = new ProgramLayout();
    BindingWalker walker(*result, pointers);
    TypeBuilder types(program);

    BindingWalker::Place globals_place;
    slang::TypeLayoutReflection* globals = add_root_scope(*result, walker, ScopeKind::globals,
                                                          program->getGlobalParamsVarLayout(), globals_place);
    result->globals = types.build_struct(globals, true);
    std::vector<std::pair<slang::TypeLayoutReflection*, BindingWalker::Place>> own;
    for (uint32_t index : entry_points) {
        if (index >= program->getEntryPointCount())
            fail(ErrorKind::index, "entry point index ", index, " is out of range: the program has ",
                 program->getEntryPointCount());
        slang::EntryPointReflection* source = program->getEntryPointByIndex(index);
        EntryPoint& entry = result->entry_points.emplace_back();
        const char* renamed = source->getNameOverride();
        entry.name = target_name(std::string(renamed && *renamed ? renamed : text_or_empty(source->getName()).data()),
                                 format);
        entry.stage = ShaderStage(source->getStage());
        entry.scope = uint32_t(result->scopes.size());
        BindingWalker::Place place;
        slang::TypeLayoutReflection* parameters = add_root_scope(*result, walker, ScopeKind::entry_point,
                                                                 source->getVarLayout(), place);
        result->scopes.back().push_constant = format.starts_with("spirv");
        entry.parameters = types.build_struct(parameters, true);
        own.emplace_back(parameters, place);
        add_varyings(*result, source);
    }
    result->nested_scope = uint32_t(result->scopes.size());
    walker.walk_fields(globals, globals_place, true);
    for (size_t i = 0; i < own.size(); ++i) {
        result->entry_points[i].slot = uint32_t(result->slots.size());
        result->entry_points[i].nested_scope = uint32_t(result->scopes.size());
        walker.walk_fields(own[i].first, own[i].second, true);
    }
    open_arguments(*result, program, types);

    SlangUInt size[3] = {1, 1, 1};
    program->getEntryPointByIndex(entry_points.front())->getComputeThreadGroupSize(3, size);
    for (int i = 0; i < 3; ++i)
        result->group_size[i] = uint32_t(size[i]);
    return result;
}

} // namespace spy
