#pragma once
// Changes of a source, applied in one pass.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// `text` in place of the bytes [begin, end).
struct Edit {
    size_t begin, end;
    std::string text;
};

/// The source with its edits, which stand in its order. What the changed lines were is kept for diagnostics.
std::string with_edits(std::string_view source, const std::vector<Edit>& edits);
/// The same, with texts by the byte that they are put in front of.
std::string with_insertions(std::string_view source, const std::map<size_t, std::string>& texts);

} // namespace spy
