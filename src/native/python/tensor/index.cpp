// tensor[index]: NumPy's basic indexing as a view, gradients included.
#include "python/tensor/bindings.h" // first

#include "core/class_name.h"
#include "device/content.h"
#include "values/classes.h"

namespace spy {

namespace {

const char* instead_of(PyObject* item)
{
    const ValueClass found = class_of(item).value_class;
    if (found == ValueClass::sequence || found == ValueClass::numpy || found == ValueClass::masked)
        return "; a Tensor has no masks and no lists of indices: index np.asarray(tensor), or read them in a Slang "
               "function";
    return "";
}

[[noreturn]] void fail_item(PyObject* item, Py_ssize_t position)
{
    std::string instead = instead_of(item);
    if (PyUnicode_Check(item))
        instead = cat("; fields of structs are read with tensor.to_numpy(structured=True)[",
                      nb::repr(nb::handle(item)).c_str(), "]");
    fail(ErrorKind::type, "Illegal argument at dimension ", position, ": Allowed are int, slice, ..., or None; found ",
         class_name(item), instead);
}

/// Python's int and NumPy's; no bool, and no array of one number.
bool is_int(PyObject* item)
{
    if (PyLong_Check(item))
        return !PyBool_Check(item);
    return PyIndex_Check(item) && class_of(item).value_class == ValueClass::numpy_scalar;
}

/// How many dimensions the index takes, checked.
size_t used_dimensions(PyObject* const* items, Py_ssize_t count, size_t rank)
{
    size_t used = 0;
    bool has_ellipsis = false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = items[i];
        if (item == Py_Ellipsis) {
            if (has_ellipsis)
                fail(ErrorKind::index, "An index can only have a single ellipsis ('...')");
            has_ellipsis = true;
        } else if (PySlice_Check(item) || is_int(item)) {
            ++used;
        } else if (item != Py_None) {
            fail_item(item, i);
        }
    }
    if (used > rank)
        fail(ErrorKind::index, "Too many indices for tensor of dimension ", rank);
    return used;
}

/// Walks over the dimensions of a tensor and collects those of the view.
struct Part {
    explicit Part(const TensorBase& tensor) : whole(tensor), offset(tensor.offset) { }

    const TensorBase& whole;
    int64_t offset;
    size_t dim = 0; ///< the next one of the tensor
    Shape shape, strides;

    void move(int64_t index)
    {
        int64_t step;
        if (__builtin_mul_overflow(index, whole.strides[dim], &step) || __builtin_add_overflow(offset, step, &offset))
            fail(ErrorKind::overflow, "a tensor view of shape ", whole.shape.str(), " with strides ",
                 whole.strides.str(), " reaches beyond 64-bit addresses");
    }

    void add(int64_t size, int64_t stride)
    {
        shape.push_back(size);
        strides.push_back(stride);
    }

    void take_all(size_t count)
    {
        for (; count; --count, ++dim)
            add(whole.shape[dim], whole.strides[dim]);
    }

    void take_slice(PyObject* slice)
    {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
            nb::raise_python_error();
        const Py_ssize_t count = PySlice_AdjustIndices(whole.shape[dim], &start, &stop, step);
        if (count)
            move(start);
        int64_t stride;
        if (__builtin_mul_overflow(int64_t(step), whole.strides[dim], &stride))
            fail(ErrorKind::overflow, "a size or stride of a shape does not fit 64 bits");
        add(count, stride);
        ++dim;
    }

    void take_one(PyObject* item)
    {
        const int64_t size = whole.shape[dim];
        const Py_ssize_t index = PyNumber_AsSsize_t(item, nullptr); // clipped: the error comes below
        if (index == -1 && PyErr_Occurred())
            nb::raise_python_error();
        if (index < -size || index >= size)
            fail(ErrorKind::index, "Index ", nb::str(nb::handle(item)).c_str(), " is out of range for dimension ", dim,
                 " with size ", size);
        move(index < 0 ? index + size : index);
        ++dim;
    }
};

Part part_of(const TensorBase& whole, PyObject* index)
{
    const bool many = PyTuple_Check(index);
    PyObject* const* items = many ? &PyTuple_GET_ITEM(index, 0) : &index;
    const Py_ssize_t count = many ? PyTuple_GET_SIZE(index) : 1;
    const size_t rank = whole.shape.size(), rest = rank - used_dimensions(items, count, rank);
    Part part(whole);
    bool has_ellipsis = false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = items[i];
        if (item == Py_None) {
            part.add(1, 0);
        } else if (item == Py_Ellipsis) {
            part.take_all(rest);
            has_ellipsis = true;
        } else if (PySlice_Check(item)) {
            part.take_slice(item);
        } else {
            part.take_one(item);
        }
    }
    if (!has_ellipsis)
        part.take_all(rest);
    if (rank && part.shape.empty())
        part.add(1, 1); // one element is a tensor too
    return part;
}

const TensorBase& tensor_of(nb::handle object) { return instance_of<TensorBase>(object, "a Tensor"); }

/// Raises RecursionError for gradients that are gradients of themselves. Counts by itself: Python's limit for native
/// code is higher than a thread's stack.
struct Depth {
    Depth()
    {
        if (count >= 100) {
            PyErr_SetString(PyExc_RecursionError, "Tensor: a gradient is a gradient of itself; index Tensor.detach()");
            nb::raise_python_error();
        }
        count++;
    }
    ~Depth() { count--; }
    static thread_local int count;
};

thread_local int Depth::count = 0;

/// A tensor like another, of its class.
nb::object made_like(nb::handle other, TensorBase&& tensor)
{
    nb::object result = nb::inst_alloc(other.type());
    new (nb::inst_ptr<TensorBase>(result)) TensorBase(std::move(tensor));
    nb::inst_mark_ready(result);
    return result;
}

nb::object view_part(nb::handle self, nb::handle index)
{
    const Depth depth;
    const TensorBase& whole = tensor_of(self);
    const Part part = part_of(whole, index.ptr());
    nb::object grad_in = whole.grad_in, grad_out = whole.grad_out;
    if (!grad_in.is_none())
        grad_in = view_part(grad_in, index);
    if (!grad_out.is_none()) // one gradient for both stays one
        grad_out = grad_out.is(whole.grad_in) ? grad_in : view_part(grad_out, index);
    TensorBase view = whole;
    view.shape = part.shape;
    view.strides = part.strides;
    view.offset = part.offset;
    view.grad_in = std::move(grad_in);
    view.grad_out = std::move(grad_out);
    check_view(view);
    return made_like(self, std::move(view));
}

/// Sizes or strides from a tuple of Python's ints; false where they are anything else, or negative.
bool read_plain(PyObject* values, Shape& out)
{
    if (!PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) > Py_ssize_t(Shape::max_rank))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) {
        PyObject* item = PyTuple_GET_ITEM(values, i);
        int overflow = 0;
        const long long value = PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : -1;
        if (value < 0 || overflow)
            return false;
        out.push_back(value);
    }
    return true;
}

/// view() of a tensor without gradients, by plain tuples; None where that takes more: Python's view() does it then, or
/// says what is wrong.
nb::object view_plain(nb::handle self, nb::handle shape, nb::handle strides, nb::handle offset)
{
    const TensorBase& whole = tensor_of(self);
    Shape sizes, steps;
    int overflow = 0;
    const int64_t moved = PyLong_CheckExact(offset.ptr()) ? PyLong_AsLongLongAndOverflow(offset.ptr(), &overflow) : -1;
    int64_t first;
    if (moved < 0 || overflow || !whole.grad_in.is_none() || !whole.grad_out.is_none() ||
        !read_plain(shape.ptr(), sizes) || !sizes.valid() || !read_plain(strides.ptr(), steps) ||
        (!steps.empty() && steps.size() != sizes.size()) || __builtin_add_overflow(whole.offset, moved, &first) ||
        !content_misfit(whole.storage->content(), *whole.layout).empty())
        return nb::none();
    TensorBase view = whole;
    view.strides = steps.empty() ? sizes.contiguous_strides() : steps;
    view.shape = sizes;
    view.offset = first;
    check_view(view);
    return made_like(self, std::move(view));
}

} // namespace

void bind_tensor_index(nb::class_<TensorBase>& cls)
{
    cls.def("__getitem__", &view_part, nb::arg("index").none(),
            nb::sig("def __getitem__(self, index: object, /) -> typing_extensions.Self"),
            "NumPy's basic indexing as a view; an int for every dimension gives shape [1].")
        .def("_view_plain", &view_plain, nb::arg("shape").none(), nb::arg("strides").none(), nb::arg("offset").none());
}

} // namespace spy
