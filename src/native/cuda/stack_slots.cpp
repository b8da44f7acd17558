#include "cuda/stack_slots.h"

namespace spy {
namespace {

size_t count(std::string_view text, std::string_view part)
{
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
        ++found;
    return found;
}

} // namespace

std::string cuda_unshared_option(int major, int minor)
{
    const int version = 100 * major + minor;
    if (version < 1208 || version > 1300)
        return {};
    return version == 1208 ? "--Ofast-compile=max" : "--Ofast-compile=mid"; // 12.8 knows no other
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

} // namespace spy
