#pragma once
// Python values <-> bytes laid out by a TypeLayout, and resources into ShaderObjects.
#include "values/nb.h" // first

#include "core/class_name.h"
#include "device/shader_object.h"
#include "device/value_io.h"

#include <string_view>

namespace spy {

/// Where in the user's data we are; built on the stack, turned into text only for an error: "light.tint", "w[2]".
struct ValuePath {
    const ValuePath* parent = nullptr;
    std::string_view name; ///< empty: an element
    int64_t index = 0;
    bool is_cursor = false; ///< at the root: written by a cursor, which takes no float for an integer

    std::string str() const;
    bool refuses_floats() const
    {
        const ValuePath* root = this;
        while (root->parent)
            root = root->parent;
        return root->is_cursor;
    }
};

/// "path: message" as an Error of that kind.
[[noreturn]] void fail_at(const ValuePath& path, ErrorKind kind, const std::string& message);

/// The number that a Python object stands for: bool, int, float, NumPy scalar, enum, float16_t, 0-d array.
bool number_from_python(PyObject* value, Number& number);
/// The same; errors name the place.
bool number_at(PyObject* value, Number& number, const ValuePath& path);

/// OverflowError (range), ValueError (fraction) or TypeError for a number that was refused; `value` is quoted.
[[noreturn]] void fail_number(StoreResult result, std::string_view type_name, ScalarType target, PyObject* value,
                              const ValuePath& path);

/// Warns of a number beyond the range of a float type, once for each place of a program.
void tell_infinite(ScalarType target, const ValuePath& path);

/// Everything but exact int and finite float; throws.
void write_scalar_slow(ScalarType target, uint32_t bool_bytes, uint8_t* dst, PyObject* value, const ValuePath& path);

/// Writes one number, without allocating for int and float.
inline void write_scalar(ScalarType target, uint32_t bool_bytes, uint8_t* dst, PyObject* value, const ValuePath& path)
{
    if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AsDouble(value);
        if (target == ScalarType::float32 && std::isfinite(float(number)))
            return store_raw<float>(dst, float(number));
        if (target == ScalarType::float64)
            return store_raw<double>(dst, number);
    } else if (PyLong_CheckExact(value)) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow && target != ScalarType::float16 &&
            store_number(target, bool_bytes, dst, Number::from_int(number)) == StoreResult::ok)
            return;
    }
    write_scalar_slow(target, bool_bytes, dst, value, path);
}

/// For callers that know a parameter's name only.
inline void write_scalar(ScalarType target, uint8_t* dst, PyObject* value, const char* parameter,
                         uint32_t bool_bytes = 1)
{
    write_scalar(target, bool_bytes, dst, value, ValuePath{nullptr, parameter, 0});
}

/// Writes `value` at a place of a ShaderObject or of plain memory.
void write_at(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);

/// Plain memory. `keep_alive` (may be null) receives the owners of memory that pointers point into. `device`: whose
/// descriptor handles it takes; null: any.
inline void write_value(const TypeLayout& layout, uint8_t* bytes, PyObject* value, const ValuePath& path,
                        std::vector<ref<Object>>* keep_alive = nullptr, const Device* device = nullptr)
{
    Place place;
    place.device = device;
    place.bytes = bytes;
    place.keep_alive = keep_alive;
    write_at(layout, place, value, path);
}

/// bool, int, float, spy vector or matrix (lists where there is no class), list, dict; pointers as int. `device`: whose
/// descriptor handles they are.
nb::object read_value(const TypeLayout& layout, const uint8_t* bytes, const Device* device = nullptr);

/// Fields of a dict into a struct; unknown keys are appended to `unknown` (null: an error naming the fields).
void write_dict(const TypeLayout& layout, const Place& place, PyObject* dict, const ValuePath& path,
                std::vector<std::string>* unknown = nullptr);

/// A buffer, texture, view, sampler or None into the place's slot, with usage checks.
bool write_resource(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);
/// A DescriptorHandle into its bytes; false when the object is none.
bool write_handle(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);
/// The same in an element of a buffer whose layout shows what the target makes of a handle: uint2, or the resource.
bool write_element_handle(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);
/// The handle that lies there; not valid where it names nothing that lives on the device.
nb::object read_handle(const TypeLayout& layout, const uint8_t* bytes, const Device* device);
/// Address of a pointer value and what keeps the memory alive; false when the object is none.
/// Throws when the element type of a buffer parameter or pointer is none that the buffer was filled with.
void check_content(const Buffer& buffer, const TypeLayout& layout, const ValuePath& path);
bool pointer_from_python(PyObject* value, uint64_t& address, ref<Object>& owner, const ValuePath& path);
/// Slang's TensorView struct from any DLPack or CUDA array; false when the object is none.
bool write_tensor_view(const TypeLayout& layout, const Place& place, PyObject* value, const ValuePath& path);
void keep_at(const Place& place, ref<Object> owner);

/// Holds a Python object for native code that points into its memory.
class PythonOwner : public Object {
public:
    explicit PythonOwner(nb::handle object) : m_object(object.inc_ref().ptr()) { }
    ~PythonOwner() override;

private:
    PyObject* m_object;
};

/// A host array with the buffer protocol (or what numpy.asarray makes of it); native byte order.
class HostArray {
public:
    HostArray() = default;
    HostArray(const HostArray&) = delete;
    HostArray& operator=(const HostArray&) = delete;
    ~HostArray();

    /// False when the object is no array. Scalar is `none` for dtypes that are not ours.
    bool open(PyObject* value);

    const uint8_t* data() const { return static_cast<const uint8_t*>(m_view.buf); }
    int rank() const { return m_view.ndim; }
    int64_t size(int axis) const { return m_view.shape[axis]; }
    int64_t stride(int axis) const { return m_view.strides[axis]; }
    int64_t nbytes() const { return m_view.len; }
    int64_t item_size() const { return m_view.itemsize; }
    ScalarType scalar() const { return m_scalar; }
    bool is_contiguous() const;
    std::string dtype_text() const;
    std::string shape_text(int first_axis = 0) const;

private:
    bool acquire(PyObject* value);

    Py_buffer m_view{};
    bool m_open = false;
    ScalarType m_scalar = ScalarType::none;
};

/// None where the object has no such attribute.
inline nb::object attribute(PyObject* value, const char* name)
{
    return nb::getattr(nb::handle(value), name, nb::none());
}

/// numpy.generic, numpy.ndarray, ... : imported once.
struct NumpyTypes {
    PyObject *generic, *bool_, *integer, *floating, *ndarray, *asarray;
};
const NumpyTypes& numpy_types();

/// repr(), cut at about 80 characters; never throws.
std::string short_repr(PyObject* value);
inline const char* type_name(PyObject* value) { return class_name(value); }

} // namespace spy
