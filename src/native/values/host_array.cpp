// Arrays in host memory, reached through the buffer protocol.
#include "values/nb.h"

#include "core/class_name.h"
#include "values/classes.h"
#include "values/numpy.h"
#include "values/torch.h"
#include "values/writer.h"

#include <cstring>

namespace spy {

namespace {

ScalarType scalar_from_format(const char* format, Py_ssize_t item_size, bool& swapped)
{
    if (!format)
        return item_size == 1 ? ScalarType::uint8 : ScalarType::none;
    swapped = *format == '>' || *format == '!'; // hosts are little-endian
    if (std::strchr("<>=@!", *format))
        ++format;
    if (!format[0] || format[1])
        return ScalarType::none;
    const auto bits = uint8_t(item_size * 8);
    if (*format == '?')
        return ScalarType::bool_;
    if (std::strchr("bhilqn", *format))
        return scalar_from_dlpack(kDLInt, bits);
    if (std::strchr("BHILQN", *format))
        return scalar_from_dlpack(kDLUInt, bits);
    return std::strchr("efd", *format) ? scalar_from_dlpack(kDLFloat, bits) : ScalarType::none;
}

} // namespace

HostArray::~HostArray()
{
    if (m_open)
        PyBuffer_Release(&m_view);
}

bool HostArray::acquire(PyObject* value)
{
    if (!PyObject_CheckBuffer(value))
        return false;
    if (PyObject_GetBuffer(value, &m_view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); // NumPy refuses dtypes that have no format text
        return false;
    }
    m_open = true;
    return true;
}

bool HostArray::open(PyObject* value)
{
    if (PyUnicode_Check(value) || PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value))
        return false;
    if (class_of(value).value_class == ValueClass::torch) {
        TorchTensor memory; // freed, and NumPy would read it
        read_torch_memory(value, memory);
        if (memory.scalar == ScalarType::bfloat16 ||
            (scalar_info(memory.scalar).size == 1 && scalar_info(memory.scalar).is_float))
            fail(ErrorKind::type, "NumPy has no ", scalar_info(memory.scalar).slang_name, "; pass tensor.float()");
        if (torch_requires_grad(value))
            fail_runtime("the tensor requires grad, but gradients do not reach values that are copied here; pass "
                         "tensor.detach()");
        if (scalar_info(memory.scalar).is_float && torch_is_negated(value))
            fail_runtime("the tensor is negated lazily; pass tensor.resolve_neg()");
    }
    if (class_of(value).value_class == ValueClass::masked)
        refuse_masked(value);
    nb::object array = nb::borrow(value);
    if (!acquire(value)) {
        const bool is_array = is_kind(value, numpy_types().ndarray);
        if (is_array && nb::cast<int64_t>(array.attr("dtype").attr("itemsize")) <= 2 &&
            nb::cast<std::string_view>(nb::str(array.attr("dtype").attr("name"))).find("float") != size_t(-1)) {
            // ml_dtypes: the raw bits, which is how NumPy holds them for us
            const bool one_byte = nb::cast<int64_t>(array.attr("dtype").attr("itemsize")) == 1;
            array = array.attr("view")(one_byte ? "uint8" : "uint16");
        } else if (!is_array && nb::hasattr(value, "__array__") && !nb::isinstance<nb::type_object>(array)) {
            array = nb::borrow(numpy_types().asarray)(array);
        } else {
            return false;
        }
        if (!acquire(array.ptr()))
            return false;
    }
    bool swapped = false;
    m_scalar = scalar_from_format(m_view.format, m_view.itemsize, swapped);
    if (swapped && m_view.itemsize > 1 && m_scalar != ScalarType::none) {
        PyBuffer_Release(&m_view);
        m_open = false;
        array = nb::borrow(numpy_types().asarray)(array);
        array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
        if (!acquire(array.ptr()))
            return false;
    }
    return true;
}

bool HostArray::is_contiguous() const { return PyBuffer_IsContiguous(&m_view, 'C') != 0; }

std::string HostArray::dtype_text() const
{
    if (m_scalar != ScalarType::none)
        return std::string(scalar_info(m_scalar).numpy_name);
    return cat("dtype with format '", m_view.format ? m_view.format : "", "'");
}

std::string HostArray::shape_text(int first_axis) const
{
    std::string text = "(";
    for (int axis = first_axis; axis < rank(); ++axis)
        text += cat(axis > first_axis ? ", " : "", size(axis));
    return text + (rank() - first_axis == 1 ? ",)" : ")");
}

} // namespace spy
