#pragma once
// The values of a program's parameters (or of one parameter block) on the host: bytes per scope, resources per slot.
#include "device/command.h"
#include "device/device.h"

#include <map>
#include <optional>

namespace spy {

class ShaderObject;

/// Where a value lives: bytes and, inside a ShaderObject, the counters of core/layout.h made absolute.
struct Place {
    uint8_t* bytes = nullptr;       ///< the value's first byte
    ShaderObject* object = nullptr; ///< null: plain memory, which holds neither resources nor blocks
    uint32_t scope = 0;             ///< scope that `bytes` lies in
    uint32_t slot = 0;
    uint32_t nested_scope = 0;                      ///< first scope of the blocks inside the value
    std::vector<ref<Object>>* keep_alive = nullptr; ///< plain memory: takes what pointers point into
    const Device* device = nullptr;                 ///< plain memory: whose kernels read it; null: not known

    Place field(const FieldLayout& field) const;
    Place element(const TypeLayout& layout, int64_t index) const;
    /// The contents of a constant buffer or parameter block that lies here; `layout` is the block's element type.
    Place enter_block(const TypeLayout& layout) const;
};

/// Spans over a ShaderObject's data, valid while the object lives unchanged.
struct ArgumentData {
    std::vector<std::span<const uint8_t>> scopes;
    std::vector<ref<Object>> slots, keep_alive;

    Arguments arguments() const { return {scopes, slots, keep_alive}; }
};

/// What the code of a pipeline uses of its parameters: what a launch needs values for.
struct UsedParameters : Object {
    /// What compilers take for plain data and code reads memory through: it must not be null.
    struct Address {
        std::string path, what; ///< "scene.weights", "tensor"
        uint32_t scope = 0;
        uint64_t begin = 0, size = 0; ///< bytes of the scope
    };

    std::string label;                      ///< of the pipeline, for messages
    std::optional<std::vector<bool>> slots; ///< of the layout; missing: all
    std::vector<Address> addresses;
};

class ShaderObject : public Object {
public:
    /// All parameters of a linked program.
    ShaderObject(ref<Device> device, ref<ProgramLayout> layout);
    /// The contents of a ParameterBlock<T> or ConstantBuffer<T> (either those types or T itself).
    ShaderObject(ref<Device> device, ref<TypeLayout> layout);

    Device* device() const { return m_device.get(); }
    ProgramLayout* program() const { return m_program.get(); } ///< null for blocks
    /// Type of the globals, or of the block's contents.
    const ref<TypeLayout>& type() const { return m_type; }
    Place root();
    /// Parameters of one entry point of the layout.
    Place entry_point(uint32_t index);
    ref<TypeLayout> entry_point_type(uint32_t index) const;

    std::span<uint8_t> bytes(uint32_t scope);
    size_t slot_count() const { return m_slots.size(); }
    /// `resource` may be null: explicitly nothing.
    void set_resource(uint32_t slot, ref<Object> resource);
    /// The object that stands in for the block at `scope`, or null.
    ShaderObject* block(uint32_t scope) const;
    void set_block(uint32_t scope, uint32_t slot, ref<ShaderObject> object);
    /// Keeps what the pointer stored at `at` points into; null: nothing, as the user says.
    void keep(const uint8_t* at, ref<Object> object) { m_keep_alive[at] = std::move(object); }
    /// Whether an address is null although nobody said so.
    bool is_unset(std::span<const uint8_t> address) const;

    /// RuntimeError naming the first of what the code uses (set_used; else all) that was never set. resources: buffers,
    /// textures and the like, too, which may be null.
    void check_bound(bool resources = true) const;
    /// What the code uses; null: all.
    void set_used(ref<UsedParameters> used) { m_used = std::move(used); }
    /// The first of `slots` that was never set; -1 when all were.
    int64_t first_unbound(std::span<const uint32_t> slots) const;
    void gather(ArgumentData& out) const;
    /// The same as owned data, for recorded commands.
    void copy_to(std::vector<std::vector<uint8_t>>& scopes, std::vector<ref<Object>>& slots,
                 std::vector<ref<Object>>& keep_alive) const;

private:
    struct Block {
        uint32_t slot;
        ref<ShaderObject> object;
    };

    void collect(uint32_t first_scope, uint32_t first_slot, ArgumentData& out) const;
    bool is_bound(uint32_t slot) const;
    void check_slots() const;
    bool is_unset(uint32_t scope, uint64_t begin, uint64_t size) const;

    ref<Device> m_device;
    ref<ProgramLayout> m_program;
    ref<TypeLayout> m_type;
    std::vector<std::vector<uint8_t>> m_scopes; ///< never resized: places point into them
    std::vector<ref<Object>> m_slots;
    std::vector<bool> m_slot_set;
    ref<UsedParameters> m_used;
    std::map<uint32_t, Block> m_blocks; ///< by scope
    std::map<const uint8_t*, ref<Object>> m_keep_alive;
};

} // namespace spy
