// The walk over torch tensors, and pairs of them with their gradients.
#include "call/walk.h"

#include <cstring>

namespace spy {

namespace {

bool is_storage_float(ScalarType scalar)
{
    return scalar == ScalarType::bfloat16 || scalar == ScalarType::float8_e4m3 || scalar == ScalarType::float8_e5m2;
}

} // namespace

nb::object Walker::torch(PyObject* value)
{
    TorchTensor tensor;
    describe_torch(value, tensor);
    uint8_t flags = m_packed ? 0 : value_flag::writable;
    if (m_packed && !m_slots.empty()) // autograd counts it, but keeps the packed value
        m_slots = m_slots.subspan(1);
    refuse_tangent(value);
    m.has_torch = true;
    if (is_storage_float(tensor.scalar) && converts_elements()) {
        // widened before the call: kernels have no arithmetic on these, and torch sends their gradients back
        value = hold(nb::handle(value).attr("float")());
        describe_torch(value, tensor);
        flags = 0; // writing to it would be lost
    }
    if (scalar_info(tensor.scalar).is_float && torch_is_negated(value)) {
        value = hold(nb::handle(value).attr("resolve_neg")());
        describe_torch(value, tensor);
        flags = 0; // writing to it would be lost
    }
    if (torch_requires_grad(value)) {
        if (m.grad_mode < 0)
            m.grad_mode = torch_grad_enabled();
        if (m.grad_mode)
            flags |= value_flag::needs_grad;
    }
    m.needs_autograd |= (flags & value_flag::needs_grad) != 0;
    return torch_leaf(value, tensor, flags, nullptr, nullptr);
}

bool Walker::converts_elements() const
{
    if (!m_node)
        return false;
    nb::object mode = nb::getattr(nb::getattr(nb::handle(m_node), "options", nb::none()), "convert", nb::none());
    return mode.is_valid() && !mode.is_none() && std::strcmp(nb::str(mode).c_str(), "none") != 0;
}

void Walker::describe_torch(PyObject* value, TorchTensor& tensor) const
{
    try {
        read_torch(value, tensor);
    } catch (const Error& error) {
        throw Error(error.kind(), cat(label(), named_place(), ": ", error.what()));
    }
}

/// The place with the name of its parameter, where the argument was passed by position.
std::string Walker::named_place() const
{
    std::string where = place();
    if (!m_node || m_argument.empty() || m_argument.find_first_not_of("0123456789") != std::string::npos)
        return where;
    nb::object name = nb::steal(PyObject_CallMethod(m_node, "_parameter_at", "n", Py_ssize_t(std::stoull(m_argument))));
    if (!name.is_valid())
        PyErr_Clear(); // the function itself cannot be found: another error, of the call
    if (!name.is_valid() || name.is_none())
        return where;
    return "argument " + nb::cast<std::string>(name) + where.substr(std::strlen("argument ") + m_argument.size());
}

nb::object Walker::torch_slot()
{
    if (m_slots.empty())
        fail_bound("a torch slot cannot be an argument");
    PyObject* value = m_slots.front();
    m_slots = m_slots.subspan(1);
    return visit(value);
}

nb::object Walker::torch_pair(PyObject* value)
{
    auto* pair = nb::cast<TorchPair*>(nb::handle(value));
    m.has_torch = m.has_torch_pairs = true;
    nb::object primal = pair->primal.is_none() ? pair->seed.is_none() ? pair->grad : pair->seed : pair->primal;
    if (primal.is_none())
        fail_bound("a diff_pair without primal and grad cannot be an argument");
    TorchTensor tensor;
    uint8_t flags = value_flag::writable;
    if (!pair->primal.is_none() && torch_is_negated(primal.ptr())) {
        primal = primal.attr("resolve_neg")();
        flags = 0; // writing to it would be lost
    }
    describe_torch(hold(primal), tensor);
    if (pair->primal.is_none()) flags |= value_flag::no_primal;
    TensorBase* read = torch_gradient(pair->seed.is_none() ? pair->grad : pair->seed, tensor);
    TensorBase* added = torch_gradient(pair->grad, tensor);
    if (read) flags |= value_flag::grad_in;
    if (added) flags |= value_flag::grad_out;
    if (added && pair->fresh) flags |= value_flag::fresh;
    if (read && added && pair->seed.is_none()) flags |= value_flag::shared_grad;
    const bool one = read && added && pair->seed.is(pair->grad); // what is read is what is added to
    put(one ? '=' : ' ');
    nb::object result = torch_leaf(primal.ptr(), tensor, flags, read, added);
    m.leaves[m.leaf_count - 1].grads = {read, added};
    if (one && m_describing)
        result[2]["one_gradient"] = true;
    return result;
}

TensorBase* Walker::torch_gradient(nb::object object, const TorchTensor& primal)
{
    if (object.is_none())
        return nullptr;
    TorchTensor tensor;
    if (torch_is_negated(object.ptr()))
        object = object.attr("resolve_neg")(); // what is read; torch makes no negated tensor to write to
    describe_torch(hold(object), tensor);
    if (!(tensor.shape == primal.shape))
        fail_value("diff_pair: the gradient of argument ", m_argument, " has shape ", tensor.shape.str(),
                   ", its primal ", primal.shape.str());
    if (tensor.device_type != primal.device_type || tensor.device_index != primal.device_index)
        fail_value("diff_pair: the gradient of argument ", m_argument, " is on another device than its primal");
    return &m.add_grad(tensor, object);
}

nb::object Walker::torch_leaf(PyObject* value, const TorchTensor& tensor, uint8_t flags, const TensorBase* grad_in,
                      const TensorBase* grad_out)
{
    put('T');
    put(char(tensor.scalar));
    put(char(tensor.shape.size()));
    // whether a gradient is asked for is no part of the kernel: it is decided anew on each call
    put(char(flags & ~value_flag::needs_grad));
    for (const TensorBase* grad : {grad_in, grad_out})
        if (grad)
            put(char(grad->type_id));
    Leaf& leaf = m.add_leaf();
    set_torch(leaf, value, tensor, flags);
    if (!m_describing)
        return {};
    nb::dict details;
    details["scalar"] = std::string(scalar_info(tensor.scalar).slang_name);
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
    return description(value, ValueKind::torch, details, last_leaf());
}

} // namespace spy
