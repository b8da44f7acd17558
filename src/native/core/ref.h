#pragma once
// Shared ownership with an intrusive count that Python takes over once it has seen the object: the same C++ object
// is then always the same Python object. Include after nanobind/nanobind.h to get the type caster.
#include <nanobind/intrusive/counter.h>

#include <cstddef>
#include <type_traits>

namespace spy {

/// Base of everything that is shared between native owners and Python.
class Object : public nanobind::intrusive_base {
public:
    Object() = default;
    ~Object() override = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
};

/// Owning pointer to an Object. Like a raw pointer, a const ref may point to a mutable object.
template <typename T>
class ref {
public:
    ref() = default;
    ref(std::nullptr_t) { }
    ref(T* object) : m_object(object) { retain(m_object); }
    ref(const ref& other) : m_object(other.m_object) { retain(m_object); }
    ref(ref&& other) noexcept : m_object(other.m_object) { other.m_object = nullptr; }
    template <typename U>
        requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
    ref(const ref<U>& other) : m_object(other.get())
    {
        retain(m_object);
    }
    ~ref() { release(m_object); }

    ref& operator=(const ref& other)
    {
        T* old = m_object;
        retain(other.m_object);
        m_object = other.m_object;
        release(old);
        return *this;
    }
    ref& operator=(ref&& other) noexcept
    {
        if (this != &other) {
            T* old = m_object;
            m_object = other.m_object;
            other.m_object = nullptr;
            release(old);
        }
        return *this;
    }
    ref& operator=(T* object)
    {
        T* old = m_object;
        retain(object);
        m_object = object;
        release(old);
        return *this;
    }
    void reset()
    {
        T* old = m_object;
        m_object = nullptr;
        release(old);
    }

    T* get() const { return m_object; }
    T* operator->() const { return m_object; }
    T& operator*() const { return *m_object; }
    operator T*() const { return m_object; }

private:
    // C casts, so that a ref to a type not yet defined may be a member; every such type begins with its Object.
    static void retain(T* object) { nanobind::inc_ref((nanobind::intrusive_base*)object); }
    static void release(T* object) { nanobind::dec_ref((nanobind::intrusive_base*)object); }

    T* m_object = nullptr;
};

} // namespace spy

#if defined(NB_VERSION_MAJOR)
namespace nanobind::detail {

template <typename T>
struct type_caster<spy::ref<T>> {
    using Caster = make_caster<T>;
    static constexpr bool IsClass = true;
    NB_TYPE_CASTER(spy::ref<T>, Caster::Name)

    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept
    {
        Caster caster;
        if (!caster.from_python(src, flags, cleanup))
            return false;
        value = Value(caster.operator T*());
        return true;
    }

    static handle from_cpp(const spy::ref<T>& value, rv_policy policy, cleanup_list* cleanup) noexcept
    {
        if (policy != rv_policy::copy && policy != rv_policy::move && value.get())
            if (PyObject* self = value->self_py())
                return handle(self).inc_ref();
        return Caster::from_cpp(value.get(), policy, cleanup);
    }
};

} // namespace nanobind::detail
#endif
