#pragma once
// Memory that somebody else owns, and may take away between the moment it was bound and the one it is used.
#include "device/shader_object.h"

#include <array>
#include <atomic>
#include <typeinfo>

namespace spy {

/// Looked at again where what was bound earlier is about to run: recorded commands, prepared calls, shader objects.
class MemoryGuard {
public:
    virtual ~MemoryGuard() = default;
    /// RuntimeError where the memory is not there any more.
    virtual void check() const = 0;
};

using MemoryGuards = std::vector<const MemoryGuard*>;

/// Most objects are none, and a dynamic_cast that fails looks at all of their bases: their classes are remembered.
inline const MemoryGuard* guard_of(const Object* object)
{
    static std::array<std::atomic<const std::type_info*>, 16> others{};
    if (!object)
        return nullptr;
    const std::type_info* const type = &typeid(*object);
    auto& other = others[reinterpret_cast<uintptr_t>(type) / 16 % others.size()];
    if (other.load(std::memory_order_relaxed) == type)
        return nullptr;
    const auto* guard = dynamic_cast<const MemoryGuard*>(object);
    if (!guard)
        other.store(type, std::memory_order_relaxed);
    return guard;
}

inline void add_guard(const Object* object, MemoryGuards& guards)
{
    if (const MemoryGuard* guard = guard_of(object))
        guards.push_back(guard);
}

inline void add_guards(std::span<const ref<Object>> objects, MemoryGuards& guards)
{
    for (const ref<Object>& object : objects)
        add_guard(object.get(), guards);
}

/// Needs Python's lock, as memory may be a Python object's.
inline void check_guards(const MemoryGuards& guards)
{
    for (const MemoryGuard* guard : guards)
        guard->check();
}

/// Of the memory that arguments point into.
inline void check_guards(const ArgumentData& data)
{
    MemoryGuards guards;
    add_guards(data.slots, guards);
    add_guards(data.keep_alive, guards);
    check_guards(guards);
}

} // namespace spy
