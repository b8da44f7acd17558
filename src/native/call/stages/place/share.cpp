// torch tensors of a GPU for a device of another API: copied into memory that both see, on torch's stream.
#include "call/stages/place/share.h"

#include "call/stages/leaves.h"

#include <algorithm>
#include <bit>

namespace spy {

namespace {

constexpr uint64_t smallest_piece = 64 << 10;

/// The first bytes of a piece as a tensor like another.
nb::object tensor_over(const nb::object& bytes, nb::handle like, const Shape& shape)
{
    const auto size = shape.element_count() * nb::cast<int64_t>(like.attr("element_size")());
    return bytes.attr("narrow")(0, 0, size).attr("view")(like.attr("dtype")).attr("view")(to_tuple(shape));
}

SharedPiece take_piece(const Call& call, uint64_t stream, uint64_t size)
{
    auto fits = [&](const SharedPiece& piece) {
        // On one stream each use comes after the one before; another stream's may still be under way.
        return piece.stream == stream && piece.size >= size && piece.size <= std::max(4 * size, smallest_piece);
    };
    auto& kept = call.plan.state.shared_pieces;
    if (auto found = std::find_if(kept.begin(), kept.end(), fits); found != kept.end()) {
        SharedPiece piece = std::move(*found);
        kept.erase(found);
        return piece;
    }
    BufferDesc desc;
    desc.size = std::max(smallest_piece, size > (64ull << 20) ? size : std::bit_ceil(size));
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_source |
        BufferUsage::copy_destination | BufferUsage::shared;
    desc.label = "memory shared with torch";
    desc.uninitialized = true;
    ref<Buffer> buffer = call.plan.device->create_buffer(desc);
    nb::object bytes = nb::cast(buffer).attr("to_torch")();
    return {stream, desc.size, std::move(buffer), std::move(bytes)};
}

} // namespace

bool shares_torch(const Call& call, const Measured& measured)
{
    const Device& device = *call.plan.device;
    return measured.torch_like && measured.torch_like->device_type == 2 && device.info().type != DeviceType::cuda &&
        call.plan.device->cuda_index() >= 0;
}

uint64_t share(const Call& call, const Measured& measured, Placed& placed, nb::handle tensor, const SharedView& view,
               bool copy_in, bool copy_out)
{
    for (SharedTensor& other : placed.shared)
        if (other.view == view) { // one tensor passed twice: both see one content
            other.copy_out |= copy_out;
            return other.piece.buffer->device_address();
        }
    SharedTensor shared{view, nb::borrow(tensor).attr("detach")(), {}, {}, copy_out};
    const uint64_t size = uint64_t(view.shape.element_count()) * scalar_info(view.scalar).size;
    shared.piece = take_piece(call, measured.stream.value, std::max<uint64_t>(size, 1));
    shared.inside = tensor_over(shared.piece.bytes, shared.tensor, view.shape);
    if (copy_in)
        shared.inside.attr("copy_")(shared.tensor);
    const uint64_t address = shared.piece.buffer->device_address();
    placed.keep.push_back(ref<Object>(shared.piece.buffer.get()));
    placed.shared.push_back(std::move(shared));
    return address;
}

} // namespace spy
