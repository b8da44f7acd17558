#include "slang/isolation/crash.h"

#include "slang/isolation/deadly.h"

#include <algorithm>
#include <fstream>
#include <mutex>

namespace spy {
namespace {

struct Crash {
    std::string text;                                         ///< of the module; empty: a file's
    std::vector<std::pair<std::string, std::string>> sources; ///< paths and contents of the files that it was made of
    std::string what;
};
std::mutex crashes_mutex;
std::vector<Crash>& crashes()
{
    static auto* all = new std::vector<Crash>();
    return *all;
}

std::string contents(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string describe(const Crash& crash, const ModuleData& module)
{
    std::vector<std::pair<std::string, std::string>> texts = crash.sources;
    texts.emplace_back(module.path.empty() ? module.name : module.path, crash.text);
    std::string found;
    for (const auto& [path, text] : texts)
        for (const Deadly& place : suspects(text))
            found += "\n" + point_at(text, path, place);
    return cat("Failed to load slang module \"", module.name, "\": ", crash.what,
               " while it read this source. This is a fault of the compiler, not of Python; ",
               found.empty() ? "to find what it stumbles over, take parts of the source away until it compiles"
                             : "it may have been this:",
               found);
}

/// Whether a module is made of what a crash was made of.
bool is_same(const Crash& crash, const ModuleData& module)
{
    const auto& files = crash.sources;
    if (module.source == ModuleData::Source::text ? module.content.empty() || module.content != crash.text
                                                  : module.source != ModuleData::Source::file || !crash.text.empty())
        return false;
    return (module.source == ModuleData::Source::text ||
            std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.first == module.path; })) &&
        std::all_of(files.begin(), files.end(), [](const auto& file) { return contents(file.first) == file.second; });
}

} // namespace

std::string known_crash(const ModuleData& module)
{
    const std::lock_guard guard(crashes_mutex);
    for (const Crash& crash : crashes())
        if (is_same(crash, module))
            return describe(crash, module);
    return {};
}

std::string crash_text(const SourceFiles& files, uint64_t since, const ModuleData& module, const std::string& what)
{
    Crash crash;
    crash.what = what;
    if (module.source == ModuleData::Source::text)
        crash.text = module.content;
    for (const SourceFiles::Lookup& lookup : files.lookups(since).second)
        if (lookup.real.ends_with(".slang") && !files.is_library(lookup.real))
            crash.sources.emplace_back(lookup.real, contents(lookup.real));
    const std::lock_guard guard(crashes_mutex);
    crashes().push_back(crash);
    return describe(crash, module);
}

} // namespace spy
