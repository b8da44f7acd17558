#pragma once
// Which files a folder holds, and whether they are still the same ones.
#include <optional>
#include <span>
#include <string>

namespace spy {

/// What tells files apart without reading them: path, size, times of content and entry, and number on the disk, of
/// every file below `folder` whose name ends with one of `endings`. Folders with a dot in their name, and those called
/// `except`, are left out. Nothing where this platform has no such calls, or a folder cannot be read.
std::optional<std::string> folder_stamp(const std::string& folder, std::span<const std::string> endings,
                                        const std::string& except);

} // namespace spy
