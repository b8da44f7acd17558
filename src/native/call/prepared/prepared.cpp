// Prepared calls: how they are made, and their launches.
#include "call/prepared/prepared.h"

#include "call/run.h"
#include "call/stages/write/writing.h"
#include "core/class_name.h"
#include "core/gil.h"
#include "values/torch.h"

#include <utility>

namespace spy {

void ReadyLaunch::merge(ShaderObject* object)
{
    guards.clear();
    if (!object) {
        add_guards(arguments.slots, guards);
        add_guards(arguments.keep, guards);
        return;
    }
    globals = {};
    object->gather(globals);
    globals.scopes.resize(std::max<size_t>(globals.scopes.size(), 2));
    globals.scopes[1] = {arguments.bytes.data(), arguments.bytes.size()};
    merge_slots(globals.slots, arguments.slots);
    globals.keep_alive.insert(globals.keep_alive.end(), arguments.keep.begin(), arguments.keep.end());
    has_globals = true;
    add_guards(globals.slots, guards);
    add_guards(globals.keep_alive, guards);
}

void ReadyLaunch::take_uploads(Pending& pending)
{
    for (Upload& upload : pending.uploads)
        if (!upload.buffer)
            uploads.emplace_back(upload.leaf, std::make_shared<std::vector<uint8_t>>(std::move(upload.bytes)));
}

namespace {

/// Arguments by position get the names of their parameters.
void name_parts(std::vector<ArgumentPart>& parts, const CallPlan& plan)
{
    std::erase_if(parts, [&](const ArgumentPart& part) {
        return part.count == 0 || part.first + part.count > plan.leaves.size();
    });
    for (ArgumentPart& part : parts) {
        const size_t end = std::min(part.path.find('.'), part.path.size());
        if (part.path.find_first_not_of("0123456789") < end)
            continue;
        std::string name;
        for (size_t i = part.first; name.empty() && i < plan.leaves.size(); ++i)
            name = plan.leaves[i].name; // of a dict, its first field's
        part.path = name.substr(0, name.find_first_of(".[")) + part.path.substr(end);
    }
}

} // namespace

PreparedCall::PreparedCall(nb::handle node, nb::args args, nb::kwargs kwargs) : m_node(nb::borrow(node))
{
    m_options = site_of(node).run;
    PlannedCall planned = plan_prepared(node, args, kwargs, m_signature, m_parts);
    m_plan = std::move(planned.plan);
    m_given = std::move(planned.given);
    if (m_signature.reserved.thread_count)
        m_signature.keep.push_back(nb::borrow(m_signature.reserved.thread_count));
    name_parts(m_parts, *m_plan);
    prepare();
}

Call PreparedCall::as_call() const
{
    return {*m_plan,
            m_signature,
            m_options,
            m_plan->device->info().on_host,
            nullptr,
            true,
            m_globals.is_valid() ? &m_globals : nullptr};
}

void PreparedCall::check_open() const
{
    if (!m_ready) // by Python's garbage collector, or never made
        fail_runtime("the prepared call was already cleared, or its __init__() never ran; prepare the function again");
    if (m_plan->device->is_closed())
        m_plan->device->fail_closed();
}

void PreparedCall::check_leaf(size_t index, const Leaf& leaf) const
{
    const Call call = as_call();
    const LeafSpec& spec = m_plan->leaves[index];
    if (leaf.kind == ValueKind::value_ref || leaf.kind == ValueKind::diff_pair)
        refuse_prepared(call, "argument ", spec.name, " is a ", class_name(leaf.object),
                        ", which is read and written on the host at each call; pass a Tensor (of shape () for one "
                        "value)");
    if (spec.as<CustomSpec>())
        refuse_prepared(call, "argument ", spec.name, " is a ", class_name(leaf.object),
                        ", whose class is asked at each call; pass what it stands for");
    const bool is_derivative = nb::inst_ptr<CallSite>(m_node)->is_bwds;
    if (leaf.device_type && !is_derivative && torch_requires_grad(leaf.object))
        refuse_prepared(call, "argument ", spec.name, " requires grad, but prepared calls join no torch graph; pass ",
                        spec.name, ".detach()");
}

/// Takes what leaves of a walk borrow.
void PreparedCall::own(size_t first, size_t count, std::span<const nb::object> keep)
{
    for (size_t i = first; i < first + count; ++i) {
        Leaf& leaf = m_signature.leaves[i];
        LeafOwner& owner = m_owners[i];
        if (m_plan->leaves[i].as<SkipSpec>()) // a dict, whose fields may be replaced
            leaf.object = nullptr;
        owner.object = nb::borrow(leaf.object);
        if (leaf.packed)
            owner.keep.push_back(nb::find(leaf.packed));
        if (leaf.tensor)
            owner.grads = {leaf.tensor->grad_in, leaf.tensor->grad_out};
        for (TensorBase*& grad : leaf.grads) {
            if (!grad)
                continue;
            owner.tensors.push_back(std::make_unique<TensorBase>(*grad));
            grad = owner.tensors.back().get();
        }
    }
    if (count)
        m_owners[first].keep.insert(m_owners[first].keep.end(), keep.begin(), keep.end());
}

std::vector<ref<Object>> give_keep(std::span<LeafOwner> owners, std::vector<ref<Object>>& keep,
                                   std::span<const size_t> ends)
{
    std::vector<ref<Object>> rest = std::exchange(keep, {});
    for (size_t i = 0; i + 1 < ends.size(); ++i)
        owners[i].natives.assign(rest.begin() + ptrdiff_t(ends[i]), rest.begin() + ptrdiff_t(ends[i + 1]));
    if (!ends.empty())
        rest.erase(rest.begin() + ptrdiff_t(ends.front()), rest.begin() + ptrdiff_t(ends.back()));
    return rest;
}

std::vector<ref<Object>> all_kept(const std::vector<ref<Object>>& natives, std::span<const LeafOwner> owners)
{
    std::vector<ref<Object>> keep = natives;
    for (const LeafOwner& owner : owners)
        keep.insert(keep.end(), owner.natives.begin(), owner.natives.end());
    return keep;
}

void PreparedCall::prepare()
{
    if (m_plan->device->is_closed())
        m_plan->device->fail_closed();
    const size_t count = m_plan->leaves.size();
    Call call = as_call();
    for (size_t i = 0; i < count; ++i)
        check_leaf(i, m_signature.leaves[i]);
    for (const NativeCopy& native : m_signature.native_copies)
        refuse_prepared(call, "argument ", m_plan->leaves[native.leaf].name,
                        " is a NumPy array of swapped byte order, which is copied at each call; pass a copy");
    if (m_plan->result.mode == ResultMode::custom)
        refuse_prepared(call,
                        "the result is of a registered class, which is asked at each call; pass a Tensor as _result");
    m_owners.resize(count);
    m_signature.leaves.resize(m_signature.leaf_count); // so many for good: what follows points into them
    m_measured = measure(call);
    Placed placed = place(call, m_measured);
    m_selected = select(call, m_measured);
    Written written = write(call, m_measured, m_selected, std::move(placed));
    own(0, count, {});
    m_natives = give_keep(m_owners, written.arguments.keep, written.keep_ends);
    m_container = std::move(written.pending.result);
    m_tangent = std::move(written.pending.tangent);
    make_ready(call, written);
    note_result(call);
    note_written();
}

/// The first launch as it will be sent.
void PreparedCall::make_ready(const Call& call, Written& written)
{
    m_ready = std::make_shared<ReadyLaunch>();
    m_sums = std::move(written.sums);
    if (m_measured.total > 0) {
        const Variant& variant = variant_of(call, m_selected.key);
        m_ready->groups = share_out(call, m_measured, m_selected, variant, written.arguments);
        m_ready->kernel = variant.kernel;
        m_globals = find_globals(call, variant);
        if (!m_globals.is_valid())
            m_globals = nb::none();
    }
    m_ready->arguments = std::move(written.arguments);
    m_ready->added = std::move(written.added);
    m_ready->take_uploads(written.pending);
    m_ready->arguments.keep = all_kept(m_natives, m_owners);
    m_ready->merge(globals());
}

ShaderObject* PreparedCall::globals() const
{
    return m_globals.is_valid() && !m_globals.is_none() ? nb::cast<ShaderObject*>(m_globals) : nullptr;
}

/// What a launch gives, where that is the same object each time.
void PreparedCall::note_result(const Call& call)
{
    const ResultMode mode = m_plan->result.mode;
    m_is_plain = m_sums.empty() && m_plan->offsets.bounds < 0 && m_signature.updates.empty() &&
        !m_plan->traits.keeps_memory && mode != ResultMode::value && !(mode == ResultMode::numpy && !call.on_host) &&
        !(mode == ResultMode::torch && m_container.buffer);
    if (mode == ResultMode::leaf)
        m_result = m_given;
    else if (m_is_plain) {
        Pending pending;
        pending.result = m_container;
        pending.tangent = m_tangent;
        m_result = finish(call, m_measured, std::move(pending));
    }
}

/// The torch tensors that a launch writes.
void PreparedCall::note_written()
{
    nb::list written;
    for (size_t i = 0; i < m_plan->leaves.size(); ++i)
        if (m_signature.leaves[i].device_type && m_plan->leaves[i].writes)
            written.append(nb::handle(m_signature.leaves[i].object));
    for (const Container* made : {&m_container, &m_tangent})
        if (m_plan->result.mode == ResultMode::torch && made->object.is_valid())
            written.append(made->object);
    m_written = written.size() ? nb::object(nb::tuple(written)) : nb::object();
}

std::vector<std::string> PreparedCall::names() const
{
    std::vector<std::string> names;
    for (const ArgumentPart& part : m_parts)
        names.push_back(part.path);
    return names;
}

void PreparedCall::clear()
{
    m_ready.reset(); // its pointers point to what goes now
    const auto owners = std::exchange(m_owners, std::vector<LeafOwner>(1));
    const std::array old{std::exchange(m_given, {}),          std::exchange(m_globals, {}),
                         std::exchange(m_result, {}),         std::exchange(m_container.object, {}),
                         std::exchange(m_tangent.object, {}), std::exchange(m_options.uniforms, {})};
    m_signature.clear();
    m_written = nb::object();
}

nb::object PreparedCall::launch()
{
    check_open();
    const std::shared_ptr<ReadyLaunch> ready = m_ready; // set() of another thread leaves it as it is
    check_guards(ready->guards);
    if (m_written.is_valid())
        bump_torch_versions(m_written.ptr());
    const NativeHandle stream = torch_call_stream(m_options, m_measured.torch_like);
    if (!m_is_plain)
        return launch_staged(*ready, stream);
    nb::object result = m_result;
    if (m_measured.total == 0)
        return result;
    const KernelArguments& own = ready->arguments;
    const std::span<const uint8_t> scopes[2] = {{}, {own.bytes.data(), own.bytes.size()}};
    LaunchDesc desc;
    desc.kernel = ready->kernel.get();
    desc.group_count = ready->groups;
    desc.stream = stream;
    desc.shape = m_measured.shape.dims();
    desc.added = ready->added;
    desc.arguments = ready->has_globals ? ready->globals.arguments() : Arguments{scopes, own.slots, own.keep};
    {
        GilRelease release;
        m_plan->device->launch(desc);
    }
    return result;
}

/// With what comes back to the host, sums to add up or indices to check.
nb::object PreparedCall::launch_staged(const ReadyLaunch& ready, NativeHandle stream)
{
    const Call call = as_call();
    Measured measured;
    measured.shape = m_measured.shape;
    measured.total = m_measured.total;
    measured.torch_like = m_measured.torch_like;
    measured.stream = stream;
    Placed placed;
    Writing w{call, measured, m_selected, placed};
    w.out.arguments = ready.arguments;
    w.out.sums = m_sums;
    w.out.added = ready.added;
    if (m_plan->result.mode == ResultMode::value) {
        prepare_result(w); // memory of this launch
    } else {
        w.out.pending.result = m_container;
        w.out.pending.tangent = m_tangent;
    }
    nb::object given = m_given;
    nb::object result = finish(call, measured, dispatch(call, measured, m_selected, std::move(w.out)));
    return m_plan->result.mode == ResultMode::leaf ? given : result;
}

} // namespace spy
