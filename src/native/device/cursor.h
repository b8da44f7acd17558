#pragma once
// Walking typed memory by name and index: ShaderCursor over the parameters of a program, BufferCursor over the
// elements of a buffer. Values are read and written by values/writer.h.
#include "device/shader_object.h"

namespace spy {

/// A typed place inside a ShaderObject. Constant buffers and parameter blocks are entered on the way.
class ShaderCursor {
public:
    ShaderCursor() = default;
    explicit ShaderCursor(ref<ShaderObject> object);
    ShaderCursor(ref<ShaderObject> object, ref<TypeLayout> layout, const Place& place, std::string path)
        : m_object(std::move(object)),
          m_layout(std::move(layout)),
          m_place(place),
          m_path(std::move(path))
    {
    }

    bool is_valid() const { return bool(m_layout); }
    const ref<TypeLayout>& layout() const { return m_layout; }
    const Place& place() const { return m_place; }
    const std::string& path() const { return m_path; }
    uint64_t offset() const;

    /// Invalid when there is no such part.
    ShaderCursor find_field(std::string_view name) const;
    ShaderCursor find_element(int64_t index) const;
    ShaderCursor field_at(uint32_t index) const;
    ShaderCursor find_entry_point(uint32_t index) const;
    ShaderCursor dereference() const;
    ShaderCursor reinterpret(ref<TypeLayout> layout) const;
    int64_t find_field_index(std::string_view name) const; ///< -1 when missing

private:
    /// Objects assigned to a block take over; keeps the right one alive.
    ShaderCursor at(ref<TypeLayout> layout, const Place& place, std::string path) const;

    ref<ShaderObject> m_object;
    ref<TypeLayout> m_layout;
    Place m_place;
    std::string m_path;
};

/// Host copy of a range of a buffer, seen as elements of one type.
class BufferCursor : public Object {
public:
    /// Host memory only, zeroed.
    BufferCursor(ref<TypeLayout> element_layout, uint64_t element_count);
    /// `size` = all bytes from `offset` on when UINT64_MAX.
    BufferCursor(ref<TypeLayout> element_layout, ref<Buffer> buffer, uint64_t size, uint64_t offset,
                 bool load_before_write);

    const ref<TypeLayout>& element_layout() const { return m_layout; }
    Buffer* resource() const { return m_buffer.get(); }
    uint64_t element_stride() const;
    uint64_t element_count() const { return m_count; }
    uint64_t size() const { return m_bytes.size(); }
    bool is_loaded() const { return m_loaded; }
    /// What the element layout was taken from (a reflection object), or null.
    const ref<Object>& source() const { return m_source; }
    void set_source(ref<Object> source) { m_source = std::move(source); }

    void load();
    void apply(); ///< uploads; nothing happens when nothing was written
    /// Loads on the first read.
    const uint8_t* read(uint64_t offset);
    /// Loads before the first write unless that was switched off.
    uint8_t* write(uint64_t offset);

private:
    void check_device() const;

    ref<TypeLayout> m_layout;
    ref<Buffer> m_buffer;
    ref<Object> m_source;
    uint64_t m_offset = 0, m_count = 0;
    std::vector<uint8_t> m_bytes;
    bool m_load_before_write = true, m_loaded = false, m_dirty = false;
};

/// One element of a BufferCursor or a part of it.
class BufferElementCursor {
public:
    BufferElementCursor() = default;
    BufferElementCursor(ref<BufferCursor> owner, ref<TypeLayout> layout, uint64_t offset, std::string path)
        : m_owner(std::move(owner)),
          m_layout(std::move(layout)),
          m_offset(offset),
          m_path(std::move(path))
    {
    }

    bool is_valid() const { return bool(m_layout); }
    const ref<TypeLayout>& layout() const { return m_layout; }
    const std::string& path() const { return m_path; }
    uint64_t offset() const { return m_offset; }
    BufferCursor* owner() const { return m_owner.get(); }

    BufferElementCursor find_field(std::string_view name) const;
    BufferElementCursor find_element(int64_t index) const;
    BufferElementCursor reinterpret(ref<TypeLayout> layout) const;

    const uint8_t* read_bytes() const { return m_owner->read(m_offset); }
    uint8_t* write_bytes() const { return m_owner->write(m_offset); }

private:
    ref<BufferCursor> m_owner;
    ref<TypeLayout> m_layout;
    uint64_t m_offset = 0;
    std::string m_path;
};

/// T of blocks; other layouts themselves.
const TypeLayout* block_contents(const TypeLayout* layout);
/// Component of a vector by name (x y z w, r g b a), or -1.
int64_t component_index(const TypeLayout& vector, std::string_view name);
/// "a, b, c": the fields (or components) that may be walked into, for messages.
std::string field_list(const TypeLayout& layout);

} // namespace spy
