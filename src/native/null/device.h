#pragma once
#include "device/handles.h"
#include "device/host.h"

namespace spy::null {

struct LaunchRecord {
    std::string kernel; ///< label
    std::array<uint32_t, 3> group_count{};
    std::vector<uint64_t> scope_sizes; ///< bytes given for each scope
    uint64_t slot_count = 0;           ///< resources given
};

/// What a draw of a render pass was recorded with.
struct DrawRecord {
    std::string pipeline, kind; ///< label; "vertices", "indexed", ...
    DrawArguments arguments;
    std::array<uint32_t, 3> group_count{};
    uint32_t max_draw_count = 0, stencil_ref = 0;
    std::vector<Viewport> viewports;
    std::vector<ScissorRect> scissor_rects;
    uint64_t vertex_buffer_count = 0, slot_count = 0;
};
struct PassRecord {
    uint32_t width = 0, height = 0, layer_count = 1, sample_count = 1;
    std::vector<DrawRecord> draws;
};

/// Copies on the host, runs no kernel, and remembers what it was asked to launch.
/// What a command for acceleration structures was recorded with.
struct RayRecord {
    std::string kind;             ///< "build", "update", "clone", "compact", "query", "rays"
    std::vector<uint32_t> counts; ///< primitives of each geometry, or rays in x, y, z
};

class NullDevice final : public HostDevice {
public:
    static constexpr size_t max_records = 10'000; ///< the oldest go first

    explicit NullDevice(const DeviceDesc& desc);

    ref<Texture> create_texture(const TextureDesc& desc) override { return new HostTexture(this, desc); }
    ref<Sampler> create_sampler(const SamplerDesc& desc) override { return new Sampler(this, desc); }
    uint32_t format_support(Format format) override;
    std::string compile(const CompileDesc& desc) override { return std::string(desc.source); }
    std::string compiler_fingerprint() override { return "null 1"; }
    ref<Kernel> create_kernel(const KernelDesc& desc) override { return new Kernel(this, desc.layout, desc.label); }
    ref<RenderPipeline> create_render_pipeline(const RenderPipelineDesc& desc) override
    {
        return new RenderPipeline(this, desc);
    }
    DescriptorHandle make_handle(DeviceObject* object, DescriptorHandleType type) override;
    void drop_handle(const DescriptorHandle& handle) noexcept override;
    void launch(const LaunchDesc& desc) override;
    void run_render_pass(const command::RenderPass& pass) override;
    void run_ray_command(const Command& command) override;
    AccelerationStructureSizes acceleration_structure_sizes(const AccelerationStructureBuildDesc& desc) override;
    ref<RayTracingPipeline> create_ray_tracing_pipeline(const RayTracingPipelineDesc& desc) override
    {
        return new RayTracingPipeline(this, desc);
    }
    ref<AccelerationStructure> create_acceleration_structure(const AccelerationStructureDesc& desc) override
    {
        return new AccelerationStructure(this, desc);
    }

    std::vector<LaunchRecord> take_records(); ///< and forgets them
    std::vector<PassRecord> take_passes();
    std::vector<RayRecord> take_ray_commands();

private:
    std::mutex m_mutex;
    std::vector<LaunchRecord> m_records;
    std::vector<PassRecord> m_passes;
    HandleTables m_handles;
    std::vector<RayRecord> m_ray_commands;
};

} // namespace spy::null
