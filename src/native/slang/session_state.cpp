// How a session is made: options and macros as Slang takes them, and its end.
#include "slang/session.h"

#include "slang/isolation/remote.h"

#include <cstdlib> // defines __GLIBC__ where it is
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace spy {
namespace {

/// Strings that a session description points at live here until the session is made.
struct OptionList {
    std::vector<slang::CompilerOptionEntry> entries;

    void add(slang::CompilerOptionName name, int value, int value1 = 0)
    {
        slang::CompilerOptionEntry entry = {};
        entry.name = name;
        entry.value.intValue0 = value;
        entry.value.intValue1 = value1;
        entries.push_back(entry);
    }
    void add(slang::CompilerOptionName name, const std::string& text)
    {
        slang::CompilerOptionEntry entry = {};
        entry.name = name;
        entry.value.kind = slang::CompilerOptionValueKind::String;
        entry.value.stringValue0 = text.c_str();
        entries.push_back(entry);
    }
};

SlangCompileTarget target_format(const std::string& format)
{
    if (format == "cpp")
        return SLANG_CPP_SOURCE;
    if (format == "cuda")
        return SLANG_CUDA_SOURCE;
    if (format == "spirv")
        return SLANG_SPIRV;
    if (format == "spirv-asm")
        return SLANG_SPIRV_ASM;
    if (format == "hlsl")
        return SLANG_HLSL;
    fail_value("unknown code format \"", format, "\": expected \"cpp\", \"cuda\", \"spirv\" or \"hlsl\"");
}

void add_options(OptionList& list, const SessionOptions& options)
{
    using Name = slang::CompilerOptionName;
    list.add(Name::Optimization, int(options.optimization));
    list.add(Name::FloatingPointMode, int(options.floating_point_mode));
    list.add(Name::DebugInformation, int(options.debug_info));
    list.add(Name::DiagnosticColor, SLANG_DIAGNOSTIC_COLOR_NEVER);
    list.add(Name::VulkanUseEntryPointName, 1);
    if (options.experimental)
        list.add(Name::ExperimentalFeature, 1);
    if (options.report_downstream_time)
        list.add(Name::ReportDownstreamTime, 1);
    if (options.report_perf_benchmark)
        list.add(Name::ReportPerfBenchmark, 1);
    if (options.skip_spirv_validation)
        list.add(Name::SkipSPIRVValidation, 1);
    if (options.dump_intermediates)
        list.add(Name::DumpIntermediates, 1);
    if (!options.dump_intermediates_prefix.empty())
        list.add(Name::DumpIntermediatePrefix, options.dump_intermediates_prefix);
    for (const std::string& warning : options.enable_warnings)
        list.add(Name::EnableWarning, warning);
    for (const std::string& warning : options.warnings_as_errors)
        list.add(Name::WarningsAsErrors, warning);
}

/// The macros that every session defines, unless the target or the user did.
std::vector<std::pair<std::string, std::string>> all_defines(const SlangTarget& target, const SessionOptions& options)
{
    std::vector<std::pair<std::string, std::string>> defines = target.defines;
    const auto set = [&](const std::string& name, const std::string& value, bool replace) {
        for (auto& define : defines)
            if (define.first == name) {
                if (replace)
                    define.second = value;
                return;
            }
        defines.emplace_back(name, value);
    };
    for (const auto& [name, value] : options.defines)
        set(name, value, true);
    const bool spirv = target.format.starts_with("spirv");
    set(target.format == "cuda"       ? "__TARGET_CUDA__"
            : target.format == "hlsl" ? "__TARGET_D3D12__"
            : spirv                   ? "__TARGET_VULKAN__"
                                      : "__TARGET_CPU__",
        "1", false);
    const bool shader_model = target.profile.size() == 6 && target.profile.starts_with("sm_"); // "sm_6_6"
    set("__SHADER_TARGET_MAJOR", shader_model ? target.profile.substr(3, 1) : "6", false);
    set("__SHADER_TARGET_MINOR", shader_model ? target.profile.substr(5, 1) : "0", false);
    return defines;
}

/// Options written as for slangc. What `desc` points at belongs to this.
struct ParsedArguments {
    slang::SessionDesc desc = {};
    ComPtr<ISlangUnknown> owner;

    ParsedArguments(slang::IGlobalSession* global, const std::vector<std::string>& arguments)
    {
        if (arguments.empty())
            return;
        std::vector<const char*> texts;
        std::string all;
        for (const std::string& argument : arguments) {
            texts.push_back(argument.c_str());
            all += " " + argument;
        }
        check(global, texts, all);
        if (SLANG_FAILED(global->parseCommandLineArguments(int(texts.size()), texts.data(), &desc, owner.put())))
            fail_value("the Slang compiler does not take these options:", all);
    }

private:
    /// parseCommandLineArguments() takes everything without a word; the older interface says what is wrong.
    static void check(slang::IGlobalSession* global, const std::vector<const char*>& texts, const std::string& all)
    {
        SlangCompileRequest* request = spCreateCompileRequest(global);
        const SlangResult status = spProcessCommandLineArguments(request, texts.data(), int(texts.size()));
        const char* said = spGetDiagnosticOutput(request);
        const std::string reason = said ? said : "";
        spDestroyCompileRequest(request);
        if (SLANG_FAILED(status))
            fail_value("the Slang compiler does not take these options:", all, "\n", reason);
    }
};

} // namespace

namespace {

/// Lets go of a Slang object under the lock. Where that will never come, better to lose the memory than to race.
template <typename T>
void release(Compiler& compiler, ComPtr<T>& object)
{
    if (!object)
        return;
    try {
        const Compiler::Lock lock(compiler, false);
        object.reset();
    } catch (const Error&) {
        object->addRef();
    }
}

} // namespace

SessionState::SessionState() = default;

void SessionState::keep_for_ever()
{
    if (!kept_for_ever)
        session->addRef();
    kept_for_ever = true;
}

SessionState::~SessionState()
{
    if (!compiler || !session)
        return;
    release(*compiler, session);
#ifdef __GLIBC__
    malloc_trim(0); // a session is tens of MiB in small pieces, which glibc would keep
#endif
}

Layout::~Layout()
{
    if (state)
        release(*state->compiler, component);
}

Session::Session(SlangTarget target, SessionOptions options)
    : m_target(std::move(target)),
      m_options(std::move(options))
{
    target_format(m_target.format);
}

namespace {

/// What a session is made from, and what the descriptions point to.
struct SessionParts {
    OptionList options, target_options;
    slang::TargetDesc target = {};
    std::vector<const char*> paths;
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<slang::PreprocessorMacroDesc> macros;
};

void set_target(SessionParts& parts, slang::IGlobalSession* global, const SlangTarget& target,
                const SessionOptions& options)
{
    for (const std::string& name : target.capabilities) {
        const SlangCapabilityID id = global->findCapability(name.c_str());
        if (id == SLANG_CAPABILITY_UNKNOWN)
            fail_value("unknown Slang capability \"", name, "\"");
        parts.target_options.add(slang::CompilerOptionName::Capability, int(id));
    }
    slang::TargetDesc& desc = parts.target;
    desc.format = target_format(target.format);
    desc.forceGLSLScalarBufferLayout = true;
    desc.floatingPointMode = options.floating_point_mode;
    if (options.whole_program) {
        desc.flags |= SLANG_TARGET_FLAG_GENERATE_WHOLE_PROGRAM;
        parts.options.add(slang::CompilerOptionName::IgnoreCapabilities, 1);
    }
    if (options.debug_info == SLANG_DEBUG_INFO_LEVEL_NONE && !options.line_directives)
        desc.lineDirectiveMode = SLANG_LINE_DIRECTIVE_MODE_NONE;
    if (!target.profile.empty()) {
        desc.profile = global->findProfile(target.profile.c_str());
        if (desc.profile == SLANG_PROFILE_UNKNOWN)
            fail_value("unknown Slang profile \"", target.profile, "\"");
    }
    desc.compilerOptionEntries = parts.target_options.entries.data();
    desc.compilerOptionEntryCount = uint32_t(parts.target_options.entries.size());
}

void set_inputs(SessionParts& parts, const SlangTarget& target, const SessionOptions& options)
{
    for (const std::string& path : options.include_paths)
        parts.paths.push_back(path.c_str());
    parts.defines = all_defines(target, options);
    for (const auto& [name, value] : parts.defines)
        parts.macros.push_back({name.c_str(), value.c_str()});
}

void create_session(SessionState& state, const SlangTarget& target, const SessionOptions& options)
{
    slang::IGlobalSession* global = state.compiler->global_session();
    SessionParts parts;
    add_options(parts.options, options);
    set_target(parts, global, target, options);
    set_inputs(parts, target, options);

    const ParsedArguments parsed(global, options.arguments);
    for (SlangInt i = 0; i < parsed.desc.searchPathCount; ++i)
        parts.paths.push_back(parsed.desc.searchPaths[i]);
    for (SlangInt i = 0; i < parsed.desc.preprocessorMacroCount; ++i)
        parts.macros.push_back(parsed.desc.preprocessorMacros[i]);
    auto& entries = parts.options.entries;
    entries.insert(entries.end(), parsed.desc.compilerOptionEntries,
                   parsed.desc.compilerOptionEntries + parsed.desc.compilerOptionEntryCount);

    slang::SessionDesc desc = {};
    desc.targets = &parts.target;
    desc.targetCount = 1;
    desc.defaultMatrixLayoutMode = options.row_major ? SLANG_MATRIX_LAYOUT_ROW_MAJOR : SLANG_MATRIX_LAYOUT_COLUMN_MAJOR;
    desc.searchPaths = parts.paths.data();
    desc.searchPathCount = SlangInt(parts.paths.size());
    desc.preprocessorMacros = parts.macros.data();
    desc.preprocessorMacroCount = SlangInt(parts.macros.size());
    desc.fileSystem = state.files.get();
    desc.compilerOptionEntries = entries.data();
    desc.compilerOptionEntryCount = uint32_t(entries.size());
    desc.skipSPIRVValidation = options.skip_spirv_validation;
    if (SLANG_FAILED(global->createSession(desc, state.session.put())))
        fail_runtime("the Slang compiler could not create a session for \"", target.format, "\"");
}

/// What sources see defined, as they would write it; of arguments as for slangc those like `-DNAME=4`, too.
std::string define_lines(const SlangTarget& target, const SessionOptions& options)
{
    std::vector<std::pair<std::string, std::string>> defines = all_defines(target, options);
    for (size_t i = 0; i < options.arguments.size(); ++i) {
        std::string_view text = options.arguments[i];
        if (!text.starts_with("-D"))
            continue;
        text.remove_prefix(2);
        if (text.empty() && i + 1 < options.arguments.size())
            text = options.arguments[++i];
        const size_t sign = text.find('=');
        defines.emplace_back(text.substr(0, sign), sign == text.npos ? "1" : text.substr(sign + 1));
    }
    std::string lines;
    for (const auto& [name, value] : defines)
        lines += cat("#define ", name, " ", value, "\n");
    return lines;
}

} // namespace

std::shared_ptr<SessionState> Session::make_state() const
{
    auto state = std::make_shared<SessionState>();
    state->compiler = Compiler::instance();
    state->files = ComPtr<SourceFiles>(
        new SourceFiles(m_options.include_paths, m_options.library_paths, m_options.sealed,
                        {m_options.rewrites, m_options.inline_differentiable, m_target.format == "cpp",
                         !m_options.whole_program, define_lines(m_target, m_options)}));
    state->remote = std::make_unique<RemoteSession>(m_target, m_options);
    state->compiler->run([state, target = m_target, options = m_options] { create_session(*state, target, options); });
    return state;
}

} // namespace spy
