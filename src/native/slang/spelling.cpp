#include "slang/spelling.h"

#include "slang/syntax/lexer.h"

#include <algorithm>

namespace spy {

bool is_interface_name(std::string_view word)
{
    return std::find(interface_names.begin(), interface_names.end(), word) != interface_names.end();
}

std::string restore_constraints(std::string_view text)
{
    std::string result(text);
    for (size_t pos = 0; pos < text.size();) {
        const size_t end = syntax::word_end(text, pos);
        if (text[pos] == 'i' && is_interface_name("I" + std::string(text.substr(pos + 1, end - pos - 1))))
            result[pos] = 'I';
        pos = std::max(end, pos + 1);
    }
    for (size_t at = 0; (at = result.find(no_diff_mark, at)) != std::string::npos;)
        result.replace(at, no_diff_mark.size(), "no_diff");
    for (size_t at = 0; (at = result.find(memory_name, at)) != std::string::npos;)
        result.replace(at, memory_name.size(), buffer_name);
    return result;
}

} // namespace spy
