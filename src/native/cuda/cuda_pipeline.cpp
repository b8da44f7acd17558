// CUDA source to machine code with NVRTC, and machine code to kernels.
#include "cuda/cuda_backend.h"
#include "cuda/cuda_supplement.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <utility>

namespace spy {

namespace {

/// With the name of a parameter behind it: a symbol of kernels that store to that surface with conversion.
constexpr const char* converts_symbol = "_spy_converts_";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Slang's text is its library, which ends with an #endif, followed by the program.
size_t program_begin(std::string_view source)
{
    size_t last = source.rfind("\n#endif");
    if (last == std::string_view::npos)
        return 0;
    size_t line_end = source.find('\n', last + 1);
    return line_end == std::string_view::npos ? source.size() : line_end + 1;
}

/// The library's matrix multiply-accumulate part is a quarter of what NVRTC must parse and is rarely used.
std::string without_unused_parts(std::string_view library, std::string_view program)
{
    constexpr std::string_view name = "namespace Slang_CUDA_WMMA";
    size_t begin = library.find(cat("\n", name, "\n"));
    size_t end = library.rfind(cat("} // ", name));
    if (contains(program, "Slang_CUDA_WMMA") || begin == std::string_view::npos || end == std::string_view::npos || end < begin)
        return std::string(library);
    size_t after = library.find('\n', end);
    return std::string(library.substr(0, begin + 1)) + std::string(after == std::string_view::npos ? "" : library.substr(after));
}

void replace_all(std::string& text, std::string_view from, std::string_view to)
{
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

/// GetDimensions() of arrays gives 0 layers in Slang's text, though PTX can tell their number (as a depth: kernels with
/// txq.array_size compile but cannot be loaded):
/// asm("..." : ... : "l"((t_0))); ... /* txq.array_size not available in CUDA */ *(LAYERS) = 0;
void complete_array_sizes(std::string& program)
{
    constexpr std::string_view marker = "/* txq.array_size not available in CUDA */";
    for (size_t at = program.find(marker); at != std::string::npos; at = program.find(marker, at + 1)) {
        size_t operand = program.rfind("\"l\"(", at), operand_end = program.find("));", operand);
        size_t target = at + marker.size(), target_end = program.find(" = 0;", target);
        if (operand == std::string::npos || operand_end > at || target_end == std::string::npos || target_end - target > 200)
            continue;
        std::string texture = program.substr(operand + 3, operand_end + 1 - (operand + 3));
        std::string layers = program.substr(target, target_end - target);
        program.replace(at, target_end + 5 - at,
                        cat("{uint32_t _spy_n; asm(\"txq.depth.b32 %0, [%1];\" : \"=r\"(_spy_n) : \"l\"", texture, "); ", layers, " = _spy_n;}"));
    }
}

/// Mends what Slang's CUDA library lacks; see cuda_supplement.h. Returns the code to put before the program.
std::string complete(std::string& program, const std::string& label)
{
    for (const char* missing : {"surf1Dread_convert", "surf2Dread_convert", "surf3Dread_convert", "Layeredread_convert", "Layeredwrite_convert"})
        if (contains(program, missing))
            fail(ErrorKind::not_implemented, "'", label, "' ", contains(missing, "read") ? "reads a RWTexture with a [format(...)] attribute" : "writes a layered RWTexture with a [format(...)] attribute",
                 ", which CUDA cannot do; ", contains(missing, "read") ? "read it as a Texture" : "leave the attribute out", ", or use a texture whose format is the texel type of the parameter");
    std::string supplement;
    if (contains(program, "SamplerComparisonState"))
        supplement += cuda_comparison_sampler_supplement;
    if (contains(program, "fetch_int<")) {
        supplement += cuda_fetch_supplement;
        for (const char* name : {"tex1D", "tex2D", "tex3D", "tex1DArray", "tex2DArray"})
            replace_all(program, cat(name, "fetch_int<"), cat("_spy_", name, "fetch<"));
    }
    if (contains(program, "Lod<__half"))
        supplement += cuda_half_sampling_supplement;
    complete_array_sizes(program);
    return supplement;
}

/// Name of a variable in Slang's text without its number: "(globalParams_0->image_0[int(2)])" is "image".
std::string plain_name(std::string_view text)
{
    while (!text.empty() && (text.back() == ' ' || text.back() == ')' || text.back() == ']'))
        text = text.back() == ']' ? text.substr(0, text.rfind('[')) : text.substr(0, text.size() - 1);
    size_t begin = text.size();
    while (begin > 0 && (std::isalnum(uint8_t(text[begin - 1])) || text[begin - 1] == '_'))
        --begin;
    text = text.substr(begin);
    size_t digits = text.find_last_not_of("0123456789");
    if (digits != std::string_view::npos && digits > 0 && digits + 1 < text.size() && text[digits] == '_')
        text = text.substr(0, digits);
    return std::string(text);
}

/// Names of the surfaces that the program stores to with functions "surf...<call><T>((value), (surface), ...)".
std::set<std::string> stored_surfaces(std::string_view program, std::string_view call)
{
    std::set<std::string> names;
    for (size_t at = program.find(call); at != std::string_view::npos; at = program.find(call, at + 1)) {
        size_t begin = program.find('(', at), comma = 0;
        int depth = 0;
        for (size_t i = begin; i < program.size(); ++i) {
            depth += program[i] == '(' ? 1 : program[i] == ')' ? -1 : 0;
            if (depth == 0)
                break;
            if (depth == 1 && program[i] == ',' && comma) {
                names.insert(plain_name(program.substr(comma + 1, i - comma - 1)));
                break;
            }
            if (depth == 1 && program[i] == ',')
                comma = i;
        }
    }
    return names;
}

/// Tells create_kernel which surfaces may hold another format than their texel type.
std::string conversion_marks(std::string_view program)
{
    std::string marks;
    const std::set<std::string> raw = stored_surfaces(program, "write<");
    for (const std::string& name : stored_surfaces(program, "write_convert<"))
        if (!raw.count(name)) // a function that Slang did not inline stores bits, whatever its surface is
            marks += cat("\nextern \"C\" __constant__ int ", converts_symbol, name, " = 1;\n");
    return marks;
}

struct Preparation {
    std::string source;
    std::vector<std::string> options;
};

void add_type_headers(std::string_view program, const CompileDesc& desc, const Nvrtc& nvrtc, std::vector<std::string>& options)
{
    struct Header { const char* type; const char* define; const char* file; };
    constexpr Header headers[] = {{"__half", "SLANG_CUDA_ENABLE_HALF", "cuda_fp16.h"},
                                  {"__nv_bfloat16", "SLANG_CUDA_ENABLE_BF16", "cuda_bf16.h"},
                                  {"__nv_fp8", "SLANG_CUDA_ENABLE_FP8", "cuda_fp8.h"}};
    bool needed = false;
    for (const Header& header : headers) {
        // The 16- and 8-bit float headers build on cuda_fp16.h.
        bool used = contains(program, header.type) || (header.define == headers[0].define && (contains(program, "__nv_bfloat16") || contains(program, "__nv_fp8")));
        bool asked = std::any_of(desc.downstream_args.begin(), desc.downstream_args.end(), [&](const std::string& arg) { return contains(arg, header.define); });
        if (!used && !asked)
            continue;
        needed = true;
        if (!asked)
            options.push_back(cat("-D", header.define, "=1"));
    }
    std::string folder = nvrtc.find_include("cuda_fp16.h");
    if (!folder.empty())
        options.push_back("-I" + folder);
    else if (needed)
        fail_runtime("'", desc.label, "' uses half, bfloat16 or float8, which need NVIDIA's header cuda_fp16.h, and no folder with it was found. "
                     "Install it with 'pip install nvidia-cuda-runtime' (CUDA 12: nvidia-cuda-runtime-cu12), or set CUDA_HOME to a CUDA toolkit");
}

std::vector<std::string> base_options(const CompileDesc& desc)
{
    std::vector<std::string> options = {"-std=c++17", "-default-device", "-diag-suppress=1444"};
    if (desc.float_mode == CompileDesc::FloatMode::fast)
        options.push_back("--use_fast_math");
    if (desc.float_mode >= CompileDesc::FloatMode::uncontracted)
        options.push_back("-fmad=false");
    if (desc.optimization == 0)
        options.push_back("--ptxas-options=-O0");
    if (desc.debug_info)
        options.push_back("-lineinfo");
    return options;
}

Preparation prepare(const CompileDesc& desc, const Nvrtc& nvrtc)
{
    Preparation out;
    size_t begin = program_begin(desc.source);
    std::string_view library = desc.source.substr(0, begin);
    std::string program(desc.source.substr(begin));
    out.options = base_options(desc);
    add_type_headers(program, desc, nvrtc, out.options);
    out.options.insert(out.options.end(), desc.downstream_args.begin(), desc.downstream_args.end());
    std::string supplement = complete(program, desc.label);
    out.source = without_unused_parts(library, program);
    out.source += supplement;
    out.source += program;
    out.source += conversion_marks(program);
    return out;
}

/// NVRTC's log without warnings: a message runs until the next line that begins one.
std::string errors_of(const std::string& log)
{
    std::string out;
    bool keep = true;
    for (size_t at = 0; at < log.size();) {
        size_t end = std::min(log.find('\n', at), log.size() - 1) + 1;
        std::string_view line(log.data() + at, end - at);
        if (contains(line, "): warning") || contains(line, "): remark") || line.starts_with("Remark:"))
            keep = false;
        else if (contains(line, "error") || contains(line, "ptxas") || contains(line, "catastrophic"))
            keep = true;
        if (keep)
            out += line;
        at = end;
    }
    return out.empty() ? log : out;
}

std::string save_source(const std::string& source)
{
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    std::filesystem::path path = folder / cat("slangpy-", std::random_device{}(), ".cu");
    std::ofstream file(path, std::ios::binary);
    file << source;
    file.close();
    return file ? path.string() : cat("(could not be saved to ", path.string(), ")");
}

struct Program {
    const Nvrtc& nvrtc;
    nvrtcProgram handle = nullptr;
    ~Program() { nvrtc.nvrtcDestroyProgram(&handle); }
};

/// "sm_90", or "compute_86" (PTX, which the driver compiles further) when this NVRTC is older than the device.
std::string architecture_option(const Nvrtc& nvrtc, const std::string& arch)
{
    int wanted = std::atoi(arch.c_str() + arch.find_first_of("0123456789"));
    if (nvrtc.architectures.empty() || std::find(nvrtc.architectures.begin(), nvrtc.architectures.end(), wanted) != nvrtc.architectures.end())
        return arch;
    int best = 0;
    for (int known : nvrtc.architectures)
        if (known < wanted)
            best = std::max(best, known);
    if (!best)
        fail_runtime("NVRTC ", nvrtc.major, ".", nvrtc.minor, " (", nvrtc.path, ") cannot compile for ", arch, "; the oldest architecture it knows is sm_",
                     nvrtc.architectures.front(), ". Install an older nvidia-cuda-nvrtc");
    return cat("compute_", best);
}

std::string read_result(const Nvrtc& nvrtc, nvrtcProgram program, bool ptx)
{
    size_t size = 0;
    std::string code;
    int result = ptx ? nvrtc.nvrtcGetPTXSize(program, &size) : nvrtc.nvrtcGetCUBINSize(program, &size);
    if (!result) {
        code.resize(size);
        result = ptx ? nvrtc.nvrtcGetPTX(program, code.data()) : nvrtc.nvrtcGetCUBIN(program, code.data());
    }
    if (result || code.empty())
        fail_runtime("NVRTC gave no code: ", nvrtc.nvrtcGetErrorString(result));
    return code;
}

} // namespace

std::string cuda_compile(const CompileDesc& desc)
{
    if (desc.cuda_arch.find_first_of("0123456789") == std::string::npos)
        fail_value("cuda_compile: 'arch' must be like \"sm_80\", got \"", desc.cuda_arch, "\"");
    const Nvrtc& nvrtc = Nvrtc::get();
    Preparation prepared = prepare(desc, nvrtc);
    std::string arch = architecture_option(nvrtc, desc.cuda_arch);
    prepared.options.insert(prepared.options.begin(), cat("--gpu-architecture=", arch));

    Program program{nvrtc};
    std::string name = desc.label.empty() ? "kernel.cu" : desc.label + ".cu";
    if (int result = nvrtc.nvrtcCreateProgram(&program.handle, prepared.source.c_str(), name.c_str(), 0, nullptr, nullptr))
        fail_runtime("NVRTC could not take the source of '", desc.label, "': ", nvrtc.nvrtcGetErrorString(result));
    std::vector<const char*> options;
    for (const std::string& option : prepared.options)
        options.push_back(option.c_str());
    int result = nvrtc.nvrtcCompileProgram(program.handle, int(options.size()), options.data());
    if (result) {
        size_t size = 0;
        nvrtc.nvrtcGetProgramLogSize(program.handle, &size);
        std::string log(size, '\0');
        nvrtc.nvrtcGetProgramLog(program.handle, log.data());
        while (!log.empty() && (log.back() == '\0' || log.back() == '\n'))
            log.pop_back();
        std::string flags;
        for (const std::string& option : prepared.options)
            flags += " " + option;
        fail_runtime("NVRTC ", nvrtc.major, ".", nvrtc.minor, " failed to compile '", desc.label, "' (", nvrtc.nvrtcGetErrorString(result), ")\n",
                     errors_of(log), "\noptions:", flags, "\nsource: ", save_source(prepared.source));
    }
    return read_result(nvrtc, program.handle, arch.starts_with("compute"));
}

std::string cuda_fingerprint(const std::string& arch)
{
    const Nvrtc& nvrtc = Nvrtc::get();
    uint64_t hash = 14695981039346656037ull; // FNV-1a of the code that this backend adds
    for (std::string_view part : {cuda_fetch_supplement, cuda_half_sampling_supplement, cuda_comparison_sampler_supplement})
        for (char c : part)
            hash = (hash ^ uint8_t(c)) * 1099511628211ull;
    std::string text = cat("nvrtc ", nvrtc.major, ".", nvrtc.minor, " ", architecture_option(nvrtc, arch), " supplement ", hash);
    for (const std::string& option : base_options({}))
        text += " " + option;
    return text;
}

std::string CudaDevice::compile(const CompileDesc& desc)
{
    CompileDesc mine = desc;
    if (mine.cuda_arch.empty())
        mine.cuda_arch = m_arch;
    // NVRTC cannot be stopped.
    return run_interruptible([mine, source = std::string(desc.source)]() mutable {
        mine.source = source;
        return cuda_compile(mine);
    });
}

std::string CudaDevice::compiler_fingerprint() { return cuda_fingerprint(m_arch); }

ref<Kernel> CudaDevice::create_kernel(const KernelDesc& desc) { return ref<Kernel>(new CudaKernel(ref<CudaDevice>(this), desc)); }

// ----------------------------------------------------------------------------------------------------------- kernels

CudaKernel::CudaKernel(ref<CudaDevice> device, const KernelDesc& desc) : Kernel(device, desc.layout, desc.label)
{
    CudaDevice::Lock lock(*device);
    device->ensure_usable();
    CudaDevice::Relaxed relaxed(device->api());
    const CudaApi& api = device->api();
    char log[4096] = {};
    CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
    std::string code(desc.code); // PTX must end with a zero byte
    device->check(api.cuModuleLoadDataEx(&m_module, code.c_str(), 2, keys, values), "load the code of '", m_label, "' for ", device->arch(), " (driver ",
                  api.driver_version / 1000, ".", api.driver_version % 1000 / 10, ")", log[0] ? " " : "", log);
    try {
        CUresult result = api.cuModuleGetFunction(&m_function, m_module, m_layout->entry_point_name.c_str());
        device->check(result, "find the entry point '", m_layout->entry_point_name, "' of '", m_label, "'");
        find_globals();
        check_parameters();
        plan_scopes();
        plan_slots();
        m_label_index = device->intern_label(m_label);
    } catch (...) {
        api.cuModuleUnload(m_module);
        throw;
    }
}

void CudaKernel::release() noexcept
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    if (!m_module || !device.alive())
        return;
    CudaDevice::Lock lock(device);
    CudaDevice::Relaxed relaxed(device.api());
    device.defer([api = &device.api(), module = std::exchange(m_module, nullptr)] { api->cuModuleUnload(module); });
    m_function = nullptr;
}

void CudaKernel::find_globals()
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    CUresult result = device.api().cuModuleGetGlobal(&m_globals, &m_global_bytes, m_module, "SLANG_globalParams");
    if (result != CUDA_SUCCESS) { // the kernel uses no global parameter
        m_globals = 0;
        m_global_bytes = 0;
    }
}

/// The bytes that the compiler reserved must be those of the layout: else the kernel would read wrong arguments.
void CudaKernel::check_parameters()
{
    CudaDevice& device = *static_cast<CudaDevice*>(m_device.get());
    std::vector<const FieldLayout*> fields;
    if (m_layout->entry_point)
        for (const FieldLayout& field : m_layout->entry_point->fields)
            if (field.type && (field.type->size || field.type->slot_count || field.type->scope_count))
                fields.push_back(&field); // system values and empty structs are no parameters of the code
    // The driver wants the end of the last parameter, without the padding of a struct.
    for (const FieldLayout* field : fields)
        m_parameter_bytes = std::max<size_t>(m_parameter_bytes, field->offset + field->type->size);
    for (const SlotLayout& slot : m_layout->slots)
        if (slot.scope == 1)
            m_parameter_bytes = std::max<size_t>(m_parameter_bytes, slot.offset + slot.size);
    for (const ScopeLayout& scope : m_layout->scopes)
        if (scope.parent == 1)
            m_parameter_bytes = std::max<size_t>(m_parameter_bytes, scope.parent_offset + sizeof(CUdeviceptr));
    if (!device.api().cuFuncGetParamInfo)
        return;
    size_t end = 0, count = 0;
    std::vector<size_t> offsets;
    for (size_t offset = 0, size = 0; device.api().cuFuncGetParamInfo(m_function, count, &offset, &size) == CUDA_SUCCESS; ++count) {
        end = std::max(end, offset + size);
        offsets.push_back(offset);
    }
    if (count == fields.size())
        for (size_t i = 0; i < count; ++i)
            if (offsets[i] != fields[i]->offset)
                fail_runtime("internal error: parameter '", fields[i]->name, "' of '", m_label, "' lies at byte ", offsets[i], " in the CUDA code but at ",
                             fields[i]->offset, " in its reflection");
    if (count && end > m_parameter_bytes)
        fail_runtime("internal error: '", m_label, "' takes ", end, " bytes of parameters in the CUDA code but ", m_parameter_bytes, " in its reflection");
    m_parameter_bytes = end; // an unused parameter block still counts, a parameterless kernel takes nothing
}

/// Scratch holds the bytes of every scope while a launch is put together; nested blocks stand together at its end.
void CudaKernel::plan_scopes()
{
    constexpr size_t alignment = 256;
    auto padded = [](size_t size) { return (size + alignment - 1) / alignment * alignment; };
    const auto& scopes = m_layout->scopes;
    m_scratch_offset.resize(std::max<size_t>(scopes.size(), 2));
    size_t at = 0;
    auto place = [&](size_t scope, size_t size) {
        m_scratch_offset[scope] = at;
        at += padded(size);
    };
    uint64_t global_size = scopes.empty() ? 0 : scopes[0].size;
    place(1, std::max<size_t>(m_parameter_bytes, scopes.size() > 1 ? scopes[1].size : 0));
    place(0, std::max<size_t>(global_size, m_global_bytes));
    m_block_begin = at;
    for (size_t scope = 2; scope < scopes.size(); ++scope)
        place(scope, scopes[scope].size);
    m_block_bytes = at - m_block_begin;
    m_scratch.resize(at + 16);
    m_globals_now.resize(m_global_bytes);
    m_plain = m_layout->slots.empty() && !m_globals && !m_block_bytes;
}

bool CudaKernel::converts(const std::string& path) const
{
    CUdeviceptr mark = 0;
    size_t size = 0;
    const std::string symbol = converts_symbol + plain_name(path);
    return static_cast<CudaDevice*>(m_device.get())->api().cuModuleGetGlobal(&mark, &size, m_module, symbol.c_str()) == CUDA_SUCCESS;
}

void CudaKernel::plan_slots()
{
    const auto& slots = m_layout->slots;
    for (const SlotLayout& slot : slots)
        m_slots.push_back({slot.kind, slot.writable, false, slot.scope, -1, slot.offset, slot.size, slot.element_stride});
    // CUDA bakes the sampler into the texture object, and the code does not tell which goes with which: take the next
    // sampler declared after the texture in its scope, else the last before it, else any of the kernel.
    for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].kind != SlotKind::texture)
            continue;
        int32_t best = -1, score = 0;
        for (size_t j = 0; j < slots.size(); ++j) {
            if (slots[j].kind != SlotKind::sampler)
                continue;
            int32_t value = slots[j].scope != slots[i].scope ? 1 : j < i ? 2 : 3;
            if (value > score || (value == score && value == 2)) {
                best = int32_t(j);
                score = value;
            }
        }
        m_slots[i].sampler = best;
        m_slots[i].converts = slots[i].writable && converts(slots[i].path);
    }
}

} // namespace spy
