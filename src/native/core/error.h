#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace spy {

/// The Python exception class an error becomes at the border (python/module.cpp holds the one translator).
enum class ErrorKind { runtime, value, type, index, key, memory, overflow, not_implemented, timeout, slang_compile };

/// The only exception class native code throws on purpose.
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), m_kind(kind) { }
    ErrorKind kind() const { return m_kind; }

private:
    ErrorKind m_kind;
};

/// Concatenates its arguments as text: cat("got ", 3, " of ", name).
template <typename... Args>
std::string cat(const Args&... args)
{
    std::ostringstream out;
    (out << ... << args);
    return out.str();
}

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args)
{
    throw Error(kind, cat(args...));
}

template <typename... Args>
[[noreturn]] void fail_value(const Args&... args)
{
    throw Error(ErrorKind::value, cat(args...));
}

template <typename... Args>
[[noreturn]] void fail_runtime(const Args&... args)
{
    throw Error(ErrorKind::runtime, cat(args...));
}

} // namespace spy
