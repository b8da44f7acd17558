// Values that are made inside the kernel: what Python says of them, checked.
#include "python/call/bindings.h" // first

#include "python/tensor/bindings.h"

namespace spy {

namespace {

/// Coordinates over a shape: what a Generator of that kind is made from in Python.
struct Grid : Generator { };

constexpr long long most_dims = Shape::max_rank;

std::string text(nb::handle value) { return nb::repr(value).c_str(); }

/// An int that fits 64 bits; `overflow` otherwise.
int64_t integer(nb::handle value, const std::string& what, bool& overflow)
{
    nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) {
        PyErr_Clear();
        fail(ErrorKind::type, what, " must be an integer, got ", text(value));
    }
    int beyond = 0;
    const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &beyond);
    overflow |= beyond != 0;
    return result;
}

void add_entry(Shape& sizes, nb::handle entry, const char* what, bool& overflow)
{
    if (sizes.size() == size_t(most_dims))
        fail_value(what, " has more than ", most_dims, " entries; there are at most ", most_dims, " dimensions");
    const bool is_plain = PyLong_CheckExact(entry.ptr());
    sizes.push_back(integer(entry, is_plain ? std::string() : cat("an entry of ", what), overflow));
}

Shape sizes_from(nb::handle value, const char* what)
{
    Shape sizes;
    bool overflow = false;
    if (PyLong_Check(value.ptr())) {
        add_entry(sizes, value, what, overflow);
    } else if (PyTuple_CheckExact(value.ptr())) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value.ptr()); ++i)
            add_entry(sizes, PyTuple_GET_ITEM(value.ptr(), i), what, overflow);
    } else {
        if (PyUnicode_Check(value.ptr()) || !Py_TYPE(value.ptr())->tp_iter)
            fail(ErrorKind::type, what, " must be an int or a sequence of ints, got ", text(value));
        for (nb::handle entry : nb::iter(value))
            add_entry(sizes, entry, what, overflow);
    }
    if (overflow)
        fail(ErrorKind::overflow, what, ": ", text(value), " has numbers beyond 64 bits");
    if (sizes.empty())
        fail_value(what, " needs at least one entry");
    return sizes;
}

Shape filled(size_t count, int64_t value)
{
    Shape shape;
    for (size_t i = 0; i < count; ++i)
        shape.push_back(value);
    return shape;
}

/// An int n is n dimensions whose sizes the other arguments give.
Shape grid_sizes(nb::handle shape)
{
    if (Py_TYPE(shape.ptr())->tp_iter)
        return sizes_from(shape, "grid shape");
    bool overflow = false;
    const int64_t count = integer(shape, "grid: a number of dimensions", overflow);
    if (overflow || count < 1 || count > most_dims)
        fail_value("grid: a number of dimensions must be from 1 to ", most_dims, ", got ", text(shape));
    return filled(size_t(count), -1);
}

void init_grid(Grid* self, nb::handle shape, nb::handle offset, nb::handle stride)
{
    const Shape sizes = grid_sizes(shape);
    for (int64_t size : sizes)
        if (size < -1)
            fail_value("grid: sizes are 0 or more, or -1 for the size of the other arguments, got ",
                       text(to_tuple(sizes)));
    const Shape starts = offset.is_none() ? filled(sizes.size(), 0) : sizes_from(offset, "grid offset");
    const Shape steps = stride.is_none() ? filled(sizes.size(), 1) : sizes_from(stride, "grid stride");
    if (starts.size() != sizes.size() || steps.size() != sizes.size()) {
        const std::string hint = PyLong_Check(offset.ptr())
            ? cat("; a shape is one tuple: grid((", text(shape), ", ", text(offset), "))")
            : std::string();
        fail_value("grid: offset ", text(to_tuple(starts)), " and stride ", text(to_tuple(steps)),
                   " must have as many entries as shape ", text(to_tuple(sizes)), hint);
    }
    new (self) Grid{{GeneratorKind::grid, int64_t(sizes.size()), sizes, starts, steps}};
}

void init_generator(Generator* self, GeneratorKind kind, nb::handle dims, uint32_t seed, uint32_t warmup, double min,
                    double max, const char* what)
{
    bool overflow = false;
    const int64_t count = integer(dims, what, overflow);
    if (overflow || count == 0 || count < -1 || count > most_dims)
        fail_value(what, " must be from 1 to ", most_dims, ", or -1 for what the parameter takes, got ", text(dims));
    new (self) Generator{kind, count, {}, {}, {}, seed, warmup, min, max};
}

} // namespace

void bind_generators(nb::module_& m)
{
    nb::enum_<GeneratorKind>(m, "GeneratorKind", "What a Generator makes.")
        .value("range", GeneratorKind::range)
        .value("grid", GeneratorKind::grid)
        .value("call_id", GeneratorKind::call_id)
        .value("thread_id", GeneratorKind::thread_id)
        .value("wang_hash", GeneratorKind::wang_hash)
        .value("rand_float", GeneratorKind::rand_float);
    nb::class_<Generator>(m, "Generator", "Values made inside the kernel, one per invocation.")
        .def("__init__", &init_generator, nb::arg("kind"), nb::arg("dims").none(), nb::arg("seed"), nb::arg("warmup"),
             nb::arg("min"), nb::arg("max"), nb::arg("what"))
        .def_ro("kind", &Generator::kind)
        .def_ro("seed", &Generator::seed)
        .def_ro("warmup", &Generator::warmup)
        .def_ro("_dims", &Generator::dims);
    nb::class_<Grid, Generator>(m, "_Grid", "Integer coordinates over a shape.")
        .def("__init__", &init_grid, nb::arg("shape").none() = -1, nb::arg("offset").none() = nb::none(),
             nb::arg("stride").none() = nb::none())
        .def_prop_ro(
            "shape", [](const Grid& self) { return to_tuple(self.shape); },
            nb::sig("def shape(self) -> tuple[int, ...]"), "Sizes of the grid; -1 takes that of the call.")
        .def_prop_ro(
            "offset", [](const Grid& self) { return to_tuple(self.offset); },
            nb::sig("def offset(self) -> tuple[int, ...]"), "What is added to each coordinate.")
        .def_prop_ro(
            "stride", [](const Grid& self) { return to_tuple(self.stride); },
            nb::sig("def stride(self) -> tuple[int, ...]"), "What each coordinate is multiplied by.")
        .def_prop_ro("dims", [](const Grid& self) { return self.shape.size(); }, "Number of dimensions.");
}

} // namespace spy
