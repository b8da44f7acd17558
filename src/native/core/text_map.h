#pragma once
// Where the bytes of a changed text were before.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace spy {

/// Bytes [new_begin, new_end) of the new text stand in place of [begin, end) of the old one.
struct ChangedPart {
    size_t begin, end;
    size_t new_begin, new_end;
    uint32_t rules; ///< who changed it: bits
};

/// Bytes [new_begin, new_end) of the new text were moved there, out of order, from `begin` of the old one.
struct MovedPart {
    size_t new_begin, new_end;
    size_t begin;
};

/// What lies between the parts is the same in both texts.
class TextMap {
public:
    TextMap() = default;
    explicit TextMap(std::vector<ChangedPart> parts, std::vector<MovedPart> moved = {})
        : m_parts(std::move(parts)),
          m_moved(std::move(moved))
    {
    }

    const std::vector<ChangedPart>& parts() const { return m_parts; } ///< in the order of both texts
    bool empty() const { return m_parts.empty(); }
    /// Where a byte of the new text was; of what is new, the first byte that it stands for.
    size_t before(size_t at) const;
    /// The part of moved text that holds a byte of the new text; null where none does.
    const MovedPart* moved(size_t at) const;

private:
    std::vector<ChangedPart> m_parts;
    std::vector<MovedPart> m_moved; ///< in the order of the new text
};

} // namespace spy
