// Kernels that are launched by hand.
#include "python/call/bindings.h" // first

#include "call/raw/launch.h"
#include "core/class_name.h"
#include "device/value_io.h"
#include "values/classes.h"
#include "python/collect.h"
#include "values/writer.h"

namespace spy {

template <typename Visit>
int visit_objects(RawLaunch& launch, const Visit& visit)
{
    for (nb::object& object : launch.packed.keep)
        if (const int answer = visit(object))
            return answer;
    return visit(launch.kernel);
}
inline void clear_objects(RawLaunch& launch)
{
    auto old = std::move(launch.packed.keep); // the kernel stays: it leads to no launch
    launch.packed.keep.reset(0);
}

namespace {

PyObject* vector_call(PyObject* self, PyObject* const* values, size_t count, PyObject* names)
{
    try {
        return call_raw(self, {values, size_t(PyVectorcall_NARGS(count)), names}).release().ptr();
    } catch (...) {
        set_error_in_flight();
        return nullptr;
    }
}

/// A tuple and a dict as vector calls give them.
struct Spread {
    Spread(PyObject* args, PyObject* kwargs)
        : values(&PyTuple_GET_ITEM(args, 0), &PyTuple_GET_ITEM(args, 0) + PyTuple_GET_SIZE(args)),
          count(values.size())
    {
        nb::list keys;
        PyObject *name = nullptr, *value = nullptr;
        for (Py_ssize_t position = 0; kwargs && PyDict_Next(kwargs, &position, &name, &value);) {
            keys.append(nb::handle(name));
            values.push_back(value);
        }
        names = nb::tuple(keys);
    }
    GivenArguments get() const { return {values.data(), count, names.ptr()}; }

    std::vector<PyObject*> values;
    size_t count;
    nb::object names;
};

PyObject* raw_slot(PyObject* self, PyObject* args, PyObject* kwargs)
{
    try {
        if (!nb::inst_ready(self))
            fail_unmade(self);
        return call_raw(self, Spread(args, kwargs).get()).release().ptr();
    } catch (...) {
        set_error_in_flight();
        return nullptr;
    }
}
PyType_Slot raw_slots[] = {{Py_tp_call, reinterpret_cast<void*>(&raw_slot)}, {0, nullptr}};

/// From the first instance of a class on, calls of its instances need no tuple and no dict for the arguments.
void take_vector_calls(PyObject* kernel, RawKernel& raw)
{
    PyTypeObject* const type = Py_TYPE(kernel);
    const Py_ssize_t offset = reinterpret_cast<char*>(&raw.call) - reinterpret_cast<char*>(kernel);
    if (offset <= 0 || offset + Py_ssize_t(sizeof(raw.call)) > type->tp_basicsize ||
        (type->tp_vectorcall_offset && type->tp_vectorcall_offset != offset))
        return; // it lies elsewhere: the call slot does the same
    raw.call = vector_call;
    type->tp_vectorcall_offset = offset;
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
}

PackKind kind_from(const std::string& name)
{
    if (name == "nothing")
        return PackKind::nothing;
    if (name == "number")
        return PackKind::number;
    if (name == "array")
        return PackKind::array;
    if (name == "struct")
        return PackKind::structure;
    if (name == "view")
        return PackKind::view;
    if (name == "pair")
        return PackKind::pair;
    fail_value("RawKernel: no kind of parameter '", name, "'");
}

nb::object interned(nb::handle name)
{
    PyObject* text = nb::borrow(name).release().ptr();
    PyUnicode_InternInPlace(&text);
    return nb::steal(text);
}

/// (kind, scalar, offset, size, count, align, inner sizes, parts, names of fields)
PackType type_from(nb::handle plain)
{
    const auto items = nb::cast<nb::tuple>(plain);
    PackType type;
    type.kind = kind_from(nb::cast<std::string>(items[0]));
    type.scalar = scalar_from_slang_name(nb::cast<std::string>(items[1]));
    type.offset = nb::cast<uint32_t>(items[2]);
    type.size = nb::cast<uint32_t>(items[3]);
    type.count = nb::cast<uint32_t>(items[4]);
    type.align = nb::cast<uint32_t>(items[5]);
    for (nb::handle size : nb::borrow<nb::tuple>(items[6]))
        type.inner.push_back(nb::cast<uint32_t>(size));
    for (nb::handle part : nb::borrow<nb::tuple>(items[7]))
        type.parts.push_back(type_from(part));
    for (nb::handle name : nb::borrow<nb::tuple>(items[8]))
        type.names.push_back(interned(name));
    return type;
}

void init_kernel(nb::pointer_and_handle<RawKernel> made, std::string label, nb::object parameters, uint32_t size,
                 bool is_derivative)
{
    RawKernel* const self = new (made.p) RawKernel();
    take_vector_calls(made.h.ptr(), *self);
    self->label = std::move(label);
    self->size = size;
    self->is_derivative = is_derivative;
    self->is_plain = !parameters.is_none();
    if (!self->is_plain)
        return;
    for (nb::handle item : nb::cast<nb::tuple>(parameters)) {
        const auto parts = nb::cast<nb::tuple>(item);
        PackParameter parameter{type_from(parts[2]), interned(parts[0]), interned(parts[1]), {}};
        if (!nb::handle(parts[3]).is_none())
            parameter.usual = nb::object(parts[3]);
        self->parameters.push_back(std::move(parameter));
    }
}

void init_launch(RawLaunch* self, nb::object kernel, nb::tuple place, nb::bytes parameters, nb::list keep)
{
    instance_of<RawKernel>(kernel, "a kernel of loadModule");
    RawLaunch* const launch = new (self) RawLaunch(std::move(kernel));
    Packed& packed = launch->packed;
    packed.place.type = nb::cast<std::string>(place[0]) == "cuda" ? 2 : 1;
    packed.place.index = nb::cast<int32_t>(place[1]);
    packed.bytes.reset(raw_header + parameters.size());
    std::memcpy(packed.bytes.data() + raw_header, parameters.data(), parameters.size());
    for (nb::handle item : keep) {
        const auto parts = nb::cast<nb::tuple>(item);
        const nb::object value = parts[0];
        PackedView view;
        if (class_of(value.ptr()).value_class == ValueClass::torch) {
            TorchTensor tensor;
            read_torch_memory(value.ptr(), tensor);
            view.place = {tensor.address, tensor.needed};
        }
        packed.keep.push_back(value);
        packed.views.push_back(view);
        packed.names.push_back(nb::cast<std::string>(parts[1]));
    }
}

size_t rank_of(nb::handle sizes)
{
    return PySequence_Check(sizes.ptr()) ? size_t(std::max<Py_ssize_t>(PySequence_Size(sizes.ptr()), 1)) : 1;
}

void bind_launch(nb::module_& m)
{
    nb::class_<RawLaunch>(m, "Launchable", nb::type_slots(CollectedSlots<RawLaunch>::slots),
                          "Arguments of a kernel, ready to be launched, more than once if need be.")
        .def("__init__", &init_launch, nb::arg("kernel"), nb::arg("place"), nb::arg("parameters"), nb::arg("keep"))
        .def(
            "launchRaw",
            [](RawLaunch& self, nb::handle block, nb::handle grid, nb::handle shared, nb::handle stream) {
                self.is_launched = true;
                const Sizes threads = raw_sizes(self, "blockSize", block, 1);
                run_raw(self, threads, raw_sizes(self, "gridSize", grid, 0), shared, stream);
            },
            nb::arg("blockSize") = nb::none(), nb::arg("gridSize") = nb::none(), nb::arg("sharedMem") = 0,
            nb::arg("stream") = nb::none(),
            "blockSize: threads of a block; gridSize: blocks; both as three ints in x, y and z (or fewer, or one). "
            "Returns at once on CUDA. stream: an int handle or a torch stream instead of torch's current one.")
        .def(
            "launchTotal",
            [](RawLaunch& self, nb::handle block, nb::handle total) {
                self.is_launched = true;
                const Sizes threads = raw_sizes(self, "blockSize", block, 1);
                const Sizes grid = raw_blocks(raw_sizes(self, "totalSize", total, 0), threads);
                run_raw(self, threads, grid, nb::int_(0), nb::none());
            },
            nb::arg("blockSize") = nb::none(), nb::arg("totalSize") = nb::none(),
            "As many blocks as make up `totalSize` threads in each direction.")
        .def(
            "launch",
            [](RawLaunch& self, nb::handle threads, nb::handle block, nb::handle stream) {
                self.is_launched = true;
                const Sizes total = raw_sizes(self, "threads", threads, 0);
                const Sizes size = block.is_none() ? raw_block(rank_of(threads)) : raw_sizes(self, "block", block, 1);
                run_raw(self, size, raw_blocks(total, size), nb::int_(0), stream);
            },
            nb::arg("threads").none(), nb::arg("block") = nb::none(), nb::arg("stream") = nb::none(),
            "`threads` threads in up to three directions, rounded up to whole blocks.")
        .def(
            "autoLaunch",
            [](RawLaunch& self, nb::handle total) {
                self.is_launched = true;
                const Sizes threads = raw_sizes(self, "totalSize", total, 0);
                if (threads[1] != 1 || threads[2] != 1)
                    fail_value(self.get().label, ": 'totalSize' must be one number of threads, got ",
                               nb::repr(total).c_str());
                const Sizes block = raw_block(1);
                run_raw(self, block, raw_blocks(threads, block), nb::int_(0), nb::none());
            },
            nb::arg("totalSize"), "`totalSize` threads in one direction, in blocks of a size that suits the device.")
        .def_prop_ro("_parameters",
                     [](const RawLaunch& self) {
                         const auto& bytes = self.packed.bytes;
                         return nb::bytes(bytes.data() + raw_header, bytes.size() - raw_header);
                     })
        .def("__repr__", [](const RawLaunch& self) {
            return cat("<", self.get().label, " with its arguments, for launchRaw(blockSize, gridSize) on ",
                       self.packed.place.type == 2 ? "cuda" : "cpu", ":", self.packed.place.index, ">");
        });
}

} // namespace

void bind_raw(nb::module_& m)
{
    nb::class_<RawKernel>(m, "RawKernel", nb::type_slots(raw_slots), "Native half of the kernels of loadModule.")
        .def("__init__", &init_kernel, nb::arg("label"), nb::arg("parameters").none(), nb::arg("size"),
             nb::arg("is_derivative"));
    bind_launch(m);
    m.def(
        "_pack_plain",
        [](nb::handle kernel, nb::tuple args, nb::dict kwargs) -> nb::object {
            RawKernel& raw = instance_of<RawKernel>(kernel, "a kernel of loadModule");
            Packed packed;
            if (!raw.is_plain || !pack_raw(kernel, Spread(args.ptr(), kwargs.ptr()).get(), packed))
                return nb::none();
            return nb::bytes(packed.bytes.data() + raw_header, packed.bytes.size() - raw_header);
        },
        nb::arg("kernel"), nb::arg("args"), nb::arg("kwargs"),
        "The bytes of a call's parameters; None for arguments that Python must convert.");
    m.def(
        "_number_bytes",
        [](const std::string& scalar, nb::handle value, const std::string& where) -> nb::object {
            const ScalarType type = scalar_from_slang_name(scalar);
            Number number;
            uint8_t bytes[8] = {};
            if (type == ScalarType::none || !number_from_python(value.ptr(), number) ||
                store_number(type, 1, bytes, number) != StoreResult::ok)
                return nb::none();
            if (became_infinite(type, bytes, number))
                tell_infinite(type, ValuePath{nullptr, where, 0});
            return nb::bytes(bytes, scalar_info(type).size);
        },
        nb::arg("scalar"), nb::arg("value"), nb::arg("where") = "",
        "A number as a scalar of Slang's; None where it is none.");
}

} // namespace spy
