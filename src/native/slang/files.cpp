#include "slang/files.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/isolation/deadly.h"
#include "slang/quotes.h"
#include "slang/rewrite/rewrite.h"
#include "slang/syntax/lexer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace spy {
namespace {

SlangResult give(ISlangBlob** out, std::string text)
{
    *out = new TextBlob(std::move(text));
    (*out)->addRef();
    return SLANG_OK;
}

} // namespace

std::string canonical_path(const std::string& path)
{
    std::error_code error;
    const fs::path result = fs::weakly_canonical(fs::absolute(fs::path(path), error), error);
    return error ? path : result.string();
}

namespace {

std::vector<std::string> folder_prefixes(const std::vector<std::string>& paths)
{
    std::vector<std::string> prefixes;
    for (const std::string& path : paths)
        prefixes.push_back((fs::path(canonical_path(path)) / "").string());
    return prefixes;
}

} // namespace

SourceFiles::SourceFiles(std::vector<std::string> include_paths, std::vector<std::string> library_paths, bool sealed,
                         Rewrites rewrites)
    : m_library_paths(folder_prefixes(library_paths)),
      m_rewriter(
          std::make_unique<Rewriter>(std::move(include_paths), m_library_paths,
                                     RewriteOptions{rules_of_setting(rewrites.rules), rewrites.inlines_differentiable,
                                                    rewrites.for_host, rewrites.prints, std::move(rewrites.defines)})),
      m_sealed(sealed)
{
}

SourceFiles::~SourceFiles() = default;

bool SourceFiles::is_library(const std::string& path) const
{
    for (const std::string& prefix : m_library_paths)
        if (path.starts_with(prefix))
            return true;
    return false;
}

bool applies_derivatives(std::string_view source) { return source.find("_diff(") != source.npos; }
bool declares_differentiable(std::string_view source) { return source.find("ifferentiable") != source.npos; }

bool may_compare_matrices(std::string_view source)
{
    bool has_matrix = false, has_truth = false;
    for (const std::string_view word : syntax::words_of(source)) {
        const size_t size = word.size();
        const bool is_sized = size > 3 && word[size - 2] == 'x' && word[size - 1] >= '2' && word[size - 1] <= '4';
        const bool is_float = word.starts_with("float") || word.starts_with("half") || word.starts_with("double");
        has_matrix |= word == "matrix" || (is_sized && is_float);
        has_truth |= word.starts_with("bool") ||
            syntax::is_among(word, {"all", "any", "select", "var", "let", "auto", "matrix"});
    }
    return has_matrix && has_truth;
}

/// The source with blanks in the place of what ends the process or is no text; refusal() says what that was. Nothing
/// may be thrown here: Slang's own functions lie between this and whoever would catch it.
std::string SourceFiles::without_deadly(const std::string& source, const std::string& path)
{
    std::string text = source, refusal;
    const auto blank = [&](const std::vector<Deadly>& places, std::string_view what) {
        for (const Deadly& place : places) {
            std::fill(text.begin() + long(place.begin), text.begin() + long(place.end), ' ');
            refusal += cat("\nerror: ", what, "\n", point_at(source, path, place));
        }
    };
    blank(deadly_attributes(source), "invalid attribute placement");
    blank(foreign_bytes(source), "invalid encoding");
    refuse(path, std::move(refusal));
    return text;
}

void SourceFiles::refuse(const std::string& path, std::string reason)
{
    const std::lock_guard guard(m_mutex);
    if (reason.empty())
        m_refusals.erase(path);
    else
        m_refusals[path] = {++m_refused, std::move(reason)};
}

std::string SourceFiles::refusal(const std::string& path) const
{
    const std::lock_guard guard(m_mutex);
    const auto found = m_refusals.find(path);
    return found == m_refusals.end() ? "" : found->second.second;
}

std::string SourceFiles::refusals_since(uint64_t order) const
{
    const std::lock_guard guard(m_mutex);
    std::string all;
    for (const auto& [path, refusal] : m_refusals)
        if (refusal.first > order)
            all += refusal.second;
    return all;
}

std::string SourceFiles::prepared(const std::string& given, const std::string& name, const std::string& path)
{
    if (!name.empty() && !name.starts_with("_spy_")) { // not of generated modules
        const std::lock_guard guard(m_mutex);
        m_texts[path] = given;
    }
    std::string source = without_deadly(given, path);
    try {
        Rewritten made = m_rewriter->rewrite(source, name, path);
        remember_source(path, given, made.text, std::move(made.map));
        return std::move(made.text);
    } catch (const Error& error) {
        refuse(path,
               cat("\nerror: ", path, " could not be rewritten: ", error.what(),
                   "; this is a fault of slangpy's; SLANGPY_REWRITES=0 in the environment switches it off"));
        return source;
    }
}

std::set<std::string> SourceFiles::library_imports(const std::string& source, const std::string& name,
                                                   const std::string& path)
{
    return m_rewriter->library_imports(source, name, path);
}

bool SourceFiles::reaches_experimental(const std::optional<std::string>& text, const std::string& path)
{
    return m_rewriter->reaches_experimental(text, path);
}

std::optional<std::string> SourceFiles::text_of(const std::string& path) const
{
    const std::lock_guard guard(m_mutex);
    const auto found = m_texts.find(path);
    return found == m_texts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> SourceFiles::read(const std::string& path)
{
    if (m_sealed)
        return std::nullopt;
    const std::string name = canonical_path(path);
    std::ifstream file(name, std::ios::binary);
    std::ostringstream bytes;
    std::error_code error;
    if (!fs::is_regular_file(name, error) || !(bytes << file.rdbuf())) {
        if (!error && fs::is_regular_file(name, error) && fs::file_size(name, error) == 0) {
            const std::lock_guard guard(m_mutex);
            m_read[name] = content_hash("");
            note(path, name);
            return std::string(); // streaming an empty file sets the fail bit
        }
        const std::lock_guard guard(m_mutex);
        m_missing.insert(name);
        note(path, "");
        return std::nullopt;
    }
    std::string text = std::move(bytes).str();
    {
        const std::lock_guard guard(m_mutex);
        m_read[name] = content_hash(text);
        m_missing.erase(name);
        note(path, name);
    }
    if (text.starts_with("\xEF\xBB\xBF"))
        text.erase(0, 3);
    const bool is_source = !name.ends_with(".slang-module");
    if (!is_source || is_library(name))
        return text;
    m_has_derivatives = m_has_derivatives || applies_derivatives(text);
    m_has_differentiable = m_has_differentiable || declares_differentiable(text);
    m_has_comparable_matrices = m_has_comparable_matrices || may_compare_matrices(text);
    return prepared(text, "", name);
}

bool SourceFiles::probe(const std::string& path)
{
    if (m_sealed)
        return false;
    std::error_code error;
    const bool found = fs::is_regular_file(path, error);
    const std::string name = canonical_path(path);
    const std::lock_guard guard(m_mutex);
    if (m_quiet)
        return found;
    if (!found)
        m_missing.insert(name);
    note(path, found ? name : "");
    return found;
}

void SourceFiles::note(const std::string& asked, const std::string& real)
{
    if (m_quiet)
        return;
    std::error_code error;
    const fs::path path(asked);
    Asked& entry = m_asked[fs::absolute(path, error).string()];
    entry = {real, ++m_order, entry.relative || path.is_relative()};
}

std::pair<uint64_t, std::vector<SourceFiles::Lookup>> SourceFiles::lookups(uint64_t since) const
{
    const std::lock_guard guard(m_mutex);
    std::vector<Lookup> result;
    for (const auto& [asked, entry] : m_asked) {
        if (entry.order <= since)
            continue;
        const auto read = m_read.find(entry.real);
        result.push_back({asked, entry.real, read == m_read.end() ? "" : read->second, entry.relative});
    }
    return {m_order, std::move(result)};
}

std::map<std::string, std::string> SourceFiles::read_files() const
{
    const std::lock_guard guard(m_mutex);
    return m_read;
}

std::vector<std::string> SourceFiles::missing_files() const
{
    const std::lock_guard guard(m_mutex);
    return {m_missing.begin(), m_missing.end()};
}

SlangResult SourceFiles::queryInterface(const SlangUUID& guid, void** out)
{
    void* self = same_guid(guid, ISlangUnknown::getTypeGuid()) ? this : castAs(guid);
    if (!self)
        return SLANG_E_NO_INTERFACE;
    addRef();
    *out = self;
    return SLANG_OK;
}

uint32_t SourceFiles::release()
{
    const uint32_t left = --m_count;
    if (left == 0)
        delete this;
    return left;
}

void* SourceFiles::castAs(const SlangUUID& guid)
{
    for (const SlangUUID& known :
         {ISlangCastable::getTypeGuid(), ISlangFileSystem::getTypeGuid(), ISlangFileSystemExt::getTypeGuid()})
        if (same_guid(guid, known))
            return static_cast<ISlangFileSystemExt*>(this);
    return nullptr;
}

SlangResult SourceFiles::loadFile(const char* path, ISlangBlob** out)
{
    std::optional<std::string> text = read(path);
    return text ? give(out, std::move(*text)) : SLANG_E_NOT_FOUND;
}

SlangResult SourceFiles::getFileUniqueIdentity(const char* path, ISlangBlob** out)
{
    return probe(path) ? give(out, canonical_path(path)) : SLANG_E_NOT_FOUND;
}

SlangResult SourceFiles::calcCombinedPath(SlangPathType from_type, const char* from, const char* path, ISlangBlob** out)
{
    const fs::path base = from_type == SLANG_PATH_TYPE_FILE ? fs::path(from).parent_path() : fs::path(from);
    return give(out, (base / path).lexically_normal().string()); // an absolute `path` replaces the base
}

SlangResult SourceFiles::getPathType(const char* path, SlangPathType* out)
{
    if (m_sealed)
        return SLANG_E_NOT_FOUND;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        probe(path);
        return SLANG_E_NOT_FOUND;
    }
    *out = fs::is_directory(status) ? SLANG_PATH_TYPE_DIRECTORY : SLANG_PATH_TYPE_FILE;
    if (*out == SLANG_PATH_TYPE_FILE)
        probe(path);
    return SLANG_OK;
}

SlangResult SourceFiles::getPath(PathKind kind, const char* path, ISlangBlob** out)
{
    if (kind == PathKind::Canonical || kind == PathKind::OperatingSystem)
        return give(out, canonical_path(path));
    return give(out, kind == PathKind::Simplified ? fs::path(path).lexically_normal().string() : std::string(path));
}

SlangResult SourceFiles::enumeratePathContents(const char* path, FileSystemContentsCallBack callback, void* data)
{
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
        callback(entry.is_directory(error) ? SLANG_PATH_TYPE_DIRECTORY : SLANG_PATH_TYPE_FILE,
                 entry.path().filename().string().c_str(), data);
    return error ? SLANG_E_NOT_FOUND : SLANG_OK;
}

} // namespace spy
