// The walk over containers in memory: NumPy arrays and what reads as one, tensors, buffers, textures.
#include "core/class_name.h"
#include "values/numpy.h"
#include "values/walk/walk.h"
#include "device/resource.h"

#include <nanobind/ndarray.h>

#include <cstring>

namespace spy {

/// The types of ml_dtypes, which NumPy itself does not have.
static ScalarType extension_scalar(PyObject* value, const NumpyArray& array)
{
    if (array.kind != 'V' && array.kind != 'f')
        return ScalarType::none;
    const std::string name = nb::cast<std::string>(nb::handle(value).attr("dtype").attr("name"));
    return name == "bfloat16"     ? ScalarType::bfloat16
        : name == "float8_e4m3fn" ? ScalarType::float8_e4m3
        : name == "float8_e5m2"   ? ScalarType::float8_e5m2
                                  : ScalarType::none;
}

/// A container in host memory; strides count bytes.
static nb::object add_array(Walk& w, PyObject* value, uint64_t address, ScalarType scalar, bool writable,
                            std::span<const int64_t> sizes, std::span<const int64_t> strides)
{
    w.put('n');
    w.put(char(scalar));
    w.put(char(sizes.size()));
    w.put(writable ? 'w' : 'r');
    Leaf& leaf = w.add_leaf(ValueKind::array, value);
    leaf.scalar = scalar;
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.address = address;
    leaf.shape = Shape(sizes);
    leaf.strides = Shape(strides);
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["scalar"] = std::string(scalar_info(scalar).slang_name);
    details["shape"] = to_tuple(leaf.shape);
    details["writable"] = writable;
    return w.described(value, ValueKind::array, details, w.last_leaf());
}

nb::object walk_numpy(Walk& w, PyObject* value)
{
    NumpyArray array;
    read_numpy(value, array);
    nb::handle handle(value);
    if (array.scalar == ScalarType::none)
        array.scalar = extension_scalar(value, array);
    if (array.scalar == ScalarType::none)
        return walk_unsupported(w, value, handle.attr("dtype").attr("names").is_none() ? "dtype" : "structured");
    PyObject* given = value;
    if (array.swapped) { // native code sees a copy; what is written to it goes back after the call
        const bool writable = array.writable;
        PyObject* copy = w.hold(handle.attr("astype")(handle.attr("dtype").attr("newbyteorder")("=")));
        read_numpy(copy, array);
        array.writable = writable;
        if (writable)
            w.signature.native_copies.push_back({nb::borrow(value), nb::borrow(copy), w.signature.leaf_count});
        value = copy;
    }
    auto sizes = reinterpret_cast<const int64_t*>(array.sizes),
         strides = reinterpret_cast<const int64_t*>(array.strides);
    const size_t rank = size_t(array.ndim);
    const auto address = reinterpret_cast<uint64_t>(array.data);
    return w.instead(given, add_array(w, value, address, array.scalar, array.writable, {sizes, rank}, {strides, rank}));
}

nb::object walk_masked(Walk& w, PyObject* value)
{
    try {
        refuse_masked(value);
    } catch (const Error& error) {
        w.fail_bound(error.what());
    }
    return walk_numpy(w, value);
}

/// An array of a type that NumPy does not have (bfloat16); adds no leaf when it is not in host memory.
static nb::object walk_dlpack(Walk& w, PyObject* value)
{
    nb::ndarray<> array;
    try {
        array = nb::cast<nb::ndarray<>>(nb::handle(value));
    } catch (const std::exception&) { // the error that NumPy gave says why
        PyErr_Clear();
        return {};
    }
    const nb::dlpack::dtype dtype = array.dtype();
    const ScalarType scalar = dtype.lanes == 1 ? scalar_from_dlpack(dtype.code, dtype.bits) : ScalarType::none;
    if (array.device_type() != nb::device::cpu::value || scalar == ScalarType::none)
        return {};
    Shape shape, strides;
    for (size_t i = 0; i < array.ndim(); ++i) {
        shape.push_back(int64_t(array.shape(i)));
        strides.push_back(array.stride(i) * dtype.bits / 8);
    }
    const auto address = reinterpret_cast<uint64_t>(array.data());
    w.hold(nb::capsule(new nb::ndarray<>(array), [](void* p) noexcept { delete static_cast<nb::ndarray<>*>(p); }));
    return add_array(w, value, address, scalar, true, {shape.begin(), shape.size()}, {strides.begin(), strides.size()});
}

nb::object walk_foreign(Walk& w, PyObject* value)
{
    nb::object numpy_module = nb::module_::import_("numpy");
    nb::object array;
    nb::handle handle(value);
    const size_t leaves = w.signature.leaf_count;
    w.ran_code = true;
    try {
        if (nb::hasattr(handle, "__array_interface__") || PyObject_CheckBuffer(value))
            array = numpy_module.attr("asarray")(handle);
        else if (nb::hasattr(handle, "__dlpack__"))
            array = numpy_module.attr("from_dlpack")(handle);
        else if (nb::hasattr(handle, "__array__")) { // may be a copy: what is written to it would be lost
            array = numpy_module.attr("asarray")(handle).attr("view")();
            array.attr("flags").attr("writeable") = false;
        } else
            return walk_unsupported(w, value, "foreign");
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) && !error.matches(PyExc_BufferError) &&
            !error.matches(PyExc_RuntimeError))
            throw;
        nb::object found = walk_dlpack(w, value);
        if (w.signature.leaf_count > leaves)
            return found;
        w.fail_bound("this ", class_name(value), " cannot be read as an array: ", nb::str(error.value()).c_str());
    }
    return w.instead(value, walk_numpy(w, w.hold(std::move(array))));
}

/// What the planner sees of a tensor.
static nb::dict tensor_details(const Walk& w, const TensorBase& tensor, uint8_t flags)
{
    nb::dict details;
    details["dtype"] = tensor.dtype;
    details["type_name"] = tensor.layout->full_name;
    if (holds_struct(*tensor.layout)) {
        const std::string bytes = serialize(*tensor.layout);
        details["layout"] = nb::bytes(bytes.data(), bytes.size());
    }
    details["shape"] = to_tuple(tensor.shape);
    details["writable"] = tensor.writable && !w.in_packed;
    details["grad_in"] = bool(flags & value_flag::grad_in);
    details["grad_out"] = bool(flags & value_flag::grad_out);
    details["shared_grad"] = bool(flags & value_flag::shared_grad);
    if (flags & value_flag::grad_in)
        details["grad_in_type"] = nb::cast<TensorBase*>(tensor.grad_in)->layout->full_name;
    if (flags & value_flag::grad_out)
        details["grad_out_type"] = nb::cast<TensorBase*>(tensor.grad_out)->layout->full_name;
    return details;
}

/// Whether both gradients of a tensor are the same memory.
static bool is_one_gradient(const TensorBase& tensor)
{
    if (tensor.grad_in.is(tensor.grad_out))
        return true;
    const auto& in = *nb::inst_ptr<TensorBase>(tensor.grad_in);
    const auto& out = *nb::inst_ptr<TensorBase>(tensor.grad_out);
    return in.storage.get() == out.storage.get() && in.offset == out.offset && in.raw_address == out.raw_address;
}

nb::object walk_tensor(Walk& w, PyObject* value)
{
    auto* tensor = nb::inst_ready(value) ? nb::inst_ptr<TensorBase>(value) : nb::cast<TensorBase*>(nb::handle(value));
    uint8_t flags = tensor->writable && !w.in_packed ? value_flag::writable : 0;
    if (!tensor->grad_in.is_none())
        flags |= value_flag::grad_in;
    if (!tensor->grad_out.is_none())
        flags |= value_flag::grad_out;
    if (flags & value_flag::grad_in && flags & value_flag::grad_out && is_one_gradient(*tensor))
        flags |= value_flag::shared_grad;
    char code[7] = {'t'};
    std::memcpy(code + 1, &tensor->type_id, 4);
    code[5] = char(tensor->shape.size());
    code[6] = char(flags);
    w.signature.key.append(code, sizeof code);
    if (flags & value_flag::grad_in)
        w.put32(nb::inst_ptr<TensorBase>(tensor->grad_in)->type_id);
    if (flags & value_flag::grad_out)
        w.put32(nb::inst_ptr<TensorBase>(tensor->grad_out)->type_id);
    Leaf& leaf = w.add_leaf(ValueKind::tensor, value);
    leaf.scalar = tensor->layout->scalar;
    leaf.flags = flags;
    leaf.tensor = tensor;
    leaf.address = tensor->address();
    leaf.shape = tensor->shape;
    leaf.strides = tensor->strides;
    if (!w.describes)
        return w.plain(value);
    return w.described(value, ValueKind::tensor, tensor_details(w, *tensor, flags), w.last_leaf());
}

nb::object walk_buffer(Walk& w, PyObject* value)
{
    auto* buffer = nb::cast<Buffer*>(nb::handle(value));
    const BufferUsage usage = buffer->desc().usage;
    bool writable = has_flag(usage, BufferUsage::unordered_access);
    bool readable = writable || has_flag(usage, BufferUsage::shader_resource);
    writable &= !w.in_packed;
    w.put('B');
    w.put(writable ? 'w' : readable ? 'r' : '-');
    w.put(char('0' + int(buffer->content())));
    Leaf& leaf = w.add_leaf(ValueKind::buffer, value);
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.address = buffer->device_address();
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["readable"] = readable;
    details["writable"] = writable;
    details["content"] = int(buffer->content());
    return w.described(value, ValueKind::buffer, details, w.last_leaf());
}

nb::object walk_texture(Walk& w, PyObject* value, const TextureValue& texture, ValueKind kind)
{
    const TextureDesc& desc = *texture.desc;
    const bool readable = has_flag(desc.usage, TextureUsage::shader_resource);
    const bool writable = has_flag(desc.usage, TextureUsage::unordered_access) && !w.in_packed;
    w.put('X');
    w.put(char(kind));
    w.put(char(desc.type));
    w.put32(uint32_t(texture.format));
    w.put(char(readable | writable << 1 | texture.single_layer << 2 | texture.stencil << 3));
    Leaf& leaf = w.add_leaf(kind, value);
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.shape = texture_shape(texture);
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["texture_type"] = name_of(desc.type);
    details["format"] = std::string(format_name(texture.format));
    details["shape"] = to_tuple(leaf.shape);
    details["readable"] = readable;
    details["writable"] = writable;
    details["single_layer"] = texture.single_layer;
    details["stencil"] = texture.stencil;
    return w.described(value, kind, details, w.last_leaf());
}

} // namespace spy
