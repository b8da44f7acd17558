#include "device/timeline.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

void Timeline::require_open(const char* what) const
{
    if (!is_open())
        fail_runtime(what, ": device is closed");
    if (is_lost())
        fail_lost();
}

uint64_t Timeline::completed()
{
    if (m_completed < m_submitted)
        m_completed = std::max(m_completed, std::min(ask_completed(), m_submitted));
    return m_completed;
}

void Timeline::note_lost(std::string_view device, std::string_view reason)
{
    if (is_lost())
        return;
    const std::string last = m_last_label.empty() ? "" : cat(" (the last one launched was '", m_last_label, "')");
    m_lost = cat("the ", device, " was lost", reason, ": a kernel faulted or ran too long", last,
                 "; close this device and create another");
}

void Timeline::fail_lost() const { fail_runtime(m_lost); }

} // namespace spy
