#pragma once
// Records rays: checks everything, and collects complete commands.
#include "device/encoder.h"

namespace spy {

class RayTracingPassEncoder : public Object {
public:
    explicit RayTracingPassEncoder(ref<CommandEncoder> encoder) : m_encoder(std::move(encoder)) { }

    CommandEncoder* encoder() const { return m_encoder.get(); }
    /// A fresh root object for the pipeline's parameters, or the one given.
    ref<ShaderObject> bind_pipeline(ref<RayTracingPipeline> pipeline, ref<ShaderTable> table,
                                    ref<ShaderObject> root = {});
    void dispatch_rays(uint64_t ray_gen_index, std::array<uint32_t, 3> dimensions);
    void write_timestamp(ref<QueryPool> pool, uint32_t index);
    void debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color);
    void end();

private:
    void check_open(const char* call) const;

    ref<CommandEncoder> m_encoder;
    ref<RayTracingPipeline> m_pipeline;
    ref<ShaderTable> m_table;
    ref<ShaderObject> m_root;
    bool m_ended = false;
};

/// ValueError for a ray generation record that there is not, or more rays than the device takes.
void check_rays(const Device* device, const ShaderTable& table, uint64_t ray_gen_index,
                std::array<uint32_t, 3> dimensions, const char* call);
/// ValueError where an instance of a structure that is bound names a hit record beyond the table.
void check_hit_records(const ProgramLayout& layout, const ShaderTable& table, std::span<const ref<Object>> slots,
                       const char* call);

} // namespace spy
