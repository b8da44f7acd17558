#include "slang/rewrite/rewrite.h"

#include "slang/rewrite/host.h"
#include "slang/rewrite/library.h"
#include "slang/rewrite/rules.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace spy {
namespace {

/// Whether one of the folders has a file of this name.
bool holds(const std::vector<std::string>& folders, const char* name)
{
    std::error_code error;
    return std::any_of(folders.begin(), folders.end(),
                       [&](const std::string& path) { return fs::is_regular_file(fs::path(path) / name, error); });
}

Rewritten result_of(const EditedText& text) { return {text.text(), text.map(), text.acted()}; }

} // namespace

struct Rewriter::State {
    State(std::vector<std::string> include_paths, std::vector<std::string> library_paths, RewriteOptions given)
        : options(std::move(given)),
          has_library(holds(library_paths, "slangpy.slang")),
          has_remainders(has_library || holds(include_paths, "slangpy_remainders.slang")),
          imports(std::move(include_paths), std::move(library_paths), options.defines)
    {
    }

    RewriteOptions options;
    bool has_library, has_remainders; ///< sources can import slangpy, slangpy_remainders
    ImportMap imports;
};

Rewriter::Rewriter(std::vector<std::string> include_paths, std::vector<std::string> library_paths,
                   RewriteOptions options)
    : m_state(std::make_unique<State>(std::move(include_paths), std::move(library_paths), std::move(options)))
{
}

Rewriter::~Rewriter() = default;

Rewritten Rewriter::rewrite(const std::string& source, const std::string& name, const std::string& path)
{
    State& state = *m_state;
    const RewriteOptions& options = state.options;
    const Surroundings around = state.imports.around(source, name, path);
    EditedText text(source);
    text.begin_rule(library_rule);
    const RuleContext context(around, options.inlines_differentiable, state.has_remainders);
    prepare_source(text, context, state.has_library);
    apply_rules(text, context, options.rules);
    text.begin_rule(library_rule);
    if (options.for_host && state.has_library) {
        text.apply(import_host(text.text(), around));
        text.apply(import_narrow(text.text(), around));
    }
    if (options.prints && state.has_library)
        text.apply(import_printing(text.text()));
    return result_of(text);
}

std::set<std::string> Rewriter::library_imports(const std::string& source, const std::string& name,
                                                const std::string& path)
{
    const Surroundings around = m_state->imports.around(source, name, path);
    std::set<std::string> names = around.asked_library;
    const auto may_use = [](const std::shared_ptr<const ParsedSource>& imported) {
        return may_use_library(imported->text(), syntax::summarize(imported->text()).declared);
    };
    if (may_use_library(source, around.declared) ||
        std::any_of(around.imported.begin(), around.imported.end(), may_use))
        names.insert("slangpy");
    return names;
}

bool Rewriter::reaches_experimental(const std::optional<std::string>& text, const std::string& path)
{
    return m_state->imports.reaches_experimental(text, path);
}

Rewritten rewrite_alone(const std::string& source, RuleMask rules)
{
    EditedText text(source);
    const Surroundings around;
    const bool inlines = (rules & rules_of_names({"second-derivatives"})) != 0;
    apply_rules(text, {around, inlines, true}, rules);
    return result_of(text);
}

Rewritten rewrite_for_library(const std::string& source)
{
    EditedText text(source);
    Surroundings around;
    around.has_library = true;
    text.begin_rule(library_rule);
    prepare_source(text, {around, false, false}, false);
    return result_of(text);
}

} // namespace spy
