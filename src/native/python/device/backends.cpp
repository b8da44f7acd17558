// What single backends offer besides the device contract: finding NVRTC, compiling CUDA without a GPU, messages of the
// Vulkan validation layers.
#include "python/bindings.h"

#include "device/device.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace spy {

#if SPY_HAS_CUDA
void set_nvrtc_search_paths(std::vector<std::string> paths);
std::string cuda_compile(const CompileDesc& desc);
void prepare_nvrtc();
#endif
#if SPY_HAS_VULKAN
std::vector<std::string> take_vulkan_debug_messages();
bool vulkan_layer_missing();
#endif
#if SPY_HAS_D3D12
bool d3d12_layer_missing();
#endif

namespace {

/// What there is to install; empty where no layer is missing.
std::string missing_layer(DeviceType type)
{
#if SPY_HAS_VULKAN
    if (type == DeviceType::vulkan && vulkan_layer_missing())
        return "the Vulkan validation layer VK_LAYER_KHRONOS_validation is not installed (package "
               "vulkan-validationlayers)";
#endif
#if SPY_HAS_D3D12
    if (type == DeviceType::d3d12 && d3d12_layer_missing())
        return "there is no Direct3D 12 debug layer (on Windows it is the optional feature \"Graphics Tools\"; "
               "libvkd3d has none)";
#endif
    return {};
}

} // namespace

void bind_backends(nb::module_& m)
{
#if SPY_HAS_CUDA
    m.def("_set_nvrtc_search_paths", &set_nvrtc_search_paths, nb::arg("paths"),
          "Folders that may hold NVRTC (or lib, lib64, bin below them), before the system's.");
    m.def(
        "_prepare_nvrtc",
        [] {
            GilRelease release;
            prepare_nvrtc();
        },
        "Opens NVRTC and has it compile a kernel, where there is a CUDA driver: its first compile takes longer.");
    m.def(
        "cuda_compile",
        [](nb::bytes source, const std::string& entry_point_name, const std::string& arch, const std::string& label) {
            CompileDesc desc;
            desc.source = std::string_view(source.c_str(), source.size());
            desc.entry_point_name = entry_point_name;
            desc.cuda_arch = arch;
            desc.label = label;
            std::string code;
            {
                GilRelease release;
                code = cuda_compile(desc);
            }
            return nb::bytes(code.data(), code.size());
        },
        nb::arg("source"), nb::arg("entry_point_name"), nb::arg("arch"), nb::arg("label") = "",
        "Compiles CUDA source with NVRTC for an architecture (\"sm_80\"); needs no GPU.");
#endif
    m.def(
        "_take_vulkan_debug_messages",
        [] {
#if SPY_HAS_VULKAN
            return take_vulkan_debug_messages();
#else
            return std::vector<std::string>();
#endif
        },
        "Messages of the Vulkan validation layers since the last call.");
    m.def("_missing_layer", &missing_layer, nb::arg("type"),
          "Why debug layers that were asked for do nothing; empty where they work.");
}

} // namespace spy
