#include "call/raw/pack.h"

#include "device/value_io.h"
#include "values/classes.h"

#include <cstring>

namespace spy {

namespace {

constexpr size_t max_rank = 5;
constexpr uint64_t limit = uint64_t(1) << 32; // of the sizes and strides that a view holds

/// Slang's TensorView.
struct View {
    uint64_t address = 0;
    uint32_t strides[max_rank] = {}; ///< bytes
    uint32_t sizes[max_rank] = {};
    uint32_t rank = 0;
    uint32_t padding = 0;
};
static_assert(sizeof(View) == 56);

struct Writer {
    const Packing& packing;
    Packed& out;
    size_t parameter = 0;

    bool write(const PackType& type, PyObject* value, uint32_t at);
    bool write_number(const PackType& type, PyObject* value, uint32_t at);
    bool write_array(const PackType& type, PyObject* value, uint32_t at);
    bool write_fields(const PackType& type, PyObject* value, uint32_t at);
    bool write_view(const PackType& type, PyObject* value, uint32_t at, TorchTensor& tensor);
    bool write_pair(const PackType& type, PyObject* value, uint32_t at);
    void put(uint32_t at, const View& view) { std::memcpy(out.bytes.data() + at, &view, sizeof(view)); }
};

bool Writer::write_number(const PackType& type, PyObject* value, uint32_t at)
{
    Number number;
    const ScalarInfo& info = scalar_info(type.scalar);
    if (PyFloat_Check(value)) {
        if (!info.is_float)
            return false;
        number = Number::from_real(PyFloat_AS_DOUBLE(value));
    } else if (PyLong_Check(value)) {
        int overflow = 0;
        const long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || (type.scalar == ScalarType::bool_ && (integer & ~1LL)))
            return false;
        number = Number::from_int(integer);
    } else {
        return false;
    }
    uint8_t* stored = out.bytes.data() + at;
    return store_number(type.scalar, 1, stored, number) == StoreResult::ok &&
        !became_infinite(type.scalar, stored, number); // of which Python warns
}

bool Writer::write_array(const PackType& type, PyObject* value, uint32_t at)
{
    const bool is_list = PyList_CheckExact(value);
    if (!is_list && !PyTuple_Check(value))
        return false;
    if (size_t(PySequence_Fast_GET_SIZE(value)) != type.count)
        return false;
    const PackType& element = type.parts[0];
    for (uint32_t i = 0; i < type.count; ++i)
        if (!write(element, PySequence_Fast_GET_ITEM(value, Py_ssize_t(i)), at + i * element.size))
            return false;
    return true;
}

bool Writer::write_fields(const PackType& type, PyObject* value, uint32_t at)
{
    const size_t count = type.parts.size();
    if (PyTuple_Check(value)) {
        if (size_t(PyTuple_GET_SIZE(value)) != count)
            return false;
        for (size_t i = 0; i < count; ++i)
            if (!write(type.parts[i], PyTuple_GET_ITEM(value, Py_ssize_t(i)), at + type.parts[i].offset))
                return false;
        return true;
    }
    if (!PyDict_CheckExact(value) || size_t(PyDict_GET_SIZE(value)) != count)
        return false;
    for (size_t i = 0; i < count; ++i) {
        PyObject* item = PyDict_GetItemWithError(value, type.names[i].ptr());
        if (!item || !write(type.parts[i], item, at + type.parts[i].offset))
            return false;
    }
    return true;
}

/// int32 tensors serve unsigned views as well: torch computes little with the unsigned types.
bool is_element(ScalarType wanted, ScalarType given)
{
    return wanted == given || (wanted == ScalarType::uint32 && given == ScalarType::int32) ||
        (wanted == ScalarType::uint64 && given == ScalarType::int64);
}

/// Whether the last dimensions are the element's, side by side.
bool has_inner(const PackType& type, const TorchTensor& tensor)
{
    const size_t rank = tensor.shape.size(), inner = type.inner.size();
    if (rank < inner)
        return false;
    int64_t step = 1;
    for (size_t i = 1; i <= inner; ++i) {
        const int64_t size = type.inner[inner - i];
        if (tensor.shape[rank - i] != size || (size > 1 && tensor.strides[rank - i] != step))
            return false;
        step *= size;
    }
    return true;
}

/// False for what a view cannot say.
bool fill_view(const PackType& type, const TorchTensor& tensor, View& view)
{
    const size_t rank = tensor.shape.size();
    if (rank > max_rank || !is_element(type.scalar, tensor.scalar) || !has_inner(type, tensor))
        return false;
    const bool is_empty = tensor.shape.element_count() == 0;
    const int64_t item = scalar_info(type.scalar).size;
    for (size_t i = 0; i < rank; ++i) {
        const int64_t size = tensor.shape[i], stride = tensor.strides[i] * item;
        if (uint64_t(size) >= limit)
            return false;
        const bool leads = size > 1 && !is_empty;
        if (leads && (stride <= 0 || uint64_t(stride) >= limit))
            return false;
        if (leads && i + type.inner.size() < rank && stride % type.align)
            return false;
        view.sizes[i] = uint32_t(size);
        view.strides[i] = stride >= 0 && uint64_t(stride) < limit ? uint32_t(stride) : 0;
    }
    view.rank = uint32_t(rank);
    view.address = is_empty ? 0 : tensor.address;
    return view.address % type.align == 0;
}

bool Writer::write_view(const PackType& type, PyObject* value, uint32_t at, TorchTensor& tensor)
{
    if (class_of(value).value_class != ValueClass::torch)
        return false;
    read_torch(value, tensor);
    View view;
    if (!fill_view(type, tensor, view) || (scalar_info(tensor.scalar).is_float && torch_is_negated(value)))
        return false;
    const TensorPlace place{tensor.device_type, tensor.device_index};
    if (!out.place.type) {
        if (place.type != 1 && place.type != 2)
            return false;
        out.place = place;
    } else if (!(out.place == place)) {
        return false;
    }
    put(at, view);
    out.keep.push_back(nb::borrow(value));
    out.views.push_back({{tensor.address, tensor.needed}, parameter});
    out.has_torch = true;
    return true;
}

bool Writer::write_pair(const PackType& type, PyObject* value, uint32_t at)
{
    PyObject* primal = value;
    PyObject* gradient = nullptr;
    if (PyTuple_Check(value)) {
        const Py_ssize_t count = PyTuple_GET_SIZE(value);
        if (count != 1 && count != 2)
            return false;
        primal = PyTuple_GET_ITEM(value, 0);
        if (count == 2 && PyTuple_GET_ITEM(value, 1) != Py_None)
            gradient = PyTuple_GET_ITEM(value, 1);
    }
    if (!gradient && packing.is_derivative)
        return false; // a sink, or an error
    TorchTensor tensor, other;
    if (!write_view(type.parts[0], primal, at + type.parts[0].offset, tensor))
        return false;
    const PackType& second = type.parts[1];
    if (gradient)
        return write_view(second, gradient, at + second.offset, other) && other.shape == tensor.shape;
    View spare;
    spare.address = packing.spare(packing.self, out.place);
    put(at + second.offset, spare);
    return spare.address != 0;
}

bool Writer::write(const PackType& type, PyObject* value, uint32_t at)
{
    TorchTensor tensor;
    switch (type.kind) {
    case PackKind::nothing: return true;
    case PackKind::number: return write_number(type, value, at);
    case PackKind::array: return write_array(type, value, at);
    case PackKind::structure: return write_fields(type, value, at);
    case PackKind::view: return write_view(type, value, at, tensor);
    case PackKind::pair: return write_pair(type, value, at);
    }
    return false;
}

/// The parameter that a keyword names; the end where there is none.
size_t find(std::span<const PackParameter> parameters, PyObject* name)
{
    for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].name.ptr() == name || parameters[i].python_name.ptr() == name)
            return i;
    for (size_t i = 0; i < parameters.size(); ++i) // a name that is not interned
        if (PyUnicode_Compare(parameters[i].name.ptr(), name) == 0 ||
            PyUnicode_Compare(parameters[i].python_name.ptr(), name) == 0)
            return i;
    return parameters.size();
}

/// One value for each parameter; false where one is missing, unknown or given twice.
bool match(std::span<const PackParameter> parameters, const GivenArguments& given, std::span<PyObject*> values)
{
    if (given.count > parameters.size())
        return false;
    std::copy_n(given.values, given.count, values.begin());
    const size_t named = given.names ? size_t(PyTuple_GET_SIZE(given.names)) : 0;
    for (size_t i = 0; i < named; ++i) {
        const size_t at = find(parameters, PyTuple_GET_ITEM(given.names, Py_ssize_t(i)));
        if (at == parameters.size() || values[at])
            return false;
        values[at] = given.values[given.count + i];
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
        if (!values[i])
            values[i] = parameters[i].usual.is_valid() ? parameters[i].usual.ptr() : nullptr;
        if (!values[i] && parameters[i].type.kind != PackKind::nothing)
            return false;
    }
    return true;
}

} // namespace

bool pack_arguments(const Packing& packing, const GivenArguments& given, Packed& out)
{
    ShortList<PyObject*, 32> found;
    found.reset(packing.parameters.size());
    const std::span<PyObject*> values(found.data(), found.size());
    if (!match(packing.parameters, given, values))
        return false;
    out.bytes.reset(packing.header + packing.size);
    Writer writer{packing, out};
    for (size_t i = 0; i < values.size(); ++i) {
        writer.parameter = i;
        const PackType& type = packing.parameters[i].type;
        if (!writer.write(type, values[i], packing.header + type.offset))
            return false;
    }
    return true;
}

} // namespace spy
