// What memory the kernel works on: torch tensors where the device sees them, copies of what is written over.
#include "call/stages/leaves.h"
#include "call/stages/place/separate.h"
#include "call/stages/place/share.h"
#include "values/torch.h"

namespace spy {

namespace {

/// A number beside CUDA tensors goes to the GPU, as in torch.
void move_number(const Call& call, const Measured& measured, const LeafSpec& spec, Leaf& leaf)
{
    refuse_prepared(call, "argument ", spec.name, " is a CPU tensor that is copied to the GPU at each call; pass a ",
                    "Python number or ", spec.name, ".cuda()");
    refuse_in_capture(call, measured, "argument ", spec.name,
                      " is a CPU tensor that is copied to the GPU (pass a Python number or ", spec.name, ".cuda())");
    if (leaf.grads[0] || leaf.grads[1])
        fail_value(call.plan.label, ": argument ", spec.name,
                   " is a diff_pair of CPU tensors, but the module's device is ",
                   "CUDA; pass slangpy.diff_pair(value.cuda(), gradient.cuda())");
    nb::object moved = nb::handle(leaf.object).attr("to")(nb::handle(measured.torch_like->object).attr("device"));
    TorchTensor found;
    read_torch(moved.ptr(), found);
    leaf.address = found.address;
    leaf.device_type = found.device_type;
    leaf.device_index = found.device_index;
    leaf.object = moved.ptr(); // what runs later keeps this one
    call.signature.keep.push_back(std::move(moved));
}

void check_cuda(const Call& call, const LeafSpec& spec, const Leaf& leaf)
{
    const int32_t index = call.plan.device->info().device_index;
    if (leaf.device_type == 1)
        fail_value(call.plan.label, ": argument ", spec.name,
                   " is a CPU tensor, but the module's device is CUDA; pass ", spec.name, ".cuda()");
    if (leaf.device_index != index)
        fail_value(call.plan.label, ": argument ", spec.name, " is on cuda:", leaf.device_index,
                   " but the module's device is cuda:", index, "; pass ", spec.name, ".to(\"cuda:", index, "\")");
}

void check_not_cuda(const Call& call, const LeafSpec& spec, const Leaf& leaf)
{
    const int shared = call.plan.device->cuda_index();
    if (leaf.device_type == 1 || shared == leaf.device_index)
        return;
    if (shared >= 0)
        fail_value(call.plan.label, ": argument ", spec.name, " is on cuda:", leaf.device_index,
                   " but the module's device shares memory with cuda:", shared, "; pass ", spec.name,
                   ".to(\"cuda:", shared, "\")");
    fail_value(call.plan.label, ": argument ", spec.name, " is on cuda:", leaf.device_index,
               " but the module's device is ", call.on_host ? "cpu" : call.plan.device->info().api_name, "; pass ",
               spec.name, ".cpu()");
}

void check_torch(const Call& call, const Measured& measured, const LeafSpec& spec, Leaf& leaf)
{
    if (call.plan.device->info().type != DeviceType::cuda)
        check_not_cuda(call, spec, leaf);
    else if (leaf.device_type == 1 && leaf.shape.empty() && measured.torch_like->device_type == 2 && !spec.writes)
        return move_number(call, measured, spec, leaf);
    else
        check_cuda(call, spec, leaf);
    if (spec.reads && leaf.flags & value_flag::no_primal)
        fail_value(call.plan.label, ": argument ", spec.name,
                   " is a diff_pair without a primal, but its value is read; pass slangpy.diff_pair(primal, grad)");
}

/// From here on a host array, which goes through a temporary.
void as_array(Leaf& leaf)
{
    for (size_t i = 0; i < leaf.strides.size(); ++i)
        leaf.strides[i] *= scalar_info(leaf.scalar).size;
    leaf.kind = ValueKind::array;
}

void place_view(const Call& call, const Measured& measured, const LeafSpec& spec, const ViewSpec& view, Leaf& leaf)
{
    bool direct = leaf.device_type == 2 || call.on_host;
    if (direct && view.element.size && view.element.size != scalar_info(leaf.scalar).size) {
        if (leaf.device_type == 2)
            fail(ErrorKind::not_implemented, call.plan.label, ": argument ", spec.name, " of dtype ",
                 scalar_info(leaf.scalar).slang_name, " needs a conversion; pass a slangpy.Tensor");
        direct = false;
    }
    if (direct && !leaf.is_apart)
        return;
    clear_fresh(leaf); // memory that the device cannot read: copies go back and forth
    leaf.flags &= uint8_t(~value_flag::fresh);
    as_array(leaf);
}

void place_torch(const Call& call, const Measured& measured, size_t index, bool is_shared)
{
    const LeafSpec& spec = call.plan.leaves[index];
    Leaf& leaf = call.leaf(index);
    const auto* view = spec.as<ViewSpec>();
    if (leaf.kind != ValueKind::torch || !(view || spec.as<ResourceSpec>()))
        return;
    if (!is_shared || !view)
        check_torch(call, measured, spec, leaf);
    if (view)
        return place_view(call, measured, spec, *view, leaf);
    if (leaf.device_type == 2)
        fail(ErrorKind::not_implemented, call.plan.label, ": argument ", spec.name,
             " is a CUDA tensor, which buffer parameters do not take; declare a Tensor or a pointer, or pass a "
             "slangpy.Tensor");
    as_array(leaf);
}

/// Moves the torch leaves over; from here on they look like tensors of the device.
void share_leaves(const Call& call, const Measured& measured, Placed& placed)
{
    const char* api = call.plan.device->info().api_name.c_str();
    refuse_prepared(call, "torch tensors of a GPU are copied for a ", api,
                    " device at each call; pass slangpy.Tensors, or use a cuda device");
    if (call.recorder)
        fail(ErrorKind::not_implemented, call.plan.label,
             ": torch tensors of a GPU cannot be appended to a command encoder of a ", api,
             " device; pass a slangpy.Tensor, or use a cuda device");
    refuse_in_capture(call, measured, "the ", api, " device works on a queue of its own");
    for (size_t i = 0; i < call.leaf_count(); ++i)
        if (call.leaf(i).kind == ValueKind::torch)
            check_torch(call, measured, call.plan.leaves[i], call.leaf(i));
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        Leaf& leaf = call.leaf(i);
        if (leaf.kind != ValueKind::torch || leaf.device_type != 2)
            continue;
        if (!(leaf.flags & value_flag::no_primal)) {
            leaf.address = share(call, measured, placed, leaf.object,
                                 {leaf.address, leaf.scalar, leaf.shape, leaf.strides}, true,
                                 call.plan.leaves[i].writes);
            leaf.strides = leaf.shape.contiguous_strides();
        }
        clear_fresh(leaf);
        leaf.flags &= uint8_t(~value_flag::fresh);
        for (size_t k = 0; k < 2; ++k) {
            TensorBase* grad = leaf.grads[k];
            if (!grad || (k == 1 && grad == leaf.grads[0]))
                continue;
            grad->raw_address = share(call, measured, placed, grad->dtype,
                                      {grad->raw_address, ScalarType(grad->type_id), grad->shape, grad->strides}, true,
                                      k == 1);
            grad->strides = grad->shape.contiguous_strides();
        }
    }
}

} // namespace

void bump_versions(const Call& call)
{
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const Leaf& leaf = call.leaf(i);
        if (leaf.device_type != 0 && call.plan.leaves[i].writes)
            bump_torch_version(leaf.object);
    }
}

Placed place(const Call& call, const Measured& measured)
{
    Placed placed;
    if (call.signature.has_torch)
        bump_versions(call);
    const bool shares = measured.total > 0 && shares_torch(call, measured);
    if (shares)
        share_leaves(call, measured, placed);
    if (measured.total > 0)
        separate(call, measured, placed);
    if (call.signature.has_torch && (measured.total > 0 || call.recorder))
        for (size_t i = 0; i < call.leaf_count(); ++i)
            place_torch(call, measured, i, shares);
    return placed;
}

} // namespace spy
