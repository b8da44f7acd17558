#pragma once
// What goes on a command list: launches (launch.cpp), copies, fills, clears, queries and markers
// (transfer.cpp), passes (render_pass.cpp). The caller holds the device's lock.
#include "d3d12/bindings.h"

namespace spy {

/// A box of texels in memory, with the rows and offset that a copy may have.
struct TexelBox {
    uint64_t offset = 0, row_bytes = 0, row_pitch = 0, rows = 0, slices = 1;
    uint64_t size() const { return row_pitch * rows * slices; }
};

class D3D12Recorder {
public:
    D3D12Recorder(D3D12Context& context, D3D12Queue& queue, D3D12Uploads& uploads, D3D12Descriptors& descriptors,
                  D3D12Memory& memory, const DeviceInfo& info)
        : m_context(context),
          m_queue(queue),
          m_uploads(uploads),
          m_descriptors(descriptors),
          m_memory(memory),
          m_info(info),
          m_bindings(context, queue, uploads, descriptors)
    {
    }
    void open();
    void close() noexcept;

    void record(const command::Dispatch& command);
    void record(const command::DispatchIndirect& command);
    void record(const command::CopyBuffer& command);
    void record(const command::FillBuffer& command);
    void record(const command::UploadBuffer& command);
    void record(const command::CopyTexture& command);
    void record(const command::CopyTextureToBuffer& command);
    void record(const command::CopyBufferToTexture& command);
    void record(const command::UploadTexture& command);
    void record(const command::ClearTexture& command);
    void record(const command::WriteTimestamp& command);
    void record(const command::ResolveQuery& command);
    void record(const command::Barrier& command);
    void record(const command::DebugMarker& command);
    void record(const command::Callback&) { } // the queue runs it
    void record(const command::ClearDepthStencil& command);
    void record(const command::RenderPass& command);
    /// Encoders refuse these: there is no feature 'acceleration_structure' and no 'cooperative_vector'.
    template <typename C>
        requires RayCommand<C> || std::is_same_v<C, command::ConvertCoopVecMatrices>
    void record(const C&)
    {
    }
    /// While somebody measures, between two timestamps.
    void record_timed(Device& device, const Command& command);
    void record_launch(D3D12Kernel& kernel, const std::array<uint32_t, 3>& groups, const ArgumentView& arguments);
    void record_copy(D3D12Block& to, uint64_t to_offset, D3D12Block& from, uint64_t from_offset, uint64_t size);
    /// Tightly packed rows in `data`.
    void record_texture_upload(D3D12Texture& texture, uint32_t layer, uint32_t mip, Offset3 offset, Extent3 extent,
                               const void* data);

private:
    D3D12Context& m_context;
    D3D12Queue& m_queue;
    D3D12Uploads& m_uploads;
    D3D12Descriptors& m_descriptors;
    D3D12Memory& m_memory;
    const DeviceInfo& m_info;
    D3D12Bindings m_bindings;
    Com<ID3D12CommandSignature> m_indirect, m_indirect_draw, m_indirect_indexed;
    D3D12Block* m_zeros = nullptr;   ///< what buffers are cleared from
    D3D12Block* m_results = nullptr; ///< where queries are resolved to; grows
};

/// The box as copies of textures need it in memory: rows at multiples of 256 bytes.
TexelBox box_of(const D3D12Texture& texture, Extent3 extent, const char* what);
void record_texture_read(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, Offset3 offset, Extent3 extent,
                         D3D12Block& to, const TexelBox& box);
void record_texture_write(D3D12Queue& queue, D3D12Texture& texture, UINT subresource, Offset3 offset, Extent3 extent,
                          D3D12Block& from, const TexelBox& box);

} // namespace spy
