#pragma once
// Loops as Slang differentiates them rightly. What is wrong with the others is in docs/gradients.md.
#include "slang/rewrite/edits.h"

#include <string_view>
#include <vector>

namespace spy {

/// `while (c) body` -> `for (; c;) body`: Slang's reverse derivatives of `while` loops with `break` are wrong, and
/// others end the process. Lines stay; columns as far as blanks give room.
std::vector<Edit> rewrite_while_loops(std::string_view source);

/// `do ... while (c);` with a continue -> `for (bool again = true; again; again = (c)) ...`: of one that runs once,
/// Slang makes SPIR-V that ignores the continue or is invalid, and crashes in derivatives. Lines stay.
std::vector<Edit> rewrite_do_loops(std::string_view source);

/// [MaxIters(n)] on loops inside loops, so that the states of a backward derivative fit: Slang sizes their arrays in
/// one order of the loops and indexes them in the other. Lines stay.
std::vector<Edit> rewrite_nested_loops(std::string_view source);

} // namespace spy
