#pragma once
// Functions of Slang's core module (`max`, `any`) are specialised in a session of their own by Slang 2026.12. What that
// notes of the types that it was asked with, it looks at again when their session has ended. So it is asked with types
// of a session that lasts, or not at all, or the session of the types lasts.
#include "slang/com.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spy {

class Compiler;
struct SessionState;

/// Scalars, vectors and matrices of a session that lasts as long as the global session.
class CoreTypes {
public:
    static CoreTypes& of(Compiler& compiler);

    /// The type of that name; none for other types.
    slang::TypeReflection* find(slang::TypeReflection* type);

private:
    explicit CoreTypes(Compiler& compiler);

    ComPtr<slang::ISession> m_session;
    slang::ProgramLayout* m_program = nullptr;
    std::map<std::string, slang::TypeReflection*> m_found;
};

/// The overload, with its generics filled in, that a call with arguments of these types of the session selects, or
/// none. Under the lock.
slang::FunctionReflection* specialize(SessionState& state, slang::FunctionReflection* function,
                                      const std::vector<slang::TypeReflection*>& types);

} // namespace spy
