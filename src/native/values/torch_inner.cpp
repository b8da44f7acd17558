#include "values/torch_inner.h"

#if defined(__linux__)
#include <dlfcn.h>
#endif

namespace spy {

namespace {

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
            m_place = 0;
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

private:
    using Test = bool (*)(const void* const*);
    using Number = int32_t (*)(const void* const*, int64_t*);
    using Address = int32_t (*)(const void* const*, void**);

    /// Tensors of each kind that is known to differ inside, and what they say of themselves.
    static nb::list samples()
    {
        const nb::object torch = nb::module_::import_("torch"),
                         plain = torch.attr("zeros")(6, nb::arg("device") = "cpu");
        nb::list found;
        found.append(plain);
        found.append(torch.attr("_neg_view")(plain));
        found.append(plain.attr("narrow")(0, 2, 3));
        found.append(torch.attr("nn").attr("Parameter")(plain));
        found.append(torch.attr("ones")(3, nb::arg("dtype") = torch.attr("int16"), nb::arg("device") = "cpu"));
        return found;
    }

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
        void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
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
    }
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
};

const TorchLibrary& library()
{
    static const TorchLibrary found;
    return found;
}

} // namespace

std::optional<bool> inner_is_negated(PyObject* tensor)
{
    const TorchLibrary& torch = library();
    return torch.is_negated(torch.inner(tensor));
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
