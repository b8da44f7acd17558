// Whether watched files changed: notifications of the system, else their times.
#include "core/watch.h"

#include <filesystem>

#if defined(__linux__)
#include <sys/inotify.h>
#include <unistd.h>
#endif

namespace spy {

namespace fs = std::filesystem;

FileWatcher::FileWatcher()
{
#if defined(__linux__)
    m_notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC); // -1 (too many instances): times are compared instead
#endif
}

FileWatcher::~FileWatcher()
{
#if defined(__linux__)
    if (m_notify >= 0)
        close(m_notify);
#endif
}

FileWatcher::Stamp FileWatcher::stamp_of(const std::string& path)
{
    std::error_code error;
    Stamp stamp;
    auto time = fs::last_write_time(path, error);
    if (error)
        return stamp;
    stamp.time = int64_t(time.time_since_epoch().count());
    stamp.size = int64_t(fs::file_size(path, error));
    return stamp;
}

void FileWatcher::watch(const std::string& path)
{
    std::lock_guard lock(m_mutex);
    if (!m_files.emplace(path, stamp_of(path)).second)
        return;
#if defined(__linux__)
    // editors replace files, so the folder is watched and not the file
    std::string folder = fs::path(path).parent_path().string();
    if (m_notify >= 0 && !m_descriptors.count(folder)) {
        int descriptor = inotify_add_watch(m_notify, folder.c_str(),
                                           IN_CLOSE_WRITE | IN_MODIFY | IN_MOVED_TO | IN_CREATE | IN_DELETE);
        if (descriptor >= 0) {
            m_descriptors[folder] = descriptor;
            m_folders[descriptor] = folder;
        }
    }
#endif
}

bool FileWatcher::compare_stamps()
{
    bool different = false;
    for (auto& [path, stamp] : m_files) {
        Stamp now = stamp_of(path);
        different |= !(now == stamp);
        stamp = now;
    }
    return different;
}

bool FileWatcher::changed()
{
    std::lock_guard lock(m_mutex);
#if defined(__linux__)
    if (m_notify >= 0) {
        const auto now = std::chrono::steady_clock::now();
        if (now - m_checked < std::chrono::microseconds(5))
            return false;
        m_checked = now;
        alignas(inotify_event) char buffer[4096];
        bool seen = false;
        for (;;) {
            ssize_t size = read(m_notify, buffer, sizeof buffer);
            if (size <= 0)
                break;
            for (ssize_t at = 0; at < size;) {
                auto* event = reinterpret_cast<inotify_event*>(buffer + at);
                auto folder = m_folders.find(event->wd);
                if (event->mask & IN_Q_OVERFLOW)
                    seen = true;
                else if (folder != m_folders.end() && event->len)
                    seen |= m_files.count((fs::path(folder->second) / event->name).string()) > 0;
                at += ssize_t(sizeof(inotify_event) + event->len);
            }
        }
        return seen;
    }
#endif
    return compare_stamps();
}

} // namespace spy
