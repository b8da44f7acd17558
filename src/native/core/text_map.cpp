#include "core/text_map.h"

#include <algorithm>

namespace spy {

size_t TextMap::before(size_t at) const
{
    // the last part that begins at or before the byte
    auto part = std::upper_bound(m_parts.begin(), m_parts.end(), at,
                                 [](size_t place, const ChangedPart& next) { return place < next.new_begin; });
    if (part == m_parts.begin())
        return at;
    --part;
    return at < part->new_end ? part->begin : at - part->new_end + part->end;
}

const MovedPart* TextMap::moved(size_t at) const
{
    auto part = std::upper_bound(m_moved.begin(), m_moved.end(), at,
                                 [](size_t place, const MovedPart& next) { return place < next.new_begin; });
    if (part == m_moved.begin())
        return nullptr;
    --part;
    return at < part->new_end ? &*part : nullptr;
}

} // namespace spy
