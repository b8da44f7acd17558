#include "device/cursor.h"

#include "device/value_io.h"

#include <algorithm>

namespace spy {

const TypeLayout* block_contents(const TypeLayout* layout)
{
    const bool is_block = layout->kind == TypeKind::constant_buffer || layout->kind == TypeKind::parameter_block;
    return is_block && layout->element ? layout->element.get() : layout;
}

int64_t component_index(const TypeLayout& vector, std::string_view name)
{
    if (vector.kind != TypeKind::vector || name.size() != 1)
        return -1;
    size_t index = std::string_view("xyzw").find(name[0]);
    if (index == std::string_view::npos)
        index = std::string_view("rgba").find(name[0]);
    return index < vector.cols ? int64_t(index) : -1;
}

std::string field_list(const TypeLayout& layout)
{
    const TypeLayout* inside = block_contents(&layout);
    std::string text;
    for (const FieldLayout& field : inside->fields)
        text += (text.empty() ? "" : ", ") + field.name;
    if (inside->kind == TypeKind::vector)
        for (uint32_t i = 0; i < std::min(inside->cols, 4u); ++i)
            text += cat(i ? ", " : "", "xyzw"[i]);
    return text;
}

namespace {

std::string join(const std::string& path, std::string_view name)
{
    return path.empty() ? std::string(name) : cat(path, ".", name);
}

bool in_range(const TypeLayout& layout, int64_t index) { return index >= 0 && index < element_count(layout); }

} // namespace

// --- ShaderCursor

ShaderCursor::ShaderCursor(ref<ShaderObject> object)
    : m_object(std::move(object)),
      m_layout(m_object->type()),
      m_place(m_object->root())
{
}

uint64_t ShaderCursor::offset() const
{
    if (!is_valid() || !m_place.bytes)
        return 0;
    return uint64_t(m_place.bytes - m_place.object->bytes(m_place.scope).data());
}

ShaderCursor ShaderCursor::at(ref<TypeLayout> layout, const Place& place, std::string path) const
{
    return {place.object, std::move(layout), place, std::move(path)};
}

ShaderCursor ShaderCursor::dereference() const
{
    if (!is_valid() || block_contents(m_layout.get()) == m_layout.get())
        return *this;
    return at(m_layout->element, m_place.enter_block(*m_layout->element), m_path);
}

ShaderCursor ShaderCursor::find_field(std::string_view name) const
{
    if (!is_valid())
        return {};
    const ShaderCursor inside = dereference();
    const int64_t component = component_index(*inside.m_layout, name);
    if (component >= 0)
        return at(element_layout(*inside.m_layout), inside.m_place.element(*inside.m_layout, component),
                  join(m_path, name));
    const FieldLayout* field = inside.m_layout->find_field(name);
    return field ? at(field->type, inside.m_place.field(*field), join(m_path, name)) : ShaderCursor();
}

ShaderCursor ShaderCursor::field_at(uint32_t index) const
{
    if (!is_valid())
        return {};
    const ShaderCursor inside = dereference();
    if (index >= inside.m_layout->fields.size())
        return {};
    const FieldLayout& field = inside.m_layout->fields[index];
    return at(field.type, inside.m_place.field(field), join(m_path, field.name));
}

int64_t ShaderCursor::find_field_index(std::string_view name) const
{
    if (!is_valid())
        return -1;
    const std::vector<FieldLayout>& fields = block_contents(m_layout.get())->fields;
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
    return found == fields.end() ? -1 : found - fields.begin();
}

ShaderCursor ShaderCursor::find_element(int64_t index) const
{
    if (!is_valid())
        return {};
    const ShaderCursor inside = dereference();
    const TypeLayout& layout = *inside.m_layout;
    ref<TypeLayout> element = element_layout(layout);
    if (!element || !in_range(layout, index))
        return {};
    return at(std::move(element), inside.m_place.element(layout, index), cat(m_path, "[", index, "]"));
}

ShaderCursor ShaderCursor::find_entry_point(uint32_t index) const
{
    ref<TypeLayout> layout = m_object ? m_object->entry_point_type(index) : nullptr;
    if (!layout)
        return {};
    return at(std::move(layout), m_object->entry_point(index), "");
}

ShaderCursor ShaderCursor::reinterpret(ref<TypeLayout> layout) const
{
    if (!is_valid())
        return {};
    const ShaderCursor inside = dereference();
    if (layout->size > inside.m_layout->size || layout->slot_count > inside.m_layout->slot_count)
        fail_value("reinterpret: ", type_text(*layout), " is larger than ", type_text(*inside.m_layout),
                   m_path.empty() ? "" : " at ", m_path);
    return at(std::move(layout), inside.m_place, m_path);
}

// --- BufferCursor

namespace {

/// Accepts the layout of a structured buffer, too.
ref<TypeLayout> element_of(ref<TypeLayout> layout)
{
    const bool is_buffer = layout->kind == TypeKind::resource || layout->kind == TypeKind::shader_storage_buffer ||
        layout->kind == TypeKind::constant_buffer || layout->kind == TypeKind::parameter_block;
    if (is_buffer && layout->element)
        layout = layout->element;
    if (layout->size == 0)
        fail_value("BufferCursor: type '", type_text(*layout), "' has no bytes in a buffer");
    return layout;
}

} // namespace

BufferCursor::BufferCursor(ref<TypeLayout> element_layout, uint64_t element_count)
    : m_layout(element_of(std::move(element_layout))),
      m_count(element_count),
      m_loaded(true)
{
    uint64_t size;
    if (__builtin_mul_overflow(m_count, element_stride(), &size))
        fail(ErrorKind::memory, "BufferCursor: ", m_count, " elements of ", element_stride(), " bytes are too many");
    try {
        m_bytes.resize(size);
    } catch (const std::exception&) { // bad_alloc or length_error
        fail(ErrorKind::memory, "BufferCursor: no memory for ", m_count, " elements of ", element_stride(), " bytes");
    }
}

BufferCursor::BufferCursor(ref<TypeLayout> element_layout, ref<Buffer> buffer, uint64_t size, uint64_t offset,
                           bool load_before_write)
    : m_layout(element_of(std::move(element_layout))),
      m_buffer(std::move(buffer)),
      m_offset(offset),
      m_load_before_write(load_before_write)
{
    const uint64_t total = m_buffer->desc().size;
    if (offset > total || (size != UINT64_MAX && size > total - offset))
        fail_value("BufferCursor: ", size == UINT64_MAX ? 0 : size, " bytes from offset ", offset,
                   " are outside the buffer of ", total, " bytes");
    m_count = (size == UINT64_MAX ? total - offset : size) / element_stride();
    m_bytes.resize(m_count * element_stride());
}

uint64_t BufferCursor::element_stride() const { return std::max(m_layout->stride, m_layout->size); }

void BufferCursor::check_device() const
{
    if (m_buffer->device()->is_closed())
        fail_runtime("BufferCursor: device is closed");
}

void BufferCursor::load()
{
    if (m_buffer && !m_bytes.empty()) {
        check_device();
        if (m_buffer->desc().memory_type == MemoryType::upload)
            fail_runtime("Cannot read data from buffer with memory type 'upload'. To only write, make the BufferCursor "
                         "with load_before_write=False.");
        m_buffer->device()->read_buffer(m_buffer.get(), m_offset, m_bytes.data(), m_bytes.size());
    }
    m_loaded = true;
    m_dirty = false;
}

void BufferCursor::apply()
{
    if (!m_buffer || !m_dirty || m_bytes.empty())
        return;
    check_device();
    if (m_buffer->desc().memory_type == MemoryType::read_back)
        fail_runtime(
            "Cannot write data to buffer with memory type 'read_back'. Write to a buffer of type 'device_local' or "
            "'upload', and copy that.");
    m_buffer->device()->write_buffer(m_buffer.get(), m_offset, m_bytes.data(), m_bytes.size());
    m_buffer->set_content(ScalarType::none);
    m_dirty = false;
}

const uint8_t* BufferCursor::read(uint64_t offset)
{
    if (!m_loaded)
        load();
    return m_bytes.data() + offset;
}

uint8_t* BufferCursor::write(uint64_t offset)
{
    if (!m_loaded && m_load_before_write)
        load();
    m_loaded = true; // from now on the host bytes are the truth: a later read must not wipe what was written
    m_dirty = true;
    return m_bytes.data() + offset;
}

// --- BufferElementCursor

BufferElementCursor BufferElementCursor::find_field(std::string_view name) const
{
    if (!is_valid())
        return {};
    const int64_t component = component_index(*m_layout, name);
    if (component >= 0)
        return {m_owner, element_layout(*m_layout), m_offset + uint64_t(component) * element_step(*m_layout),
                join(m_path, name)};
    const FieldLayout* field = m_layout->find_field(name);
    if (!field)
        return {};
    return {m_owner, field->type, m_offset + field->offset, join(m_path, name)};
}

BufferElementCursor BufferElementCursor::find_element(int64_t index) const
{
    ref<TypeLayout> element = is_valid() ? element_layout(*m_layout) : nullptr;
    if (!element || !in_range(*m_layout, index))
        return {};
    return {m_owner, std::move(element), m_offset + uint64_t(index) * element_step(*m_layout),
            cat(m_path, "[", index, "]")};
}

BufferElementCursor BufferElementCursor::reinterpret(ref<TypeLayout> layout) const
{
    if (!is_valid())
        return {};
    if (m_offset + layout->size > m_owner->size())
        fail_value("reinterpret: ", type_text(*layout), " would reach beyond the buffer");
    return {m_owner, std::move(layout), m_offset, m_path};
}

} // namespace spy
