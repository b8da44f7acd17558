#pragma once
// Sources as Slang gets to see them. The only way into this folder.
#include "core/text_map.h"

#include <cstdint>
#include <memory>
#include <set>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// One fault of Slang's and the change that avoids it.
struct RewriteRule {
    std::string_view name;
    std::string_view fault;        ///< what Slang does, in one line
    std::string_view issue;        ///< of shader-slang, or a minimal case
    std::string_view since, until; ///< versions of Slang that have it: [since, until); empty: all that are known
    std::string_view stage;        ///< "reshape": other statements; "annotate": operations put around values
};

/// All rules, in the order in which they are applied.
std::vector<RewriteRule> rewrite_rules();

/// Which rules are applied: a bit for each, in their order.
using RuleMask = uint32_t;

/// "": all that the version of Slang needs; "0": none; "-name,-name": all but these. Fails on other texts.
RuleMask rules_of_setting(std::string_view setting);
/// The rules of these names. Fails on others.
RuleMask rules_of_names(const std::vector<std::string>& names);
/// The names of the bits. What brings our library in has one, too: "library".
std::vector<std::string> names_of_rules(RuleMask mask);

struct RewriteOptions {
    RuleMask rules = 0;
    bool inlines_differentiable = false; ///< for second derivatives
    bool for_host = false;               ///< the target is C++
    bool prints = false;                 ///< printf() is ours
    std::string defines = {};            ///< of the session, as the lines of a source: "#define N 4\n"
};

struct Rewritten {
    std::string text;
    TextMap map;        ///< to the positions in the source
    RuleMask rules = 0; ///< that changed something
};

/// Follows the imports of sources, because what they declare decides what is changed.
class Rewriter {
public:
    /// Files below `library_paths` are ours.
    Rewriter(std::vector<std::string> include_paths, std::vector<std::string> library_paths, RewriteOptions options);
    ~Rewriter();

    /// name: of a module made of text, else empty; path: its file, or what stands for it. Lines stay; there may be more
    /// after the last.
    Rewritten rewrite(const std::string& source, const std::string& name, const std::string& path);
    /// Whether a text, or else a file, imports an experimental module of Slang, directly or through others.
    bool reaches_experimental(const std::optional<std::string>& text, const std::string& path);

    /// Modules of ours that such a source may import, itself or by what it imports, once it is rewritten:
    /// `slangpy.rays`.
    std::set<std::string> library_imports(const std::string& source, const std::string& name, const std::string& path);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

/// What the rules make of a source that imports nothing.
Rewritten rewrite_alone(const std::string& source, RuleMask rules);
/// What brings our library in, alone, for a source that sees it.
Rewritten rewrite_for_library(const std::string& source);

} // namespace spy
