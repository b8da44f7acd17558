#include "slang/rewrite/variables.h"

namespace spy {
namespace {

using Names = BracketedText::Names;

class DeclarationReader {
public:
    explicit DeclarationReader(const BracketedText& text) : m_text(text) { }

    /// The word that names the type before token i, where a declaration of i may stand; npos where none does.
    size_t type_before(size_t i, size_t begin) const
    {
        static const Names no_types = {"return", "else",  "do",        "case",      "in",     "out",  "inout", "goto",
                                       "new",    "throw", "struct",    "class",     "sizeof", "as",   "is",    "import",
                                       "using",  "where", "typealias", "interface", "if",     "while"};
        size_t type = i - 1;
        while (at(type) == "]" && type > begin)
            type = m_text.match(type) - 1;
        if (at(type) == ">")
            type = before_generic(type, begin);
        return type != npos && type > begin && is_word(at(type)) && !no_types.count(at(type)) ? type : npos;
    }

    /// Whether a name stands where one is declared.
    bool ends_declaration(size_t i) const
    {
        static const Names may_follow = {";", "=", ",", ")", "[", ":", "{"};
        return is_word(at(i)) && may_follow.count(at(i + 1)) > 0;
    }

    /// Whether a type is one of constants, or of values that have no derivative.
    bool is_fixed(size_t type) const
    {
        static const Names fixed = {"const",   "static",      "constref", "__constref", "borrow",
                                    "no_diff", "groupshared", "let",      "uniform"};
        if (at(type) == "let")
            return true;
        while (type > 2 && (at(type - 1) == ":" || at(type - 1) == ".")) // ns::S
            type -= at(type - 1) == ":" ? 3 : 2;
        for (size_t i = type; i-- > 0 && is_word(at(i));)
            if (fixed.count(at(i)))
                return true;
        return false;
    }

    /// The name behind the comma that ends what is declared at i; npos where none does.
    size_t next_name(size_t i, size_t end) const
    {
        for (++i; i < end && at(i) != "," && at(i) != ";" && at(i) != ")"; ++i)
            i = m_text.match(i) != npos && m_text.match(i) > i ? m_text.match(i) : i;
        return at(i) == "," && is_word(at(i + 1)) ? i + 1 : npos;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    size_t before_generic(size_t i, size_t begin) const
    {
        static const Names may_not_stand_between = {";", "{", "}", "(", ")", "&", "|", "=", "+", "?"};
        for (int depth = 0; i > begin && !may_not_stand_between.count(at(i)); --i) {
            depth += at(i) == ">" ? 1 : at(i) == "<" ? -1 : 0;
            if (depth == 0)
                return i - 1;
        }
        return npos;
    }

    const BracketedText& m_text;
};

} // namespace

std::map<std::string_view, DeclaredName> declared_names(const BracketedText& text, const FunctionBody& body)
{
    const DeclarationReader reader(text);
    std::map<std::string_view, DeclaredName> found;
    for (size_t i = body.begin + 1; i < body.end; ++i) {
        const size_t type = reader.ends_declaration(i) ? reader.type_before(i, body.begin) : npos;
        if (type == npos)
            continue;
        const bool of_arrays = text.at(i - 1) == "]", is_parameter = i < text.match(body.begin);
        for (size_t name = i; name != npos; name = is_parameter ? npos : reader.next_name(name, body.end)) {
            const auto [known, is_new] = found.try_emplace(text.at(name));
            DeclaredName& declared = known->second;
            declared.is_other |= !is_new && declared.type != text.at(type);
            declared.type = text.at(type);
            declared.is_array |= of_arrays || text.at(name + 1) == "[";
            declared.is_fixed |= reader.is_fixed(type);
            declared.tokens.push_back(name);
        }
    }
    return found;
}

std::map<std::string_view, DeclaredName> declared_fields(const BracketedText& text)
{
    const DeclarationReader reader(text);
    std::map<std::string_view, DeclaredName> found;
    for (size_t i = 1; i < text.size(); ++i) {
        const size_t open = text.around(i);
        if (open == npos || text.at(open) != "{" || !reader.ends_declaration(i))
            continue;
        const std::string_view scope = text.scope_word(i);
        const size_t type = scope == "struct" || scope == "class" ? reader.type_before(i, open) : npos;
        for (size_t name = i; type != npos && name != npos; name = reader.next_name(name, text.match(open))) {
            const auto [known, is_new] = found.try_emplace(text.at(name));
            DeclaredName& declared = known->second;
            const bool is_array = text.at(i - 1) == "]" || text.at(name + 1) == "[";
            declared.is_other |= !is_new && (declared.type != text.at(type) || declared.is_array != is_array);
            declared.type = text.at(type);
            declared.is_array = is_array;
        }
    }
    return found;
}

bool is_field(const BracketedText& text, const FunctionBody& body, std::string_view name)
{
    const size_t begin = text.header_of(body), open = text.around(begin);
    const std::string_view scope = text.scope_word(begin);
    if (scope.empty())
        return false;
    const bool is_extension = scope == "extension";
    const DeclarationReader reader(text);
    bool found = false;
    for (size_t i = 1; i < text.size(); ++i) {
        if (text.at(i) != name || !reader.ends_declaration(i) || text.at(i + 1) == "{")
            continue;
        const bool is_listed = text.at(i - 1) == ",";
        const bool is_typed = reader.type_before(i, 0) != npos && !reader.is_fixed(reader.type_before(i, 0));
        if (text.around(i) == npos && is_extension && (is_typed || is_listed))
            return false; // a global variable
        found |= text.around(i) == open && (is_typed || is_listed);
    }
    return found || is_extension;
}

} // namespace spy
