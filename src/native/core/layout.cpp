// Layouts as bytes: a header, the table of all types (each after those it refers to), then the rest.
#include "core/layout.h"

#include "core/error.h"

#include <cstring>
#include <unordered_map>

namespace spy {

namespace {

constexpr uint32_t magic = 0x4c595053; // "SPYL"
constexpr uint32_t version = 5;
constexpr uint32_t no_type = 0xffffffff;
constexpr auto last_scalar = ScalarType(uint8_t(ScalarType::count_) - 1);

class Writer {
public:
    template <typename T>
    void put(T value)
    {
        static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
        m_bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
    }
    void put(const std::string& text)
    {
        put(uint32_t(text.size()));
        m_bytes += text;
    }

    /// A member, as Reader::pass takes it back; `last` is the greatest value of an enum.
    template <typename T>
    void pass(const T& value)
    {
        put(value);
    }
    template <typename E>
    void pass(E value, E last)
    {
        static_cast<void>(last);
        put(value);
    }

    /// Number of a type in the table that write_types() writes: parts come before the whole.
    uint32_t id(const TypeLayout* type)
    {
        if (!type)
            return no_type;
        if (const auto known = m_ids.find(type); known != m_ids.end()) {
            if (known->second == no_type)
                fail_runtime("the layout of ", type->full_name, " contains itself");
            return known->second;
        }
        m_ids[type] = no_type;
        id(type->element.get());
        for (const FieldLayout& field : type->fields)
            id(field.type.get());
        m_types.push_back(type);
        return m_ids[type] = uint32_t(m_types.size() - 1);
    }

    void write_types()
    {
        put(uint32_t(m_types.size()));
        for (size_t i = 0; i < m_types.size(); ++i)
            write_type(*m_types[i]);
    }

    std::string take() { return std::move(m_bytes); }

private:
    void write_type(const TypeLayout& type)
    {
        put(type.kind);
        put(type.name);
        put(type.full_name);
        put(type.scalar);
        put(type.rows);
        put(type.cols);
        put(type.size);
        put(type.stride);
        put(type.alignment);
        put(type.slot_count);
        put(type.scope_count);
        put(type.element_count);
        put(type.element_stride);
        put(type.row_major);
        put(id(type.element.get()));
        put(type.resource_shape);
        put(type.resource_access);
        put(type.handle);
        put(uint32_t(type.fields.size()));
        for (const FieldLayout& field : type.fields) {
            put(field.name);
            put(id(field.type.get()));
            put(field.offset);
            put(field.slot);
            put(field.scope);
        }
    }

    std::string m_bytes;
    std::unordered_map<const TypeLayout*, uint32_t> m_ids;
    std::vector<const TypeLayout*> m_types;
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : m_rest(bytes) { }

    template <typename T>
    void get(T& value)
    {
        if (m_rest.size() < sizeof(T))
            corrupt();
        std::memcpy(&value, m_rest.data(), sizeof(T));
        m_rest.remove_prefix(sizeof(T));
    }
    template <typename T>
    T get()
    {
        T value;
        get(value);
        return value;
    }
    void get(std::string& text)
    {
        const uint32_t size = get<uint32_t>();
        if (m_rest.size() < size)
            corrupt();
        text.assign(m_rest.substr(0, size));
        m_rest.remove_prefix(size);
    }
    void get(bool& value)
    {
        const uint8_t byte = get<uint8_t>();
        if (byte > 1)
            corrupt();
        value = byte != 0;
    }
    template <typename E>
    void get_enum(E& value, E last)
    {
        get(value);
        if (value > last)
            corrupt();
    }
    template <typename T>
    void pass(T& value)
    {
        get(value);
    }
    template <typename E>
    void pass(E& value, E last)
    {
        get_enum(value, last);
    }
    /// A count of things that take at least `least` bytes each.
    uint32_t get_count(size_t least)
    {
        const uint32_t count = get<uint32_t>();
        if (uint64_t(count) * least > m_rest.size())
            corrupt();
        return count;
    }
    /// A type read before, so that no type can contain itself.
    ref<TypeLayout> get_type()
    {
        const uint32_t index = get<uint32_t>();
        if (index >= m_types.size())
            corrupt();
        return m_types[index];
    }
    void get_optional(ref<TypeLayout>& type)
    {
        Reader ahead(m_rest);
        if (ahead.get<uint32_t>() == no_type)
            m_rest = ahead.m_rest;
        else
            type = get_type();
    }

    void read_header()
    {
        if (get<uint32_t>() != magic || get<uint32_t>() != version)
            corrupt();
    }

    void read_types()
    {
        const uint32_t count = get_count(64);
        for (uint32_t i = 0; i < count; ++i) {
            ref<TypeLayout> type = new TypeLayout;
            read_type(*type);
            m_types.push_back(std::move(type));
        }
    }

    void expect_end() const
    {
        if (!m_rest.empty())
            corrupt();
    }

    [[noreturn]] static void corrupt() { fail_runtime("stored layout is corrupt or of another version"); }

private:
    void read_type(TypeLayout& type)
    {
        get_enum(type.kind, TypeKind::descriptor_handle);
        get(type.name);
        get(type.full_name);
        get_enum(type.scalar, last_scalar);
        get(type.rows);
        get(type.cols);
        get(type.size);
        get(type.stride);
        get(type.alignment);
        get(type.slot_count);
        get(type.scope_count);
        get(type.element_count);
        get(type.element_stride);
        get(type.row_major);
        get_optional(type.element);
        get_enum(type.resource_shape, ResourceShape::texture_2d_multisample_array);
        get_enum(type.resource_access, ResourceAccess::feedback);
        get_enum(type.handle, DescriptorHandleType::acceleration_structure);
        type.fields.resize(get_count(20));
        for (FieldLayout& field : type.fields) {
            get(field.name);
            field.type = get_type();
            get(field.offset);
            get(field.slot);
            get(field.scope);
        }
    }

    std::string_view m_rest;
    std::vector<ref<TypeLayout>> m_types;
};

/// What is stored of a scope, in order. `Archive` is a Writer or a Reader.
template <typename Archive, typename Scope>
void pass_scope(Archive& archive, Scope& scope)
{
    archive.pass(scope.kind, ScopeKind::parameter_block);
    archive.pass(scope.path);
    archive.pass(scope.size);
    archive.pass(scope.parent);
    archive.pass(scope.parent_offset);
    archive.pass(scope.set);
    archive.pass(scope.binding);
    archive.pass(scope.push_constant);
    archive.pass(scope.memory);
}

/// The same of a slot.
template <typename Archive, typename Slot>
void pass_slot(Archive& archive, Slot& slot)
{
    archive.pass(slot.kind, SlotKind::acceleration_structure);
    archive.pass(slot.path);
    archive.pass(slot.writable);
    archive.pass(slot.set);
    archive.pass(slot.binding);
    archive.pass(slot.array_index);
    archive.pass(slot.scope);
    archive.pass(slot.offset);
    archive.pass(slot.size);
    archive.pass(slot.element_stride);
    archive.pass(slot.shape, ResourceShape::texture_2d_multisample_array);
    archive.pass(slot.scalar, last_scalar);
    archive.pass(slot.channels);
}

/// What is stored of an entry point beside its parameters.
template <typename Archive, typename Entry>
void pass_entry_point(Archive& archive, Entry& entry)
{
    archive.pass(entry.name);
    archive.pass(entry.stage, ShaderStage::dispatch);
    archive.pass(entry.scope);
    archive.pass(entry.slot);
    archive.pass(entry.nested_scope);
}

template <typename Archive, typename Item>
void pass_varying(Archive& archive, Item& varying)
{
    archive.pass(varying.semantic);
    archive.pass(varying.semantic_index);
    archive.pass(varying.location);
    archive.pass(varying.scalar, last_scalar);
    archive.pass(varying.channels);
}

bool fits(uint64_t offset, uint64_t size, uint64_t total) { return size <= total && offset <= total - size; }

bool fits(const EntryPoint& entry, const ProgramLayout& layout)
{
    return entry.scope > 0 && entry.scope < layout.scopes.size() && entry.nested_scope <= layout.scopes.size() &&
        fits(entry.slot, entry.parameters->slot_count, layout.slots.size()) &&
        entry.parameters->size <= layout.scopes[entry.scope].size;
}

/// Every handle must lie inside its block: it will be written there.
void check_places(const ProgramLayout& layout)
{
    const std::vector<ScopeLayout>& scopes = layout.scopes;
    bool good = scopes.size() >= 2 && !layout.entry_points.empty() && layout.nested_scope <= scopes.size() &&
        layout.globals->slot_count <= layout.slots.size() && layout.globals->size <= scopes[0].size;
    for (size_t i = 0; good && i < layout.entry_points.size(); ++i)
        good = fits(layout.entry_points[i], layout);
    for (size_t i = 0; good && i < scopes.size(); ++i)
        good = scopes[i].parent >= -1 && scopes[i].parent < int64_t(i) &&
            (scopes[i].parent < 0 || fits(scopes[i].parent_offset, 8, scopes[size_t(scopes[i].parent)].size));
    for (size_t i = 0; good && i < layout.slots.size(); ++i)
        good = layout.slots[i].scope < scopes.size() &&
            fits(layout.slots[i].offset, layout.slots[i].size, scopes[layout.slots[i].scope].size);
    if (!good)
        Reader::corrupt();
}

} // namespace

const char* stage_name(ShaderStage stage)
{
    static constexpr const char* names[] = {
        "none",         "vertex",  "hull",        "domain", "geometry", "fragment", "compute",       "ray_generation",
        "intersection", "any_hit", "closest_hit", "miss",   "callable", "mesh",     "amplification", "dispatch"};
    return size_t(stage) < std::size(names) ? names[size_t(stage)] : "none";
}

ShaderStage stage_from_name(std::string_view name)
{
    for (int i = 0; i <= int(ShaderStage::dispatch); ++i)
        if (name == stage_name(ShaderStage(i)))
            return ShaderStage(i);
    fail_value("'", name, "' is no stage of a shader; stages are vertex, fragment, compute, mesh and so on");
}

const Varying* find_varying(const std::vector<Varying>& among, const Varying& wanted)
{
    for (const Varying& varying : among)
        if (varying.semantic == wanted.semantic && varying.semantic_index == wanted.semantic_index)
            return &varying;
    return nullptr;
}

std::string serialize(const ProgramLayout& layout)
{
    Writer out;
    out.put(magic);
    out.put(version);
    const uint32_t globals = out.id(layout.globals.get());
    for (const EntryPoint& entry : layout.entry_points)
        out.id(entry.parameters.get());
    out.write_types();
    out.put(globals);
    out.put(layout.nested_scope);
    out.put(uint32_t(layout.entry_points.size()));
    for (const EntryPoint& entry : layout.entry_points) {
        out.put(out.id(entry.parameters.get()));
        pass_entry_point(out, entry);
    }
    for (const auto* varyings : {&layout.vertex_inputs, &layout.vertex_outputs, &layout.fragment_inputs}) {
        out.put(uint32_t(varyings->size()));
        for (const Varying& varying : *varyings)
            pass_varying(out, varying);
    }
    out.put(uint32_t(layout.scopes.size()));
    for (const ScopeLayout& scope : layout.scopes)
        pass_scope(out, scope);
    out.put(uint32_t(layout.slots.size()));
    for (const SlotLayout& slot : layout.slots)
        pass_slot(out, slot);
    for (uint32_t size : layout.group_size)
        out.put(size);
    return out.take();
}

ref<ProgramLayout> deserialize_program_layout(std::string_view bytes)
{
    Reader in(bytes);
    ref<ProgramLayout> layout = new ProgramLayout;
    in.read_header();
    in.read_types();
    layout->globals = in.get_type();
    in.get(layout->nested_scope);
    layout->entry_points.resize(in.get_count(20));
    for (EntryPoint& entry : layout->entry_points) {
        entry.parameters = in.get_type();
        pass_entry_point(in, entry);
    }
    for (auto* varyings : {&layout->vertex_inputs, &layout->vertex_outputs, &layout->fragment_inputs}) {
        varyings->resize(in.get_count(17));
        for (Varying& varying : *varyings)
            pass_varying(in, varying);
    }
    layout->scopes.resize(in.get_count(30));
    for (ScopeLayout& scope : layout->scopes)
        pass_scope(in, scope);
    layout->slots.resize(in.get_count(40));
    for (SlotLayout& slot : layout->slots)
        pass_slot(in, slot);
    for (uint32_t& size : layout->group_size)
        in.get(size);
    in.expect_end();
    check_places(*layout);
    return layout;
}

std::string serialize(const TypeLayout& layout)
{
    Writer out;
    out.put(magic);
    out.put(version);
    const uint32_t root = out.id(&layout);
    out.write_types();
    out.put(root);
    return out.take();
}

ref<TypeLayout> deserialize_type_layout(std::string_view bytes)
{
    Reader in(bytes);
    ref<TypeLayout> layout;
    in.read_header();
    in.read_types();
    layout = in.get_type();
    in.expect_end();
    return layout;
}

} // namespace spy
