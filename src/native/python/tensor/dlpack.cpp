// Tensor memory for other libraries and theirs for us, through DLPack.
#include "python/tensor/bindings.h"

#include "core/class_name.h"
#include "device/resource.h"
#include "device/value_io.h"
#include "values/classes.h"
#include "values/numpy.h"
#include "values/torch.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace spy {

namespace {

[[noreturn]] void fail_buffer(const std::string& message)
{
    PyErr_SetString(PyExc_BufferError, message.c_str());
    throw nb::python_error();
}

/// DLPack's device of memory that can be shared; false for devices without plain pointers.
bool dlpack_device(const Device& device, int& type, int& id)
{
    type = device.info().type == DeviceType::cuda ? nb::device::cuda::value : nb::device::cpu::value;
    id = device.info().type == DeviceType::cuda ? device.info().device_index : 0;
    return device.info().type == DeviceType::cuda || device.info().on_host;
}

/// An object that speaks DLPack over the view. `raw`: structs as trailing bytes.
nb::object export_tensor(const TensorBase& tensor, bool raw)
{
    Buffer* buffer = tensor.storage.get();
    check_open(buffer->frontend());
    int type, id;
    if (!dlpack_device(*buffer->device(), type, id))
        fail_buffer(cat("the memory of ", buffer->device()->info().api_name,
                        " devices has no pointers that other libraries could use; copy it with to_numpy()"));
    ScalarGrid grid;
    if (!scalar_grid(*tensor.layout, grid) || grid.scalar == ScalarType::none) {
        if (!raw)
            fail_buffer(
                cat("DLPack has no type for elements of ", tensor.layout->full_name, "; copy them with to_numpy()"));
        grid = {};
        grid.scalar = ScalarType::uint8;
        grid.scalar_bytes = 1;
        grid.push(int64_t(tensor.layout->stride), 1);
    }
    if (grid.scalar == ScalarType::bool_ && grid.scalar_bytes != 1)
        fail_buffer("DLPack has no four-byte bool; copy the values with to_numpy()");
    const int64_t item = grid.scalar_bytes;
    std::vector<size_t> shape;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
        shape.push_back(size_t(tensor.shape[i]));
        strides.push_back(tensor.strides[i] * int64_t(tensor.layout->stride) / item);
    }
    for (uint32_t i = 0; i < grid.rank; ++i) {
        shape.push_back(size_t(grid.shape[i]));
        strides.push_back(grid.stride[i] / item);
    }
    const ScalarInfo& info = scalar_info(grid.scalar);
    const nb::dlpack::dtype dtype{info.dlpack_code, uint8_t(item * 8), 1};
    buffer->mark_exported();
    nb::object owner = nb::cast(tensor.storage);
    return nb::cast(nb::ndarray<nb::array_api>(reinterpret_cast<void*>(tensor.address()), shape.size(), shape.data(),
                                               owner, strides.data(), dtype, type, id));
}

/// Memory of another library as a buffer; keeps what owns it alive.
class ForeignBuffer final : public Buffer, public MemoryGuard {
public:
    /// `guard` may be null: memory that stays as long as its owner.
    ForeignBuffer(ref<Device> device, BufferDesc desc, void* data, nb::ndarray<> owner, ref<Object> guard)
        : Buffer(std::move(device), std::move(desc)),
          m_data(data),
          m_owner(new nb::ndarray<>(std::move(owner))),
          m_guard(std::move(guard)),
          m_check(dynamic_cast<const MemoryGuard*>(m_guard.get()))
    {
    }
    ~ForeignBuffer() override
    {
        GilAcquire gil;
        if (gil.is_valid())
            delete m_owner;
    }
    uint64_t device_address() const override
    {
        check();
        return reinterpret_cast<uint64_t>(m_data);
    }
    void* host_pointer() const override
    {
        check();
        return device()->info().on_host ? m_data : nullptr;
    }
    void check() const override
    {
        if (m_check)
            m_check->check();
    }

private:
    void* m_data;
    nb::ndarray<>* m_owner; ///< leaked when the interpreter is gone
    ref<Object> m_guard;
    const MemoryGuard* m_check; ///< the guard, or null
};

struct Extent {
    int64_t low = 0, high = 0; ///< elements, relative to the data pointer
};

template <typename Array>
Extent extent_of(const Array& array)
{
    Extent extent;
    for (size_t i = 0; i < array.ndim(); ++i) {
        if (array.shape(i) == 0)
            return {0, 0};
        const int64_t reach = (int64_t(array.shape(i)) - 1) * array.stride(i);
        (reach < 0 ? extent.low : extent.high) += reach;
    }
    return extent;
}

template <typename Array>
ScalarType scalar_of(const Array& array)
{
    const nb::dlpack::dtype dtype = array.dtype();
    const ScalarType scalar = dtype.lanes == 1 ? scalar_from_dlpack(dtype.code, dtype.bits) : ScalarType::none;
    if (scalar == ScalarType::none)
        fail(ErrorKind::type, "from_dlpack: DLPack type code ", int(dtype.code), " with ", int(dtype.bits),
             " bits and ", dtype.lanes, " lanes has no Slang type; convert the array first");
    return scalar;
}

/// (Buffer, scalar name, shape, strides, offset): the array's own memory.
nb::object share(const ref<Device>& device, const nb::ndarray<>& array, ScalarType scalar, ref<Object> guard)
{
    const Extent extent = extent_of(array);
    const int64_t item = scalar_info(scalar).size;
    BufferDesc desc;
    desc.size = uint64_t((extent.high - extent.low + 1) * item);
    desc.struct_size = uint64_t(item);
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_source |
        BufferUsage::copy_destination;
    desc.label = "shared";
    nb::list shape, strides;
    for (size_t i = 0; i < array.ndim(); ++i) {
        shape.append(array.shape(i));
        strides.append(array.stride(i));
    }
    auto* start = static_cast<uint8_t*>(array.data()) + extent.low * item;
    ref<Buffer> buffer = new ForeignBuffer(device->backend(), desc, start, array, std::move(guard));
    buffer->set_frontend(device.get());
    return nb::make_tuple(nb::cast(buffer), std::string(scalar_info(scalar).slang_name), nb::tuple(shape),
                          nb::tuple(strides), -extent.low);
}

/// (NumPy array over the memory, scalar name); types that NumPy lacks as unsigned integers.
template <typename Array>
nb::object as_numpy(const Array& array, ScalarType scalar)
{
    nb::dlpack::dtype dtype = array.dtype();
    if (scalar == ScalarType::bfloat16 || scalar == ScalarType::float8_e4m3 || scalar == ScalarType::float8_e5m2)
        dtype.code = uint8_t(nb::dlpack::dtype_code::UInt);
    std::vector<size_t> shape;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < array.ndim(); ++i) {
        shape.push_back(array.shape(i));
        strides.push_back(array.stride(i));
    }
    nb::capsule owner(new Array(array), [](void* p) noexcept { delete static_cast<Array*>(p); });
    nb::ndarray<nb::numpy, nb::ro> view(array.data(), shape.size(), shape.data(), owner, strides.data(), dtype);
    return nb::make_tuple(nb::cast(view), std::string(scalar_info(scalar).slang_name));
}

/// Storage of torch's can be made smaller while others use it, and so can NumPy's. What the caller's tensor is given
/// later does not matter here: another one over the same storage is watched.
ref<Object> guard_of(nb::handle value, bool is_torch)
{
    if (!is_torch)
        return is_numpy_array(value.ptr())
            ? new ArrayGuard(value.ptr(), "a Tensor over the memory of an array (from_dlpack)")
            : nullptr;
    const nb::object own = value.attr("detach")();
    TorchTensor found;
    read_torch_memory(own.ptr(), found);
    return new TorchGuard(own.ptr(), {found.address, found.needed},
                          "a Tensor over the memory of a torch tensor (from_dlpack)");
}

bool is_host_memory(int device_type)
{
    return device_type == nb::device::cpu::value || device_type == nb::device::cuda_host::value ||
        device_type == nb::device::cuda_managed::value;
}

/// Shared memory (five values), a host array (two values), or None when the memory is another device's.
nb::object import_tensor(ref<Device> device, nb::handle value)
{
    check_open(device.get());
    const bool is_torch = class_of(value.ptr()).value_class == ValueClass::torch;
    if (is_torch)
        check_torch_storage(value, "from_dlpack");
    int type, id;
    const bool can_share = dlpack_device(*device, type, id);
    nb::ndarray<> writable;
    if (nb::try_cast(value, writable) && writable.is_valid()) {
        const ScalarType scalar = scalar_of(writable);
        const bool aligned = reinterpret_cast<uintptr_t>(writable.data()) % scalar_info(scalar).size == 0;
        const bool same_space = writable.device_type() == type &&
            (type == nb::device::cpu::value || writable.device_id() == id);
        if (can_share && same_space && aligned && writable.size() > 0)
            return share(device, writable, scalar, guard_of(value, is_torch));
        return is_host_memory(writable.device_type()) ? as_numpy(writable, scalar) : nb::none();
    }
    nb::ndarray<nb::ro> read_only;
    if (!nb::try_cast(value, read_only) || !read_only.is_valid())
        fail(ErrorKind::type,
             "from_dlpack: expected an array that speaks DLPack (numpy, torch, cupy, jax, ...) or an "
             "unused DLPack capsule, got ",
             class_name(value.ptr()), "; torch tensors that require a gradient must be detached");
    const ScalarType scalar = scalar_of(read_only);
    return is_host_memory(read_only.device_type()) ? as_numpy(read_only, scalar) : nb::none();
}

} // namespace

void bind_tensor_dlpack(nb::module_& m)
{
    m.def("_export_tensor", &export_tensor, nb::arg("tensor"), nb::arg("raw"));
    m.def("_import_tensor", &import_tensor, nb::arg("device"), nb::arg("value"));
    m.def(
        "_dlpack_device",
        [](const TensorBase& tensor) {
            int type, id;
            if (!dlpack_device(*tensor.storage->device(), type, id))
                fail_buffer(cat("the memory of ", tensor.storage->device()->info().api_name,
                                " devices has no pointers that other libraries could use; copy it with to_numpy()"));
            return nb::make_tuple(type, id);
        },
        nb::arg("tensor"));
}

} // namespace spy
