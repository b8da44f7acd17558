// Prepared calls: arguments replaced by name, with the checks of a first call.
#include "call/leaves.h"
#include "call/prepared.h"
#include "call/run.h"
#include "values/numpy.h"
#include "values/torch.h"

#include <utility>

namespace spy {

/// A new value for a part of the arguments, walked into a signature of its own.
struct PreparedCall::Change {
    ArgumentPart* part;
    nb::object value;
    size_t leaf, keep, keep_end; ///< in the walked signature
    std::vector<ref<Object>> natives{};
    std::vector<size_t> ends{}; ///< of natives, as in Written
};

/// What replaces parts of the launch that is ready.
struct PreparedCall::Next {
    Written written;
    Selected selected;
    ref<Kernel> kernel;
    Groups groups;
};

namespace {

/// What a value is, for messages.
std::string describe_leaf(const Leaf& leaf)
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
    case ValueKind::unsupported: return cat("a ", Py_TYPE(leaf.object)->tp_name);
    default: return cat("a ", to_string(leaf.kind), scalar);
    }
}

bool is_view(const LeafPlan& plan) { return plan.as<ViewPlan>() || plan.as<PackedPlan>() || plan.as<TablePlan>(); }

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

} // namespace

ArgumentPart& PreparedCall::part_of(PyObject* name)
{
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : nullptr;
    if (!text)
        PyErr_Clear();
    const std::string_view path = text ? std::string_view(text, size_t(size)) : std::string_view();
    for (ArgumentPart& part : m_parts)
        if (part.path == path)
            return part;
    std::string known;
    for (const ArgumentPart& part : m_parts)
        known += cat(known.empty() ? "" : ", ", part.path);
    fail(ErrorKind::type, m_plan->label, ": set: no argument '", path, "' of the prepared call; it has ",
         known.empty() ? std::string("none") : known, ": prepare the call again with it");
}

PreparedCall::Change PreparedCall::read_change(Signature& scratch, PyObject* name, PyObject* given)
{
    ArgumentPart& part = part_of(name);
    nb::object value = nb::borrow(given);
    const bool was_float = part.count == 1 && m_signature.leaves[part.first].kind == ValueKind::floating;
    if (was_float && PyLong_CheckExact(given)) // 3 for 3.0
        value = nb::steal(PyNumber_Float(given));
    if (!value.is_valid())
        throw nb::python_error();
    const size_t key = scratch.key.size(), leaf = scratch.leaf_count, keep = scratch.keep.size();
    walk_part(scratch, value.ptr(), part.path, m_node.ptr());
    const Change change{&part, std::move(value), leaf, keep, scratch.keep.size()};
    const Leaf& old = m_signature.leaves[part.first];
    if (scratch.key.compare(key, std::string::npos, part.key) != 0 || scratch.leaf_count - leaf != part.count) {
        const std::string expected = describe_leaf(old);
        std::string got = describe_leaf(scratch.leaves[leaf]);
        if (got == expected)
            got += cat(" (", Py_TYPE(given)->tp_name, ") whose fields, gradients or writability differ");
        fail(ErrorKind::type, m_plan->label, ": set: argument ", part.path, ": expected ", expected, ", got ", got,
             ": prepare the call again for it");
    }
    return change;
}

/// What is not in the key: sizes, and what a prepared call cannot hold.
void PreparedCall::check_change(const Change& change, Signature& scratch) const
{
    const ArgumentPart& part = *change.part;
    for (size_t i = 0; i < part.count; ++i) {
        const Leaf& leaf = scratch.leaves[change.leaf + i];
        const Leaf& old = m_signature.leaves[part.first + i];
        const LeafPlan& plan = m_plan->leaves[part.first + i];
        if (!(leaf.shape == old.shape) || leaf.rows != old.rows || leaf.cols != old.cols)
            fail_value(m_plan->label, ": set: argument ", part.count == 1 ? part.path : plan.name, ": expected ",
                       describe_leaf(old), ", got ", describe_leaf(leaf), ": prepare the call again for it");
        check_leaf(part.first + i, leaf);
        int32_t table = -1;
        if (const auto* view = plan.as<ViewPlan>())
            table = view->table;
        else if (const auto* pointer = plan.as<PointerPlan>())
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
             Py_TYPE(change.value.ptr())->tp_name, ") has update_this(): prepare the call again for it");
}

/// A result that the call made must not be what it reads: the next launch writes it.
void PreparedCall::check_result(const Change& change) const
{
    for (const Container* made : {&m_container, &m_tangent}) {
        const auto [begin, end] = reach_of(*made);
        for (size_t i = change.part->first; i < change.part->first + change.part->count; ++i) {
            const Leaf& leaf = m_signature.leaves[i];
            bool meets = made->object.is_valid() && !made->object.is_none() && made->object.is(leaf.object);
            if (leaf.tensor || leaf.device_type || leaf.kind == ValueKind::array) {
                const auto [first, last] = reach_of(leaf);
                meets |= first < end && begin < last;
            }
            if (meets)
                fail_value(m_plan->label, ": set: argument ", m_plan->leaves[i].name,
                           " shares memory with the result of the prepared call, which each launch writes; pass a "
                           "copy, or prepare the call with _result=");
        }
    }
}

/// Gradients of a Tensor can be replaced on the object itself.
void PreparedCall::check_gradients() const
{
    for (size_t i = 0; i < m_owners.size(); ++i) {
        const Leaf& leaf = m_signature.leaves[i];
        const auto& grads = m_owners[i].grads;
        if (leaf.tensor && m_owners[i].object.is(leaf.object) && grads[0].is_valid() &&
            (!grads[0].is(leaf.tensor->grad_in) || !grads[1].is(leaf.tensor->grad_out)))
            fail_value(m_plan->label, ": set: the gradients of argument ", m_plan->leaves[i].name,
                       " are others than when the call was prepared: prepare it again");
    }
}

/// New leaves into their places, or back.
void PreparedCall::swap_leaves(Signature& scratch, const std::vector<Change>& changes)
{
    for (const Change& change : changes)
        for (size_t i = 0; i < change.part->count; ++i)
            std::swap(m_signature.leaves[change.part->first + i], scratch.leaves[change.leaf + i]);
}

/// Checks of the views that a launch will see; gives which kernel runs.
Selected PreparedCall::select_again(const Call& call, const std::vector<Change>& changes)
{
    check_gradients();
    for (const Change& change : changes)
        check_result(change);
    const size_t kept = m_signature.keep.size();
    const Measured measured = measure(call);
    m_signature.keep.resize(kept);
    place(call, measured);
    Selected selected = select(call, measured);
    constexpr VariantKey alignment = 4;
    if ((selected.key ^ m_selected.key) & ~alignment)
        fail_value(m_plan->label, ": set: argument ", changes.front().part->path,
                   changes.size() > 1 ? " and others" : "",
                   ": expected strides of the same kind (which dimensions are contiguous or broadcast) as when the "
                   "call was prepared, got others: prepare the call again for it, or pass a contiguous copy");
    return selected;
}

/// The next launch's part of what changes; changes nothing that the call has.
PreparedCall::Next PreparedCall::write_next(std::vector<Change>& changes)
{
    const Call call = as_call();
    bool moves = false;
    for (const Change& change : changes)
        for (size_t i = 0; i < change.part->count; ++i)
            moves |= is_view(m_plan->leaves[change.part->first + i]);
    Next next{{}, moves ? select_again(call, changes) : m_selected, m_ready->kernel, m_ready->groups};
    if (m_measured.total == 0)
        return next;
    next.written.arguments.bytes = m_ready->arguments.bytes;
    next.written.arguments.slots = m_ready->arguments.slots;
    for (Change& change : changes) {
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
void PreparedCall::replace_owners(Change& change, Signature& scratch, std::vector<LeafOwner>& old)
{
    const size_t first = change.part->first, count = change.part->count;
    for (size_t i = first; i < first + count; ++i)
        old.push_back(std::exchange(m_owners[i], {}));
    own(first, count, {scratch.keep.data() + change.keep, change.keep_end - change.keep});
    std::vector<ref<Object>> rest = give_keep(first, change.natives, change.ends);
    auto& natives = m_owners[first].natives;
    natives.insert(natives.end(), rest.begin(), rest.end());
    if (change.part->path == "_result")
        m_result = m_given = change.value;
}

void PreparedCall::settle(Next& next, std::vector<Change>& changes, Signature& scratch)
{
    std::vector<LeafOwner> old; // goes last: it may run Python code
    for (Change& change : changes)
        replace_owners(change, scratch, old);
    auto is_replaced = [&](size_t leaf) {
        for (const Change& change : changes)
            if (leaf >= change.part->first && leaf < change.part->first + change.part->count)
                return true;
        return false;
    };
    std::shared_ptr<ReadyLaunch> before = m_ready;
    if (before.use_count() > 2) { // a launch of another thread is under way
        m_ready = std::make_shared<ReadyLaunch>();
        m_ready->uploads = before->uploads;
    }
    std::erase_if(m_sums, [&](const Sums& sums) { return is_replaced(sums.leaf); });
    m_sums.insert(m_sums.end(), next.written.sums.begin(), next.written.sums.end());
    std::erase_if(m_ready->uploads, [&](const auto& upload) { return is_replaced(upload.first); });
    take_uploads(next.written.pending);
    m_ready->arguments = std::move(next.written.arguments);
    gather_keep(m_ready->arguments.keep);
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
    std::vector<Change> changes;
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
    check_apart(changes);
    swap_leaves(scratch, changes);
    try {
        Next next = write_next(changes);
        settle(next, changes, scratch);
    } catch (...) {
        swap_leaves(scratch, changes);
        throw;
    }
}

/// A field and the argument that it is of cannot both be set at once.
void PreparedCall::check_apart(const std::vector<Change>& changes) const
{
    for (const Change& a : changes)
        for (const Change& b : changes)
            if (&a != &b && b.part->path.starts_with(a.part->path + "."))
                fail_value(m_plan->label, ": set: got both ", a.part->path, " and ", b.part->path,
                           ", which is part of it: set one of them");
}

} // namespace spy
