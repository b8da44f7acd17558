// Indices into tensor parameters, checked by kernels where set_check_bounds asks for it, and on CPU devices.
#include "call/stages/dispatch/bounds.h"

#include "call/stages/leaves.h"
#include "call/run.h"
#include "core/warning.h"

#include <algorithm>
#include <utility>

namespace spy {

namespace {

/// Tensor arguments whose function's share has these sizes: "a or b".
std::string arguments_of(const Call& call, const Shape& shape)
{
    std::string names;
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafSpec& spec = call.plan.leaves[i];
        const Shape& all = call.leaf(i).shape;
        const size_t lead = spec.vector_dims();
        bool same = spec.whole && all.size() == lead + shape.size();
        for (size_t k = 0; same && k < shape.size(); ++k)
            same = all[lead + k] == shape[k];
        if (same)
            names += cat(names.empty() ? "" : " or ", spec.name);
    }
    return names;
}

} // namespace

void prepare_bounds(const Call& call, const Measured& measured, KernelArguments& arguments, BoundsReport& report)
{
    if (call.plan.offsets.bounds < 0 || call.recorder)
        return;
    report.is_asked = true;
    if (call.plan.device->info().type == DeviceType::cpu) { // the launch ends before the report does
        arguments.put<uint64_t>(call.plan.offsets.bounds, uint64_t(uintptr_t(report.words)));
        return;
    }
    refuse_in_capture(call, measured, "indices are checked (set_check_bounds)");
    report.buffer = temporary_buffer(call, sizeof report.words, "report of indices outside");
    call.plan.device->write_buffer(report.buffer.get(), 0, report.words, sizeof report.words);
    arguments.put<uint64_t>(call.plan.offsets.bounds, address_of(*report.buffer));
    arguments.keep.push_back(ref<Object>(report.buffer.get()));
}

void check_bounds(const Call& call, BoundsReport& report)
{
    uint32_t (&words)[BoundsReport::word_count] = report.words;
    if (report.buffer)
        call.plan.device->read_buffer(report.buffer.get(), 0, words, sizeof words);
    if (words[0] == 0)
        return;
    Shape index, shape;
    for (uint32_t k = 0; k < std::min<uint32_t>(words[1], Shape::max_rank); ++k) {
        index.push_back(int32_t(words[2 + 2 * k]));
        shape.push_back(words[3 + 2 * k]);
    }
    const std::string names = arguments_of(call, shape);
    const std::string text = cat(call.plan.label, ": index ", index.str(), " is outside of a tensor of shape ",
                                 shape.str(), names.empty() ? "" : cat(" (argument ", names, ")"), "; ", words[0],
                                 words[0] == 1 ? " access was" : " accesses were", " outside");
    if (checks_bounds())
        fail(ErrorKind::index, text);
    if (!std::exchange(call.plan.state.has_warned_of_bounds, true))
        warn(cat(text,
                 ": reads gave 0, writes were dropped (told once; set_check_bounds(True) makes it an IndexError, a "
                 "device with bounds_checks=False checks nothing)"));
}

} // namespace spy
