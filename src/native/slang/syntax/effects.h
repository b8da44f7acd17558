#pragma once
// What running a function changes beside its results.
#include "slang/syntax/uses.h"

#include <map>
#include <utility>

namespace spy::syntax {

/// Finds out whether functions can be run again with no one noticing. Keeps what it found.
class Effects {
public:
    /// Whether a function, in all that it calls, writes nothing but its own variables as far as the sources show, and
    /// reads no memory but its parameters' that kernels may write.
    bool none_of(const Scopes& scopes, NodeId function);

private:
    bool writes_only_own(const Uses& uses, const Scopes& scopes) const;
    bool has_none(const Scopes& scopes, NodeId n);
    bool call_has_none(const Scopes& scopes, NodeId call);
    bool callees_have_none(const Scopes& scopes, std::string_view name, size_t count);

    std::map<std::pair<const Scopes*, NodeId>, bool> m_known; ///< a function that calls itself: true until it is found
};

} // namespace spy::syntax
