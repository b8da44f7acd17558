#pragma once
// What the table applies. Each stands in a file of its own, which says at its top what Slang does and what is changed.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"

#include <vector>

namespace spy {

std::vector<Edit> for_of_do_with_continue(const ParsedSource& source);
std::vector<Edit> for_of_do_with_counter(const ParsedSource& source);
std::vector<Edit> for_of_while(const ParsedSource& source);
std::vector<Edit> hide_early_steps(const ParsedSource& source);
std::vector<Edit> hide_returns_in_loops(const ParsedSource& source);
std::vector<Edit> hold_called_values(const ParsedSource& source);
std::vector<Edit> hold_no_diff_calls(const ParsedSource& source);
std::vector<Edit> inline_differentiable(const ParsedSource& source);
std::vector<Edit> keep_chain_values(const ParsedSource& source);
std::vector<Edit> make_room_in_nests(const ParsedSource& source);
std::vector<Edit> move_condition_steps(const ParsedSource& source);
std::vector<Edit> move_counter_steps(const ParsedSource& source);
std::vector<Edit> repeat_next_cases(const ParsedSource& source);
std::vector<Edit> rewrite_accumulations(const ParsedSource& source);
std::vector<Edit> rewrite_call_outputs(const ParsedSource& source);
std::vector<Edit> rewrite_detached(const ParsedSource& source);
std::vector<Edit> rewrite_diagonals(const ParsedSource& source);
std::vector<Edit> rewrite_elements(const ParsedSource& source);
std::vector<Edit> rewrite_late_elements(const ParsedSource& source);
std::vector<Edit> rewrite_aliasing_elements(const ParsedSource& source);
std::vector<Edit> rewrite_method_derivatives(const ParsedSource& source);
std::vector<Edit> rewrite_parts(const ParsedSource& source);
std::vector<Edit> rewrite_scalars(const ParsedSource& source);
std::vector<Edit> set_unset_tangents(const ParsedSource& source);
std::vector<Edit> split_chains(const ParsedSource& source);
std::vector<Edit> without_brackets(const ParsedSource& source);
std::vector<Edit> without_chains(const ParsedSource& source);
std::vector<Edit> without_commas(const ParsedSource& source);

} // namespace spy
