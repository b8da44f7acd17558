// Indices into tensor parameters, checked by kernels where set_check_bounds asks for it.
#include "call/leaves.h"
#include "call/sums.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint32_t report_words = 2 + 2 * Shape::max_rank; ///< see slangpy/slang/tensor.slang

/// Tensor arguments whose function's share has these sizes: "a or b".
std::string arguments_of(const Call& call, const Shape& shape)
{
    std::string names;
    for (size_t i = 0; i < call.leaf_count(); ++i) {
        const LeafPlan& plan = call.plan.leaves[i];
        const Shape& all = call.leaf(i).shape;
        const size_t lead = plan.vector_dims();
        bool same = plan.whole && all.size() == lead + shape.size();
        for (size_t k = 0; same && k < shape.size(); ++k)
            same = all[lead + k] == shape[k];
        if (same)
            names += cat(names.empty() ? "" : " or ", plan.name);
    }
    return names;
}

} // namespace

ref<Buffer> prepare_bounds(const Call& call, const Measured& measured, KernelArguments& arguments)
{
    if (call.plan.offsets.bounds < 0 || call.recorder)
        return nullptr;
    refuse_in_capture(call, measured, "indices are checked (set_check_bounds)");
    const uint32_t zeros[report_words] = {};
    ref<Buffer> report = temporary_buffer(call, sizeof zeros, "report of indices outside");
    call.plan.device->write_buffer(report.get(), 0, zeros, sizeof zeros);
    arguments.put<uint64_t>(call.plan.offsets.bounds, address_of(*report));
    arguments.keep.push_back(ref<Object>(report.get()));
    return report;
}

void check_bounds(const Call& call, Buffer& report)
{
    uint32_t words[report_words] = {};
    call.plan.device->read_buffer(&report, 0, words, sizeof words);
    if (words[0] == 0)
        return;
    Shape index, shape;
    for (uint32_t k = 0; k < std::min<uint32_t>(words[1], Shape::max_rank); ++k) {
        index.push_back(int32_t(words[2 + 2 * k]));
        shape.push_back(words[3 + 2 * k]);
    }
    const std::string names = arguments_of(call, shape);
    fail(ErrorKind::index, call.plan.label, ": index ", index.str(), " is outside of a tensor of shape ", shape.str(),
         names.empty() ? "" : cat(" (argument ", names, ")"), "; ", words[0],
         words[0] == 1 ? " access was" : " accesses were", " outside");
}

} // namespace spy
