#include "slang/rewrite/host.h"

#include "slang/syntax/lexer.h"

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
/// Types of slangpy_host.slang.
constexpr std::string_view types[] = {"Buffer", "RWBuffer", "RWTexture2DMS", "RWTexture2DMSArray"};
/// Those of slangpy_narrow.slang.
constexpr std::string_view narrow[] = {"BFloat16", "FloatE4M3", "FloatE5M2"};

bool is_host_name(std::string_view word)
{
    return std::any_of(std::begin(heads), std::end(heads),
                       [&](std::string_view head) { return word.starts_with(head); });
}

template <typename Test>
bool names(std::string_view source, const Test& is_wanted)
{
    const std::set<std::string_view> words = syntax::words_in(source);
    return std::any_of(words.begin(), words.end(), is_wanted);
}

/// Whether a source names one of these types with arguments, and neither it nor what it imports declares such a name.
bool names_types(std::string_view source, const Surroundings& around)
{
    if (std::any_of(std::begin(types), std::end(types),
                    [&](std::string_view type) { return around.declared.contains(type); }))
        return false;
    const std::vector<syntax::Token> tokens = syntax::tokens_of(source, true).tokens;
    const auto text = [&](size_t i) { return tokens[i].text(source); };
    bool found = false;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (std::find(std::begin(types), std::end(types), text(i)) == std::end(types))
            continue;
        if (i > 0 && (text(i - 1) == "struct" || text(i - 1) == "interface" || text(i - 1) == "typealias"))
            return false;
        found |= text(i + 1) == "<";
    }
    return found;
}

bool is_narrow(std::string_view word)
{
    return std::find(std::begin(narrow), std::end(narrow), word) != std::end(narrow);
}

/// Whether a source names one of the narrow floats, and none of these names that it sees is the user's.
bool names_narrow(std::string_view source, const Surroundings& around)
{
    if (std::any_of(std::begin(narrow), std::end(narrow),
                    [&](std::string_view type) { return around.declared.contains(type); }))
        return false;
    bool found = false, is_typedef = false;
    std::string_view before;
    for (const syntax::Token& token : syntax::tokens_of(source, true).tokens) {
        const std::string_view word = token.text(source);
        if (word == ";" && is_typedef && is_narrow(before))
            return false; // typedef half BFloat16;
        is_typedef = word == "typedef" || (is_typedef && word != ";");
        found |= is_narrow(word);
        before = word;
    }
    return found;
}

/// `import module;` at the end, so that lines and columns stay.
std::vector<Edit> added(const std::string& source, bool is_wanted, const std::string& module)
{
    if (!is_wanted)
        return {};
    return {{source.size(), source.size(), "\nimport " + module + ";\n"}};
}

} // namespace

std::vector<Edit> import_narrow(const std::string& source, const Surroundings& around)
{
    const bool may_name = std::any_of(std::begin(narrow), std::end(narrow),
                                      [&](std::string_view type) { return source.find(type) != source.npos; });
    return added(source, may_name && names_narrow(source, around), "slangpy_narrow");
}

std::vector<Edit> import_host(const std::string& source, const Surroundings& around)
{
    const auto is_in = [&](std::string_view head) { return source.find(head) != source.npos; };
    const bool is_named = std::any_of(std::begin(heads), std::end(heads), is_in) && names(source, is_host_name);
    const bool may_name = std::any_of(std::begin(types), std::end(types), is_in);
    return added(source, is_named || (may_name && names_types(source, around)), "slangpy_host");
}

namespace {

/// `import module;` at the end of a source that names a function of Slang's which our module has instead.
std::vector<Edit> import_function(const std::string& source, std::string_view function, const std::string& module)
{
    const bool may = source.find(function) != source.npos && source.find("import " + module) == source.npos &&
        source.find("module " + module) == source.npos;
    const auto is_it = [&](std::string_view word) { return word == function; };
    return added(source, may && names(source, is_it), module);
}

} // namespace

std::vector<Edit> import_remainders(const std::string& source)
{
    const bool derives = source.find("ifferentiable") != source.npos; // [Differentiable], IDifferentiable, ...
    return derives ? import_function(source, "fmod", "slangpy_remainders") : std::vector<Edit>();
}

std::vector<Edit> import_printing(const std::string& source)
{
    return import_function(source, "printf", "slangpy_print");
}

} // namespace spy
