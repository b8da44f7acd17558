// What is changed in sources before Slang sees them: for tests, and for `python -m slangpy rewrite`.
#include "python/slang/objects.h" // first: nanobind must come before core/ref.h

#include "slang/isolation/deadly.h"
#include "slang/name_text.h"
#include "slang/rewrite/rewrite.h"

namespace spy {
namespace {

nb::object tuple_of(const Rewritten& made)
{
    nb::list edits;
    for (const ChangedPart& part : made.map.parts())
        edits.append(nb::make_tuple(part.begin, part.end, part.new_begin, part.new_end, names_of_rules(part.rules)));
    return nb::make_tuple(nb::bytes(made.text.data(), made.text.size()), edits, names_of_rules(made.rules));
}

nb::object rewrite(const std::string& source, const std::string& path, std::vector<std::string> include_paths,
                   std::vector<std::string> library_paths, const std::string& setting, bool for_host,
                   const std::string& defines)
{
    Rewriter rewriter(std::move(include_paths), std::move(library_paths),
                      {rules_of_setting(setting), false, for_host, true, defines});
    return tuple_of(rewriter.rewrite(source, "", path));
}

nb::list rules()
{
    nb::list all;
    for (const RewriteRule& rule : rewrite_rules())
        all.append(nb::make_tuple(std::string(rule.name), std::string(rule.fault), std::string(rule.issue),
                                  std::string(rule.since), std::string(rule.until), std::string(rule.stage)));
    return all;
}

} // namespace

void bind_rewrites(nb::module_& m)
{
    m.def("rewrite", &rewrite, nb::arg("source"), nb::arg("path"), nb::arg("include_paths"), nb::arg("library_paths"),
          nb::arg("rewrites") = "", nb::arg("for_host") = false, nb::arg("defines") = "",
          nb::sig("def rewrite(source: str, path: str, include_paths: list[str], library_paths: list[str], "
                  "rewrites: str = '', for_host: bool = False, defines: str = '') -> "
                  "tuple[bytes, list[tuple[int, int, int, int, list[str]]], list[str]]"),
          "A source as Slang gets to see it: the text, its edits (begin and end in the source, begin and end in the "
          "text, in bytes; names of the rules), and the rules that acted. `rewrites`: what SLANGPY_REWRITES may say; "
          "`defines`: lines of `#define` that the source sees.");
    m.def(
        "rewrite_alone",
        [](const std::string& source, const std::vector<std::string>& names) {
            return rewrite_alone(source, rules_of_names(names)).text;
        },
        nb::arg("source"), nb::arg("rules"), "What some rules make of a source that imports nothing.");
    m.def(
        "suspects",
        [](const std::string& source, const std::string& path) {
            std::vector<std::string> places;
            for (const Deadly& place : suspects(source))
                places.push_back(point_at(source, path, place));
            return places;
        },
        nb::arg("source"), nb::arg("path"),
        "What in a source Slang has been seen to crash on: the places with what to write instead.");
    m.def("rewrite_rules", &rules, nb::sig("def rewrite_rules() -> list[tuple[str, str, str, str, str, str]]"),
          "The table of rules: name, fault, issue or minimal case, since, until, stage.");
    m.def(
        "rewrite_constraints", [](const std::string& source) { return rewrite_for_library(source).text; },
        nb::arg("source"), "Source text that sees our library, as Slang gets to see it, without other changes.");
    m.def(
        "sanitize_name", [](const std::string& name) { return sanitize_name(name); }, nb::arg("name"),
        "Name text as Slang gets to see it; empty when refused.");
}

} // namespace spy
