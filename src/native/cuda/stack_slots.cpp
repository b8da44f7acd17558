#include "cuda/stack_slots.h"

#include "core/error.h"
#include "cuda/used_parts.h"

#include <algorithm>

namespace spy {
namespace {

constexpr std::string_view array_head = "template<typename T, size_t SIZE>\nstruct FixedArray\n{";
size_t count(std::string_view text, std::string_view part)
{
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
        ++found;
    return found;
}

/// Replaces `from` between begin and the text's end, or the first `end` after begin; false where it is not there.
bool replace(std::string& text, std::string_view begin, std::string_view end, std::string_view from,
             std::string_view to)
{
    size_t at = text.find(begin);
    const size_t last = at == std::string::npos ? at : text.find(end, at);
    bool found = false;
    for (size_t left = last == std::string::npos ? 0 : text.size() - last;
         left && (at = text.find(from, at)) < text.size() - left; at += to.size(), found = true)
        text.replace(at, from.size(), to);
    return found;
}

/// `[int(3)]` -> `[_spy_index<3>()]`
std::string literal_indices(std::string_view program)
{
    constexpr std::string_view head = "[int(";
    std::string result;
    size_t done = 0;
    for (size_t at = program.find(head); at != std::string_view::npos; at = program.find(head, at + 1)) {
        const size_t first = at + head.size();
        size_t last = first;
        while (last < program.size() && is_cuda_digit(program[last]))
            ++last;
        if (last == first || program.substr(last, 2) != ")]")
            continue;
        result += cat(program.substr(done, at - done), "[_spy_index<", program.substr(first, last - first), ">()]");
        done = last + 2;
    }
    result += program.substr(done);
    return result;
}

/// The names of groupshared variables, each between spaces.
std::string shared_names(std::string_view program)
{
    constexpr std::string_view head = "__shared__ ";
    std::string names = " ";
    for (size_t at = program.find(head); at != std::string_view::npos; at = program.find(head, at + 1)) {
        size_t last = std::min(program.find_first_of(";=", at), program.size());
        while (last > at && !is_cuda_name(program[last - 1]))
            --last;
        size_t first = last;
        while (first > at && is_cuda_name(program[first - 1]))
            --first;
        names += cat(program.substr(first, last - first), " ");
    }
    return names;
}

/// Where `*_slang_vector_get_element_ptr(&name, index)` ends, if a local vector is written there by it: `= value`
/// follows. Of other memory only the component may be touched, since other threads may write its neighbours.
size_t end_of_local_write(std::string_view program, size_t at, size_t behind_head, const std::string& shared)
{
    if (at == 0 || program[at - 1] != '*' || program.substr(behind_head, 1) != "&")
        return 0;
    size_t end = behind_head + 1;
    while (end < program.size() && is_cuda_name(program[end]))
        ++end;
    const std::string_view name = program.substr(behind_head + 1, end - behind_head - 1);
    if (name.empty() || program.substr(end, 1) != "," || shared.find(cat(" ", name, " ")) != std::string::npos)
        return 0;
    for (int depth = 1; end < program.size() && depth; ++end)
        depth += program[end] == '(' ? 1 : program[end] == ')' ? -1 : 0;
    return program.substr(end, 3) == " = " ? end : 0;
}

/// The program's own writes to components; loops of the library over vectors leave nothing in memory.
std::string with_apart_elements(std::string_view program)
{
    constexpr std::string_view head = "_slang_vector_get_element_ptr(";
    const std::string shared = shared_names(program);
    std::string result;
    size_t done = 0;
    for (size_t at = program.find(head); at != std::string_view::npos; at = program.find(head, at + 1)) {
        const size_t behind = at + head.size(), end = end_of_local_write(program, at, behind, shared);
        result += program.substr(done, at - done - (end ? 1 : 0));
        result += end ? "_spy_written_of(" : "_spy_element_apart(";
        done = behind + (end ? 1 : 0);
    }
    result += program.substr(done);
    return result;
}

} // namespace

bool cuda_shares_places(int major, int minor)
{
    const int version = 100 * major + minor;
    return version >= 1208 && version <= 1300;
}

bool cuda_has_local_arrays(std::string_view ptx)
{
    if (ptx.find("__local_depot") == std::string_view::npos)
        return false;
    // Each inlined sin or cos stores its table by a loop and one instruction, and reads it by three.
    const size_t tables = count(ptx, ", __cudart_i2opi_f");
    const size_t stores = count(ptx, "st.local"), loads = count(ptx, "ld.local");
    const bool words_only = count(ptx, "st.local.u32") == stores && count(ptx, "ld.local.u32") == loads;
    return !words_only || stores > 2 * tables || loads > 3 * tables;
}

std::string cuda_arrays_apart(std::string_view source, size_t program)
{
    std::string library(source.substr(0, program));
    if (!replace(library, array_head, "};", "return m_data[index];", "return _spy_apart(m_data)[index];") ||
        !replace(library, array_head, "};", array_head, cat(cuda_apart_supplement, array_head, cuda_apart_members)))
        return {};
    replace(library, "_slang_vector_get_element(", "struct ", "((T*)(&x))[index]", "_spy_picked<T>(x, index)");
    return library + with_apart_elements(literal_indices(source.substr(program)));
}

} // namespace spy
