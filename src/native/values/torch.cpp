// torch tensors: what they hold, read through DLPack, torch's own C functions or Python; checks before they are used.
#include "values/torch.h"
#include "core/class_name.h"
#include "core/gil.h"
#include "values/torch_inner.h"

#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace spy {

namespace {

bool force_python = false;

const DLPackExchangeAPI* find_exchange(PyTypeObject* type)
{
    nb::object capsule = nb::getattr(nb::handle((PyObject*)type), "__dlpack_c_exchange_api__", nb::none());
    if (capsule.is_none())
        return nullptr;
    auto* found = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (!found)
        PyErr_Clear(); // a capsule of another kind: tensors are read through Python
    while (found && found->header.version.major > DLPACK_MAJOR_VERSION)
        found = reinterpret_cast<const DLPackExchangeAPI*>(found->header.prev_api);
    return found && found->dltensor_from_py_object_no_sync && found->current_work_stream ? found : nullptr;
}

const DLPackExchangeAPI* exchange_of(PyTypeObject* type)
{
    static std::vector<std::pair<PyTypeObject*, const DLPackExchangeAPI*>>
        known; // a handful: Tensor, Parameter, subclasses
    if (force_python)
        return nullptr;
    for (auto& [known_type, found] : known)
        if (known_type == type)
            return found;
    const DLPackExchangeAPI* found = find_exchange(type);
    Py_INCREF(type); // remembered for the life of the process
    known.emplace_back(type, found);
    return found;
}

nb::module_ torch() { return nb::module_::import_("torch"); }

std::string text_of(nb::handle value) { return nb::str(value).c_str(); }

std::string dtype_text(PyObject* tensor) { return text_of(nb::object(nb::handle(tensor).attr("dtype"))); }

ScalarType scalar_from_torch(PyObject* tensor)
{
    static const std::pair<const char*, ScalarType> names[] = {{"torch.float32", ScalarType::float32},
                                                               {"torch.float64", ScalarType::float64},
                                                               {"torch.float16", ScalarType::float16},
                                                               {"torch.bfloat16", ScalarType::bfloat16},
                                                               {"torch.int8", ScalarType::int8},
                                                               {"torch.int16", ScalarType::int16},
                                                               {"torch.int32", ScalarType::int32},
                                                               {"torch.int64", ScalarType::int64},
                                                               {"torch.uint8", ScalarType::uint8},
                                                               {"torch.uint16", ScalarType::uint16},
                                                               {"torch.uint32", ScalarType::uint32},
                                                               {"torch.uint64", ScalarType::uint64},
                                                               {"torch.bool", ScalarType::bool_},
                                                               {"torch.float8_e4m3fn", ScalarType::float8_e4m3},
                                                               {"torch.float8_e5m2", ScalarType::float8_e5m2}};
    std::string text = dtype_text(tensor);
    for (auto& [name, scalar] : names)
        if (text == name)
            return scalar;
    return ScalarType::none;
}

bool truth(nb::handle object, const char* method)
{
    nb::object answer = nb::getattr(object, method, nb::none());
    if (PyCallable_Check(answer.ptr()))
        answer = answer();
    return answer.ptr() == Py_True;
}

/// torch.export runs Python code on stand-ins for tensors.
bool is_traced(nb::handle tensor)
{
    std::string_view type = class_name(tensor.ptr());
    if (!type.starts_with("Fake") && !type.starts_with("Functional"))
        return false;
    return torch().attr("compiler").attr("is_compiling")().ptr() == Py_True;
}

/// Tensors that have no memory with sizes and strides.
void refuse_special(nb::handle tensor)
{
    nb::module_ functorch = nb::module_::import_("torch._C._functorch");
    if (nb::hasattr(functorch, "is_functorch_wrapped_tensor") &&
        functorch.attr("is_functorch_wrapped_tensor")(tensor).ptr() == Py_True)
        fail(ErrorKind::not_implemented,
             "transforms of torch.func (vmap, grad, jvp) do not reach into Slang functions; "
             "use torch.autograd");
    const char* type = class_name(tensor.ptr());
    if (truth(tensor, "is_nested"))
        fail(ErrorKind::type, "Unsupported torch layout: ", type,
             " is a nested tensor; pass its parts or a padded one");
    std::string layout = text_of(nb::object(tensor.attr("layout")));
    if (layout != "torch.strided")
        fail(ErrorKind::type, "Unsupported torch layout ", layout, " of ", type, "; pass tensor.to_dense()");
}

[[noreturn]] void refuse_wrapper(nb::handle tensor)
{
    fail(ErrorKind::type, "Unsupported torch tensor type ", class_name(tensor.ptr()),
         ": it has no memory of its own (a wrapper, or a batch of vmap or is_grads_batched); "
         "pass the tensor that it wraps");
}

/// Bytes from the first element to the end of the last one; 0 without elements.
uint64_t reach_of(uint64_t item, const Shape& shape, const Shape& strides)
{
    uint64_t last = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0)
            return 0;
        last += uint64_t(shape[i] - 1) * uint64_t(strides[i]);
    }
    return (last + 1) * item;
}

TorchMemory memory_through_python(PyObject* object)
{
    nb::handle tensor(object);
    return {nb::cast<uint64_t>(tensor.attr("data_ptr")()), nb::cast<uint64_t>(tensor.attr("storage_offset")()),
            nb::cast<uint64_t>(nb::object(tensor.attr("untyped_storage")()).attr("nbytes")())};
}

[[noreturn]] void refuse_size(uint64_t size, uint64_t needed, const std::string& what = "")
{
    fail_runtime(what, what.empty() ? "" : ": ", "the storage of this tensor has ", size,
                 " bytes, but its elements need ", needed,
                 ": it was freed or made smaller (untyped_storage().resize_); "
                 "give it its memory back before the call");
}

/// Raises where elements have no memory: their storage was freed or made smaller, or the tensor wraps another one.
/// `known`: the storage, if it was read together with the tensor.
void check_memory(PyObject* object, TorchTensor& tensor, const TorchMemory* known)
{
    const uint64_t item = scalar_info(tensor.scalar).size, reach = reach_of(item, tensor.shape, tensor.strides);
    tensor.needed = 0;
    if (!reach)
        return;
    TorchMemory memory{tensor.address};
    if (known) {
        memory.before = known->before;
        memory.size = known->size;
    } else if (force_python || !read_inner_storage(object, memory)) {
        try {
            memory = memory_through_python(object);
        } catch (nb::python_error&) {
            refuse_special(object);
            refuse_wrapper(object);
        }
    }
    const uint64_t before = memory.before * item;
    tensor.needed = before + reach;
    if (memory.size >= tensor.needed && memory.address > before) [[likely]]
        return;
    refuse_special(object);
    if (memory.size < tensor.needed)
        refuse_size(memory.size, tensor.needed);
    refuse_wrapper(object);
}

void read_through_python(PyObject* object, TorchTensor& out)
{
    nb::handle tensor(object);
    if (is_traced(tensor))
        throw TracedTensor();
    refuse_special(tensor);
    out.scalar = scalar_from_torch(object);
    if (out.scalar == ScalarType::none)
        return;
    nb::object device = tensor.attr("device");
    std::string type = text_of(nb::object(device.attr("type")));
    if (type != "cpu" && type != "cuda")
        fail(ErrorKind::type, "Unsupported torch device ", type, " of ", class_name(object),
             "; pass a CPU or CUDA tensor");
    out.device_type = type == "cpu" ? 1 : 2;
    nb::object index = device.attr("index");
    out.device_index = index.is_none() ? 0 : nb::cast<int32_t>(index);
    out.shape = out.strides = Shape();
    for (nb::handle size : nb::object(tensor.attr("shape")))
        out.shape.push_back(nb::cast<int64_t>(size));
    for (nb::handle stride : nb::object(tensor.attr("stride")()))
        out.strides.push_back(nb::cast<int64_t>(stride));
    try {
        out.address = nb::cast<uint64_t>(tensor.attr("data_ptr")());
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_RuntimeError))
            throw;
        refuse_wrapper(tensor);
    }
}

const char* torch_dtype_name(ScalarType scalar)
{
    switch (scalar) {
    case ScalarType::bfloat16: return "bfloat16";
    case ScalarType::float8_e4m3: return "float8_e4m3fn";
    case ScalarType::float8_e5m2: return "float8_e5m2";
    default: return scalar_info(scalar).numpy_name.data();
    }
}

void ignore_error(void*, const char*, const char*) { }

} // namespace

void read_torch(PyObject* object, TorchTensor& out)
{
    if (TorchMemory memory; !force_python && read_inner(object, out, memory)) [[likely]]
        return check_memory(object, out, &memory);
    const DLPackExchangeAPI* exchange = exchange_of(Py_TYPE(object));
    DLTensor tensor{};
    if (!exchange || exchange->dltensor_from_py_object_no_sync(object, &tensor) != 0) {
        PyErr_Clear(); // what the table refuses (sparse, unknown dtypes) is named below
        read_through_python(object, out);
    } else {
        out.address = reinterpret_cast<uint64_t>(tensor.data) + tensor.byte_offset;
        out.scalar = tensor.dtype.lanes == 1 ? scalar_from_dlpack(tensor.dtype.code, tensor.dtype.bits)
                                             : ScalarType::none;
        out.device_type = tensor.device.device_type;
        out.device_index = tensor.device.device_id;
        out.shape = Shape(std::span<const int64_t>(tensor.shape, size_t(tensor.ndim)));
        out.strides = tensor.strides ? Shape(std::span<const int64_t>(tensor.strides, size_t(tensor.ndim)))
                                     : out.shape.contiguous_strides();
    }
    if (out.scalar == ScalarType::none)
        fail(ErrorKind::type, "Unsupported torch dtype ", dtype_text(object),
             "; convert the tensor, for instance with .float()");
    check_memory(object, out, nullptr);
}

void read_torch_memory(PyObject* tensor, TorchTensor& out)
{
    try {
        read_torch(tensor, out);
    } catch (const TracedTensor&) {
        fail(ErrorKind::type, class_name(tensor),
             " has no memory while torch.compile or torch.export traces; "
             "call a function of a Module there");
    }
}

TorchPlace torch_place(PyObject* tensor, ScalarType scalar, const Shape& shape, const Shape& strides)
{
    const TorchMemory memory = memory_through_python(tensor);
    const uint64_t item = scalar_info(scalar).size, reach = reach_of(item, shape, strides);
    return {memory.address, reach ? memory.before * item + reach : 0};
}

bool is_torch_place(PyObject* tensor, const TorchPlace& place)
{
    if (!place.needed)
        return true;
    TorchMemory memory;
    if (force_python || !read_inner_place(tensor, memory)) {
        GilAcquire acquire; // buffers are read and written without the lock
        memory = memory_through_python(tensor);
    }
    return memory.address == place.address && memory.size >= place.needed;
}

void fail_torch_place(PyObject* tensor, const TorchPlace& place, const std::string& what)
{
    GilAcquire acquire;
    if (const TorchMemory memory = memory_through_python(tensor); memory.size < place.needed)
        refuse_size(memory.size, place.needed, what);
    fail_runtime(what,
                 ": the tensor lies in other memory than when it was given (since then came .data =, set_(), resize_() "
                 "or swap_tensors()); give it again: record the call anew, or set() it in a prepared call");
}

void check_torch_storage(nb::handle tensor, const std::string& what)
{
    Shape shape, strides;
    TorchMemory memory;
    uint64_t item = 0;
    try {
        for (nb::handle size : nb::object(tensor.attr("shape")))
            shape.push_back(nb::cast<int64_t>(size));
        for (nb::handle stride : nb::object(tensor.attr("stride")()))
            strides.push_back(nb::cast<int64_t>(stride));
        item = nb::cast<uint64_t>(nb::object(tensor.attr("element_size")()));
        memory = memory_through_python(tensor.ptr());
    } catch (nb::python_error&) {
        return; // no memory, or none with strides: the reader of the tensor raises the error
    }
    const uint64_t reach = reach_of(item, shape, strides), needed = memory.before * item + reach;
    if (reach && memory.size < needed)
        refuse_size(memory.size, needed, what);
}

TorchGuard::TorchGuard(PyObject* tensor, const TorchPlace& place, std::string what)
    : m_tensor(Py_NewRef(tensor)),
      m_place(place),
      m_what(std::move(what))
{
    TorchMemory memory;
    read_inner_place(tensor, memory); // looks up what it needs of torch while the lock is held
}

TorchGuard::~TorchGuard()
{
    if (!Py_IsInitialized())
        return; // its memory ends with the process
    GilAcquire acquire;
    Py_DECREF(m_tensor);
}

void set_torch(Leaf& leaf, PyObject* object, const TorchTensor& tensor, uint8_t flags)
{
    leaf.kind = ValueKind::torch;
    leaf.scalar = tensor.scalar;
    leaf.flags = flags;
    leaf.object = object;
    leaf.address = tensor.address;
    leaf.shape = tensor.shape;
    leaf.strides = tensor.strides;
    leaf.device_type = tensor.device_type;
    leaf.device_index = tensor.device_index;
}

bool torch_is_negated(PyObject* tensor)
{
    static PyObject* const name = PyUnicode_InternFromString("is_neg");
    if (const std::optional<bool> found = inner_is_negated(tensor))
        return *found; // Tensor.is_neg() gives up the interpreter lock and takes it again
    const nb::object value = nb::steal(PyObject_CallMethodNoArgs(tensor, name));
    if (!value.is_valid())
        throw nb::python_error();
    return value.ptr() == Py_True;
}

nb::object new_torch(const TorchTensor& like, PyObject* like_object, ScalarType scalar, const Shape& shape)
{
    if (!force_python)
        if (nb::object made = new_inner(like, scalar, shape); made.is_valid())
            return made;
    const DLPackExchangeAPI* exchange = exchange_of(Py_TYPE(like_object));
    if (exchange && exchange->managed_tensor_allocator && exchange->managed_tensor_to_py_object_no_sync) {
        const ScalarInfo& info = scalar_info(scalar);
        Shape sizes = shape;
        DLTensor prototype{};
        prototype.device = {DLDeviceType(like.device_type), like.device_index};
        prototype.ndim = int32_t(sizes.size());
        prototype.dtype = {info.dlpack_code, uint8_t(info.size * 8), 1};
        prototype.shape = sizes.size() ? &sizes[0] : nullptr;
        DLManagedTensorVersioned* managed = nullptr;
        void* object = nullptr;
        if (exchange->managed_tensor_allocator(&prototype, &managed, nullptr, ignore_error) == 0 &&
            exchange->managed_tensor_to_py_object_no_sync(managed, &object) == 0)
            return nb::steal(static_cast<PyObject*>(object));
        PyErr_Clear();
    }
    nb::list sizes;
    for (int64_t size : shape)
        sizes.append(size);
    nb::module_ module = torch();
    return module.attr("empty")(nb::tuple(sizes), nb::arg("dtype") = module.attr(torch_dtype_name(scalar)),
                                nb::arg("device") = nb::handle(like_object).attr("device"));
}

uint64_t torch_stream(PyObject* object, const TorchTensor& description)
{
    if (description.device_type != kDLCUDA)
        return 0;
    if (const DLPackExchangeAPI* exchange = exchange_of(Py_TYPE(object))) {
        void* stream = nullptr;
        if (exchange->current_work_stream(DLDeviceType(description.device_type), description.device_index, &stream) ==
            0)
            return reinterpret_cast<uint64_t>(stream);
        PyErr_Clear();
    }
    return nb::cast<uint64_t>(
        torch().attr("cuda").attr("current_stream")(description.device_index).attr("cuda_stream"));
}

bool torch_requires_grad(PyObject* tensor)
{
    if (!force_python)
        if (const std::optional<bool> found = inner_requires_grad(tensor))
            return *found;
    static PyObject* name = PyUnicode_InternFromString("requires_grad");
    nb::object value = nb::steal(PyObject_GetAttr(tensor, name));
    if (!value.is_valid())
        throw nb::python_error();
    return value.ptr() == Py_True;
}

bool torch_grad_enabled()
{
    if (!force_python)
        if (const std::optional<bool> found = inner_grad_enabled())
            return *found;
    static PyObject* function = nullptr;
    if (!function)
        function = nb::object(torch().attr("is_grad_enabled")).release().ptr();
    return nb::steal(PyObject_CallNoArgs(function)).ptr() == Py_True;
}

bool torch_is_deterministic()
{
    static PyObject* module = nullptr;
    static PyObject* name = PyUnicode_InternFromString("are_deterministic_algorithms_enabled");
    if (!module)
        module = nb::object(torch()).release().ptr();
    return nb::steal(PyObject_CallMethodNoArgs(module, name)).ptr() == Py_True;
}

bool torch_has_tangents()
{
    static PyObject* const names = Py_NewRef(PyModule_GetDict(nb::module_::import_("torch.autograd.forward_ad").ptr()));
    static PyObject* const level_name = PyUnicode_InternFromString("_current_level");
    PyObject* level = PyDict_GetItemWithError(names, level_name);
    return level && PyLong_AsLong(level) >= 0;
}

void refuse_tangent(PyObject* tensor)
{
    nb::object dual = nb::module_::import_("torch.autograd.forward_ad").attr("unpack_dual")(nb::handle(tensor));
    if (!dual.attr("tangent").is_none())
        fail(ErrorKind::not_implemented,
             "forward-mode gradients do not reach into Slang functions; use torch.autograd in reverse mode");
}

namespace {

/// By torch's function for a tuple of tensors; false if this version of torch has none.
bool bump_at_once(PyObject* tensors)
{
    static PyObject* const function =
        nb::object(nb::getattr(torch().attr("_C"), "_increment_version", nb::none())).release().ptr();
    if (function != Py_None && nb::steal(PyObject_CallOneArg(function, tensors)).is_valid())
        return true;
    PyErr_Clear(); // an older torch, whose function takes one tensor
    return false;
}

/// Inference tensors have no version, and must not be written outside of inference mode.
void bump_without_version(PyObject* tensor)
{
    const nb::object inference = nb::steal(PyObject_CallMethod(tensor, "is_inference", nullptr));
    if (!inference.is_valid())
        PyErr_Clear(); // a subclass
    else if (inference.ptr() == Py_True && torch().attr("is_inference_mode_enabled")().ptr() != Py_True)
        fail_runtime("Inplace update to inference tensor outside InferenceMode is not allowed."
                     "You can make a clone to get a normal tensor before doing inplace update.");
}

void bump_through_python(PyObject* tensor)
{
    static PyObject* const function =
        nb::object(torch().attr("autograd").attr("graph").attr("increment_version")).release().ptr();
    if (!nb::steal(PyObject_CallOneArg(function, tensor)).is_valid())
        PyErr_Clear(); // subclasses without a version
}

} // namespace

void bump_torch_version(PyObject* tensor)
{
    if (!force_python && bump_inner_version(tensor))
        return;
    static PyObject* const name = PyUnicode_InternFromString("_version");
    if (!nb::steal(PyObject_GetAttr(tensor, name)).is_valid()) {
        PyErr_Clear();
        return bump_without_version(tensor);
    }
    const nb::object one = nb::steal(PyTuple_Pack(1, tensor));
    if (!one.is_valid())
        throw nb::python_error();
    if (!bump_at_once(one.ptr()))
        bump_through_python(tensor);
}

void bump_torch_versions(PyObject* tensors)
{
    if (bump_at_once(tensors))
        return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i)
        bump_torch_version(PyTuple_GET_ITEM(tensors, i));
}

void set_torch_python_fallback(bool enabled) { force_python = enabled; }
bool torch_uses_python_fallback() { return force_python; }

} // namespace spy
