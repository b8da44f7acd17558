#pragma once
// Sessions, modules, entry points and programs.
//
// Everything that Slang made for one life of a session hangs on a SessionState. A reload builds a second state, loads
// every module and links every program into it, and puts it in the place of the first only when all of that worked.
#include "core/layout.h"
#include "core/ref.h"
#include "slang/compiler.h"
#include "slang/files.h"

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace spy {

/// What code is generated for. (A device has a CompileTarget with the same fields; this folder knows no devices.)
struct SlangTarget {
    std::string format;  ///< "cpp", "cuda", "spirv", "hlsl"
    std::string profile; ///< "spirv_1_5", "sm_6_6", ... or empty
    std::vector<std::string> capabilities;
    std::vector<std::pair<std::string, std::string>> defines; ///< __TARGET_CPU__=1, SPY_FLOAT_ATOMICS=1, ...
};

struct SessionOptions {
    std::vector<std::string> include_paths;
    std::vector<std::string> library_paths; ///< sources below are not rewritten
    std::vector<std::pair<std::string, std::string>> defines;
    SlangOptimizationLevel optimization = SLANG_OPTIMIZATION_LEVEL_DEFAULT;
    SlangFloatingPointMode floating_point_mode = SLANG_FLOATING_POINT_MODE_DEFAULT;
    SlangDebugInfoLevel debug_info = SLANG_DEBUG_INFO_LEVEL_NONE;
    bool row_major = true;
    bool experimental = false; ///< Slang's experimental features and modules
    std::vector<std::string> enable_warnings, disable_warnings, warnings_as_errors; ///< codes or names
    std::vector<std::string> downstream_args;
    bool report_downstream_time = false, report_perf_benchmark = false, skip_spirv_validation = false;
    bool dump_intermediates = false;
    std::string dump_intermediates_prefix;
    bool sealed = false;                ///< no file is read: all modules come from memory
    std::string rewrites;               ///< which faults of Slang are rewritten: SLANGPY_REWRITES
    bool inline_differentiable = false; ///< for second derivatives, see rewrite/rules/inline.cpp
    bool whole_program = false;         ///< code of all functions marked for export, kernels without a stage among them
    bool line_directives = false;       ///< in target code, whatever debug_info says
    std::vector<std::string> arguments; ///< more options, written as for slangc
};

/// What a program may ask for beyond its session.
struct LinkOptions {
    std::optional<SlangOptimizationLevel> optimization;
    std::optional<SlangFloatingPointMode> floating_point_mode;
    std::optional<SlangDebugInfoLevel> debug_info;
    std::optional<std::vector<std::string>> downstream_args;
    std::optional<bool> dump_intermediates;
    std::optional<std::string> dump_intermediates_prefix;
};

struct TypeConformance {
    std::string interface_name, type_name;
    int64_t id = -1; ///< -1: the next free one of the interface
    bool operator==(const TypeConformance&) const = default;
};

struct SpecializationArg {
    bool is_type = true;
    std::string text;
};

class Reflection;

struct ModuleData;
struct CompileLimits;
namespace wire {
struct Code;
}
class RemoteSession;

/// One life of a session. Reflection objects belong to it and are invalid once it is replaced.
struct SessionState {
    std::shared_ptr<Compiler> compiler;
    ComPtr<SourceFiles> files;
    ComPtr<slang::ISession> session;
    bool valid = true;
    bool kept_for_ever = false;
    uint64_t generation = 0;

    struct CacheKey {
        const void* pointer;
        const void* layout;
        int kind;
        bool operator==(const CacheKey&) const = default;
    };
    struct CacheHash {
        size_t operator()(const CacheKey& key) const
        {
            return std::hash<const void*>()(key.pointer) * 31 + std::hash<const void*>()(key.layout) + size_t(key.kind);
        }
    };
    /// The live wrapper of each reflected thing, so that one declaration is one object.
    std::unordered_map<CacheKey, Reflection*, CacheHash> wrappers;

    /// Names of modules that `session` knows, dropped ones and those of interrupted loads among them, and what stands
    /// after each. Written on the compiler's thread.
    std::map<std::string, std::string> taken;
    std::mutex taken_mutex;
    /// What the process that generates code knows of this.
    std::unique_ptr<RemoteSession> remote;

    std::set<const slang::IModule*>
        differentiating, ///< modules made of text that apply derivatives; on the compiler's thread
        comparing;       ///< those that may compare matrices
    /// Whether another module than this has its name.
    bool is_taken(const ModuleData& module);
    void take(const ModuleData& module);
    /// Slang holds pointers into the session from now on. Under the lock.
    void keep_for_ever();

    SessionState();
    ~SessionState();
};

struct NameValues; // name_text.h

/// A laid-out component: what reflection is read from.
struct Layout {
    std::shared_ptr<SessionState> state;
    ComPtr<slang::IComponentType> component;
    slang::ProgramLayout* program = nullptr;
    std::vector<std::string> modules;   ///< names of the modules in it
    std::map<std::string, void*> found; ///< names looked up, so that one name gives one object

    /// Under the lock; none when there is no such type.
    slang::TypeReflection* find_type(const std::string& name);
    /// A name of a type or function as Slang may see it; empty for what is none. All names that users give pass here,
    /// or through is_expression(), before Slang gets them. Under the lock.
    std::string checked_name(const std::string& name);
    /// Whether the text may stand for the value of a generic parameter. Under the lock.
    bool is_expression(const std::string& text);

    Layout() = default;
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    ~Layout();

    /// What Slang says of a module of its own with this text, which sees all modules; null where it does not compile.
    /// sees_imports: also what these import for themselves.
    slang::ProgramLayout* probe(const std::string& text, bool sees_imports = false);
    /// Names of the modules of users that its modules import, directly or not. Under the lock.
    const std::vector<std::string>& imported_by_modules();
    /// Looks a name up once: Slang makes a new object for each lookup of an overloaded or generic name. Under the lock.
    template <typename Thing, typename Find>
    Thing* look_up(const std::string& kind, const std::string& name, Find find)
    {
        const std::string clean = checked_name(name);
        if (clean.empty())
            return nullptr;
        const std::string key = kind + clean;
        if (const auto known = found.find(key); known != found.end())
            return static_cast<Thing*>(known->second);
        Thing* thing = find(clean.c_str());
        found[key] = thing;
        return thing;
    }

private:
    bool are_constant(const NameValues& values);

    std::optional<std::vector<std::string>> m_imported;
};

struct ModuleData {
    enum class Source { file, text, blob, composed };
    Source source = Source::file;
    std::string name, path, content;                ///< content: the text
    ComPtr<ISlangBlob> blob;                        ///< the module in binary form
    std::vector<std::shared_ptr<ModuleData>> parts; ///< composed
    std::vector<TypeConformance> conformances;      ///< composed

    // what follows is replaced by a reload
    slang::IModule* module = nullptr; ///< owned by the session; none when composed
    std::shared_ptr<Layout> layout;
};

struct EntryPointData {
    std::shared_ptr<ModuleData> module;
    std::string name, new_name;
    std::vector<SpecializationArg> arguments;
    std::vector<TypeConformance> conformances;

    std::shared_ptr<Layout> layout;
};

struct ProgramData {
    std::vector<std::shared_ptr<ModuleData>> modules;
    std::vector<std::shared_ptr<EntryPointData>> entry_points;
    std::vector<TypeConformance> conformances;
    LinkOptions options;

    std::shared_ptr<Layout> layout;
    std::map<int, std::string> codes;
};

class Session : public Object {
public:
    Session(SlangTarget target, SessionOptions options);

    std::shared_ptr<ModuleData> load_module(const std::string& name);
    std::shared_ptr<ModuleData> load_module_from_source(const std::string& name, const std::string& source,
                                                        const std::string& path);
    std::shared_ptr<ModuleData> load_module_from_blob(const std::string& name, const std::string& path,
                                                      std::string blob);
    std::shared_ptr<ModuleData> compose_modules(const std::string& name,
                                                const std::vector<std::shared_ptr<ModuleData>>& parts,
                                                const std::vector<TypeConformance>& conformances);
    std::shared_ptr<EntryPointData> entry_point(EntryPointData recipe);
    std::vector<std::string> entry_point_names(const std::shared_ptr<ModuleData>& module);
    std::shared_ptr<ProgramData> link(ProgramData recipe);
    /// Target code of one entry point; generated once, in a process of its own where there can be one. CompilerDeath
    /// when that dies or has to be stopped.
    std::string code(const std::shared_ptr<ProgramData>& program, int entry_point, const CompileLimits& limits);
    std::string code(const std::shared_ptr<ProgramData>& program, int entry_point);
    /// Target code of a program of a session with `whole_program`.
    std::string whole_code(const std::shared_ptr<ProgramData>& program);
    /// Hash of all that decides code(): the same in every process.
    std::string content_key(const std::shared_ptr<ProgramData>& program, int entry_point);
    std::string serialize(const std::shared_ptr<ModuleData>& module);
    /// Path of the source file that load_module(name) would read; throws when there is none.
    std::string resolve_path(const std::string& name);
    /// The text of that file, as it is on disk.
    std::string load_source(const std::string& name);

    /// Loads and links everything again from the files as they are now. When that fails nothing changes.
    void reload();

    std::shared_ptr<SessionState> state();
    const SlangTarget& target() const { return m_target; }
    const SessionOptions& options() const { return m_options; }
    /// Those that came up since the last call; each is given once in the life of the session.
    std::vector<std::string> take_warnings();

private:
    friend struct Build;

    SlangTarget m_target;
    SessionOptions m_options;
    std::recursive_timed_mutex m_operation; ///< one load, link or reload at a time: they must agree on the state
    std::mutex m_mutex;                     ///< of the members below
    std::shared_ptr<SessionState> m_state;
    std::vector<std::weak_ptr<ModuleData>> m_modules;
    std::vector<std::weak_ptr<EntryPointData>> m_entry_points;
    std::vector<std::weak_ptr<ProgramData>> m_programs;
    std::map<std::string, std::weak_ptr<ModuleData>> m_named;
    std::vector<std::string> m_warnings; ///< not yet taken
    std::set<std::string> m_seen_warnings;

    std::shared_ptr<SessionState> make_state() const;
    void check_same(const std::optional<wire::Code>& elsewhere, const std::string& code,
                    const std::vector<std::string>& warnings);
    void warn(const std::string& text);
    std::shared_ptr<ModuleData> find_named(const std::string& key);
    std::shared_ptr<ModuleData> load(ModuleData recipe, const std::string& key);
};

/// Files that `module` was made of, those of its imports included. Under the lock.
std::vector<std::string> dependency_files(const ModuleData& module);
/// Names of the modules that `module` imports, directly or not. Under the lock.
std::vector<std::string> imported_modules(const ModuleData& module);

} // namespace spy
