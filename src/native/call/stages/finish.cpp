// What goes back to the host after a launch, and what the call returns.
#include "call/stages/leaves.h"
#include "values/torch.h"
#include "values/writer.h"
#include "core/python_names.h"

#include <algorithm>

namespace spy {

namespace {

constexpr size_t most_kept_pieces = 32;

/// On the stream, which waits for the device's queue.
void finish_shared(const Call& call, Pending& pending)
{
    if (pending.shared.empty())
        return;
    auto& kept = call.plan.state.shared_pieces;
    for (SharedTensor& shared : pending.shared) {
        if (shared.copy_out)
            shared.tensor.attr("copy_")(shared.inside);
        kept.push_back(std::move(shared.piece));
    }
    if (kept.size() > most_kept_pieces)
        kept.erase(kept.begin(), kept.end() - most_kept_pieces);
}

void finish_uploads(const Call& call, Pending& pending)
{
    for (Upload& upload : pending.uploads) {
        if (!upload.write_back)
            continue;
        const Leaf& leaf = upload.own ? *upload.own : call.leaf(upload.leaf);
        if (upload.buffer) {
            upload.bytes.resize(size_t(leaf.shape.element_count()) * upload.item);
            if (!upload.bytes.empty())
                call.plan.device->read_buffer(upload.buffer, 0, upload.bytes.data(), upload.bytes.size());
        }
        unpack_array(leaf, upload.bytes.data(), upload.item);
    }
}

void finish_native_copies(const Call& call)
{
    for (const NativeCopy& native : call.signature.native_copies)
        if (native.leaf < call.leaf_count() && call.plan.leaves[native.leaf].writes)
            nb::module_::import_("numpy").attr("copyto")(native.array, native.copy);
}

/// Gives a value that came back to whom it is for.
void deliver(Pending& pending, const Readback& readback, nb::object value)
{
    nb::handle object(readback.object);
    switch (readback.to) {
    case ReadTo::result: pending.result.object = std::move(value); return;
    case ReadTo::result_tangent: pending.tangent.object = std::move(value); return;
    case ReadTo::grad: nb::cast<DiffPair*>(object)->grad = std::move(value); return;
    case ReadTo::pair: {
        auto* pair = nb::cast<DiffPair*>(object);
        pair->primal = value["p"];
        if (pair->needs_grad)
            pair->grad = value["d"];
        return;
    }
    case ReadTo::value:
        if (nb::isinstance<ValueRef>(object))
            nb::cast<ValueRef*>(object)->value = std::move(value);
        else
            nb::cast<DiffPair*>(object)->primal = std::move(value);
    }
}

void finish_references(const Call& call, const Measured& measured, Pending& pending)
{
    for (Readback& readback : pending.readbacks) {
        if (readback.buffer) {
            readback.bytes.assign((readback.layout->stride + 7) / 8 + 1, 0);
            call.plan.device->read_buffer(readback.buffer, 0, readback.bytes.data(), readback.layout->stride);
        }
        // a sum over nothing is zero
        const bool is_sum = readback.to == ReadTo::grad && !call.plan.traits.is_forward_mode;
        if (measured.total == 0 && readback.object && !is_sum)
            continue;
        deliver(pending, readback,
                read_value(*readback.layout, reinterpret_cast<const uint8_t*>(readback.bytes.data())));
    }
}

void finish_custom(const Call& call, const Pending& pending)
{
    for (const CustomData& custom : pending.custom)
        if (call.plan.leaves[custom.leaf].writes)
            call.plan.view.attr(in_python::custom_read.name)(custom.leaf, nb::handle(call.leaf(custom.leaf).object),
                                                             custom.data);
}

/// A torch result that the device cannot write in place.
void copy_torch(const Call& call, const Measured& measured, const ResultSpec& result, const Container& container)
{
    TorchTensor target;
    read_torch(container.object.ptr(), target);
    Device& device = *call.plan.device;
    const uint64_t count = uint64_t(target.shape.element_count()), item = scalar_info(target.scalar).size;
    const uint64_t size = uint64_t(measured.shape.element_count()) * result.element->size;
    if (target.scalar == ScalarType::bool_ && size == 4 * count) { // a device's bool may take four bytes
        std::vector<uint32_t> wide(count);
        if (count)
            device.read_buffer(container.buffer, 0, wide.data(), size);
        std::transform(wide.begin(), wide.end(), reinterpret_cast<bool*>(target.address),
                       [](uint32_t value) { return value != 0; });
        return;
    }
    if (result.element->size != result.element->stride || size != count * item)
        fail(ErrorKind::not_implemented, call.plan.label, ": a torch result of ", result.element->full_name,
             " has padding on this device; use _result=\"tensor\"");
    if (size)
        device.read_buffer(container.buffer, 0, reinterpret_cast<void*>(target.address), size);
}

nb::object finish_container(const Call& call, const Measured& measured, const ResultSpec& result, Container& container)
{
    if (result.mode == ResultMode::torch && container.buffer)
        copy_torch(call, measured, result, container);
    if (result.mode != ResultMode::numpy || call.on_host)
        return std::move(container.object);
    return container.object.attr(in_python::to_numpy.name)(nb::arg("structured") = true); // numbers stay as they are
}

nb::object finish_result(const Call& call, const Measured& measured, Pending& pending)
{
    const ResultSpec& result = call.plan.result;
    if (result.mode == ResultMode::custom)
        pending.result.object = call.plan.view.attr(in_python::custom_result.name)(
            pending.result.object, pending.result_data.is_valid() ? pending.result_data : nb::object(nb::none()));
    for (ThisUpdate& update : call.signature.updates)
        update.object.attr("update_this")(update.value);
    if (result.mode == ResultMode::none || result.mode == ResultMode::leaf)
        return nb::none(); // the caller returns what it was given
    nb::object made = finish_container(call, measured, result, pending.result);
    if (!result.tangent)
        return made;
    return call.plan.view.attr(in_python::make_dual.name)(
        made, finish_container(call, measured, *result.tangent, pending.tangent));
}

/// What the call gives or writes holds addresses of memory that its arguments keep alive, and from now on itself.
nb::object keep_memory(const Call& call, nb::object result)
{
    nb::list objects;
    for (const Leaf& leaf : call.signature.used())
        objects.append(leaf.object ? nb::handle(leaf.object) : nb::handle(Py_None));
    nb::handle globals = call.options.has_uniforms() ? nb::handle(call.options.uniforms) : nb::handle(Py_None);
    return call.plan.view.attr(in_python::keep_memory.name)(result, objects, globals);
}

} // namespace

nb::object finish(const Call& call, const Measured& measured, Pending&& pending)
{
    if (call.recorder)
        return call.plan.traits.keeps_memory ? keep_memory(call, nb::none()) : nb::none();
    finish_shared(call, pending);
    finish_uploads(call, pending);
    finish_native_copies(call);
    finish_references(call, measured, pending);
    finish_custom(call, pending);
    nb::object result = finish_result(call, measured, pending);
    return call.plan.traits.keeps_memory ? keep_memory(call, std::move(result)) : result;
}

} // namespace spy
