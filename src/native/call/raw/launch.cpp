#include "call/raw/launch.h"

#include "core/gil.h"
#include "core/python_names.h"
#include "device/resource.h"

#include <algorithm>
#include <cstring>

namespace spy {

namespace {

constexpr Sizes most_threads{1024, 1024, 64}, most_blocks{0x7fffffff, 65535, 65535};
constexpr uint32_t most_in_block = 1024;

nb::tuple place_tuple(TensorPlace place)
{
    return nb::make_tuple(place.type == 2 ? "cuda" : "cpu", place.type == 2 ? place.index : 0);
}

uint64_t spare_address(void* self, TensorPlace place)
{
    nb::handle kernel(static_cast<PyObject*>(self));
    auto& spares = nb::inst_ptr<RawKernel>(kernel)->spares;
    for (auto& [known, address] : spares)
        if (known == place)
            return address;
    const auto address = nb::cast<uint64_t>(kernel.attr(in_python::spare.name)(place_tuple(place)));
    spares.emplace_back(place, address);
    return address;
}

/// The compiled kernel for the place of the arguments.
const RawKernel::Target& target(const RawLaunch& launch)
{
    auto& targets = nb::inst_ptr<RawKernel>(launch.kernel)->targets;
    for (auto& known : targets)
        if (known.place == launch.packed.place && !known.device->is_closed())
            return known;
    const auto made = nb::cast<nb::tuple>(
        launch.kernel.attr(in_python::prepare.name)(place_tuple(launch.packed.place)));
    std::erase_if(targets, [&](const RawKernel::Target& known) { return known.place == launch.packed.place; });
    targets.push_back({launch.packed.place, nb::cast<Device*>(made[0]), nb::cast<Kernel*>(made[1])});
    return targets.back();
}

std::string text_of(const Sizes& sizes) { return cat("(", sizes[0], ", ", sizes[1], ", ", sizes[2], ")"); }

void check_block(const std::string& label, const Sizes& block)
{
    const uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
    if (block[0] <= most_threads[0] && block[1] <= most_threads[1] && block[2] <= most_threads[2] &&
        threads <= most_in_block)
        return;
    fail_value(label, ": 'blockSize' ", text_of(block), " has ", threads, " threads; at most ", most_in_block, ", and ",
               text_of(most_threads), " in each direction; make it smaller");
}

void check_grid(const std::string& label, const Sizes& grid)
{
    for (size_t i = 0; i < 3; ++i)
        if (grid[i] > most_blocks[i])
            fail_value(label, ": 'gridSize' ", text_of(grid), " is more than ", text_of(most_blocks),
                       "; make the blocks larger or launch more than once");
}

uint32_t shared_bytes(const std::string& label, nb::handle given)
{
    const long long bytes = PyLong_Check(given.ptr()) && !PyBool_Check(given.ptr()) ? PyLong_AsLongLong(given.ptr())
                                                                                    : -1;
    if (bytes < 0 || bytes > 0x7fffffff) {
        PyErr_Clear(); // more than 64 bits
        fail_value(label, ": 'sharedMem' must be a number of bytes, got ", nb::repr(given).c_str());
    }
    return uint32_t(bytes);
}

/// The handle of a stream that a caller names.
uint64_t named_stream(const RawLaunch& launch, nb::handle given)
{
    const nb::object handle = nb::getattr(given, "cuda_stream", given);
    const nb::object index = nb::steal(PyNumber_Index(handle.ptr()));
    uint64_t value = 0;
    if (!index.is_valid() || !nb::try_cast(index, value)) {
        PyErr_Clear(); // said better here
        fail(ErrorKind::type, launch.get().label, ": 'stream' must be an int handle, a torch stream or None, got ",
             nb::repr(given).c_str());
    }
    return value;
}

/// The stream that a caller names, or torch's current one.
NativeHandle stream_of(const RawLaunch& launch, nb::handle given)
{
    uint64_t value = 0;
    if (!given.is_none()) {
        value = named_stream(launch, given);
    } else if (launch.packed.has_torch) {
        TorchTensor on;
        on.device_type = 2;
        on.device_index = launch.packed.place.index;
        value = torch_stream(launch.packed.keep.data()->ptr(), on);
    } else {
        value = nb::cast<uint64_t>(launch.kernel.attr(in_python::stream.name)(launch.packed.place.index));
    }
    return {NativeHandleType::CUstream, value};
}

/// In front of the parameters of the CPU's kernels (SpyLaunch of kernels_host.h).
struct Header {
    uint32_t block[3], grid[3];
    uint32_t* failed = nullptr;
    uint64_t unused[4] = {};
};
static_assert(sizeof(Header) == raw_header);

void run_host(const RawLaunch& launch, const RawKernel::Target& target, const Sizes& block, const Sizes& grid)
{
    auto bytes = launch.packed.bytes; // other threads may launch the same arguments
    uint32_t failed = 0;
    Header header;
    std::copy(block.begin(), block.end(), header.block);
    std::copy(grid.begin(), grid.end(), header.grid);
    header.failed = &failed;
    std::memcpy(bytes.data(), &header, sizeof(header));
    const std::span<const uint8_t> scopes[2] = {{}, {bytes.data(), bytes.size()}};
    LaunchDesc desc;
    desc.kernel = target.kernel.get();
    desc.group_count = grid;
    desc.arguments.scopes = scopes;
    {
        GilRelease release;
        target.device->launch(desc);
    }
    if (failed)
        fail_runtime(launch.get().label,
                     ": the threads of a block wait for each other at different places (a barrier "
                     "or a warp function that only some of them reach), or there is no memory for them");
}

} // namespace

bool pack_raw(nb::handle self, const GivenArguments& given, Packed& out)
{
    const RawKernel& kernel = *nb::inst_ptr<RawKernel>(self);
    const Packing packing{kernel.parameters, raw_header, kernel.size, kernel.is_derivative, self.ptr(), spare_address};
    try {
        return pack_arguments(packing, given, out);
    } catch (const Error&) { // of reading a tensor: Python says what it is
        return false;
    } catch (const TracedTensor&) {
        return false;
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception))
            throw;
        return false;
    }
}

nb::object call_raw(nb::handle self, const GivenArguments& given)
{
    const RawKernel& kernel = *nb::inst_ptr<RawKernel>(self);
    if (kernel.is_plain) {
        static const nb::handle type = nb::type<RawLaunch>();
        nb::object made = nb::inst_alloc(type);
        RawLaunch* launch = new (nb::inst_ptr<RawLaunch>(made)) RawLaunch(nb::borrow(self));
        nb::inst_mark_ready(made);
        const Packed& packed = launch->packed;
        launch->is_launched = true; // no warning if it comes to nothing
        if (pack_raw(self, given, launch->packed) && packed.place.type &&
            (packed.place.type == 1 || kernel.size <= raw_most_bytes)) {
            launch->is_launched = false;
            return made;
        }
    }
    nb::list args;
    nb::dict kwargs;
    for (size_t i = 0; i < given.count; ++i)
        args.append(nb::handle(given.values[i]));
    const Py_ssize_t named = given.names ? PyTuple_GET_SIZE(given.names) : 0;
    for (Py_ssize_t i = 0; i < named; ++i)
        kwargs[nb::handle(PyTuple_GET_ITEM(given.names, i))] = nb::handle(given.values[given.count + size_t(i)]);
    return self.attr(in_python::convert.name)(nb::tuple(args), kwargs);
}

RawLaunch::~RawLaunch()
{
    if (is_launched || !Py_IsInitialized())
        return;
    PyObject *type, *value, *trace; // an error that is under way stays as it is
    PyErr_Fetch(&type, &value, &trace);
    const std::string text = get().label + ": called, but never launched; call .launchRaw(blockSize=..., gridSize=...)";
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) < 0)
        PyErr_WriteUnraisable(kernel.ptr()); // warnings are errors, but nobody is there to catch this one
    PyErr_Restore(type, value, trace);
}

Sizes raw_sizes(const RawLaunch& launch, const char* name, nb::handle value, uint32_t least)
{
    Sizes sizes{1, 1, 1};
    const auto refuse = [&] {
        PyErr_Clear(); // a length or an index that it does not have
        fail_value(launch.get().label, ": '", name, "' must be one to three ints of at least ", least, ", got ",
                   nb::repr(value).c_str());
    };
    const auto read = [&](PyObject* item) -> uint32_t {
        const nb::object index = nb::steal(PyNumber_Index(item));
        const long long size = index.is_valid() ? PyLong_AsLongLong(index.ptr()) : -1;
        if (size < int64_t(least) || PyErr_Occurred())
            refuse();
        return uint32_t(std::min<long long>(size, 0xffffffff));
    };
    if (PyLong_Check(value.ptr())) {
        sizes[0] = read(value.ptr());
        return sizes;
    }
    if (!PySequence_Check(value.ptr())) {
        sizes[0] = read(value.ptr());
        return sizes;
    }
    const nb::object items = nb::steal(PySequence_Fast(value.ptr(), "no sizes"));
    if (!items.is_valid())
        refuse();
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
    if (count < 1 || count > 3)
        refuse();
    for (Py_ssize_t i = 0; i < count; ++i)
        sizes[size_t(i)] = read(PySequence_Fast_GET_ITEM(items.ptr(), i));
    return sizes;
}

Sizes raw_blocks(const Sizes& total, const Sizes& block)
{
    Sizes blocks;
    for (size_t i = 0; i < 3; ++i)
        blocks[i] = uint32_t((uint64_t(total[i]) + block[i] - 1) / block[i]);
    return blocks;
}

Sizes raw_block(size_t rank) { return rank == 1 ? Sizes{256, 1, 1} : rank == 2 ? Sizes{16, 16, 1} : Sizes{8, 8, 4}; }

namespace {

/// The tensors are where they were when the kernel was called.
void check_places(const RawLaunch& launch)
{
    const Packed& packed = launch.packed;
    for (size_t i = 0; i < packed.views.size(); ++i) {
        const PackedView& view = packed.views.data()[i];
        PyObject* const tensor = packed.keep.data()[i].ptr();
        if (is_torch_place(tensor, view.place))
            continue;
        const RawKernel& kernel = launch.get();
        fail_torch_place(tensor, view.place,
                         packed.names.empty()
                             ? cat(kernel.label, ": ", nb::str(kernel.parameters[view.parameter].name).c_str())
                             : packed.names[i]);
    }
}

} // namespace

void run_raw(RawLaunch& launch, const Sizes& block, const Sizes& grid, nb::handle shared_memory, nb::handle stream)
{
    launch.is_launched = true;
    const std::string& label = launch.get().label;
    check_block(label, block);
    check_grid(label, grid);
    const uint32_t shared = shared_bytes(label, shared_memory);
    const RawKernel::Target found = target(launch); // other threads may replace it
    if (!grid[0] || !grid[1] || !grid[2])
        return;
    check_places(launch);
    if (launch.packed.place.type != 2) {
        if (!stream.is_none())
            named_stream(launch, stream); // has no use here
        return run_host(launch, found, block, grid);
    }
    const std::span<const uint8_t> scopes[2] = {
        {}, std::span<const uint8_t>(launch.packed.bytes.data() + raw_header, launch.packed.bytes.size() - raw_header)};
    LaunchDesc desc;
    desc.kernel = found.kernel.get();
    desc.group_count = grid;
    desc.group_size = block;
    desc.arguments.scopes = scopes;
    desc.shared_memory = shared;
    desc.stream = stream_of(launch, stream);
    GilRelease release;
    found.device->launch(desc);
}

} // namespace spy
