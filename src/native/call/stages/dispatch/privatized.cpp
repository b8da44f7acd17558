// Small gradients that many invocations add to at places of their choice: GPU threads that meet in one address wait for
// each other, so each warp adds to one of several copies, and a second kernel adds those up (privatisation, as of
// histograms). Slang's half: slangpy/slang/atomics.slang; the second kernel: slangpy/plan/derive/sums.py.
#include "call/stages/dispatch/privatized.h"

#include "call/stages/dispatch/sums.h"
#include "call/stages/write/writing.h"
#include "core/align.h"
#include "device/encoder.h"
#include "device/submit.h"

#include <algorithm>
#include <bit>

namespace spy {

namespace {

constexpr uint64_t most_copies = 512, fewest_copies = 32;
constexpr uint64_t most_bytes = 4u << 20; ///< of all copies: a part of the GPU's second cache
constexpr uint64_t line = 128;            ///< bytes that the cache keeps together
constexpr uint64_t privatized_words = 4;  ///< of the table: begin, end, first copy, bytes from copy to copy

/// What the second kernel takes; slangpy/plan/derive/sums.py writes the same structure.
struct PrivatizedArguments {
    int64_t count; ///< scalars of a gradient
    int64_t block;
    uint64_t begin;
    uint64_t copies;
    uint64_t pitch; ///< bytes from copy to copy
};

uint64_t pitch_of(const AddedRange& range) { return round_up(range.size, line); }

bool may_copy(const Call& call, const Measured& measured, const Written& written)
{
    if (!call.plan.traits.can_privatize || written.added.empty() || !written.sums.empty() || call.recorder ||
        call.is_prepared || measured.total < privatized_least)
        return false;
    return !(measured.stream.value && call.plan.device->is_capturing(measured.stream));
}

std::vector<uint64_t> table_of(const Written& written, uint64_t address, uint64_t copies)
{
    std::vector<uint64_t> table{written.added.size() | (copies - 1) << 32};
    uint64_t at = address + sizeof(uint64_t) * (1 + privatized_words * written.added.size());
    at = round_up(at, line);
    for (const AddedRange& range : written.added) {
        table.insert(table.end(), {range.begin, range.begin + range.size, at, pitch_of(range)});
        at += pitch_of(range) * copies;
    }
    return table;
}

void add_copies_of(const Call& call, const Measured& measured, const AddedRange& range, const uint64_t* row,
                   uint64_t copies, const std::vector<ref<Object>>& keep)
{
    const Variant& variant = variant_of(call, addition_variant | privatized_variant | (range.is_double ? 1 : 0));
    const int64_t count = int64_t(range.size / (range.is_double ? sizeof(double) : sizeof(float)));
    const int64_t threads = count * int64_t(copies / privatized_copies_per_thread);
    const Groups groups = group_grid(call, measured, (threads + variant.items_per_group - 1) / variant.items_per_group);
    const PrivatizedArguments values{count, threads, range.begin, row[2], row[3]};
    std::vector<uint8_t> bytes(sizeof values);
    std::memcpy(bytes.data(), &values, sizeof values);
    launch_addition(call, measured, variant, groups, std::move(bytes), keep);
}

} // namespace

uint64_t privatized_copies(const Call& call, const Measured& measured, const Written& written)
{
    if (!may_copy(call, measured, written))
        return 0;
    uint64_t bytes = 0;
    for (const AddedRange& range : written.added)
        bytes += pitch_of(range);
    const uint64_t worth = uint64_t(measured.total) * sizeof(float) / (8 * bytes); // clearing costs less than adding
    const uint64_t copies = std::bit_floor(std::min({most_copies, most_bytes / bytes, worth}));
    return copies >= fewest_copies ? copies : 0;
}

void prepare_privatized(const Call& call, const Measured& measured, uint64_t copies, Written& written)
{
    uint64_t bytes = line + sizeof(uint64_t) * (1 + privatized_words * written.added.size());
    for (const AddedRange& range : written.added)
        bytes += pitch_of(range) * copies;
    ref<Buffer> buffer = temporary_buffer(call, bytes, "copies of gradients");
    const uint64_t address = address_of(*buffer);
    written.privatized = table_of(written, address, copies);
    const auto* table = reinterpret_cast<const uint8_t*>(written.privatized.data());
    ref<CommandEncoder> encoder(new CommandEncoder(call.plan.device));
    encoder->fill_buffer(buffer, 0, {});
    encoder->upload_buffer_data(buffer, 0, {table, written.privatized.size() * sizeof(uint64_t)});
    submit_to(call, measured, encoder->finish());
    written.arguments.put<uint64_t>(call.plan.offsets.sum_table, address);
    written.arguments.keep.push_back(ref<Object>(buffer.get()));
}

void add_privatized_copies(const Call& call, const Measured& measured, uint64_t copies, const Written& written)
{
    for (size_t i = 0; i < written.added.size(); ++i)
        add_copies_of(call, measured, written.added[i], written.privatized.data() + 1 + privatized_words * i, copies,
                      written.arguments.keep);
}

} // namespace spy
