#pragma once
// Records commands into backend-neutral lists. All checks of ranges and states happen here, when a command is recorded.
#include "device/command.h"
#include "device/shader_object.h"

#include <optional>

namespace spy {

class ComputePassEncoder;
class RenderPassEncoder;
class RayTracingPassEncoder;
struct RenderPassDesc;

struct BufferRange {
    uint64_t offset = 0, size = ~0ull; ///< ~0: to the end
};

/// Extent with -1 (here: nothing) for "as much as fits".
using OptionalExtent = std::array<std::optional<uint32_t>, 3>;

struct TextureLocation {
    ref<Texture> texture;
    uint32_t layer = 0, mip = 0;
    Offset3 offset;
};

/// Sizes of structures, one after the other.
struct AccelerationStructureQuery {
    QueryType type = QueryType::acceleration_structure_compacted_size;
    ref<QueryPool> pool;
    uint32_t index = 0;
};

/// Puts the device's print buffer where a program takes it, if it does.
void bind_print_buffer(Device* device, int print_slot, std::vector<ref<Object>>& slots);

class CommandEncoder : public DeviceObject {
public:
    explicit CommandEncoder(ref<Device> device);

    uint64_t recording_id() const { return m_recording_id; }
    bool is_finished() const { return m_finished; }
    ref<ComputePassEncoder> begin_compute_pass();
    ref<RenderPassEncoder> begin_render_pass(const RenderPassDesc& desc); ///< render_pass.h

    ref<RayTracingPassEncoder> begin_ray_tracing_pass(); ///< ray_tracing_pass.h

    void copy_buffer(ref<Buffer> dst, uint64_t dst_offset, ref<Buffer> src, uint64_t src_offset, uint64_t size);
    void fill_buffer(ref<Buffer> buffer, uint32_t value, BufferRange range, const char* call = "fill_buffer");
    void upload_buffer_data(ref<Buffer> buffer, uint64_t offset, std::span<const uint8_t> data);

    void copy_texture(const TextureLocation& dst, const TextureLocation& src, OptionalExtent extent);
    void copy_texture(ref<Texture> dst, SubresourceRange dst_range, Offset3 dst_offset, ref<Texture> src,
                      SubresourceRange src_range, Offset3 src_offset, OptionalExtent extent);
    void copy_texture_to_buffer(ref<Buffer> dst, uint64_t dst_offset, uint64_t dst_size, uint64_t dst_row_pitch,
                                const TextureLocation& src, OptionalExtent extent);
    void copy_buffer_to_texture(const TextureLocation& dst, ref<Buffer> src, uint64_t src_offset, uint64_t src_size,
                                uint64_t src_row_pitch, OptionalExtent extent);
    /// Rows of `data` are tightly packed.
    void upload_texture_data(const TextureLocation& dst, OptionalExtent extent, std::span<const uint8_t> data);
    void clear_texture(ref<Texture> texture, command::ClearTexture::Kind kind, SubresourceRange range,
                       std::array<uint32_t, 4> bits);
    /// What the format does not have is not cleared. ValueError when nothing is left.
    void clear_texture_depth_stencil(ref<Texture> texture, SubresourceRange range, bool clear_depth, float depth,
                                     bool clear_stencil, uint32_t stencil);

    /// `src`: what an update starts from. Queries as in query_acceleration_structures.
    void build_acceleration_structure(AccelerationStructureBuildDesc desc, ref<AccelerationStructure> dst,
                                      ref<AccelerationStructure> src, BufferOffset scratch,
                                      std::span<const AccelerationStructureQuery> queries);
    void copy_acceleration_structure(ref<AccelerationStructure> dst, ref<AccelerationStructure> src,
                                     AccelerationStructureCopyMode mode);
    void query_acceleration_structures(std::vector<ref<AccelerationStructure>> structures,
                                       std::span<const AccelerationStructureQuery> queries);

    void convert_coop_vec_matrices(ref<Buffer> dst, std::span<const CoopVecMatrixDesc> dst_descs, ref<Buffer> src,
                                   std::span<const CoopVecMatrixDesc> src_descs, const char* call);

    void write_timestamp(ref<QueryPool> pool, uint32_t index, bool from_pass = false);
    void resolve_query(ref<QueryPool> pool, uint32_t index, uint32_t count, ref<Buffer> buffer, uint64_t offset);
    void global_barrier();
    void debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color,
                      bool from_pass = false);
    void execute_callback(std::function<void(NativeHandle)> function);
    ref<CommandBuffer> finish();

    /// Checks that recording may go on: `call` names the method.
    void check_recording(const char* call, bool from_pass = false) const;
    template <typename C>
    void add(C command)
    {
        if constexpr (requires {
                          command.kernel;
                          command.slots;
                      })
            bind_print_buffer(device(), command.kernel->print_slot(), command.slots);
        m_commands.emplace_back(std::in_place_type<C>, std::move(command));
    }

private:
    friend class ComputePassEncoder;
    friend class RenderPassEncoder;
    friend class RayTracingPassEncoder;

    std::vector<Command> m_commands;
    StructureUses m_structures;
    std::shared_ptr<Recording> m_recording;
    uint64_t m_recording_id;
    int m_debug_depth = 0;
    const char* m_pass_open = nullptr; ///< what is open: "compute", "render" or "ray-tracing"
    bool m_finished = false;
};

class ComputePassEncoder : public Object {
public:
    explicit ComputePassEncoder(ref<CommandEncoder> encoder) : m_encoder(std::move(encoder)) { }

    CommandEncoder* encoder() const { return m_encoder.get(); }
    /// A fresh root object for the kernel's parameters, or the one given.
    ref<ShaderObject> bind_kernel(ref<Kernel> kernel, ref<ShaderObject> root = {});
    void dispatch(std::array<uint64_t, 3> thread_count);
    void dispatch_compute(std::array<uint64_t, 3> group_count);
    void dispatch_compute_indirect(ref<Buffer> buffer, uint64_t offset);
    void write_timestamp(ref<QueryPool> pool, uint32_t index);
    void debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color);
    void end();

private:
    void check_ready(const char* call) const;
    /// Records a dispatch of the bound kernel with the arguments as they are now.
    template <typename Dispatch>
    void add(Dispatch dispatch);

    ref<CommandEncoder> m_encoder;
    ref<Kernel> m_kernel;
    ref<ShaderObject> m_root;
    bool m_ended = false;
};

/// Throws when an argument does not fit the parameter it is bound to: another device, missing usage flag. `uses`: of
/// the encoder that records it; null where it runs at once.
void check_arguments(const Device* device, const ProgramLayout& layout, const std::string& label,
                     std::span<const ref<Object>> slots, StructureUses* uses);
inline void check_arguments(const Device* device, const Kernel& kernel, std::span<const ref<Object>> slots,
                            StructureUses* uses)
{
    check_arguments(device, kernel.layout(), kernel.label(), slots, uses);
}
/// The root object for a pipeline's arguments: the one given, which must be made for an alike program, or a fresh one.
ref<ShaderObject> root_for(Device* device, const ProgramLayout& layout, const std::string& label,
                           ref<ShaderObject> root);
/// Throws unless the query is one of the pool's.
void check_query(const Device* device, const QueryPool* pool, uint32_t index);
/// Throws when a dimension is beyond the device's limit.
void check_group_count(const Device* device, const Kernel& kernel, std::array<uint64_t, 3> group_count);
/// Groups that cover `thread_count` threads.
std::array<uint64_t, 3> groups_for_threads(const ProgramLayout& layout, std::array<uint64_t, 3> thread_count);

} // namespace spy
