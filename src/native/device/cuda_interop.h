#pragma once
// CUDA's side of what another API's device shares with it: memory, and two timelines that order the device's queue and
// CUDA streams.
#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace spy {

/// Callers keep from calling from two threads at once, except release_memory().
class CudaInterop {
public:
    virtual ~CudaInterop() = default;
    /// On the CUDA device with this UUID. Throws when there is none, naming the adapters.
    static std::shared_ptr<CudaInterop> open(const std::array<uint8_t, 16>& uuid, const std::string& adapter_name);
    /// Whether open() would find a device.
    static bool matches(const std::array<uint8_t, 16>& uuid);

    virtual int device_index() const = 0;

    struct Memory {
        void* handle = nullptr;
        uint64_t address = 0;
    };
    /// Maps an exported allocation of its own into CUDA. Takes over the file descriptor.
    virtual Memory import_memory(int descriptor, uint64_t allocation_size, uint64_t size) = 0;
    /// Waits for CUDA's work, which may use it.
    virtual void release_memory(const Memory& memory) noexcept = 0;

    /// Timeline semaphores: one that CUDA signals and one that the queue signals. Takes over the descriptors.
    virtual void import_timelines(int from_cuda, int to_cuda) = 0;
    /// The value that the first timeline reaches once what stands on `stream` is done.
    virtual uint64_t signal(uint64_t stream) = 0;
    /// `stream` goes on once the second timeline has reached `value`.
    virtual void wait(uint64_t stream, uint64_t value) = 0;
};

} // namespace spy
