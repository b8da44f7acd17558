#include "core/folder_stamp.h"

#include <algorithm>
#include <vector>

#if !defined(_WIN32)
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace spy {

#if defined(_WIN32)

std::optional<std::string> folder_stamp(const std::string&, std::span<const std::string>, const std::string&)
{
    return std::nullopt;
}

#else

namespace {

#if defined(__APPLE__)
const timespec& content_time(const struct stat& info) { return info.st_mtimespec; }
const timespec& entry_time(const struct stat& info) { return info.st_ctimespec; }
#else
const timespec& content_time(const struct stat& info) { return info.st_mtim; }
const timespec& entry_time(const struct stat& info) { return info.st_ctim; }
#endif

/// A folder that is being read; entries are looked up beside it, which is faster than by whole paths.
class OpenFolder {
public:
    explicit OpenFolder(const std::string& path) : m_folder(opendir(path.c_str())) { }
    ~OpenFolder()
    {
        if (m_folder)
            closedir(m_folder);
    }
    OpenFolder(const OpenFolder&) = delete;
    OpenFolder& operator=(const OpenFolder&) = delete;

    explicit operator bool() const { return m_folder != nullptr; }
    const dirent* next() { return readdir(m_folder); }
    /// Of what a link leads to.
    bool read(const char* name, struct stat& info) const { return fstatat(dirfd(m_folder), name, &info, 0) == 0; }

private:
    DIR* m_folder;
};

void add_number(std::string& text, uint64_t number)
{
    text.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string stamp_of(const std::string& path, const struct stat& info)
{
    std::string text = path;
    text.push_back('\0');
    add_number(text, uint64_t(info.st_size));
    for (const timespec& time : {content_time(info), entry_time(info)}) {
        add_number(text, uint64_t(time.tv_sec));
        add_number(text, uint64_t(time.tv_nsec));
    }
    add_number(text, uint64_t(info.st_ino));
    return text;
}

} // namespace

std::optional<std::string> folder_stamp(const std::string& folder, std::span<const std::string> endings,
                                        const std::string& except)
{
    std::vector<std::string> found, todo{folder};
    while (!todo.empty()) {
        const std::string path = std::move(todo.back());
        todo.pop_back();
        OpenFolder open(path);
        if (!open)
            return std::nullopt;
        struct stat info{};
        while (const dirent* entry = open.next()) {
            const std::string name = entry->d_name;
            if (std::any_of(endings.begin(), endings.end(),
                            [&](const std::string& end) { return name.ends_with(end); })) {
                if (!open.read(entry->d_name, info))
                    return std::nullopt; // taken away just now, or a link to nothing
                found.push_back(stamp_of(path + '/' + name, info));
            } else if (name.find('.') == name.npos && name != except && open.read(entry->d_name, info) &&
                       S_ISDIR(info.st_mode)) {
                todo.push_back(path + '/' + name);
            }
        }
    }
    std::sort(found.begin(), found.end()); // the order of a folder's entries is the system's
    std::string all;
    for (const std::string& stamp : found)
        all += stamp;
    return all;
}

#endif

} // namespace spy
