#include "slang/rewrite/passed.h"

#include "core/content_hash.h"
#include "core/error.h"

namespace spy {

std::vector<Edit> with_passed(std::string_view source, const std::vector<Places>& functions)
{
    const std::string hash = content_hash(source);
    size_t number = 0;
    std::map<size_t, std::string> texts;
    for (const Places& places : functions) {
        const std::string same = cat("_spy_same_", hash, "_", number);
        bool uses_same = false;
        for (const auto& [place, braces] : places.braces)
            texts[place] += braces;
        for (const auto& [place, passed] : places.passed) {
            for (const std::string_view name : passed.floats)
                texts[place] += cat(" ", name, " = -(-", name, ");");
            for (const std::string_view name : passed.values)
                texts[place] += cat(" ", name, " = ", same, "(", name, ");");
            uses_same |= !passed.values.empty();
        }
        for (const auto& [place, braces] : places.closing)
            texts[place] += braces;
        if (!uses_same)
            continue;
        // One for each function: another may stand in another branch of an #if, or a file be included twice.
        texts[places.begin] += cat("T ", same, "<T>(T v) { return v; } [Differentiable] T ", same,
                                   "<T : IDifferentiable>(T v) { return v; } ");
        ++number;
    }
    return insertions(std::move(texts));
}

} // namespace spy
