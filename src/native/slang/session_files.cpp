// The files and modules that a loaded module was made of.
#include "slang/session.h"

#include "slang/build.h"

#include <algorithm>

namespace spy {

namespace {

void add_files(slang::IModule* module, std::vector<std::string>& files)
{
    for (SlangInt32 i = 0; module && i < module->getDependencyFileCount(); ++i)
        if (const char* path = module->getDependencyFilePath(i); path && *path)
            files.emplace_back(path);
}

/// Of the modules of a session that were made of files, besides some.
template <class Leaves>
std::vector<std::string> names_of_modules(slang::ISession* session, const std::vector<std::string>& files,
                                          Leaves leaves)
{
    std::vector<std::string> names;
    for (SlangInt i = 0; i < session->getLoadedModuleCount(); ++i) {
        slang::IModule* loaded = session->getLoadedModule(i);
        const std::string path(text_or_empty(loaded->getFilePath()));
        if (!leaves(loaded, path) && std::find(files.begin(), files.end(), path) != files.end())
            names.emplace_back(loaded->getName());
    }
    return names;
}

} // namespace

std::vector<std::string> dependency_files(const ModuleData& module)
{
    std::vector<std::string> files;
    for (const std::shared_ptr<ModuleData>& part : module.parts)
        for (std::string& file : dependency_files(*part))
            if (std::find(files.begin(), files.end(), file) == files.end())
                files.push_back(std::move(file));
    add_files(module.module, files);
    return files;
}

std::vector<std::string> imported_modules(const ModuleData& module)
{
    return names_of_modules(module.layout->state->session.get(), dependency_files(module),
                            [&](slang::IModule* loaded, const std::string&) { return loaded == module.module; });
}

const std::vector<std::string>& Layout::imported_by_modules()
{
    if (!m_imported) {
        std::vector<std::string> files;
        slang::ISession* session = state->session.get();
        const auto is_own = [&](slang::IModule* loaded) {
            return std::find(modules.begin(), modules.end(), loaded->getName()) != modules.end();
        };
        for (SlangInt i = 0; i < session->getLoadedModuleCount(); ++i)
            if (is_own(session->getLoadedModule(i)))
                add_files(session->getLoadedModule(i), files);
        m_imported = names_of_modules(session, files, [&](slang::IModule* loaded, const std::string& path) {
            return is_own(loaded) || state->files->is_library(path);
        });
    }
    return *m_imported;
}

} // namespace spy
