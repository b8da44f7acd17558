#pragma once
// What the parts of the write stage share: the record in the making, and one writer for each kind of leaf.
#include "call/stages/leaves.h"

namespace spy {

/// A list of containers: its rows, until they are uploaded.
struct Table {
    size_t leaf;
    std::vector<uint8_t> bytes;
};

struct Writing {
    const Call& call;
    const Measured& measured;
    const Selected& selected;
    Placed& placed;
    Written out{};
    std::vector<Table> tables{};
    bool in_entry = false; ///< an entry of a list is written into the row of its table

    template <typename T>
    void put(int32_t offset, T value)
    {
        out.arguments.put(offset, value);
    }
    void keep(ref<Object> object) { out.arguments.keep.push_back(std::move(object)); }
    const LeafSpec& spec(size_t index) const { return call.plan.leaves[index]; }
    const Leaf& leaf(size_t index) const { return call.leaf(index); }
    const std::string& label() const { return call.plan.label; }
};

void write_leaf(Writing& w, size_t index);
void write_kind(Writing& w, size_t index, const SkipSpec& skip);
void write_kind(Writing& w, size_t index, const ValueSpec& value);
void write_kind(Writing& w, size_t index, const ViewSpec& view);
void write_kind(Writing& w, size_t index, const PackedSpec& packed);
void write_kind(Writing& w, size_t index, const GeneratorSpec& generator);
void write_kind(Writing& w, size_t index, const PointerSpec& pointer);
void write_kind(Writing& w, size_t index, const ResourceSpec& resource);
void write_kind(Writing& w, size_t index, const ReferenceSpec& reference);
void write_kind(Writing& w, size_t index, const CustomSpec& custom);
void write_kind(Writing& w, size_t index, const TableSpec& table);

/// A view of memory, with checks of what kernels can reach.
void write_view(Writing& w, const LeafSpec& spec, const ViewSlot& slot, uint64_t address, const Shape& shape,
                const Shape& strides, uint32_t vectors = 0);
/// An entry of a list of containers: what is stored goes into its row.
void write_entry(Writing& w, size_t index, int32_t table);
void finish_tables(Writing& w);

/// Bytes for the kernel: host memory as it is, else a buffer. Gives the address.
uint64_t upload(Writing& w, size_t leaf, std::vector<uint8_t> bytes, bool write_back, uint32_t item);
/// The numbers of a list, vector or matrix, side by side.
std::vector<uint8_t> pack_numbers(const LeafSpec& spec, const ElementSpec& element, const Leaf& leaf);
/// The elements of a list as the type that a tensor or buffer parameter holds.
std::vector<uint8_t> pack_elements(Writing& w, const LeafSpec& spec, const TypeLayout& layout, const Leaf& leaf);
/// The numbers of a packed list on the device: written by the first call that wants them as this scalar type.
ref<Buffer> packed_buffer(Writing& w, const LeafSpec& spec, const ElementSpec& element, const Leaf& leaf);

void write_value_slot(Writing& w, const ValueSlot& slot, PyObject* value, const std::string& name);
/// Memory for a value that the kernel stores; `object` is null for the result.
uint64_t readback_memory(Writing& w, const std::string& name, PyObject* object, const TypeLayout& layout, ReadTo to);
void note_sums(Writing& w, size_t leaf, const SumSpec& spec, uint64_t address, const Shape& shape,
               const Shape& strides);

/// Throws when `object` is of another device than the call; `what` says which part of the argument it is.
void check_device(const Writing& w, size_t index, const DeviceObject& object, const char* what);
void bind_slot(KernelArguments& arguments, int32_t slot, ref<Object> object);

/// Makes what the call returns, where the call makes it (result.cpp).
void prepare_result(Writing& w);

} // namespace spy
