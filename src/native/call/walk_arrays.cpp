// The walk over containers in memory: NumPy arrays and what reads as one, tensors, buffers, textures.
#include "call/walk.h"
#include "device/resource.h"

#include <nanobind/ndarray.h>

namespace spy {

/// The types of ml_dtypes, which NumPy itself does not have.
static ScalarType extension_scalar(PyObject* value, const NumpyArray& array)
{
    if (array.kind != 'V' && array.kind != 'f')
        return ScalarType::none;
    const std::string name = nb::cast<std::string>(nb::handle(value).attr("dtype").attr("name"));
    return name == "bfloat16"        ? ScalarType::bfloat16
           : name == "float8_e4m3fn" ? ScalarType::float8_e4m3
           : name == "float8_e5m2"   ? ScalarType::float8_e5m2
                                     : ScalarType::none;
}

nb::object Walker::numpy(PyObject* value)
{
    NumpyArray array;
    read_numpy(value, array);
    nb::handle handle(value);
    if (array.scalar == ScalarType::none)
        array.scalar = extension_scalar(value, array);
    if (array.scalar == ScalarType::none)
        return unsupported(value, handle.attr("dtype").attr("names").is_none() ? "dtype" : "structured");
    if (array.swapped) { // native code sees a copy; what is written to it goes back after the call
        const bool writable = array.writable;
        PyObject* copy = hold(handle.attr("astype")(handle.attr("dtype").attr("newbyteorder")("=")));
        read_numpy(copy, array);
        array.writable = writable;
        if (writable)
            m.native_copies.push_back({nb::borrow(value), nb::borrow(copy), m.leaf_count});
        value = copy;
    }
    auto sizes = reinterpret_cast<const int64_t*>(array.sizes), strides = reinterpret_cast<const int64_t*>(array.strides);
    const size_t rank = size_t(array.ndim);
    const auto address = reinterpret_cast<uint64_t>(array.data);
    return array_leaf(value, address, array.scalar, array.writable, {sizes, rank}, {strides, rank});
}

nb::object Walker::array_leaf(PyObject* value, uint64_t address, ScalarType scalar, bool writable,
                              std::span<const int64_t> sizes, std::span<const int64_t> strides)
{
    put('n');
    put(char(scalar));
    put(char(sizes.size()));
    put(writable ? 'w' : 'r');
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::array;
    leaf.scalar = scalar;
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.object = value;
    leaf.address = address;
    leaf.shape = Shape(sizes);
    leaf.strides = Shape(strides);
    if (!m_describing)
        return {};
    nb::dict details;
    details["scalar"] = std::string(scalar_info(scalar).slang_name);
    details["shape"] = to_tuple(leaf.shape);
    details["writable"] = writable;
    return description(value, ValueKind::array, details, last_leaf());
}

nb::object Walker::foreign(PyObject* value)
{
    nb::object numpy_module = nb::module_::import_("numpy");
    nb::object array;
    nb::handle handle(value);
    const size_t leaves = m.leaf_count;
    try {
        if (nb::hasattr(handle, "__array_interface__") || PyObject_CheckBuffer(value))
            array = numpy_module.attr("asarray")(handle);
        else if (nb::hasattr(handle, "__dlpack__"))
            array = numpy_module.attr("from_dlpack")(handle);
        else
            return unsupported(value, "foreign");
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) && !error.matches(PyExc_BufferError)
            && !error.matches(PyExc_RuntimeError))
            throw;
        nb::object found = dlpack(value);
        if (m.leaf_count > leaves)
            return found;
        fail_bound("this ", Py_TYPE(value)->tp_name, " cannot be read as an array: ", nb::str(error.value()).c_str());
    }
    return numpy(hold(std::move(array)));
}

nb::object Walker::dlpack(PyObject* value)
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
    hold(nb::capsule(new nb::ndarray<>(array), [](void* p) noexcept { delete static_cast<nb::ndarray<>*>(p); }));
    return array_leaf(value, address, scalar, true, {shape.begin(), shape.size()}, {strides.begin(), strides.size()});
}

nb::object Walker::tensor(PyObject* value)
{
    auto* tensor = nb::cast<TensorBase*>(nb::handle(value));
    uint8_t flags = tensor->writable && !m_packed ? value_flag::writable : 0;
    if (!tensor->grad_in.is_none()) flags |= value_flag::grad_in;
    if (!tensor->grad_out.is_none()) flags |= value_flag::grad_out;
    if (flags & value_flag::grad_in && tensor->grad_in.is(tensor->grad_out)) flags |= value_flag::shared_grad;
    put('t');
    put32(tensor->type_id);
    put(char(tensor->shape.size()));
    put(char(flags));
    if (flags & value_flag::grad_in) put32(nb::inst_ptr<TensorBase>(tensor->grad_in)->type_id);
    if (flags & value_flag::grad_out) put32(nb::inst_ptr<TensorBase>(tensor->grad_out)->type_id);
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::tensor;
    leaf.scalar = tensor->layout->scalar;
    leaf.flags = flags;
    leaf.object = value;
    leaf.tensor = tensor;
    leaf.address = tensor->address();
    leaf.shape = tensor->shape;
    leaf.strides = tensor->strides;
    if (!m_describing)
        return {};
    nb::dict details;
    details["dtype"] = tensor->dtype;
    details["type_name"] = tensor->layout->full_name;
    if (holds_struct(*tensor->layout)) {
        const std::string bytes = serialize(*tensor->layout);
        details["layout"] = nb::bytes(bytes.data(), bytes.size());
    }
    details["shape"] = to_tuple(tensor->shape);
    details["writable"] = tensor->writable && !m_packed;
    details["grad_in"] = bool(flags & value_flag::grad_in);
    details["grad_out"] = bool(flags & value_flag::grad_out);
    details["shared_grad"] = bool(flags & value_flag::shared_grad);
    if (flags & value_flag::grad_in)
        details["grad_in_type"] = nb::cast<TensorBase*>(tensor->grad_in)->layout->full_name;
    if (flags & value_flag::grad_out)
        details["grad_out_type"] = nb::cast<TensorBase*>(tensor->grad_out)->layout->full_name;
    return description(value, ValueKind::tensor, details, last_leaf());
}

nb::object Walker::buffer(PyObject* value)
{
    auto* buffer = nb::cast<Buffer*>(nb::handle(value));
    const BufferUsage usage = buffer->desc().usage;
    bool writable = has_flag(usage, BufferUsage::unordered_access);
    bool readable = writable || has_flag(usage, BufferUsage::shader_resource);
    writable &= !m_packed;
    put('B');
    put(writable ? 'w' : readable ? 'r' : '-');
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::buffer;
    leaf.object = value;
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.address = buffer->device_address();
    if (!m_describing)
        return {};
    nb::dict details;
    details["readable"] = readable;
    details["writable"] = writable;
    return description(value, ValueKind::buffer, details, last_leaf());
}

nb::object Walker::texture(PyObject* value, const TextureValue& texture, ValueKind kind)
{
    const TextureDesc& desc = *texture.desc;
    const bool readable = has_flag(desc.usage, TextureUsage::shader_resource);
    const bool writable = has_flag(desc.usage, TextureUsage::unordered_access) && !m_packed;
    put('X');
    put(char(kind));
    put(char(desc.type));
    put32(uint32_t(texture.format));
    put(char(readable | writable << 1 | texture.single_layer << 2 | texture.stencil << 3));
    Leaf& leaf = m.add_leaf();
    leaf.kind = kind;
    leaf.object = value;
    leaf.flags = writable ? value_flag::writable : 0;
    leaf.shape = texture_shape(texture);
    if (!m_describing)
        return {};
    nb::dict details;
    details["texture_type"] = name_of(desc.type);
    details["format"] = std::string(format_name(texture.format));
    details["shape"] = to_tuple(leaf.shape);
    details["readable"] = readable;
    details["writable"] = writable;
    details["single_layer"] = texture.single_layer;
    details["stencil"] = texture.stencil;
    return description(value, kind, details, last_leaf());
}

} // namespace spy
