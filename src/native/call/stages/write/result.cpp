// What the call makes: containers for results, and where the kernel writes them.
#include "call/stages/place/share.h"
#include "call/stages/write/writing.h"
#include "device/resource.h"
#include "values/numpy.h"
#include "values/torch.h"
#include "core/python_names.h"

#include <algorithm>

namespace spy {

namespace {

/// Bytes of a result of the call's shape.
uint64_t result_size(const Writing& w, const ResultSpec& result)
{
    uint64_t size = 0;
    const Shape& shape = w.measured.shape;
    if (__builtin_mul_overflow(uint64_t(shape.element_count()), uint64_t(result.element->stride), &size))
        fail(ErrorKind::memory, w.label(), ": a result of shape ", shape.str(), " with ", result.element->stride,
             " bytes per element is larger than any memory");
    return std::max<uint64_t>(size, result.element->stride); // buffers are never empty
}

/// The memory of a result, one element for each invocation.
void write_address(Writing& w, const ResultSpec& result, uint64_t address)
{
    const Shape& shape = w.measured.shape;
    if (const auto* reference = result.leaf.as<ReferenceSpec>())
        w.put<uint64_t>(reference->out.offset, address);
    else
        write_view(w, result.leaf, result.leaf.as<ViewSpec>()->views[0], address, shape, shape.contiguous_strides());
}

/// A recorded call returns nothing, but its kernel writes its result somewhere.
void discard_result(Writing& w, const ResultSpec& result)
{
    BufferDesc desc;
    desc.size = result_size(w, result);
    desc.uninitialized = true;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access;
    ref<Buffer> buffer = w.call.plan.device->create_buffer(desc);
    write_address(w, result, address_of(*buffer));
    w.keep(ref<Object>(buffer.get()));
}

/// The sizes of a result that has the elements' own dimensions after those of the call.
Shape full_result_shape(const Writing& w, const ResultSpec& result)
{
    Shape shape = w.measured.shape;
    for (int64_t size : result.element_shape)
        shape.push_back(size);
    return shape;
}

void make_numpy(Writing& w, const ResultSpec& result, Container& container)
{
    const Shape shape = full_result_shape(w, result);
    try {
        container.object = nb::module_::import_("numpy").attr("empty")(to_tuple(shape), result.dtype);
    } catch (nb::python_error& error) {
        fail(ErrorKind::memory, w.label(), ": a NumPy array of shape ", shape.str(),
             " for the result: ", nb::str(error.value()).c_str());
    }
    NumpyArray array;
    read_numpy(container.object.ptr(), array);
    if (w.call.is_prepared)
        w.keep(ref<Object>(new ArrayGuard(container.object.ptr(), cat(w.label(), ": the result"))));
    write_address(w, result, reinterpret_cast<uint64_t>(array.data));
}

nb::object tensor_like(const MadeTensor& made, const ref<Buffer>& buffer, const Shape& shape)
{
    TensorBase tensor = made.like;
    tensor.storage = buffer;
    tensor.shape = shape;
    tensor.strides = shape.contiguous_strides();
    nb::object result = nb::inst_alloc(made.cls);
    new (nb::inst_ptr<TensorBase>(result)) TensorBase(std::move(tensor));
    nb::inst_mark_ready(result);
    return result;
}

/// Memory of the device, and the Tensor over it.
void make_tensor(Writing& w, const ResultSpec& result, Container& container, bool is_tangent)
{
    BufferDesc desc;
    desc.size = result_size(w, result);
    desc.struct_size = result.element->stride;
    desc.uninitialized = true; // every element is written
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
        BufferUsage::copy_source;
    container.buffer = w.call.plan.device->create_buffer(desc);
    write_address(w, result, address_of(*container.buffer));
    w.keep(ref<Object>(container.buffer.get()));
    if (result.mode == ResultMode::torch)
        return;
    MadeTensor& made = w.call.plan.state.made[is_tangent];
    if (made.cls.is_valid()) {
        container.object = tensor_like(made, container.buffer, w.measured.shape);
        return;
    }
    nb::object make = w.call.plan.view.attr(in_python::make_tensor.name);
    container.object = make(nb::cast(container.buffer), to_tuple(w.measured.shape), is_tangent);
    made = {nb::borrow(container.object.type()), *nb::inst_ptr<TensorBase>(container.object)};
    made.like.storage = nullptr;
}

uint64_t share_result(Writing& w, const nb::object& tensor, const TorchTensor& description)
{
    const TypeLayout& element = *w.call.plan.result.element;
    const uint64_t stored = uint64_t(w.measured.shape.element_count()) * element.stride;
    const uint64_t expected = uint64_t(description.shape.element_count()) * scalar_info(description.scalar).size;
    if (stored != expected)
        fail(ErrorKind::not_implemented, w.label(), ": a torch result of ", element.full_name, " takes ", stored,
             " bytes on this device and ", expected, " in torch; use _result=\"tensor\"");
    return share(w.call, w.measured, w.placed, tensor,
                 {description.address, description.scalar, description.shape, description.strides}, false, true);
}

/// False where the tensor's memory is not the device's: it is copied from a buffer afterwards.
bool make_torch(Writing& w, const ResultSpec& result, Container& container)
{
    const Leaf& like = *w.measured.torch_like;
    TorchTensor description{0, like.scalar, {}, {}, like.device_type, like.device_index};
    container.object = new_torch(description, like.object, result.scalar, full_result_shape(w, result));
    if (like.device_type == 1 && !w.call.on_host)
        return false;
    read_torch(container.object.ptr(), description);
    if (w.call.is_prepared)
        w.keep(ref<Object>(new TorchGuard(container.object.ptr(), {description.address, description.needed},
                                          cat(w.label(), ": the result"))));
    if (w.measured.total > 0 && shares_torch(w.call, w.measured))
        description.address = share_result(w, container.object, description);
    write_address(w, result, description.address);
    return true;
}

void prepare_container(Writing& w, const ResultSpec& result, Container& container, bool is_tangent)
{
    if (result.mode == ResultMode::value) {
        const ReadTo to = is_tangent ? ReadTo::result_tangent : ReadTo::result;
        return write_address(w, result, readback_memory(w, result.leaf.name, nullptr, *result.element, to));
    }
    if (result.mode == ResultMode::torch && make_torch(w, result, container))
        return;
    if (result.mode == ResultMode::numpy) {
        refuse_in_capture(w.call, w.measured,
                          "the result is copied to the host (leave out _result for a torch tensor)");
        if (w.call.on_host)
            return make_numpy(w, result, container);
    }
    make_tensor(w, result, container, is_tangent);
}

/// The planner's record makes the texture: it knows type, format and usage.
void prepare_texture(Writing& w, const ResultSpec& result)
{
    const Shape& shape = w.measured.shape;
    if (std::find(shape.begin(), shape.end(), 0) != shape.end())
        fail_value(w.label(), ": the call has shape ", shape.str(),
                   ", and a texture has no sizes of 0; use _result=\"tensor\"");
    nb::object texture = w.call.plan.view.attr(in_python::make_texture.name)(to_tuple(shape));
    bind_slot(w.out.arguments, result.leaf.as<ResourceSpec>()->slot, ref<Object>(nb::cast<Texture*>(texture)));
    if (!w.call.recorder)
        w.out.pending.result.object = std::move(texture);
}

/// A result class: its marshall makes the object that is written, and turns it into what the call returns.
void prepare_custom(Writing& w, const ResultSpec& result)
{
    if (w.call.recorder)
        fail_value(w.label(),
                   ": a result of a registered class would have to be read back on the host; pass an "
                   "instance or a Tensor as _result when appending to a command encoder");
    Pending& pending = w.out.pending;
    pending.result.object = w.call.plan.view.attr(in_python::custom_create.name)();
    if (w.measured.total == 0)
        return;
    const CustomSpec& custom = *result.leaf.as<CustomSpec>();
    pending.result_data = w.call.plan.view.attr(in_python::custom_calldata.name)(-1, pending.result.object);
    write_value_slot(w, custom.value, pending.result_data.ptr(), result.leaf.name);
    for (uint32_t i = 0; i < result.leaf.vector_dims() && custom.steps >= 0; ++i)
        w.put<int64_t>(custom.steps + int32_t(8 * i), 1);
}

} // namespace

void prepare_result(Writing& w)
{
    const ResultSpec& result = w.call.plan.result;
    if (result.mode == ResultMode::none || result.mode == ResultMode::leaf)
        return;
    if (result.mode == ResultMode::texture)
        return prepare_texture(w, result);
    if (result.mode == ResultMode::custom)
        return prepare_custom(w, result);
    if (w.call.recorder) {
        if (result.mode == ResultMode::numpy)
            fail_value(w.label(),
                       ": _result as a NumPy array would have to be read back on the host; pass a Tensor as _result "
                       "when appending to a command encoder");
        discard_result(w, result);
        if (result.tangent)
            discard_result(w, *result.tangent);
        return;
    }
    prepare_container(w, result, w.out.pending.result, false);
    if (result.tangent)
        prepare_container(w, *result.tangent, w.out.pending.tangent, true);
}

} // namespace spy
