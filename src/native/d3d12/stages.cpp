#include "d3d12/stages.h"

#include "core/error.h"
#include "d3d12/api.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <vector>

namespace spy {

namespace {

/// Of a signature in a DXIL container.
struct SignatureElement {
    std::string name; ///< in capitals
    uint32_t index = 0, row = 0, column = 0;

    bool is_system() const { return name.starts_with("SV_"); }
    std::string text() const { return name + std::to_string(index); }
};

uint32_t word_at(std::string_view bytes, size_t offset)
{
    uint32_t word = 0;
    if (offset + 4 > bytes.size())
        fail_runtime("a DXIL container ends early");
    std::memcpy(&word, bytes.data() + offset, 4);
    return word;
}

/// The part of a container with this name.
std::string_view part_of(std::string_view container, std::string_view tag)
{
    const uint32_t count = word_at(container, 28);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = word_at(container, 32 + 4 * size_t(i));
        const uint32_t size = word_at(container, size_t(at) + 4);
        if (container.substr(at, 4) == tag)
            return container.substr(size_t(at) + 8, size);
    }
    return {};
}

std::string capitals(std::string_view text)
{
    std::string result(text);
    for (char& c : result)
        c = char(std::toupper(static_cast<unsigned char>(c)));
    return result;
}

std::vector<SignatureElement> signature_of(std::string_view container, std::string_view tag)
{
    constexpr size_t element_size = 32;
    constexpr uint32_t no_register = UINT32_MAX;
    const std::string_view part = part_of(container, tag);
    std::vector<SignatureElement> elements;
    const uint32_t count = part.empty() ? 0 : word_at(part, 0);
    for (uint32_t i = 0; i < count; ++i) {
        const size_t at = word_at(part, 4) + i * element_size;
        SignatureElement element;
        element.name = capitals(std::string_view(part.data() + std::min<size_t>(word_at(part, at + 4), part.size())));
        element.index = word_at(part, at + 8);
        element.row = word_at(part, at + 20);
        const uint32_t mask = word_at(part, at + 24) & 15;
        while (element.column < 3 && !(mask >> element.column & 1))
            ++element.column;
        if (element.row != no_register)
            elements.push_back(std::move(element));
    }
    return elements;
}

const SignatureElement* find(const std::vector<SignatureElement>& elements, const std::string& name, uint32_t index)
{
    for (const SignatureElement& element : elements)
        if (element.name == name && element.index == index)
            return &element;
    return nullptr;
}

/// Whether each input lies where its output does; throws for inputs without one.
bool agree(const std::vector<SignatureElement>& outputs, const std::vector<SignatureElement>& inputs,
           const std::string& label)
{
    bool same = true;
    for (const SignatureElement& input : inputs) {
        const SignatureElement* output = find(outputs, input.name, input.index);
        if (output) {
            same = same && output->row == input.row && output->column == input.column;
            continue;
        }
        std::string known;
        for (const SignatureElement& other : outputs)
            known += (known.empty() ? "" : ", ") + other.text();
        if (!input.is_system())
            fail_value("create_render_pipeline: fragment input '", input.text(), "' of pipeline '", label,
                       "' is no output of its vertex shader, which writes ", known);
        for (const SignatureElement& other : outputs) // its own place, or it would read the output there
            same = same && other.row != input.row;
    }
    return same;
}

#ifndef _WIN32

/// Nodes of metadata in a text of DXIL: "!12 = !{i32 0, !"COLOR", ...}".
class Metadata {
public:
    explicit Metadata(std::string_view text)
    {
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find('\n', at), text.size());
            const std::string_view line = text.substr(at, end - at);
            if (const size_t is = line.find(" = !{"); line.starts_with('!') && is != line.npos && line.ends_with('}'))
                m_nodes[line.substr(0, is)] = {line, fields(line.substr(is + 5, line.size() - is - 6))};
            at = end + 1;
        }
    }
    std::string_view line(std::string_view node) const { return get(node).line; }
    std::string_view field(std::string_view node, size_t index) const
    {
        const std::vector<std::string_view>& all = get(node).fields;
        if (index >= all.size())
            fail_runtime("the metadata of a shader, ", get(node).line, ", is not as expected");
        return all[index];
    }
    const std::vector<std::string_view>& fields_of(std::string_view node) const { return get(node).fields; }

private:
    struct Node {
        std::string_view line;
        std::vector<std::string_view> fields;
    };
    static std::vector<std::string_view> fields(std::string_view text)
    {
        std::vector<std::string_view> result;
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find(", ", at), text.size());
            result.push_back(text.substr(at, end - at));
            at = end + 2;
        }
        return result;
    }
    const Node& get(std::string_view node) const
    {
        const auto found = m_nodes.find(node);
        if (found == m_nodes.end())
            fail_runtime("the metadata of a shader has no node ", node);
        return found->second;
    }
    std::map<std::string_view, Node> m_nodes;
};

uint32_t number(std::string_view field)
{
    uint32_t value = 0;
    const size_t at = field.rfind(' ') + 1;
    std::from_chars(field.data() + at, field.data() + field.size(), value);
    return value;
}

/// A line of an element with another place: its fields are number, name, type, kind, indices, interpolation, rows,
/// columns, first row, first column, the rest.
std::string moved(const Metadata& metadata, std::string_view node, uint32_t row, uint32_t column)
{
    std::string line = cat(node, " = !{");
    const std::vector<std::string_view>& fields = metadata.fields_of(node);
    for (size_t i = 0; i < fields.size(); ++i)
        line += cat(i ? ", " : "", i == 8 ? cat("i32 ", row) : i == 9 ? cat("i8 ", column) : std::string(fields[i]));
    return line + "}";
}

std::string move_inputs(std::string_view text, const std::vector<SignatureElement>& outputs)
{
    const Metadata metadata(text);
    const std::string_view entry = metadata.field("!dx.entryPoints", 0);
    const std::string_view inputs = metadata.field(metadata.field(entry, 2), 0);
    uint32_t free = 0;
    for (const SignatureElement& output : outputs)
        free = std::max(free, output.row + 1);
    std::string result(text);
    for (std::string_view node : metadata.fields_of(inputs)) {
        const std::string_view quoted = metadata.field(node, 1); // !"COLOR"
        const std::string name = capitals(quoted.substr(2, quoted.size() - 3));
        const uint32_t index = number(metadata.field(metadata.field(node, 4), 0));
        if (metadata.field(node, 8) == "i32 -1")
            continue;
        const SignatureElement* output = find(outputs, name, index);
        const std::string line = output ? moved(metadata, node, output->row, output->column)
                                        : moved(metadata, node, free, 0);
        free += output ? 0 : number(metadata.field(node, 6));
        const std::string_view old = metadata.line(node);
        result.replace(result.find(cat("\n", old, "\n")) + 1, old.size(), line);
    }
    return result;
}

#endif

} // namespace

std::string with_inputs_of(std::string_view fragment, std::string_view vertex, const std::string& label)
{
    const std::vector<SignatureElement> outputs = signature_of(vertex, "OSG1"), inputs = signature_of(fragment, "ISG1");
    if (agree(outputs, inputs, label))
        return std::string(fragment);
#ifdef _WIN32
    fail_value(
        "create_render_pipeline: the inputs of the fragment shader of '", label,
        "' must be the first outputs of its vertex shader, in their order, with SV_Position where that writes it");
#else
    return changed_dxil(fragment, label, [&](std::string_view text) { return move_inputs(text, outputs); });
#endif
}

} // namespace spy
