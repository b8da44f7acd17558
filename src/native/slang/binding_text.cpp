#include "slang/binding_text.h"

#include "core/error.h"
#include "slang/build.h"
#include "slang/compiler.h"

namespace spy {
namespace {

struct Request {
    SlangCompileRequest* request;
    explicit Request(slang::IGlobalSession* session) : request(spCreateCompileRequest(session)) { }
    ~Request() { spDestroyCompileRequest(request); }
    Request(const Request&) = delete;
};

std::string generate(Compiler& compiler, const std::string& path, const std::vector<std::string>& arguments,
                     const std::string& source)
{
    const Request owner(compiler.global_session());
    SlangCompileRequest* request = owner.request;
    std::vector<const char*> texts;
    for (const std::string& argument : arguments)
        texts.push_back(argument.c_str());
    texts.insert(texts.end(), {"-target", "torch-binding", "-ignore-capabilities", "-line-directive-mode", "none"});
    if (source.empty())
        texts.push_back(path.c_str());
    SlangResult status = spProcessCommandLineArguments(request, texts.data(), int(texts.size()));
    if (SLANG_SUCCEEDED(status) && !source.empty()) {
        const int unit = spAddTranslationUnit(request, SLANG_SOURCE_LANGUAGE_SLANG, nullptr);
        spAddTranslationUnitSourceString(request, unit, path.c_str(), source.c_str());
    }
    if (SLANG_SUCCEEDED(status))
        status = spCompile(request);
    ComPtr<ISlangBlob> code;
    if (SLANG_SUCCEEDED(status))
        status = spGetTargetCodeBlob(request, 0, code.put());
    if (SLANG_FAILED(status) || !code)
        fail(ErrorKind::slang_compile, "Failed to generate the host functions of ", path, ":\n",
             text_or_empty(spGetDiagnosticOutput(request)));
    const std::string text = blob_text(code.get());
    constexpr std::string_view last = "#define SLANG_PRELUDE_EXPORT";
    const size_t begin = text.rfind(last); // half a megabyte of library stands before it
    const size_t line_end = begin == text.npos ? text.npos : text.find('\n', begin);
    return line_end == text.npos ? text : text.substr(line_end + 1);
}

} // namespace

std::string torch_binding_text(const std::string& path, const std::vector<std::string>& arguments,
                               const std::string& source)
{
    const std::shared_ptr<Compiler> compiler = Compiler::instance();
    return compiler->run([compiler, path, arguments, source] { return generate(*compiler, path, arguments, source); });
}

} // namespace spy
