// CUDA source to machine code with NVRTC.
#include "cuda/compile.h"
#include "cuda/api.h"
#include "cuda/constants.h"
#include "cuda/stack_slots.h"
#include "cuda/supplement.h"
#include "cuda/used_parts.h"

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

/// What stands before it is library: Slang's and ours.
constexpr std::string_view library_mark = "\n// The program.\n";

/// Followed by the name of a parameter: a symbol of kernels that store to that surface with conversion.
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
        if (operand == std::string::npos || operand_end > at || target_end == std::string::npos ||
            target_end - target > 200)
            continue;
        std::string texture = program.substr(operand + 3, operand_end + 1 - (operand + 3));
        std::string layers = program.substr(target, target_end - target);
        program.replace(at, target_end + 5 - at,
                        cat("{uint32_t _spy_n; asm(\"txq.depth.b32 %0, [%1];\" : \"=r\"(_spy_n) : \"l\"", texture,
                            "); ", layers, " = _spy_n;}"));
    }
}

/// Mends what Slang's CUDA library lacks; see supplement.h. Returns the code to put before the program.
std::string complete(std::string& program, const std::string& label)
{
    for (const char* missing : {"surf1Dread_convert", "surf2Dread_convert", "surf3Dread_convert", "Layeredread_convert",
                                "Layeredwrite_convert"})
        if (contains(program, missing))
            fail(ErrorKind::not_implemented, "'", label, "' ",
                 contains(missing, "read") ? "reads a RWTexture with a [format(...)] attribute"
                                           : "writes a layered RWTexture with a [format(...)] attribute",
                 ", which CUDA cannot do; ",
                 contains(missing, "read") ? "read it as a Texture" : "leave the attribute out",
                 ", or use a texture whose format is the texel type of the parameter");
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
    size_t program = 0; ///< where Slang's library ends in it
    std::vector<std::string> options;
};

void add_type_headers(std::string_view program, const CompileDesc& desc, const Nvrtc& nvrtc,
                      std::vector<std::string>& options)
{
    struct Header {
        const char* type;
        const char* define;
        const char* file;
    };
    constexpr Header headers[] = {{"__half", "SLANG_CUDA_ENABLE_HALF", "cuda_fp16.h"},
                                  {"__nv_bfloat16", "SLANG_CUDA_ENABLE_BF16", "cuda_bf16.h"},
                                  {"__nv_fp8", "SLANG_CUDA_ENABLE_FP8", "cuda_fp8.h"}};
    bool needed = false;
    for (const Header& header : headers) {
        // The 16- and 8-bit float headers build on cuda_fp16.h.
        bool used = contains(program, header.type) ||
            (header.define == headers[0].define &&
             (contains(program, "__nv_bfloat16") || contains(program, "__nv_fp8")));
        bool asked = std::any_of(desc.downstream_args.begin(), desc.downstream_args.end(),
                                 [&](const std::string& arg) { return contains(arg, header.define); });
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
        fail_runtime(
            "'", desc.label,
            "' uses half, bfloat16 or float8, which need NVIDIA's header cuda_fp16.h, and no folder with it was found. "
            "Install it with 'pip install nvidia-cuda-runtime' (CUDA 12: nvidia-cuda-runtime-cu12), or set CUDA_HOME "
            "to a CUDA toolkit");
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
    out.source = library;
    out.source += supplement;
    out.program = out.source.size();
    const bool is_slang = contains(library, "SLANG_PRELUDE"); // no text of somebody's own
    out.source += is_slang ? cat(cuda_constants_supplement, library_mark, cuda_mend_constants(program)) : program;
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
    int result = 0;
    ~Program() { nvrtc.nvrtcDestroyProgram(&handle); }
};

/// "sm_90", or "compute_86" (PTX, which the driver compiles further) when this NVRTC is older than the device.
std::string architecture_option(const Nvrtc& nvrtc, const std::string& arch)
{
    int wanted = std::atoi(arch.c_str() + arch.find_first_of("0123456789"));
    if (nvrtc.architectures.empty() ||
        std::find(nvrtc.architectures.begin(), nvrtc.architectures.end(), wanted) != nvrtc.architectures.end())
        return arch;
    int best = 0;
    for (int known : nvrtc.architectures)
        if (known < wanted)
            best = std::max(best, known);
    if (!best)
        fail_runtime("NVRTC ", nvrtc.major, ".", nvrtc.minor, " (", nvrtc.path, ") cannot compile for ", arch,
                     "; the oldest architecture it knows is sm_", nvrtc.architectures.front(),
                     ". Install an older nvidia-cuda-nvrtc");
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

/// Whether NVRTC takes the source; the result is read from the program.
bool is_translated(const Nvrtc& nvrtc, Program& program, const std::string& source,
                   const std::vector<std::string>& options, const std::string& label)
{
    const std::string name = label.empty() ? "kernel.cu" : label + ".cu";
    if (int result = nvrtc.nvrtcCreateProgram(&program.handle, source.c_str(), name.c_str(), 0, nullptr, nullptr))
        fail_runtime("NVRTC could not take the source of '", label, "': ", nvrtc.nvrtcGetErrorString(result));
    std::vector<const char*> texts;
    for (const std::string& option : options)
        texts.push_back(option.c_str());
    program.result = nvrtc.nvrtcCompileProgram(program.handle, int(texts.size()), texts.data());
    return program.result == 0;
}

/// The source with what it uses of the libraries in front of it.
std::string shortened(std::string_view source)
{
    const size_t end = source.find(library_mark);
    if (end == std::string_view::npos)
        return {};
    const std::string_view program = source.substr(end);
    return cuda_used_parts(source.substr(0, end), program) + std::string(program);
}

/// Compiles; what NVRTC refuses with a part of the library, with the whole.
void translate(const Nvrtc& nvrtc, Program& program, const Preparation& prepared, const std::string& label)
{
    if (const std::string part = shortened(prepared.source); !part.empty()) {
        if (is_translated(nvrtc, program, part, prepared.options, label))
            return;
        nvrtc.nvrtcDestroyProgram(&program.handle);
        program.handle = nullptr;
    }
    if (is_translated(nvrtc, program, prepared.source, prepared.options, label))
        return;
    size_t size = 0;
    nvrtc.nvrtcGetProgramLogSize(program.handle, &size);
    std::string log(size, '\0');
    nvrtc.nvrtcGetProgramLog(program.handle, log.data());
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n'))
        log.pop_back();
    std::string flags;
    for (const std::string& option : prepared.options)
        flags += " " + option;
    fail_runtime("NVRTC ", nvrtc.major, ".", nvrtc.minor, " failed to compile '", label, "' (",
                 nvrtc.nvrtcGetErrorString(program.result), ")\n", errors_of(log), "\noptions:", flags,
                 "\nsource: ", save_source(prepared.source));
}

} // namespace

std::string cuda_conversion_mark(std::string_view path) { return converts_symbol + plain_name(path); }

std::string cuda_compile(const CompileDesc& desc)
{
    if (desc.cuda_arch.find_first_of("0123456789") == std::string::npos)
        fail_value("cuda_compile: 'arch' must be like \"sm_80\", got \"", desc.cuda_arch, "\"");
    const Nvrtc& nvrtc = Nvrtc::get();
    Preparation prepared = prepare(desc, nvrtc);
    std::string arch = architecture_option(nvrtc, desc.cuda_arch);
    prepared.options.insert(prepared.options.begin(), cat("--gpu-architecture=", arch));

    Program program{nvrtc};
    translate(nvrtc, program, prepared, desc.label);
    if (cuda_shares_places(nvrtc.major, nvrtc.minor) &&
        cuda_has_local_arrays(read_result(nvrtc, program.handle, true))) {
        prepared.source = cuda_arrays_apart(prepared.source, prepared.program);
        if (!prepared.source.empty()) {
            Program again{nvrtc};
            translate(nvrtc, again, prepared, desc.label);
            std::swap(program.handle, again.handle);
        }
    }
    return read_result(nvrtc, program.handle, arch.starts_with("compute"));
}

void prepare_nvrtc()
{
    if (!CudaApi::find())
        return;
    const Nvrtc& nvrtc = Nvrtc::get();
    Program program{nvrtc};
    is_translated(nvrtc, program, "extern \"C\" __global__ void run() {}", {}, "prepare_nvrtc");
}

std::string cuda_fingerprint(const std::string& arch)
{
    const Nvrtc& nvrtc = Nvrtc::get();
    uint64_t hash = 14695981039346656037ull; // FNV-1a of the code that this backend adds
    for (std::string_view part : std::initializer_list<std::string_view>{
             cuda_fetch_supplement, cuda_half_sampling_supplement, cuda_comparison_sampler_supplement,
             cuda_constants_supplement, cuda_apart_supplement, cuda_apart_members})
        for (char c : part)
            hash = (hash ^ uint8_t(c)) * 1099511628211ull;
    std::string text = cat("nvrtc ", nvrtc.major, ".", nvrtc.minor, " ", architecture_option(nvrtc, arch),
                           " supplement ", hash, " used parts 1");
    for (const std::string& option : base_options({}))
        text += " " + option;
    if (cuda_shares_places(nvrtc.major, nvrtc.minor))
        text += " arrays apart";
    return text;
}

} // namespace spy
