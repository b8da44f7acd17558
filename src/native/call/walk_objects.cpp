// The walk over objects that stand for a value: references, get_this(), registered classes.
#include "call/walk.h"

namespace spy {

nb::object Walker::held_value(PyObject* value)
{
    size_t leaves = m.leaf_count;
    if (++m_depth > 64)
        fail_bound("references nested more than 64 levels deep cannot be an argument");
    nb::object inner = visit(hold(nb::borrow(value))); // a write to the reference must not free it
    --m_depth;
    m.leaf_count = leaves;
    return inner;
}

nb::object Walker::value_ref(PyObject* value)
{
    put('R');
    nb::object inner = held_value(nb::cast<ValueRef*>(nb::handle(value))->value.ptr());
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::value_ref;
    leaf.object = value;
    nb::list fields;
    if (m_describing)
        fields.append(nb::make_tuple("value", inner));
    return m_describing ? description(value, ValueKind::value_ref, nb::dict(), last_leaf(), fields) : nb::object();
}

nb::object Walker::diff_pair(PyObject* value)
{
    auto* pair = nb::cast<DiffPair*>(nb::handle(value));
    put('P');
    put(pair->needs_grad ? 'g' : 'c');
    nb::object inner = held_value(pair->primal.ptr());
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::diff_pair;
    leaf.object = value;
    leaf.flags = pair->needs_grad ? value_flag::needs_grad : 0;
    nb::dict details;
    nb::list fields;
    if (m_describing) {
        details["needs_grad"] = pair->needs_grad;
        fields.append(nb::make_tuple("value", inner));
    }
    return m_describing ? description(value, ValueKind::diff_pair, details, last_leaf(), fields) : nb::object();
}

nb::object Walker::ask_this(PyObject* value)
{
    nb::object held = answer([&] { return nb::handle(value).attr("get_this")(); });
    if (held.ptr() == value)
        fail_bound("get_this() of ", Py_TYPE(value)->tp_name, " returned the object itself");
    if (!m_describing)
        m.asked.push_back({nb::borrow(value), held});
    if (!m_describing && nb::hasattr(nb::handle(value), "update_this"))
        m.updates.push_back({nb::borrow(value), held});
    return held;
}

nb::object Walker::get_this(PyObject* value)
{
    nb::object held = ask_this(value);
    if (++m_depth > 64)
        fail_bound("get_this() nested more than 64 levels deep");
    nb::object result = visit(hold(std::move(held)));
    --m_depth;
    return result;
}

nb::object Walker::custom(PyObject* value, const ClassEntry& entry)
{
    put('c');
    nb::handle handle(value);
    nb::object text = nb::getattr(handle, "slangpy_signature", nb::none());
    if (!entry.signature.is_none())
        text = entry.signature(handle);
    // classes of one name differ, and so does a class whose factory was replaced
    PyTypeObject* type = Py_TYPE(value);
    m.key.append(reinterpret_cast<const char*>(&type), sizeof(type));
    m.key.append(reinterpret_cast<const char*>(&entry.registration), sizeof(entry.registration));
    if (!text.is_none())
        m.key.append(nb::cast<std::string>(nb::str(text)));
    put('\0');
    Leaf& leaf = m.add_leaf();
    leaf.kind = ValueKind::custom;
    leaf.object = value;
    nb::dict details;
    details["object"] = nb::borrow(value);
    return m_describing ? description(value, ValueKind::custom, details, last_leaf()) : nb::object();
}

} // namespace spy
