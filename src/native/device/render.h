#pragma once
// Rasterisation: what a render pipeline is made of, and the pipeline. Commands of render passes are in command.h.
#include "device/device.h"
#include "device/texel_format.h"

#include <algorithm>

namespace spy {

inline constexpr uint32_t max_color_attachments = 8, max_viewports = 16;

enum class InputSlotClass : uint8_t { per_vertex, per_instance };
enum class PrimitiveTopology : uint8_t { point_list, line_list, line_strip, triangle_list, triangle_strip, patch_list };
enum class FillMode : uint8_t { solid, wireframe };
enum class CullMode : uint8_t { none, front, back };
enum class FrontFaceMode : uint8_t { counter_clockwise, clockwise };
enum class BlendOp : uint8_t { add, subtract, reverse_subtract, min, max };
enum class BlendFactor : uint8_t {
    zero,
    one,
    src_color,
    inv_src_color,
    src_alpha,
    inv_src_alpha,
    dest_alpha,
    inv_dest_alpha,
    dest_color,
    inv_dest_color,
    src_alpha_saturate,
    blend_color,
    inv_blend_color,
    secondary_src_color,
    inv_secondary_src_color,
    secondary_src_alpha,
    inv_secondary_src_alpha,
};
enum class RenderTargetWriteMask : uint32_t { none = 0, red = 1, green = 2, blue = 4, alpha = 8, all = 15 };
enum class StencilOp : uint8_t {
    keep,
    zero,
    replace,
    increment_saturate,
    decrement_saturate,
    invert,
    increment_wrap,
    decrement_wrap,
};
/// `no_op`: there is none. The others are those of the APIs, in the order of Direct3D; `keep` leaves what is there.
enum class LogicOp : uint8_t {
    no_op,
    clear,
    set,
    copy,
    copy_inverted,
    keep,
    invert,
    and_,
    nand,
    or_,
    nor,
    xor_,
    equivalent,
    and_reverse,
    and_inverted,
    or_reverse,
    or_inverted,
};
enum class IndexFormat : uint8_t { uint16, uint32 };
enum class LoadOp : uint8_t { load, clear, dont_care };
enum class StoreOp : uint8_t { store, dont_care };

/// Where something begins in a buffer.
struct BufferOffset {
    ref<Buffer> buffer;
    uint64_t offset = 0;
    uint64_t size = ~0ull; ///< bytes from the offset on; more than there are: all
    uint64_t stride = 0;   ///< bytes between the vertices that lie there; 0: any

    uint64_t room() const { return std::min(size, buffer->desc().size - offset); }
};

// --- vertex input

struct InputElementDesc {
    std::string semantic_name;
    uint32_t semantic_index = 0;
    Format format = Format::undefined;
    uint32_t offset = 0;            ///< bytes from the start of the vertex
    uint32_t buffer_slot_index = 0; ///< which stream
};
struct VertexStreamDesc {
    uint32_t stride = 0;
    InputSlotClass slot_class = InputSlotClass::per_vertex;
    uint32_t instance_data_step_rate = 0; ///< instances that share a record; resolved: at least 1 per instance
};
struct InputLayoutDesc {
    std::vector<InputElementDesc> input_elements;
    std::vector<VertexStreamDesc> vertex_streams;
};

/// Plain data that pipelines are made with; no object of a driver.
class InputLayout : public DeviceObject {
public:
    InputLayout(ref<Device> device, InputLayoutDesc desc);
    const InputLayoutDesc& desc() const { return m_desc; }

private:
    InputLayoutDesc m_desc;
};

// --- state

struct AspectBlendDesc {
    BlendFactor src_factor = BlendFactor::one, dst_factor = BlendFactor::zero;
    BlendOp op = BlendOp::add;
};
struct ColorTargetDesc {
    Format format = Format::undefined;
    bool enable_blend = false;
    AspectBlendDesc color, alpha;
    LogicOp logic_op = LogicOp::no_op;
    RenderTargetWriteMask write_mask = RenderTargetWriteMask::all;
};
struct DepthStencilOpDesc {
    StencilOp stencil_fail_op = StencilOp::keep, stencil_depth_fail_op = StencilOp::keep,
              stencil_pass_op = StencilOp::keep;
    ComparisonFunc stencil_func = ComparisonFunc::always;
};
struct DepthStencilDesc {
    Format format = Format::undefined; ///< undefined: no attachment
    bool depth_test_enable = false, depth_write_enable = true;
    ComparisonFunc depth_func = ComparisonFunc::less;
    bool stencil_enable = false;
    uint32_t stencil_read_mask = 0xffffffff, stencil_write_mask = 0xffffffff; ///< the low 8 bits count
    DepthStencilOpDesc front_face, back_face;

    bool writes_depth() const { return depth_test_enable && depth_write_enable; }
    bool writes_stencil() const;
};
struct RasterizerDesc {
    FillMode fill_mode = FillMode::solid;
    CullMode cull_mode = CullMode::none;
    FrontFaceMode front_face = FrontFaceMode::counter_clockwise;
    int32_t depth_bias = 0;
    float depth_bias_clamp = 0.f, slope_scaled_depth_bias = 0.f;
    bool depth_clip_enable = true;
    bool scissor_enable = false; ///< of no effect: rectangles that are given clip
    bool multisample_enable = false, antialiased_line_enable = false;
    bool enable_conservative_rasterization = false;
    uint32_t forced_sample_count = 0;
};
struct MultisampleDesc {
    uint32_t sample_count = 1, sample_mask = 0xffffffff;
    bool alpha_to_coverage_enable = false, alpha_to_one_enable = false;
};

/// An element of the input layout that the vertex shader reads.
struct VertexAttribute {
    InputElementDesc element;
    uint32_t location = 0; ///< Vulkan
};

/// The fixed functions of a pipeline.
struct RenderPipelineState {
    InputLayoutDesc input; ///< as given; backends use `attributes`, and of this the streams
    std::vector<VertexAttribute> attributes;
    PrimitiveTopology topology = PrimitiveTopology::triangle_list;
    std::vector<ColorTargetDesc> targets;
    DepthStencilDesc depth_stencil;
    RasterizerDesc rasterizer;
    MultisampleDesc multisample;
};

/// What Device::compile made of one entry point.
struct StageCode {
    ShaderStage stage = ShaderStage::none;
    std::string_view code;
};

struct RenderPipelineDesc {
    std::span<const StageCode> stages; ///< in the order of the layout's entry points
    ref<ProgramLayout> layout;
    RenderPipelineState state;
    std::string label;
};

/// Made by Device::create_render_pipeline.
class RenderPipeline : public DeviceObject {
public:
    RenderPipeline(ref<Device> device, const RenderPipelineDesc& desc);
    const ProgramLayout& layout() const { return *m_layout; }
    const RenderPipelineState& state() const { return m_state; }
    const std::string& label() const { return m_label; }
    bool has_stage(ShaderStage stage) const;
    /// Draws meshes, not vertices.
    bool is_mesh() const { return has_stage(ShaderStage::mesh); }
    int print_slot() const { return m_print_slot; } ///< as of Kernel
    virtual NativeHandle native_handle() const { return {}; }

protected:
    ref<ProgramLayout> m_layout;
    RenderPipelineState m_state;
    std::string m_label;
    int m_print_slot = -1;
};

/// Checks a description and matches the input layout with what the vertex shader reads; the stages' code may be
/// missing. ValueError names the semantic, target or field that is wrong.
void check_render_pipeline(Device* device, RenderPipelineDesc& desc);
/// The same, and makes the pipeline.
ref<RenderPipeline> create_render_pipeline(Device* device, RenderPipelineDesc desc);

/// NotImplementedError unless the device has the feature: `call` is what needs it.
void require_feature(const Device* device, const char* feature, const char* call);

/// Whether a device draws; else `call` raises NotImplementedError that names who does.
inline void require_rasterization(const Device* device, const char* call)
{
    require_feature(device, "rasterization", call);
}

} // namespace spy
