// Resources that a call binds: buffers, samplers, textures whole or texel by texel.
#include "call/stages/write/writing.h"
#include "device/acceleration.h"
#include "device/resource.h"
#include "values/texture.h"
#include "core/python_names.h"

namespace spy {

void check_device(const Writing& w, size_t index, const DeviceObject& object, const char* what)
{
    const Device* device = w.call.plan.device.get();
    if (object.frontend() != device && object.device() != device)
        w.call.plan.view.attr(in_python::fail_device.name)(index, what, object.device()->info().api_name);
}

namespace {

void check_buffer(const Writing& w, size_t index, const ResourceSpec& resource, const Buffer& buffer)
{
    check_device(w, index, buffer, "the buffer");
    if (resource.element.size && buffer.desc().size % resource.element.size)
        fail_value(w.label(), ": argument ", w.spec(index).name, " has ", buffer.desc().size,
                   " bytes, which is no multiple of the ", resource.element.size,
                   " bytes of one element of its parameter; pass a Buffer of whole elements");
}

void bind(Writing& w, const ResourceSpec& resource, Object* object)
{
    bind_slot(w.out.arguments, resource.slot, ref<Object>(object));
}

void write_texture(Writing& w, size_t index, const ResourceSpec& resource)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    DeviceObject* object = nullptr;
    if (leaf.kind == ValueKind::texture)
        object = nb::cast<Texture*>(nb::handle(leaf.object));
    else
        object = nb::cast<TextureView*>(nb::handle(leaf.object));
    check_device(w, index, *object, "the texture");
    bind(w, resource, object);
    if (resource.read_slot >= 0)
        bind_slot(w.out.arguments, resource.read_slot, ref<Object>(object));
    for (uint32_t i = 0; i < spec.vector_dims() && resource.steps >= 0; ++i) {
        if (leaf.shape[i] < 0)
            fail_value(w.label(), ": argument ", spec.name,
                       " is a view of a cube array whose layers are no multiple "
                       "of 6; begin at a face 0 and take whole cubes");
        w.put<int32_t>(resource.steps + int32_t(4 * i), leaf.shape[i] == 1 ? 0 : 1);
    }
}

void write_tensor(Writing& w, size_t index, const ResourceSpec& resource)
{
    const TensorBase& tensor = *w.leaf(index).tensor;
    if (tensor.offset != 0 || !(tensor.strides == tensor.shape.contiguous_strides()))
        fail_value(w.label(), ": argument ", w.spec(index).name,
                   " must be contiguous with offset 0 to be bound as a buffer; pass .contiguous()");
    check_device(w, index, *tensor.storage, "the tensor");
    bind(w, resource, tensor.storage.get());
}

/// Arrays and lists become a temporary structured buffer.
void write_temporary(Writing& w, size_t index, const ResourceSpec& resource)
{
    const LeafSpec& spec = w.spec(index);
    const Leaf& leaf = w.leaf(index);
    const ElementSpec& element = resource.element;
    if (leaf.kind != ValueKind::array && leaf.kind != ValueKind::list)
        fail(ErrorKind::type, w.label(), ": argument ", spec.name,
             " cannot be bound as a resource; pass a Buffer, a Tensor or an array");
    refuse_in_capture(w.call, w.measured, "argument ", spec.name, " is copied from the host (pass a slangpy.Tensor)");
    const std::vector<uint8_t> bytes = leaf.kind == ValueKind::array ? pack_array(leaf, element.size)
        : element.layout                                             ? pack_elements(w, spec, *element.layout, leaf)
                                                                     : pack_numbers(spec, element, leaf);
    BufferDesc desc;
    desc.size = std::max<size_t>(bytes.size(), 4);
    desc.struct_size = element.layout ? uint32_t(element.layout->stride) : element.size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
        BufferUsage::copy_source;
    ref<Buffer> buffer = w.call.plan.device->create_buffer(desc);
    if (!bytes.empty())
        w.call.plan.device->write_buffer(buffer, 0, bytes.data(), bytes.size());
    bind(w, resource, buffer.get());
    w.out.pending.uploads.push_back({index, buffer, {}, spec.writes, element.size});
}

} // namespace

void bind_slot(KernelArguments& arguments, int32_t slot, ref<Object> object)
{
    if (arguments.slots.size() <= size_t(slot))
        arguments.slots.resize(size_t(slot) + 1);
    arguments.slots[size_t(slot)] = std::move(object);
}

void write_kind(Writing& w, size_t index, const ResourceSpec& resource)
{
    const Leaf& leaf = w.leaf(index);
    if (leaf.kind == ValueKind::texture || leaf.kind == ValueKind::texture_view)
        return write_texture(w, index, resource);
    if (leaf.tensor)
        return write_tensor(w, index, resource);
    if (leaf.kind == ValueKind::buffer) {
        auto* buffer = nb::cast<Buffer*>(nb::handle(leaf.object));
        check_buffer(w, index, resource, *buffer);
        return bind(w, resource, buffer);
    }
    if (leaf.kind == ValueKind::sampler) {
        auto* sampler = nb::cast<Sampler*>(nb::handle(leaf.object));
        check_device(w, index, *sampler, "the sampler");
        return bind(w, resource, sampler);
    }
    if (leaf.kind == ValueKind::acceleration_structure) {
        auto* structure = nb::cast<AccelerationStructure*>(nb::handle(leaf.object));
        check_device(w, index, *structure, "the acceleration structure");
        return bind(w, resource, structure);
    }
    if (leaf.packed && leaf.kind == ValueKind::list && !resource.element.layout)
        return bind(w, resource, packed_buffer(w, w.spec(index), resource.element, leaf).get());
    write_temporary(w, index, resource);
}

} // namespace spy
