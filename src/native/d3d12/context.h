#pragma once
// What an opened adapter has: the device, its queue, what it can do.
#include "d3d12/api.h"

#include "device/device.h"
#include "device/texel_format.h"

namespace spy {

struct D3D12Features {
    D3D12_FEATURE_DATA_D3D12_OPTIONS options{};
    D3D12_FEATURE_DATA_D3D12_OPTIONS1 options1{};
    D3D12_FEATURE_DATA_D3D12_OPTIONS4 options4{};
    int shader_model = 60; ///< 60 ... 66
    bool native_16bit = false;
};

struct D3D12Context {
    D3D12Adapter adapter;
    Com<ID3D12Device> device;
    Com<ID3D12CommandQueue> queue;
    D3D12Features features;
    uint64_t timestamp_frequency = 0;

    /// Throws spy::Error saying what is missing.
    void open(const DeviceDesc& desc);
    void close() noexcept;
    bool is_open() const { return device.get() != nullptr; }
    const std::string& name() const { return adapter.info.name; }
    D3D12_FEATURE_DATA_FORMAT_SUPPORT format_support(Format format) const;
    /// As flags: 1 | 4.
    uint32_t sample_counts(Format format) const;
    void set_name(ID3D12Object* object, const std::string& label) const;
};

} // namespace spy
