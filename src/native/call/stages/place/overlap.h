#pragma once
// Whether views of memory meet: exact within a bound of effort, as NumPy's shares_memory.
#include "core/shape.h"

#include <cstdint>

namespace spy {

/// Where the elements of a view lie, in bytes.
struct MemoryView {
    uint64_t address = 0; ///< of the first element
    int64_t item = 0;
    Shape shape, strides;

    bool is_empty() const;
    uint64_t begin() const; ///< of the range that holds all elements
    uint64_t end() const;
    bool operator==(const MemoryView&) const = default;
};

/// Whether the ranges of two views meet: cheap, and true for some views that share nothing.
bool may_share_memory(const MemoryView& a, const MemoryView& b);
/// Whether an element of one view has a byte of an element of the other. True where that would take too long to tell.
bool shares_memory(const MemoryView& a, const MemoryView& b);
/// Whether two elements of one view have a byte in common. True where that would take too long to tell.
bool overlaps_itself(const MemoryView& view);

} // namespace spy
