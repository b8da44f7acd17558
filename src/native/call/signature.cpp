#include "call/signature.h"
#include "call/walk.h"

namespace spy {

void Signature::clear()
{
    key.clear();
    for (Leaf& leaf : used())
        leaf.items.clear();
    leaf_count = 0;
    keep.clear();
    updates.clear();
    asked.clear();
    native_copies.clear();
    answers.clear();
    reserved = {};
    has_torch = has_torch_pairs = needs_autograd = false;
    for (size_t i = 0; i < grad_count; ++i)
        grads[i]->dtype = nb::object();
    grad_count = 0;
    grad_mode = -1;
}

Leaf& Signature::add_leaf()
{
    if (leaf_count == leaves.size())
        leaves.emplace_back();
    Leaf& leaf = leaves[leaf_count++];
    leaf.kind = ValueKind::none;
    leaf.scalar = ScalarType::none;
    leaf.flags = leaf.rows = leaf.cols = 0;
    leaf.object = nullptr;
    leaf.address = 0;
    leaf.shape = leaf.strides = Shape();
    leaf.tensor = nullptr;
    leaf.items.clear(); // of a leaf that was taken back
    leaf.grads = {};
    leaf.device_type = leaf.device_index = 0;
    leaf.is_apart = false;
    leaf.packed = nullptr;
    return leaf;
}

TensorBase& Signature::add_grad(const TorchTensor& tensor, nb::object object)
{
    if (grad_count == grads.size())
        grads.push_back(std::make_unique<TensorBase>());
    TensorBase& grad = *grads[grad_count++];
    grad.raw_address = tensor.address;
    grad.raw_item = scalar_info(tensor.scalar).size;
    grad.shape = tensor.shape;
    grad.strides = tensor.strides;
    grad.type_id = uint32_t(tensor.scalar);
    grad.dtype = std::move(object); // the tensor itself
    return grad;
}

namespace {

bool take_reserved(ReservedArguments& reserved, std::string_view name, PyObject* value)
{
    if (name == "_append_to") {
        reserved.append_to = value == Py_None ? nullptr : value;
        return true;
    }
    if (name == "_thread_count") {
        reserved.thread_count = value == Py_None ? nullptr : value;
        return true;
    }
    if (name == "_result" && (value == Py_None || PyUnicode_Check(value) || PyType_Check(value))) {
        reserved.result_type = value == Py_None ? nullptr : value;
        return true;
    }
    return false;
}

template <typename Named>
void visit_all(Signature& signature, Walker& walker, const CallArguments& arguments, Named&& each)
{
    walker.m_node = arguments.node;
    walker.m_slots = arguments.slots;
    if (arguments.self) {
        signature.key.push_back('.');
        walker.m_argument = "this";
        each(nullptr, walker.argument(arguments.self));
    }
    char position = '0';
    for (PyObject* value : arguments.positional) {
        signature.key.push_back(',');
        walker.m_argument.assign(1, position);
        position = position < '9' ? char(position + 1) : '9';
        each(nullptr, walker.argument(value));
    }
    if (!arguments.keywords)
        return;
    PyObject *key, *value;
    Py_ssize_t next = 0;
    while (PyDict_Next(arguments.keywords, &next, &key, &value)) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(key, &size);
        if (!text) { // a lone surrogate
            PyErr_Clear();
            walker.m_argument = "with a name that is no Unicode text";
            walker.fail_bound("no parameter can have this name");
        }
        std::string_view name(text, size_t(size));
        if (name.starts_with('_') && take_reserved(signature.reserved, name, value))
            continue;
        signature.key.push_back('=');
        walker.m_argument.assign(name);
        signature.key.append(name);
        signature.key.push_back('\0');
        each(text, walker.argument(value));
    }
    if (PyObject* type = signature.reserved.result_type) {
        signature.key.push_back('>');
        if (PyUnicode_Check(type))
            signature.key.append(text_of(type));
        else
            signature.key.append(reinterpret_cast<const char*>(&type), sizeof(type)); // classes of one name differ
    }
}

} // namespace

void walk(Signature& signature, const CallArguments& arguments)
{
    Walker walker(signature, false);
    visit_all(signature, walker, arguments, [](const char*, nb::object) {});
}

nb::list describe(const CallArguments& arguments, const Signature* walked)
{
    Signature signature;
    Walker walker(signature, true, walked);
    nb::list result;
    visit_all(signature, walker, arguments, [&](const char* name, nb::object value) {
        result.append(nb::make_tuple(name ? nb::object(nb::str(name)) : nb::none(), value));
    });
    if (walked && !walked->key.starts_with(signature.key))
        fail_value("the arguments changed while they were read (by get_this() or another thread); pass copies");
    return result;
}

void append_sizes(Signature& signature, bool containers)
{
    for (Leaf& leaf : signature.used())
        if (leaf.kind == ValueKind::list
            || (containers && (leaf.kind == ValueKind::array || leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch)))
            for (int64_t size : leaf.shape)
                signature.key.append(reinterpret_cast<const char*>(&size), sizeof size);
}

} // namespace spy
