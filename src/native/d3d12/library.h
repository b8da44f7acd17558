#pragma once
// Shared libraries opened at run time.
#include "core/error.h"

#include <cstdlib>
#include <initializer_list>
#include <string>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace spy {

/// A library that stays loaded: drivers do not survive being unloaded.
class SharedLibrary {
public:
    /// The first of `names` that loads: from the folder SLANGPY_D3D12_PATH, then as the system finds it. `what` and
    /// `hint` go into the error when there is none.
    static SharedLibrary open(std::initializer_list<const char*> names, const char* what, const char* hint);

    template <typename F>
    void find(const char* name, F& function) const
    {
        function = reinterpret_cast<F>(symbol(name));
        if (!function)
            fail_runtime(m_name, " has no function ", name, ": this version cannot be used");
    }

private:
    void* symbol(const char* name) const;

    void* m_handle = nullptr;
    std::string m_name;
};

} // namespace spy
