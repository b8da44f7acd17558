#include "values/signature.h"
#include "values/numpy.h"
#include "values/walk/walk.h"

namespace spy {

void Signature::clear()
{
    key.clear();
    for (Leaf& leaf : used())
        leaf.items.clear();
    leaf_count = 0;
    keep.clear();
    updates.clear();
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
    leaf.shape.clear();
    leaf.strides.clear();
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

enum class ArgumentPlace : uint8_t { self, positional, named };

/// The name of a keyword; throws where it is no Unicode text.
std::string_view keyword_name(Walk& walk, PyObject* key)
{
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(key, &size);
    if (!text) { // a lone surrogate
        PyErr_Clear();
        walk.argument = "with a name that is no Unicode text";
        walk.fail_bound("no parameter can have this name");
    }
    return {text, size_t(size)};
}

/// Calls `each` with the place of each argument, its name as Python has it (or null), and what the walk gives for it.
template <typename Each>
void walk_all(Walk& walk, const CallArguments& arguments, Each&& each)
{
    Signature& signature = walk.signature;
    walk.node = arguments.node;
    walk.slots = arguments.slots;
    if (arguments.self) {
        signature.key.push_back('.');
        walk.argument = "this";
        const PartScope part(walk);
        each(ArgumentPlace::self, nullptr, walk_argument(walk, arguments.self));
    }
    char position = '0';
    for (PyObject* value : arguments.positional) {
        signature.key.push_back(',');
        walk.argument.assign(1, position);
        position = position < '9' ? char(position + 1) : '9';
        const PartScope part(walk);
        each(ArgumentPlace::positional, nullptr, walk_argument(walk, value));
    }
    PyObject *key, *value;
    Py_ssize_t next = 0;
    while (arguments.keywords && PyDict_Next(arguments.keywords, &next, &key, &value)) {
        const std::string_view name = keyword_name(walk, key);
        if (name.starts_with('_') && take_reserved(signature.reserved, name, value))
            continue;
        signature.key.push_back('=');
        walk.argument.assign(name);
        signature.key.append(name);
        signature.key.push_back('\0');
        const PartScope part(walk);
        each(ArgumentPlace::named, key, walk_argument(walk, value));
    }
    if (PyObject* type = signature.reserved.result_type; type && arguments.keywords) {
        signature.key.push_back('>');
        if (PyUnicode_Check(type))
            signature.key.append(text_of(type));
        else
            signature.key.append(reinterpret_cast<const char*>(&type), sizeof(type)); // classes of one name differ
    }
}

/// Whether an array still lies where the walk found it.
bool is_unmoved(const Leaf& leaf)
{
    if (leaf.kind == ValueKind::array && is_numpy_array(leaf.object)) {
        NumpyArray now;
        if (!read_numpy(leaf.object, now))
            return false;
        bool same = reinterpret_cast<uint64_t>(now.data) == leaf.address && size_t(now.ndim) == leaf.shape.size();
        for (size_t i = 0; same && i < leaf.shape.size(); ++i)
            same = now.sizes[i] == leaf.shape[i] && now.strides[i] == leaf.strides[i];
        return same;
    }
    if (leaf.kind != ValueKind::torch)
        return true;
    TorchTensor now;
    read_torch_memory(leaf.object, now);
    return now.address == leaf.address && now.shape == leaf.shape && now.strides == leaf.strides;
}

/// Code of a value's class may have resized an array that was read before: its old memory may be another's by now.
void check_unmoved(const Walk& walk)
{
    for (const Leaf& leaf : walk.signature.used())
        if (!is_unmoved(leaf))
            fail_value(walk.label(),
                       "an array among the arguments was moved or resized by the get_this() of another, "
                       "after the call had read where it lies; pass copies");
}

} // namespace

void walk(Signature& signature, const CallArguments& arguments, std::vector<ArgumentPart>* parts)
{
    Walk walk(signature, WalkMode::key, nullptr);
    walk.parts = parts;
    walk_all(walk, arguments, [](ArgumentPlace, PyObject*, const nb::object&) { });
    if (walk.ran_code)
        check_unmoved(walk);
}

void walk_part(Signature& signature, PyObject* value, std::string_view name, PyObject* node)
{
    Walk walk(signature, WalkMode::key, nullptr);
    walk.node = node;
    walk.argument = name;
    walk_argument(walk, value);
}

nb::list describe(const CallArguments& arguments, const Signature* walked)
{
    Signature signature;
    Walk walk(signature, WalkMode::describe, walked);
    nb::list result;
    walk_all(walk, arguments, [&](ArgumentPlace, PyObject* name, const nb::object& value) {
        result.append(nb::make_tuple(name ? nb::borrow(name) : nb::none(), value));
    });
    if (walked && !walked->key.starts_with(signature.key))
        fail_value("the arguments changed while they were read (by get_this() or another thread); pass copies");
    return result;
}

StrippedArguments strip(const CallArguments& arguments, const Signature& walked)
{
    Signature signature;
    Walk walk(signature, WalkMode::strip, &walked);
    nb::list positional;
    StrippedArguments stripped;
    stripped.keywords = arguments.keywords ? nb::steal<nb::dict>(PyDict_Copy(arguments.keywords)) : nb::dict();
    walk_all(walk, arguments, [&](ArgumentPlace place, PyObject* name, const nb::object& value) {
        switch (place) {
        case ArgumentPlace::self: stripped.keywords["_this"] = value; break;
        case ArgumentPlace::positional: positional.append(value); break;
        case ArgumentPlace::named: stripped.keywords[nb::handle(name)] = value; break;
        }
    });
    stripped.positional = nb::tuple(positional);
    return stripped;
}

void append_sizes(Signature& signature, bool containers)
{
    for (Leaf& leaf : signature.used())
        if (leaf.kind == ValueKind::list ||
            (containers &&
             (leaf.kind == ValueKind::array || leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch)))
            for (int64_t size : leaf.shape)
                signature.key.append(reinterpret_cast<const char*>(&size), sizeof size);
}

} // namespace spy
