#pragma once
// The file system Slang reads through: records what was read and what was looked for in vain (both belong to a cache
// key), and applies the source rewrite.
#include "slang/com.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

class Rewriter;

/// Changes of sources that not all sessions want.
struct Rewrites {
    std::string rules = {}; ///< SLANGPY_REWRITES: "", "0", "-name,-name"
    bool inlines_differentiable = false;
    bool for_host = false;    ///< the target is C++
    bool prints = false;      ///< printf() is ours
    std::string defines = {}; ///< of the session, as the lines of a source
};

class SourceFiles final : public ISlangFileSystemExt {
public:
    /// Files below `library_paths` are left as they are.
    SourceFiles(std::vector<std::string> include_paths, std::vector<std::string> library_paths, bool sealed = false,
                Rewrites rewrites = {});
    /// A source as the compiler gets to see it. name: of a module made of text, else empty; path: its file, or what
    /// stands for it.
    std::string prepared(const std::string& source, const std::string& name, const std::string& path);
    /// Modules of ours that such a source may import, directly or through others: `slangpy.rays`.
    std::set<std::string> library_imports(const std::string& source, const std::string& name, const std::string& path);
    /// Whether a text, or else a file, imports an experimental module of Slang, directly or through others.
    bool reaches_experimental(const std::optional<std::string>& text, const std::string& path);
    virtual ~SourceFiles();

    /// The text as Slang shall see it; recorded. No value when it cannot be read.
    std::optional<std::string> read(const std::string& path);
    /// True for a regular file; a miss is recorded.
    bool probe(const std::string& path);
    bool is_library(const std::string& path) const; ///< one of ours

    /// Why texts that prepared() was given may not be used, as Slang was not shown what it cannot survive: of one path,
    /// or of all read since; empty when they may.
    std::string refusal(const std::string& path) const;
    std::string refusals_since(uint64_t order) const;
    uint64_t refusals() const { return m_refused; } ///< how many there were so far

    /// Whether a file that is no library's applies derivatives (`bwd_diff(f)`), or declares functions that have some.
    bool has_derivatives() const { return m_has_derivatives; }
    bool has_differentiable() const { return m_has_differentiable; }
    bool has_comparable_matrices() const { return m_has_comparable_matrices; }

    /// While it lives, what is looked for is not recorded: serialising a module asks for files that do not decide it.
    class Quiet {
    public:
        explicit Quiet(SourceFiles& files) : m_files(files) { ++m_files.m_quiet; }
        ~Quiet() { --m_files.m_quiet; }
        Quiet(const Quiet&) = delete;

    private:
        SourceFiles& m_files;
    };

    struct Lookup {
        std::string asked;     ///< absolute, links on the way kept
        std::string real;      ///< what was found there; empty: nothing
        std::string hash;      ///< of its bytes when they were read; empty when they never were
        bool relative = false; ///< asked for relative to the working folder
    };
    /// What was looked for after `since`, and the number to go on from.
    std::pair<uint64_t, std::vector<Lookup>> lookups(uint64_t since) const;

    uint64_t order() const { return lookups(~uint64_t(0)).first; } ///< what lookups() goes on from
    /// The text of a module that was made of text, as it was given, by the path that its dependencies name.
    std::optional<std::string> text_of(const std::string& path) const;

    /// Path -> hash of the bytes on disk when they were read.
    std::map<std::string, std::string> read_files() const;
    std::vector<std::string> missing_files() const;

    SlangResult queryInterface(const SlangUUID& guid, void** out) override;
    uint32_t addRef() override { return ++m_count; }
    uint32_t release() override;
    void* castAs(const SlangUUID& guid) override;

    SlangResult loadFile(const char* path, ISlangBlob** out) override;
    SlangResult getFileUniqueIdentity(const char* path, ISlangBlob** out) override;
    SlangResult calcCombinedPath(SlangPathType from_type, const char* from, const char* path,
                                 ISlangBlob** out) override;
    SlangResult getPathType(const char* path, SlangPathType* out) override;
    SlangResult getPath(PathKind kind, const char* path, ISlangBlob** out) override;
    void clearCache() override { }
    SlangResult enumeratePathContents(const char* path, FileSystemContentsCallBack callback, void* data) override;
    OSPathKind getOSPathKind() override { return OSPathKind::Direct; }

private:
    std::string without_deadly(const std::string& source, const std::string& path);
    void refuse(const std::string& path, std::string reason);
    /// Under the lock. `real`: empty when nothing is there.
    void note(const std::string& asked, const std::string& real);

    std::vector<std::string> m_library_paths;
    std::unique_ptr<Rewriter> m_rewriter;
    bool m_sealed; ///< there are no files
    std::atomic<int> m_quiet{0};
    std::atomic<bool> m_has_derivatives{false}, m_has_differentiable{false}, m_has_comparable_matrices{false};
    mutable std::mutex m_mutex;
    std::map<std::string, std::string> m_read;
    std::set<std::string> m_missing;
    std::map<std::string, std::string> m_texts;                         ///< by path
    std::map<std::string, std::pair<uint64_t, std::string>> m_refusals; ///< by path: which it was, and why
    std::atomic<uint64_t> m_refused{0};
    struct Asked {
        std::string real;
        uint64_t order = 0; ///< when it was asked for last
        bool relative = false;
    };
    std::map<std::string, Asked> m_asked;
    uint64_t m_order = 0;
    std::atomic<uint32_t> m_count{0};
};

/// Whether a source applies derivatives, and whether it declares functions that have some.
bool applies_derivatives(std::string_view source);
bool declares_differentiable(std::string_view source);
/// Whether it has matrices of floats beside what takes the result of comparing such: Slang dies making SPIR-V of that.
bool may_compare_matrices(std::string_view source);

/// Absolute, with links and dots resolved where the file exists.
std::string canonical_path(const std::string& path);

} // namespace spy
