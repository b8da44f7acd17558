// Gradients that are summed beside their memory and settled by a second kernel (slangpy/slang/exact.slang).
#include "call/launch.h"
#include "core/gil.h"
#include "device/encoder.h"
#include "device/submit.h"

#include <algorithm>

namespace spy {

namespace {

constexpr uint32_t row_words = 4; ///< of the table that kernels read: begin, end, sums, bytes of sums per byte

constexpr uint32_t report_words = 2 + 2 * Shape::max_rank; ///< see slangpy/slang/tensor.slang

/// What a settling kernel takes; slangpy/call/settle.py writes the same structure.
struct SettleArguments {
    int64_t count;
    int64_t block;
    uint64_t begin;
    uint64_t sums;
};

} // namespace

void Launch::note_sums(const LeafPlan& plan, uint64_t address, const Shape& shape, const Shape& strides)
{
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0)
            return;
        (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
    }
    const int64_t item = plan.sum_item;
    m_sums.push_back({size_t(&plan - m_plan.leaves.data()), address + uint64_t(low * item), uint64_t(high - low + 1), 0});
}

/// Makes the sums of this launch and their table. Those of leaves that the chosen kernel adds to plainly are left out.
void Launch::prepare_sums()
{
    std::erase_if(m_sums, [&](const Sums& sums) { return m_owned >> sums.leaf & 1 && sums.leaf < 64; });
    if (m_sums.empty() || m_plan.redirects_offset < 0)
        return;
    refuse_in_capture("gradients are summed beside their memory (deterministic mode, or a half gradient)");
    std::vector<uint64_t> table{m_sums.size()};
    uint64_t size = sizeof(uint64_t) * (1 + row_words * m_sums.size());
    for (Sums& sums : m_sums) {
        const LeafPlan& plan = m_plan.leaves[sums.leaf];
        const uint64_t bytes = sums.count * plan.sum_item;
        sums.sums = size; // from the start of the buffer, whose address is added below
        size += (bytes * plan.sum_ratio + 7) & ~uint64_t(7);
    }
    BufferDesc desc;
    desc.size = size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                 BufferUsage::copy_source;
    desc.label = "sums of gradients";
    desc.uninitialized = !m_on_host;
    ref<Buffer> buffer = m_plan.device->create_buffer(desc);
    uint64_t address = buffer->device_address();
    if (!address)
        address = reinterpret_cast<uint64_t>(buffer->host_pointer());
    if (!m_on_host) {
        ref<CommandEncoder> encoder(new CommandEncoder(m_plan.device));
        encoder->fill_buffer(buffer, 0, {});
        ref<CommandBuffer> commands = encoder->finish();
        CommandBuffer* list[] = {commands.get()};
        SubmitDesc submission;
        submission.command_buffers = list;
        submission.stream = m_options.stream.value ? m_options.stream : m_stream;
        m_plan.device->submit(submission);
    }
    for (Sums& sums : m_sums) {
        const LeafPlan& plan = m_plan.leaves[sums.leaf];
        sums.sums += address;
        table.insert(table.end(), {sums.begin, sums.begin + sums.count * plan.sum_item, sums.sums, plan.sum_ratio});
    }
    m_plan.device->write_buffer(buffer, 0, table.data(), table.size() * sizeof(uint64_t));
    put<uint64_t>(m_plan.redirects_offset, address);
    m_keep.push_back(ref<Object>(buffer.get()));
}

void Launch::prepare_bounds()
{
    refuse_in_capture("indices are checked (set_check_bounds)");
    const uint32_t zeros[report_words] = {};
    BufferDesc desc;
    desc.size = sizeof zeros;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access | BufferUsage::copy_destination |
                 BufferUsage::copy_source;
    desc.label = "report of indices outside";
    desc.uninitialized = true;
    m_bounds = m_plan.device->create_buffer(desc);
    m_plan.device->write_buffer(m_bounds.get(), 0, zeros, sizeof zeros);
    const uint64_t address = m_bounds->device_address();
    put<uint64_t>(m_plan.bounds_offset, address ? address : reinterpret_cast<uint64_t>(m_bounds->host_pointer()));
    m_keep.push_back(ref<Object>(m_bounds.get()));
}

/// Raises for the first index outside that the kernel met; what it stored so far is stored.
void Launch::check_bounds()
{
    uint32_t words[report_words] = {};
    m_plan.device->read_buffer(m_bounds.get(), 0, words, sizeof words);
    if (words[0] == 0)
        return;
    Shape index, shape;
    for (uint32_t k = 0; k < std::min<uint32_t>(words[1], Shape::max_rank); ++k) {
        index.push_back(int32_t(words[2 + 2 * k]));
        shape.push_back(words[3 + 2 * k]);
    }
    std::string names;
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Shape& all = m_signature.leaves[i].shape;
        bool same = plan.whole && all.size() == plan.vector_dims + shape.size();
        for (size_t k = 0; same && k < shape.size(); ++k)
            same = all[plan.vector_dims + k] == shape[k];
        if (same)
            names += cat(names.empty() ? "" : " or ", plan.name);
    }
    fail(ErrorKind::index, m_plan.label, ": index ", index.str(), " is outside of a tensor of shape ", shape.str(),
         names.empty() ? "" : cat(" (argument ", names, ")"), "; ", words[0],
         words[0] == 1 ? " access was" : " accesses were", " outside");
}

void Launch::settle_sums()
{
    for (const Sums& sums : m_sums) {
        const Variant& variant = variant_of(settle_variant | sums.leaf);
        const int64_t count = int64_t(sums.count);
        const bool cpu = variant.items_per_group == 0;
        const int64_t per_group = cpu ? std::clamp<int64_t>(count / 64, 64, 4096) : variant.items_per_group;
        const std::array<uint32_t, 3> groups = group_grid((count + per_group - 1) / per_group);
        const SettleArguments values{count, cpu ? per_group : int64_t(groups[0]), sums.begin, sums.sums};
        std::vector<uint8_t> bytes(sizeof values);
        std::memcpy(bytes.data(), &values, sizeof values);
        if (m_signature.reserved.append_to) {
            command::Dispatch dispatch;
            dispatch.kernel = variant.kernel;
            dispatch.group_count = groups;
            dispatch.scopes.resize(2);
            dispatch.scopes[1] = std::move(bytes);
            dispatch.keep_alive = m_keep;
            nb::cast<CommandEncoder*>(nb::handle(m_signature.reserved.append_to))->add(std::move(dispatch));
            continue;
        }
        std::span<const uint8_t> scopes[2] = {{}, {bytes.data(), bytes.size()}};
        LaunchDesc desc;
        desc.kernel = variant.kernel.get();
        desc.group_count = groups;
        desc.stream = m_options.stream.value ? m_options.stream : m_stream;
        desc.arguments = {scopes, {}, m_keep};
        GilRelease release;
        m_plan.device->launch(desc);
    }
}

} // namespace spy
