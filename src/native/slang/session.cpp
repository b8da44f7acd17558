#include "slang/session.h"

#include "core/content_hash.h"
#include "slang/build.h"
#include "slang/isolation/crash.h"
#include "slang/isolation/remote.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace spy {
namespace {

/// Warnings about what is normal here, off unless the user enables them: an entry point `main` that was renamed (the
/// layout tells the name), plain uniforms at global scope, resources inside of constant buffers, [MaxIters(n)] that is
/// larger than a loop needs (the rules on loops make it so: slang/rewrite/rules/nested_loops.cpp).
constexpr std::string_view quiet_warnings[] = {"40100", "39019", "31106", "31107", "30519"};

/// Extensions of everything that conforms to an interface, as the library's accessors are written. Slang heeds the
/// pragma there only where it reads the library as a module of its own.
constexpr std::string_view quiet_in_library = "30856";

bool is_of_library(std::string_view warning, const SessionOptions& options)
{
    const size_t place = warning.find("--> ");
    if (!warning.starts_with(cat("warning[E", quiet_in_library)) || place == warning.npos)
        return false;
    const std::string_view path = warning.substr(place + 4);
    return std::any_of(options.library_paths.begin(), options.library_paths.end(),
                       [&](const std::string& folder) { return path.starts_with(folder); });
}

/// "implicit-conversion", "implicitConversion" and "implicit conversion" are one name.
std::string squeeze(std::string_view text)
{
    std::string result;
    for (char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            result += char(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

/// Slang 2026.12 does not know most codes that it prints when told to disable them, and never asks its options when it
/// warns while laying out parameters; so warnings ("warning[E30081]: title ...") are sorted out here.
bool is_disabled(std::string_view warning, const SessionOptions& options)
{
    constexpr std::string_view head = "warning[E";
    const size_t bracket = warning.find("]: ");
    if (!warning.starts_with(head) || bracket == warning.npos)
        return false;
    const std::string_view code = warning.substr(head.size(), bracket - head.size());
    const std::string title = squeeze(warning.substr(bracket, warning.find('\n') - bracket));
    const auto names = [&](const std::string& item) {
        return item == code || item == "all" || item == cat("E", code) || squeeze(item) == title;
    };
    const auto& enabled = options.enable_warnings;
    const auto& disabled = options.disable_warnings;
    if (std::any_of(disabled.begin(), disabled.end(), names))
        return true;
    return std::find(std::begin(quiet_warnings), std::end(quiet_warnings), code) != std::end(quiet_warnings) &&
        std::none_of(enabled.begin(), enabled.end(), names);
}

} // namespace

std::shared_ptr<SessionState> Session::state()
{
    const auto operation = Compiler::lock_politely(m_operation);
    {
        const std::lock_guard guard(m_mutex);
        if (m_state && !m_state->compiler->abandoned())
            return m_state;
    }
    reload(); // makes the first state, too
    const std::lock_guard guard(m_mutex);
    return m_state;
}

void Session::warn(const std::string& text)
{
    const std::lock_guard guard(m_mutex);
    for (size_t begin = 0; begin < text.size();) {
        size_t end = text.find("\nwarning", begin + 1); // Slang repeats a warning for each use of a module
        end = end == text.npos ? text.size() : end + 1;
        std::string one = text.substr(begin, end - begin);
        while (!one.empty() && one.back() == '\n')
            one.pop_back();
        if (!is_disabled(one, m_options) && !is_of_library(one, m_options) && m_seen_warnings.insert(one).second)
            m_warnings.push_back(std::move(one));
        begin = end;
    }
}

std::vector<std::string> Session::take_warnings()
{
    const std::lock_guard guard(m_mutex);
    return std::exchange(m_warnings, {});
}

namespace {

/// Empty when there is no such file; `tried` gets the paths that were looked for.
std::string find_path(Session& session, const SessionState& state, const std::string& name, std::string& tried)
{
    if (name.empty())
        fail_value("load_module: the module name is empty");
    std::vector<std::string> files = {name};
    if (!name.ends_with(".slang"))
        files.push_back(name + ".slang");
    if (name.find('/') == name.npos && name.find('.') != name.npos && !name.ends_with(".slang")) {
        std::string dotted = name;
        std::replace(dotted.begin(), dotted.end(), '.', '/');
        files.push_back(dotted + ".slang");
    }
    std::vector<std::string> folders;
    if (!fs::path(name).is_absolute()) {
        folders = session.options().include_paths;
        folders.push_back(".");
    } else {
        folders.push_back("");
    }
    for (const std::string& folder : folders)
        for (const std::string& file : files) {
            const std::string path = folder.empty() ? file : (fs::path(folder) / file).string();
            if (state.files->probe(path))
                return canonical_path(path);
            tried += "\n  " + path;
        }
    return {};
}

} // namespace

std::string Session::resolve_path(const std::string& name)
{
    std::string tried;
    const std::string path = find_path(*this, *state(), name, tried);
    if (path.empty())
        fail(ErrorKind::slang_compile, "Failed to load slang module \"", name, "\": no such file. Looked for:", tried);
    return path;
}

std::string Session::load_source(const std::string& name)
{
    const std::string path = resolve_path(name);
    std::ifstream file(path, std::ios::binary);
    if (!file)
        fail_runtime("cannot read ", path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<ModuleData> Session::find_named(const std::string& key)
{
    const std::lock_guard guard(m_mutex);
    const auto found = m_named.find(key);
    return found == m_named.end() ? nullptr : found->second.lock();
}

namespace {

std::string identity_of(const ModuleData& module)
{
    if (module.source == ModuleData::Source::blob) // nothing is ever compared with it but texts
        return "blob";
    return cat(int(module.source), ":",
               module.source == ModuleData::Source::file ? module.path : content_hash(module.content));
}

/// Those that are still there; forgets the others.
template <typename T>
std::vector<std::shared_ptr<T>> alive(std::vector<std::weak_ptr<T>>& items)
{
    std::vector<std::shared_ptr<T>> result;
    std::erase_if(items, [&](const std::weak_ptr<T>& item) {
        if (std::shared_ptr<T> locked = item.lock()) {
            result.push_back(std::move(locked));
            return false;
        }
        return true;
    });
    return result;
}

template <typename T>
void remember(std::vector<std::weak_ptr<T>>& items, const std::shared_ptr<T>& item)
{
    if (items.size() >= 64 && items.size() == items.capacity()) // no more than twice as many as there are
        alive(items);
    items.push_back(item);
}

} // namespace

bool SessionState::is_taken(const ModuleData& module)
{
    const std::lock_guard guard(taken_mutex);
    const auto found = taken.find(module.name);
    return found != taken.end() && found->second != identity_of(module);
}

void SessionState::take(const ModuleData& module)
{
    const std::lock_guard guard(taken_mutex);
    taken[module.name] = identity_of(module);
}

namespace {

/// Whether a source, or what it imports, imports what Slang has as an experiment.
bool reaches_experimental(const SessionState& state, const ModuleData& recipe)
{
    const bool is_text = recipe.source == ModuleData::Source::text;
    if (!is_text && recipe.source != ModuleData::Source::file)
        return false;
    const std::optional<std::string> text = is_text ? std::optional(recipe.content) : std::nullopt;
    return state.files->reaches_experimental(text, recipe.path.empty() ? recipe.name : recipe.path);
}

} // namespace

std::shared_ptr<ModuleData> Session::load(ModuleData recipe, const std::string& key)
{
    const auto operation = Compiler::lock_politely(m_operation);
    auto data = std::make_shared<ModuleData>(std::move(recipe));
    auto build = std::make_shared<Build>();
    if (const std::string crash = known_crash(*data); !crash.empty())
        throw CompilerDeath("crash", crash);
    if (!m_options.experimental && reaches_experimental(*state(), *data)) { // for all of the session from now on
        m_options.experimental = true;
        try {
            reload();
        } catch (...) {
            m_options.experimental = false;
            throw;
        }
    }
    build->state = state();
    const uint64_t since = build->state->files->order();
    try {
        build->state->compiler->run([build, data] {
            build->load(*data);
            std::tie(data->module, data->layout) = build->modules[data.get()];
        });
    } catch (const CompilerDeath& death) {
        throw CompilerDeath(death.reason, crash_text(*build->state->files.get(), since, *data, death.what()));
    }
    for (const std::string& warning : build->warnings)
        warn(warning);
    const std::lock_guard guard(m_mutex);
    remember(m_modules, data);
    if (!key.empty())
        m_named[key] = data;
    return data;
}

std::shared_ptr<ModuleData> Session::load_module(const std::string& name)
{
    const auto operation = Compiler::lock_politely(m_operation);
    std::string tried;
    if (std::shared_ptr<ModuleData> known = find_named("name:" + name);
        known && find_path(*this, *state(), name, tried).empty())
        return known; // loaded from text: the compiler knows it by this name, too
    const std::string path = resolve_path(name);
    if (std::shared_ptr<ModuleData> known = find_named(path))
        return known;
    ModuleData recipe;
    recipe.source = ModuleData::Source::file;
    recipe.path = path;
    recipe.name = fs::path(path).stem().string();
    // two files of one stem: the second is known, and imported, by its path
    if (find_named("name:" + recipe.name) || state()->is_taken(recipe))
        recipe.name = path;
    std::shared_ptr<ModuleData> data = load(std::move(recipe), path);
    const std::lock_guard guard(m_mutex);
    m_named["name:" + data->name] = data;
    return data;
}

std::shared_ptr<ModuleData> Session::load_module_from_source(const std::string& name, const std::string& source,
                                                             const std::string& path)
{
    const auto operation = Compiler::lock_politely(m_operation);
    if (name.empty())
        fail_value("load_module_from_source: the module name is empty");
    if (name.find('\0') != name.npos)
        fail_value("load_module_from_source: the module name has a null character");
    if (std::shared_ptr<ModuleData> known = find_named("name:" + name)) {
        if (known->source == ModuleData::Source::text && known->content == source)
            return known;
        fail(ErrorKind::slang_compile, "Slang module \"", name,
             "\" is already loaded with different source; give this text another module name");
    }
    ModuleData recipe;
    recipe.source = ModuleData::Source::text;
    recipe.name = name;
    recipe.path = path;
    recipe.content = source;
    return load(std::move(recipe), "name:" + name);
}

std::shared_ptr<ModuleData> Session::load_module_from_blob(const std::string& name, const std::string& path,
                                                           std::string blob)
{
    const auto operation = Compiler::lock_politely(m_operation);
    if (blob.empty())
        fail_value("load_module_from_blob: the blob of module \"", name, "\" is empty");
    if (std::shared_ptr<ModuleData> known = find_named("name:" + name))
        if (known->source == ModuleData::Source::blob && blob_view(known->blob.get()) == blob)
            return known;
    ModuleData recipe;
    recipe.source = ModuleData::Source::blob;
    recipe.name = name;
    recipe.path = path;
    recipe.blob = ComPtr<ISlangBlob>(new TextBlob(std::move(blob)));
    return load(std::move(recipe), "name:" + name);
}

std::shared_ptr<ModuleData> Session::compose_modules(const std::string& name,
                                                     const std::vector<std::shared_ptr<ModuleData>>& parts,
                                                     const std::vector<TypeConformance>& conformances)
{
    if (parts.empty())
        fail_value("compose_modules: no modules given");
    ModuleData recipe;
    recipe.source = ModuleData::Source::composed;
    recipe.name = name;
    recipe.parts = parts;
    recipe.conformances = conformances;
    return load(std::move(recipe), "");
}

std::shared_ptr<EntryPointData> Session::entry_point(EntryPointData recipe)
{
    const auto operation = Compiler::lock_politely(m_operation);
    auto data = std::make_shared<EntryPointData>(std::move(recipe));
    auto build = std::make_shared<Build>();
    build->state = state();
    build->state->compiler->run([build, data] {
        build->find_entry_point(*data);
        data->layout = build->entry_points[data.get()];
    });
    const std::lock_guard guard(m_mutex);
    remember(m_entry_points, data);
    return data;
}

std::vector<std::string> Session::entry_point_names(const std::shared_ptr<ModuleData>& module)
{
    std::vector<std::string> names;
    for (const std::shared_ptr<ModuleData>& part : module->parts)
        for (std::string& name : entry_point_names(part))
            names.push_back(std::move(name));
    if (!module->module)
        return names;
    const std::shared_ptr<SessionState> current = state();
    const Compiler::Lock lock(*current->compiler);
    for (SlangInt32 i = 0; i < module->module->getDefinedEntryPointCount(); ++i) {
        ComPtr<slang::IEntryPoint> entry;
        module->module->getDefinedEntryPoint(i, entry.put());
        names.emplace_back(entry->getFunctionReflection()->getName());
    }
    return names;
}

std::shared_ptr<ProgramData> Session::link(ProgramData recipe)
{
    const auto operation = Compiler::lock_politely(m_operation);
    auto data = std::make_shared<ProgramData>(std::move(recipe));
    auto build = std::make_shared<Build>();
    build->state = state();
    build->state->compiler->run([build, data] { data->layout = build->link(*data); });
    for (const std::string& warning : build->warnings)
        warn(warning);
    const std::lock_guard guard(m_mutex);
    remember(m_programs, data);
    return data;
}

std::string Session::serialize(const std::shared_ptr<ModuleData>& module)
{
    const auto operation = Compiler::lock_politely(m_operation);
    const std::shared_ptr<SessionState> current = state();
    return current->compiler->run([module, current] {
        ComPtr<ISlangBlob> blob;
        if (!module->module)
            fail_value("serialize: module \"", module->name,
                       "\" is composed and cannot be serialized; serialize the modules that it was composed of");
        if (SLANG_FAILED(module->module->serialize(blob.put())))
            fail(ErrorKind::slang_compile, "Failed to serialize slang module \"", module->name, "\"");
        return blob_text(blob.get());
    });
}

void Session::reload()
{
    const auto operation = Compiler::lock_politely(m_operation);
    std::shared_ptr<SessionState> old;
    std::vector<std::shared_ptr<ModuleData>> modules;
    std::vector<std::shared_ptr<EntryPointData>> entry_points;
    std::vector<std::shared_ptr<ProgramData>> programs;
    {
        const std::lock_guard guard(m_mutex);
        old = m_state;
        modules = alive(m_modules);
        entry_points = alive(m_entry_points);
        programs = alive(m_programs);
    }
    auto build = std::make_shared<Build>();
    build->state = make_state();
    build->state->generation = old ? old->generation + 1 : 0;
    build->state->compiler->run([=] {
        std::vector<std::shared_ptr<Layout>> linked;
        for (const auto& module : modules)
            build->load(*module);
        for (const auto& entry : entry_points)
            build->find_entry_point(*entry);
        for (const auto& program : programs)
            linked.push_back(build->link(*program));
        // nothing can fail from here on
        for (const auto& module : modules)
            std::tie(module->module, module->layout) = build->modules[module.get()];
        for (const auto& entry : entry_points)
            entry->layout = build->entry_points[entry.get()];
        for (size_t i = 0; i < programs.size(); ++i) {
            programs[i]->layout = linked[i];
            programs[i]->codes.clear();
        }
        if (old)
            old->valid = false;
    });
    for (const std::string& warning : build->warnings)
        warn(warning);
    const std::lock_guard guard(m_mutex);
    m_state = build->state;
}

} // namespace spy
