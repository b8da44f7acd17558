// torch tensors of a GPU for a device of another API: copied into memory that both see, on torch's stream.
#include "call/launch.h"
#include "call/launch_util.h"
#include "call/torch.h"

#include <algorithm>
#include <bit>

namespace spy {

namespace {

constexpr uint64_t smallest_piece = 64 << 10;
constexpr size_t most_kept = 32;

/// The first bytes of a piece as a tensor like another; `source` may need a gradient.
nb::object tensor_over(const nb::object& bytes, nb::handle like, const Shape& shape)
{
    nb::list sizes;
    for (int64_t size : shape)
        sizes.append(size);
    const auto size = shape.element_count() * nb::cast<int64_t>(like.attr("element_size")());
    return bytes.attr("narrow")(0, 0, size).attr("view")(like.attr("dtype")).attr("view")(nb::tuple(sizes));
}

} // namespace

bool Launch::shares_torch() const
{
    return m_torch_like && m_torch_like->device_type == 2 && m_plan.device->info().type != DeviceType::cuda &&
           m_plan.device->cuda_index() >= 0;
}

SharedPiece Launch::take_piece(uint64_t size)
{
    if (!m_stream.value)
        m_stream = torch_call_stream(m_options, m_torch_like);
    auto fits = [&](const SharedPiece& piece) {
        // On one stream each use comes after the one before; another stream's may still be under way.
        return piece.stream == m_stream.value && piece.size >= size && piece.size <= std::max(4 * size, smallest_piece);
    };
    auto& kept = m_plan.shared_pieces;
    if (auto found = std::find_if(kept.begin(), kept.end(), fits); found != kept.end()) {
        SharedPiece piece = std::move(*found);
        kept.erase(found);
        return piece;
    }
    BufferDesc desc;
    desc.size = std::max(smallest_piece, std::bit_ceil(size) - (size > (64ull << 20) ? std::bit_ceil(size) - size : 0));
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_source |
                 BufferUsage::copy_destination | BufferUsage::shared;
    desc.label = "memory shared with torch";
    desc.uninitialized = true;
    ref<Buffer> buffer = m_plan.device->create_buffer(desc);
    nb::object bytes = nb::cast(buffer).attr("to_torch")();
    return {m_stream.value, desc.size, std::move(buffer), std::move(bytes)};
}

uint64_t Launch::share(nb::handle tensor, const SharedView& view, bool copy_in, bool copy_out)
{
    for (Shared& other : m_shared)
        if (other.view == view) { // one tensor passed twice: both see one content
            other.copy_out |= copy_out;
            return other.piece.buffer->device_address();
        }
    Shared shared{view, nb::borrow(tensor).attr("detach")(), {}, {}, copy_out};
    shared.piece = take_piece(std::max<uint64_t>(uint64_t(view.shape.element_count()) * scalar_info(view.scalar).size, 1));
    shared.inside = tensor_over(shared.piece.bytes, shared.tensor, view.shape);
    if (copy_in)
        shared.inside.attr("copy_")(shared.tensor);
    const uint64_t address = shared.piece.buffer->device_address();
    m_keep.push_back(ref<Object>(shared.piece.buffer.get()));
    m_shared.push_back(std::move(shared));
    return address;
}

/// Moves the torch leaves over; from here on they look like tensors of the device.
void Launch::share_torch()
{
    if (m_signature.reserved.append_to)
        fail(ErrorKind::not_implemented, m_plan.label, ": torch tensors of a GPU cannot be appended to a command encoder of a ",
             m_plan.device->info().api_name, " device; pass a slangpy.Tensor, or use a cuda device");
    refuse_in_capture(cat("the ", m_plan.device->info().api_name, " device works on a queue of its own"));
    for (size_t i = 0; i < m_plan.leaves.size(); ++i)
        if (m_signature.leaves[i].kind == ValueKind::torch)
            check_torch(m_plan.leaves[i], m_signature.leaves[i]);
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        Leaf& leaf = m_signature.leaves[i];
        if (leaf.kind != ValueKind::torch || leaf.device_type != 2)
            continue;
        if (!(leaf.flags & value_flag::no_primal)) {
            leaf.address = share(leaf.object, {leaf.address, leaf.scalar, leaf.shape, leaf.strides}, true, plan.writes);
            leaf.strides = leaf.shape.contiguous_strides();
        }
        clear_fresh(leaf);
        leaf.flags &= uint8_t(~value_flag::fresh);
        for (size_t k = 0; k < 2; ++k)
            if (TensorBase* grad = leaf.grads[k]) {
                if (k == 1 && grad == leaf.grads[0])
                    continue;
                nb::object tensor = grad->dtype;
                grad->raw_address = share(tensor, {grad->raw_address, ScalarType(grad->type_id), grad->shape, grad->strides}, true, k == 1);
                grad->strides = grad->shape.contiguous_strides();
            }
    }
}

uint64_t Launch::share_result(const nb::object& tensor, const TorchTensor& description)
{
    const uint64_t stored = uint64_t(m_call.element_count()) * m_plan.result.element->stride;
    const uint64_t expected = uint64_t(description.shape.element_count()) * scalar_info(description.scalar).size;
    if (stored != expected)
        fail(ErrorKind::not_implemented, m_plan.label, ": a torch result of ", m_plan.result.element->full_name, " takes ", stored,
             " bytes on this device and ", expected, " in torch; use _result=\"tensor\"");
    return share(tensor, {description.address, description.scalar, description.shape, description.strides}, false, true);
}

/// On the stream, which waits for the device's queue.
void Launch::finish_shared()
{
    for (Shared& shared : m_shared) {
        if (shared.copy_out)
            shared.tensor.attr("copy_")(shared.inside);
        m_plan.shared_pieces.push_back(std::move(shared.piece));
    }
    m_shared.clear();
    auto& kept = m_plan.shared_pieces;
    if (kept.size() > most_kept)
        kept.erase(kept.begin(), kept.end() - most_kept);
}

} // namespace spy
