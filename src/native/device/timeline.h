#pragma once
// How far a device is: submissions are counted, and there is a message once the device is lost.
#include <cstdint>
#include <string>
#include <string_view>

namespace spy {

/// Vulkan and Direct3D 12 derive theirs from this. All of these need the lock of the queue.
class Timeline {
public:
    virtual ~Timeline() = default;
    void require_open(const char* what) const;

    uint64_t submitted() const { return m_submitted; }
    uint64_t advance() { return ++m_submitted; } ///< one more is submitted
    uint64_t completed();
    uint64_t known_completed() const { return m_completed; } ///< when it was last asked
    virtual uint64_t completed_or_known() const noexcept = 0;
    /// As long as it takes, or until Ctrl-C.
    virtual void wait(uint64_t submit_id) = 0;

    bool is_lost() const { return !m_lost.empty(); }
    void note_label(const std::string& label) { m_last_label = label; }

protected:
    virtual bool is_open() const = 0;
    /// The last submission that is done, from the device itself.
    virtual uint64_t ask_completed() = 0;

    /// Idle, or lost: nothing will touch what waited any more.
    void complete_all() noexcept { m_completed = ~0ull; }
    /// The first reason stays. `device` names it with its API.
    void note_lost(std::string_view device, std::string_view reason);
    [[noreturn]] void fail_lost() const;

private:
    uint64_t m_submitted = 0, m_completed = 0;
    std::string m_lost; ///< message once the device is lost
    std::string m_last_label;
};

} // namespace spy
