#include "values/value.h"

#include <mutex>
#include <unordered_map>

namespace spy {

uint64_t TensorBase::address() const
{
    if (!storage)
        return raw_address;
    uint64_t base = storage->device_address();
    if (!base)
        base = reinterpret_cast<uint64_t>(storage->host_pointer());
    return base + uint64_t(offset * int64_t(layout->stride));
}

const char* to_string(ValueKind kind)
{
    static const char* const names[] = {"none",
                                        "bool",
                                        "int",
                                        "float",
                                        "scalar",
                                        "vector",
                                        "matrix",
                                        "list",
                                        "array",
                                        "tensor",
                                        "dict",
                                        "buffer",
                                        "texture",
                                        "texture_view",
                                        "sampler",
                                        "descriptor_handle",
                                        "acceleration_structure",
                                        "generator",
                                        "value_ref",
                                        "diff_pair",
                                        "torch",
                                        "custom",
                                        "unsupported"};
    return names[size_t(kind)];
}

nb::tuple to_tuple(const Shape& shape)
{
    nb::tuple sizes = nb::steal<nb::tuple>(PyTuple_New(Py_ssize_t(shape.size())));
    for (size_t i = 0; i < shape.size(); ++i)
        PyTuple_SET_ITEM(sizes.ptr(), Py_ssize_t(i), PyLong_FromLongLong(shape[i]));
    return sizes;
}

bool holds_struct(const TypeLayout& layout)
{
    const TypeLayout* inner = &layout;
    while (inner->kind == TypeKind::array && inner->element)
        inner = inner->element.get();
    return inner->kind == TypeKind::struct_;
}

uint32_t type_id(const TypeLayout& layout)
{
    static std::mutex mutex;
    static std::unordered_map<std::string, uint32_t> ids;
    std::string key = holds_struct(layout) ? serialize(layout) : layout.full_name;
    std::lock_guard lock(mutex);
    return ids.try_emplace(std::move(key), uint32_t(ids.size() + 1)).first->second;
}

} // namespace spy
