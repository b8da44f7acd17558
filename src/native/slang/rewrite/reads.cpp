#include "slang/rewrite/reads.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/statements.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

namespace spy {
namespace {

using Names = BracketedText::Names;

/// A variable or parameter whose elements are floats.
struct Variable {
    size_t name; ///< token of its declaration
    std::string type;
    std::vector<std::string> dimensions; ///< of an array

    bool has_elements() const { return !dimensions.empty() || !is_float_word(type); }
};

/// One use of a variable: `v`, `v[i][j]`, with `.x` behind it or not.
struct Use {
    size_t begin, end; ///< first token, and that behind the brackets
    size_t behind;     ///< behind the members, too
    std::vector<size_t> brackets;
    size_t loop; ///< the outermost around it, or npos
    bool varies, writes;

    bool is_element() const { return behind != begin + 1; }
};

/// At some byte: so many erased, and a text put there.
struct Change {
    size_t erased;
    std::string text;
};

/// The type of one element (of a row, for a matrix) of a type that is written as float3, vector<float,3>, ...; empty
/// for a scalar.
std::string element_type(std::string_view type)
{
    const size_t open = type.find('<');
    if (open != npos) {
        const std::string_view inside = type.substr(open + 1, type.size() - open - 2);
        const std::string scalar(inside.substr(0, inside.find(',')));
        return type.starts_with("vector") ? scalar : cat("vector<", scalar, inside.substr(inside.rfind(',')), ">");
    }
    const size_t digits = type.find_last_not_of("1234x") + 1;
    const std::string scalar(type.substr(0, digits)), sizes(type.substr(digits));
    if (sizes.empty() || is_float_word(type))
        return {};
    const size_t by = sizes.find('x');
    return by == npos ? scalar : scalar + sizes.substr(by + 1);
}

/// The type of an element by so many indices; empty where that is an array or there are too many.
std::string type_behind(const Variable& variable, size_t indices)
{
    if (indices < variable.dimensions.size())
        return {};
    std::string type = variable.type;
    for (size_t i = variable.dimensions.size(); i < indices && !type.empty(); ++i)
        type = element_type(type);
    return type;
}

class ReadScanner {
public:
    ReadScanner(std::string_view text, std::string name)
        : m_text(text),
          m_pick(std::move(name)),
          m_has_branches(text.find("#if") != npos),
          m_writes_arguments(text.find("out ") != npos || text.find("ref ") != npos)
    {
        for (size_t i = 0; i + 3 < m_text.size(); ++i)
            if (m_text.around(i) == npos && at(i) == "const" && (at(i + 1) == "int" || at(i + 1) == "uint") &&
                at(i + 3) == "=")
                m_sizes.insert(at(i + 2));
    }

    /// What to put where: byte in the source -> bytes erased, and text.
    std::map<size_t, Change> found()
    {
        for (const FunctionBody& body : m_text.bodies())
            if (const size_t begin = m_text.header_of(body); is_differentiable(begin, body)) {
                if (m_has_branches) { // what is declared in one may be missing in another
                    m_defined.clear();
                    m_number = cat("_", begin);
                }
                search(body, begin);
            }
        return std::move(m_changes);
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    bool is_differentiable(size_t begin, const FunctionBody& body) const
    {
        for (size_t i = begin; i < body.begin; ++i)
            if (at(i) == "interface" || at(i) == "Differentiable" || at(i) == "BackwardDifferentiable")
                return at(i) != "interface" && !is_in_interface(begin);
        return false;
    }

    bool is_in_interface(size_t begin) const { return m_text.scope_word(begin) == "interface"; }

    void search(const FunctionBody& body, size_t begin)
    {
        const Names constants = constants_of(body);
        std::vector<Variable> variables = variables_of(body);
        for (const Variable& variable : variables) {
            const auto same = [&](const Variable& other) { return at(other.name) == at(variable.name); };
            if (!variable.has_elements() || std::count_if(variables.begin(), variables.end(), same) != 1 ||
                is_hidden(body, variable))
                continue;
            const std::vector<Use> uses = uses_of(body, variable, constants);
            for (const Use& use : uses)
                if (use.writes ? use.loop == npos && !use.brackets.empty() &&
                            is_update(m_text, use.begin, use.behind) && may_lose(variable, uses, use)
                               : !may_be_written(use) && may_lose(variable, uses, use))
                    replace(variable, use, begin);
        }
    }

    /// Whether Slang may lose the share of a read. Outside of loops: of one by a run-time index, beside any other use.
    /// In a loop: beside a write of another element, where the compiler does not know all indices.
    bool may_lose(const Variable& variable, const std::vector<Use>& uses, const Use& use) const
    {
        if (use.loop == npos)
            return use.varies && (is_copy(variable) || is_used_otherwise(uses, use));
        const auto in_loop = [&](const Use& other) { return other.loop == use.loop; };
        const bool any_varies = std::any_of(uses.begin(), uses.end(),
                                            [&](const Use& other) { return in_loop(other) && other.varies; });
        return any_varies && use.is_element() && std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
                   const bool is_passed = !other.is_element() && m_writes_arguments && may_be_written(other);
                   return in_loop(other) &&
                       (is_passed || (other.writes && other.is_element() && joined(other) != joined(use)));
               });
    }

    /// Counters of unrolled loops, which the compiler knows.
    Names constants_of(const FunctionBody& body) const
    {
        Names names;
        for (size_t i = body.open; i < body.end; ++i)
            if (at(i) == "for" && is_unrolled(i))
                names.insert(at(i + 3));
        return names;
    }

    /// Whether [ForceUnroll] stands in front of a loop, among other attributes.
    bool is_unrolled(size_t loop) const
    {
        for (size_t i = loop; i > 0 && at(i - 1) == "]"; i = m_text.match(i - 1))
            if (at(m_text.match(i - 1) + 1) == "ForceUnroll")
                return true;
        return false;
    }

    std::vector<Variable> variables_of(const FunctionBody& body) const
    {
        std::vector<Variable> result;
        for (size_t i = body.begin; i + 1 < body.end; ++i) {
            size_t first = m_text.float_type_end(i);
            bool is_known = first != i;
            std::string type;
            for (size_t k = i; k < first; ++k) {
                is_known = is_known && (k < i + 3 || !is_word(at(k)) || m_sizes.count(at(k))); // vector<float, N>
                type += at(k);
            }
            if (!is_known)
                continue;
            std::vector<std::string> of_type;
            if (!read_dimensions(first, of_type))
                continue;
            for (size_t j = first; is_word(at(j)) && at(j + 1) != "(";) {
                Variable variable{j, type, {}};
                size_t behind = j + 1;
                if (!read_dimensions(behind, variable.dimensions))
                    break;
                variable.dimensions.insert(variable.dimensions.end(), of_type.begin(), of_type.end());
                result.push_back(std::move(variable));
                while (behind < body.end && at(behind) != "," && at(behind) != ";" && at(behind) != ")")
                    behind = m_text.match(behind) != npos && m_text.match(behind) > behind ? m_text.match(behind) + 1
                                                                                           : behind + 1;
                if (at(behind) != "," || i < m_text.match(body.begin))
                    break; // a parameter: behind the comma is the next one's type
                j = behind + 1;
            }
        }
        return result;
    }

    /// Sizes in brackets at i, which moves behind them. False for other sizes than numbers and global constants.
    bool read_dimensions(size_t& i, std::vector<std::string>& dimensions) const
    {
        for (; at(i) == "["; i = m_text.match(i) + 1) {
            const bool is_number = std::isdigit(static_cast<unsigned char>(at(i + 1)[0]));
            if (m_text.match(i) != i + 2 || !(is_number || m_sizes.count(at(i + 1))))
                return false;
            dimensions.emplace_back(at(i + 1));
        }
        return true;
    }

    /// Whether another declaration may use the name, so that not all uses are of this variable.
    bool is_hidden(const FunctionBody& body, const Variable& variable) const
    {
        static const Names may_stand_before = {"return", "else", "do", "case", "in", "out", "inout"};
        for (size_t i = body.begin; i < body.end; ++i) {
            if (at(i) != at(variable.name) || i == variable.name || at(i - 1) == ".")
                continue;
            const bool follows_type = is_word(at(i - 1)) ? !may_stand_before.count(at(i - 1)) : false;
            const bool follows_array = at(i - 1) == "]" && (at(i + 1) == "=" || at(i + 1) == ";");
            if (follows_type || follows_array)
                return true;
        }
        return false;
    }

    /// Whether a variable begins as another: `float w[3] = v;`. Elements of both count as elements of one.
    bool is_copy(const Variable& variable) const
    {
        size_t i = variable.name + 1;
        while (at(i) == "[")
            i = m_text.match(i) + 1;
        return at(i) == "=" && is_word(at(i + 1)) && (at(i + 2) == ";" || at(i + 2) == ",");
    }

    std::vector<Use> uses_of(const FunctionBody& body, const Variable& variable, const Names& constants) const
    {
        std::vector<Use> uses;
        for (size_t i = body.open; i < body.end; ++i) {
            if (at(i) != at(variable.name) || i == variable.name || at(i - 1) == ".")
                continue;
            Use use{i, i + 1, 0, {}, loop_around(i, body), false, false};
            for (; at(use.end) == "["; use.end = m_text.match(use.end) + 1) {
                use.brackets.push_back(use.end);
                for (size_t k = use.end + 1; k < m_text.match(use.end); ++k)
                    use.varies = use.varies || is_unknown(k, constants);
            }
            use.behind = use.end;
            while (at(use.behind) == ".")
                use.behind += 2;
            use.writes = m_text.is_assignment(use.behind) || m_text.is_stepped(i);
            uses.push_back(std::move(use));
        }
        return uses;
    }

    /// Whether a word of an index stands for a number that the compiler does not know.
    bool is_unknown(size_t i, const Names& constants) const
    {
        const std::string_view word = at(i);
        const bool is_constant = std::none_of(word.begin(), word.end(),
                                              [](unsigned char c) { return std::islower(c); });
        return is_word(word) && !is_constant && !constants.count(word) && word != "int" && word != "uint";
    }

    bool is_used_otherwise(const std::vector<Use>& uses, const Use& use) const
    {
        const std::string text = joined(use);
        return std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
            return use.begin != other.begin && (other.writes || joined(other) != text);
        });
    }

    std::string joined(const Use& use) const
    {
        std::string text;
        for (size_t i = use.begin; i < (use.brackets.empty() ? use.behind : use.end); ++i)
            text += at(i);
        return text;
    }

    size_t loop_around(size_t i, const FunctionBody& body) const
    {
        for (size_t loop = body.open; loop < i; ++loop)
            if (is_loop_word(at(loop)) && !is_unrolled(loop) && i < end_of_statement(loop, body.end))
                return loop;
        return npos;
    }

    /// The last token of a loop.
    size_t end_of_statement(size_t loop, size_t limit) const
    {
        size_t i = loop + 1;
        if (at(loop) != "do")
            i = m_text.match(i) + 1;
        for (; i < limit && at(i) != ";"; ++i) {
            if (at(i) == "{")
                return m_text.match(i);
            if (at(i) == "(" || at(i) == "[")
                i = m_text.match(i);
        }
        return i;
    }

    /// Whether a use is an argument by itself, of a function that may write it.
    bool may_be_written(const Use& use) const
    {
        const size_t open = m_text.around(use.begin);
        if (at(use.behind) == "(" || at(use.begin - 1) == "&")
            return true;
        if (open == npos || at(open) != "(" || (at(use.begin - 1) != "(" && at(use.begin - 1) != ",") ||
            (at(use.behind) != ")" && at(use.behind) != ","))
            return false;
        const std::string_view function = at(open - 1);
        if (only_reads_arguments(function) || is_float_type(function) || function.starts_with("_spy_"))
            return false;
        return m_writes_arguments || is_word(function) || function == ">";
    }

    void replace(const Variable& variable, const Use& use, size_t begin)
    {
        const size_t component = component_of(variable, use);
        const size_t indices = component == npos ? use.brackets.size() : 1;
        const std::string returned = type_behind(variable, indices);
        if (returned.empty() || indices == 0)
            return;
        if (use.writes) {
            write_out(use);
            return define(variable, returned, indices, begin);
        }
        edit(use.begin).text += cat(m_pick, m_number, "(");
        if (component != npos) { // v.x
            edit(use.end, 1).text += ", ";
            edit(use.end + 1, 1).text += cat(component, ")");
            return define(variable, returned, indices, begin);
        }
        for (size_t open : use.brackets) {
            edit(open, 1).text += ", int(";
            edit(m_text.match(open), 1).text += ')';
        }
        Change& last = m_changes[m_text.token(use.end - 1).begin];
        last.text += ')';
        define(variable, returned, indices, begin);
    }

    /// `v[i].x += e;` -> `v[i].x = pick(v, int(i)).x + (e);`
    void write_out(const Use& use)
    {
        std::string read = cat(m_pick, m_number, "(", at(use.begin));
        for (const size_t open : use.brackets) {
            read += ", int(";
            for (size_t i = open + 1; i < m_text.match(open); ++i)
                read += cat(is_word(at(i)) && is_word(at(i - 1)) ? " " : "", at(i));
            read += ')';
        }
        read += ')';
        for (size_t i = use.end; i < use.behind; ++i) // members
            read += at(i);
        edit(use.behind, 2).text += written_out(m_text, use.behind, read);
        edit(end_of_update(m_text, use.behind)).text += ')';
    }

    /// The number of the component that `v.x` reads of a vector; npos for other uses.
    size_t component_of(const Variable& variable, const Use& use) const
    {
        const bool is_vector = variable.dimensions.empty() && is_float_word(element_type(variable.type));
        if (!is_vector || !use.brackets.empty() || use.behind != use.end + 2 || at(use.end + 1).size() != 1)
            return npos;
        const size_t letter = std::string_view("xyzwrgba").find(at(use.end + 1)[0]);
        return letter == npos ? npos : letter % 4;
    }

    Change& edit(size_t token, size_t erased = 0)
    {
        Change& made = m_changes[m_text.token(token).begin];
        made.erased = std::max(made.erased, erased);
        return made;
    }

    /// The function that reads such an element, once in each scope, in front of the first function that calls it.
    void define(const Variable& variable, const std::string& returned, size_t indices, size_t begin)
    {
        std::string parameter = variable.type + " v", element = "v", more;
        for (const std::string& size : variable.dimensions)
            parameter += cat("[", size, "]");
        for (size_t i = 0; i < indices; ++i) {
            more += cat(", int i", i);
            element += cat("[i", i, "]");
        }
        const bool in_type = !m_text.scope_word(begin).empty();
        const std::string key = cat(m_text.around(begin), " ", parameter, more);
        if (!m_defined.insert(key).second)
            return;
        Change& made = edit(begin);
        made.text = cat("[Differentiable] ", in_type ? "static " : "", returned, " ", m_pick, m_number, "(", parameter,
                        more, ") { return ", element, "; } ") +
            made.text;
    }

    BracketedText m_text;
    std::string m_pick, m_number; ///< the name of the functions that read elements
    bool m_has_branches;          ///< of the preprocessor
    bool m_writes_arguments;      ///< a function here may
    Names m_sizes;                ///< global constants
    std::map<size_t, Change> m_changes;
    std::set<std::string> m_defined;
};

} // namespace

std::vector<Edit> rewrite_reads(std::string_view source)
{
    if (source.find("ifferentiable") == source.npos || source.find('[') == source.npos)
        return {};
    std::vector<Edit> edits;
    for (auto& [place, change] : ReadScanner(source, "_spy_pick_" + content_hash(source)).found())
        edits.push_back({place, place + change.erased, std::move(change.text)});
    return edits;
}

} // namespace spy
