// What the sources of a module say.
#include "python/slang/bindings.h"

#include "slang/facts.h"

namespace spy {
namespace {

using syntax::DerivedSize, syntax::Facts, syntax::FunctionFacts, syntax::LimitedLoop, syntax::LostShare;

/// Bits as names.
nb::frozenset names_of(unsigned uses)
{
    static constexpr const char* names[] = {"reads", "stores", "gradient", "unknown"};
    nb::list found;
    for (size_t bit = 0; bit < std::size(names); ++bit)
        if (uses >> bit & 1)
            found.append(names[bit]);
    return nb::frozenset(found);
}

template <class Words>
nb::frozenset frozen(const Words& words)
{
    nb::list found;
    for (const auto& word : words)
        found.append(nb::str(word.data(), word.size()));
    return nb::frozenset(found);
}

void bind_function_facts(nb::module_& m)
{
    nb::class_<FunctionFacts> facts(m, "FunctionFacts", "What one function says and does.");
    nb::class_<FunctionFacts::Parameter>(facts, "Parameter", "One parameter.")
        .def_ro("name", &FunctionFacts::Parameter::name, "Its name.")
        .def_ro("type", &FunctionFacts::Parameter::type,
                "Its type, blanks only between words, with the dimensions after the name.")
        .def_ro("direction", &FunctionFacts::Parameter::direction, "in, out, inout or ref.")
        .def_ro("is_no_diff", &FunctionFacts::Parameter::is_no_diff, "Whether it says no_diff.");
    nb::class_<FunctionFacts::Loop>(facts, "Loop", "One loop.")
        .def_ro("is_unrolled", &FunctionFacts::Loop::is_unrolled, "Whether it says [ForceUnroll].")
        .def_ro("max_iters", &FunctionFacts::Loop::max_iters, "What stands in [MaxIters(...)]; empty without.");
    nb::class_<DerivedSize>(m, "DerivedSize", "How long a function is that Slang differentiates.")
        .def_ro("function", &DerivedSize::function, "Its name.")
        .def_ro("line", &DerivedSize::line, "Its line, from 1.")
        .def_ro("conditions", &DerivedSize::conditions, "How many `if` and `?:` it has.")
        .def_ro("statements", &DerivedSize::statements, "How many statements it has.");
    nb::class_<LimitedLoop>(m, "LimitedLoop", "A loop with [MaxIters] in a function that Slang differentiates.")
        .def_ro("function", &LimitedLoop::function, "The name of the function.")
        .def_ro("line", &LimitedLoop::line, "Its line, from 1.")
        .def_ro("trips", &LimitedLoop::trips, "How many trips it may have, with those of the loops around it.");
    nb::class_<LostShare>(m, "LostShare", "Two uses of one variable of which a reverse derivative may lose a share.")
        .def_ro("function", &LostShare::function, "The function that has them.")
        .def_ro("variable", &LostShare::variable, "The variable.")
        .def_ro("first", &LostShare::first, "The use that comes first, as written.")
        .def_ro("second", &LostShare::second, "The other one.");
    facts.def_ro("name", &FunctionFacts::name, "Its name.")
        .def_ro("owner", &FunctionFacts::owner, "The type that it is a method of.")
        .def_ro("parameters", &FunctionFacts::parameters, "Its parameters.")
        .def_ro("attributes", &FunctionFacts::attributes, "Its attributes as written.")
        .def_ro("derivatives", &FunctionFacts::derivatives, "Attributes of own derivatives, and what they name.")
        .def_ro("loops", &FunctionFacts::loops, "Its loops, outer ones first.")
        .def_ro("calls", &FunctionFacts::calls, "The names that it calls.")
        .def_ro("statics", &FunctionFacts::statics, "The variables of its thread that it uses.")
        .def_ro("writes", &FunctionFacts::writes,
                "Parameters, fields and globals that it may write, or a part of them.")
        .def_ro("has_body", &FunctionFacts::has_body, "Whether it is defined there.")
        .def_ro("is_mutating", &FunctionFacts::is_mutating, "Whether it may change its object.")
        .def_ro("is_understood", &FunctionFacts::is_understood, "Whether all of it was.");
}

auto words_by_name(std::set<std::string_view> (Facts::*method)(std::string_view) const)
{
    return [method](const Facts& facts, const std::string& name) { return frozen((facts.*method)(name)); };
}

auto lines_by_name(std::vector<std::pair<std::string, size_t>> (Facts::*method)(std::string_view) const)
{
    return [method](const Facts& facts, const std::string& name) { return (facts.*method)(name); };
}

void bind_reached(nb::class_<Facts>& facts)
{
    facts
        .def("reached_words", words_by_name(&Facts::reached_words), nb::arg("function"),
             "The words in functions of a name and in those that they name; none where none has a body.")
        .def("reached_names", words_by_name(&Facts::reached_names), nb::arg("function"),
             "Those of `reached_words` that may name a global.")
        .def(
            "reached_uses",
            [](const Facts& facts, const std::string& function, const std::string& type) {
                return facts.reached_uses(function, type);
            },
            nb::arg("function"), nb::arg("type"),
            "Uses of a generic type in these, and in the types and aliases that they name: the text, and the alias "
            "that stands for it, empty where none does. The name alone where only a macro names it.");
}

} // namespace

void bind_slang_facts(nb::module_& m)
{
    bind_function_facts(m);
    nb::class_<Facts> facts(m, "SourceFacts", "What the sources of a module say, one after the other, from one parse.");
    bind_reached(facts);
    facts
        .def(nb::init<std::string, const std::vector<std::string>&>(), nb::arg("text"),
             nb::arg("macros") = std::vector<std::string>(), "macros: names that are defined from outside.")
        .def("functions", &Facts::functions, "Every function, in order.")
        .def("keeps_statics", &Facts::keeps_statics,
             "Whether it has variables that live as long as their thread and may be written. It errs towards True.")
        .def(
            "words", [](const Facts& facts) { return frozen(facts.words()); }, "All names and keywords.")
        .def(
            "no_diff_types", [](const Facts& facts) { return frozen(facts.no_diff_types()); },
            "Words in the types of parameters and variables that say no_diff.")
        .def(
            "may_loop", [](const Facts& facts, const std::string& name) { return facts.may_loop(name); },
            nb::arg("function"), "Whether one of these has a loop that is not unrolled, or no body is there.")
        .def("unread_functions", lines_by_name(&Facts::unread_functions), nb::arg("function"),
             "Those of these that Slang may differentiate and that were not understood: names, and their lines.")
        .def("pack_functions", lines_by_name(&Facts::pack_functions), nb::arg("function"),
             "The same of those with a pack of parameters, whose derivatives Slang takes for zero.")
        .def(
            "longest_loop", [](const Facts& facts, const std::string& name) { return facts.longest_loop(name); },
            nb::arg("function"),
            "Of the loops in these whose [MaxIters] can be told, the one with most trips; None where there is none.")
        .def(
            "largest_derived", [](const Facts& facts, const std::string& name) { return facts.largest_derived(name); },
            nb::arg("function"),
            "Of those of these that Slang may differentiate, the one with most conditions, else statements; None where "
            "there is none.")
        .def("recursive_functions", lines_by_name(&Facts::recursive_functions), nb::arg("function"),
             "Those of these that call themselves, perhaps by way of others.")
        .def(
            "view_uses",
            [](const Facts& facts, const std::string& function, size_t index, const std::vector<std::string>& fields) {
                return names_of(facts.view_uses(function, index, fields));
            },
            nb::arg("function"), nb::arg("index"), nb::arg("fields") = std::vector<std::string>(),
            "What functions of a name do with a view, their parameter of that index or a field in it: reads, stores, "
            "gradient, unknown.")
        .def("dependent_defaults", lines_by_name(&Facts::dependent_defaults), nb::arg("name"),
             "Parameters of functions of a name, and fields of types of it, whose default value names a parameter or a "
             "field: names, and their lines.")
        .def("extern_constants", &Facts::extern_constants, "Names and types of what is `extern static const`.")
        .def("comments_above", &Facts::comments_above, nb::arg("line"), nb::arg("column"),
             "The comments of the function or type whose name stands in a line and column (from 1), as written.")
        .def(
            "lost_shares", [](const Facts& facts, const std::string& name) { return facts.lost_shares(name); },
            nb::arg("function"),
            "The pairs of uses in functions of a name of which Slang's reverse derivative may lose a share.")
        .def("differentiates", &Facts::differentiates, nb::arg("function"), nb::arg("index"),
             "The functions, and the parameters of them, that a view is passed to inside of bwd_diff; None where it is "
             "used otherwise.");
}

} // namespace spy
