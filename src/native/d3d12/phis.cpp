// Text of DXIL that vkd3d translates rightly. It writes the phis of a block one after the other at the end of each
// block before it, so one that is read by another must be copied first.
#include "d3d12/api.h"

#include "core/error.h"

#include <set>

namespace spy {

namespace {

struct Phi {
    std::string_view name, type;
    std::vector<std::string_view> values; ///< what comes in
    std::string_view line;
};

/// "%5 = phi float [ %7, %3 ], [ %8, %4 ]"; no name when the line is something else.
Phi parse(std::string_view line)
{
    Phi phi;
    const size_t name = line.find_first_not_of(' '), is = line.find(" = phi ");
    if (name == line.npos || is == line.npos || line[name] != '%')
        return phi;
    const size_t type = is + 7, end = line.find(" [", type);
    if (end == line.npos)
        return phi;
    phi = {line.substr(name, is - name), line.substr(type, end - type), {}, line};
    for (size_t at = line.find("[ ", end); at != line.npos; at = line.find("[ ", at)) {
        at += 2;
        phi.values.push_back(line.substr(at, line.find(',', at) - at));
    }
    return phi;
}

/// An instruction that gives the value itself; empty for types that have none.
std::string copy_of(std::string_view type, std::string_view value)
{
    if (type == "i1")
        return cat("icmp ne i1 ", value, ", false");
    if (type == "float" || type == "double")
        return cat("fadd ", type, " ", value, ", -0.000000e+00");
    if (type == "half")
        return cat("fadd half ", value, ", 0xH8000");
    return type.starts_with('i') ? cat("add ", type, " ", value, ", 0") : "";
}

void add_line(std::string& text, std::string_view line) { text.append(line).append("\n"); }

/// The phis of one block, and copies of those that others read.
void add_block(std::string& text, const std::vector<Phi>& phis, int& copies)
{
    std::set<std::string_view> names, read;
    for (const Phi& phi : phis)
        names.insert(phi.name);
    for (const Phi& phi : phis)
        for (std::string_view value : phi.values)
            if (value != phi.name && names.count(value))
                read.insert(value);
    std::string made;
    std::vector<std::pair<std::string, std::string>> changes;
    for (const Phi& phi : phis) {
        const std::string copy = read.count(phi.name) ? copy_of(phi.type, phi.name) : "";
        if (copy.empty())
            continue;
        const std::string name = cat("%spy.copy.", copies++);
        add_line(made, cat("  ", name, " = ", copy));
        changes.emplace_back(cat("[ ", phi.name, ", "), cat("[ ", name, ", "));
    }
    for (const Phi& phi : phis) {
        std::string line(phi.line);
        for (const auto& [from, to] : changes)
            for (size_t at = line.find(from); at != line.npos; at = line.find(from, at + to.size()))
                line.replace(at, from.size(), to);
        add_line(text, line);
    }
    text += made;
}

} // namespace

std::string with_copies_of_phis(std::string_view code)
{
    std::string text;
    std::vector<Phi> phis;
    int copies = 0;
    while (!code.empty()) {
        const size_t end = std::min(code.find('\n'), code.size());
        const std::string_view line = code.substr(0, end);
        code.remove_prefix(std::min(end + 1, code.size()));
        Phi phi = parse(line);
        if (!phi.name.empty()) {
            phis.push_back(std::move(phi));
            continue;
        }
        add_block(text, phis, copies);
        phis.clear();
        add_line(text, line);
    }
    return text;
}

} // namespace spy
