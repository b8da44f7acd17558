// Target code of linked programs, made in this process or in the worker.
#include "slang/session.h"

#include "slang/build.h"
#include "slang/isolation/remote.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

namespace spy {

namespace {

void check_entry_point(const ProgramData& program, int entry_point)
{
    const int count = int(program.entry_points.size());
    if (entry_point < 0 || entry_point >= count)
        fail(ErrorKind::index, "entry point index ", entry_point, " is out of range: the program has ", count);
}

/// These write files or say how long the compiler took, which is the business of the process at hand.
bool needs_this_process(const SessionOptions& options, const LinkOptions& link)
{
    return options.report_downstream_time || options.report_perf_benchmark ||
        link.dump_intermediates.value_or(options.dump_intermediates);
}

/// The code from the process that generates it; none where that cannot, or gave up in an orderly way: then the messages
/// are better here, where the sources are.
std::optional<wire::Code> ask_worker(const std::shared_ptr<ProgramData>& program, const std::shared_ptr<Layout>& layout,
                                     int entry_point, const CompileLimits& limits)
{
    const std::shared_ptr<CodeWorker> worker = CodeWorker::instance();
    for (int i = 0; worker && i < 3; ++i) { // again when the process has been replaced meanwhile
        const CodeRequest request = layout->state->compiler->run(
            [=] { return layout->state->remote->request(*layout->state, *program, entry_point, limits.fault); });
        if (!request.life)
            return std::nullopt;
        try {
            if (std::optional<wire::Code> code = worker->ask(request.life, request.frame, limits))
                return code->done ? code : std::nullopt;
        } catch (const CompilerDeath& death) {
            if (death.reason != "killed" || i > 0) // somebody killed it: no fault of this program
                throw;
        }
    }
    return std::nullopt;
}

/// Slang 2026.12 writes the 0 that `bool(x)` of a double is compared with as 32 bits, and its optimizer refuses that.
bool has_narrow_zeros(ISlangBlob* diagnostics)
{
    return diagnostics && blob_view(diagnostics).find("Invalid word count: OpConstant ") != std::string_view::npos;
}

/// The code, if it is SPIR-V, with all constants of 64 bits as wide as that.
std::string with_wide_zeros(std::string code)
{
    constexpr uint32_t magic = 0x07230203;
    if (uint32_t first = 0;
        code.size() < sizeof first || (std::memcpy(&first, code.data(), sizeof first), first != magic))
        return code;
    constexpr uint32_t type_float = 22, constant = 43, header_words = 5, narrow_words = 4;
    std::vector<uint32_t> words(code.size() / sizeof(uint32_t)), wide;
    std::memcpy(words.data(), code.data(), words.size() * sizeof(uint32_t));
    std::set<uint32_t> doubles;
    for (size_t i = 0; i < words.size();) {
        const size_t count = i ? std::clamp<size_t>(words[i] >> 16, 1, words.size() - i) : header_words;
        const uint32_t operation = i ? words[i] & 0xffffu : 0;
        wide.insert(wide.end(), words.begin() + long(i), words.begin() + long(i + count));
        if (operation == type_float && count > 2 && words[i + 2] == 64)
            doubles.insert(words[i + 1]);
        if (operation == constant && count == narrow_words && doubles.count(words[i + 1])) {
            wide[wide.size() - narrow_words] += 1u << 16;
            wide.push_back(0);
        }
        i += count;
    }
    return {reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(uint32_t)};
}

/// The code as Slang writes it before its optimizer (drivers have one of their own), mended.
std::string code_with_wide_zeros(const ProgramData& program, int entry_point)
{
    ProgramData plain = program;
    plain.options.optimization = SLANG_OPTIMIZATION_LEVEL_NONE;
    Build build{program.layout->state, {}, {}, {}};
    const std::shared_ptr<Layout> layout = build.link(plain);
    ComPtr<ISlangBlob> code;
    if (SLANG_FAILED(layout->component->getEntryPointCode(entry_point, 0, code.put(), nullptr)) || !code)
        return {};
    return with_wide_zeros(blob_text(code.get()));
}

} // namespace

/// For tests: what the other process gave is what this one gives.
void Session::check_same(const std::optional<wire::Code>& elsewhere, const std::string& code,
                         const std::vector<std::string>& warnings)
{
    if (!elsewhere)
        fail_runtime("the compiler's process gives no code");
    if (elsewhere->text != code)
        fail_runtime("the compiler's process gives other code than this one");
    for (const std::string& warning : elsewhere->warnings)
        warn(warning);
    const size_t count = m_seen_warnings.size();
    for (const std::string& warning : warnings) {
        warn(warning);
        if (m_seen_warnings.size() != count)
            fail_runtime("the compiler's process does not give this warning: ", warning);
    }
}

std::string Session::code(const std::shared_ptr<ProgramData>& program, int entry_point)
{
    return code(program, entry_point, {});
}

std::string Session::code(const std::shared_ptr<ProgramData>& program, int entry_point, const CompileLimits& limits)
{
    const auto operation = Compiler::lock_politely(m_operation);
    state();
    const std::shared_ptr<Layout> layout = program->layout;
    check_entry_point(*program, entry_point);
    if (const auto known = program->codes.find(entry_point); known != program->codes.end())
        return known->second;
    std::optional<wire::Code> elsewhere;
    if (!limits.in_process && !needs_this_process(m_options, program->options))
        elsewhere = ask_worker(program, layout, entry_point, limits);
    const bool compare = limits.fault == "compare";
    const bool is_plain = program->options.optimization.value_or(m_options.optimization) ==
        SLANG_OPTIMIZATION_LEVEL_NONE;
    const auto keep = [&](std::string text) {
        return program->codes[entry_point] = is_plain ? with_wide_zeros(std::move(text)) : std::move(text);
    };
    if (elsewhere && !compare) {
        for (const std::string& warning : elsewhere->warnings)
            warn(warning);
        return keep(std::move(elsewhere->text));
    }
    auto build = std::make_shared<Build>(Build{layout->state, {}, {}, {}});
    std::string code = layout->state->compiler->run([build, program, layout, entry_point] {
        ComPtr<ISlangBlob> code, diagnostics;
        const SlangResult status = layout->component->getEntryPointCode(entry_point, 0, code.put(), diagnostics.put());
        if (SLANG_FAILED(status) && has_narrow_zeros(diagnostics.get()))
            if (std::string mended = code_with_wide_zeros(*program, entry_point); !mended.empty())
                return mended;
        build->check(SLANG_FAILED(status) || !code, diagnostics.get(),
                     cat("Failed to generate code for entry point \"", program->entry_points[entry_point]->name, "\""));
        return blob_text(code.get());
    });
    if (compare)
        check_same(elsewhere, code, build->warnings);
    for (const std::string& warning : build->warnings)
        warn(warning);
    return keep(std::move(code));
}

std::string Session::whole_code(const std::shared_ptr<ProgramData>& program)
{
    const auto operation = Compiler::lock_politely(m_operation);
    state();
    const std::shared_ptr<Layout> layout = program->layout;
    auto build = std::make_shared<Build>(Build{layout->state, {}, {}, {}});
    std::string code = layout->state->compiler->run([build, layout] {
        ComPtr<ISlangBlob> code, diagnostics;
        const SlangResult status = layout->component->getTargetCode(0, code.put(), diagnostics.put());
        build->check(SLANG_FAILED(status) || !code, diagnostics.get(), "Failed to generate code");
        return blob_text(code.get());
    });
    for (const std::string& warning : build->warnings)
        warn(warning);
    return code;
}

std::string Session::content_key(const std::shared_ptr<ProgramData>& program, int entry_point)
{
    const auto operation = Compiler::lock_politely(m_operation);
    state();
    const std::shared_ptr<Layout> layout = program->layout;
    check_entry_point(*program, entry_point);
    return layout->state->compiler->run(
        [=] { return layout->state->remote->content_key(*layout->state, *program, entry_point); });
}

} // namespace spy
