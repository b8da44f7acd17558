// What Slang sources import, for warm starts, which open no compiler.
#include "python/bindings.h"

#include "slang/syntax/imports.h"

namespace spy {

void bind_imports(nb::module_& m)
{
    m.def(
        "imports_in",
        [](const std::string& text) {
            nb::list found;
            for (const syntax::Import& import : syntax::summarize(text).imports)
                found.append(nb::make_tuple(nb::str(import.word.data(), import.word.size()), import.name));
            return found;
        },
        nb::arg("text"), nb::sig("def imports_in(text: str) -> list[tuple[str, str]]"),
        "What a Slang source asks for: \"import\", \"include\" or \"implementing\", and the name as written.");
    m.def(
        "is_experimental_import", [](const std::string& name) { return syntax::is_experimental(name); },
        nb::arg("name"), "Whether Slang loads what is imported by this name only with its experimental features.");
    m.def(
        "words_in",
        [](const std::string& text) {
            nb::list found;
            for (const std::string_view word : syntax::words_in(text))
                found.append(nb::str(word.data(), word.size()));
            return nb::frozenset(found);
        },
        nb::arg("text"), nb::sig("def words_in(text: str) -> frozenset[str]"),
        "The words and names of a Slang source, those in strings and directives, too.");
}

} // namespace spy
