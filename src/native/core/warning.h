#pragma once
// Warnings of code that knows no language: the binding says how they reach the user.
#include <string>

namespace spy {

/// May throw, where the user wants warnings to be errors.
void set_warning_sink(void (*sink)(const std::string& text));
void warn(const std::string& text);

} // namespace spy
