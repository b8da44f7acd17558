// Gradients that are summed beside their memory and added to them by a second kernel (slangpy/slang/exact.slang).
#include "call/stages/dispatch/sums.h"
#include "call/stages/write/writing.h"
#include "core/gil.h"
#include "device/encoder.h"
#include "device/submit.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint32_t row_words = 4; ///< of the table that kernels read: begin, end, sums, bytes of sums per byte

/// What the second kernel takes; slangpy/plan/derive/sums.py writes the same structure.
struct AdditionArguments {
    int64_t count;
    int64_t block;
    uint64_t begin;
    uint64_t sums;
};

void clear_buffer(const Call& call, const Measured& measured, const ref<Buffer>& buffer)
{
    ref<CommandEncoder> encoder(new CommandEncoder(call.plan.device));
    encoder->fill_buffer(buffer, 0, {});
    submit_to(call, measured, encoder->finish());
}

void add_sum(const Call& call, const Measured& measured, const Sums& sums, const std::vector<ref<Object>>& keep)
{
    const Variant& variant = variant_of(call, addition_variant | sums.leaf);
    const int64_t count = int64_t(sums.count);
    const bool cpu = variant.items_per_group == 0;
    const int64_t per_group = cpu ? std::clamp<int64_t>(count / 64, 64, 4096) : variant.items_per_group;
    const std::array<uint32_t, 3> groups = group_grid(call, measured, (count + per_group - 1) / per_group);
    const AdditionArguments values{count, cpu ? per_group : int64_t(groups[0]), sums.begin, sums.sums};
    std::vector<uint8_t> bytes(sizeof values);
    std::memcpy(bytes.data(), &values, sizeof values);
    launch_addition(call, measured, variant, groups, std::move(bytes), keep);
}

} // namespace

void submit_to(const Call& call, const Measured& measured, ref<CommandBuffer> commands)
{
    CommandBuffer* list[] = {commands.get()};
    SubmitDesc submission;
    submission.command_buffers = list;
    submission.stream = measured.stream;
    call.plan.device->submit(submission);
}

void launch_addition(const Call& call, const Measured& measured, const Variant& variant, const Groups& groups,
                     std::vector<uint8_t> bytes, const std::vector<ref<Object>>& keep)
{
    if (call.recorder) {
        command::Dispatch dispatch;
        dispatch.kernel = variant.kernel;
        dispatch.group_count = groups;
        dispatch.scopes.resize(2);
        dispatch.scopes[1] = std::move(bytes);
        dispatch.keep_alive = keep;
        nb::cast<CommandEncoder*>(nb::handle(call.recorder))->add(std::move(dispatch));
        return;
    }
    std::span<const uint8_t> scopes[2] = {{}, {bytes.data(), bytes.size()}};
    LaunchDesc desc;
    desc.kernel = variant.kernel.get();
    desc.group_count = groups;
    desc.stream = measured.stream;
    desc.arguments = {scopes, {}, keep};
    GilRelease release;
    call.plan.device->launch(desc);
}

void note_sums(Writing& w, size_t leaf, const SumSpec& spec, uint64_t address, const Shape& shape, const Shape& strides)
{
    if (leaf < 64 && w.selected.owned >> leaf & 1)
        return; // each invocation adds to its own element
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0)
            return;
        (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    }
    w.out.sums.push_back({leaf, spec, address + uint64_t(low * int64_t(spec.item)), uint64_t(high - low + 1), 0});
}

void prepare_sums(const Call& call, const Measured& measured, Written& written)
{
    const int32_t offset = call.plan.offsets.sum_table;
    if (written.sums.empty() || offset < 0)
        return;
    refuse_in_capture(call, measured,
                      "gradients are summed beside their memory (deterministic mode, or a half gradient)");
    std::vector<uint64_t> table{written.sums.size()};
    uint64_t size = sizeof(uint64_t) * (1 + row_words * written.sums.size());
    for (Sums& sums : written.sums) {
        sums.sums = size; // from the start of the buffer, whose address is added below
        size += (sums.count * sums.spec.item * sums.spec.ratio + 7) & ~uint64_t(7);
    }
    ref<Buffer> buffer = temporary_buffer(call, size, "sums of gradients", !call.on_host);
    const uint64_t address = address_of(*buffer);
    if (!call.on_host)
        clear_buffer(call, measured, buffer);
    for (Sums& sums : written.sums) {
        sums.sums += address;
        constexpr uint32_t halves_in_floats = 2;
        if (sums.spec.ratio == halves_in_floats && sums.spec.item == 2 &&
            call.plan.device->info().type == DeviceType::cpu && !call.recorder)
            written.added.push_back({sums.leaf, sums.sums, sums.count * sizeof(float), false});
        table.insert(table.end(), {sums.begin, sums.begin + sums.count * sums.spec.item, sums.sums, sums.spec.ratio});
    }
    call.plan.device->write_buffer(buffer, 0, table.data(), table.size() * sizeof(uint64_t));
    written.arguments.put<uint64_t>(offset, address);
    written.arguments.keep.push_back(ref<Object>(buffer.get()));
}

void add_sums(const Call& call, const Measured& measured, const Written& written)
{
    for (const Sums& sums : written.sums)
        add_sum(call, measured, sums, written.arguments.keep);
}

} // namespace spy
