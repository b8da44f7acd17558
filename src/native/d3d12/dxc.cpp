// Microsoft's shader compiler: HLSL text to DXIL. Its interfaces are declared here, because no header of it is needed
// to build: they are COM interfaces, and what is published never changes.
#include "d3d12/api.h"
#include "d3d12/library.h"

#include "core/error.h"

#include <cstring>
#include <mutex>

#ifdef _WIN32
#define SPY_DXC_CALL __stdcall
#else
#define SPY_DXC_CALL // not vkd3d's convention: DXC was built for this system's own
#endif

namespace spy {

// Not in an anonymous namespace: of a class there the compiler knows all that derives from it, here none, and calls the
// pure function itself.
struct DxcUnknown {
    virtual HRESULT SPY_DXC_CALL QueryInterface(const GUID& iid, void** object) = 0;
    virtual ULONG SPY_DXC_CALL AddRef() = 0;
    virtual ULONG SPY_DXC_CALL Release() = 0;
};
struct DxcBlob : DxcUnknown {
    virtual void* SPY_DXC_CALL GetBufferPointer() = 0;
    virtual SIZE_T SPY_DXC_CALL GetBufferSize() = 0;
};
struct DxcOperationResult : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL GetStatus(HRESULT* status) = 0;
    virtual HRESULT SPY_DXC_CALL GetResult(DxcBlob** result) = 0;
    virtual HRESULT SPY_DXC_CALL GetErrorBuffer(DxcBlob** errors) = 0;
};
struct DxcBuffer {
    const void* data;
    SIZE_T size;
    UINT encoding;
};
struct DxcCompiler3 : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL Compile(const DxcBuffer* source, const wchar_t** arguments, UINT32 argument_count,
                                         DxcUnknown* include_handler, const GUID& iid, void** result) = 0;
    virtual HRESULT SPY_DXC_CALL Disassemble(const DxcBuffer* code, const GUID& iid, void** result) = 0;
};
struct DxcLibrary : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL SetMalloc(void* allocator) = 0;
    virtual HRESULT SPY_DXC_CALL CreateBlobFromBlob(DxcBlob* blob, UINT32 offset, UINT32 size, DxcBlob** result) = 0;
    virtual HRESULT SPY_DXC_CALL CreateBlobFromFile(const wchar_t* path, UINT32* encoding, DxcBlob** result) = 0;
    virtual HRESULT SPY_DXC_CALL CreateBlobWithEncodingFromPinned(const void* data, UINT32 size, UINT32 encoding,
                                                                  DxcBlob** result) = 0;
    virtual HRESULT SPY_DXC_CALL CreateBlobWithEncodingOnHeapCopy(const void* data, UINT32 size, UINT32 encoding,
                                                                  DxcBlob** result) = 0;
};
struct DxcOptimizer : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL GetAvailablePassCount(UINT32* count) = 0;
    virtual HRESULT SPY_DXC_CALL GetAvailablePass(UINT32 index, DxcUnknown** pass) = 0;
    virtual HRESULT SPY_DXC_CALL RunOptimizer(DxcBlob* code, const wchar_t** passes, UINT32 count, DxcBlob** changed,
                                              DxcBlob** text) = 0;
};
struct DxcAssembler : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL AssembleToContainer(DxcBlob* code, DxcOperationResult** result) = 0;
};
struct DxcVersionInfo : DxcUnknown {
    virtual HRESULT SPY_DXC_CALL GetVersion(UINT32* major, UINT32* minor) = 0;
    virtual HRESULT SPY_DXC_CALL GetFlags(UINT32* flags) = 0;
};
struct DxcVersionInfo2 : DxcVersionInfo {
    virtual HRESULT SPY_DXC_CALL GetCommitInfo(UINT32* count, char** hash) = 0;
};

namespace {

constexpr GUID clsid_compiler{0x73e22d93, 0xe6ce, 0x47f3, {0xb5, 0xbf, 0xf0, 0x66, 0x4f, 0x39, 0xc1, 0xb0}};
constexpr GUID iid_compiler3{0x228b4687, 0x5a6a, 0x4730, {0x90, 0x0c, 0x97, 0x02, 0xb2, 0x20, 0x3f, 0x54}};
constexpr GUID iid_operation_result{0xcedb484a, 0xd4e9, 0x445a, {0xb9, 0x91, 0xca, 0x21, 0xca, 0x15, 0x7d, 0xc2}};
[[maybe_unused]] constexpr GUID clsid_optimizer{
    0xae2cd79f, 0xcc22, 0x453f, {0x9b, 0x6b, 0xb1, 0x24, 0xe7, 0xa5, 0x20, 0x4c}};
[[maybe_unused]] constexpr GUID iid_optimizer{
    0x25740e2e, 0x9cba, 0x401b, {0x91, 0x19, 0x4f, 0xb4, 0x2f, 0x39, 0xf2, 0x70}};
[[maybe_unused]] constexpr GUID clsid_assembler{
    0xd728db68, 0xf903, 0x4f80, {0x94, 0xcd, 0xdc, 0xcf, 0x76, 0xec, 0x71, 0x51}};
[[maybe_unused]] constexpr GUID iid_assembler{
    0x091f7a26, 0x1c1f, 0x4948, {0x90, 0x4b, 0xe6, 0xe3, 0xa8, 0xa7, 0x71, 0xd5}};
[[maybe_unused]] constexpr GUID clsid_library{
    0x6245d6af, 0x66e0, 0x48fd, {0x80, 0xb4, 0x4d, 0x27, 0x17, 0x96, 0x74, 0x8c}};
[[maybe_unused]] constexpr GUID iid_library{
    0xe5204dc7, 0xd18c, 0x4c3c, {0xbd, 0xfb, 0x85, 0x16, 0x73, 0x98, 0x0f, 0xe7}};
constexpr GUID iid_version_info{0xb04f5b50, 0x2059, 0x4f12, {0xa8, 0xff, 0xa1, 0xe0, 0xcd, 0xe1, 0xcc, 0x7e}};
constexpr GUID iid_version_info2{0xfb6904c4, 0x42f0, 0x4b62, {0x9c, 0x46, 0x98, 0x3a, 0xf7, 0xda, 0x7c, 0x83}};

using CreateInstance = HRESULT(SPY_DXC_CALL*)(const GUID& clsid, const GUID& iid, void** object);

CreateInstance create_instance()
{
    static const CreateInstance function = [] {
#ifdef _WIN32
        const SharedLibrary library = SharedLibrary::open(
            {"dxcompiler.dll"}, "DXC, the compiler of Direct3D 12 kernels,",
            "put dxcompiler.dll and dxil.dll into the folder that SLANGPY_D3D12_PATH names (docs/d3d12.md)");
#else
        const SharedLibrary library = SharedLibrary::open(
            {"libdxcompiler.so"}, "DXC, the compiler of Direct3D 12 kernels,",
            "put libdxcompiler.so into the folder that SLANGPY_D3D12_PATH names (docs/d3d12.md)");
#endif
        CreateInstance found = nullptr;
        library.find("DxcCreateInstance", found);
        return found;
    }();
    return function;
}

std::string text_of(DxcBlob* blob)
{
    return blob ? std::string(static_cast<const char*>(blob->GetBufferPointer()), blob->GetBufferSize()) : "";
}

#ifndef _WIN32

// vkd3d takes signed containers only, and this DXC does not sign. What the two functions below take and give:
struct Code {
    const void* data;
    size_t size;
};
struct Section {
    uint32_t tag;
    Code data;
};
struct Container {
    uint32_t tag, checksum[4];
    unsigned version;
    size_t size, section_count;
    Section* sections;
};

/// Takes the container apart and puts it together again, which computes its checksum.
std::string sign(std::string_view code, const std::string& label)
{
    const SharedLibrary library = SharedLibrary::open({"libvkd3d-shader.so.1"}, "Direct3D 12",
                                                      "docs/d3d12.md says how");
    int (*parse)(const Code*, uint32_t, Container*, char**) = nullptr;
    int (*serialize)(size_t, const Section*, Code*, char**) = nullptr;
    void (*free_container)(Container*) = nullptr;
    void (*free_code)(Code*) = nullptr;
    library.find("vkd3d_shader_parse_dxbc", parse);
    library.find("vkd3d_shader_serialize_dxbc", serialize);
    library.find("vkd3d_shader_free_dxbc", free_container);
    library.find("vkd3d_shader_free_shader_code", free_code);
    constexpr uint32_t ignore_checksum = 1;
    const Code unsigned_code{code.data(), code.size()};
    Container container{};
    if (parse(&unsigned_code, ignore_checksum, &container, nullptr) < 0)
        fail_runtime("kernel '", label, "': DXC's output is no DXIL container");
    Code result{};
    const int status = serialize(container.section_count, container.sections, &result, nullptr);
    free_container(&container);
    if (status < 0)
        fail_runtime("kernel '", label, "': vkd3d could not sign the DXIL container (", status, ")");
    std::string text(static_cast<const char*>(result.data), result.size);
    free_code(&result);
    return text;
}

Com<DxcBlob> result_of(DxcOperationResult* result, const char* what)
{
    HRESULT status = E_FAIL;
    d3d12_check(result->GetStatus(&status), what);
    d3d12_check(status, what);
    Com<DxcBlob> blob;
    d3d12_check(result->GetResult(blob.put()), what);
    return blob;
}

std::string disassemble(DxcCompiler3* compiler, std::string_view code)
{
    const DxcBuffer buffer{code.data(), code.size(), 0};
    Com<DxcOperationResult> result;
    d3d12_check(compiler->Disassemble(&buffer, iid_operation_result, result.put_void()), "IDxcCompiler3::Disassemble");
    std::string text = text_of(result_of(result.get(), "IDxcCompiler3::Disassemble").get());
    text.resize(std::strlen(text.c_str())); // there may be a zero at its end
    return text;
}

std::string disassemble(DxcCompiler3* compiler, DxcBlob* code)
{
    return disassemble(compiler, {static_cast<const char*>(code->GetBufferPointer()), code->GetBufferSize()});
}

Com<DxcBlob> assemble(DxcBlob* code)
{
    Com<DxcAssembler> assembler;
    Com<DxcOperationResult> result;
    d3d12_check(create_instance()(clsid_assembler, iid_assembler, assembler.put_void()), "DxcCreateInstance");
    d3d12_check(assembler->AssembleToContainer(code, result.put()), "IDxcAssembler::AssembleToContainer");
    return result_of(result.get(), "IDxcAssembler::AssembleToContainer");
}

Com<DxcBlob> assemble_text(const std::string& text)
{
    Com<DxcLibrary> library;
    Com<DxcBlob> blob;
    constexpr UINT utf8 = 65001;
    d3d12_check(create_instance()(clsid_library, iid_library, library.put_void()), "DxcCreateInstance");
    d3d12_check(library->CreateBlobWithEncodingOnHeapCopy(text.data(), UINT32(text.size()), utf8, blob.put()),
                "IDxcLibrary::CreateBlobWithEncodingOnHeapCopy");
    return assemble(blob.get());
}

/// The same code as vkd3d 2.1 understands it: its moves into phis come before a block's branch, and one after the
/// other.
Com<DxcBlob> for_vkd3d(DxcCompiler3* compiler, Com<DxcBlob> code)
{
    if (disassemble(compiler, code.get()).find(" = phi ") == std::string::npos)
        return code;
    Com<DxcOptimizer> optimizer;
    Com<DxcBlob> split, text;
    d3d12_check(create_instance()(clsid_optimizer, iid_optimizer, optimizer.put_void()), "DxcCreateInstance");
    const wchar_t* passes[] = {L"-break-crit-edges"};
    d3d12_check(optimizer->RunOptimizer(code.get(), passes, 1, split.put(), text.put()), "IDxcOptimizer::RunOptimizer");
    return assemble_text(with_copies_of_phis(disassemble(compiler, assemble(split.get()).get())));
}

#else

std::string sign(std::string_view code, const std::string&) { return std::string(code); } // dxil.dll has done so

Com<DxcBlob> for_vkd3d(DxcCompiler3*, Com<DxcBlob> code) { return code; }

#endif

} // namespace

std::string compile_hlsl(std::string_view source, const std::vector<std::string>& arguments, const std::string& label)
{
    Com<DxcCompiler3> compiler;
    d3d12_check(create_instance()(clsid_compiler, iid_compiler3, compiler.put_void()), "DxcCreateInstance");
    std::vector<std::wstring> texts;
    for (const std::string& argument : arguments)
        texts.push_back(wide(argument));
    std::vector<const wchar_t*> pointers;
    for (const std::wstring& text : texts)
        pointers.push_back(text.c_str());
    constexpr UINT utf8 = 65001;
    const DxcBuffer buffer{source.data(), source.size(), utf8};
    Com<DxcOperationResult> result;
    d3d12_check(compiler->Compile(&buffer, pointers.data(), UINT32(pointers.size()), nullptr, iid_operation_result,
                                  result.put_void()),
                "IDxcCompiler3::Compile");
    HRESULT status = E_FAIL;
    d3d12_check(result->GetStatus(&status), "IDxcOperationResult::GetStatus");
    Com<DxcBlob> blob;
    if (FAILED(status)) {
        if (FAILED(result->GetErrorBuffer(blob.put())))
            blob.reset();
        std::string errors = text_of(blob.get());
        while (!errors.empty() && (errors.back() == '\0' || errors.back() == '\n'))
            errors.pop_back();
        fail(ErrorKind::slang_compile, "kernel '", label, "': DXC refuses the HLSL that Slang made (",
             hresult_text(status), "):\n", errors);
    }
    d3d12_check(result->GetResult(blob.put()), "IDxcOperationResult::GetResult");
    return sign(text_of(for_vkd3d(compiler.get(), std::move(blob)).get()), label);
}

#ifndef _WIN32

std::string changed_dxil(std::string_view code, const std::string& label,
                         const std::function<std::string(std::string_view)>& change)
{
    Com<DxcCompiler3> compiler;
    d3d12_check(create_instance()(clsid_compiler, iid_compiler3, compiler.put_void()), "DxcCreateInstance");
    return sign(text_of(assemble_text(change(disassemble(compiler.get(), code))).get()), label);
}

#endif

const std::string& dxc_version()
{
    static const std::string version = [] {
        Com<DxcVersionInfo> info;
        d3d12_check(create_instance()(clsid_compiler, iid_version_info, info.put_void()), "DxcCreateInstance");
        UINT32 major = 0, minor = 0, commits = 0;
        info->GetVersion(&major, &minor);
        Com<DxcVersionInfo2> more;
        char* hash = nullptr;
        if (SUCCEEDED(info->QueryInterface(iid_version_info2, more.put_void())))
            more->GetCommitInfo(&commits, &hash); // the text is the library's to free; it is short, and asked for once
        return cat("dxc ", major, ".", minor, ".", commits, hash ? " " : "", hash ? hash : "");
    }();
    return version;
}

} // namespace spy
