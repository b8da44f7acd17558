#include "slang/spelling.h"

#include "core/tokens.h"

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
        if (!starts_word(text[pos])) {
            ++pos;
            continue;
        }
        size_t end = pos;
        while (end < text.size() && in_word(text[end]))
            ++end;
        std::string word(text.substr(pos, end - pos));
        if (word[0] == 'i') {
            word[0] = 'I';
            if (is_interface_name(word))
                result[pos] = 'I';
        }
        pos = end;
    }
    for (size_t at = 0; (at = result.find(no_diff_mark, at)) != std::string::npos;)
        result.replace(at, no_diff_mark.size(), "no_diff");
    for (size_t at = 0; (at = result.find(memory_name, at)) != std::string::npos;)
        result.replace(at, memory_name.size(), buffer_name);
    return result;
}

} // namespace spy
