// The launch: its kernel, its groups, its globals.
#include "call/stages/dispatch/dispatch.h"

#include "call/stages/dispatch/bounds.h"
#include "call/stages/dispatch/privatized.h"
#include "call/stages/dispatch/sums.h"
#include "call/stages/select/patch.h"
#include "core/class_name.h"
#include "core/gil.h"
#include "core/python_names.h"
#include "device/encoder.h"
#include "device/guard.h"
#include "device/resource.h"
#include "device/shader_object.h"

#include <algorithm>
#include <numeric>

#include <cctype>

namespace spy {

Groups share_out(const Call& call, const Measured& measured, const Selected& selected, const Variant& variant,
                 KernelArguments& arguments)
{
    const CallOffsets& offsets = call.plan.offsets;
    if (selected.key & patch_mask)
        return patch_groups(measured.shape, selected.key);
    const int64_t total = tiles(call, measured), tile = call.plan.tile.element_count();
    int64_t per_group = variant.items_per_group;
    if (per_group ==
        0) { // CPU: blocks large enough to vectorise, small enough to share out and to hear Ctrl-C between them
        const int64_t least = call.plan.traits.has_loops ? 1 : std::max<int64_t>(1024 / tile, 1),
                      most = std::max<int64_t>(32768 / tile, 1);
        per_group = variant.max_groups == 1 ? total : std::clamp<int64_t>(total / 64, least, most);
        arguments.put<int64_t>(offsets.block, per_group);
        // results beyond the caches are worth writing around them
        arguments.put<int64_t>(offsets.flags, selected.aligned && measured.total >= (int64_t(1) << 22));
    }
    int64_t groups = (total + per_group - 1) / per_group;
    if (variant.max_groups && variant.items_per_group) {
        // whole periods: what a thread adds to does not change while it strides over the call
        const int64_t unit = selected.period / std::gcd(selected.period, per_group);
        groups = std::min<int64_t>(groups, variant.max_groups);
        groups = std::max<int64_t>(groups / unit, 1) * unit;
    }
    arguments.put<int64_t>(offsets.period, selected.period);
    const Groups count = group_grid(call, measured, groups);
    if (variant.items_per_group != 0)
        arguments.put<int64_t>(offsets.block, count[0]);
    return count;
}

void merge_slots(std::vector<ref<Object>>& slots, const std::vector<ref<Object>>& own)
{
    slots.resize(std::max(slots.size(), own.size()));
    for (size_t i = 0; i < own.size(); ++i)
        if (own[i])
            slots[i] = own[i];
}

nb::object find_globals(const Call& call, const Variant& variant)
{
    if (call.globals)
        return *call.globals;
    if (call.options.has_uniforms())
        return call.options.uniforms(call.plan.view);
    if (variant.needs_globals)
        call.plan.view.attr(in_python::fail_unset.name)();
    return {};
}

namespace {

void start(const Call& call, const Measured& measured, const Variant& variant, const Groups& count,
           const Written& written, ShaderObject* globals)
{
    const KernelArguments& arguments = written.arguments;
    std::span<const uint8_t> scopes[2] = {{}, {arguments.bytes.data(), arguments.bytes.size()}};
    LaunchDesc desc;
    desc.kernel = variant.kernel.get();
    desc.group_count = count;
    desc.stream = measured.stream;
    desc.shape = measured.shape.dims();
    desc.added = written.added;
    ArgumentData data;
    if (globals) {
        globals->gather(data);
        check_guards(data);
        if (data.scopes.size() < 2)
            data.scopes.resize(2);
        data.scopes[1] = scopes[1];
        merge_slots(data.slots, arguments.slots);
        data.keep_alive.insert(data.keep_alive.end(), arguments.keep.begin(), arguments.keep.end());
        desc.arguments = data.arguments();
    } else {
        desc.arguments = {scopes, arguments.slots, arguments.keep};
    }
    GilRelease release;
    call.plan.device->launch(desc);
}

/// Takes bytes and slots of the arguments.
void record(const Call& call, const Measured& measured, const Variant& variant, const Groups& groups,
            KernelArguments& arguments, ShaderObject* globals)
{
    nb::handle target(call.recorder);
    CommandEncoder* encoder = nullptr;
    if (!nb::try_cast(target, encoder) || !encoder)
        fail_value(call.plan.label, ": Expected _append_to to be a CommandEncoder, got ", class_name(target.ptr()),
                   "; pass what device.create_command_encoder() gives");
    encoder->check_recording("append_to");
    if (encoder->frontend() != call.plan.device.get()) // the text takes longer than the rest
        check_same_device(call.plan.device.get(), encoder, cat(call.plan.label, ": the encoder of append_to").c_str());
    if (call.options.stream.value)
        fail_value(call.plan.label,
                   ": Cannot specify a CUDA stream when appending to a command encoder; give the stream to "
                   "submit_command_buffer()");
    command::Dispatch dispatch;
    dispatch.kernel = variant.kernel;
    dispatch.group_count = groups;
    dispatch.shape.assign(measured.shape.begin(), measured.shape.end());
    if (globals)
        globals->copy_to(dispatch.scopes, dispatch.slots, dispatch.keep_alive);
    dispatch.scopes.resize(std::max<size_t>(dispatch.scopes.size(), 2));
    dispatch.scopes[1] = std::move(arguments.bytes);
    merge_slots(dispatch.slots, arguments.slots);
    dispatch.keep_alive.insert(dispatch.keep_alive.end(), arguments.keep.begin(), arguments.keep.end());
    encoder->add(std::move(dispatch));
}

void run(const Call& call, const Measured& measured, const Selected& selected, Written& written)
{
    const uint64_t copies = privatized_copies(call, measured, written);
    const Variant& variant = variant_of(call, copies ? selected.key | privatized_variant : selected.key);
    prepare_sums(call, measured, written);
    if (copies)
        prepare_privatized(call, measured, copies, written);
    BoundsReport report;
    prepare_bounds(call, measured, written.arguments, report);
    const Groups count = share_out(call, measured, selected, variant, written.arguments);
    const nb::object globals = find_globals(call, variant);
    ShaderObject* object = globals.is_valid() && !globals.is_none() ? nb::cast<ShaderObject*>(globals) : nullptr;
    if (call.recorder)
        record(call, measured, variant, count, written.arguments, object);
    else
        start(call, measured, variant, count, written, object);
    add_sums(call, measured, written);
    if (copies)
        add_privatized_copies(call, measured, copies, written);
    if (report.is_asked)
        check_bounds(call, report);
}

} // namespace

const Variant& variant_of(const Call& call, VariantKey key)
{
    auto& variants = call.plan.state.variants;
    auto found = variants.find(key);
    if (found == variants.end()) {
        if (call.signature.has_torch)
            refuse_cold_capture(*call.plan.device, call.options, call.signature.used(), call.plan.view);
        call.plan.view.attr(in_python::build_variant.name)(key);
        found = variants.find(key);
        if (found == variants.end())
            fail_runtime(call.plan.label, ": no kernel was built for variant ", key);
    }
    return found->second;
}

Groups group_grid(const Call& call, const Measured& measured, int64_t groups)
{
    const auto& limit = call.plan.device->info().limits.max_compute_dispatch_thread_groups;
    const uint32_t limit_x = limit[0] ? limit[0] : 0xffffffffu;
    Groups count{uint32_t(std::min<int64_t>(groups, limit_x)), 1, 1};
    if (groups > limit_x) { // the kernel recovers the flat group index from x + y * gridDim.x
        count[1] = uint32_t((groups + limit_x - 1) / limit_x);
        if (limit[1] && count[1] > limit[1])
            fail_value(
                call.plan.label, ": ", measured.total,
                " invocations are more than one dispatch of this device can hold; call it on parts of the arguments");
    }
    return count;
}

namespace {

/// A text of the device, which knows the kernel's parameters, with the names of the function's.
std::string with_names(const Call& call, const std::string& text)
{
    const size_t begin = text.find("'a"), end = begin == text.npos ? begin : text.find('\'', begin + 1);
    size_t leaf = 0;
    if (end == text.npos || end == begin + 2)
        return text;
    for (size_t i = begin + 2; i < end; ++i) {
        if (!std::isdigit(static_cast<unsigned char>(text[i])))
            return text;
        leaf = leaf * 10 + size_t(text[i] - '0');
    }
    if (leaf >= call.plan.leaves.size() || call.plan.leaves[leaf].name.empty())
        return text;
    return cat(text.substr(0, begin + 1), call.plan.leaves[leaf].name, text.substr(end));
}

} // namespace

Pending dispatch(const Call& call, const Measured& measured, const Selected& selected, Written&& written)
{
    try {
        if (measured.total > 0)
            run(call, measured, selected, written);
    } catch (const Error& error) {
        if (const std::string text = with_names(call, error.what()); text != error.what())
            throw Error(error.kind(), text);
        throw;
    }
    return std::move(written.pending);
}

} // namespace spy
