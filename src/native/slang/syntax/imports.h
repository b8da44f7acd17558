#pragma once
// What a source imports and declares, by its words: for warm starts, which open no compiler and parse nothing.
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy::syntax {

struct Import {
    std::string_view word; ///< `import`, `include` (`__include` too), `implementing`: no part of the source
    std::string name;      ///< `a.b`, `"a/b.slang"`, `<a>`, as written
    size_t begin, end;     ///< bytes of the name

    bool is_quoted() const { return name[0] == '"' || name[0] == '<'; }
    std::string file() const { return is_quoted() ? name.substr(1, name.size() - 2) : name; } ///< without quotes
};

/// Whether this is what a module of Slang's own is imported by that it loads only with its experimental features.
bool is_experimental(std::string_view file);
/// Of all of a source, in branches of `#if` and bodies of macros, too; not in comments and strings.
struct Summary {
    std::set<std::string, std::less<>> declared; ///< types
    std::vector<Import> imports;                 ///< and what it includes
};
Summary summarize(std::string_view source);
/// The words and names of a source; those in strings and directives, too.
std::set<std::string_view> words_in(std::string_view source);

} // namespace spy::syntax
