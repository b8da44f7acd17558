#pragma once
// Descriptor handles: numbers by which kernels reach buffers, textures and samplers that are bound nowhere. A backend
// makes one on the first request; it lasts as long as the object.
#include "device/device.h"

namespace spy {

/// What a kernel gets. Two of an object and type are equal.
struct DescriptorHandle {
    DescriptorHandleType type = DescriptorHandleType::undefined;
    uint64_t value = 0; ///< Vulkan, null: index of its table; CPU, CUDA: address, or the driver's object
    /// Where a handle takes 16 bytes, the other 8 of them: of buffers their size, of textures their sampler.
    uint64_t extra = 0;
    uint64_t id = 0; ///< of this handle alone in this process

    bool operator==(const DescriptorHandle&) const = default;
};

/// "buffer", "rw_texture", ...
const char* name_of(DescriptorHandleType type);

/// That of an object; made on the first request. Undefined for combined handles where there is no sampler. `call` names
/// what the user asked for. Throws NotImplementedError without the feature 'bindless', ValueError without the usage
/// flag, MemoryError when the device's table is full.
DescriptorHandle handle_of(DeviceObject* object, DescriptorHandleType type, const char* call);

/// Whether kernels may reach it by a handle.
bool has_handles(const DeviceObject* object);

/// The backend's device of a handle whose object lives; null where it does not.
const Device* device_of(const DescriptorHandle& handle);
/// The living handle of a device by what a kernel gets of it; undefined where there is none.
DescriptorHandle find_handle(const Device* device, DescriptorHandleType type, uint64_t value);

/// Writes a handle where `layout` is a DescriptorHandle<T>, of the target's size. The caller has checked the type.
void store_handle(const TypeLayout& layout, uint8_t* bytes, const DescriptorHandle& handle);

/// Indices of a table of fixed size.
class HandleSlots {
public:
    /// MemoryError when all are taken; `kind` ("texture") and `option` name the table.
    uint64_t take(uint32_t capacity, const char* kind, const char* option);
    void give_back(uint64_t index) { m_free.push_back(index); }

private:
    uint64_t m_used = 0;
    std::vector<uint64_t> m_free;
};

/// The tables of a device, for backends whose handles are indices. Textures that are read, written or combined share
/// one. Not thread-safe.
class HandleTables {
public:
    uint64_t take(const BindlessDesc& sizes, DescriptorHandleType type);
    void give_back(DescriptorHandleType type, uint64_t index);

private:
    HandleSlots m_buffers, m_textures, m_samplers, m_structures;
};

} // namespace spy
