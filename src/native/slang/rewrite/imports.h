#pragma once
// What a source declares and imports, read off its words: which names in it are the user's own, and which imports lead
// back to it.
#include "slang/rewrite/edits.h"
#include "slang/syntax/imports.h"
#include "slang/syntax/parser.h"
#include "slang/syntax/scopes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// A text with its tree and names. Stays where it is, because these refer to one another.
class ParsedSource {
public:
    explicit ParsedSource(std::string text, std::vector<const syntax::Scopes*> imported = {},
                          const std::vector<syntax::Macro>& macros = {})
        : m_text(std::move(text)),
          m_tree(syntax::parse(m_text, macros)),
          m_scopes(m_tree, std::move(imported))
    {
    }
    ParsedSource(const ParsedSource&) = delete;
    ParsedSource& operator=(const ParsedSource&) = delete;

    const std::string& text() const { return m_text; }
    const syntax::Tree& tree() const { return m_tree; }
    const syntax::Scopes& scopes() const { return m_scopes; }

private:
    std::string m_text;
    syntax::Tree m_tree;
    syntax::Scopes m_scopes;
};

/// What a source sees: its own text and all that it imports.
struct Surroundings {
    std::set<std::string, std::less<>> declared;               ///< types that are not the library's
    bool has_library = false;                                  ///< our library is imported
    std::vector<std::shared_ptr<const ParsedSource>> imported; ///< the user's, whether differentiable or not
    std::vector<syntax::Macro> macros;                         ///< of the session and of included files
    std::set<std::string>
        asked_library; ///< what the source and the user's that it leads to import of it: `slangpy.rays`
    std::map<size_t, std::string> cyclic; ///< files of those of its own imports that lead back to it, by number
};

/// Imports that lead back to the source itself, named by file: Slang finds a module that it is loading by its file, but
/// refuses it by its name.
std::vector<Edit> name_cyclic_imports(std::string_view source, const Surroundings& around);

/// Follows imports over files and over modules made of text, as the compiler will. Files are read once.
class ImportMap {
public:
    /// defines: lines that stand in front of every source.
    ImportMap(std::vector<std::string> include_paths, std::vector<std::string> library_paths, std::string defines)
        : m_include_paths(std::move(include_paths)),
          m_library_paths(std::move(library_paths)),
          m_defines(std::move(defines))
    {
    }
    /// name: of a module made of text, else empty. path: of its file, or one in the folder that imports start from.
    Surroundings around(std::string_view source, const std::string& name, const std::string& path);
    /// Whether a text, or else a file, imports an experimental module of Slang, directly or through others.
    bool reaches_experimental(const std::optional<std::string>& text, const std::string& path);

private:
    struct Known {
        std::string text;
        syntax::Summary summary;
        std::string folder;
        std::shared_ptr<const ParsedSource> parsed; ///< null until another source imports it, and of the library's

        /// The names under which the source imports our library and its parts.
        std::set<std::string> library_imports() const;
    };
    /// Key of the file or text that an import names; empty where there is none.
    std::string find(const syntax::Import& import, const std::string& folder, std::string* file = nullptr) const;
    const Known& known(const std::string& key);
    bool is_library(std::string_view path) const;
    /// Adds the keys of a source and of all that its imports lead to.
    void reach(const std::string& key, std::vector<std::string>& reached);
    void add(const std::string& key, Surroundings& found);
    bool imports_experimental(const std::vector<syntax::Import>& imports, const std::string& folder,
                              std::set<std::string>& seen);

    std::vector<std::string> m_include_paths, m_library_paths;
    ParsedSource m_defines;
    std::mutex m_mutex;
    std::map<std::string, Known> m_known; ///< by path; texts by "text:" and their name
};

} // namespace spy
