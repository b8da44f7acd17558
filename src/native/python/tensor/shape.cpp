// Shape for Python.
#include "python/tensor/bindings.h"
#include "core/class_name.h"

#include <nanobind/stl/string.h>

namespace spy {

namespace {

int64_t dim_from(nb::handle item)
{
    nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        fail(ErrorKind::type, "a shape holds ints, got ", class_name(item.ptr()));
    }
    const long long dim = PyLong_AsLongLong(index.ptr());
    if (dim == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        fail(ErrorKind::overflow, "a size or stride of a shape does not fit 64 bits");
    }
    return dim;
}

/// Of any number of dimensions.
Shape read_shape(nb::handle value)
{
    if (value.is_none())
        return Shape::invalid();
    if (nb::isinstance<Shape>(value))
        return *nb::cast<Shape*>(value);
    Shape shape;
    if (PyIndex_Check(value.ptr()) && !PySequence_Check(value.ptr())) {
        shape.push_back(dim_from(value));
        return shape;
    }
    for (nb::handle item : value)
        shape.push_back_any(dim_from(item));
    return shape;
}

Shape shape_from_args(nb::args args)
{
    if (args.size() == 1)
        return read_shape(args[0]);
    return read_shape(args);
}

Shape joined(Shape first, const Shape& second)
{
    for (int64_t dim : second)
        first.push_back_any(dim);
    return first;
}

nb::list to_list(const Shape& shape)
{
    if (!shape.valid())
        fail_runtime("Shape is invalid: it was made from None and has no dimensions; ask .valid first");
    nb::list list;
    for (int64_t dim : shape)
        list.append(dim);
    return list;
}

int64_t shape_item(const Shape& shape, int64_t index)
{
    int64_t size = int64_t(shape.size());
    if (index < -size || index >= size)
        fail(ErrorKind::index, "Shape index ", index, " is out of range for ", size, " dimensions");
    return shape[size_t(index < 0 ? index + size : index)];
}

bool shape_equals(const Shape& shape, nb::handle other)
{
    if (other.is_none())
        return !shape.valid();
    if (!PySequence_Check(other.ptr()) && !nb::isinstance<Shape>(other))
        return false;
    try {
        return shape == read_shape(other);
    } catch (const std::exception&) {
        PyErr_Clear();
        return false;
    }
}

void bind_shape(nb::module_& m)
{
    nb::class_<Shape>(m, "Shape", "Sizes of the dimensions of a container; -1 is an unknown size.")
        .def("__init__", [](Shape* self, nb::args args) { new (self) Shape(shape_from_args(args)); })
        .def_prop_ro("valid", &Shape::valid)
        .def_prop_ro("concrete", &Shape::concrete)
        .def(
            "as_tuple", [](const Shape& self) { return nb::tuple(to_list(self)); },
            nb::sig("def as_tuple(self) -> tuple[int, ...]"), "The sizes as a tuple.")
        .def("as_list", &to_list, nb::sig("def as_list(self) -> list[int]"), "The sizes as a list.")
        .def("calc_contiguous_strides", &Shape::contiguous_strides,
             "The strides, in elements, of a row-major tensor of this shape.")
        .def("__len__", &Shape::size)
        .def("__getitem__", &shape_item)
        .def("__getitem__",
             [](const Shape& self, nb::slice slice) {
                 return read_shape(nb::steal(PyObject_GetItem(to_list(self).ptr(), slice.ptr())));
             })
        .def(
            "__iter__", [](const Shape& self) { return nb::iter(to_list(self)); },
            nb::sig("def __iter__(self) -> collections.abc.Iterator[int]"))
        .def("__add__", [](const Shape& self, nb::handle other) { return joined(self, read_shape(other)); })
        .def("__radd__", [](const Shape& self, nb::handle other) { return joined(read_shape(other), self); })
        .def("__eq__", &shape_equals, nb::arg().none())
        .def(
            "__ne__", [](const Shape& self, nb::handle other) { return !shape_equals(self, other); }, nb::arg().none())
        .def("__hash__",
             [](const Shape& self) { return self.valid() ? nb::hash(nb::tuple(to_list(self))) : Py_hash_t(-2); })
        .def("__repr__", &Shape::str)
        .def("__reduce__", [](const Shape& self) {
            nb::object argument = self.valid() ? nb::object(nb::tuple(to_list(self))) : nb::none();
            return nb::make_tuple(nb::type<Shape>(), nb::make_tuple(argument));
        });
}

} // namespace

Shape shape_from(nb::handle value)
{
    Shape shape = read_shape(value);
    if (shape.size() > Shape::max_rank)
        fail_value("a container or call can have at most ", Shape::max_rank, " dimensions, got ", shape.size());
    return shape;
}

void bind_array(nb::module_& m)
{
    bind_shape(m);
    bind_tensor(m);
    bind_tensor_transfer(m);
    bind_tensor_dlpack(m);
}

} // namespace spy
