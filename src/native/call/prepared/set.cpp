// Prepared calls: arguments replaced by name, with the checks of a first call.
#include "call/stages/leaves.h"
#include "call/prepared/prepared.h"
#include "call/run.h"
#include "core/class_name.h"
#include "values/numpy.h"
#include "values/torch.h"

#include <utility>

namespace spy {

namespace {

/// What a value is, for messages.
std::string leaf_summary(const Leaf& leaf)
{
    const std::string scalar = leaf.scalar == ScalarType::none ? "" : cat(" of ", scalar_info(leaf.scalar).slang_name);
    const std::string shape = cat(" with shape ", leaf.shape.str());
    switch (leaf.kind) {
    case ValueKind::torch: return cat("a torch tensor", scalar, shape);
    case ValueKind::array: return cat("an array", scalar, shape);
    case ValueKind::tensor: return cat("a Tensor of ", leaf.tensor->layout->full_name, shape);
    case ValueKind::integer: return cat("an int (", scalar_info(leaf.scalar).slang_name, ")");
    case ValueKind::floating: return "a float";
    case ValueKind::boolean: return "a bool";
    case ValueKind::list: return cat("a list", scalar, shape);
    case ValueKind::none: return "None";
    case ValueKind::vector: return cat("a vector", scalar, " with ", leaf.cols, " components");
    case ValueKind::matrix: return cat("a ", leaf.rows, " x ", leaf.cols, " matrix", scalar);
    case ValueKind::unsupported: return cat("a ", class_name(leaf.object));
    default: return cat("a ", to_string(leaf.kind), scalar);
    }
}

bool is_view(const LeafSpec& spec) { return spec.as<ViewSpec>() || spec.as<PackedSpec>() || spec.as<TableSpec>(); }

/// The bytes of a view, from its first to its last; empty without elements.
std::pair<uint64_t, uint64_t> reach_of(const Leaf& leaf)
{
    const int64_t item = leaf.tensor ? int64_t(leaf.tensor->layout->stride) : int64_t(scalar_info(leaf.scalar).size);
    const int64_t unit = leaf.kind == ValueKind::array ? 1 : item;
    int64_t low = 0, high = item;
    for (size_t i = 0; i < leaf.shape.size(); ++i) {
        if (leaf.shape[i] == 0)
            return {0, 0};
        const int64_t reach = (leaf.shape[i] - 1) * leaf.strides[i] * unit;
        (reach < 0 ? low : high) += reach;
    }
    return {leaf.address + uint64_t(low), leaf.address + uint64_t(high)};
}

std::pair<uint64_t, uint64_t> reach_of(const Container& made)
{
    if (made.buffer)
        return {address_of(*made.buffer), address_of(*made.buffer) + made.buffer->desc().size};
    if (!made.object.is_valid() || made.object.is_none())
        return {0, 0};
    if (is_numpy_array(made.object.ptr())) {
        NumpyArray array;
        read_numpy(made.object.ptr(), array);
        const auto address = reinterpret_cast<uint64_t>(array.data);
        return {address, address + nb::cast<uint64_t>(made.object.attr("nbytes"))};
    }
    if (nb::isinstance<Texture>(made.object))
        return {0, 0};
    TorchTensor tensor;
    read_torch(made.object.ptr(), tensor);
    return {tensor.address, tensor.address + uint64_t(tensor.shape.element_count()) * scalar_info(tensor.scalar).size};
}

/// Bits of a variant's key that say which views are crossed, in place of another class.
VariantKey crossed_classes(VariantKey key)
{
    if (!(key & crossed_variant))
        return 0;
    VariantKey found = 0;
    for (uint32_t position = 0; position < max_classed_leaves; ++position) {
        const VariantKey crossed = VariantKey(AccessClass::crossed) << (3 + 2 * position);
        found |= (key & crossed) == crossed ? crossed : 0;
    }
    return found;
}

ArgumentPart& find_part(std::vector<ArgumentPart>& parts, PyObject* name, const std::string& label)
{
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : nullptr;
    if (!text)
        PyErr_Clear();
    const std::string_view path = text ? std::string_view(text, size_t(size)) : std::string_view();
    for (ArgumentPart& part : parts)
        if (part.path == path)
            return part;
    std::string known;
    for (const ArgumentPart& part : parts)
        known += cat(known.empty() ? "" : ", ", part.path);
    fail(ErrorKind::type, label, ": set: no argument '", path, "' of the prepared call; it has ",
         known.empty() ? std::string("none") : known, ": prepare the call again with it");
}

/// A result that the call made must not be what it reads: the next launch writes it.
void check_result(const CallPlan& plan, const Signature& signature, const PreparedChange& change,
                  std::initializer_list<const Container*> results)
{
    for (const Container* made : results) {
        const auto [begin, end] = reach_of(*made);
        for (size_t i = change.part->first; i < change.part->first + change.part->count; ++i) {
            const Leaf& leaf = signature.leaves[i];
            bool meets = made->object.is_valid() && !made->object.is_none() && made->object.is(leaf.object);
            if (leaf.tensor || leaf.device_type || leaf.kind == ValueKind::array) {
                const auto [first, last] = reach_of(leaf);
                meets |= first < end && begin < last;
            }
            if (meets)
                fail_value(plan.label, ": set: argument ", plan.leaves[i].name,
                           " shares memory with the result of the prepared call, which each launch writes; pass a "
                           "copy, or prepare the call with _result=");
        }
    }
}

/// Gradients of a Tensor can be replaced on the object itself.
void check_gradients(const CallPlan& plan, const Signature& signature, std::span<const LeafOwner> owners)
{
    for (size_t i = 0; i < owners.size(); ++i) {
        const Leaf& leaf = signature.leaves[i];
        const auto& grads = owners[i].grads;
        if (leaf.tensor && owners[i].object.is(leaf.object) && grads[0].is_valid() &&
            (!grads[0].is(leaf.tensor->grad_in) || !grads[1].is(leaf.tensor->grad_out)))
            fail_value(plan.label, ": set: the gradients of argument ", plan.leaves[i].name,
                       " are others than when the call was prepared: prepare it again");
    }
}

/// New leaves into their places, or back.
void swap_leaves(Signature& signature, Signature& scratch, const std::vector<PreparedChange>& changes)
{
    for (const PreparedChange& change : changes)
        for (size_t i = 0; i < change.part->count; ++i)
            std::swap(signature.leaves[change.part->first + i], scratch.leaves[change.leaf + i]);
}

/// A field and the argument that it is of cannot both be set at once.
void check_apart(const std::vector<PreparedChange>& changes, const std::string& label)
{
    for (const PreparedChange& a : changes)
        for (const PreparedChange& b : changes)
            if (&a != &b && b.part->path.starts_with(a.part->path + "."))
                fail_value(label, ": set: got both ", a.part->path, " and ", b.part->path,
                           ", which is part of it: set one of them");
}

} // namespace

PreparedChange PreparedCall::read_change(Signature& scratch, PyObject* name, PyObject* given)
{
    ArgumentPart& part = find_part(m_parts, name, m_plan->label);
    nb::object value = nb::borrow(given);
    const bool was_float = part.count == 1 && m_signature.leaves[part.first].kind == ValueKind::floating;
    if (was_float && PyLong_CheckExact(given)) // 3 for 3.0
        value = nb::steal(PyNumber_Float(given));
    if (!value.is_valid())
        throw nb::python_error();
    const size_t key = scratch.key.size(), leaf = scratch.leaf_count, keep = scratch.keep.size();
    walk_part(scratch, value.ptr(), part.path, m_node.ptr());
    const PreparedChange change{&part, std::move(value), leaf, keep, scratch.keep.size()};
    const Leaf& old = m_signature.leaves[part.first];
    if (scratch.key.compare(key, std::string::npos, part.key) != 0 || scratch.leaf_count - leaf != part.count) {
        const std::string expected = leaf_summary(old);
        std::string got = leaf_summary(scratch.leaves[leaf]);
        if (got == expected)
            got += cat(" (", class_name(given), ") whose fields, gradients or writability differ");
        fail(ErrorKind::type, m_plan->label, ": set: argument ", part.path, ": expected ", expected, ", got ", got,
             ": prepare the call again for it");
    }
    return change;
}

/// What is not in the key: sizes, and what a prepared call cannot hold.
void PreparedCall::check_change(const PreparedChange& change, Signature& scratch) const
{
    const ArgumentPart& part = *change.part;
    for (size_t i = 0; i < part.count; ++i) {
        const Leaf& leaf = scratch.leaves[change.leaf + i];
        const Leaf& old = m_signature.leaves[part.first + i];
        const LeafSpec& spec = m_plan->leaves[part.first + i];
        if (!(leaf.shape == old.shape) || leaf.rows != old.rows || leaf.cols != old.cols)
            fail_value(m_plan->label, ": set: argument ", part.count == 1 ? part.path : spec.name, ": expected ",
                       leaf_summary(old), ", got ", leaf_summary(leaf), ": prepare the call again for it");
        check_leaf(part.first + i, leaf);
        int32_t table = -1;
        if (const auto* view = spec.as<ViewSpec>())
            table = view->table;
        else if (const auto* pointer = spec.as<PointerSpec>())
            table = pointer->table;
        if (table >= 0 && (size_t(table) < part.first || size_t(table) >= part.first + part.count))
            fail(ErrorKind::not_implemented, m_plan->label, ": set: argument ", part.path,
                 " is part of a list of containers; set the whole list");
    }
    for (const NativeCopy& native : scratch.native_copies)
        if (native.leaf >= change.leaf)
            fail(ErrorKind::not_implemented, m_plan->label, ": set: argument ", part.path,
                 " is a NumPy array of swapped byte order; pass a copy");
    if (!scratch.updates.empty())
        fail(ErrorKind::not_implemented, m_plan->label, ": set: argument ", part.path, " (",
             class_name(change.value.ptr()), ") has update_this(): prepare the call again for it");
}

/// Checks of the views that a launch will see; gives which kernel runs.
Selected PreparedCall::select_again(const Call& call, const std::vector<PreparedChange>& changes)
{
    check_gradients(*m_plan, m_signature, m_owners);
    for (const PreparedChange& change : changes)
        check_result(*m_plan, m_signature, change, {&m_container, &m_tangent});
    const size_t kept = m_signature.keep.size();
    const Measured measured = measure(call);
    m_signature.keep.resize(kept);
    place(call, measured);
    Selected selected = select(call, measured);
    // reach, alignment, and along which dimensions views lie
    constexpr VariantKey forms = 4 | near_variant | aligned_variant | patch_mask | crossed_variant;
    const VariantKey may_differ = forms | crossed_classes(selected.key) | crossed_classes(m_selected.key);
    if ((selected.key ^ m_selected.key) & ~may_differ)
        fail_value(m_plan->label, ": set: argument ", changes.front().part->path,
                   changes.size() > 1 ? " and others" : "",
                   ": expected strides of the same kind (which dimensions are contiguous or broadcast) as when the "
                   "call was prepared, got others: prepare the call again for it, or pass a contiguous copy");
    return selected;
}

/// The next launch's part of what changes; changes nothing that the call has.
PreparedNext PreparedCall::write_next(std::vector<PreparedChange>& changes)
{
    const Call call = as_call();
    bool moves = false;
    for (const PreparedChange& change : changes)
        for (size_t i = 0; i < change.part->count; ++i)
            moves |= is_view(m_plan->leaves[change.part->first + i]);
    PreparedNext next{{}, moves ? select_again(call, changes) : m_selected, m_ready->kernel, m_ready->groups};
    if (m_measured.total == 0)
        return next;
    next.written.arguments.bytes = m_ready->arguments.bytes;
    next.written.arguments.slots = m_ready->arguments.slots;
    for (PreparedChange& change : changes) {
        rewrite(call, m_measured, next.selected, change.part->first, change.part->count, next.written);
        change.natives = std::exchange(next.written.arguments.keep, {});
        change.ends = std::exchange(next.written.keep_ends, {});
    }
    if (!moves)
        return next;
    const Variant& variant = variant_of(call, next.selected.key);
    next.kernel = variant.kernel;
    next.groups = share_out(call, m_measured, next.selected, variant, next.written.arguments);
    return next;
}

/// What the leaves of a change live from; gives what those before it lived from.
void PreparedCall::replace_owners(PreparedChange& change, Signature& scratch, std::vector<LeafOwner>& old)
{
    const size_t first = change.part->first, count = change.part->count;
    for (size_t i = first; i < first + count; ++i)
        old.push_back(std::exchange(m_owners[i], {}));
    own(first, count, {scratch.keep.data() + change.keep, change.keep_end - change.keep});
    std::vector<ref<Object>> rest = give_keep(std::span(m_owners).subspan(first), change.natives, change.ends);
    auto& natives = m_owners[first].natives;
    natives.insert(natives.end(), rest.begin(), rest.end());
    if (change.part->path == "_result")
        m_result = m_given = change.value;
}

void PreparedCall::take_over(PreparedNext& next, std::vector<PreparedChange>& changes, Signature& scratch)
{
    std::vector<LeafOwner> old; // goes last: it may run Python code
    for (PreparedChange& change : changes)
        replace_owners(change, scratch, old);
    auto is_replaced = [&](size_t leaf) {
        for (const PreparedChange& change : changes)
            if (leaf >= change.part->first && leaf < change.part->first + change.part->count)
                return true;
        return false;
    };
    std::shared_ptr<ReadyLaunch> before = m_ready;
    if (before.use_count() > 2) { // a launch of another thread is under way
        m_ready = std::make_shared<ReadyLaunch>();
        m_ready->uploads = before->uploads;
        m_ready->added = before->added;
    }
    std::erase_if(m_sums, [&](const Sums& sums) { return is_replaced(sums.leaf); });
    m_sums.insert(m_sums.end(), next.written.sums.begin(), next.written.sums.end());
    std::erase_if(m_ready->added, [&](const AddedRange& range) { return is_replaced(range.leaf); });
    m_ready->added.insert(m_ready->added.end(), next.written.added.begin(), next.written.added.end());
    std::erase_if(m_ready->uploads, [&](const auto& upload) { return is_replaced(upload.first); });
    m_ready->take_uploads(next.written.pending);
    m_ready->arguments = std::move(next.written.arguments);
    m_ready->arguments.keep = all_kept(m_natives, m_owners);
    m_ready->kernel = std::move(next.kernel);
    m_ready->groups = next.groups;
    m_ready->merge(globals());
    m_selected = next.selected;
    if (m_signature.has_torch)
        note_written();
    if (before != m_ready)
        for (LeafOwner& owner : old)
            before->retired.push_back(std::move(owner));
}

void PreparedCall::set(nb::handle values)
{
    check_open();
    if (m_is_setting)
        fail_runtime(m_plan->label, ": set: another thread is setting arguments of this prepared call");
    SignatureLease lease;
    Signature& scratch = *lease.signature;
    std::vector<PreparedChange> changes;
    struct Guard {
        bool& flag;
        explicit Guard(bool& flag) : flag(flag) { flag = true; }
        ~Guard() { flag = false; }
    } guard(m_is_setting);
    PyObject *name, *value;
    for (Py_ssize_t next = 0; PyDict_Next(values.ptr(), &next, &name, &value);) {
        changes.push_back(read_change(scratch, name, value));
        check_change(changes.back(), scratch);
    }
    check_apart(changes, m_plan->label);
    swap_leaves(m_signature, scratch, changes);
    try {
        PreparedNext next = write_next(changes);
        take_over(next, changes, scratch);
    } catch (...) {
        swap_leaves(m_signature, scratch, changes);
        throw;
    }
}

} // namespace spy
