#pragma once
// What the files of the reflection share. Everything here runs under the compiler's lock.
#include "slang/reflection/reflection.h"
#include "core/content_hash.h"
#include "slang/name_text.h"
#include "slang/spelling.h"

namespace spy::reflecting {

/// "name" of things that may have none.
inline std::string to_text(const char* text) { return std::string(text_or_empty(text)); }

/// What Slang says of a module of its own with this text, in a session; null where it does not compile.
inline slang::ProgramLayout* layout_of_text(slang::ISession* session, const std::string& name, const std::string& text)
{
    ComPtr<ISlangBlob> diagnostics;
    slang::IModule* module = slang_loadModuleFromSource(session, name.c_str(), name.c_str(), text.data(), text.size(),
                                                        diagnostics.put());
    return module ? module->getLayout(0, diagnostics.put()) : nullptr;
}

constexpr size_t slang_unsized = 0x7fffffff; // what Slang 2026.12 says of `T[]`

/// -1 for sizes that do not exist (yet). Slang throws when a size is a generic parameter.
template <typename Get>
int64_t to_count(Get get)
{
    try {
        const size_t count = get();
        return count == SLANG_UNBOUNDED_SIZE || count == SLANG_UNKNOWN_SIZE || count == slang_unsized ? -1
                                                                                                      : int64_t(count);
    } catch (...) {
        return -1;
    }
}

inline uint64_t to_bytes(size_t size) { return size == SLANG_UNBOUNDED_SIZE || size == SLANG_UNKNOWN_SIZE ? 0 : size; }

template <typename Thing>
std::vector<ref<Attribute>> attributes_of(const Reflection& view, Thing* thing)
{
    std::vector<ref<Attribute>> result;
    for (unsigned i = 0; i < thing->getUserAttributeCount(); ++i)
        result.push_back(view.view<Attribute>(thing->getUserAttributeByIndex(i)));
    return result;
}

inline ref<Attribute> pick(const std::vector<ref<Attribute>>& attributes, const std::string& name)
{
    for (const ref<Attribute>& attribute : attributes)
        if (attribute->name() == name)
            return attribute;
    return nullptr;
}

/// `out` is also true of inout.
template <typename Thing>
bool has(Thing* thing, ModifierID modifier)
{
    const auto find = [&](ModifierID id) { return thing->findModifier(slang::Modifier::ID(int(id))) != nullptr; };
    if (modifier == ModifierID::out)
        return find(ModifierID::out) || find(ModifierID::inout);
    return find(modifier);
}

} // namespace spy::reflecting
