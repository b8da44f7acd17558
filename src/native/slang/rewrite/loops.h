#pragma once
// Loops as Slang differentiates them rightly. What is wrong with the others is in docs/gradients.md.
#include <string>
#include <string_view>

namespace spy {

/// `while (c) body` -> `for (; c;) body`: Slang's reverse derivatives of `while` loops with `break` are wrong, and
/// others end the process. `do ... while (c);` with a continue -> `for (bool again = true; again; again = (c)) ...`: of
/// one that runs once, Slang makes SPIR-V that ignores the continue or is invalid, and crashes in derivatives. And
/// [MaxIters(n)] on loops inside loops, so that the states of a backward derivative fit: Slang sizes their arrays in
/// one order of the loops and indexes them in the other. Lines stay; columns as far as blanks give room.
std::string rewrite_loops(std::string_view source);

} // namespace spy
