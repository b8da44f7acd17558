// Shape, and the native half of slangpy.Tensor.
#include "call/value.h"

#include "python/bindings.h"

#include <nanobind/stl/string.h>

namespace spy {

namespace {

int64_t dim_from(nb::handle item)
{
    nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        fail(ErrorKind::type, "a shape holds ints, got ", Py_TYPE(item.ptr())->tp_name);
    }
    return nb::cast<int64_t>(index);
}

Shape shape_from(nb::handle value)
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
        shape.push_back(dim_from(item));
    return shape;
}

Shape shape_from_args(nb::args args)
{
    if (args.size() == 1)
        return shape_from(args[0]);
    return shape_from(args);
}

nb::list to_list(const Shape& shape)
{
    if (!shape.valid())
        fail_runtime("Shape is invalid");
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
    try {
        return shape == shape_from(other);
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
        .def("as_tuple", [](const Shape& self) { return nb::tuple(to_list(self)); })
        .def("as_list", &to_list)
        .def("calc_contiguous_strides", &Shape::contiguous_strides)
        .def("__len__", [](const Shape& self) { return to_list(self).size(); })
        .def("__getitem__", &shape_item)
        .def("__getitem__", [](const Shape& self, nb::slice slice) {
            return shape_from(nb::steal(PyObject_GetItem(to_list(self).ptr(), slice.ptr())));
        })
        .def("__iter__", [](const Shape& self) { return nb::iter(to_list(self)); })
        .def("__add__", [](const Shape& self, nb::handle other) {
            Shape joined = self;
            for (int64_t dim : shape_from(other))
                joined.push_back(dim);
            return joined;
        })
        .def("__radd__", [](const Shape& self, nb::handle other) {
            Shape joined = shape_from(other);
            for (int64_t dim : self)
                joined.push_back(dim);
            return joined;
        })
        .def("__eq__", &shape_equals, nb::arg().none())
        .def("__ne__", [](const Shape& self, nb::handle other) { return !shape_equals(self, other); }, nb::arg().none())
        .def("__hash__", [](const Shape& self) {
            return self.valid() ? nb::hash(nb::tuple(to_list(self))) : Py_hash_t(-2);
        })
        .def("__repr__", &Shape::str)
        .def("__reduce__", [](const Shape& self) {
            nb::object argument = self.valid() ? nb::object(nb::tuple(to_list(self))) : nb::none();
            return nb::make_tuple(nb::type<Shape>(), nb::make_tuple(argument));
        });
}

void init_tensor(TensorBase* self, nb::object storage, nb::object layout, nb::object dtype, nb::handle shape,
                 nb::handle strides, int64_t offset, nb::object grad_in, nb::object grad_out)
{
    new (self) TensorBase();
    self->storage = nb::cast<Buffer*>(storage);
    self->layout = nb::cast<TypeLayout*>(layout);
    self->dtype = std::move(dtype);
    self->shape = shape_from(shape);
    self->strides = strides.is_none() ? self->shape.contiguous_strides() : shape_from(strides);
    self->offset = offset;
    self->type_id = type_id(self->layout->full_name);
    self->writable = has_flag(self->storage->desc().usage, BufferUsage::unordered_access);
    self->grad_in = std::move(grad_in);
    self->grad_out = std::move(grad_out);
}

int traverse_tensor(PyObject* self, visitproc visit, void* arg)
{
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self))
        return 0;
    auto* tensor = nb::inst_ptr<TensorBase>(self);
    Py_VISIT(tensor->grad_in.ptr());
    Py_VISIT(tensor->grad_out.ptr());
    Py_VISIT(tensor->dtype.ptr());
    return 0;
}

int clear_tensor(PyObject* self)
{
    auto* tensor = nb::inst_ptr<TensorBase>(self);
    tensor->grad_in = nb::none();
    tensor->grad_out = nb::none();
    return 0;
}

PyType_Slot tensor_slots[] = {{Py_tp_traverse, (void*)traverse_tensor}, {Py_tp_clear, (void*)clear_tensor}, {0, nullptr}};

} // namespace

void bind_array(nb::module_& m)
{
    bind_shape(m);
    nb::class_<TensorBase>(m, "TensorBase", nb::dynamic_attr(), nb::type_slots(tensor_slots),
                           "A view of a buffer: element layout, shape, strides and offset in elements, gradients.")
        .def("__init__", &init_tensor, nb::arg("storage"), nb::arg("layout"), nb::arg("dtype"), nb::arg("shape"),
             nb::arg("strides").none(), nb::arg("offset"), nb::arg("grad_in").none(), nb::arg("grad_out").none())
        .def_prop_ro("storage", [](TensorBase& self) { return self.storage; })
        .def_prop_ro("layout", [](TensorBase& self) { return self.layout; }, "Element layout in the buffer.")
        .def_prop_ro("dtype", [](TensorBase& self) { return self.dtype; })
        .def_prop_ro("shape", [](TensorBase& self) { return self.shape; })
        .def_prop_ro("strides", [](TensorBase& self) { return self.strides; })
        .def_ro("offset", &TensorBase::offset)
        .def_rw("grad_in", &TensorBase::grad_in, nb::arg().none())
        .def_rw("grad_out", &TensorBase::grad_out, nb::arg().none())
        .def_prop_ro("device_address", &TensorBase::address, "Address of the first element of the view.")
        .def("_point_to", [](TensorBase& self, TensorBase& other) { self = TensorBase(other); });
}

} // namespace spy
