#include "slang/rewrite/imports.h"

#include "core/tokens.h"
#include "slang/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace spy {
namespace {

bool declares_type(std::string_view word)
{
    return word == "struct" || word == "interface" || word == "class" || word == "enum" || word == "typealias";
}

size_t skip_space(std::string_view text, size_t pos)
{
    return std::min(text.find_first_not_of(" \t\r\n", pos), text.size());
}

/// What is named behind `import`, `__include` or `include` at `pos`.
std::optional<SourceImport> import_at(std::string_view source, size_t pos, bool is_module)
{
    pos = skip_space(source, pos);
    if (pos < source.size() && (source[pos] == '"' || source[pos] == '<')) {
        const size_t end = source.find(source[pos] == '"' ? '"' : '>', pos + 1);
        if (end == source.npos)
            return std::nullopt;
        return SourceImport{pos, end + 1, std::string(source.substr(pos + 1, end - pos - 1)), true, is_module};
    }
    size_t end = pos;
    while (end < source.size() && (in_word(source[end]) || source[end] == '.'))
        ++end;
    if (end == pos)
        return std::nullopt;
    return SourceImport{pos, end, std::string(source.substr(pos, end - pos)), false, is_module};
}

/// The files that an import may mean.
std::vector<std::string> file_names(const SourceImport& import)
{
    if (import.is_quoted)
        return {import.name, import.name + ".slang"};
    std::string path = import.name;
    std::replace(path.begin(), path.end(), '.', '/');
    std::string dashed = path;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    return {path + ".slang", dashed + ".slang"};
}

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

std::shared_ptr<const FunctionTable> functions_of(std::string_view source)
{
    return declares_differentiable(source) ? std::make_shared<const FunctionTable>(source) : nullptr;
}

} // namespace

SourceSummary summarize(std::string_view source)
{
    SourceSummary summary;
    std::string_view previous;
    for (size_t pos = 0; pos < source.size();) {
        if (const size_t end = skip_opaque(source, pos); end != pos) {
            pos = end;
            continue;
        }
        if (!starts_word(source[pos])) {
            if (!std::isspace(static_cast<unsigned char>(source[pos])))
                previous = source.substr(pos, 1);
            ++pos;
            continue;
        }
        size_t end = pos;
        while (end < source.size() && in_word(source[end]))
            ++end;
        const std::string_view word = source.substr(pos, end - pos);
        if (declares_type(previous))
            summary.declared.emplace(word);
        const bool is_module = word == "import";
        if (is_module || word == "__include" || (word == "include" && previous == "#"))
            if (std::optional<SourceImport> found = import_at(source, end, is_module)) {
                end = found->end;
                summary.imports.push_back(std::move(*found));
            }
        previous = word;
        pos = end;
    }
    return summary;
}

std::vector<Edit> name_cyclic_imports(std::string_view source, const Surroundings& around)
{
    std::vector<Edit> edits;
    if (around.cyclic.empty())
        return edits;
    const std::vector<SourceImport> imports = summarize(source).imports;
    for (size_t i = 0; i < imports.size(); ++i)
        if (const auto file = around.cyclic.find(i); file != around.cyclic.end())
            edits.push_back({imports[i].begin, imports[i].end, "\"" + file->second + "\""});
    return edits;
}

bool ImportMap::is_library(std::string_view path) const
{
    return std::any_of(m_library_paths.begin(), m_library_paths.end(),
                       [&](const std::string& folder) { return path.starts_with(folder); });
}

std::string ImportMap::find(const SourceImport& import, const std::string& folder, std::string* file_name) const
{
    if (m_known.count("text:" + import.name))
        return "text:" + import.name;
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

std::shared_ptr<const ParsedSource> ImportMap::parsed(std::string text) const
{
    return std::make_shared<const ParsedSource>(std::move(text), std::vector<const syntax::Scopes*>(),
                                                m_defines.tree().macros());
}

const ImportMap::Known* ImportMap::known(const std::string& key)
{
    const auto found = m_known.find(key);
    if (found != m_known.end())
        return &found->second;
    const std::string text = read_file(key);
    const bool is_users = !is_library(key);
    return &(m_known[key] = {summarize(text), fs::path(key).parent_path().string(),
                             is_users ? functions_of(text) : nullptr, is_users ? parsed(text) : nullptr});
}

void ImportMap::collect(const std::string& key, Surroundings& found, std::set<std::string>& seen)
{
    if (!seen.insert(key).second)
        return;
    const Known& module = *known(key);
    if (module.functions)
        found.functions.push_back(module.functions);
    if (module.parsed) {
        found.imported.push_back(module.parsed);
        const std::vector<syntax::Macro>& macros = module.parsed->tree().macros();
        found.macros.insert(found.macros.end(), macros.begin(), macros.end());
    }
    if (!is_library(key))
        found.declared.insert(module.summary.declared.begin(), module.summary.declared.end());
    for (const SourceImport& import : module.summary.imports) {
        found.has_library |= import.name == "slangpy";
        if (const std::string next = find(import, module.folder); !next.empty())
            collect(next, found, seen);
    }
}

Surroundings ImportMap::around(std::string_view source, const std::string& name, const std::string& path)
{
    const std::lock_guard guard(m_mutex);
    const std::string key = name.empty() ? canonical_path(path) : "text:" + name;
    const std::string folder = fs::path(name.empty() ? key : canonical_path(path)).parent_path().string();
    const Known& own = m_known[key] = {summarize(source), folder, functions_of(source), parsed(std::string(source))};
    Surroundings found;
    found.macros = m_defines.tree().macros();
    found.declared = own.summary.declared;
    for (size_t i = 0; i < own.summary.imports.size(); ++i) {
        const SourceImport& import = own.summary.imports[i];
        found.has_library |= import.name == "slangpy";
        std::string file;
        const std::string next = find(import, folder, &file);
        if (next.empty()) {
            if (import.is_module && import.name == "neural")
                found.cyclic[i] = "slang/neural"; // Slang's standard module, by the name under which it is found
            continue;
        }
        std::set<std::string> seen;
        collect(next, found, seen);
        if (import.is_module && !import.is_quoted && !file.empty() && seen.count(key))
            found.cyclic[i] = file;
    }
    return found;
}

} // namespace spy
