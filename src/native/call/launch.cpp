#include "call/launch.h"
#include "call/launch_util.h"
#include "call/torch.h"
#include "call/access.h"
#include "core/gil.h"
#include "device/encoder.h"
#include "device/shader_object.h"
#include "python/math_bindings.h"
#include "python/value_writer.h"
#include <algorithm>
#include <cstring>
#include <numeric>

namespace spy {

Launch::Launch(CallPlan& plan, Signature& signature, const RunOptions& options)
    : m_plan(plan), m_signature(signature), m_options(options), m_on_host(is_host_device(*plan.device))
{
}

nb::object Launch::run()
{
    measure();
    apply_thread_count();
    m_plan.last_call_shape = m_call;
    if (m_signature.has_torch)
        bump_versions();
    m_bytes.assign(m_plan.argument_size, 0);
    const bool shared = m_total > 0 && shares_torch();
    if (shared)
        share_torch();
    if (m_total > 0)
        separate();
    prepare_result();
    if (m_total > 0 || m_signature.reserved.append_to) {
        for (size_t i = 0; i < m_plan.leaves.size(); ++i)
            try {
                write_leaf(i);
            } catch (const Error& error) { // values are written by code that knows parameters only
                std::string text = error.what();
                throw Error(error.kind(), text.starts_with(m_plan.label) ? text : cat(m_plan.label, ": argument ", text));
            }
        finish_tables();
        put<int64_t>(m_plan.total_offset, tiles());
        for (size_t i = 0; i < m_call.size() && m_plan.shape_offset >= 0; ++i)
            put<int64_t>(m_plan.shape_offset + int32_t(8 * i), m_call[i]);
        if (m_total > 0)
            dispatch();
    } else {
        for (size_t i = 0; i < m_plan.leaves.size(); ++i) { // a sum over nothing is zero
            clear_fresh(m_signature.leaves[i]);
            if (m_plan.leaves[i].out_is_grad)
                write_leaf(i);
        }
    }
    if (m_signature.reserved.append_to)
        return nb::none();
    if (shared)
        finish_shared();
    finish_uploads();
    finish_native_copies();
    finish_references();
    finish_custom();
    return finish_result();
}

void Launch::fail_shape(const char* kind, size_t leaf, int64_t dim, int64_t got, int64_t expected)
{
    nb::list shapes;
    for (const Leaf& other : m_signature.used()) {
        nb::list sizes;
        for (int64_t size : other.shape)
            sizes.append(size);
        shapes.append(nb::tuple(sizes));
    }
    m_plan.view.attr("fail_shape")(kind, leaf, dim, got, expected, shapes);
    fail_value(m_plan.label, ": ", kind, " of argument ", leaf); // fail_shape always raises
}

void Launch::check_inner(size_t index, const LeafPlan& plan, const Shape& shape)
{
    if (shape.size() != plan.vector_dims + plan.inner.size())
        fail_shape("rank", index, -1, int64_t(shape.size()), int64_t(plan.vector_dims + plan.inner.size()));
    for (size_t i = 0; i < plan.inner.size(); ++i) {
        int64_t got = shape[plan.vector_dims + i];
        if (plan.inner[i] >= 0 && got != plan.inner[i])
            fail_shape("inner", index, int64_t(plan.vector_dims + i), got, plan.inner[i]);
    }
}

void Launch::merge_shape(size_t index, const LeafPlan& plan, const Shape& shape)
{
    for (uint32_t i = 0; i < plan.vector_dims; ++i) {
        int64_t size = shape[i];
        int64_t& call = m_call[plan.map[i]];
        if (size == -1 || size == 1 || size == call)
            continue;
        if (call != 1)
            fail_shape("mismatch", index, plan.map[i], size, call);
        call = size;
    }
}

void Launch::measure()
{
    for (uint32_t i = 0; i < m_plan.call_rank; ++i)
        m_call.push_back(1);
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const LeafPlan& plan = m_plan.leaves[i];
        const Leaf& leaf = m_signature.leaves[i];
        // a CPU number beside CUDA tensors does not decide
        if (leaf.device_type && (!m_torch_like || (m_torch_like->device_type == 1 && leaf.device_type == 2)))
            m_torch_like = &leaf;
        if (plan.writes && leaf.kind == ValueKind::torch)
            check_overlap(i, plan);
        if (plan.kind == LeafKind::view || plan.kind == LeafKind::packed) {
            Shape shape = shape_of(plan, leaf);
            check_inner(i, plan, shape);
            merge_shape(i, plan, shape);
        } else if ((plan.kind == LeafKind::generator || plan.kind == LeafKind::resource) && plan.vector_dims) {
            merge_shape(i, plan, leaf.shape);
        } else if (plan.kind == LeafKind::table) {
            merge_shape(i, plan, plan.table_shape);
        } else if (plan.kind == LeafKind::custom) {
            merge_shape(i, plan, custom_shape(i));
        }
    }
    m_total = m_call.element_count();
}

void Launch::apply_thread_count()
{
    PyObject* count = m_signature.reserved.thread_count;
    if (!count)
        return;
    if (!PyLong_Check(count) || PyBool_Check(count))
        fail_value(m_plan.label, ": _thread_count must be a positive int, got ", Py_TYPE(count)->tp_name);
    int64_t threads = PyLong_AsLongLong(count);
    if (threads <= 0) {
        PyErr_Clear();
        fail_value(m_plan.label, ": _thread_count must be a positive int, got ", short_repr(count));
    }
    if (m_plan.call_rank != 0)
        fail_value(m_plan.label, ": _thread_count needs a zero-dimensional call, but the call rank is ",
                   m_plan.call_rank, " with shape ", m_call.str());
    m_total = threads;
}

/// What a launch counts: tiles of a call in groups, else invocations.
int64_t Launch::tiles() const
{
    if (m_plan.tile.empty())
        return m_total;
    int64_t count = 1;
    for (size_t i = 0; i < m_call.size(); ++i)
        count *= (m_call[i] + m_plan.tile[i] - 1) / m_plan.tile[i];
    return count;
}

std::array<uint32_t, 3> Launch::share_out(const Variant& variant)
{
    const int64_t total = tiles(), tile = m_plan.tile.element_count();
    int64_t per_group = variant.items_per_group;
    if (per_group == 0) { // CPU: blocks large enough to vectorise, small enough to share out
        per_group = variant.max_groups == 1
                        ? total
                        : std::clamp<int64_t>(total / 64, std::max<int64_t>(1024 / tile, 1), std::max<int64_t>(32768 / tile, 1));
        put<int64_t>(m_plan.block_offset, per_group);
        // results beyond the caches are worth writing around them
        put<int64_t>(m_plan.flags_offset, m_aligned && m_total >= (int64_t(1) << 22));
    }
    int64_t groups = (total + per_group - 1) / per_group;
    if (variant.max_groups && variant.items_per_group) {
        // whole periods: what a thread adds to does not change while it strides over the call
        int64_t unit = m_period / std::gcd(m_period, per_group);
        groups = std::min<int64_t>(groups, variant.max_groups);
        groups = std::max<int64_t>(groups / unit, 1) * unit;
    }
    put<int64_t>(m_plan.period_offset, m_period);
    const std::array<uint32_t, 3> count = group_grid(groups);
    if (variant.items_per_group != 0)
        put<int64_t>(m_plan.block_offset, count[0]);
    return count;
}

void Launch::start(const Variant& variant, const std::array<uint32_t, 3>& count)
{
    std::span<const uint8_t> scopes[2] = {{}, {m_bytes.data(), m_bytes.size()}};
    LaunchDesc desc;
    desc.kernel = variant.kernel.get();
    desc.group_count = count;
    desc.stream = m_options.stream.value ? m_options.stream : m_stream;
    ArgumentData data;
    if (m_uniforms.is_valid() && !m_uniforms.is_none()) {
        nb::cast<ShaderObject*>(m_uniforms)->gather(data);
        if (data.scopes.size() < 2)
            data.scopes.resize(2);
        data.scopes[1] = scopes[1];
        data.slots.resize(std::max(data.slots.size(), m_slots.size()));
        for (size_t i = 0; i < m_slots.size(); ++i)
            if (m_slots[i])
                data.slots[i] = m_slots[i];
        for (auto& object : m_keep)
            data.keep_alive.push_back(object);
        desc.arguments = data.arguments();
    } else {
        desc.arguments = {scopes, m_slots, m_keep};
    }
    {
        GilRelease release;
        m_plan.device->launch(desc);
    }
}

void Launch::dispatch()
{
    const Variant& variant = variant_of(choose_variant());
    prepare_sums();
    if (m_plan.bounds_offset >= 0 && !m_signature.reserved.append_to)
        prepare_bounds();
    const std::array<uint32_t, 3> count = share_out(variant);
    if (!m_options.uniforms.is_none() && m_options.uniforms.is_valid())
        m_uniforms = m_options.uniforms(m_plan.view);
    else if (m_plan.needs_globals)
        m_plan.view.attr("fail_unset")();
    if (m_signature.reserved.append_to) {
        record(variant, count);
        return settle_sums();
    }

    start(variant, count);
    if (!m_sums.empty())
        settle_sums();
    if (m_bounds)
        check_bounds();
}

const Variant& Launch::variant_of(VariantKey key)
{
    auto found = m_plan.variants.find(key);
    if (found == m_plan.variants.end()) {
        if (m_signature.has_torch)
            refuse_cold_capture(*m_plan.device, m_options, m_signature.used(), m_plan.view);
        m_plan.view.attr("build_variant")(key);
        found = m_plan.variants.find(key);
        if (found == m_plan.variants.end())
            fail_runtime(m_plan.label, ": no kernel was built for variant ", key);
    }
    return found->second;
}

std::array<uint32_t, 3> Launch::group_grid(int64_t groups) const
{
    const auto& limit = m_plan.device->info().limits.max_compute_dispatch_thread_groups;
    uint32_t limit_x = limit[0] ? limit[0] : 0xffffffffu;
    std::array<uint32_t, 3> count{uint32_t(std::min<int64_t>(groups, limit_x)), 1, 1};
    if (groups > limit_x) { // the kernel recovers the flat group index from x + y * gridDim.x
        count[1] = uint32_t((groups + limit_x - 1) / limit_x);
        if (limit[1] && count[1] > limit[1])
            fail_value(m_plan.label, ": ", m_total, " invocations are more than one dispatch of this device can hold");
    }
    return count;
}

void Launch::record(const Variant& variant, std::array<uint32_t, 3> groups)
{
    nb::handle target(m_signature.reserved.append_to);
    CommandEncoder* encoder = nullptr;
    if (!nb::try_cast(target, encoder) || !encoder)
        fail_value("Expected _append_to to be a CommandEncoder, got ", Py_TYPE(target.ptr())->tp_name);
    encoder->check_recording("append_to");
    if (m_options.stream.value)
        fail_value(m_plan.label, ": Cannot specify a CUDA stream when appending to a command encoder");
    command::Dispatch dispatch;
    dispatch.kernel = variant.kernel;
    dispatch.group_count = groups;
    if (m_uniforms.is_valid() && !m_uniforms.is_none())
        nb::cast<ShaderObject*>(m_uniforms)->copy_to(dispatch.scopes, dispatch.slots, dispatch.keep_alive);
    dispatch.scopes.resize(std::max<size_t>(dispatch.scopes.size(), 2));
    dispatch.scopes[1] = m_bytes;
    dispatch.slots.resize(std::max(dispatch.slots.size(), m_slots.size()));
    for (size_t i = 0; i < m_slots.size(); ++i)
        if (m_slots[i])
            dispatch.slots[i] = m_slots[i];
    dispatch.keep_alive.insert(dispatch.keep_alive.end(), m_keep.begin(), m_keep.end());
    encoder->add(std::move(dispatch));
}

} // namespace spy
