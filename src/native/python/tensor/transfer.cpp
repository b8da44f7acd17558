// Between the elements of a tensor view and packed host arrays: strides, padding, and the size of bool.
#include "core/class_name.h"
#include "values/classes.h"
#include "values/numpy.h"
#include "python/tensor/bindings.h"

#include "device/resource.h"
#include "device/value_io.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

namespace spy {

namespace {

/// One dimension of a copy; steps in bytes.
struct Axis {
    int64_t size, device, host;
};

enum class Conversion : uint8_t { none, bool4 };

/// A copy between laid-out bytes (device side) and a host array, scalar by scalar or in whole elements.
struct Transfer {
    std::vector<Axis> axes;
    int64_t item = 0;      ///< bytes moved at once on the device side
    int64_t host_item = 0; ///< the same on the host side; differs for four-byte bools
    Conversion conversion = Conversion::none;
    bool to_device = false;
};

/// Drops axes of size 1 and joins axes that are one run on both sides.
void simplify(Transfer& t)
{
    std::vector<Axis> axes;
    for (const Axis& axis : t.axes) {
        if (axis.size == 1)
            continue;
        if (!axes.empty() && axes.back().device == axis.device * axis.size && axes.back().host == axis.host * axis.size)
            axes.back() = {axes.back().size * axis.size, axis.device, axis.host};
        else
            axes.push_back(axis);
    }
    if (t.conversion == Conversion::none && !axes.empty() && axes.back().device == t.item &&
        axes.back().host == t.item) {
        t.item *= axes.back().size;
        t.host_item = t.item;
        axes.pop_back();
    }
    t.axes = std::move(axes);
}

template <int64_t N>
void copy_items(uint8_t* dst, int64_t dst_step, const uint8_t* src, int64_t src_step, int64_t count)
{
    for (int64_t i = 0; i < count; ++i, dst += dst_step, src += src_step)
        std::memcpy(dst, src, N);
}

void copy_line(const Transfer& t, const Axis& axis, uint8_t* device, uint8_t* host)
{
    if (t.conversion == Conversion::bool4) {
        for (int64_t i = 0; i < axis.size; ++i, device += axis.device, host += axis.host) {
            if (t.to_device)
                store_raw<uint32_t>(device, *host != 0);
            else
                *host = load_raw<uint32_t>(device) != 0;
        }
        return;
    }
    uint8_t* dst = t.to_device ? device : host;
    const uint8_t* src = t.to_device ? host : device;
    const int64_t dst_step = t.to_device ? axis.device : axis.host, src_step = t.to_device ? axis.host : axis.device;
    switch (t.item) {
    case 1: return copy_items<1>(dst, dst_step, src, src_step, axis.size);
    case 2: return copy_items<2>(dst, dst_step, src, src_step, axis.size);
    case 4: return copy_items<4>(dst, dst_step, src, src_step, axis.size);
    case 8: return copy_items<8>(dst, dst_step, src, src_step, axis.size);
    case 12: return copy_items<12>(dst, dst_step, src, src_step, axis.size);
    case 16: return copy_items<16>(dst, dst_step, src, src_step, axis.size);
    default:
        for (int64_t i = 0; i < axis.size; ++i, dst += dst_step, src += src_step)
            std::memcpy(dst, src, size_t(t.item));
    }
}

void copy_axes(const Transfer& t, size_t first, uint8_t* device, uint8_t* host)
{
    if (first + 1 >= t.axes.size())
        return copy_line(t, first < t.axes.size() ? t.axes[first] : Axis{1, 0, 0}, device, host);
    const Axis& axis = t.axes[first];
    for (int64_t i = 0; i < axis.size; ++i)
        copy_axes(t, first + 1, device + i * axis.device, host + i * axis.host);
}

/// True when the axes from `first` cover every byte of their range once.
bool is_dense(const Transfer& t, size_t first)
{
    std::vector<std::pair<int64_t, int64_t>> steps;
    for (size_t i = first; i < t.axes.size(); ++i)
        steps.emplace_back(std::abs(t.axes[i].device), t.axes[i].size);
    std::sort(steps.begin(), steps.end());
    int64_t expected = t.item;
    for (auto [step, size] : steps) {
        if (step != expected)
            return false;
        expected *= size;
    }
    return true;
}

/// Through the device's read and write, for memory that the host cannot touch.
void copy_staged(const Transfer& t, size_t first, Buffer* buffer, int64_t offset, uint8_t* host)
{
    if (first == t.axes.size() && t.conversion == Conversion::none) {
        if (t.to_device)
            write_buffer(buffer, uint64_t(offset), host, uint64_t(t.item));
        else
            read_buffer(buffer, uint64_t(offset), host, uint64_t(t.item));
        return;
    }
    int64_t low = offset, high = offset + t.item, payload = t.item;
    for (size_t i = first; i < t.axes.size(); ++i) {
        const Axis& axis = t.axes[i];
        (axis.device < 0 ? low : high) += (axis.size - 1) * axis.device;
        payload *= axis.size;
    }
    const int64_t span = high - low;
    // Few distant parts: fetching all between them would cost more than several transfers.
    if (first < t.axes.size() && t.axes[first].size <= 4096 && span > (1 << 20) && span / 8 > payload) {
        const Axis& axis = t.axes[first];
        for (int64_t i = 0; i < axis.size; ++i)
            copy_staged(t, first + 1, buffer, offset + i * axis.device, host + i * axis.host);
        return;
    }
    std::unique_ptr<uint8_t[]> staging(new uint8_t[size_t(span)]);
    if (!t.to_device || !is_dense(t, first))
        read_buffer(buffer, uint64_t(low), staging.get(), uint64_t(span));
    copy_axes(t, first, staging.get() + (offset - low), host);
    if (t.to_device)
        write_buffer(buffer, uint64_t(low), staging.get(), uint64_t(span));
}

void run(const TensorBase& tensor, Transfer t, uint8_t* host)
{
    Buffer* buffer = tensor.storage.get();
    check_open(buffer->frontend());
    for (const Axis& axis : t.axes)
        if (axis.size == 0)
            return;
    simplify(t);
    const int64_t offset = tensor.offset * int64_t(tensor.layout->stride);
    const Device::Use use(*buffer->frontend()); // another thread that closes the device waits for the copy
    GilRelease release;
    if (buffer->device()->info().on_host)
        copy_axes(t, 0, static_cast<uint8_t*>(buffer->host_pointer()) + offset, host);
    else
        copy_staged(t, 0, buffer, offset, host);
}

/// Axes over the view's dimensions and the element's; `host` strides are filled in by the caller.
Transfer transfer_of(const TensorBase& tensor, bool to_device)
{
    Transfer t;
    t.to_device = to_device;
    const int64_t stride = int64_t(tensor.layout->stride);
    for (size_t i = 0; i < tensor.shape.size(); ++i)
        t.axes.push_back({tensor.shape[i], tensor.strides[i] * stride, 0});
    ScalarGrid grid;
    if (!scalar_grid(*tensor.layout, grid)) {
        t.axes.push_back({stride, 1, 0});
        t.item = t.host_item = 1;
        return t;
    }
    for (uint32_t i = 0; i < grid.rank; ++i)
        t.axes.push_back({grid.shape[i], grid.stride[i], 0});
    t.item = t.host_item = grid.scalar_bytes;
    if (grid.scalar == ScalarType::bool_ && grid.scalar_bytes == 4) {
        t.conversion = Conversion::bool4;
        t.host_item = 1;
    }
    return t;
}

/// `array` must have the view's dimensions followed by the element's, with items of the host's size.
void transfer(const TensorBase& tensor, nb::handle array, bool to_device)
{
    NumpyArray host;
    if (!read_numpy(array.ptr(), host))
        fail(ErrorKind::type, "a Tensor is read from and written to a NumPy array, got ", class_name(array.ptr()));
    Transfer t = transfer_of(tensor, to_device);
    bool matches = size_t(host.ndim) == t.axes.size() && int64_t(scalar_info(host.scalar).size) == t.host_item &&
        !host.swapped && (to_device || host.writable);
    for (size_t i = 0; matches && i < t.axes.size(); ++i) {
        matches = host.sizes[i] == t.axes[i].size;
        t.axes[i].host = host.strides[i];
    }
    if (!matches)
        fail_value("the array's dimensions and item size are not those of a tensor of shape ", tensor.shape.str(),
                   " and element type ", tensor.layout->full_name,
                   ", or it is read-only: pass one like tensor.to_numpy()");
    run(tensor, std::move(t), static_cast<uint8_t*>(host.data));
}

/// Writes the same element everywhere.
void fill_tensor(const TensorBase& tensor, nb::bytes element)
{
    const int64_t stride = int64_t(tensor.layout->stride);
    if (int64_t(element.size()) != stride)
        fail_value("a fill element of ", element.size(), " bytes does not match elements of ", stride, " bytes (",
                   tensor.layout->full_name, ")");
    Transfer t;
    t.to_device = true;
    t.item = t.host_item = stride;
    for (size_t i = 0; i < tensor.shape.size(); ++i)
        t.axes.push_back({tensor.shape[i], tensor.strides[i] * stride, 0});
    std::vector<uint8_t> bytes(element.c_str(), element.c_str() + element.size());
    run(tensor, std::move(t), bytes.data());
}

/// Raw bytes of the device layout at the start of a contiguous view.
void write_bytes(const TensorBase& tensor, nb::handle array)
{
    NumpyArray host;
    if (!read_numpy(array.ptr(), host) || host.ndim != 1 || scalar_info(host.scalar).size != 1 ||
        (host.sizes[0] > 1 && host.strides[0] != 1))
        fail(ErrorKind::type, "the bytes of a Tensor are a contiguous 1-D array of uint8, got ",
             class_name(array.ptr()), "; pass numpy.ascontiguousarray(a).reshape(-1).view(numpy.uint8)");
    const uint64_t limit = uint64_t(tensor.shape.element_count()) * tensor.layout->stride;
    if (uint64_t(host.sizes[0]) > limit)
        fail_value("Numpy array is larger than the tensor (", host.sizes[0], " > ", limit, " bytes)");
    if (host.sizes[0] == 0)
        return;
    GilRelease release;
    write_buffer(tensor.storage.get(), uint64_t(tensor.offset) * tensor.layout->stride, host.data,
                 uint64_t(host.sizes[0]));
}

/// (Slang name of the scalar, its bytes on the device, element shape), or None for types not made of scalars alone.
nb::object element_format(const TypeLayout& layout)
{
    ScalarGrid grid;
    if (!scalar_grid(layout, grid) || grid.scalar == ScalarType::none)
        return nb::none();
    nb::list shape;
    for (uint32_t i = 0; i < grid.rank; ++i)
        shape.append(grid.shape[i]);
    return nb::make_tuple(std::string(scalar_info(grid.scalar).slang_name), grid.scalar_bytes, nb::tuple(shape));
}

} // namespace

void bind_tensor_transfer(nb::module_& m)
{
    m.def(
        "_read_tensor", [](const TensorBase& t, nb::handle array) { transfer(t, array, false); }, nb::arg("tensor"),
        nb::arg("array"), "Fills an array of the view's shape + element shape.");
    m.def(
        "_write_tensor", [](const TensorBase& t, nb::handle array) { transfer(t, array, true); }, nb::arg("tensor"),
        nb::arg("array"), "Writes such an array, of any strides, into the view.");
    m.def("_fill_tensor", &fill_tensor, nb::arg("tensor"), nb::arg("element"),
          "Writes the same element bytes everywhere.");
    m.def("_write_tensor_bytes", &write_bytes, nb::arg("tensor"), nb::arg("array"));
    m.def("_element_format", &element_format, nb::arg("layout"));
    m.def(
        "_refuse_masked",
        [](nb::handle array) {
            if (class_of(array.ptr()).value_class == ValueClass::masked)
                refuse_masked(array.ptr());
        },
        nb::arg("array").none(),
        "ValueError for a numpy.ma.MaskedArray with masked elements; any other object will do.");
    m.def(
        "_scalar_layout",
        [](const std::string& name, uint32_t bool_bytes) -> ref<TypeLayout> {
            const ScalarType scalar = scalar_from_slang_name(name);
            if (scalar == ScalarType::none || scalar == ScalarType::void_)
                return nullptr;
            ref<TypeLayout> layout = new TypeLayout();
            layout->kind = TypeKind::scalar;
            layout->scalar = scalar;
            layout->name = layout->full_name = std::string(scalar_info(scalar).slang_name);
            layout->rows = layout->cols = 1;
            layout->size = scalar == ScalarType::bool_ ? bool_bytes : scalar_info(scalar).size;
            layout->stride = layout->alignment = layout->size;
            return layout;
        },
        nb::arg("name"), nb::arg("bool_bytes"),
        "Layout of a scalar type by name, without the compiler; None for other names.");
}

} // namespace spy
