#include "slang/rewrite/detached.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/functions.h"

#include <map>

namespace spy {
namespace {

using Names = BracketedText::Names;

class DetachedScanner {
public:
    DetachedScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    /// What to put where: byte in the source -> text.
    std::map<size_t, std::string> found() const
    {
        std::map<size_t, std::string> places;
        for (const FunctionBody& body : m_text.bodies())
            if (may_be_differentiable(m_text, body))
                search(body, places);
        return places;
    }

private:
    /// A parameter `no_diff T c`.
    struct Parameter {
        bool is_elements;        ///< a scalar, a vector or a matrix
        bool is_written = false; ///< so that it may have a derivative; calls do not take it as `out` or `inout`
    };
    using Parameters = std::map<std::string_view, Parameter>;

    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, std::map<size_t, std::string>& places) const
    {
        Parameters parameters = parameters_of(body);
        if (parameters.empty())
            return;
        std::vector<size_t> copies;
        for (size_t i = body.open + 1; i < body.end; ++i) {
            const auto found = parameters.find(at(i));
            if (found == parameters.end() || at(i - 1) == "." || is_declared(i) || is_hidden(i, body))
                continue;
            if (is_copied(i))
                copies.push_back(i);
            else
                found->second.is_written |= m_text.is_assignment(path_at(m_text, i).end) || m_text.is_stepped(i);
        }
        for (const size_t i : copies) {
            const Parameter& parameter = parameters.at(at(i));
            if (parameter.is_written && !parameter.is_elements)
                continue;
            places[m_text.token(i).begin] += parameter.is_written ? "(-(-" : "detach(";
            places[m_text.token(i).end] += parameter.is_written ? "))" : ")";
        }
    }

    /// Those of floats and of structs that have a derivative elsewhere, by name.
    Parameters parameters_of(const FunctionBody& body) const
    {
        Parameters result;
        const Names generic = generic_floats(body);
        size_t first = body.begin + 1;
        int depth = 0; // in generic arguments
        for (size_t i = first; i <= m_text.match(body.begin); ++i) {
            depth += at(i) == "<" ? 1 : at(i) == ">" ? -1 : 0;
            if (i < m_text.match(body.begin) && (at(i) != "," || depth > 0 || m_text.around(i) != body.begin))
                continue;
            read_parameter(first, i, generic, result);
            first = i + 1;
        }
        return result;
    }

    /// The parameter at tokens [first, last).
    void read_parameter(size_t first, size_t last, const Names& generic, Parameters& result) const
    {
        size_t end = first; // behind the type and the name
        bool is_no_diff = false, is_plain = true, is_array = false;
        for (; end < last && at(end) != "=" && at(end) != ":"; ++end) {
            is_no_diff |= at(end) == "no_diff";
            is_plain &= at(end) != "out" && at(end) != "inout" && !at(end).ends_with("ref");
        }
        if (!is_no_diff || !is_plain)
            return;
        const auto skip_brackets = [&](size_t i) {
            for (; at(i) == "]" && i > first; is_array = true)
                i = m_text.match(i) - 1;
            return i;
        };
        const size_t name = skip_brackets(end - 1), type = skip_brackets(name - 1);
        if (!is_word(at(name)) || type <= first || !has_derivative(type, first, generic))
            return;
        const bool is_number = m_text.is_float_name(at(type)) || generic.count(at(type)) > 0;
        result[at(name)] = {is_number && !is_array};
    }

    /// T of f<T : __BuiltinFloatingPointType>(...) and the like.
    Names generic_floats(const FunctionBody& body) const
    {
        static const Names bases = {"IDifferentiable", "IFloat", "__BuiltinFloatingPointType"};
        Names names;
        if (body.begin == 0 || at(body.begin - 1) != ">")
            return names;
        for (size_t i = body.begin - 1; i >= 2 && at(i) != "<"; --i) {
            size_t colon = i - 1;
            while (bases.count(at(i)) && at(colon) == "&")
                colon -= 2;
            if (bases.count(at(i)) && at(colon) == ":")
                names.insert(at(colon - 1));
        }
        return names;
    }

    /// Whether the type that ends at a token is one of floats, or a struct that is known to have a derivative.
    bool has_derivative(size_t type, size_t first, const Names& generic) const
    {
        if (at(type) != ">")
            return m_text.is_float_name(at(type)) || generic.count(at(type)) ||
                is_differentiable(m_own, m_imported, at(type));
        size_t open = type;
        while (open > first && at(open) != "<")
            --open;
        static const Names holders = {"vector", "matrix", "Array"};
        return holders.count(at(open - 1)) && (is_float_type(at(open + 1)) || generic.count(at(open + 1)));
    }

    /// Whether a variable of the function may have the name at a token.
    bool is_hidden(size_t i, const FunctionBody& body) const
    {
        for (size_t k = body.open + 1; k < i; ++k)
            if (at(k) == at(i) && is_declared(k) && (at(m_text.around(k)) != "{" || m_text.match(m_text.around(k)) > i))
                return true;
        return false;
    }

    /// Whether a variable may be declared at a token.
    bool is_declared(size_t i) const
    {
        static const Names no_types = {"return", "else", "do", "case"}, ends = {";", "{", "}", "(", ")", "=", "?"};
        if (is_word(at(i - 1)))
            return !no_types.count(at(i - 1));
        if (at(i - 1) != ">")
            return at(i - 1) == "]" ||
                (at(i - 1) == "," && at(m_text.around(i)) == "{" && !m_text.is_list(m_text.around(i)));
        size_t open = i - 1;
        while (at(open) != "<" && !ends.count(at(open)))
            --open;
        return at(open) == "<"; // else a comparison
    }

    /// Whether a name alone is a value that is not calculated with: that of a variable, an element or a component.
    bool is_copied(size_t i) const
    {
        static const Names behind = {")", ",", ";", "}", ":"};
        if (!behind.count(at(i + 1)) || (at(i + 1) == ":" && at(i + 2) == ":"))
            return false;
        const bool is_positive = at(i - 1) == "+" && begins_value(i - 2);
        return begins_value(is_positive ? i - 2 : i - 1) && !(at(i + 1) == ")" && m_text.is_assignment(i + 2));
    }

    /// Whether a value that is copied may stand behind a token.
    bool begins_value(size_t i) const
    {
        if (at(i) == "=")
            return is_word(at(i - 1)) || at(i - 1) == "]" || at(i - 1) == ")";
        if (at(i) == "?" || (at(i) == ":" && at(i - 1) != ":"))
            return true;
        if (at(i) == ")") // (float3)c
            return is_float_type(at(i - 1)) && at(i - 2) == "(" && !is_word(at(i - 3));
        const size_t open = at(i) == "," ? m_text.around(i) : i;
        if (open == npos || (at(open) != "(" && at(open) != "{"))
            return false;
        return at(open) == "{" ? m_text.is_list(open) : takes_components(open);
    }

    /// Whether a "(" is that of a vector's, a matrix's or an array's constructor, or one around a value.
    bool takes_components(size_t open) const
    {
        const size_t name = called_name(m_text, open);
        return name == npos || m_text.is_float_name(at(name)) || at(name) == "vector" || at(name) == "matrix" ||
            at(name) == "Array" || at(name) == "return";
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_detached(std::string_view source, const FunctionTables& imported)
{
    const bool may = source.find("ifferentiable") != source.npos && source.find("no_diff") != source.npos;
    return may ? insertions(DetachedScanner(source, imported).found()) : std::vector<Edit>();
}

} // namespace spy
