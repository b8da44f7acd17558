// The device contract without Python, for systems that the Python tests do not run on: tools/check_windows.sh --run
// builds it for Windows. `contract null cpu` goes through those devices and says what does not hold.
#include "cpu/fibers.h"
#include "device/backend.h"
#include "device/encoder.h"
#include "device/resource.h"
#include "device/submit.h"

#include "core/error.h"

#include <nanobind/intrusive/counter.inl>

#include <cstdio>
#include <cstring>
#include <numeric>

namespace spy {
namespace {

int failures = 0;

void expect(bool holds, const char* what)
{
    if (!holds) {
        std::printf("FAILED: %s\n", what);
        ++failures;
    }
}

/// Whether `body` throws an error of this kind whose text contains `part`.
template <typename F>
void expect_error(ErrorKind kind, const char* part, F body)
{
    try {
        body();
    } catch (const Error& error) {
        const bool holds = error.kind() == kind && std::strstr(error.what(), part);
        if (!holds)
            std::printf("kind %d: %s\n", int(error.kind()), error.what());
        return expect(holds, part);
    }
    expect(false, part);
}

BufferDesc buffer_of(uint64_t size)
{
    BufferDesc desc;
    desc.size = size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::unordered_access;
    return resolve_buffer_desc(desc, 0, nullptr, std::nullopt);
}

std::vector<uint8_t> ramp(size_t size, int step)
{
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = uint8_t(i * size_t(step));
    return bytes;
}

void check_buffers(Device* device)
{
    for (const uint64_t size : {1ull, 60ull, 4096ull, (3ull << 20) + 5}) {
        const ref<Buffer> buffer = device->create_buffer(buffer_of(size));
        std::vector<uint8_t> found(size, 7), zeros(size, 0);
        read_buffer(buffer.get(), 0, found.data(), size);
        expect(found == zeros, "a new buffer holds zeros");
        const std::vector<uint8_t> given = ramp(size / 2 + 1, 3);
        write_buffer(buffer.get(), size - given.size(), given.data(), given.size());
        read_buffer(buffer.get(), 0, found.data(), size);
        std::memcpy(zeros.data() + size - given.size(), given.data(), given.size());
        expect(found == zeros, "a buffer holds what was written, where it was written");
        expect_error(ErrorKind::index, "buffer", [&] { check_buffer_range(buffer.get(), 1, size, "read: buffer"); });
    }
    expect(!device->heap_reports().empty(), "memory is reported");
}

void check_commands(Device* device)
{
    const ref<Buffer> a = device->create_buffer(buffer_of(64)), b = device->create_buffer(buffer_of(64));
    const std::vector<uint8_t> given = ramp(16, 5);
    const ref<CommandEncoder> encoder = new CommandEncoder(device);
    encoder->fill_buffer(a, 0x01020304, {});
    encoder->upload_buffer_data(a, 16, given);
    encoder->copy_buffer(b, 32, a, 0, 32);
    const ref<CommandBuffer> commands = encoder->finish();
    expect_error(ErrorKind::runtime, "finished", [&] { encoder->global_barrier(); });
    uint32_t word = 1;
    read_buffer(b.get(), 32, &word, 4);
    expect(word == 0, "nothing runs before it is submitted");
    CommandBuffer* const all[] = {commands.get()};
    const ref<Fence> fence = create_fence(device, 3, false);
    const ref<Fence> fences[] = {fence};
    const uint64_t values[] = {9};
    SubmitDesc submission;
    submission.command_buffers = all;
    submission.signal_fences = fences;
    submission.signal_values = values;
    const uint64_t id = device->submit(submission);
    expect(device->wait(id, 10'000'000'000) && fence->wait(9, 10'000'000'000), "submitted work ends");
    expect(device->is_finished(id) && fence->current_value() == 9, "its fence has the value");
    expect(!fence->wait(10, 1'000'000), "a wait for more runs into its limit");
    uint8_t found[32];
    read_buffer(b.get(), 32, found, 32);
    std::memcpy(&word, found, 4);
    expect(word == 0x01020304 && std::memcmp(found + 16, given.data(), 16) == 0, "commands ran in order");
}

void check_textures(Device* device)
{
    TextureDesc desc;
    desc.type = TextureType::texture_2d;
    desc.format = Format::rgba8_unorm;
    desc.width = 6;
    desc.height = 5;
    desc.mip_count = 2;
    desc.usage = TextureUsage::shader_resource;
    const ref<Texture> texture = device->create_texture(resolve_texture_desc(desc));
    const std::vector<uint8_t> given = ramp(6 * 5 * 4, 7);
    std::vector<uint8_t> found(given.size());
    device->write_texture(texture.get(), 0, 0, given.data());
    device->read_texture(texture.get(), 0, 0, found.data());
    expect(found == given, "a texture holds what was written");
    expect_error(ErrorKind::index, "mip", [&] { check_subresource(texture->desc(), 0, 2); });
}

void check_device(DeviceType type, const char* name)
{
    DeviceDesc desc;
    desc.type = type;
    const ref<Device> device = create_device(desc), other = create_device(desc);
    std::printf("%s: %s, %s\n", name, device->info().api_name.c_str(), device->info().adapter_name.c_str());
    check_buffers(device->backend());
    check_commands(device.get());
    check_textures(device->backend());
    const ref<Buffer> foreign = other->create_buffer(buffer_of(16));
    expect_error(ErrorKind::value, "another device",
                 [&] { check_same_device(device.get(), foreign.get(), "bind: buffer"); });
    device->close();
    device->close();
    expect_error(ErrorKind::runtime, "closed", [&] { check_open(device.get()); });
}

/// Threads of a group that wait for each other, each on a stack of its own.
void check_groups()
{
    struct Shared {
        uint32_t values[96], sums[96], lanes[96];
    };
    static Shared shared;
    const auto thread = [](void*, uint32_t index) {
        for (uint32_t round = 0; round < 3; ++round) {
            shared.values[index] = index + round;
            cpu::fibers::group_sync();
            shared.sums[index] = std::accumulate(shared.values, shared.values + 96, 0u);
            cpu::fibers::group_sync();
        }
        uint32_t shown[32] = {};
        const uint32_t mask = cpu::fibers::wave_exchange(1, &index, sizeof(index), shown);
        shared.lanes[index] = mask == ~0u ? shown[31 - cpu::fibers::wave_lane()] : 0;
    };
    for (int round = 0; round < 20; ++round)
        cpu::fibers::run_group(96, 32, thread, nullptr);
    expect(!cpu::fibers::take_error(), "groups run");
    bool sums = true, lanes = true;
    for (uint32_t i = 0; i < 96; ++i) {
        sums &= shared.sums[i] == 95 * 96 / 2 + 2 * 96;
        lanes &= shared.lanes[i] == (i / 32 * 32) + 31 - i % 32;
    }
    expect(sums, "every thread sees what all wrote before the barrier");
    expect(lanes, "lanes of a wave see each other");
}

} // namespace
} // namespace spy

int main(int count, char** names)
{
    try {
        for (int i = 1; i < count; ++i) {
            bool known = false;
            const spy::DeviceType type = spy::device_type_from_name(names[i], known);
            spy::expect(known, names[i]);
            spy::check_device(type, names[i]);
        }
        spy::check_groups();
    } catch (const std::exception& error) {
        spy::expect(false, error.what());
    }
    std::printf("%s\n", spy::failures ? "contract: FAILED" : "contract: all holds");
    return spy::failures != 0;
}
