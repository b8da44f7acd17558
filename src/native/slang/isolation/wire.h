#pragma once
// What the process that generates code (slang/isolation/worker_main.cpp) and its client (worker.cpp) say to each
// other. Both are of one build on one machine, so values travel as they lie in memory; a frame is a 64-bit length and
// that many bytes.
#include "slang/session.h"

#include <cstring>

namespace spy::wire {

/// Exit status of the process when its memory is at the limit.
constexpr int out_of_memory = 81;

enum class Kind : uint8_t { session, module, drop, code };

/// A session is known by the number that the client gives it, a module by its number in the session.
struct OpenSession {
    uint64_t session = 0;
    SlangTarget target;
    SessionOptions options;
};

struct LoadModule {
    uint64_t session = 0, module = 0;
    std::string name, path, blob;
};

struct DropSession {
    uint64_t session = 0;
};

/// A module of a program: a loaded one, or composed of ones that come before it in the list.
struct ModuleNode {
    bool composed = false;
    uint64_t module = 0;
    std::string name;
    std::vector<uint64_t> parts;
    std::vector<TypeConformance> conformances;
};

struct EntryPointNode {
    uint64_t module = 0; ///< place in the list of modules
    std::string name, new_name;
    std::vector<SpecializationArg> arguments;
    std::vector<TypeConformance> conformances;
};

/// Link a program and give the code of one of its entry points. The only message that is answered.
struct GenerateCode {
    uint64_t session = 0;
    std::vector<ModuleNode> modules;
    std::vector<uint64_t> linked; ///< places in that list
    std::vector<EntryPointNode> entry_points;
    std::vector<TypeConformance> conformances;
    LinkOptions options;
    uint64_t entry_point = 0;
    std::string fault; ///< for tests: how to fail
};

struct Code {
    bool done = false; ///< no: the client does it itself, for messages as the sources at hand allow them
    std::string text;  ///< code, or why there is none
    std::vector<std::string> warnings;
};

template <typename A>
void fields(A& a, SlangTarget& v)
{
    a(v.format, v.profile, v.capabilities, v.defines);
}
template <typename A>
void fields(A& a, SessionOptions& v)
{
    a(v.include_paths, v.library_paths, v.defines, v.optimization, v.floating_point_mode, v.debug_info, v.row_major,
      v.enable_warnings, v.disable_warnings, v.warnings_as_errors, v.downstream_args, v.report_downstream_time,
      v.report_perf_benchmark, v.skip_spirv_validation, v.dump_intermediates, v.dump_intermediates_prefix, v.sealed,
      v.experimental);
}
template <typename A>
void fields(A& a, LinkOptions& v)
{
    a(v.optimization, v.floating_point_mode, v.debug_info, v.downstream_args, v.dump_intermediates,
      v.dump_intermediates_prefix);
}
template <typename A>
void fields(A& a, TypeConformance& v)
{
    a(v.interface_name, v.type_name, v.id);
}
template <typename A>
void fields(A& a, SpecializationArg& v)
{
    a(v.is_type, v.text);
}
template <typename A>
void fields(A& a, OpenSession& v)
{
    a(v.session, v.target, v.options);
}
template <typename A>
void fields(A& a, LoadModule& v)
{
    a(v.session, v.module, v.name, v.path, v.blob);
}
template <typename A>
void fields(A& a, DropSession& v)
{
    a(v.session);
}
template <typename A>
void fields(A& a, ModuleNode& v)
{
    a(v.composed, v.module, v.name, v.parts, v.conformances);
}
template <typename A>
void fields(A& a, EntryPointNode& v)
{
    a(v.module, v.name, v.new_name, v.arguments, v.conformances);
}
template <typename A>
void fields(A& a, GenerateCode& v)
{
    a(v.session, v.modules, v.linked, v.entry_points, v.conformances, v.options, v.entry_point, v.fault);
}
template <typename A>
void fields(A& a, Code& v)
{
    a(v.done, v.text, v.warnings);
}

class Writer {
public:
    std::string bytes;

    template <typename... T>
    void operator()(const T&... values)
    {
        (put(values), ...);
    }

private:
    template <typename T>
    void put(const T& value)
    {
        if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
            bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
        else
            fields(*this, const_cast<T&>(value));
    }
    void put(const std::string& text)
    {
        put(uint64_t(text.size()));
        bytes += text;
    }
    template <typename T>
    void put(const std::vector<T>& items)
    {
        put(uint64_t(items.size()));
        for (const T& item : items)
            put(item);
    }
    template <typename T>
    void put(const std::optional<T>& value)
    {
        put(value.has_value());
        if (value)
            put(*value);
    }
    template <typename T, typename U>
    void put(const std::pair<T, U>& value)
    {
        put(value.first);
        put(value.second);
    }
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : m_left(bytes) { }

    template <typename... T>
    void operator()(T&... values)
    {
        (get(values), ...);
    }

private:
    std::string_view m_left;

    std::string_view take(uint64_t size)
    {
        if (size > m_left.size())
            fail_runtime("a message to or from the compiler's process is cut short");
        const std::string_view result = m_left.substr(0, size);
        m_left.remove_prefix(size);
        return result;
    }
    template <typename T>
    void get(T& value)
    {
        if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
            std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
        else
            fields(*this, value);
    }
    void get(std::string& text)
    {
        uint64_t size = 0;
        get(size);
        text = take(size);
    }
    template <typename T>
    void get(std::vector<T>& items)
    {
        uint64_t size = 0;
        get(size);
        for (items.clear(); size > 0; --size)
            get(items.emplace_back());
    }
    template <typename T>
    void get(std::optional<T>& value)
    {
        bool there = false;
        get(there);
        value.reset();
        if (there)
            get(value.emplace());
    }
    template <typename T, typename U>
    void get(std::pair<T, U>& value)
    {
        get(value.first);
        get(value.second);
    }
};

/// A message with its length before it, ready to be sent.
template <typename T>
std::string frame(Kind kind, const T& message)
{
    Writer writer;
    writer(uint64_t(0), kind, message);
    const uint64_t size = writer.bytes.size() - sizeof(size);
    std::memcpy(writer.bytes.data(), &size, sizeof(size));
    return std::move(writer.bytes);
}

} // namespace spy::wire
