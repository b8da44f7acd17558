// Descriptor classes.
#include "python/device/bindings.h"

#include <nanobind/stl/array.h>

namespace spy {

namespace {

template <typename T>
Field<T> luid_field(const char* name, const char* doc)
{
    return {name, "Sequence[int] | None", doc,
            [](const T& desc) -> nb::object {
                if (!desc.has_adapter_luid)
                    return nb::none();
                return nb::cast(std::vector<uint32_t>(desc.adapter_luid.begin(), desc.adapter_luid.end()));
            },
            [](T& desc, nb::handle value, const char* what) {
                desc.has_adapter_luid = !value.is_none();
                if (!desc.has_adapter_luid)
                    return;
                const auto bytes = uints_from<16>(value, what);
                for (size_t i = 0; i < 16; ++i) {
                    if (bytes[i] > 255)
                        fail_value(what, ": expected 16 bytes, got ", short_text(value));
                    desc.adapter_luid[i] = uint8_t(bytes[i]);
                }
            }};
}

template <typename T, auto Member>
Field<T> strings_field(const char* name, const char* doc)
{
    return {name, "Sequence[str] | None", doc,
            [](const T& desc) -> nb::object { return (desc.*Member).empty() ? nb::none() : nb::cast(desc.*Member); },
            [](T& desc, nb::handle value, const char* what) {
                (desc.*Member).clear();
                if (!value.is_none())
                    desc.*Member = from_field<std::vector<std::string>>(value, what);
            }};
}

Field<PyDeviceDesc> bindless_field()
{
    return {"bindless_options", "BindlessDesc | dict | None", "How many descriptor handles there are.",
            [](const PyDeviceDesc& desc) -> nb::object { return nb::cast(desc.bindless); },
            [](PyDeviceDesc& desc, nb::handle value, const char* what) {
                desc.bindless = value.is_none() ? BindlessDesc() : Fields<BindlessDesc>::from(value, what);
            }};
}

Field<PyDeviceDesc> handles_field()
{
    return {"existing_device_handles", "Sequence[NativeHandle] | None",
            "Objects of the API to open the device on, without owning them: CUDA context or device; Vulkan instance, "
            "physical device and device; D3D12 device.",
            [](const PyDeviceDesc& desc) -> nb::object {
                if (!desc.handle_objects.is_none())
                    return nb::list(desc.handle_objects);
                nb::list out;
                bool any = false;
                for (const NativeHandle& handle : desc.existing_device_handles) {
                    out.append(nb::cast(handle));
                    any |= handle.type != NativeHandleType::undefined;
                }
                return any ? nb::object(out) : nb::none();
            },
            [](PyDeviceDesc& desc, nb::handle value, const char* what) {
                desc.existing_device_handles = {};
                desc.handle_objects = nb::none();
                if (value.is_none())
                    return;
                const auto handles = from_field<std::vector<NativeHandle>>(value, what);
                if (handles.size() > 3)
                    fail_value(what, ": at most three handles, got ", handles.size());
                std::copy(handles.begin(), handles.end(), desc.existing_device_handles.begin());
                desc.handle_objects = nb::list(value);
            }};
}

void bind_buffer_desc(nb::module_& m)
{
    using B = PyBufferDesc;
    bind_desc<B>(
        m, "BufferDesc", "Fields of create_buffer.",
        {
            field<B, &B::size>("size", "int", "Bytes."),
            field<B, &B::element_count>("element_count", "int", "Number of elements of struct_size or of the layout."),
            field<B, &B::struct_size>("struct_size", "int", "Bytes from one element to the next."),
            field<B, &B::resource_type_layout>("resource_type_layout", "typing.Any",
                                               "Layout of a structured buffer, for its element size."),
            field<B, &B::format>("format", "Format", "Texel format of typed buffers."),
            field<B, &B::memory_type>("memory_type", "MemoryType", "Where the memory lies."),
            field<B, &B::usage>("usage", "BufferUsage", "What the buffer may be used for."),
            field<B, &B::default_state>("default_state", "ResourceState", "State between commands; a hint."),
            field<B, &B::label>("label", "str", "Name in messages and debuggers."),
            field<B, &B::data>("data", "typing.Any", "Contiguous array with the first contents."),
        });
}

void bind_texture_desc(nb::module_& m)
{
    using T = PyTextureDesc;
    bind_desc<T>(m, "TextureDesc", "Fields of create_texture.",
                 {
                     field<T, &T::type>("type", "TextureType", "Dimensionality."),
                     field<T, &T::format>("format", "Format", "Texel format."),
                     field<T, &T::width>("width", "int", "Texels."),
                     field<T, &T::height>("height", "int", "Texels."),
                     field<T, &T::depth>("depth", "int", "Texels."),
                     field<T, &T::array_length>("array_length", "int", "Array elements; a cube counts as one."),
                     field<T, &T::mip_count>("mip_count", "int", "Mip levels; ALL_MIPS for the full chain."),
                     field<T, &T::sample_count>("sample_count", "int", "Samples of a texel."),
                     field<T, &T::sample_quality>("sample_quality", "int", "Quality level of D3D12."),
                     field<T, &T::memory_type>("memory_type", "MemoryType", "Where the memory lies."),
                     field<T, &T::usage>("usage", "TextureUsage", "What the texture may be used for."),
                     field<T, &T::default_state>("default_state", "ResourceState", "State between commands; a hint."),
                     field<T, &T::sampler>("sampler", "Sampler | None", "For combined texture-sampler access."),
                     field<T, &T::label>("label", "str", "Name in messages and debuggers."),
                     field<T, &T::data>("data", "typing.Any", "Contiguous array for the first layer and mip."),
                 });
}

void bind_view_desc(nb::module_& m)
{
    using R = PySubresourceRange;
    bind_desc<R>(m, "SubresourceRange", "Part of a texture's layers and mips.",
                 {
                     field<R, &R::layer>("layer", "int", "First layer."),
                     field<R, &R::layer_count>("layer_count", "int", "Layers; ALL_LAYERS for the rest."),
                     field<R, &R::mip>("mip", "int", "First mip."),
                     field<R, &R::mip_count>("mip_count", "int", "Mips; ALL_MIPS for the rest."),
                 });
    using V = PyTextureViewDesc;
    auto part = []<auto Member>(const char* name, const char* doc) {
        return Field<V>{name, "int", doc, [](const V& desc) { return nb::cast(uint32_t(desc.range.*Member)); },
                        [](V& desc, nb::handle value, const char* what) {
                            desc.range.*Member = from_field<uint32_t>(value, what);
                        }};
    };
    bind_desc<V>(
        m, "TextureViewDesc", "Fields of Texture.create_view.",
        {
            field<V, &V::format>("format", "Format", "Undefined: the texture's."),
            field<V, &V::aspect>("aspect", "TextureAspect", "Which part of a depth-stencil texture."),
            part.template operator()<&SubresourceRange::layer>("layer", "First layer."),
            part.template operator()<&SubresourceRange::layer_count>("layer_count", "Layers; ALL_LAYERS for the rest."),
            part.template operator()<&SubresourceRange::mip>("mip", "First mip."),
            part.template operator()<&SubresourceRange::mip_count>("mip_count", "Mips; ALL_MIPS for the rest."),
            field<V, &V::sampler>("sampler", "Sampler | None", "For combined texture-sampler access."),
            field<V, &V::label>("label", "str", "Name in messages and debuggers."),
            {"subresource_range", "SubresourceRange | dict", "Layers and mips.",
             [](const V& desc) { return nb::cast(desc.range); },
             [](V& desc, nb::handle value, const char* what) { desc.range = Fields<R>::from(value, what); }},
        });
}

void bind_sampler_desc(nb::module_& m)
{
    using S = SamplerDesc;
    bind_desc<S>(
        m, "SamplerDesc", "Fields of create_sampler.",
        {
            field<S, &S::min_filter>("min_filter", "TextureFilteringMode", "When texels are smaller than pixels."),
            field<S, &S::mag_filter>("mag_filter", "TextureFilteringMode", "When texels are larger than pixels."),
            field<S, &S::mip_filter>("mip_filter", "TextureFilteringMode", "Between mips."),
            field<S, &S::reduction_op>("reduction_op", "TextureReductionOp", "How texels are combined."),
            field<S, &S::address_u>("address_u", "TextureAddressingMode", "Beyond the edge in u."),
            field<S, &S::address_v>("address_v", "TextureAddressingMode", "Beyond the edge in v."),
            field<S, &S::address_w>("address_w", "TextureAddressingMode", "Beyond the edge in w."),
            {"mip_lod_bias", "float", "Added to the level of detail.",
             [](const S& desc) { return nb::cast(desc.mip_lod_bias); },
             [](S& desc, nb::handle value, const char* what) { desc.mip_lod_bias = from_field<float>(value, what); }},
            field<S, &S::max_anisotropy>("max_anisotropy", "int", "1: isotropic."),
            field<S, &S::comparison_func>("comparison_func", "ComparisonFunc", "For comparison samplers."),
            {"border_color", "Sequence[float]", "RGBA beyond the edge.",
             [](const S& desc) -> nb::object {
                 const auto& c = desc.border_color;
                 return nb::make_tuple(c[0], c[1], c[2], c[3]);
             },
             [](S& desc, nb::handle value, const char* what) { desc.border_color = floats_from(value, what, 4); }},
            field<S, &S::min_lod>("min_lod", "float", "Lowest level of detail."),
            field<S, &S::max_lod>("max_lod", "float", "Highest level of detail."),
            field<S, &S::label>("label", "str", "Name in messages and debuggers."),
        });
}

nb::object log_level_type() { return nb::module_::import_("slangpy._native").attr("LogLevel"); }

template <auto Member>
Field<PyDeviceDesc> level_field(const char* name)
{
    return {name, "LogLevel | str", "Least severe message logged.",
            [](const PyDeviceDesc& desc) -> nb::object { return desc.*Member; },
            [](PyDeviceDesc& desc, nb::handle value, const char* what) {
                const nb::object type = log_level_type();
                desc.*Member = value.type().is(type) ? nb::borrow(value) : enum_from(value, what, type);
            }};
}

void bind_device_desc(nb::module_& m)
{
    using D = PyDeviceDesc;
    bind_desc<D>(
        m, "DeviceDesc", "Fields of Device(...).",
        {
            field<D, &D::type>("type", "DeviceType", "Kind of device."),
            field<D, &D::enable_debug_layers>("enable_debug_layers", "bool", "Turn on the API's own checking layers."),
            level_field<&D::debug_layers_log_level>("debug_layers_log_level"),
            field<D, &D::enable_rhi_validation>("enable_rhi_validation", "bool", "Check every call."),
            level_field<&D::rhi_validation_log_level>("rhi_validation_log_level"),
            field<D, &D::enable_ray_tracing_validation>("enable_ray_tracing_validation", "bool", "Of the driver."),
            field<D, &D::enable_aftermath>("enable_aftermath", "bool", "Kept only."),
            field<D, &D::enable_cuda_interop>("enable_cuda_interop", "bool", "Share memory and order with CUDA."),
            field<D, &D::enable_print>("enable_print", "bool", "Let kernels print."),
            field<D, &D::enable_hot_reload>("enable_hot_reload", "bool", "Watch source files."),
            field<D, &D::enable_compilation_reports>("enable_compilation_reports", "bool",
                                                     "Keep times of compilations."),
            field<D, &D::bounds_checks>("bounds_checks", "bool",
                                        "CPU: indices outside of buffers, tensors and arrays read zeros, are not "
                                        "written, and give a warning; off: they may end the process."),
            luid_field<D>("adapter_luid", "Adapter to open; 16 ints."),
            field<D, &D::compiler_options>("compiler_options", "typing.Any", "Options of the default Slang session."),
            field<D, &D::module_cache_path>("module_cache_path", "str | os.PathLike | None",
                                            "Folder of compiled modules."),
            field<D, &D::shader_cache_path>("shader_cache_path", "str | os.PathLike | None",
                                            "Folder of compiled kernels."),
            field<D, &D::shader_cache_size>("shader_cache_size", "int", "Most bytes kept on disk."),
            handles_field(),
            bindless_field(),
            strings_field<D, &D::additional_vulkan_instance_extensions>("additional_vulkan_instance_extensions",
                                                                        "Names."),
            strings_field<D, &D::additional_vulkan_device_extensions>("additional_vulkan_device_extensions", "Names."),
            field<D, &D::enable_cuda_launch_from_gfx>("enable_cuda_launch_from_gfx", "bool", "Kept only."),
            field<D, &D::enable_ray_tracing>("enable_ray_tracing", "bool", "Kept only."),
            field<D, &D::label>("label", "str", "Name in messages and debuggers."),
        });
}

void bind_small_descs(nb::module_& m)
{
    using F = FenceDesc;
    bind_desc<F>(m, "FenceDesc", "Fields of create_fence.",
                 {
                     field<F, &F::initial_value>("initial_value", "int", "Where the fence starts."),
                     field<F, &F::shared>("shared", "bool", "Can be exported to another API."),
                 });
    using Q = QueryPoolDesc;
    bind_desc<Q>(m, "QueryPoolDesc", "Fields of create_query_pool.",
                 {
                     field<Q, &Q::type>("type", "QueryType", "What is queried."),
                     field<Q, &Q::count>("count", "int", "Number of queries."),
                 });
}

} // namespace

PyDeviceDesc::PyDeviceDesc()
{
    const nb::object warn = log_level_type().attr("warn");
    debug_layers_log_level = warn;
    rhi_validation_log_level = warn;
}

PyBufferDesc to_python(const BufferDesc& desc)
{
    PyBufferDesc out;
    static_cast<BufferDesc&>(out) = desc;
    constexpr BufferUsage copies = BufferUsage::copy_source | BufferUsage::copy_destination;
    out.usage = without_flags(desc.usage, copies) | desc.asked_copies; // what was asked for
    return out;
}

PyTextureDesc to_python(const Texture& texture)
{
    PyTextureDesc out;
    static_cast<TextureDesc&>(out) = texture.desc();
    if (texture.sampler())
        out.sampler = nb::cast(ref<Sampler>(texture.sampler()));
    return out;
}

PyTextureViewDesc to_python(const TextureView& view)
{
    const TextureViewDesc& desc = view.desc();
    PyTextureViewDesc out;
    if (view.sampler())
        out.sampler = nb::cast(ref<Sampler>(view.sampler()));
    out.format = desc.format;
    out.aspect = desc.aspect;
    out.range = desc.range;
    out.label = desc.label;
    return out;
}

void bind_device_descs(nb::module_& m)
{
    bind_buffer_desc(m);
    bind_texture_desc(m);
    bind_view_desc(m);
    bind_sampler_desc(m);
    bind_device_desc(m);
    bind_small_descs(m);
}

} // namespace spy
