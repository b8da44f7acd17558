#pragma once
// The rules that turn what a user asked for into the complete descriptors that backends get.
#include "device/device.h"
#include "device/texel_format.h"

#include <optional>

namespace spy {

inline constexpr uint32_t all_mips = 0xffffffff, all_layers = 0xffffffff;

/// Fills in size, struct size and copy usage. `data_size`: bytes of initial data, if any.
BufferDesc resolve_buffer_desc(BufferDesc desc, uint64_t element_count, const TypeLayout* resource_type_layout,
                               std::optional<uint64_t> data_size);
/// Checks dimensions and resolves `all_mips`.
TextureDesc resolve_texture_desc(TextureDesc desc);
/// Clamps counts and fills in the texture's format.
TextureViewDesc resolve_view_desc(const TextureDesc& texture, TextureViewDesc desc);
SubresourceRange resolve_range(const TextureDesc& texture, SubresourceRange range);

/// Throws unless [offset, offset + size) lies in the buffer. `what` names the call and parameter.
Sampler* sampler_of(const Object* texture_or_view);
void check_buffer_range(const Buffer* buffer, uint64_t offset, uint64_t size, const char* what);
/// Throws unless layer and mip exist.
void check_subresource(const TextureDesc& desc, uint32_t layer, uint32_t mip);

void read_buffer(Buffer* buffer, uint64_t offset, void* data, uint64_t size);
void write_buffer(Buffer* buffer, uint64_t offset, const void* data, uint64_t size);

/// "device is closed" when it is.
void check_open(const Device* device);
/// Throws when `object` comes from another device than `device`; `what` names the call and parameter.
/// "another device than the one it is used with ...", for messages.
std::string other_device(const Device& theirs, const Device& ours, const char* use);
/// Throws for the image of a surface that was presented.
void check_current(const DeviceObject* object, const char* what);
void check_same_device(const Device* device, const DeviceObject* object, const char* what);
/// The same, but takes objects of a device on the same native handles, one of the two having been opened on the
/// other's.
void check_bindable(const Device* device, const DeviceObject* object, const char* what);

const char* name_of(MemoryType type);
const char* name_of(TextureType type);
std::string names_of(BufferUsage usage);
std::string names_of(TextureUsage usage);
/// "Buffer 'weights' (4096 bytes)", for reports of what is alive.
std::string summary(const DeviceObject* object);

} // namespace spy
