#pragma once
#include "core/ref.h"

#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace spy {

/// Tells whether watched files were written, replaced, created or removed. A check costs one system call where the
/// platform has notifications (Linux); elsewhere the files' times are compared. Calls that follow each other at once
/// share a check: nobody writes a file in the 5 us between them.
class FileWatcher : public Object {
public:
    FileWatcher();
    ~FileWatcher() override;

    /// Absolute path; the file need not exist.
    void watch(const std::string& path);
    /// True once after a change; never waits.
    bool changed();

private:
    struct Stamp {
        int64_t time = 0, size = -1;
        bool operator==(const Stamp&) const = default;
    };
    static Stamp stamp_of(const std::string& path);
    bool compare_stamps();

    std::mutex m_mutex;
    std::chrono::steady_clock::time_point m_checked; ///< when the last check was
    int m_notify = -1;
    std::unordered_map<int, std::string> m_folders; ///< watch descriptor -> folder
    std::unordered_map<std::string, int> m_descriptors;
    std::unordered_map<std::string, Stamp> m_files;
};

} // namespace spy
