#pragma once
#include <cstdint>

namespace spy {

constexpr uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

} // namespace spy
