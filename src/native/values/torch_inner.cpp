#include "values/torch_inner.h"

#include <array>

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace spy {

namespace {

/// Tensors of each kind that is known to differ inside, and what they say of themselves.
nb::list samples()
{
    const nb::object torch = nb::module_::import_("torch"), plain = torch.attr("zeros")(6, nb::arg("device") = "cpu");
    nb::list found;
    found.append(plain);
    found.append(torch.attr("_neg_view")(plain));
    found.append(plain.attr("narrow")(0, 2, 3));
    found.append(torch.attr("nn").attr("Parameter")(plain));
    found.append(torch.attr("ones")(3, nb::arg("dtype") = torch.attr("int16"), nb::arg("device") = "cpu"));
    found.append(torch.attr("zeros")(nb::make_tuple(2, 3), nb::arg("device") = "cpu").attr("t")());
    found.append(torch.attr("zeros")(nb::tuple(), nb::arg("dtype") = torch.attr("bool"), nb::arg("device") = "cpu"));
    return found;
}

#if defined(__linux__)
template <typename F>
void find(F& function, void* library, const char* name)
{
    function = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}
void* torch_library() { return dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD); }
#endif

/// The functions take an at::Tensor, which is a pointer to its implementation, by address. Those of the C interface for
/// compiled models give 0 for success.
class TorchLibrary {
public:
    TorchLibrary()
    {
        try {
            const nb::list tensors = samples();
            find_place(tensors);
            if (m_place)
                find_functions(tensors);
        } catch (nb::python_error&) { // a torch without them, or in a mode that makes no such tensors
            *this = TorchLibrary(nullptr);
        }
    }

    /// torch's own object (a c10::TensorImpl) of a tensor; null where it is not to be found.
    const void* inner(PyObject* tensor) const
    {
        if (!m_place || !PyObject_TypeCheck(tensor, m_tensor))
            return nullptr;
        return *reinterpret_cast<const void* const*>(reinterpret_cast<const char*>(tensor) + m_place);
    }
    std::optional<bool> is_negated(const void* inner) const
    {
        return m_is_negated && inner ? std::optional(m_is_negated(&inner)) : std::nullopt;
    }
    bool read_storage(const void* inner, TorchMemory& out) const
    {
        int64_t size = 0, before = 0;
        if (!m_storage_size || !inner || m_storage_size(&inner, &size) || m_storage_offset(&inner, &before))
            return false;
        out.size = uint64_t(size);
        out.before = uint64_t(before);
        return true;
    }
    bool is_tensor(PyObject* object) const { return Py_TYPE(object) == m_tensor; } ///< and of no subclass
    bool read_place(const void* inner, TorchMemory& out) const
    {
        void* address = nullptr;
        int64_t size = 0;
        if (!m_storage_size || !inner || m_storage_size(&inner, &size) || m_data_ptr(&inner, &address))
            return false;
        out.size = uint64_t(size);
        out.address = reinterpret_cast<uint64_t>(address);
        return true;
    }

    std::optional<bool> requires_grad(const void* inner) const
    {
        return m_requires_grad && inner ? std::optional(m_requires_grad(inner)) : std::nullopt;
    }
    std::optional<bool> grad_enabled() const { return m_grad_enabled ? std::optional(m_grad_enabled()) : std::nullopt; }
    std::optional<bool> has_transforms() const
    {
        if (!m_transforms)
            return std::nullopt;
        const void* const* const vector = m_transforms(); // a std::vector: its begin and its end
        return vector[0] != vector[1];
    }
    bool bump_version(const void* inner) const
    {
        if (!m_bump_version || !inner)
            return false;
        try {
            m_bump_version(&inner);
            return true;
        } catch (const std::exception&) { // an inference tensor
            return false;
        }
    }

private:
    using Test = bool (*)(const void* const*);
    using Number = int32_t (*)(const void* const*, int64_t*);
    using Address = int32_t (*)(const void* const*, void**);

    explicit TorchLibrary(std::nullptr_t) { }

    /// Where in the Python object the pointer lies: `_cdata` is its value.
    void find_place(const nb::list& tensors)
    {
        m_tensor = reinterpret_cast<PyTypeObject*>(
            nb::object(nb::module_::import_("torch").attr("Tensor")).release().ptr());
        constexpr auto word = Py_ssize_t(sizeof(void*));
        for (Py_ssize_t place = sizeof(PyObject); !m_place && place + word <= m_tensor->tp_basicsize; place += word)
            m_place = is_place(place, tensors) ? place : 0;
    }
    static bool is_place(Py_ssize_t place, const nb::list& tensors)
    {
        for (nb::handle tensor : tensors)
            if (word_at(tensor.ptr(), place) != nb::cast<uint64_t>(tensor.attr("_cdata")))
                return false;
        return true;
    }
    static uint64_t word_at(PyObject* object, Py_ssize_t place)
    {
        return *reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(object) + place);
    }

    void find_functions(const nb::list& tensors)
    {
#if defined(__linux__)
        void* const library = torch_library();
        if (!library)
            return;
        m_is_negated = reinterpret_cast<Test>(dlsym(library, "_ZN2at6native6is_negERKNS_6TensorE"));
        m_storage_size = reinterpret_cast<Number>(dlsym(library, "aoti_torch_get_storage_size"));
        m_storage_offset = reinterpret_cast<Number>(dlsym(library, "aoti_torch_get_storage_offset"));
        m_data_ptr = reinterpret_cast<Address>(dlsym(library, "aoti_torch_get_data_ptr"));
#endif
        if (!m_storage_offset || !m_data_ptr)
            m_storage_size = nullptr;
        for (nb::handle tensor : tensors) {
            if (m_is_negated && !is_negated_right(tensor))
                m_is_negated = nullptr;
            if (m_storage_size && !is_memory_right(tensor))
                m_storage_size = nullptr;
        }
#if defined(__linux__)
        find_states(library);
        find_versions(library, tensors);
#endif
    }

#if defined(__linux__)
    /// Of torch as a whole.
    void find_states(void* library)
    {
        const nb::object torch = nb::module_::import_("torch");
        find(m_grad_enabled, dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD), "_ZN3c108GradMode10is_enabledEv");
        if (m_grad_enabled && m_grad_enabled() != nb::cast<bool>(torch.attr("is_grad_enabled")()))
            m_grad_enabled = nullptr;
        find(m_transforms, library, "_ZN2at9functorch20getDynamicLayerStackEv");
        const nb::object active = nb::getattr(torch.attr("_C"), "_are_functorch_transforms_active", nb::none());
        if (active.is_none() || (m_transforms && *has_transforms() != nb::cast<bool>(active())))
            m_transforms = nullptr;
    }
    /// Whether gradients are wanted of a tensor, and how often it was changed.
    void find_versions(void* library, const nb::list& tensors)
    {
        find(m_requires_grad, dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD), "_ZNK3c1010TensorImpl13requires_gradEv");
        find(m_bump_version, library, "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE");
        for (nb::handle tensor : tensors) {
            const void* const here = inner(tensor.ptr());
            if (m_requires_grad && requires_grad(here) != nb::cast<bool>(nb::object(tensor.attr("requires_grad"))))
                m_requires_grad = nullptr; // a Parameter among them requires it
            const nb::object before = tensor.attr("_version");
            if (m_bump_version &&
                (!bump_version(here) ||
                 nb::cast<int64_t>(nb::object(tensor.attr("_version"))) != nb::cast<int64_t>(before) + 1))
                m_bump_version = nullptr;
        }
    }
#endif
    bool is_negated_right(nb::handle tensor) const
    {
        return is_negated(inner(tensor.ptr())) == nb::cast<bool>(tensor.attr("is_neg")());
    }
    bool is_memory_right(nb::handle tensor) const
    {
        TorchMemory found;
        const void* const here = inner(tensor.ptr());
        return read_storage(here, found) && read_place(here, found) &&
            found.address == nb::cast<uint64_t>(tensor.attr("data_ptr")()) &&
            found.before == nb::cast<uint64_t>(tensor.attr("storage_offset")()) &&
            found.size == nb::cast<uint64_t>(nb::object(tensor.attr("untyped_storage")()).attr("nbytes")());
    }

    PyTypeObject* m_tensor = nullptr;
    Py_ssize_t m_place = 0; ///< bytes into the Python object; 0: not found
    Test m_is_negated = nullptr;
    Number m_storage_size = nullptr, m_storage_offset = nullptr;
    Address m_data_ptr = nullptr;
    bool (*m_requires_grad)(const void*) = nullptr; // a member function of the implementation
    void (*m_bump_version)(const void* const*) = nullptr;
    bool (*m_grad_enabled)() = nullptr;
    const void* const* (*m_transforms)() = nullptr;
};

/// Reads and makes whole tensors with the same functions.
class TorchReader {
public:
    explicit TorchReader(const TorchLibrary& torch) : m_torch(torch)
    {
#if defined(__linux__)
        void* const library = torch_library();
        try {
            find_readers(library, samples());
            find_makers(library);
        } catch (nb::python_error&) { // as above
            m_reads = m_makes = false;
        }
#endif
    }

    /// Functions that fail write to stderr, so that nothing is asked which a tensor may not have.
    bool read(PyObject* tensor, TorchTensor& out, TorchMemory& memory) const
    {
        if (!m_reads || !(m_torch.is_tensor(tensor) || Py_TYPE(tensor) == m_parameter) || *m_torch.has_transforms())
            return false;
        const void* const here = m_torch.inner(tensor);
        int32_t layout = 0, device = 0, type = 0;
        if (m_layout(&here, &layout) || layout != m_strided || m_device_type(&here, &device) ||
            (device != m_cpu && device != m_cuda) || m_dtype(&here, &type) || type < 0 ||
            size_t(type) >= m_scalars.size() || m_scalars[size_t(type)] == ScalarType::none)
            return false;
        int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
        if (m_device_index(&here, &out.device_index) || m_rank(&here, &rank) || m_sizes(&here, &sizes) ||
            m_strides(&here, &strides) || !m_torch.read_storage(here, memory) || !m_torch.read_place(here, memory))
            return false;
        out.address = memory.address;
        out.scalar = m_scalars[size_t(type)];
        out.device_type = device == m_cpu ? 1 : 2;
        out.device_index = device == m_cpu ? 0 : out.device_index; // -1 in torch
        out.shape = Shape(std::span<const int64_t>(sizes, size_t(rank)));
        out.strides = Shape(std::span<const int64_t>(strides, size_t(rank)));
        return true;
    }
    nb::object make(const TorchTensor& like, ScalarType scalar, const Shape& shape) const
    {
        if (!m_makes || m_types[size_t(scalar)] < 0)
            return {};
        const Shape strides = shape.contiguous_strides();
        void* made = nullptr; // an at::Tensor of its own
        if (m_empty(int64_t(shape.size()), shape.begin(), strides.begin(), m_types[size_t(scalar)],
                    like.device_type == 1 ? m_cpu : m_cuda, like.device_index, &made))
            return {};
        nb::object object = nb::steal(m_wrap(made));
        m_delete(made);
        if (!object.is_valid())
            PyErr_Clear(); // whoever makes it otherwise says what is wrong
        return object;
    }

private:
    using Number = int32_t (*)(const void* const*, int64_t*);
    using Code = int32_t (*)(const void* const*, int32_t*);
    using Numbers = int32_t (*)(const void* const*, int64_t**);
    using Make = int32_t (*)(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, void**);

#if defined(__linux__)
    /// What a call reads of each tensor.
    void find_readers(void* library, const nb::list& tensors)
    {
        find(m_layout, library, "aoti_torch_get_layout");
        find(m_device_type, library, "aoti_torch_get_device_type");
        find(m_device_index, library, "aoti_torch_get_device_index");
        find(m_dtype, library, "aoti_torch_get_dtype");
        find(m_rank, library, "aoti_torch_get_dim");
        find(m_sizes, library, "aoti_torch_get_sizes");
        find(m_strides, library, "aoti_torch_get_strides");
        m_reads = m_torch.has_transforms() && m_layout && m_device_type && m_device_index && m_dtype && m_rank &&
            m_sizes && m_strides && find_codes(library);
        m_parameter = reinterpret_cast<PyTypeObject*>(
            nb::object(nb::module_::import_("torch").attr("nn").attr("Parameter")).release().ptr());
        for (nb::handle tensor : tensors)
            m_reads = m_reads && is_read_right(tensor);
    }
    /// torch's numbers of devices, layouts and element types.
    bool find_codes(void* library)
    {
        static constexpr std::pair<const char*, ScalarType> names[] = {
            {"float32", ScalarType::float32},
            {"float64", ScalarType::float64},
            {"float16", ScalarType::float16},
            {"bfloat16", ScalarType::bfloat16},
            {"int8", ScalarType::int8},
            {"int16", ScalarType::int16},
            {"int32", ScalarType::int32},
            {"int64", ScalarType::int64},
            {"uint8", ScalarType::uint8},
            {"uint16", ScalarType::uint16},
            {"uint32", ScalarType::uint32},
            {"uint64", ScalarType::uint64},
            {"bool", ScalarType::bool_},
            {"float8_e4m3fn", ScalarType::float8_e4m3},
            {"float8_e5m2", ScalarType::float8_e5m2},
        };
        const auto code = [&](const std::string& name) {
            int32_t (*function)() = nullptr;
            find(function, library, name.c_str());
            return function ? function() : -1;
        };
        m_strided = code("aoti_torch_layout_strided");
        m_cpu = code("aoti_torch_device_type_cpu");
        m_cuda = code("aoti_torch_device_type_cuda");
        for (const auto& [name, scalar] : names) {
            const int32_t type = code(std::string("aoti_torch_dtype_") + name);
            if (type < 0 || size_t(type) >= m_scalars.size())
                continue;
            m_scalars[size_t(type)] = scalar;
            m_types[size_t(scalar)] = type;
        }
        return m_strided >= 0 && m_cpu >= 0 && m_cuda >= 0;
    }
    bool is_read_right(nb::handle tensor) const
    {
        TorchTensor found;
        TorchMemory memory;
        return read(tensor.ptr(), found, memory) && found.device_type == 1 &&
            found.address == nb::cast<uint64_t>(tensor.attr("data_ptr")()) &&
            to_tuple(found.shape).equal(nb::tuple(tensor.attr("shape"))) &&
            to_tuple(found.strides).equal(tensor.attr("stride")()) &&
            nb::str(nb::object(tensor.attr("dtype")))
                .equal(nb::str(cat("torch.", scalar_info(found.scalar).numpy_name).c_str()));
    }
    /// Results of calls.
    void find_makers(void* library)
    {
        find(m_empty, library, "aoti_torch_empty_strided");
        find(m_delete, library, "aoti_torch_delete_tensor_object");
        find(m_wrap, dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD), "_Z16THPVariable_WrapRKN2at10TensorBaseE");
        m_makes = m_reads && m_empty && m_delete && m_wrap;
        TorchTensor like, found;
        TorchMemory memory;
        const Shape shape{2, 3};
        for (const ScalarType scalar : {ScalarType::float32, ScalarType::int64}) {
            const nb::object made = make(like, scalar, shape);
            m_makes = made.is_valid() && Py_REFCNT(made.ptr()) == 1 && read(made.ptr(), found, memory) &&
                found.scalar == scalar && found.shape == shape && found.strides == shape.contiguous_strides() &&
                memory.size >= 6 * scalar_info(scalar).size;
        }
    }
#endif

    const TorchLibrary& m_torch;
    bool m_reads = false, m_makes = false; ///< all functions for it are there
    PyTypeObject* m_parameter = nullptr;
    Code m_layout = nullptr, m_device_type = nullptr, m_device_index = nullptr, m_dtype = nullptr;
    Number m_rank = nullptr;
    Numbers m_sizes = nullptr, m_strides = nullptr;
    Make m_empty = nullptr;
    int32_t (*m_delete)(void*) = nullptr;
    PyObject* (*m_wrap)(const void*) = nullptr;
    int32_t m_strided = -1, m_cpu = -1, m_cuda = -1;
    std::array<ScalarType, 64> m_scalars{}; ///< by torch's number
    std::array<int32_t, 32> m_types = filled();

    static std::array<int32_t, 32> filled()
    {
        std::array<int32_t, 32> types;
        types.fill(-1);
        return types;
    }
};

const TorchLibrary& library()
{
    static const TorchLibrary found;
    return found;
}

const TorchReader& reader()
{
    static const TorchReader found(library());
    return found;
}

} // namespace

std::optional<bool> inner_is_negated(PyObject* tensor)
{
    const TorchLibrary& torch = library();
    return torch.is_negated(torch.inner(tensor));
}
std::optional<bool> inner_requires_grad(PyObject* tensor)
{
    const TorchLibrary& torch = library();
    return torch.requires_grad(torch.inner(tensor));
}
std::optional<bool> inner_grad_enabled() { return library().grad_enabled(); }
std::optional<bool> inner_has_transforms() { return library().has_transforms(); }
bool read_inner(PyObject* tensor, TorchTensor& out, TorchMemory& memory) { return reader().read(tensor, out, memory); }
bool bump_inner_version(PyObject* tensor)
{
    const TorchLibrary& torch = library();
    return torch.bump_version(torch.inner(tensor));
}
nb::object new_inner(const TorchTensor& like, ScalarType scalar, const Shape& shape)
{
    return reader().make(like, scalar, shape);
}
bool read_inner_storage(PyObject* tensor, TorchMemory& out)
{
    const TorchLibrary& torch = library();
    return torch.read_storage(torch.inner(tensor), out);
}
bool read_inner_place(PyObject* tensor, TorchMemory& out)
{
    const TorchLibrary& torch = library();
    return torch.read_place(torch.inner(tensor), out);
}

} // namespace spy
