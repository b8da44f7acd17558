#include "slang/rewrite/imports.h"

#include "slang/files.h"
#include "slang/syntax/lexer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace spy {
namespace {

/// The files that an import may mean.
std::vector<std::string> file_names(const syntax::Import& import)
{
    std::string path = import.file();
    if (import.is_quoted())
        return {path, path + ".slang"};
    std::replace(path.begin(), path.end(), '.', '/');
    std::string dashed = path;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    return {path + ".slang", dashed + ".slang"};
}

/// Whether one of the names is of what knows tensors.
bool is_root(const std::set<std::string>& names) { return names.contains("slangpy") || names.contains("slangpy_core"); }

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

} // namespace

std::vector<Edit> name_cyclic_imports(std::string_view source, const Surroundings& around)
{
    std::map<size_t, Edit> edits;
    if (around.cyclic.empty())
        return {};
    const std::vector<syntax::Import> imports = syntax::summarize(source).imports;
    for (const auto& [i, file] : around.cyclic)
        edits[imports[i].begin] = {imports[i].begin, imports[i].end, "\"" + file + "\""};
    std::vector<Edit> sorted;
    for (auto& [begin, edit] : edits)
        sorted.push_back(std::move(edit));
    return sorted;
}

std::set<std::string> ImportMap::Known::library_imports() const
{
    std::set<std::string> names;
    for (const syntax::Import& import : summary.imports) {
        std::string name = import.file();
        if (name.ends_with(".slang"))
            name.resize(name.size() - std::string_view(".slang").size());
        std::replace(name.begin(), name.end(), '/', '.');
        if (name.starts_with("slangpy"))
            names.insert(std::move(name));
    }
    return names;
}

bool ImportMap::is_library(std::string_view path) const
{
    return std::any_of(m_library_paths.begin(), m_library_paths.end(),
                       [&](const std::string& folder) { return path.starts_with(folder); });
}

std::string ImportMap::find(const syntax::Import& import, const std::string& folder, std::string* file_name) const
{
    if (import.word == "implementing") // leads back to what includes it
        return {};
    if (m_known.count("text:" + import.file()))
        return "text:" + import.file();
    std::vector<std::string> folders{folder};
    folders.insert(folders.end(), m_include_paths.begin(), m_include_paths.end());
    std::error_code error;
    for (const std::string& base : folders)
        for (const std::string& file : file_names(import))
            if (const fs::path path = fs::path(base) / file; fs::is_regular_file(path, error)) {
                if (file_name)
                    *file_name = file;
                return canonical_path(path.string());
            }
    return {};
}

const ImportMap::Known& ImportMap::known(const std::string& key)
{
    if (const auto found = m_known.find(key); found != m_known.end())
        return found->second;
    std::string text = read_file(key);
    syntax::Summary summary = syntax::summarize(text);
    return m_known[key] = {std::move(text), std::move(summary), fs::path(key).parent_path().string(), nullptr};
}

void ImportMap::reach(const std::string& key, std::vector<std::string>& reached)
{
    if (std::find(reached.begin(), reached.end(), key) != reached.end())
        return;
    reached.push_back(key);
    const Known& module = known(key);
    for (const syntax::Import& import : module.summary.imports)
        if (const std::string next = find(import, module.folder); !next.empty())
            reach(next, reached);
}

void ImportMap::add(const std::string& key, Surroundings& found)
{
    Known& module = m_known.at(key);
    std::set<std::string> asked = module.library_imports();
    found.has_library |= is_root(asked);
    if (is_library(key))
        return;
    found.asked_library.merge(asked);
    if (!module.parsed)
        module.parsed = std::make_shared<const ParsedSource>(module.text, std::vector<const syntax::Scopes*>(),
                                                             m_defines.tree().macros());
    found.imported.push_back(module.parsed);
    const std::vector<syntax::Macro>& macros = module.parsed->tree().macros();
    found.macros.insert(found.macros.end(), macros.begin(), macros.end());
    found.declared.insert(module.summary.declared.begin(), module.summary.declared.end());
}

bool ImportMap::imports_experimental(const std::vector<syntax::Import>& imports, const std::string& folder,
                                     std::set<std::string>& seen)
{
    for (const syntax::Import& import : imports) {
        const std::string next = find(import, folder);
        if (next.empty() && syntax::is_experimental(import.file()))
            return true;
        if (next.empty() || is_library(next) || !seen.insert(next).second)
            continue;
        const Known& module = known(next);
        if (imports_experimental(module.summary.imports, module.folder, seen))
            return true;
    }
    return false;
}

bool ImportMap::reaches_experimental(const std::optional<std::string>& text, const std::string& path)
{
    const std::lock_guard guard(m_mutex);
    const std::string file = canonical_path(path);
    std::set<std::string> seen;
    return imports_experimental(syntax::summarize(text ? *text : read_file(file)).imports,
                                fs::path(file).parent_path().string(), seen);
}

Surroundings ImportMap::around(std::string_view source, const std::string& name, const std::string& path)
{
    const std::lock_guard guard(m_mutex);
    const std::string key = name.empty() ? canonical_path(path) : "text:" + name;
    const std::string folder = fs::path(name.empty() ? key : canonical_path(path)).parent_path().string();
    Known& own = m_known[key];
    if (own.text != source)
        own = {std::string(source), syntax::summarize(source), folder, nullptr};
    own.folder = folder;
    Surroundings found;
    found.macros = m_defines.tree().macros();
    found.declared = own.summary.declared;
    found.asked_library = own.library_imports();
    found.has_library = is_root(found.asked_library);
    std::vector<std::string> all; ///< what its imports lead to, each once
    for (size_t i = 0; i < own.summary.imports.size(); ++i) {
        const syntax::Import& import = own.summary.imports[i];
        std::string file;
        const std::string next = find(import, folder, &file);
        if (next.empty()) {
            if (import.word == "import" && import.name == "neural")
                found.cyclic[i] = "slang/neural"; // Slang's standard module, by the name under which it is found
            continue;
        }
        std::vector<std::string> reached;
        reach(next, reached);
        for (const std::string& module : reached)
            if (module != key && std::find(all.begin(), all.end(), module) == all.end())
                all.push_back(module);
        const bool leads_back = std::find(reached.begin(), reached.end(), key) != reached.end();
        if (import.word == "import" && !import.is_quoted() && !file.empty() && leads_back)
            found.cyclic[i] = file;
    }
    for (const std::string& module : all)
        add(module, found);
    return found;
}

} // namespace spy
