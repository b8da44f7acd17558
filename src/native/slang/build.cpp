#include "slang/build.h"

#include "slang/diagnostics.h"
#include "slang/loop_advice.h"
#include "slang/isolation/remote.h"
#include "slang/quotes.h"

#include <filesystem>
#include <set>

namespace spy {

std::string clean_diagnostics(ISlangBlob* diagnostics)
{
    std::string text = restore_quotes(blob_text(diagnostics));
    // what Slang adds after the errors that say something
    for (const std::string_view noise :
         {"error[E39999]: import failed due to compilation error\n", "fatal error[E40003]: compilation ceased\n",
          "abort compilation: fatal error[E40003]: compilation ceased\n"})
        if (const size_t at = text.find(noise); at != text.npos && at != 0)
            text.erase(at, noise.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\0'))
        text.pop_back();
    return with_few_candidates(text);
}

namespace {

std::string quoted_after(const std::string& text, const std::string& words, size_t from)
{
    const size_t at = text.find(words, from);
    const size_t begin = at == text.npos ? at : at + words.size();
    return begin == text.npos ? "" : text.substr(begin, text.find('\'', begin) - begin);
}

/// What a diagnostic about features that C++ code cannot have means to the user; empty for all others. Slang lists the
/// calls from the entry point down to the operation.
std::string unsupported_on_cpu(const std::string& text)
{
    const size_t at = text.find("error[E36107]");
    if (at == text.npos || text.find("'cpp' compilation target", at) == text.npos)
        return "";
    const std::string using_note = "see using of '";
    const std::string function = quoted_after(text, "entrypoint '", at);
    std::string operation;
    size_t note = text.find(using_note, at);
    const bool generated = function.starts_with("_spy_"); // whoever asked for it adds the name of the user's function
    for (; note != text.npos; note = text.find(using_note, note + 1))
        operation = quoted_after(text, using_note, note);
    std::string feature = operation.empty() ? "a feature" : operation;
    if (operation.find("Barrier") != operation.npos)
        feature = cat("group barriers (", operation, ")");
    else if (operation.starts_with("Wave") || operation.starts_with("Quad") || operation.starts_with("wave"))
        feature = cat("wave operations (", operation, ")");
    return cat(generated ? "the function" : cat("function '", function, "'"), " uses ", feature,
               ", which the cpu device cannot run; devices that can: ",
               operation.starts_with("cuda") ? "cuda" : "cuda, vulkan, d3d12");
}

} // namespace

void Build::check(bool failed, ISlangBlob* diagnostics, const std::string& title)
{
    std::string text = clean_diagnostics(diagnostics);
    // with warnings as errors Slang returns a module that it cannot use
    failed |= ("\n" + text).find("\nerror[") != text.npos || ("\n" + text).find("\nfatal error[") != text.npos;
    if (!failed) {
        if (!text.empty())
            warnings.push_back(std::move(text));
        return;
    }
    if (text.empty())
        text = text_or_empty(slang::getLastInternalErrorMessage());
    text += loop_advice(text, *state->files.get()) + semicolon_advice(text, *state->files.get());
    if (const std::string reason = unsupported_on_cpu(text); !reason.empty())
        fail_runtime(reason, "\n", text);
    fail(ErrorKind::slang_compile, title, text.empty() ? "" : ":\n", text);
}

std::shared_ptr<Layout> Build::lay_out(ComPtr<slang::IComponentType> component,
                                       const std::vector<const ModuleData*>& modules)
{
    ComPtr<ISlangBlob> diagnostics;
    auto layout = std::make_shared<Layout>();
    layout->state = state;
    for (const ModuleData* module : modules)
        layout->modules.push_back(module->name);
    layout->program = component->getLayout(0, diagnostics.put());
    layout->component = std::move(component);
    check(!layout->program, diagnostics.get(), "Failed to lay out the parameters of a program");
    return layout;
}

std::shared_ptr<Layout> Build::layout_of(const ModuleData& recipe) const
{
    const auto found = modules.find(&recipe);
    return found != modules.end() ? found->second.second : recipe.layout;
}

std::shared_ptr<Layout> Build::layout_of(const EntryPointData& recipe) const
{
    const auto found = entry_points.find(&recipe);
    return found != entry_points.end() ? found->second : recipe.layout;
}

slang::IModule* Build::module_of(const ModuleData& recipe) const
{
    const auto found = modules.find(&recipe);
    return found != modules.end() ? found->second.first : recipe.module;
}

void Build::load(const ModuleData& recipe)
{
    load_part(recipe);
    if (recipe.source != ModuleData::Source::composed)
        state->take(recipe);
}

void Build::load_part(const ModuleData& recipe)
{
    if (recipe.source == ModuleData::Source::composed) {
        const std::vector<const ModuleData*> parts = collect(recipe.parts);
        std::vector<ComPtr<slang::IComponentType>> pieces = components(parts);
        add_conformances(recipe.conformances, parts, pieces);
        modules[&recipe] = {nullptr, lay_out(compose(pieces), parts)};
        return;
    }
    if (recipe.source == ModuleData::Source::text) {
        if (state->is_taken(recipe))
            fail(ErrorKind::slang_compile, "Slang module \"", recipe.name,
                 "\" is already loaded with different source; give this text another module name");
        return load_source(recipe, recipe.content, state->files->refusals());
    }
    if (recipe.source == ModuleData::Source::file) {
        const uint64_t before = state->files->refusals();
        if (slang::IModule* loaded = load_file(recipe)) {
            refuse_deadly(recipe, loaded, before);
            modules[&recipe] = {loaded, lay_out(ComPtr<slang::IComponentType>(loaded), {&recipe})};
            return;
        }
        std::optional<std::string> text = state->files->read(recipe.path);
        if (!text)
            fail(ErrorKind::slang_compile, "Failed to load slang module \"", recipe.name, "\": cannot read ",
                 recipe.path);
        return load_source(recipe, std::move(*text), before);
    }
    ComPtr<ISlangBlob> diagnostics;
    slang::IModule* module = state->session->loadModuleFromIRBlob(recipe.name.c_str(), recipe.path.c_str(),
                                                                  recipe.blob.get(), diagnostics.put());
    check(!module, diagnostics.get(), cat("Failed to load slang module \"", recipe.name, "\" from its binary form"));
    state->remote->loaded(module, recipe.blob);
    modules[&recipe] = {module, lay_out(ComPtr<slang::IComponentType>(module), {&recipe})};
}

/// The module when an import has loaded this file already.
slang::IModule* Build::load_file(const ModuleData& recipe)
{
    for (SlangInt i = 0; i < state->session->getLoadedModuleCount(); ++i) {
        slang::IModule* module = state->session->getLoadedModule(i);
        const char* path = module->getFilePath();
        if (path && *path && canonical_path(path) == recipe.path)
            return module;
    }
    return nullptr;
}

/// Raises where the source, or one that it imports or includes, has what Slang was not shown. `before`: how many did
/// when the load began; of a module that could not be made, the others are not known.
void Build::refuse_deadly(const ModuleData& recipe, slang::IModule* module, uint64_t before) const
{
    if (!state->files->refusals())
        return;
    std::string reasons = module ? "" : state->files->refusals_since(before);
    std::set<std::string> paths = {recipe.path.empty() ? recipe.name : recipe.path};
    for (SlangInt32 i = 0; module && i < module->getDependencyFileCount(); ++i)
        paths.insert(std::string(text_or_empty(module->getDependencyFilePath(i))));
    for (const std::string& path : paths)
        reasons += module ? state->files->refusal(path) : "";
    if (!reasons.empty())
        fail(ErrorKind::slang_compile, "Failed to load slang module \"", recipe.name, "\":", reasons);
}

void Build::load_source(const ModuleData& recipe, std::string text, uint64_t before)
{
    if (recipe.source == ModuleData::Source::text)
        text = state->files->prepared(text, recipe.name, recipe.path.empty() ? recipe.name : recipe.path);
    if (text.empty())
        text = "\n"; // Slang refuses a source of no bytes
    ComPtr<ISlangBlob> diagnostics;
    const std::string& path = recipe.path.empty() ? recipe.name : recipe.path;
    slang::IModule* module = slang_loadModuleFromSource(state->session.get(), recipe.name.c_str(), path.c_str(),
                                                        text.c_str(), text.size(), diagnostics.put());
    refuse_deadly(recipe, module, before);
    check(!module, diagnostics.get(), cat("Failed to load slang module \"", recipe.name, "\""));
    if (applies_derivatives(text))
        state->differentiating.insert(module);
    if (may_compare_matrices(text))
        state->comparing.insert(module);
    if (declares_differentiable(text) || state->files->has_differentiable())
        state->remote->open(); // gradients may follow: the process gets ready meanwhile
    modules[&recipe] = {module, lay_out(ComPtr<slang::IComponentType>(module), {&recipe})};
}

std::vector<const ModuleData*> Build::collect(const std::vector<std::shared_ptr<ModuleData>>& given) const
{
    std::vector<const ModuleData*> result;
    const auto add = [&](const ModuleData* module) {
        for (const ModuleData* known : result)
            if (module_of(*known) == module_of(*module)) // Slang refuses a module twice
                return;
        result.push_back(module);
    };
    for (const std::shared_ptr<ModuleData>& module : given) {
        if (module->source != ModuleData::Source::composed) {
            add(module.get());
            continue;
        }
        for (const ModuleData* part : collect(module->parts))
            add(part);
    }
    return result;
}

std::vector<ComPtr<slang::IComponentType>> Build::components(const std::vector<const ModuleData*>& given) const
{
    std::vector<ComPtr<slang::IComponentType>> result;
    for (const ModuleData* module : given)
        result.push_back(ComPtr<slang::IComponentType>(module_of(*module)));
    return result;
}

ComPtr<slang::IComponentType> Build::compose(const std::vector<ComPtr<slang::IComponentType>>& parts)
{
    std::vector<slang::IComponentType*> pointers;
    for (const ComPtr<slang::IComponentType>& part : parts)
        pointers.push_back(part.get());
    ComPtr<slang::IComponentType> result;
    ComPtr<ISlangBlob> diagnostics;
    const SlangResult status = state->session->createCompositeComponentType(pointers.data(), SlangInt(pointers.size()),
                                                                            result.put(), diagnostics.put());
    check(SLANG_FAILED(status), diagnostics.get(), "Failed to compose slang modules");
    return result;
}

void Build::add_conformances(const std::vector<TypeConformance>& wanted, const std::vector<const ModuleData*>& given,
                             std::vector<ComPtr<slang::IComponentType>>& parts)
{
    if (wanted.empty())
        return;
    const std::shared_ptr<Layout> layout = lay_out(compose(parts), given);
    std::map<std::string, std::pair<std::set<std::string>, std::set<int64_t>>> seen; // types and ids per interface
    for (const TypeConformance& item : wanted)
        if (item.id >= 0 && !seen[item.interface_name].second.insert(item.id).second)
            fail_value("Duplicate type id ", item.id, " for interface type \"", item.interface_name,
                       "\"; each of its types has an id of its own (leave ids out to have them chosen)");
    for (const TypeConformance& item : wanted) {
        auto& [types, ids] = seen[item.interface_name];
        if (!types.insert(item.type_name).second)
            fail_value("Duplicate type conformance entry for interface type \"", item.interface_name, "\" and type \"",
                       item.type_name, "\"");
        const auto find = [&](const std::string& name) { return layout->find_type(name); };
        slang::TypeReflection* interface_type = find(item.interface_name);
        if (!interface_type)
            fail_value("Interface type \"", item.interface_name,
                       "\" not found; a type conformance names an interface of the linked modules, with its namespace");
        slang::TypeReflection* type = find(item.type_name);
        if (!type)
            fail_value("Type \"", item.type_name,
                       "\" not found; a type conformance names a type of the linked modules, with its namespace");
        int64_t id = item.id;
        for (int64_t next = 0; id < 0; ++next)
            if (ids.insert(next).second)
                id = next;
        ComPtr<slang::ITypeConformance> conformance;
        ComPtr<ISlangBlob> diagnostics;
        const SlangResult status = state->session->createTypeConformanceComponentType(
            type, interface_type, conformance.put(), SlangInt(id), diagnostics.put());
        check(SLANG_FAILED(status), diagnostics.get(),
              cat("Type \"", item.type_name, "\" does not conform to interface \"", item.interface_name, "\""));
        parts.push_back(conformance);
    }
}

void Build::find_entry_point(const EntryPointData& recipe)
{
    ComPtr<slang::IComponentType> component;
    std::vector<const ModuleData*> candidates = {recipe.module.get()};
    while (!candidates.empty() && !component) {
        const ModuleData* candidate = candidates.front();
        candidates.erase(candidates.begin());
        for (const std::shared_ptr<ModuleData>& part : candidate->parts)
            candidates.push_back(part.get());
        ComPtr<slang::IEntryPoint> entry;
        if (slang::IModule* module = module_of(*candidate))
            module->findEntryPointByName(recipe.name.c_str(), entry.put());
        component = entry;
    }
    if (!component)
        fail_value("Entry point \"", recipe.name, "\" not found in module \"", recipe.module->name,
                   "\"; entry points are functions marked [shader(\"compute\")]");
    ComPtr<ISlangBlob> diagnostics;
    if (!recipe.arguments.empty()) {
        std::vector<slang::SpecializationArg> arguments;
        for (const SpecializationArg& argument : recipe.arguments) {
            if (!argument.is_type) {
                if (!layout_of(*recipe.module)->is_expression(argument.text)) // Slang crashes on some
                    fail_value("Specialization expression \"", argument.text,
                               "\" is none; write numbers and constants, without parentheses: \"4\", \"2 * N + 1\"");
                arguments.push_back(slang::SpecializationArg::fromExpr(argument.text.c_str()));
                continue;
            }
            slang::TypeReflection* type = layout_of(*recipe.module)->find_type(argument.text);
            if (!type)
                fail_value("Specialization type \"", argument.text,
                           "\" not found; write it as the module would, with its namespace");
            arguments.push_back(slang::SpecializationArg::fromType(type));
        }
        const SlangInt expected = component->getSpecializationParamCount();
        if (expected != SlangInt(arguments.size()))
            fail_value("Entry point \"", recipe.name, "\" takes ", expected, " specialization arguments, got ",
                       arguments.size());
        ComPtr<slang::IComponentType> specialized;
        const SlangResult status = component->specialize(arguments.data(), SlangInt(arguments.size()),
                                                         specialized.put(), diagnostics.put());
        check(SLANG_FAILED(status), diagnostics.get(), cat("Failed to specialize entry point \"", recipe.name, "\""));
        component = specialized;
    }
    if (!recipe.conformances.empty()) { // for what is wrong with them to show here rather than when it is linked
        const std::vector<const ModuleData*> all = collect({recipe.module});
        std::vector<ComPtr<slang::IComponentType>> parts = components(all);
        add_conformances(recipe.conformances, all, parts);
    }
    if (!recipe.new_name.empty()) {
        ComPtr<slang::IComponentType> renamed;
        const SlangResult status = component->renameEntryPoint(recipe.new_name.c_str(), renamed.put());
        check(SLANG_FAILED(status), nullptr, cat("Failed to rename entry point \"", recipe.name, "\""));
        component = renamed;
    }
    entry_points[&recipe] = lay_out(component, collect({recipe.module}));
}

namespace {

void add_option(std::vector<slang::CompilerOptionEntry>& entries, slang::CompilerOptionName name, int value)
{
    slang::CompilerOptionEntry entry = {};
    entry.name = name;
    entry.value.intValue0 = value;
    entries.push_back(entry);
}

} // namespace

std::shared_ptr<Layout> Build::link(const ProgramData& recipe)
{
    std::vector<TypeConformance> conformances = recipe.conformances;
    const auto add_unique = [&](const std::vector<TypeConformance>& items) {
        for (auto item = items.begin(); item != items.end(); ++item)
            if (std::find(items.begin(), item, *item) != item) // twice in one list; several lists may say the same
                fail_value("Duplicate type conformance entry for interface type \"", item->interface_name,
                           "\" and type \"", item->type_name, "\"");
        for (const TypeConformance& item : items)
            if (std::find(conformances.begin(), conformances.end(), item) == conformances.end())
                conformances.push_back(item);
    };
    std::vector<std::shared_ptr<ModuleData>> given = recipe.modules;
    for (const std::shared_ptr<EntryPointData>& entry : recipe.entry_points) {
        given.push_back(entry->module);
        add_unique(entry->conformances);
    }
    for (const std::shared_ptr<ModuleData>& module : given)
        add_unique(module->conformances);
    const std::vector<const ModuleData*> all = collect(given);
    std::vector<ComPtr<slang::IComponentType>> parts = components(all);
    add_conformances(conformances, all, parts);
    for (const std::shared_ptr<EntryPointData>& entry : recipe.entry_points)
        parts.push_back(layout_of(*entry)->component);

    std::vector<slang::CompilerOptionEntry> options;
    using Name = slang::CompilerOptionName;
    if (recipe.options.optimization)
        add_option(options, Name::Optimization, int(*recipe.options.optimization));
    if (recipe.options.floating_point_mode)
        add_option(options, Name::FloatingPointMode, int(*recipe.options.floating_point_mode));
    if (recipe.options.debug_info)
        add_option(options, Name::DebugInformation, int(*recipe.options.debug_info));
    if (recipe.options.dump_intermediates)
        add_option(options, Name::DumpIntermediates, *recipe.options.dump_intermediates);
    if (recipe.options.dump_intermediates_prefix) {
        add_option(options, Name::DumpIntermediatePrefix, 0);
        options.back().value.kind = slang::CompilerOptionValueKind::String;
        options.back().value.stringValue0 = recipe.options.dump_intermediates_prefix->c_str();
    }
    ComPtr<slang::IComponentType> linked;
    ComPtr<ISlangBlob> diagnostics;
    const SlangResult status = compose(parts)->linkWithOptions(linked.put(), uint32_t(options.size()), options.data(),
                                                               diagnostics.put());
    check(SLANG_FAILED(status), diagnostics.get(), "Failed to link program");
    return lay_out(linked, all);
}

} // namespace spy
