// The native half of slangpy.Tensor: what signatures and argument writers read, and cheap views.
#include "python/tensor/bindings.h"

#include <nanobind/stl/string.h>

namespace spy {

namespace {

/// Lowest and highest element of a non-empty view, counted from the start of the storage.
struct Span {
    int64_t low = 0, high = 0;
};

[[noreturn]] void fail_span(const TensorBase& t)
{
    fail(ErrorKind::overflow, "a tensor view of shape ", t.shape.str(), " with strides ", t.strides.str(),
         " and offset ", t.offset, " reaches beyond 64-bit addresses");
}

Span span_of(const TensorBase& t)
{
    Span span{t.offset, t.offset};
    for (size_t i = 0; i < t.shape.size(); ++i) {
        int64_t reach;
        int64_t& bound = t.strides[i] < 0 ? span.low : span.high;
        if (__builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &reach) ||
            __builtin_add_overflow(bound, reach, &bound))
            fail_span(t);
    }
    return span;
}

} // namespace

void check_view(const TensorBase& t)
{
    if (t.shape.size() != t.strides.size())
        fail_value("Shape dimensions (", t.shape.size(), ") must match stride dimensions (", t.strides.size(), ")");
    for (int64_t size : t.shape)
        if (size < 0)
            fail_value("Tensor shape ", t.shape.str(), " has a negative size");
    if (t.offset < 0)
        fail_value("Tensor view offset is negative (", t.offset, ")");
    if (t.shape.element_count() == 0)
        return;
    const int64_t capacity = int64_t(t.storage->desc().size / std::max<uint64_t>(t.layout->stride, 1));
    const Span span = span_of(t);
    if (span.low < 0 || span.high >= capacity)
        fail_value("Tensor view of shape ", t.shape.str(), " with strides ", t.strides.str(), " and offset ", t.offset,
                   " reaches outside its buffer: it needs elements ", span.low, " to ", span.high, ", the buffer of ",
                   t.storage->desc().size, " bytes holds ", capacity, " elements of ", t.layout->stride, " bytes (",
                   t.layout->full_name, ")");
}

namespace {

/// Throws unless values of the type can lie in a buffer: sized, and made of plain data.
void check_element(const TypeLayout& layout)
{
    bool bounded = layout.stride > 0;
    for (const TypeLayout* part = &layout; bounded && part->kind == TypeKind::array; part = part->element.get()) {
        uint64_t bytes;
        bounded = part->element && part->element_count > 0 &&
            !__builtin_mul_overflow(uint64_t(part->element_count - 1), part->element_stride, &bytes) &&
            bytes <= part->size && part->element->size <= part->size - bytes;
    }
    if (!bounded)
        fail_value("Tensor: elements of type ", layout.full_name,
                   " have no fixed size in memory; use a type of known size");
    if (layout.slot_count || layout.scope_count)
        fail_value("Tensor: elements of type ", layout.full_name, " hold resources; tensors hold plain data only");
}

void fill(TensorBase* self, nb::handle storage, nb::handle layout, nb::object dtype, nb::handle shape,
          nb::handle strides, int64_t offset, nb::object grad_in, nb::object grad_out)
{
    self->storage = nb::cast<Buffer*>(storage);
    self->layout = nb::cast<TypeLayout*>(layout);
    if (!self->storage || !self->layout)
        fail(ErrorKind::type, "Tensor: 'storage' must be a Buffer and its dtype must have a layout, got None");
    check_element(*self->layout);
    self->dtype = std::move(dtype);
    self->shape = shape_from(shape);
    if (!self->shape.valid())
        fail_value("Tensor: 'shape' is invalid");
    self->strides = strides.is_none() ? self->shape.contiguous_strides() : shape_from(strides);
    self->offset = offset;
    self->type_id = type_id(*self->layout);
    self->writable = has_flag(self->storage->desc().usage, BufferUsage::unordered_access);
    self->grad_in = std::move(grad_in);
    self->grad_out = std::move(grad_out);
    check_view(*self);
}

void init_tensor(TensorBase* self, nb::handle storage, nb::handle layout, nb::object dtype, nb::handle shape,
                 nb::handle strides, int64_t offset, nb::object grad_in, nb::object grad_out)
{
    new (self) TensorBase();
    try {
        fill(self, storage, layout, std::move(dtype), shape, strides, offset, std::move(grad_in), std::move(grad_out));
    } catch (...) {
        self->~TensorBase();
        throw;
    }
}

/// A tensor of class `cls` without going through its __init__.
nb::object make_tensor(nb::handle cls, nb::handle storage, nb::handle layout, nb::object dtype, nb::handle shape,
                       nb::handle strides, int64_t offset, nb::object grad_in, nb::object grad_out)
{
    if (!PyType_Check(cls.ptr()) || !PyObject_IsSubclass(cls.ptr(), nb::type<TensorBase>().ptr()))
        fail(ErrorKind::type, "_make_tensor 'cls': expected a subclass of TensorBase");
    nb::object result = nb::inst_alloc(cls);
    init_tensor(nb::inst_ptr<TensorBase>(result), storage, layout, std::move(dtype), shape, strides, offset,
                std::move(grad_in), std::move(grad_out));
    nb::inst_mark_ready(result);
    return result;
}

/// Takes over where `other` points to; the dtype stays.
void point_to(TensorBase& self, const TensorBase& other)
{
    TensorBase moved = self;
    moved.storage = other.storage;
    moved.strides = other.strides;
    moved.offset = other.offset;
    moved.writable = other.writable;
    check_view(moved);
    moved.grad_in = other.grad_in;
    moved.grad_out = other.grad_out;
    self = std::move(moved);
}

bool is_contiguous(const TensorBase& t)
{
    int64_t step = 1;
    for (size_t i = t.shape.size(); i-- > 0;) {
        if (t.shape[i] == 0)
            return true;
        if (t.shape[i] != 1 && t.strides[i] != step)
            return std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end();
        step *= t.shape[i];
    }
    return true;
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
    if (!nb::inst_ready(self))
        return 0;
    auto* tensor = nb::inst_ptr<TensorBase>(self);
    tensor->grad_in = nb::none();
    tensor->grad_out = nb::none();
    return 0;
}

PyType_Slot tensor_slots[] = {
    {Py_tp_traverse, (void*)traverse_tensor}, {Py_tp_clear, (void*)clear_tensor}, {0, nullptr}};

} // namespace

BufferUsage usage_of(const TensorBase& self)
{
    const BufferDesc& desc = self.storage->desc();
    return without_flags(desc.usage, BufferUsage::copy_source | BufferUsage::copy_destination) | desc.asked_copies;
}

void bind_tensor(nb::module_& m)
{
    nb::class_<TensorBase> cls(m, "TensorBase", nb::type_slots(tensor_slots),
                               "A view of a buffer: element layout, shape, strides and offset in elements, gradients.");
    cls.def("__init__", &init_tensor, nb::arg("storage"), nb::arg("layout"), nb::arg("dtype"), nb::arg("shape"),
            nb::arg("strides").none(), nb::arg("offset"), nb::arg("grad_in").none(), nb::arg("grad_out").none())
        .def_prop_ro(
            "storage", [](const TensorBase& self) { return self.storage; }, "The Buffer.")
        .def_prop_ro(
            "memory", [](const TensorBase& self) { return self.storage; }, "Same as `storage`.")
        .def_prop_ro(
            "device", [](const TensorBase& self) { return ref<Device>(self.storage->frontend()); },
            nb::sig("def device(self) -> slangpy.device.Device"))
        .def_prop_ro("usage", &usage_of,
                     "What the storage was made for; the copies that every buffer allows only where named.")
        .def_prop_ro("memory_type", [](const TensorBase& self) { return self.storage->desc().memory_type; })
        .def_prop_ro(
            "layout", [](const TensorBase& self) { return self.layout; }, "Element layout in the buffer.")
        .def_prop_ro(
            "dtype", [](const TensorBase& self) { return self.dtype; }, "Slang type of the elements.")
        .def_prop_ro(
            "element_type", [](const TensorBase& self) { return self.dtype; }, "Same as `dtype`.")
        .def_prop_ro("shape", [](const TensorBase& self) { return self.shape; })
        .def_prop_ro(
            "strides", [](const TensorBase& self) { return self.strides; }, "Elements from one index to the next.")
        .def_ro("offset", &TensorBase::offset, "Elements from the start of the storage to the first element.")
        .def_prop_ro("ndim", [](const TensorBase& self) { return self.shape.size(); })
        .def_prop_ro("element_count", [](const TensorBase& self) { return self.shape.element_count(); })
        .def_prop_ro(
            "nbytes", [](const TensorBase& self) { return self.shape.element_count() * int64_t(self.layout->stride); },
            "Bytes of the view's elements on the device.")
        .def_rw("grad_in", &TensorBase::grad_in, nb::arg().none())
        .def_rw("grad_out", &TensorBase::grad_out, nb::arg().none())
        .def("is_contiguous", &is_contiguous, "True when the elements lie in row-major order without gaps.")
        .def_prop_ro("device_address", &TensorBase::address, "Address of the first element of the view.")
        .def("_point_to", &point_to)
        .def_prop_ro("_on_host", [](const TensorBase& self) { return self.storage->device()->info().on_host; });
    bind_tensor_index(cls);
    m.def("_check_element", &check_element, nb::arg("layout"));
    m.def("_make_tensor", &make_tensor, nb::arg("cls"), nb::arg("storage"), nb::arg("layout"), nb::arg("dtype"),
          nb::arg("shape"), nb::arg("strides").none(), nb::arg("offset"), nb::arg("grad_in").none(),
          nb::arg("grad_out").none());
}

} // namespace spy
