#pragma once
// Where a backend binds each parameter of a program, from Slang's reflection. Part of type_layout.cpp.
#include "core/align.h"
#include "slang/reflection/reflection.h"

#include <algorithm>
#include <slang.h>

namespace spy {

/// Parameter categories that a backend binds by number.
inline constexpr slang::ParameterCategory register_categories[] = {slang::ConstantBuffer, slang::ShaderResource,
                                                                   slang::UnorderedAccess, slang::SamplerState,
                                                                   slang::DescriptorTableSlot};

inline uint64_t known_size(size_t size, const char* what)
{
    if (size == SLANG_UNKNOWN_SIZE)
        fail_value("the ", what, " depends on a generic parameter or a link-time constant that has no value yet");
    return size == SLANG_UNBOUNDED_SIZE ? 0 : size;
}

inline uint64_t byte_size(slang::TypeLayoutReflection* layout)
{
    return known_size(layout->getSize(), "size of a type");
}

/// True for parameters that hold data or a resource, not those the hardware supplies.
inline bool is_bindable(slang::TypeLayoutReflection* layout)
{
    if (byte_size(layout) > 0 || layout->getSize(slang::SubElementRegisterSpace) > 0 ||
        layout->getSize(slang::PushConstantBuffer) > 0)
        return true;
    for (const slang::ParameterCategory category : register_categories)
        if (layout->getSize(category) > 0)
            return true;
    return false;
}

/// T of DescriptorHandle<T>; null for other types.
inline slang::TypeReflection* resource_of_handle(slang::TypeReflection* type)
{
    if (!type || type->getKind() != slang::TypeReflection::Kind::Struct ||
        text_or_empty(type->getName()) != "DescriptorHandle")
        return nullptr;
    slang::GenericReflection* generic = type->getGenericContainer();
    return generic && generic->getTypeParameterCount() ? generic->getConcreteType(generic->getTypeParameter(0))
                                                       : nullptr;
}

/// As the source has it: a layout does not show that a field is a handle.
inline slang::TypeReflection* declared_type(slang::VariableLayoutReflection* variable)
{
    slang::VariableReflection* declared = variable->getVariable();
    return declared ? declared->getType() : nullptr;
}

/// A parameter of our own library, which the device binds by itself: the table of all memory (memory_hlsl.slang).
inline bool is_own(slang::VariableLayoutReflection* variable)
{
    return text_or_empty(variable->getName()) == "_spy_heap";
}

/// Walks the parameters depth first, in the order in which TypeLayout counts slots and scopes, and notes where each
/// one is bound. Offsets add up along the path as Slang's documentation on reflection describes.
class BindingWalker {
public:
    BindingWalker(ProgramLayout& result, bool pointers) : m_result(result), m_pointers(pointers) { }

    struct Place {
        std::string path;
        uint32_t scope = 0;
        uint64_t offset = 0;      ///< bytes in the scope
        uint32_t index[5] = {};   ///< per register category
        uint32_t space[5] = {};   ///< likewise
        uint32_t outer_space = 0; ///< spaces of enclosing parameter blocks
        uint32_t array_index = 0;
        uint32_t array_size = 1; ///< elements of the arrays around, where arrays share one binding
    };

    Place enter(Place place, slang::VariableLayoutReflection* variable, const std::string& name) const
    {
        for (size_t i = 0; i < std::size(register_categories); ++i) {
            place.index[i] += uint32_t(known_size(variable->getOffset(register_categories[i]), "binding"));
            place.space[i] += uint32_t(known_size(variable->getBindingSpace(register_categories[i]), "space"));
        }
        place.outer_space += uint32_t(known_size(variable->getOffset(slang::SubElementRegisterSpace), "space"));
        if (byte_size(variable->getTypeLayout()) > 0)
            place.offset += known_size(variable->getOffset(), "offset of a field");
        if (!name.empty())
            place.path += (place.path.empty() ? "" : ".") + name;
        return place;
    }

    void walk_fields(slang::TypeLayoutReflection* layout, const Place& place, bool bindable_only)
    {
        for (unsigned i = 0; i < layout->getFieldCount(); ++i) {
            slang::VariableLayoutReflection* field = layout->getFieldByIndex(i);
            if (bindable_only && (!is_bindable(field->getTypeLayout()) || is_own(field)))
                continue;
            if (resource_of_handle(declared_type(field)))
                continue; // bytes alone, on every target
            walk(field->getTypeLayout(), enter(place, field, std::string(text_or_empty(field->getName()))));
        }
    }

    /// Registers the block of `container` (a constant buffer or parameter block at `place`); gives the place inside.
    Place open_scope(slang::TypeLayoutReflection* container, const Place& place, ScopeLayout& scope) const
    {
        Place inside = place;
        inside.offset = 0;
        if (container->getKind() == slang::TypeReflection::Kind::ParameterBlock) {
            for (size_t i = 0; i < std::size(register_categories); ++i) {
                inside.index[i] = 0;
                inside.space[i] = place.outer_space;
            }
        }
        const slang::ParameterCategory category = constant_buffer_category(container);
        const size_t number = size_t(
            std::find(std::begin(register_categories), std::end(register_categories), category) -
            std::begin(register_categories));
        const Place own = enter(inside, container->getContainerVarLayout(), "");
        scope.path = place.path;
        scope.binding = own.index[number];
        scope.set = own.space[number];
        scope.size = byte_size(container->getElementVarLayout()->getTypeLayout());
        Place result = enter(inside, container->getElementVarLayout(), "");
        result.offset = 0;
        return result;
    }

private:
    static slang::ParameterCategory constant_buffer_category(slang::TypeLayoutReflection* container)
    {
        slang::TypeLayoutReflection* own = container->getContainerVarLayout()->getTypeLayout();
        return own->getSize(slang::DescriptorTableSlot) > 0 ? slang::DescriptorTableSlot : slang::ConstantBuffer;
    }

    void walk(slang::TypeLayoutReflection* layout, const Place& place)
    {
        switch (layout->getKind()) {
        case slang::TypeReflection::Kind::Struct: walk_fields(layout, place, false); break;
        case slang::TypeReflection::Kind::Array: walk_array(layout, place); break;
        case slang::TypeReflection::Kind::ConstantBuffer:
        case slang::TypeReflection::Kind::ParameterBlock: walk_block(layout, place); break;
        case slang::TypeReflection::Kind::Resource:
        case slang::TypeReflection::Kind::SamplerState:
        case slang::TypeReflection::Kind::DynamicResource:
        case slang::TypeReflection::Kind::TextureBuffer:
        case slang::TypeReflection::Kind::ShaderStorageBuffer: add_slot(layout, place); break;
        default: break;
        }
    }

    void walk_array(slang::TypeLayoutReflection* layout, const Place& place)
    {
        slang::TypeLayoutReflection* element = layout->getElementTypeLayout();
        const size_t count = layout->getElementCount();
        const bool unbounded = count == SLANG_UNBOUNDED_SIZE || count == 0;
        const size_t times = unbounded ? 1 : size_t(known_size(count, "length of an array"));
        if (!holds_resources(element) || resource_of_handle(element_of(layout->getType())))
            return;
        for (size_t i = 0; i < times; ++i) {
            Place item = place;
            item.path += cat("[", i, "]");
            item.offset += i * known_size(layout->getElementStride(SLANG_PARAMETER_CATEGORY_UNIFORM), "array stride");
            bool strided = false;
            for (size_t c = 0; c < std::size(register_categories); ++c) {
                const size_t stride = layout->getElementStride(SlangParameterCategory(register_categories[c]));
                const bool usable = stride != SLANG_UNBOUNDED_SIZE && stride != SLANG_UNKNOWN_SIZE;
                // descriptor arrays of Vulkan share one binding; registers of D3D12 count on
                if (usable && register_categories[c] != slang::DescriptorTableSlot)
                    item.index[c] += uint32_t(i * stride);
                strided |= usable && stride > 0 && register_categories[c] != slang::DescriptorTableSlot;
            }
            if (!strided)
                item.array_index = place.array_index * uint32_t(times) + uint32_t(i);
            walk(element, item);
        }
    }

    static bool holds_resources(slang::TypeLayoutReflection* layout)
    {
        switch (layout->getKind()) {
        case slang::TypeReflection::Kind::Struct:
            for (unsigned i = 0; i < layout->getFieldCount(); ++i)
                if (!resource_of_handle(declared_type(layout->getFieldByIndex(i))) &&
                    holds_resources(layout->getFieldByIndex(i)->getTypeLayout()))
                    return true;
            return false;
        case slang::TypeReflection::Kind::Array: return holds_resources(layout->getElementTypeLayout());
        case slang::TypeReflection::Kind::Scalar:
        case slang::TypeReflection::Kind::Vector:
        case slang::TypeReflection::Kind::Matrix:
        case slang::TypeReflection::Kind::Enum:
        case slang::TypeReflection::Kind::Pointer:
        case slang::TypeReflection::Kind::Interface:
        case slang::TypeReflection::Kind::None: return false;
        default: return true;
        }
    }

    void walk_block(slang::TypeLayoutReflection* layout, const Place& place)
    {
        ScopeLayout scope;
        scope.kind = layout->getKind() == slang::TypeReflection::Kind::ParameterBlock ? ScopeKind::parameter_block
                                                                                      : ScopeKind::constant_buffer;
        if (m_pointers) {
            scope.parent = int32_t(place.scope);
            scope.parent_offset = place.offset;
        }
        Place inside = open_scope(layout, place, scope);
        inside.scope = uint32_t(m_result.scopes.size());
        m_result.scopes.push_back(std::move(scope));
        if (resource_of_handle(element_of(layout->getType())))
            return;
        walk(layout->getElementVarLayout()->getTypeLayout(), inside);
    }

    void add_slot(slang::TypeLayoutReflection* layout, const Place& place)
    {
        SlotLayout slot;
        slot.path = place.path;
        slot.scope = place.scope;
        slot.offset = m_pointers ? place.offset : 0;
        slot.size = m_pointers ? byte_size(layout) : 0;
        slot.array_index = place.array_index;
        for (size_t i = 0; i < std::size(register_categories); ++i)
            if (layout->getSize(register_categories[i]) > 0) {
                slot.binding = place.index[i];
                slot.set = place.space[i];
            }
        set_kind(slot, layout);
        m_result.slots.push_back(std::move(slot));
    }

    static void set_kind(SlotLayout& slot, slang::TypeLayoutReflection* layout)
    {
        if (layout->getKind() == slang::TypeReflection::Kind::SamplerState) {
            slot.kind = SlotKind::sampler;
            return;
        }
        if (layout->getKind() != slang::TypeReflection::Kind::Resource) {
            fail(ErrorKind::not_implemented, "parameter \"", slot.path, "\" has type ",
                 full_type_name(layout->getType()),
                 ", which cannot be bound yet; use a StructuredBuffer, a texture or a ConstantBuffer instead");
        }
        const SlangResourceShape shape = layout->getResourceShape();
        const SlangResourceAccess access = layout->getResourceAccess();
        slot.shape = to_resource_shape(shape);
        slot.writable = access != SLANG_RESOURCE_ACCESS_READ && access != SLANG_RESOURCE_ACCESS_NONE;
        switch (slot.shape) {
        case ResourceShape::structured_buffer: {
            slot.kind = SlotKind::structured_buffer;
            if (slang::TypeLayoutReflection* element = layout->getElementTypeLayout()) {
                const uint64_t alignment = uint64_t(std::max(element->getAlignment(), 1));
                slot.element_stride = round_up(byte_size(element), alignment);
            }
            return;
        }
        case ResourceShape::byte_address_buffer: slot.kind = SlotKind::byte_address_buffer; return;
        case ResourceShape::acceleration_structure: slot.kind = SlotKind::acceleration_structure; return;
        case ResourceShape::texture_buffer:
            slot.kind = SlotKind::texel_buffer;
            slot.element_stride = is_of_host(layout->getType());
            break;
        default:
            slot.kind = unsigned(shape) & SLANG_TEXTURE_COMBINED_FLAG ? SlotKind::combined_texture_sampler
                                                                      : SlotKind::texture;
        }
        if (slang::TypeReflection* texel = layout->getResourceResultType()) {
            slot.scalar = scalar_of(texel);
            slot.channels = texel->getKind() == slang::TypeReflection::Kind::Vector ? uint32_t(texel->getElementCount())
                                                                                    : 1;
        }
    }

    /// slangpy_host.slang's Buffer<T>, whose number of samples is 1, not Slang's own.
    static bool is_of_host(slang::TypeReflection* type)
    {
        slang::GenericReflection* generic = type ? type->getGenericContainer() : nullptr;
        for (unsigned i = 0; generic && i < generic->getValueParameterCount(); ++i) {
            slang::VariableReflection* value = generic->getValueParameter(i);
            if (value && value->getName() && std::string_view(value->getName()) == "sampleCount")
                return generic->getConcreteIntVal(value) == 1;
        }
        return false;
    }

    ProgramLayout& m_result;
    bool m_pointers;
};

} // namespace spy
