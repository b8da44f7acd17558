// A digest of bytes, by which caches know content.
#include "core/content_hash.h"

#include <cstdint>
#include <cstdio>

namespace spy {

std::string content_hash(std::string_view bytes)
{
    uint64_t hash = 14695981039346656037ull;
    for (unsigned char byte : bytes)
        hash = (hash ^ byte) * 1099511628211ull;
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
    return text;
}

} // namespace spy
