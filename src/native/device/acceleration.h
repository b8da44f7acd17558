#pragma once
// Acceleration structures: what they are built from, and the structures. Commands that build them are in command.h.
#include "device/render.h"

#include <atomic>
#include <unordered_set>
#include <variant>

namespace spy {

enum class AccelerationStructureKind : uint8_t { unknown, bottom_level, top_level };
enum class AccelerationStructureGeometryFlags : uint32_t {
    none = 0,
    opaque = 1,
    no_duplicate_any_hit_invocation = 2,
};
enum class AccelerationStructureBuildFlags : uint32_t {
    none = 0,
    allow_update = 1,
    allow_compaction = 2,
    prefer_fast_trace = 4,
    prefer_fast_build = 8,
    minimize_memory = 16,
};
enum class AccelerationStructureBuildMode : uint8_t { build, update };
enum class AccelerationStructureCopyMode : uint8_t { clone, compact };
enum class AccelerationStructureInstanceFlags : uint32_t {
    none = 0,
    triangle_facing_cull_disable = 1,
    triangle_front_counter_clockwise = 2,
    force_opaque = 4,
    no_opaque = 8,
};

class AccelerationStructure;

// --- what is built

struct TriangleGeometry {
    BufferOffset vertices;
    Format vertex_format = Format::undefined;
    uint32_t vertex_count = 0, vertex_stride = 0; ///< stride: resolved
    bool is_indexed = false;                      ///< else each three vertices are a triangle
    BufferOffset indices;
    IndexFormat index_format = IndexFormat::uint32;
    uint32_t index_count = 0;
    BufferOffset transform; ///< 12 floats, rows of a 3x4 matrix; may be null
    AccelerationStructureGeometryFlags flags = AccelerationStructureGeometryFlags::none;
};
struct BoxGeometry {
    BufferOffset boxes; ///< six floats each: minimum, maximum
    uint32_t stride = 0, count = 0;
    AccelerationStructureGeometryFlags flags = AccelerationStructureGeometryFlags::none;
};
struct InstanceGeometry {
    BufferOffset instances;
    uint32_t stride = 0, count = 0;
    std::vector<ref<AccelerationStructure>> structures; ///< that the instances name, where it is known
    uint32_t max_contribution = 0;                      ///< largest index of a first hit record, where it is known
};
using AccelerationStructureInput = std::variant<TriangleGeometry, BoxGeometry, InstanceGeometry>;
/// Triangles, boxes or instances.
uint32_t primitive_count(const AccelerationStructureInput& input);

struct AccelerationStructureBuildDesc {
    std::vector<AccelerationStructureInput> inputs; ///< all of one kind; at least one
    AccelerationStructureBuildMode mode = AccelerationStructureBuildMode::build;
    AccelerationStructureBuildFlags flags = AccelerationStructureBuildFlags::none;

    bool is_top_level() const { return std::holds_alternative<InstanceGeometry>(inputs.front()); }
};
struct AccelerationStructureSizes {
    uint64_t acceleration_structure_size = 0, scratch_size = 0, update_scratch_size = 0;
};
struct AccelerationStructureDesc {
    AccelerationStructureKind kind = AccelerationStructureKind::unknown;
    uint64_t size = 0;
    std::string label;
};

// --- the structures

/// Owns its memory. Made by Device::create_acceleration_structure, and holds nothing until it is built.
class AccelerationStructure : public DeviceObject {
public:
    AccelerationStructure(ref<Device> device, AccelerationStructureDesc desc)
        : DeviceObject(std::move(device)),
          m_desc(std::move(desc))
    {
    }
    const AccelerationStructureDesc& desc() const { return m_desc; }
    virtual uint64_t device_address() const { return 0; } ///< what instances name it by
    virtual NativeHandle native_handle() const { return {}; }

    /// What the newest recorded command makes of it.
    struct Content {
        bool is_built = false, is_top_level = false;
        AccelerationStructureBuildFlags flags = AccelerationStructureBuildFlags::none;
        std::vector<uint32_t> counts;  ///< primitives of each geometry
        uint64_t size = 0;             ///< bytes that it may take
        uint32_t max_contribution = 0; ///< of its instances
    };
    const Content& content() const { return m_content; }
    void note_content(Content content)
    {
        if (content.is_top_level != m_content.is_top_level)
            m_is_submitted = false;
        m_content = std::move(content);
    }
    /// Whether a command that fills it has been submitted, since when it can be used.
    bool is_submitted() const { return m_is_submitted; }
    void note_submitted() { m_is_submitted = true; }
    /// Where its compacted size is going to be.
    const std::pair<ref<QueryPool>, uint32_t>& compacted_size() const { return m_compacted_size; }
    void note_compacted_size(ref<QueryPool> pool, uint32_t index) { m_compacted_size = {std::move(pool), index}; }
    /// Keeps what its instances name, from when the build is submitted.
    std::vector<ref<AccelerationStructure>> exchange_references(std::vector<ref<AccelerationStructure>> structures);
    std::vector<ref<AccelerationStructure>> references() const;

protected:
    AccelerationStructureDesc m_desc;

private:
    Content m_content;
    std::atomic<bool> m_is_submitted{false};
    std::pair<ref<QueryPool>, uint32_t> m_compacted_size;
    mutable std::mutex m_mutex;
    std::vector<ref<AccelerationStructure>> m_references;
};

/// What the commands of an encoder ask of structures: that what they use was filled before.
class StructureUses {
public:
    void fill(const AccelerationStructure* structure) { m_filled.insert(structure); }
    /// Of a structure that is used from here on.
    void use(const ref<AccelerationStructure>& structure)
    {
        if (structure && !structure->is_submitted() && !m_filled.count(structure.get()))
            m_awaited.push_back(structure);
    }
    /// Throws unless what is awaited was submitted, or is among `filled`, which then gets what these commands fill.
    void check(std::unordered_set<const AccelerationStructure*>& filled) const;

private:
    std::unordered_set<const AccelerationStructure*> m_filled;
    std::vector<ref<AccelerationStructure>> m_awaited;
};

/// What an instance names: holds the structure.
struct AccelerationStructureHandle {
    ref<AccelerationStructure> structure;
};

/// NotImplementedError unless the device has acceleration structures.
void require_acceleration(const Device* device, const char* call);
/// Checks what is to be built, and fills in strides. `with_buffers`: these must be there, and large enough.
void check_build_inputs(const Device* device, AccelerationStructureBuildDesc& desc, bool with_buffers,
                        const char* call);
AccelerationStructureSizes acceleration_structure_sizes(Device* device, AccelerationStructureBuildDesc desc);
ref<AccelerationStructure> create_acceleration_structure(Device* device, const AccelerationStructureDesc& desc);

// --- instances

struct AccelerationStructureInstanceDesc {
    std::array<float, 12> transform{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}; ///< object to world, rows of a 3x4 matrix
    uint32_t instance_id = 0;                                            ///< 24 bits
    uint32_t instance_mask = 0;                                          ///< 8 bits
    uint32_t instance_contribution_to_hit_group_index = 0;               ///< 24 bits
    AccelerationStructureInstanceFlags flags = AccelerationStructureInstanceFlags::none;
    ref<AccelerationStructure> structure; ///< null: an instance that nothing hits
};

inline constexpr uint32_t instance_record_size = 64; ///< of Vulkan and Direct3D 12
/// The instance as builds read it. ValueError for numbers beyond their bits.
std::array<uint8_t, instance_record_size> instance_record(const AccelerationStructureInstanceDesc& desc);

/// Instances on the host, and a buffer of them on the device.
class AccelerationStructureInstanceList : public DeviceObject {
public:
    AccelerationStructureInstanceList(ref<Device> device, uint64_t size);
    uint64_t size() const { return m_structures.size(); }
    void resize(uint64_t size);
    void write(uint64_t index, const AccelerationStructureInstanceDesc& desc);
    /// With what has been written since. What was recorded keeps the buffer that it was recorded with.
    ref<Buffer> buffer();
    InstanceGeometry geometry();

private:
    std::vector<uint8_t> m_records;
    std::vector<ref<AccelerationStructure>> m_structures;
    std::vector<uint32_t> m_contributions;
    ref<Buffer> m_buffer; ///< null: something was written since it was made
};

} // namespace spy
