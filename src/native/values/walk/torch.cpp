// The walk over torch tensors, and pairs of them with their gradients.
#include "core/python_names.h"
#include "values/walk/walk.h"

#include <cstring>

namespace spy {

namespace {

bool is_storage_float(ScalarType scalar)
{
    return scalar == ScalarType::bfloat16 || scalar == ScalarType::float8_e4m3 || scalar == ScalarType::float8_e5m2;
}

/// Whether the called function has `convert` set.
bool converts_elements(const Walk& w)
{
    if (!w.node)
        return false;
    nb::object mode = nb::getattr(nb::getattr(nb::handle(w.node), "options", nb::none()), "convert", nb::none());
    return mode.is_valid() && !mode.is_none() && std::strcmp(nb::str(mode).c_str(), "none") != 0;
}

/// Whether the called function stores values in the argument at hand.
bool stores_argument(const Walk& w)
{
    return nb::cast<bool>(nb::handle(w.node).attr(in_python::stores_argument.name)(nb::str(w.argument.c_str())));
}

/// Reads a tensor; messages name the argument.
void describe_torch(const Walk& w, PyObject* value, TorchTensor& tensor, const char* part = "")
{
    try {
        read_torch(value, tensor);
    } catch (const Error& error) {
        throw Error(error.kind(), cat(w.label(), part, w.named_place(), ": ", error.what()));
    }
}

TensorBase* torch_gradient(Walk& w, nb::object object, const TorchTensor& primal)
{
    if (object.is_none())
        return nullptr;
    TorchTensor tensor;
    if (torch_is_negated(object.ptr()))
        object = object.attr("resolve_neg")(); // what is read; torch makes no negated tensor to write to
    describe_torch(w, w.hold(object), tensor, "the gradient of ");
    if (!(tensor.shape == primal.shape))
        fail_value("diff_pair: the gradient of argument ", w.argument, " has shape ", tensor.shape.str(),
                   ", its primal ", primal.shape.str());
    if (tensor.device_type != primal.device_type || tensor.device_index != primal.device_index)
        fail_value("diff_pair: the gradient of argument ", w.argument, " is on another device than its primal");
    return &w.signature.add_grad(tensor, object);
}

/// What the planner sees of a tensor and its gradients.
nb::dict torch_details(const Leaf& leaf, const TensorBase* grad_in, const TensorBase* grad_out)
{
    const uint8_t flags = leaf.flags;
    nb::dict details;
    details["scalar"] = std::string(scalar_info(leaf.scalar).slang_name);
    details["shape"] = to_tuple(leaf.shape);
    details["writable"] = (flags & value_flag::writable) != 0;
    if (flags & value_flag::no_primal)
        details["no_primal"] = true;
    if (grad_in || grad_out) {
        details["grad_in"] = bool(flags & value_flag::grad_in);
        details["grad_out"] = bool(flags & value_flag::grad_out);
        details["shared_grad"] = bool(flags & value_flag::shared_grad);
        details["fresh"] = bool(flags & value_flag::fresh);
        if (grad_in)
            details["grad_in_type"] = std::string(scalar_info(ScalarType(grad_in->type_id)).slang_name);
        if (grad_out)
            details["grad_out_type"] = std::string(scalar_info(ScalarType(grad_out->type_id)).slang_name);
    }
    return details;
}

nb::object add_torch(Walk& w, PyObject* value, const TorchTensor& tensor, uint8_t flags, const TensorBase* grad_in,
                     const TensorBase* grad_out)
{
    w.put('T');
    w.put(char(tensor.scalar));
    w.put(char(tensor.shape.size()));
    // whether a gradient is asked for is no part of the kernel: it is decided anew on each call
    w.put(char(flags & ~value_flag::needs_grad));
    for (const TensorBase* grad : {grad_in, grad_out})
        if (grad)
            w.put(char(grad->type_id));
    Leaf& leaf = w.signature.add_leaf();
    set_torch(leaf, value, tensor, flags);
    if (!w.describes)
        return w.plain(value);
    return w.described(value, ValueKind::torch, torch_details(leaf, grad_in, grad_out), w.last_leaf());
}

} // namespace

/// Stands for a tensor in stripped arguments.
nb::object torch_slot()
{
    static PyObject* slot = nb::cast(TorchSlot()).release().ptr();
    return nb::borrow(slot);
}

nb::object walk_torch(Walk& w, PyObject* value)
{
    if (w.strips)
        return torch_slot();
    TorchTensor tensor;
    describe_torch(w, value, tensor);
    uint8_t flags = w.in_packed ? 0 : value_flag::writable;
    if (w.in_packed && !w.slots.empty()) // autograd counts it, but keeps the packed value
        w.slots = w.slots.subspan(1);
    if (!w.has_tangents)
        w.has_tangents = torch_has_tangents();
    if (*w.has_tangents)
        refuse_tangent(value);
    w.signature.has_torch = true;
    const bool is_stored = tensor.scalar == ScalarType::bfloat16; // by kernels, which round to it
    if (is_storage_float(tensor.scalar) && converts_elements(w) && !(is_stored && stores_argument(w))) {
        // widened before the call: kernels have no arithmetic on these, and torch sends their gradients back
        value = w.hold(nb::handle(value).attr("float")());
        describe_torch(w, value, tensor);
        flags = 0; // writing to it would be lost
    }
    if (scalar_info(tensor.scalar).is_float && torch_is_negated(value)) {
        value = w.hold(nb::handle(value).attr("resolve_neg")());
        describe_torch(w, value, tensor);
        flags = 0; // writing to it would be lost
    }
    if (scalar_info(tensor.scalar).is_float && torch_requires_grad(value)) { // torch lets no others require it
        if (w.signature.grad_mode < 0)
            w.signature.grad_mode = torch_grad_enabled();
        if (w.signature.grad_mode)
            flags |= value_flag::needs_grad;
    }
    w.signature.needs_autograd |= (flags & value_flag::needs_grad) != 0;
    return add_torch(w, value, tensor, flags, nullptr, nullptr);
}

nb::object walk_torch_slot(Walk& w, PyObject* slot)
{
    if (w.strips) // what it stands for is among the tensors
        return nb::borrow(slot);
    if (w.slots.empty())
        w.fail_bound("a torch slot cannot be an argument");
    PyObject* value = w.slots.front();
    w.slots = w.slots.subspan(1);
    return walk_value(w, value);
}

nb::object walk_torch_pair(Walk& w, PyObject* value)
{
    auto* pair = nb::cast<TorchPair*>(nb::handle(value));
    w.signature.has_torch = w.signature.has_torch_pairs = true;
    nb::object primal = pair->primal.is_none() ? pair->seed.is_none() ? pair->grad : pair->seed : pair->primal;
    if (primal.is_none())
        w.fail_bound("a diff_pair without primal and grad cannot be an argument");
    TorchTensor tensor;
    uint8_t flags = value_flag::writable;
    if (!pair->primal.is_none() && torch_is_negated(primal.ptr())) {
        primal = primal.attr("resolve_neg")();
        flags = 0; // writing to it would be lost
    }
    describe_torch(w, w.hold(primal), tensor);
    if (pair->primal.is_none())
        flags |= value_flag::no_primal;
    TensorBase* read = torch_gradient(w, pair->seed.is_none() ? pair->grad : pair->seed, tensor);
    TensorBase* added = torch_gradient(w, pair->grad, tensor);
    if (read)
        flags |= value_flag::grad_in;
    if (added)
        flags |= value_flag::grad_out;
    if (added && pair->fresh)
        flags |= value_flag::fresh;
    if (read && added && pair->seed.is_none())
        flags |= value_flag::shared_grad;
    const bool one = read && added && pair->seed.is(pair->grad); // what is read is what is added to
    w.put(one ? '=' : ' ');
    nb::object result = add_torch(w, primal.ptr(), tensor, flags, read, added);
    w.signature.leaves[w.signature.leaf_count - 1].grads = {read, added};
    if (one && w.describes)
        result[2]["one_gradient"] = true;
    return w.instead(value, std::move(result));
}

} // namespace spy
