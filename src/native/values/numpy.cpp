#include "values/numpy.h"

namespace spy {

namespace {

// The leading members of NumPy's array and descriptor objects, unchanged from NumPy 1.7 to 2.x.
struct NumpyDescr {
    PyObject_HEAD PyTypeObject* typeobj;
    char kind, type, byteorder, former_flags;
    int type_num;
};
struct NumpyArrayFields {
    PyObject_HEAD char* data;
    int nd;
    ssize_t* dimensions;
    ssize_t* strides;
    PyObject* base;
    NumpyDescr* descr;
    int flags;
};
constexpr int numpy_flag_writeable = 0x0400;

ScalarType scalar_from_numpy(int type_num)
{
    switch (type_num) { // NPY_TYPES
    case 0: return ScalarType::bool_;
    case 1: return ScalarType::int8;
    case 2: return ScalarType::uint8;
    case 3: return ScalarType::int16;
    case 4: return ScalarType::uint16;
    case 5: return ScalarType::int32;
    case 6: return ScalarType::uint32;
    case 7: return sizeof(long) == 8 ? ScalarType::int64 : ScalarType::int32;
    case 8: return sizeof(long) == 8 ? ScalarType::uint64 : ScalarType::uint32;
    case 9: return ScalarType::int64;
    case 10: return ScalarType::uint64;
    case 11: return ScalarType::float32;
    case 12: return ScalarType::float64;
    case 23: return ScalarType::float16;
    default: return ScalarType::none;
    }
}

PyTypeObject* numpy_array_type()
{
    static PyTypeObject* type = nullptr;
    if (!type) {
        nb::object numpy = nb::module_::import_("numpy");
        type = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    }
    return type;
}

} // namespace

static ssize_t element_count(const NumpyArrayFields& array)
{
    ssize_t count = 1;
    for (int i = 0; i < array.nd; ++i)
        count *= array.dimensions[i];
    return count;
}

ArrayGuard::ArrayGuard(PyObject* array, std::string what) : m_owner(array), m_what(std::move(what))
{
    for (PyObject* base = array; base && is_numpy_array(base); base = reinterpret_cast<NumpyArrayFields*>(base)->base)
        m_owner = base;
    Py_INCREF(m_owner);
    const auto& owner = *reinterpret_cast<NumpyArrayFields*>(m_owner);
    m_data = owner.data;
    m_count = element_count(owner);
}

ArrayGuard::~ArrayGuard()
{
    if (!Py_IsInitialized())
        return; // its memory ends with the process
    GilAcquire acquire;
    Py_DECREF(m_owner);
}

void ArrayGuard::check() const
{
    const auto& owner = *reinterpret_cast<NumpyArrayFields*>(m_owner);
    if (owner.data != m_data || element_count(owner) < m_count)
        fail_runtime(m_what, ": the NumPy array was resized, and its memory is not where it was; use it anew");
}

bool is_numpy_array(PyObject* object)
{
    PyTypeObject* type = numpy_array_type();
    return Py_TYPE(object) == type || PyType_IsSubtype(Py_TYPE(object), type);
}

void refuse_masked(PyObject* array)
{
    if (nb::cast<bool>(nb::module_::import_("numpy.ma").attr("is_masked")(nb::handle(array))))
        fail_value("elements of the MaskedArray are masked, which a device cannot know; pass array.filled(value), or "
                   "array.data for what lies below the mask");
}

bool read_numpy(PyObject* object, NumpyArray& out)
{
    if (!is_numpy_array(object))
        return false;
    auto* array = reinterpret_cast<NumpyArrayFields*>(object);
    out.data = array->data;
    out.ndim = array->nd;
    out.sizes = array->dimensions;
    out.strides = array->strides;
    out.kind = array->descr->kind;
    out.scalar = scalar_from_numpy(array->descr->type_num);
    out.writable = array->flags & numpy_flag_writeable;
    out.swapped = array->descr->byteorder == '>';
    return true;
}

} // namespace spy
