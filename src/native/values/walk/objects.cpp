// The walk over objects that stand for a value: references, get_this(), registered classes.
#include "core/class_name.h"
#include "values/walk/walk.h"

namespace spy {

/// The value held by a reference decides the key, but makes no leaves.
static nb::object walk_held(Walk& w, PyObject* value)
{
    size_t leaves = w.signature.leaf_count;
    if (++w.depth > 64)
        w.fail_bound("references nested more than 64 levels deep cannot be an argument");
    nb::object inner = walk_value(w, w.hold(nb::borrow(value))); // a write to the reference must not free it
    --w.depth;
    w.signature.leaf_count = leaves;
    return inner;
}

nb::object walk_value_ref(Walk& w, PyObject* value)
{
    w.put('R');
    nb::object inner = walk_held(w, nb::cast<ValueRef*>(nb::handle(value))->value.ptr());
    w.add_leaf(ValueKind::value_ref, value);
    if (!w.describes)
        return w.plain(value);
    nb::list fields;
    fields.append(nb::make_tuple("value", inner));
    return w.described(value, ValueKind::value_ref, nb::dict(), w.last_leaf(), fields);
}

nb::object walk_diff_pair(Walk& w, PyObject* value)
{
    auto* pair = nb::cast<DiffPair*>(nb::handle(value));
    w.put('P');
    w.put(pair->needs_grad ? 'g' : 'c');
    nb::object inner = walk_held(w, pair->primal.ptr());
    Leaf& leaf = w.add_leaf(ValueKind::diff_pair, value);
    leaf.flags = pair->needs_grad ? value_flag::needs_grad : 0;
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["needs_grad"] = pair->needs_grad;
    nb::list fields;
    fields.append(nb::make_tuple("value", inner));
    return w.described(value, ValueKind::diff_pair, details, w.last_leaf(), fields);
}

nb::object ask_this(Walk& w, PyObject* value)
{
    nb::object held = w.answer([&] { return nb::handle(value).attr("get_this")(); });
    if (held.ptr() == value)
        w.fail_bound("get_this() of ", class_name(value), " returned the object itself");
    if (!w.describes && nb::hasattr(nb::handle(value), "update_this"))
        w.signature.updates.push_back({nb::borrow(value), held});
    return held;
}

nb::object walk_get_this(Walk& w, PyObject* value)
{
    nb::object held = ask_this(w, value);
    if (++w.depth > 64)
        w.fail_bound("get_this() nested more than 64 levels deep");
    nb::object result = walk_value(w, w.hold(std::move(held)));
    --w.depth;
    return result;
}

nb::object fields_of(PyObject* value)
{
    nb::dict fields;
    for (nb::handle field : nb::module_::import_("dataclasses").attr("fields")(nb::handle(value))) {
        const nb::object name = field.attr("name");
        fields[name] = nb::getattr(nb::handle(value), name);
    }
    return fields;
}

nb::object walk_custom(Walk& w, PyObject* value, const ClassEntry& entry)
{
    w.put('c');
    w.ran_code = true;
    nb::handle handle(value);
    nb::object text = nb::getattr(handle, "slangpy_signature", nb::none());
    if (!entry.signature.is_none())
        text = entry.signature(handle);
    // classes of one name differ, and so does a class whose factory was replaced
    PyTypeObject* type = Py_TYPE(value);
    w.signature.key.append(reinterpret_cast<const char*>(&type), sizeof(type));
    w.signature.key.append(reinterpret_cast<const char*>(&entry.registration), sizeof(entry.registration));
    if (!text.is_none())
        w.signature.key.append(nb::cast<std::string>(nb::str(text)));
    w.put('\0');
    w.add_leaf(ValueKind::custom, value);
    if (!w.describes)
        return w.plain(value);
    nb::dict details;
    details["object"] = nb::borrow(value);
    return w.described(value, ValueKind::custom, details, w.last_leaf());
}

} // namespace spy
