#include "device/device.h"

#include "core/error.h"
#include "core/interrupt.h"
#include "device/render.h"
#include "device/surface.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#ifndef _WIN32
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>
#endif

namespace spy {

struct Device::Registry {
    std::mutex mutex;
    std::unordered_map<DeviceObject*, uint64_t> objects;
    uint64_t next = 0;
    DeviceObject* releasing = nullptr; ///< by close(), without the mutex
    std::thread::id closer;
    std::condition_variable released;
};

namespace {

thread_local std::vector<Device*> used_here;
std::atomic<uint32_t> forks = 0;

/// Every device there is. Never destroyed, as devices may outlive static objects.
struct AllDevices {
    std::mutex mutex;
    std::unordered_set<Device*> devices;
};
AllDevices& all_devices()
{
    static auto* all = new AllDevices;
    return *all;
}

} // namespace

Device::Device() : m_registry(std::make_unique<Registry>())
{
    AllDevices& all = all_devices();
#ifndef _WIN32
    static const int registered = pthread_atfork([] { all_devices().mutex.lock(); },
                                                 [] { all_devices().mutex.unlock(); }, &Device::leave_behind);
    (void)registered;
#endif
    std::lock_guard lock(all.mutex);
    all.devices.insert(this);
}

Device::~Device()
{
    std::lock_guard lock(all_devices().mutex);
    all_devices().devices.erase(this);
}

/// In a forked child: drivers do not work there with what the parent has opened, not even to release it. So devices
/// with a driver refuse every use, and neither they nor their objects are ever released.
void Device::leave_behind()
{
    ++forks;
    bool hardware = false;
    for (Device* device : all_devices().devices) {
        if (device->info().on_host)
            continue;
        hardware |= !device->has_feature("software_device");
        device->inc_ref();
        device->m_closed = true;
        device->m_left_behind = true;
        (void)device->m_registry.release(); // whose lock a thread of the parent may hold
        device->m_registry = std::make_unique<Registry>();
    }
    all_devices().mutex.unlock();
#ifdef __GLIBC__
    // Drivers' own handlers at exit() end the parent's device: NVIDIA's for Vulkan does.
    if (hardware)
        on_exit([](int status, void*) { std::fflush(nullptr), _exit(status); }, nullptr);
#endif
}

uint32_t fork_count() noexcept { return forks; }

Device::Use::Use(Device& device) : m_device(device)
{
    device.m_users.fetch_add(1);
    if (device.m_closed) [[unlikely]] {
        device.m_users.fetch_sub(1);
        device.fail_closed();
    }
    used_here.push_back(&device);
}

void Device::fail_closed() const
{
    if (m_left_behind)
        fail_runtime(
            "this device was opened before fork(), and drivers do not work in a forked process: start processes "
            "with multiprocessing's \"spawn\" method");
    fail_runtime("device is closed");
}

Device::Use::~Use()
{
    used_here.pop_back();
    m_device.m_users.fetch_sub(1);
}

void Device::add_object(DeviceObject* object)
{
    std::lock_guard lock(m_registry->mutex);
    m_registry->objects.emplace(object, m_registry->next++);
}

bool Device::remove_object(DeviceObject* object) noexcept
{
    std::unique_lock lock(m_registry->mutex);
    if (m_registry->objects.erase(object))
        return true;
    if (m_registry->closer != std::this_thread::get_id())
        m_registry->released.wait(lock, [&] { return m_registry->releasing != object; });
    return false;
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

/// Newest first: views before textures, command buffers before what they name. The registry is not locked while an
/// object is released, since releasing takes the backend's lock, and whoever holds that one may need the registry.
void Device::release_objects() noexcept
{
    Registry& registry = *m_registry;
    std::unique_lock lock(registry.mutex);
    registry.closer = std::this_thread::get_id();
    std::vector<std::pair<uint64_t, DeviceObject*>> ordered;
    for (auto [object, number] : registry.objects)
        ordered.emplace_back(number, object);
    std::sort(ordered.rbegin(), ordered.rend());
    for (auto [number, object] : ordered) {
        auto it = registry.objects.find(object);
        if (it == registry.objects.end() || it->second != number) // gone, and another may live at its address
            continue;
        registry.objects.erase(it);
        registry.releasing = object;
        lock.unlock();
        object->give_up_handles();
        object->release();
        lock.lock();
        registry.releasing = nullptr;
        registry.released.notify_all();
    }
    registry.closer = {};
}

void Device::wait_for_users() noexcept
{
    // A callback that closes its own device from within a call would wait for itself.
    const auto mine = uint32_t(std::count(used_here.begin(), used_here.end(), this));
    for (int round = 0; m_users > mine; ++round)
        round < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void Device::close()
{
    if (m_closed.exchange(true))
        return;
    const ref<Device> self(this); // releasing the last object must not end the device under our feet
    wait_for_users();
    std::exception_ptr fault;
    for (bool done = false; !done && !fault;) {
        try {
            done = backend()->wait(backend()->last_submit_id(), 50'000'000);
        } catch (...) {
            fault = std::current_exception();
        }
        try {
            if (!done && !fault)
                poll_interrupt();
        } catch (...) { // Ctrl-C: still open
            m_closed = false;
            throw;
        }
    }
    release_objects();
    close_backend();
    if (fault)
        std::rethrow_exception(fault);
}

Kernel::Kernel(ref<Device> device, ref<ProgramLayout> layout, std::string label)
    : DeviceObject(std::move(device)),
      m_layout(std::move(layout)),
      m_label(std::move(label))
{
    m_print_slot = print_slot_of(*m_layout);
}

int print_slot_of(const ProgramLayout& layout)
{
    for (size_t i = 0; i < layout.slots.size(); ++i)
        if (layout.slots[i].path == print_slot_path)
            return int(i);
    return -1;
}

ref<RenderPipeline> Device::create_render_pipeline(const RenderPipelineDesc&)
{
    require_rasterization(this, "create_render_pipeline");
    fail(ErrorKind::not_implemented, "create_render_pipeline is not implemented by this ", m_info.api_name, " device");
}

ref<Surface> Device::create_surface(const SurfaceDesc&)
{
    require_feature(this, "surface", "create_surface");
    fail(ErrorKind::not_implemented, "create_surface is not implemented by this ", m_info.api_name, " device");
}

bool Device::has_feature(std::string_view name) const
{
    return std::find(m_info.features.begin(), m_info.features.end(), name) != m_info.features.end();
}

void Device::sync_to_stream(NativeHandle)
{
    fail_runtime(
        "Device does not support CUDA interop; open it with enable_cuda_interop=True (Vulkan), or open a cuda device");
}
void Device::sync_stream_to(NativeHandle)
{
    fail_runtime(
        "Device does not support CUDA interop; open it with enable_cuda_interop=True (Vulkan), or open a cuda device");
}

DeviceObject::DeviceObject(ref<Device> device) : m_device(std::move(device)) { m_device->add_object(this); }
DeviceObject::~DeviceObject()
{
    if (m_device->remove_object(this))
        give_up_handles();
}

void DeviceObject::retire() noexcept
{
    if (!m_device->remove_object(this))
        return;
    give_up_handles();
    release();
}

void DeviceObject::set_frontend(Device* device) { m_frontend = device; }

} // namespace spy
