#include "slang/rewrite_host.h"

#include "core/tokens.h"

#include <algorithm>
#include <string_view>

namespace spy {
namespace {

/// How the names of slangpy_host.slang begin.
constexpr std::string_view heads[] = {"Wave",
                                      "Interlocked",
                                      "Gather",
                                      "SampleCmp",
                                      "AllMemoryBarrier",
                                      "DeviceMemoryBarrier",
                                      "GroupMemoryBarrier",
                                      "CalculateLevelOfDetail"};

bool is_host_name(std::string_view word)
{
    return std::any_of(std::begin(heads), std::end(heads),
                       [&](std::string_view head) { return word.starts_with(head); });
}

template <typename Test>
bool names(std::string_view source, const Test& is_wanted)
{
    const std::vector<Token> tokens = tokens_of(source);
    return std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
        return is_wanted(source.substr(token.begin, token.end - token.begin));
    });
}

} // namespace

std::string import_host(std::string source)
{
    const bool may = std::any_of(std::begin(heads), std::end(heads),
                                 [&](std::string_view head) { return source.find(head) != source.npos; });
    return may && names(source, is_host_name) ? source + "\nimport slangpy_host;\n" : source;
}

std::string import_printing(std::string source)
{
    const bool may = source.find("printf") != source.npos && source.find("import slangpy_print") == source.npos;
    const auto is_printf = [](std::string_view word) { return word == "printf"; };
    return may && names(source, is_printf) ? source + "\nimport slangpy_print;\n" : source;
}

} // namespace spy
