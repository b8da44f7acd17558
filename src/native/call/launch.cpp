// The stages of a planned call, one after the other.
#include "call/stages/leaves.h"
#include "call/stages/repeat.h"
#include "values/torch.h"
#include "core/python_names.h"

namespace spy {

namespace {

nb::object launch_again(const Call& call, const Repeat& repeat)
{
    const Measured measured = measure_again(call, repeat);
    call.plan.state.last_call_shape = measured.shape;
    if (call.signature.has_torch)
        bump_versions(call);
    Written written = write_again(call, measured, repeat);
    return finish(call, measured, dispatch(call, measured, repeat.selected, std::move(written)));
}

} // namespace

nb::object launch(CallPlan& plan, Signature& signature, const RunOptions& options)
{
    const Call call{plan, signature, options, plan.device->info().on_host, signature.reserved.append_to};
    const std::span<const int64_t> facts = repeat_facts(call);
    if (const std::shared_ptr<const Repeat> repeat = find_repeat(call, facts))
        return launch_again(call, *repeat);
    RepeatNote note(call, facts);
    const Measured measured = measure(call);
    plan.state.last_call_shape = measured.shape;
    Placed placed = place(call, measured);
    const Selected selected = select(call, measured);
    const bool is_placed = !placed.apart.empty() || !placed.shared.empty() || !placed.keep.empty();
    Written written = write(call, measured, selected, std::move(placed));
    note.remember(measured, selected, is_placed, written);
    return finish(call, measured, dispatch(call, measured, selected, std::move(written)));
}

NativeHandle torch_call_stream(const RunOptions& options, const Leaf* leaf)
{
    if (options.stream.value || !leaf || leaf->device_type != 2)
        return options.stream;
    TorchTensor description{0, leaf->scalar, {}, {}, leaf->device_type, leaf->device_index};
    return {NativeHandleType::CUstream, torch_stream(leaf->object, description)};
}

void refuse_cold_capture(Device& device, const RunOptions& options, std::span<const Leaf> leaves, nb::handle owner)
{
    const Leaf* found = nullptr;
    for (const Leaf& leaf : leaves)
        if (leaf.device_type == 2)
            found = &leaf;
    NativeHandle stream = torch_call_stream(options, found);
    if (!stream.value || !device.is_capturing(stream))
        return;
    std::string name = nb::cast<std::string>(owner.attr("name"));
    bool backward = nb::cast<bool>(owner.attr("options").attr(in_python::bwds.name));
    fail_runtime(nb::cast<std::string>(owner.attr("label")), ": call ", name, " once before capturing",
                 backward ? ", with its backward pass" : "", ": a kernel of this call is not built yet");
}

} // namespace spy
