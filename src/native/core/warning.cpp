#include "core/warning.h"

namespace spy {

namespace {

void (*warning_sink)(const std::string&) = nullptr;

} // namespace

void set_warning_sink(void (*sink)(const std::string&)) { warning_sink = sink; }

void warn(const std::string& text)
{
    if (warning_sink)
        warning_sink(text);
}

} // namespace spy
