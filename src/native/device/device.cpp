#include "device/device.h"

#include "core/error.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace spy {

// Recursive: releasing an object may destroy others, which then leave the registry.
struct Device::Registry {
    std::recursive_mutex mutex;
    std::unordered_map<DeviceObject*, uint64_t> objects;
    uint64_t next = 0;
};

Device::Device() : m_registry(std::make_unique<Registry>()) {}
Device::~Device() = default;

void Device::add_object(DeviceObject* object)
{
    std::lock_guard lock(m_registry->mutex);
    m_registry->objects.emplace(object, m_registry->next++);
}

void Device::remove_object(DeviceObject* object) noexcept
{
    std::lock_guard lock(m_registry->mutex);
    m_registry->objects.erase(object);
}

void Device::for_each_object(const std::function<void(DeviceObject*)>& visit)
{
    std::lock_guard lock(m_registry->mutex);
    std::vector<std::pair<uint64_t, DeviceObject*>> ordered;
    for (auto [object, number] : m_registry->objects)
        ordered.emplace_back(number, object);
    std::sort(ordered.begin(), ordered.end());
    for (auto [number, object] : ordered)
        visit(object);
}

void Device::close()
{
    if (m_closed)
        return;
    const ref<Device> self(this); // releasing the last object must not end the device under our feet
    m_closed = true;
    std::exception_ptr fault;
    try {
        wait(last_submit_id(), ~0ull);
    } catch (...) {
        fault = std::current_exception();
    }
    {
        // Newest first: views before textures, command buffers before what they name.
        std::lock_guard lock(m_registry->mutex);
        std::vector<std::pair<uint64_t, DeviceObject*>> ordered;
        for (auto [object, number] : m_registry->objects)
            ordered.emplace_back(number, object);
        std::sort(ordered.rbegin(), ordered.rend());
        for (auto [number, object] : ordered) {
            auto it = m_registry->objects.find(object);
            if (it == m_registry->objects.end() || it->second != number)
                continue;
            m_registry->objects.erase(it);
            object->release();
        }
    }
    close_backend();
    if (fault)
        std::rethrow_exception(fault);
}

bool Device::has_feature(std::string_view name) const
{
    return std::find(m_info.features.begin(), m_info.features.end(), name) != m_info.features.end();
}

void Device::sync_to_stream(NativeHandle) { fail_runtime("Device does not support CUDA interop"); }
void Device::sync_stream_to(NativeHandle) { fail_runtime("Device does not support CUDA interop"); }

DeviceObject::DeviceObject(ref<Device> device) : m_device(std::move(device)) { m_device->add_object(this); }
DeviceObject::~DeviceObject() { m_device->remove_object(this); }
void DeviceObject::set_frontend(Device* device) { m_frontend = device; }

} // namespace spy
