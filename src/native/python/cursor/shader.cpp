// ShaderObject and ShaderCursor for Python.
#include "python/bindings.h"

#include "device/encoder.h"
#include "device/guard.h"
#include "python/cursor/bindings.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace spy {
namespace {

/// Where a cursor stands, in the terms of core/layout.h.
struct ShaderOffset {
    uint64_t uniform_offset;
    uint32_t binding_range_index, binding_array_index, scope;
};

ValuePath path_of(const ShaderCursor& cursor) { return ValuePath{nullptr, cursor.path(), 0, true}; }

void write_cursor(const ShaderCursor& cursor, nb::handle value)
{
    check_valid(cursor, "ShaderCursor.write");
    write_at(*cursor.layout(), cursor.place(), value.ptr(), path_of(cursor));
}

void set_data(const ShaderCursor& cursor, nb::handle data)
{
    check_valid(cursor, "ShaderCursor.set_data");
    const ShaderCursor inside = cursor.dereference();
    HostArray array;
    const auto bytes = raw_bytes(array, data, inside.layout()->size, "ShaderCursor.set_data");
    std::memcpy(inside.place().bytes, bytes.data(), bytes.size());
}

/// Writes the fields that exist and returns the names that do not.
std::vector<std::string> write_known(const ShaderCursor& cursor, nb::dict fields)
{
    std::vector<std::string> unknown;
    if (!cursor.is_valid()) {
        for (const auto& [name, value] : fields)
            unknown.push_back(nb::cast<std::string>(nb::handle(name)));
        return unknown;
    }
    const ShaderCursor inside = cursor.dereference();
    write_dict(*inside.layout(), inside.place(), fields.ptr(), path_of(cursor), &unknown);
    return unknown;
}

std::string repr(const ShaderCursor& cursor)
{
    if (!cursor.is_valid())
        return "ShaderCursor(invalid)";
    return cat("ShaderCursor(path=\"", cursor.path(), "\", type=", type_text(*cursor.layout()), ", fields=[",
               field_list(*cursor.layout()), "])");
}

/// Launches at once on enough groups for the threads. False when there is nothing to do.
bool dispatch(ShaderObject& object, Kernel& kernel, std::array<uint64_t, 3> thread_count, NativeHandle stream)
{
    Device* device = kernel.frontend();
    const std::array<uint64_t, 3> groups = groups_for_threads(kernel.layout(), thread_count);
    check_group_count(device, kernel, groups);
    if (!groups[0] || !groups[1] || !groups[2])
        return false;
    ArgumentData data;
    object.gather(data);
    check_guards(data);
    LaunchDesc desc;
    desc.kernel = &kernel;
    desc.group_count = {uint32_t(groups[0]), uint32_t(groups[1]), uint32_t(groups[2])};
    desc.arguments = data.arguments();
    desc.stream = stream;
    GilRelease release;
    device->launch(desc);
    return true;
}

using AddressTuple = std::tuple<std::string, std::string, uint32_t, uint64_t, uint64_t>;

ref<UsedParameters> used_parameters(std::string label, std::optional<std::vector<uint32_t>> slots,
                                    std::vector<AddressTuple> addresses)
{
    ref<UsedParameters> used = new UsedParameters();
    used->label = std::move(label);
    if (slots) {
        used->slots.emplace(slots->empty() ? 0 : *std::max_element(slots->begin(), slots->end()) + size_t(1));
        for (uint32_t slot : *slots)
            (*used->slots)[slot] = true;
    }
    for (auto& [path, what, scope, begin, size] : addresses)
        used->addresses.push_back({std::move(path), std::move(what), scope, begin, size});
    return used;
}

std::optional<std::vector<uint32_t>> slots_of(const UsedParameters& used)
{
    if (!used.slots)
        return std::nullopt;
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < used.slots->size(); ++slot)
        if ((*used.slots)[slot])
            slots.push_back(slot);
    return slots;
}

void bind_used_parameters(nb::module_& m)
{
    nb::class_<UsedParameters, Object>(m, "UsedParameters", "What code uses of its parameters: what needs a value.")
        .def(nb::new_(&used_parameters), nb::arg("label"), nb::arg("slots").none(),
             nb::arg("addresses") = std::vector<AddressTuple>{},
             "label: of the pipeline, for messages. slots: resources by their place in the layout, None for all. "
             "addresses: what must not be null, each by its "
             "path, what to assign, and scope, first byte and size.")
        .def_prop_ro("slots", &slots_of, "Resources by their place in the layout; None: all.")
        .def_prop_ro(
            "addresses",
            [](const UsedParameters& used) {
                std::vector<std::string> paths;
                for (const UsedParameters::Address& address : used.addresses)
                    paths.push_back(address.path);
                return paths;
            },
            "Paths of the tensors and pointers.");
}

void bind_shader_object(nb::module_& m)
{
    nb::class_<ShaderObject, Object>(m, "ShaderObject",
                                     "Values of a program's parameters, or of one parameter block. Walk it with "
                                     "ShaderCursor(shader_object).")
        .def(
            "__init__",
            [](ShaderObject* self, ref<Device> device, ref<ProgramLayout> layout) {
                new (self) ShaderObject(std::move(device), std::move(layout));
            },
            nb::arg("device").none(), nb::arg("program_layout"))
        .def(
            "__init__",
            [](ShaderObject* self, ref<Device> device, nb::object layout) {
                new (self) ShaderObject(std::move(device), layout_from_python(layout, "create_shader_object"));
            },
            nb::arg("device").none(), nb::arg("type_layout"))
        .def_prop_ro("device", &ShaderObject::device)
        .def(
            "check_bound", [](const ShaderObject& self) { self.check_bound(); },
            "Raises RuntimeError naming the first buffer, texture or sampler that was never set.")
        .def(
            "_check_used",
            [](ShaderObject& self, ref<UsedParameters> used, bool resources) {
                self.set_used(std::move(used));
                self.check_bound(resources);
            },
            nb::arg("used"), nb::arg("resources"), "The same of what code uses; else of tensors alone.")
        .def(
            "_first_unbound",
            [](const ShaderObject& self, std::vector<uint32_t> slots) { return self.first_unbound(slots); },
            nb::arg("slots"))
        .def("_dispatch", &dispatch, nb::arg("kernel"), nb::arg("thread_count"), nb::arg("stream"))
        .def("_scope_bytes",
             [](ShaderObject& self, uint32_t scope) {
                 ArgumentData data;
                 self.gather(data);
                 if (scope >= data.scopes.size())
                     fail(ErrorKind::index, "scope ", scope, " is outside the ", data.scopes.size(), " scopes");
                 return nb::bytes(data.scopes[scope].data(), data.scopes[scope].size());
             })
        .def("_slots",
             [](ShaderObject& self) {
                 ArgumentData data;
                 self.gather(data);
                 nb::list slots;
                 for (ref<Object>& object : data.slots)
                     slots.append(object ? nb::cast(object) : nb::none());
                 return slots;
             })
        .def("__repr__", [](ShaderObject& self) {
            return cat("ShaderObject(type=", self.type() ? type_text(*self.type()) : "", ", slots=", self.slot_count(),
                       ")");
        });
}

/// Whether an address is null although nobody said so.
bool is_unset(const ShaderCursor& cursor)
{
    const Place& place = cursor.place();
    return place.bytes && place.object->is_unset({place.bytes, cursor.layout()->size});
}

void bind_shader_offset(nb::module_& m)
{
    nb::class_<ShaderOffset>(m, "ShaderOffset",
                             "Where a cursor stands: byte offset, index of the binding range, index in its array.")
        .def_ro("uniform_offset", &ShaderOffset::uniform_offset)
        .def_ro("binding_range_index", &ShaderOffset::binding_range_index)
        .def_ro("binding_array_index", &ShaderOffset::binding_array_index)
        .def("__repr__", [](const ShaderOffset& o) {
            return cat("ShaderOffset(uniform_offset=", o.uniform_offset,
                       ", binding_range_index=", o.binding_range_index, ", binding_array_index=", o.binding_array_index,
                       ")");
        });
}

} // namespace

void bind_shader_cursor(nb::module_& m)
{
    bind_shader_offset(m);
    nb::class_<ShaderCursor>(m, "ShaderCursor",
                             "A typed place in a ShaderObject. Read `cursor.name`, `cursor[\"name\"]`, `cursor[i]` to "
                             "walk on, assign to them to write.")
        .def(nb::init<ref<ShaderObject>>(), nb::arg("shader_object"))
        .def("is_valid", &ShaderCursor::is_valid,
             "Whether it stands at a parameter; find_field and find_element give cursors that do not.")
        .def("find_field", &ShaderCursor::find_field, nb::arg("name"), "Invalid cursor when there is none.")
        .def("find_element", &ShaderCursor::find_element, nb::arg("index"), "Invalid cursor when there is none.")
        .def(
            "has_field", [](const ShaderCursor& c, std::string_view n) { return c.find_field(n).is_valid(); },
            nb::arg("name"), "Whether there is a field of this name.")
        .def(
            "has_element", [](const ShaderCursor& c, int64_t i) { return c.find_element(i).is_valid(); },
            nb::arg("index"), "Whether there is an element with this index.")
        .def("find_field_index", &ShaderCursor::find_field_index, nb::arg("name"), "-1 when there is none.")
        .def("get_field_by_index", &ShaderCursor::field_at, nb::arg("index"),
             "The field with this index. IndexError beyond the last one.")
        .def("find_entry_point", &ShaderCursor::find_entry_point, nb::arg("index"), "The parameters of an entry point.")
        .def("dereference", &ShaderCursor::dereference, "Enters a constant buffer or parameter block.")
        .def(
            "reinterpret",
            [](const ShaderCursor& c, nb::handle layout) {
                return c.reinterpret(layout_from_python(layout, "ShaderCursor.reinterpret"));
            },
            nb::arg("layout"), "The same place seen as another type, at most as large.")
        .def("write", &write_cursor, nb::arg("value").none(), "Writes a value by the rules of the parameter's type.")
        .def("set_data", &set_data, nb::arg("data"), "Copies the raw bytes of a contiguous array.")
        .def("_write_known", &write_known, nb::arg("fields"))
        .def("_is_unset", &is_unset)
        .def_prop_ro("_type_layout", [](const ShaderCursor& c) { return c.layout(); })
        .def_prop_ro("_fields",
                     [](const ShaderCursor& c) { return c.is_valid() ? field_names(c.layout().get()) : nb::list(); })
        .def_prop_ro("_offset",
                     [](const ShaderCursor& c) { return ShaderOffset{c.offset(), c.place().slot, 0, c.place().scope}; })
        .def_prop_ro("_scope", [](const ShaderCursor& c) { return c.place().scope; })
        .def("__getattr__",
             [](const ShaderCursor& c, std::string_view name) { return attribute_field(c, "ShaderCursor", name); })
        .def(
            "__setattr__",
            [](const ShaderCursor& c, std::string_view name, nb::handle value) {
                write_cursor(attribute_field(c, "ShaderCursor", name), value);
            },
            nb::arg("name"), nb::arg("value").none())
        .def("__getitem__", [](const ShaderCursor& c, std::string_view name) { return item_field(c, name); })
        .def("__getitem__", [](const ShaderCursor& c, int64_t index) { return item_element(c, index); })
        .def(
            "__setitem__",
            [](const ShaderCursor& c, std::string_view name, nb::handle v) { write_cursor(item_field(c, name), v); },
            nb::arg("name"), nb::arg("value").none())
        .def(
            "__setitem__",
            [](const ShaderCursor& c, int64_t index, nb::handle v) { write_cursor(item_element(c, index), v); },
            nb::arg("index"), nb::arg("value").none())
        .def("__dir__", &dir_with_fields<ShaderCursor>)
        .def("__repr__", &repr);
}

void bind_cursor(nb::module_& m)
{
    bind_layout_tools(m);
    bind_used_parameters(m);
    bind_shader_object(m);
    bind_shader_cursor(m);
    bind_buffer_cursor(m);
}

} // namespace spy
