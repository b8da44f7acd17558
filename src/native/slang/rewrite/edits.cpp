#include "slang/rewrite/edits.h"

#include "slang/changed_lines.h"

namespace spy {

std::string with_edits(std::string_view source, const std::vector<Edit>& edits)
{
    if (edits.empty())
        return std::string(source);
    std::string result;
    size_t done = 0;
    for (const Edit& edit : edits) {
        if (edit.begin > done)
            result.append(source.substr(done, edit.begin - done));
        result.append(edit.text);
        done = edit.end;
    }
    result.append(source.substr(done));
    remember_lines(source, result);
    return result;
}

std::string with_insertions(std::string_view source, const std::map<size_t, std::string>& texts)
{
    std::vector<Edit> edits;
    for (const auto& [place, text] : texts)
        edits.push_back({place, place, text});
    return with_edits(source, edits);
}

} // namespace spy
