#include "cpu/api.h"

#include "cpu/ahead.h"
#include "cpu/system.h"

#include "core/error.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>

namespace spy::cpu {

namespace {

std::mutex config_mutex;
Config current_config;
bool compiler_known = false;
Compiler found_compiler;

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Whether the name of a program has a part, whatever the folders are called that it lies in.
bool is_named(const std::string& path, std::string_view part)
{
    const size_t folder = path.find_last_of("/\\");
    return path.find(part, folder == std::string::npos ? 0 : folder + 1) != std::string::npos;
}

/// A command may go through others ("ccache clang++", "python -m ziglang c++").
bool any_is_named(const std::vector<std::string>& command, std::string_view part)
{
    return std::any_of(command.begin(), command.end(), [&](const std::string& word) { return is_named(word, part); });
}

/// What kernels that use nothing of the C++ library are linked with: reading that library takes longer than linking
/// them. What is missing is an error now, not when the kernel is loaded.
std::vector<std::string> c_libraries(const Compiler& cxx)
{
#ifdef __linux__
    if (!cxx.is_clang)
        return {"-nostdlib", "-Wl,-z,defs", "-lgcc", "-lm", "-lc"};
#endif
    (void)cxx;
    return {};
}

/// Appended to the bytes of a library, which the loader ignores: how much stack its functions take.
constexpr std::string_view stack_mark = "\nspy stack ";

/// A library with the sum of the frames that its compiler warned of, each on a line that ends in the name of the
/// option:
/// "...: the frame size of 16000032 bytes is larger than 2048 bytes [-Wframe-larger-than=]".
std::string with_stack(std::string library, std::string_view log)
{
    uint64_t sum = 0;
    for (size_t at = 0; (at = log.find("[-Wframe-larger-than", at)) != log.npos; ++at) {
        const size_t line = log.rfind('\n', at) + 1; // of npos: 0
        const size_t text = std::min(log.rfind(": ", at), at);
        uint64_t largest = 0;
        for (size_t i = std::max(line, text) + 1; i < at; ++i) {
            const bool is_in_name = std::isalnum(static_cast<unsigned char>(log[i - 1])) || log[i - 1] == '_';
            if (!is_in_name && std::isdigit(static_cast<unsigned char>(log[i])))
                largest = std::max<uint64_t>(largest,
                                             std::strtoull(std::string(log.substr(i, 20)).c_str(), nullptr, 10));
        }
        sum += largest;
    }
    return sum ? cat(library, stack_mark, sum, "\n") : library;
}

} // namespace

uint64_t stack_of(std::string_view library)
{
    library.remove_prefix(library.size() - std::min<size_t>(library.size(), 40));
    const size_t at = library.rfind(stack_mark);
    if (at == library.npos)
        return 0;
    return std::strtoull(std::string(library.substr(at + stack_mark.size())).c_str(), nullptr, 10);
}

Config config()
{
    std::lock_guard lock(config_mutex);
    return current_config;
}

void set_config(Config config)
{
    std::lock_guard lock(config_mutex);
    current_config = std::move(config);
    compiler_known = false;
}

const Compiler& compiler()
{
    std::lock_guard lock(config_mutex);
    if (compiler_known)
        return found_compiler;
    std::string tried;
    for (const std::vector<std::string>& command : current_config.compilers) {
        if (command.empty())
            continue;
        tried += (tried.empty() ? "" : ", ") + command[0];
        std::string program = find_program(command[0]);
        if (program.empty())
            continue;
        found_compiler = {command, "", false, false};
        found_compiler.command[0] = program;
        found_compiler.identity = file_identity(program);
        found_compiler.is_zig = is_named(program, "zig") || any_is_named(command, "zig");
        // "g++" and "c++" may lead to clang; the identity ends in two numbers
        found_compiler.is_clang = found_compiler.is_zig || any_is_named(command, "clang") ||
            is_named(found_compiler.identity, "clang");
        for (size_t i = 1; i < command.size(); ++i)
            found_compiler.identity += " " + command[i];
        compiler_known = true;
        return found_compiler;
    }
    fail_runtime("no C++ compiler found for the cpu device (tried ", tried,
                 "). Install one, for example 'apt install g++' or 'pip install ziglang', or set CXX");
}

namespace {

/// The library made by the compiler that has read the beginning of `source` before; nothing where none has, or it
/// failed.
std::optional<std::string> finish_begun(std::string_view source, const std::vector<std::string>& flags)
{
    const std::optional<Compiled> begun = compile_begun(source, flags);
    if (!begun)
        return {};
    const std::string* const object = &begun->object;
    const Compiler& cxx = compiler();
    const WorkFolder folder;
    const std::string from = folder.path + object_name, to = folder.path + library_name;
    write_file(from, *object, "a compiled kernel");
    std::vector<std::string> command = cxx.command;
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"-o", to, from});
    const std::vector<std::string> libraries = needs_libraries(*object) ? c_libraries(cxx)
                                                                        : std::vector<std::string>{"-nostdlib"};
    command.insert(command.end(), libraries.begin(), libraries.end());
    if (run(command, folder.path + "/log.txt") != 0)
        return {};
    return with_stack(read_file(to), begun->log);
}

} // namespace

std::string compile_shared_library(std::string_view source, std::string_view whole,
                                   const std::vector<std::string>& flags, const std::string& label)
{
    const Compiler& cxx = compiler();
    if (!whole.empty())
        if (std::optional<std::string> code = finish_begun(source, flags))
            return std::move(*code);
    WorkFolder folder;
    const std::string text = folder.path + "/kernel.cpp", out = folder.path + library_name,
                      log = folder.path + "/log.txt";
    const auto compile = [&](std::string_view code, std::vector<std::string> libraries) {
        write_file(text, code, "the source of a kernel");
        std::vector<std::string> command = cxx.command;
        command.insert(command.end(), flags.begin(), flags.end());
        command.insert(command.end(), {"-o", out, text});
        command.insert(command.end(), libraries.begin(), libraries.end());
        return run(command, log);
    };
    int status = whole.empty() ? compile(source, {}) : compile(source, c_libraries(cxx));
    if (status != 0 && !whole.empty())
        status = compile(whole, {});
    if (status != 0) {
        compile(whole.empty() ? source : whole, {"-w"}); // again, for a log without warnings
        folder.keep = true;
        fail(ErrorKind::slang_compile, "compiling the C++ code of ", label, " failed (", cxx.command[0],
             " exited with status ", status, "; source kept in ", text, "):\n", read_file(log));
    }
    return with_stack(read_file(out), read_file(log));
}

} // namespace spy::cpu
