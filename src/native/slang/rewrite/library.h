#pragma once
// What a source needs to see our Slang library.
#include "slang/rewrite/rules.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// The names ITensor, IWTensor, ... are concrete structs, so that a parameter of such a type reaches the compiler
/// statically typed; the interfaces for constraints are called iTensor, iWTensor, ... This renames those names where
/// they stand as a constraint or a base (`T : ITensor<float, 1>`). The result has the same length, so that lines and
/// columns in diagnostics stay true.
/// `own`: types that the user declares; of those nothing is renamed.
std::vector<Edit> rewrite_constraints(const ParsedSource& source, const std::set<std::string, std::less<>>& own);

/// A struct's `static void atomicAdd(RWByteAddressBuffer buf, uint addr, This value)` is given the memory of a tensor,
/// which is a pointer: the parameter's type becomes one of ours with the same members. Sources in which no struct adds
/// through a pointer get that form too, after the closing brace, so that IAtomicAddable is satisfied.
std::vector<Edit> rewrite_atomics(const ParsedSource& source);

/// Whether prepare_source() may give `import slangpy;` to a source that declares these types.
bool may_use_library(std::string_view source, const std::set<std::string, std::less<>>& own);

/// These changes, and `import slangpy;` at the end of a source that names types of the library without importing it.
/// Sources that neither import nor name it are left alone.
void prepare_source(EditedText& text, const RuleContext& context, bool may_import);

} // namespace spy
