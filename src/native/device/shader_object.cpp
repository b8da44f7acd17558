#include "device/shader_object.h"

#include "device/value_io.h"

#include <algorithm>

namespace spy {

Place Place::field(const FieldLayout& field) const
{
    Place place = *this;
    place.bytes = bytes ? bytes + field.offset : nullptr;
    place.slot += field.slot;
    place.nested_scope += field.scope;
    return place;
}

Place Place::element(const TypeLayout& layout, int64_t index) const
{
    Place place = *this;
    place.bytes = bytes ? bytes + uint64_t(index) * element_step(layout) : nullptr;
    if (layout.kind == TypeKind::array && layout.element) {
        place.slot += uint32_t(index) * layout.element->slot_count;
        place.nested_scope += uint32_t(index) * layout.element->scope_count;
    }
    return place;
}

Place Place::enter_block(const TypeLayout& layout) const
{
    if (!object)
        fail_value("a constant buffer or parameter block (", type_text(layout), ") cannot lie in buffer memory");
    if (ShaderObject* assigned = object->block(nested_scope))
        return assigned->root();
    const std::span<uint8_t> block = object->bytes(nested_scope);
    if (block.size() < layout.size)
        fail_runtime("the layout gives scope ", nested_scope, " ", block.size(), " bytes, but ", type_text(layout),
                     " needs ", layout.size);
    Place place = *this;
    place.bytes = block.data();
    place.scope = nested_scope;
    place.nested_scope = nested_scope + 1;
    return place;
}

namespace {

/// T of a ConstantBuffer<T>, ParameterBlock<T>; other types themselves.
ref<TypeLayout> contents(ref<TypeLayout> layout)
{
    const bool is_block = layout->kind == TypeKind::constant_buffer || layout->kind == TypeKind::parameter_block;
    return is_block && layout->element ? layout->element : layout;
}

/// Sizes of the blocks inside a type, in scope order (a block comes before the blocks inside it).
void block_sizes(const TypeLayout& layout, uint32_t first, std::vector<uint64_t>& sizes)
{
    switch (layout.kind) {
    case TypeKind::struct_:
        for (const FieldLayout& field : layout.fields)
            block_sizes(*field.type, first + field.scope, sizes);
        break;
    case TypeKind::array:
        for (int64_t i = 0; layout.element && layout.element->scope_count && i < layout.element_count; ++i)
            block_sizes(*layout.element, first + uint32_t(i) * layout.element->scope_count, sizes);
        break;
    case TypeKind::constant_buffer:
    case TypeKind::parameter_block:
        if (!layout.element)
            break;
        if (sizes.size() <= first)
            sizes.resize(first + 1);
        sizes[first] = layout.element->size;
        block_sizes(*layout.element, first + 1, sizes);
        break;
    default: break;
    }
}

/// "vertex_main, fragment_main"
std::string name_of(const ProgramLayout& program)
{
    std::string text;
    for (const EntryPoint& entry : program.entry_points)
        text += (text.empty() ? "" : ", ") + entry.name;
    return text;
}

[[noreturn]] void fail_unset(const std::string& path, const UsedParameters* used, const ProgramLayout& program,
                             const std::string& what)
{
    fail_runtime("parameter '", path, "' of '", used ? used->label : name_of(program), "' was never set: assign a",
                 what[0] == 'a' ? "n " : " ", what);
}

} // namespace

ShaderObject::ShaderObject(ref<Device> device, ref<ProgramLayout> layout)
    : m_device(std::move(device)),
      m_program(std::move(layout)),
      m_type(m_program->globals)
{
    std::vector<uint64_t> sizes(std::max<size_t>(m_program->scopes.size(), 1 + m_program->entry_points.size()));
    for (size_t i = 0; i < m_program->scopes.size(); ++i)
        sizes[i] = m_program->scopes[i].size;
    if (m_type)
        sizes[0] = std::max(sizes[0], m_type->size);
    for (const EntryPoint& entry : m_program->entry_points)
        if (entry.parameters)
            sizes[entry.scope] = std::max(sizes[entry.scope], entry.parameters->size);
    m_scopes.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
        m_scopes[i].resize(sizes[i]);
    m_slots.resize(m_program->slots.size());
    m_slot_set.resize(m_slots.size());
}

ShaderObject::ShaderObject(ref<Device> device, ref<TypeLayout> layout)
    : m_device(std::move(device)),
      m_type(contents(std::move(layout)))
{
    std::vector<uint64_t> sizes{m_type->size};
    block_sizes(*m_type, 1, sizes);
    m_scopes.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i)
        m_scopes[i].resize(sizes[i]);
    m_slots.resize(m_type->slot_count);
    m_slot_set.resize(m_slots.size());
}

Place ShaderObject::root()
{
    return {m_scopes[0].data(), this, 0, 0, m_program ? m_program->nested_scope : 1, nullptr};
}

Place ShaderObject::entry_point(uint32_t index)
{
    if (!entry_point_type(index))
        fail(ErrorKind::index, "find_entry_point: Entry point ", index,
             " not found; the index counts the entry points of the program from 0");
    const EntryPoint& entry = m_program->entry_points[index];
    return {m_scopes[entry.scope].data(), this, entry.scope, entry.slot, entry.nested_scope, nullptr};
}

ref<TypeLayout> ShaderObject::entry_point_type(uint32_t index) const
{
    return m_program && index < m_program->entry_points.size() ? m_program->entry_points[index].parameters : nullptr;
}

std::span<uint8_t> ShaderObject::bytes(uint32_t scope)
{
    if (scope >= m_scopes.size())
        fail_runtime("scope ", scope, " is outside the ", m_scopes.size(), " scopes of the layout");
    return m_scopes[scope];
}

void ShaderObject::set_resource(uint32_t slot, ref<Object> resource)
{
    if (slot >= m_slots.size())
        fail_runtime("slot ", slot, " is outside the ", m_slots.size(), " resources of the layout");
    m_slots[slot] = std::move(resource);
    m_slot_set[slot] = true;
}

ShaderObject* ShaderObject::block(uint32_t scope) const
{
    const auto found = m_blocks.find(scope);
    return found == m_blocks.end() ? nullptr : found->second.object.get();
}

void ShaderObject::set_block(uint32_t scope, uint32_t slot, ref<ShaderObject> object)
{
    if (!object) {
        m_blocks.erase(scope);
        return;
    }
    if (scope + object->m_scopes.size() > m_scopes.size() || slot + object->m_slots.size() > m_slots.size())
        fail_value("a shader object for ", type_text(*object->m_type), " has ", object->m_scopes.size(), " blocks and ",
                   object->m_slots.size(), " resources, more than the parameter takes");
    if (object.get() == this)
        fail_value("a shader object cannot be put into itself");
    m_blocks[scope] = {slot, std::move(object)};
}

bool ShaderObject::is_bound(uint32_t slot) const
{
    if (m_slot_set[slot])
        return true;
    for (const auto& [scope, block] : m_blocks)
        if (slot >= block.slot && slot < block.slot + block.object->m_slots.size())
            return block.object->is_bound(slot - block.slot);
    return false;
}

bool ShaderObject::is_unset(std::span<const uint8_t> address) const
{
    return std::all_of(address.begin(), address.end(), [](uint8_t byte) { return byte == 0; }) &&
        !m_keep_alive.contains(address.data());
}

bool ShaderObject::is_unset(uint32_t scope, uint64_t begin, uint64_t size) const
{
    for (const auto& [first, block] : m_blocks)
        if (scope >= first && scope < first + block.object->m_scopes.size())
            return block.object->is_unset(scope - first, begin, size);
    return scope < m_scopes.size() && begin + size <= m_scopes[scope].size() &&
        is_unset(std::span<const uint8_t>(m_scopes[scope]).subspan(begin, size));
}

void ShaderObject::check_slots() const
{
    for (uint32_t slot = 0; slot < m_slots.size(); ++slot) {
        const bool is_used = !m_used || !m_used->slots || (slot < m_used->slots->size() && (*m_used->slots)[slot]);
        if (!is_used || is_bound(slot) || m_program->slots[slot].path == print_slot_path)
            continue;
        const SlotLayout& layout = m_program->slots[slot];
        const char* what = layout.kind == SlotKind::texture || layout.kind == SlotKind::combined_texture_sampler
            ? "texture"
            : layout.kind == SlotKind::sampler                ? "sampler"
            : layout.kind == SlotKind::acceleration_structure ? "acceleration structure"
                                                              : "buffer";
        fail_unset(layout.path, m_used.get(), *m_program, cat(what, ", or None for nothing"));
    }
}

void ShaderObject::check_bound(bool resources) const
{
    if (!m_program)
        return;
    if (resources)
        check_slots();
    if (!m_used)
        return;
    for (const UsedParameters::Address& address : m_used->addresses)
        if (is_unset(address.scope, address.begin, address.size))
            fail_unset(address.path, m_used.get(), *m_program, address.what);
}

int64_t ShaderObject::first_unbound(std::span<const uint32_t> slots) const
{
    for (uint32_t slot : slots)
        if (slot < m_slots.size() && !is_bound(slot))
            return slot;
    return -1;
}

void ShaderObject::collect(uint32_t first_scope, uint32_t first_slot, ArgumentData& out) const
{
    for (size_t i = 0; i < m_scopes.size(); ++i)
        out.scopes[first_scope + i] = m_scopes[i];
    for (size_t i = 0; i < m_slots.size(); ++i)
        if (m_slot_set[i])
            out.slots[first_slot + i] = m_slots[i];
    for (const auto& [at, object] : m_keep_alive)
        if (object)
            out.keep_alive.push_back(object);
    for (const auto& [scope, block] : m_blocks)
        block.object->collect(first_scope + scope, first_slot + block.slot, out);
}

void ShaderObject::gather(ArgumentData& out) const
{
    out.scopes.assign(m_scopes.size(), {});
    out.slots.assign(m_slots.size(), nullptr);
    out.keep_alive.clear();
    collect(0, 0, out);
}

void ShaderObject::copy_to(std::vector<std::vector<uint8_t>>& scopes, std::vector<ref<Object>>& slots,
                           std::vector<ref<Object>>& keep_alive) const
{
    ArgumentData data;
    gather(data);
    scopes.clear();
    for (std::span<const uint8_t> bytes : data.scopes)
        scopes.emplace_back(bytes.begin(), bytes.end());
    slots = std::move(data.slots);
    keep_alive = std::move(data.keep_alive);
}

} // namespace spy
