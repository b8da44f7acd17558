#pragma once
// A recorded command list: plain data that every backend can execute, any number of times.
#include "device/coop_vec.h"
#include "device/ray_tracing.h"

#include <algorithm>
#include <optional>
#include <variant>

namespace spy {

struct Offset3 {
    uint32_t x = 0, y = 0, z = 0;
};
struct Extent3 {
    uint32_t width = 1, height = 1, depth = 1;
};

struct Viewport {
    float x = 0.f, y = 0.f, width = 0.f, height = 0.f; ///< pixels from the upper left corner
    float min_depth = 0.f, max_depth = 1.f;
};
struct ScissorRect {
    uint32_t min_x = 0, min_y = 0, max_x = 0, max_y = 0; ///< max excluded
};
struct DrawArguments {
    uint32_t vertex_count = 0, instance_count = 1; ///< indexed: vertex_count is the number of indices
    uint32_t start_vertex_location = 0, start_instance_location = 0, start_index_location = 0;
};
struct RenderState {
    uint32_t stencil_ref = 0;
    /// Resolved: at least one of each, and as many rectangles as viewports.
    std::vector<Viewport> viewports;
    std::vector<ScissorRect> scissor_rects;
    std::vector<BufferOffset> vertex_buffers; ///< by stream
    BufferOffset index_buffer;
    IndexFormat index_format = IndexFormat::uint32;
};
/// The values of a program's parameters.
struct BoundArguments {
    std::vector<std::vector<uint8_t>> scopes;
    std::vector<ref<Object>> slots, keep_alive;
};

namespace command {

struct Dispatch {
    ref<Kernel> kernel;
    std::array<uint32_t, 3> group_count;
    std::vector<std::vector<uint8_t>> scopes;
    std::vector<ref<Object>> slots, keep_alive;
    std::vector<int64_t> shape; ///< as in LaunchDesc
};
struct DispatchIndirect {
    ref<Kernel> kernel;
    ref<Buffer> buffer;
    uint64_t offset; ///< three uint32 group counts
    std::vector<std::vector<uint8_t>> scopes;
    std::vector<ref<Object>> slots, keep_alive;
};
struct CopyBuffer {
    ref<Buffer> dst;
    uint64_t dst_offset;
    ref<Buffer> src;
    uint64_t src_offset, size;
};
struct FillBuffer {
    ref<Buffer> buffer;
    uint64_t offset, size;
    uint32_t value;
};
struct UploadBuffer {
    ref<Buffer> buffer;
    uint64_t offset;
    std::vector<uint8_t> data;
};
/// One layer and mip each; extents are resolved. Row pitch in bytes.
struct CopyTexture {
    ref<Texture> dst;
    uint32_t dst_layer, dst_mip;
    Offset3 dst_offset;
    ref<Texture> src;
    uint32_t src_layer, src_mip;
    Offset3 src_offset;
    Extent3 extent;
};
struct CopyTextureToBuffer {
    ref<Buffer> dst;
    uint64_t dst_offset, dst_row_pitch;
    ref<Texture> src;
    uint32_t src_layer, src_mip;
    Offset3 src_offset;
    Extent3 extent;
};
struct CopyBufferToTexture {
    ref<Texture> dst;
    uint32_t dst_layer, dst_mip;
    Offset3 dst_offset;
    Extent3 extent;
    ref<Buffer> src;
    uint64_t src_offset, src_row_pitch;
};
struct UploadTexture {
    ref<Texture> dst;
    uint32_t layer, mip;
    Offset3 offset;
    Extent3 extent;
    std::vector<uint8_t> data;
};
struct ClearTexture {
    enum class Kind { float_, uint_, sint } kind;
    ref<Texture> texture;
    SubresourceRange range;
    std::array<uint32_t, 4> bits; ///< the four components, bit for bit
};
struct WriteTimestamp {
    ref<QueryPool> pool;
    uint32_t index;
};
struct ResolveQuery {
    ref<QueryPool> pool;
    uint32_t index, count;
    ref<Buffer> buffer;
    uint64_t offset;
};
struct Barrier { };
struct DebugMarker {
    enum class Kind { push, pop, insert } kind;
    std::string name;
    std::array<float, 3> color;
};
struct Callback {
    std::function<void(NativeHandle)> function;
};
struct ClearDepthStencil {
    ref<Texture> texture;
    SubresourceRange range;
    bool clear_depth, clear_stencil;
    float depth;
    uint32_t stencil;
};

/// One draw with all that it needs: nothing is left over from the draw before. What two draws share, they point to.
struct Draw {
    enum class Kind { vertices, indexed, indirect, indexed_indirect, mesh_tasks } kind = Kind::vertices;
    ref<RenderPipeline> pipeline;
    std::shared_ptr<const RenderState> state;
    std::shared_ptr<const BoundArguments> bound;
    DrawArguments arguments;               ///< vertices, indexed
    BufferOffset indirect, count;          ///< indirect: records, tightly packed; count.buffer may be null
    uint32_t max_draw_count = 0;           ///< indirect
    std::array<uint32_t, 3> group_count{}; ///< mesh tasks
};
using RenderItem = std::variant<Draw, WriteTimestamp, DebugMarker>;

struct ColorAttachment {
    ref<TextureView> view, resolve_target; ///< resolve_target may be null
    LoadOp load_op;
    StoreOp store_op;
    std::array<uint32_t, 4> clear_bits; ///< floats, or whole numbers for integer formats, bit for bit
};
struct DepthStencilAttachment {
    ref<TextureView> view;
    LoadOp depth_load_op, stencil_load_op;
    StoreOp depth_store_op, stencil_store_op;
    bool depth_read_only, stencil_read_only;
    float depth_clear_value;
    uint32_t stencil_clear_value;
};
/// A whole pass. It reads what came before and is seen by what comes after; its draws are ordered as APIs order draws.
struct RenderPass {
    std::vector<ColorAttachment> colors;
    std::optional<DepthStencilAttachment> depth_stencil;
    uint32_t width = 0, height = 0, layer_count = 1, sample_count = 1; ///< of all attachments
    std::vector<RenderItem> items;
};

struct BuildAccelerationStructure {
    AccelerationStructureBuildDesc desc;
    ref<AccelerationStructure> dst, src; ///< src: what an update starts from, which may be dst; else null
    BufferOffset scratch;
};
struct CopyAccelerationStructure {
    ref<AccelerationStructure> dst, src;
    AccelerationStructureCopyMode mode;
};
/// One result for each structure, at consecutive indices.
struct QueryAccelerationStructures {
    std::vector<ref<AccelerationStructure>> structures;
    ref<QueryPool> pool;
    uint32_t index;
};
struct DispatchRays {
    ref<RayTracingPipeline> pipeline;
    ref<ShaderTable> table;
    uint32_t ray_gen_index = 0;
    std::array<uint32_t, 3> dimensions{};
    std::vector<std::vector<uint8_t>> scopes;
    std::vector<ref<Object>> slots, keep_alive;
};

/// From src to dst, matrix by matrix; only devices with the feature 'cooperative_vector' get it.
struct ConvertCoopVecMatrices {
    ref<Buffer> dst, src;
    std::vector<std::pair<CoopVecMatrixDesc, CoopVecMatrixDesc>> matrices; ///< to, from
};

} // namespace command

using Command = std::variant<
    command::Dispatch, command::DispatchIndirect, command::CopyBuffer, command::FillBuffer, command::UploadBuffer,
    command::CopyTexture, command::CopyTextureToBuffer, command::CopyBufferToTexture, command::UploadTexture,
    command::ClearTexture, command::WriteTimestamp, command::ResolveQuery, command::Barrier, command::DebugMarker,
    command::Callback, command::ClearDepthStencil, command::RenderPass, command::BuildAccelerationStructure,
    command::CopyAccelerationStructure, command::QueryAccelerationStructures, command::DispatchRays,
    command::ConvertCoopVecMatrices>;

/// What only devices with the feature 'acceleration_structure' get.
template <typename C>
concept RayCommand = std::is_same_v<C, command::BuildAccelerationStructure> ||
    std::is_same_v<C, command::CopyAccelerationStructure> || std::is_same_v<C, command::QueryAccelerationStructures> ||
    std::is_same_v<C, command::DispatchRays>;

/// One recording from its encoder to its command buffer; tells when it ends without having been submitted.
struct Recording {
    uint64_t id = 0;
    std::atomic<bool> submitted{false};
    Device* device = nullptr; ///< alive while the owner of the recording is

    ~Recording()
    {
        if (!submitted && device && device->discarded_callback())
            device->discarded_callback()(device, id);
    }
};

class CommandBuffer : public DeviceObject {
public:
    CommandBuffer(ref<Device> device, std::vector<Command> commands, std::shared_ptr<Recording> recording = {},
                  StructureUses structures = {})
        : DeviceObject(std::move(device)),
          m_commands(std::move(commands)),
          m_recording(std::move(recording)),
          m_structures(std::move(structures))
    {
    }
    uint64_t recording_id() const { return m_recording ? m_recording->id : 0; }
    void mark_submitted()
    {
        if (m_recording)
            m_recording->submitted = true;
    }
    std::span<const Command> commands() const { return m_commands; }
    const StructureUses& structures() const { return m_structures; }
    /// RuntimeError where memory that was bound is somebody else's, who took it away since. Needs Python's lock.
    void check_guards() const;

private:
    std::vector<Command> m_commands;
    std::shared_ptr<Recording> m_recording;
    StructureUses m_structures;
};

} // namespace spy
