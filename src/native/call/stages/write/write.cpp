// The kernel's arguments: what each leaf stores, by its kind.
#include "call/stages/repeat.h"
#include "call/stages/write/writing.h"
#include "values/writer.h"

#include <bit>

namespace spy {

namespace {

/// Errors of values are those of an argument of this function.
void write_named(Writing& w, size_t index)
{
    try {
        write_leaf(w, index);
    } catch (const Error& error) { // values are written by code that knows parameters only
        std::string text = error.what();
        throw Error(error.kind(), text.starts_with(w.label()) ? text : cat(w.label(), ": argument ", text));
    }
}

void write_leaves(Writing& w, size_t first, size_t count)
{
    auto note = [&] {
        if (w.call.is_prepared)
            w.out.keep_ends.push_back(w.out.arguments.keep.size());
    };
    note();
    for (size_t i = first; i < first + count; ++i) {
        write_named(w, i);
        note();
    }
    finish_tables(w);
}

/// Gradients that kernels add to begin at zero; those that they store may hold anything.
void clear_gradients(Writing& w)
{
    if (!w.call.signature.has_torch)
        return;
    for (size_t i = 0; i < w.call.leaf_count(); ++i)
        if (i >= 64 || !(w.selected.stores >> i & 1))
            clear_fresh(w.leaf(i));
}

/// What a kernel multiplies by instead of dividing by a size: n / size is (n * m / 2^32 + n) / 2^s for n below 2^31,
/// with 2^s the least power of two that is not below size, and m = 2^32 (2^s - size) / size + 1 (Granlund and
/// Montgomery, Division by Invariant Integers using Multiplication, 1994). m in the low bits, s above.
uint64_t divisor_of(int64_t size)
{
    if (size < 1 || size > int64_t(1) << 31)
        return 0; // such calls have 64-bit indices, or none
    const uint32_t shift = uint32_t(std::bit_width(uint64_t(size - 1)));
    const uint64_t multiplier = (((uint64_t(1) << shift) - uint64_t(size)) << 32) / uint64_t(size) + 1;
    return uint64_t(shift) << 32 | multiplier;
}

void write_call_fields(Writing& w)
{
    const CallOffsets& offsets = w.call.plan.offsets;
    const Shape& shape = w.measured.shape;
    w.put<int64_t>(offsets.total, tiles(w.call, w.measured));
    for (size_t i = 0; i < shape.size() && offsets.shape >= 0; ++i)
        w.put<int64_t>(offsets.shape + int32_t(8 * i), shape[i]);
    for (size_t i = 1; i < shape.size() && offsets.divisor >= 0; ++i)
        w.put<uint64_t>(offsets.divisor + int32_t(8 * i), divisor_of(shape[i]));
}

/// Of a call without invocations: a sum over nothing is zero.
void write_empty(Writing& w)
{
    for (size_t i = 0; i < w.call.leaf_count(); ++i)
        if (const auto* reference = w.spec(i).as<ReferenceSpec>(); reference && reference->out_is_grad)
            write_leaf(w, i);
}

/// What a launch keeps alive of a view that is written already.
void keep_view(Writing& w, size_t index, const ViewSpec& view)
{
    const Leaf& leaf = w.leaf(index);
    if (leaf.kind != ValueKind::tensor || (w.call.on_host && !w.call.recorder))
        return;
    for (size_t i = 0; i < size_t(ViewSource::count_); ++i)
        if (view.has(ViewSource(i)))
            w.keep(ref<Object>(tensor_of(leaf, ViewSource(i)).storage.get()));
}

} // namespace

Written write_views(const Call& call, const Measured& measured, const Selected& selected)
{
    Placed placed;
    Writing w{call, measured, selected, placed};
    w.out.arguments.bytes.assign(call.plan.argument_size, 0);
    for (size_t i = 0; i < call.leaf_count(); ++i)
        if (call.plan.leaves[i].as<ViewSpec>())
            write_leaf(w, i);
    write_call_fields(w);
    return std::move(w.out);
}

Written write_again(const Call& call, const Measured& measured, const Repeat& repeat)
{
    Placed placed;
    Writing w{call, measured, repeat.selected, placed};
    w.out.arguments.bytes = repeat.bytes;
    w.out.sums = repeat.sums;
    w.out.added = repeat.added;
    clear_gradients(w);
    prepare_result(w);
    for (size_t i = 0; i < call.leaf_count(); ++i)
        if (const auto* view = call.plan.leaves[i].as<ViewSpec>())
            keep_view(w, i, *view);
        else
            write_named(w, i);
    return std::move(w.out);
}

void rewrite(const Call& call, const Measured& measured, const Selected& selected, size_t first, size_t count,
             Written& written)
{
    Placed placed;
    Writing w{call, measured, selected, placed, std::move(written)};
    write_leaves(w, first, count);
    written = std::move(w.out);
}

void write_leaf(Writing& w, size_t index)
{
    try {
        std::visit([&](const auto& kind) { write_kind(w, index, kind); }, w.spec(index).kind);
    } catch (const std::bad_cast&) {
        fail(ErrorKind::type, w.label(), ": argument ", w.spec(index).name, ": the ", class_name(w.leaf(index).object),
             " was never made: its __init__ did not run");
    } catch (const std::bad_alloc&) {
        fail(ErrorKind::memory, w.label(), ": argument ", w.spec(index).name, ": no memory for a copy of shape ",
             w.leaf(index).shape.str(), "; pass a contiguous array or a Tensor");
    } catch (const std::length_error&) {
        fail(ErrorKind::memory, w.label(), ": argument ", w.spec(index).name, ": a copy of shape ",
             w.leaf(index).shape.str(), " would not fit into memory; pass a contiguous array or a Tensor");
    }
}

void write_kind(Writing&, size_t, const SkipSpec&) { }

void write_entry(Writing& w, size_t index, int32_t of)
{
    for (Table& table : w.tables) {
        if (table.leaf != size_t(of))
            continue;
        std::vector<uint8_t>& bytes = w.out.arguments.bytes;
        bytes.swap(table.bytes);
        w.in_entry = true;
        write_leaf(w, index); // what it throws ends the call
        bytes.swap(table.bytes);
        w.in_entry = false;
    }
}

void write_kind(Writing& w, size_t index, const TableSpec& table)
{
    w.tables.push_back({index, std::vector<uint8_t>(table.bytes)});
}

void finish_tables(Writing& w)
{
    for (Table& table : w.tables) {
        if (table.bytes.empty()) // a list of generators or resources: only its shape counts
            continue;
        const LeafSpec& spec = w.spec(table.leaf);
        const TableSpec& own = *spec.as<TableSpec>();
        const uint64_t address = upload(w, table.leaf, std::move(table.bytes), false, 1);
        write_view(w, spec, own.view, address, own.shape, own.shape.contiguous_strides());
    }
}

uint64_t upload(Writing& w, size_t leaf, std::vector<uint8_t> bytes, bool write_back, uint32_t item)
{
    Upload upload{leaf, {}, {}, write_back, item};
    if (bytes.empty()) // the kernel of a function that reads the first element of nothing must not end the process
        bytes.resize(16);
    uint64_t address;
    if (w.call.on_host && !w.call.recorder) {
        upload.bytes = std::move(bytes);
        address = reinterpret_cast<uint64_t>(upload.bytes.data());
    } else {
        const std::string& name = w.spec(leaf).name;
        refuse_in_capture(w.call, w.measured, "argument ", name, " is copied from the host (pass a torch tensor)");
        upload.buffer = temporary_buffer(w.call, bytes.size(), "argument " + name);
        w.call.plan.device->write_buffer(upload.buffer, 0, bytes.data(), bytes.size());
        address = upload.buffer->device_address();
        w.keep(ref<Object>(upload.buffer.get()));
    }
    w.out.pending.uploads.push_back(std::move(upload));
    return address;
}

Written write(const Call& call, const Measured& measured, const Selected& selected, Placed&& placed)
{
    Writing w{call, measured, selected, placed};
    w.out.arguments.bytes.assign(call.plan.argument_size, 0);
    clear_gradients(w);
    prepare_result(w);
    if (measured.total > 0 || call.recorder) {
        write_leaves(w, 0, call.leaf_count());
        write_call_fields(w);
    } else {
        write_empty(w);
    }
    for (auto& object : placed.keep)
        w.keep(std::move(object));
    w.out.pending.shared = std::move(placed.shared);
    return std::move(w.out);
}

} // namespace spy
