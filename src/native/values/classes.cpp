#include "values/classes.h"

#include "device/acceleration.h"
#include "device/handles.h"

#include <algorithm>
#include <iterator>

#include <unordered_map>

namespace spy {

namespace {

nb::dict& custom_registry()
{
    static nb::dict* registry = new nb::dict();
    return *registry;
}
nb::dict& custom_signatures()
{
    static nb::dict* signatures = new nb::dict();
    return *signatures;
}

uint64_t registrations = 0;

std::unordered_map<PyTypeObject*, ClassEntry>& class_table()
{
    static auto* table = new std::unordered_map<PyTypeObject*, ClassEntry>();
    return *table;
}

bool is_instance_of_loaded(nb::handle type, const char* module, const char* name)
{
    nb::dict modules = nb::module_::import_("sys").attr("modules");
    if (!modules.contains(module))
        return false;
    nb::object base = nb::getattr(modules[module], name, nb::none());
    return !base.is_none() && PyObject_IsSubclass(type.ptr(), base.ptr()) == 1;
}

/// Of our own classes; `none` for others.
ValueClass classify_ours(PyTypeObject* type)
{
    const std::pair<nb::handle, ValueClass> classes[] = {
        {nb::type<TensorBase>(), ValueClass::tensor},
        {nb::type<Generator>(), ValueClass::generator},
        {nb::type<ValueRef>(), ValueClass::value_ref},
        {nb::type<DiffPair>(), ValueClass::diff_pair},
        {nb::type<TorchPair>(), ValueClass::torch_pair},
        {nb::type<TorchSlot>(), ValueClass::torch_slot},
        {nb::type<PackedArg>(), ValueClass::packed},
        {nb::type<Buffer>(), ValueClass::buffer},
        {nb::type<Texture>(), ValueClass::texture},
        {nb::type<TextureView>(), ValueClass::texture_view},
        {nb::type<Sampler>(), ValueClass::sampler},
        {nb::type<DescriptorHandle>(), ValueClass::descriptor_handle},
        {nb::type<AccelerationStructure>(), ValueClass::acceleration_structure},
    };
    for (const auto& [base, value_class] : classes)
        if (PyType_IsSubtype(type, (PyTypeObject*)base.ptr()))
            return value_class;
    return ValueClass::none;
}

ValueClass classify_native(PyTypeObject* type)
{
    nb::handle handle((PyObject*)type);
    auto is = [&](nb::handle base) { return PyType_IsSubtype(type, (PyTypeObject*)base.ptr()); };
    if (type == &PyBool_Type)
        return ValueClass::boolean;
    if (const ValueClass ours = classify_ours(type); ours != ValueClass::none)
        return ours;
    if (is_instance_of_loaded(handle, "numpy.ma", "MaskedArray"))
        return ValueClass::masked;
    if (is_instance_of_loaded(handle, "numpy", "ndarray"))
        return ValueClass::numpy;
    if (is_instance_of_loaded(handle, "numpy", "bool"))
        return ValueClass::boolean;
    if (is_instance_of_loaded(handle, "numpy", "bool_"))
        return ValueClass::boolean;
    if (is_instance_of_loaded(handle, "numpy", "generic"))
        return ValueClass::numpy_scalar;
    if (is_instance_of_loaded(handle, "torch", "Tensor"))
        return ValueClass::torch;
    if (nb::hasattr(handle, "get_this"))
        return ValueClass::get_this;
    if (is_instance_of_loaded(handle, "enum", "Enum") && !is((PyObject*)&PyLong_Type))
        return ValueClass::enumeration;
    if (is((PyObject*)&PyLong_Type))
        return ValueClass::integer;
    if (is((PyObject*)&PyFloat_Type))
        return ValueClass::floating;
    if (is((PyObject*)&PyDict_Type))
        return ValueClass::dict;
    if (is((PyObject*)&PyList_Type) || is((PyObject*)&PyTuple_Type))
        return ValueClass::sequence;
    if (type == &PyRange_Type)
        return ValueClass::range;
    if (is((PyObject*)&PyUnicode_Type) || is((PyObject*)&PyBytes_Type))
        return ValueClass::text_or_unsupported;
    if (nb::hasattr(handle, "__dlpack__") || nb::hasattr(handle, "__array_interface__") ||
        nb::hasattr(handle, "__cuda_array_interface__") || (type->tp_as_buffer && type->tp_as_buffer->bf_getbuffer) ||
        nb::hasattr(handle, "__array__"))
        return ValueClass::foreign_array;
    if (nb::hasattr(handle, "__dataclass_fields__"))
        return ValueClass::dataclass;
    return ValueClass::text_or_unsupported;
}

ClassEntry classify(PyTypeObject* type)
{
    ClassEntry entry;
    if (type == Py_TYPE(Py_None)) {
        entry.value_class = ValueClass::none;
        return entry;
    }
    for (nb::handle base : nb::borrow<nb::tuple>(type->tp_mro))
        if (custom_registry().contains(base)) {
            entry.value_class = ValueClass::custom;
            entry.signature = custom_signatures().contains(base) ? nb::object(custom_signatures()[base]) : nb::none();
            entry.registration = registrations;
            return entry;
        }
    if (const MathTypeInfo* math = find_math_base(type)) {
        entry.value_class = ValueClass::math;
        entry.math = math;
        return entry;
    }
    entry.value_class = classify_native(type);
    return entry;
}

} // namespace

/// Classes met of late, in front of the table.
struct Recent {
    PyTypeObject* type;
    const ClassEntry* entry;
};
static Recent recent[16];

const ClassEntry& class_of(PyObject* value)
{
    PyTypeObject* type = Py_TYPE(value);
    Recent& place = recent[reinterpret_cast<uintptr_t>(type) >> 6 & (std::size(recent) - 1)];
    if (place.type == type)
        return *place.entry;
    auto& table = class_table();
    auto found = table.find(type);
    if (found == table.end()) {
        Py_INCREF(type); // the table's pointer must never be reused by another class
        found = table.emplace(type, classify(type)).first;
    }
    place = {type, &found->second};
    return found->second;
}

void set_custom_types(nb::dict registry, nb::dict signatures)
{
    custom_registry() = std::move(registry);
    custom_signatures() = std::move(signatures);
    ++registrations;
    clear_type_cache();
}

void clear_type_cache()
{
    std::fill(std::begin(recent), std::end(recent), Recent{});
    class_table().clear();
}

} // namespace spy
