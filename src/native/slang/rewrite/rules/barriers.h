#pragma once
// Variables passed through an operation that gives the same number, beside statements of a tree.
#include "slang/rewrite/imports.h"
#include "slang/rewrite/passed.h"

namespace spy {

/// Of a function; to add to.
Places places_of(const syntax::Tree& tree, syntax::NodeId function);
/// Behind the statement around a node, with braces around both where one statement is expected. Nothing is done where
/// the statement holds others, leaves the function, or is a label's.
void pass_behind(const syntax::Tree& tree, syntax::NodeId node, std::string_view name, bool is_float, Places& places);

} // namespace spy
