// Target code of linked programs, made in this process or in the worker.
#include "slang/session.h"

#include "slang/build.h"
#include "slang/remote.h"
#include "slang/rewrite/rewrite.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

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
    if (elsewhere && !compare) {
        for (const std::string& warning : elsewhere->warnings)
            warn(warning);
        return program->codes[entry_point] = std::move(elsewhere->text);
    }
    auto build = std::make_shared<Build>();
    std::string code = layout->state->compiler->run([build, program, layout, entry_point] {
        ComPtr<ISlangBlob> code, diagnostics;
        const SlangResult status = layout->component->getEntryPointCode(entry_point, 0, code.put(), diagnostics.put());
        build->check(SLANG_FAILED(status) || !code, diagnostics.get(),
                     cat("Failed to generate code for entry point \"", program->entry_points[entry_point]->name, "\""));
        return blob_text(code.get());
    });
    if (compare)
        check_same(elsewhere, code, build->warnings);
    for (const std::string& warning : build->warnings)
        warn(warning);
    return program->codes[entry_point] = std::move(code);
}

std::string Session::whole_code(const std::shared_ptr<ProgramData>& program)
{
    const auto operation = Compiler::lock_politely(m_operation);
    state();
    const std::shared_ptr<Layout> layout = program->layout;
    auto build = std::make_shared<Build>();
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
