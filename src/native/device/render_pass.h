#pragma once
// Records render passes: resolves what was left out, checks everything, and collects complete draws.
#include "device/encoder.h"

namespace spy {

struct RenderPassColorAttachment {
    ref<TextureView> view, resolve_target;
    LoadOp load_op = LoadOp::clear;
    StoreOp store_op = StoreOp::store;
    std::array<float, 4> clear_value{};
};
struct RenderPassDepthStencilAttachment {
    ref<TextureView> view;
    LoadOp depth_load_op = LoadOp::clear;
    StoreOp depth_store_op = StoreOp::store;
    float depth_clear_value = 1.f;
    bool depth_read_only = false;
    LoadOp stencil_load_op = LoadOp::clear;
    StoreOp stencil_store_op = StoreOp::store;
    uint32_t stencil_clear_value = 0;
    bool stencil_read_only = false;
};
struct RenderPassDesc {
    std::vector<RenderPassColorAttachment> color_attachments;
    std::optional<RenderPassDepthStencilAttachment> depth_stencil_attachment;
};

/// Checks the attachments and resolves the pass that they make: size, layers, samples, clear values.
command::RenderPass resolve_render_pass(const Device* device, const RenderPassDesc& desc);

class RenderPassEncoder : public Object {
public:
    RenderPassEncoder(ref<CommandEncoder> encoder, command::RenderPass pass)
        : m_encoder(std::move(encoder)),
          m_pass(std::move(pass))
    {
    }

    CommandEncoder* encoder() const { return m_encoder.get(); }
    /// A fresh root object for the pipeline's parameters, or the one given.
    ref<ShaderObject> bind_pipeline(ref<RenderPipeline> pipeline, ref<ShaderObject> root = {});
    /// Replaces the whole state.
    void set_render_state(RenderState state);
    void draw(const DrawArguments& arguments);
    void draw_indexed(const DrawArguments& arguments);
    void draw_indirect(uint32_t max_draw_count, BufferOffset arguments, BufferOffset count);
    void draw_indexed_indirect(uint32_t max_draw_count, BufferOffset arguments, BufferOffset count);
    void draw_mesh_tasks(std::array<uint32_t, 3> group_count);
    void write_timestamp(ref<QueryPool> pool, uint32_t index);
    void debug_marker(command::DebugMarker::Kind kind, std::string name, std::array<float, 3> color);
    /// `after_error`: what is open in it is closed, too.
    void end(bool after_error = false);

private:
    void check_open(const char* call) const;
    void add_draw(command::Draw draw, const char* call);
    void add_indirect(command::Draw::Kind kind, const char* call, uint32_t max_draw_count, BufferOffset arguments,
                      BufferOffset count);
    void check_draw(const command::Draw& draw, const char* call) const;
    void check_indirect(const command::Draw& draw, const char* call) const;
    void check_targets(const char* call) const;
    void check_streams(const command::Draw& draw, const char* call) const;
    void check_index_buffer(const command::Draw& draw, const char* call) const;
    void check_feedback(const BoundArguments& bound, const char* call) const;
    std::shared_ptr<const BoundArguments> bound_arguments();

    ref<CommandEncoder> m_encoder;
    command::RenderPass m_pass;
    ref<RenderPipeline> m_pipeline;
    ref<ShaderObject> m_root;
    RenderState m_given;
    std::shared_ptr<const RenderState> m_state; ///< resolved from `m_given`; null after a change
    std::shared_ptr<const BoundArguments> m_bound;
    bool m_targets_checked = false; ///< of the bound pipeline
    int m_debug_depth = 0;
    bool m_ended = false;
};

} // namespace spy
