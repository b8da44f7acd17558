// Arrays for TensorView structs: their address, sizes and strides.
#include "values/nb.h"

#include "device/cursor.h"
#include "values/classes.h"
#include "values/numpy.h"
#include "values/torch.h"
#include "values/writer.h"

#include <nanobind/ndarray.h>

#include <cstring>

namespace spy {
namespace {

constexpr size_t tensor_view_rank = 5;
constexpr int32_t on_gpu = 2, on_gpu_managed = 13; // DLDeviceType

/// The struct of Slang's CUDA prelude: pointer, five byte strides, five sizes, rank.
struct TensorViewBytes {
    uint64_t data;
    uint32_t strides[tensor_view_rank], sizes[tensor_view_rank], rank;
};

/// T of TensorView<T>; no scalar where it is a struct.
struct ViewElement {
    ScalarType scalar = ScalarType::none;
    Shape sizes; ///< of a vector or matrix
};

ViewElement view_element(std::string_view full_name)
{
    const size_t open = full_name.find('<');
    if (open == std::string_view::npos)
        return {};
    std::string_view element = full_name.substr(open + 1);
    ViewElement found;
    if (element.starts_with("vector<") || element.starts_with("matrix<")) {
        element.remove_prefix(7);
        for (size_t at = element.find(','); at < element.find('>'); at = element.find(',', at + 1))
            if (const size_t digit = element.find_first_not_of(' ', at + 1); digit < element.find('>'))
                found.sizes.push_back(element[digit] - '0');
    }
    found.scalar = scalar_from_slang_name(element.substr(0, element.find_first_of(",>")));
    return found;
}

uint32_t narrow(int64_t value, const char* what, const ValuePath& path)
{
    if (value < 0 || value > int64_t(UINT32_MAX))
        fail_at(path, ErrorKind::value, cat("a TensorView holds 32-bit ", what, "s without sign, got ", value));
    return uint32_t(value);
}

void check_array_device(const Place& place, int32_t device_type, const ValuePath& path)
{
    if (!place.object || !place.object->device())
        return;
    const DeviceInfo& info = place.object->device()->info();
    const bool is_gpu = device_type == on_gpu || device_type == on_gpu_managed;
    if (!info.on_host && info.type != DeviceType::cuda)
        fail_at(path, ErrorKind::runtime, "TensorView parameters need a cuda or cpu device; use Tensor elsewhere");
    if ((info.type == DeviceType::cuda) != is_gpu && info.type != DeviceType::null)
        fail_at(path, ErrorKind::value,
                cat("the array lies in ", is_gpu ? "GPU" : "host",
                    " memory, which this device does not read in place; copy it first"));
}

/// torch's own export gives what no view can say: freed memory, lazily negated values.
void read_torch_at(PyObject* value, TorchTensor& out, const ValuePath& path)
{
    try {
        read_torch_memory(value, out);
    } catch (const Error& error) {
        fail_at(path, error.kind(), error.what());
    }
    if (scalar_info(out.scalar).is_float && torch_is_negated(value))
        fail_at(path, ErrorKind::value, "the tensor is negated lazily; pass tensor.resolve_neg()");
}

/// Kernels may write through any view: memory that Python promised to leave as it is must not get there.
void refuse_read_only(PyObject* value, const ValuePath& path)
{
    Py_buffer buffer{};
    if (!PyObject_CheckBuffer(value) || PyObject_GetBuffer(value, &buffer, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); // not the host's, or of a dtype that has no format text
        return;
    }
    const bool is_read_only = buffer.readonly && buffer.len > 0;
    PyBuffer_Release(&buffer);
    if (is_read_only)
        fail_at(path, ErrorKind::value,
                "the array is read-only, and kernels may write a TensorView: set flags.writeable or pass a copy");
}

bool read_array_at(PyObject* value, TorchTensor& out, const ValuePath& path)
{
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(nb::handle(value), array) || !array.is_valid())
        return false;
    refuse_read_only(value, path);
    out.device_type = array.device_type();
    out.scalar = array.dtype().lanes == 1 ? scalar_from_dlpack(array.dtype().code, array.dtype().bits)
                                          : ScalarType::none;
    out.address = uint64_t(array.data());
    for (size_t axis = 0; axis < array.ndim(); ++axis) {
        out.shape.push_back(int64_t(array.shape(axis)));
        out.strides.push_back(array.stride(axis));
    }
    return true;
}

/// The components of a vector or matrix lie in the last dimensions, side by side.
void check_components(const ViewElement& element, const TorchTensor& array, const TypeLayout& layout,
                      const ValuePath& path)
{
    const size_t rank = array.shape.size(), inner = element.sizes.size();
    if (array.shape.element_count() == 0)
        return;
    bool fits = rank >= inner;
    int64_t step = 1;
    for (size_t i = 1; fits && i <= inner; ++i) {
        const int64_t size = element.sizes[inner - i];
        fits = array.shape[rank - i] == size && (size == 1 || array.strides[rank - i] == step);
        step *= size;
    }
    if (!fits)
        fail_at(path, ErrorKind::value,
                cat("the last dimensions of an array for ", type_text(layout), " are ", element.sizes.str(),
                    " side by side, got an array of shape ", array.shape.str()));
}

} // namespace

bool write_tensor_view(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path)
{
    TorchTensor array;
    if (class_of(value).value_class == ValueClass::torch)
        read_torch_at(value, array, path);
    else if (!read_array_at(value, array, path))
        return false;
    check_array_device(place, array.device_type, path);
    const size_t rank = array.shape.size();
    if (rank > tensor_view_rank)
        fail_at(path, ErrorKind::value, cat("a TensorView has at most 5 dimensions, got ", rank));
    if (layout.size < sizeof(uint64_t) + 11 * sizeof(uint32_t))
        fail_at(path, ErrorKind::runtime, cat("unexpected layout of ", type_text(layout)));
    const ViewElement element = view_element(layout.full_name);
    if (array.scalar == ScalarType::none || (element.scalar != ScalarType::none && array.scalar != element.scalar))
        fail_at(path, ErrorKind::type,
                cat("expected an array of ", scalar_info(element.scalar).numpy_name, " for ", type_text(layout),
                    ", got ",
                    array.scalar == ScalarType::none ? "another dtype" : scalar_info(array.scalar).numpy_name));
    check_components(element, array, layout, path);
    const auto item = int64_t(scalar_info(array.scalar).size);
    TensorViewBytes view{};
    view.data = array.address;
    view.rank = uint32_t(rank);
    for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t stride = array.strides[axis] * item;
        const bool leads = array.shape[axis] > 1; // others may have any stride
        view.strides[axis] = leads || (stride >= 0 && stride <= int64_t(UINT32_MAX)) ? narrow(stride, "stride", path)
                                                                                     : 0;
        view.sizes[axis] = narrow(array.shape[axis], "size", path);
    }
    std::memcpy(place.bytes, &view, sizeof(uint64_t) + 11 * sizeof(uint32_t));
    if (class_of(value).value_class == ValueClass::torch)
        keep_at(place, ref<Object>(new TorchGuard(value, {array.address, array.needed}, path.str())));
    else if (is_numpy_array(value))
        keep_at(place, ref<Object>(new ArrayGuard(value, path.str())));
    else
        keep_at(place, ref<Object>(new PythonOwner(value)));
    return true;
}

} // namespace spy
