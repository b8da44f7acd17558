// Top-level declarations of CUDA text, and which of them a program reaches by name.
#include "cuda/used_parts.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace spy {

namespace {

using Names = std::vector<std::string_view>;

struct Token {
    enum class Kind { name, sign, other, directive, end };
    Kind kind = Kind::end;
    std::string_view text;
};

/// Names, signs, literals and whole directives; not spaces and comments.
class Lexer {
public:
    explicit Lexer(std::string_view text) : m_text(text) { }

    size_t at() const { return m_at; }

    Token next()
    {
        skip_space();
        if (m_at >= m_text.size())
            return {};
        const size_t begin = m_at;
        const char c = m_text[m_at];
        Token::Kind kind = Token::Kind::sign;
        if (c == '#' && m_line_begins) {
            kind = Token::Kind::directive;
            skip_line();
        } else if (c == '"' || c == '\'') {
            kind = Token::Kind::other;
            for (++m_at; m_at < m_text.size() && m_text[m_at] != c; ++m_at)
                m_at += m_text[m_at] == '\\';
            ++m_at;
        } else if (is_cuda_name(c)) {
            kind = is_cuda_digit(c) ? Token::Kind::other : Token::Kind::name;
            while (m_at < m_text.size() && is_cuda_name(m_text[m_at]))
                ++m_at;
        } else {
            ++m_at;
        }
        m_line_begins = false;
        m_at = std::min(m_at, m_text.size());
        return {kind, m_text.substr(begin, m_at - begin)};
    }

    Token peek() const { return Lexer(*this).next(); }

private:
    void skip_space()
    {
        for (; m_at < m_text.size(); ++m_at) {
            const char c = m_text[m_at], following = m_at + 1 < m_text.size() ? m_text[m_at + 1] : '\0';
            if (c == '\n')
                m_line_begins = true;
            else if (c == '/' && following == '/')
                m_at = std::min(m_text.find('\n', m_at), m_text.size()) - 1;
            else if (c == '/' && following == '*')
                m_at = std::min(m_text.find("*/", m_at + 2), m_text.size() - 2) + 1;
            else if (c != ' ' && c != '\t' && c != '\r' && !(c == '\\' && following == '\n'))
                return;
        }
    }

    void skip_line()
    {
        do
            m_at = std::min(m_text.find('\n', m_at + 1), m_text.size());
        while (m_at < m_text.size() && m_text[m_at - 1] == '\\');
    }

    std::string_view m_text;
    size_t m_at = 0;
    bool m_line_begins = true;
};

void add_names(std::string_view text, Names& names)
{
    Lexer lexer(text);
    for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next())
        if (token.kind == Token::Kind::name)
            names.push_back(token.text);
        else if (token.kind == Token::Kind::directive)
            add_names(token.text.substr(1), names);
}

struct Macro {
    bool has_parameters = false;
    Names parameters;
    std::string_view body;
};

/// A directive, or a declaration: of a name, or an operator. What takes structs or vectors (`types`) is needed only
/// with one of them, since nothing else can be passed.
struct Part {
    std::string_view text, name;
    Names types;
    bool is_directive = false;
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// half or a vector, which CUDA's own headers declare.
bool is_struct_of_cuda(std::string_view name)
{
    if (name == "__half")
        return true;
    return name.size() > 2 && name.back() >= '1' && name.back() <= '4' &&
        (name.starts_with("__half") || name.starts_with("__nv_") ||
         is_one_of(name.substr(0, name.size() - 1),
                   {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong",
                    "float", "double"}));
}

/// Position behind what closes the bracket at `at`.
size_t behind_bracket(const std::vector<Token>& tokens, size_t at, char open, char close)
{
    for (int depth = 0; at < tokens.size(); ++at) {
        depth += tokens[at].text[0] == open ? 1 : tokens[at].text[0] == close ? -1 : 0;
        if (!depth)
            return at + 1;
    }
    return at;
}

/// Cuts a text into parts, macros that are written as declarations into what they stand for.
class Splitter {
public:
    void split(std::string_view text, int depth = 0)
    {
        Lexer lexer(text);
        while (m_is_understood) {
            const Lexer before = lexer;
            const Token first = lexer.next();
            if (first.kind == Token::Kind::end)
                return;
            const size_t begin = size_t(first.text.data() - text.data());
            if (first.kind == Token::Kind::directive) {
                add_directive(first.text);
                continue;
            }
            const auto macro = m_macros.find(first.text);
            if (macro != m_macros.end() && makes_declarations(macro->second)) {
                expand(macro->second, lexer, depth);
                continue;
            }
            lexer = before;
            take_declaration(lexer, first.text == "typedef");
            add_declaration(text.substr(begin, lexer.at() - begin));
        }
    }

    std::vector<Part> parts;
    bool is_understood() const { return m_is_understood; }

private:
    static bool makes_declarations(const Macro& macro)
    {
        return macro.has_parameters || macro.body.find('(') != std::string_view::npos;
    }

    void add_directive(std::string_view text)
    {
        Part part{text, {}, {}, true};
        Lexer lexer(text.substr(1));
        const std::string_view kind = lexer.next().text;
        if (kind == "undef")
            m_macros.erase(lexer.next().text);
        if (kind == "define") {
            const std::string_view name = lexer.next().text;
            Macro macro;
            size_t at = size_t(name.data() + name.size() - text.data());
            if (at < text.size() && text[at] == '(') {
                macro.has_parameters = true;
                const size_t end = text.find(')', at);
                add_names(text.substr(at, end - at), macro.parameters);
                at = std::min(end, text.size() - 1) + 1;
            }
            macro.body = text.substr(at);
            part.name = name;
            m_macros.emplace(name, macro); // of two in branches, the first: that of NVRTC
        }
        parts.push_back(std::move(part));
    }

    void take_declaration(Lexer& lexer, bool is_typedef)
    {
        int depth = 0;
        for (;;) {
            const Token token = lexer.next();
            if (token.kind == Token::Kind::end) {
                m_is_understood = m_is_understood && depth == 0;
                return;
            }
            if (token.kind != Token::Kind::sign)
                continue;
            const char c = token.text[0];
            depth += c == '(' || c == '{' || c == '[' ? 1 : c == ')' || c == '}' || c == ']' ? -1 : 0;
            if (depth == 0 && c == '}' && !is_typedef) {
                if (lexer.peek().text == ";")
                    lexer.next();
                return;
            }
            if (depth == 0 && c == ';')
                return;
        }
    }

    void expand(const Macro& macro, Lexer& lexer, int depth)
    {
        std::vector<std::string_view> values;
        if (macro.has_parameters && !take_arguments(lexer, values)) {
            m_is_understood = false;
            return;
        }
        if (depth > 16 || values.size() < macro.parameters.size()) {
            m_is_understood = false;
            return;
        }
        m_expanded.push_back(expanded(macro, values));
        split(m_expanded.back(), depth + 1);
    }

    static bool take_arguments(Lexer& lexer, std::vector<std::string_view>& values)
    {
        Token token = lexer.next();
        if (token.text != "(")
            return false;
        const char* begin = token.text.data() + 1;
        for (int depth = 1; depth;) {
            token = lexer.next();
            if (token.kind == Token::Kind::end)
                return false;
            if (token.kind != Token::Kind::sign)
                continue;
            const char c = token.text[0];
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
            if (depth == 0 || (depth == 1 && c == ',')) {
                std::string_view value(begin, size_t(token.text.data() - begin));
                const size_t first = value.find_first_not_of(" \n"), last = value.find_last_not_of(" \n");
                values.push_back(first == std::string_view::npos ? value.substr(0, 0)
                                                                 : value.substr(first, last + 1 - first));
                begin = token.text.data() + 1;
            }
        }
        return true;
    }

    static std::string expanded(const Macro& macro, const std::vector<std::string_view>& values)
    {
        std::string out;
        Lexer lexer(macro.body);
        const char* done = macro.body.data();
        bool is_pasted = false;
        for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
            if (!is_pasted)
                out += without_continuations({done, size_t(token.text.data() - done)});
            done = token.text.data() + token.text.size();
            is_pasted = token.text == "#" || token.kind == Token::Kind::directive;
            if (is_pasted && lexer.peek().text == "#") {
                lexer.next();
                out.erase(out.find_last_not_of(' ') + 1);
                continue;
            }
            const bool is_quoted = is_pasted;
            if (is_quoted)
                token = lexer.next();
            is_pasted = false;
            const auto parameter = std::find(macro.parameters.begin(), macro.parameters.end(), token.text);
            const std::string_view text = parameter == macro.parameters.end()
                ? token.text
                : values[size_t(parameter - macro.parameters.begin())];
            if (is_quoted)
                out += '"';
            out += text;
            if (is_quoted)
                out += '"';
            done = token.text.data() + token.text.size();
        }
        return out;
    }

    static std::string without_continuations(std::string_view space)
    {
        std::string out(space);
        std::replace(out.begin(), out.end(), '\\', ' ');
        return out;
    }

    void add_declaration(std::string_view text)
    {
        Part part{text, {}, {}};
        std::vector<Token> tokens;
        Lexer lexer(text);
        for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
            tokens.push_back(token);
            if (token.text == "{")
                break;
        }
        describe(tokens, part);
        parts.push_back(std::move(part));
    }

    void describe(const std::vector<Token>& tokens, Part& part)
    {
        size_t at = 0;
        while (at < tokens.size() && tokens[at].text == "template")
            at = behind_bracket(tokens, at + 1, '<', '>');
        const std::string_view first = at < tokens.size() ? tokens[at].text : "";
        if (is_one_of(first, {"", "extern", "static_assert", "enum", "asm"}))
            return;
        if (first == "namespace") {
            const bool is_named = tokens.size() == at + 3 && tokens[at + 1].kind == Token::Kind::name;
            if (is_named && !m_macros.count(tokens[at + 1].text))
                part.name = tokens[at + 1].text;
            return;
        }
        if (first == "typedef") {
            if (tokens.size() > at + 2 && tokens[tokens.size() - 2].kind == Token::Kind::name)
                part.name = tokens[tokens.size() - 2].text;
        } else if (first == "using") {
            if (tokens[at + 1].text != "namespace")
                part.name = tokens[at + 1].text;
        } else if (is_one_of(first, {"struct", "class", "union"})) {
            describe_type(tokens, at + 1, part);
        } else {
            describe_function(tokens, at, part);
        }
    }

    void describe_type(const std::vector<Token>& tokens, size_t at, Part& part)
    {
        while (at + 1 < tokens.size() && tokens[at + 1].text == "(") // __align__(4)
            at = behind_bracket(tokens, at + 1, '(', ')');
        if (at + 1 >= tokens.size() || tokens[at].kind != Token::Kind::name)
            return;
        const bool is_special = tokens[at + 1].text == "<";
        if (!is_special || m_types.count(tokens[at].text)) // others specialise what CUDA's own headers use
            part.name = tokens[at].text;
        if (!is_special)
            m_types.insert(part.name);
        else
            add_types(tokens, at + 1, behind_bracket(tokens, at + 1, '<', '>'), part);
    }

    void add_types(const std::vector<Token>& tokens, size_t at, size_t end, Part& part)
    {
        for (; at < end; ++at)
            if (m_types.count(tokens[at].text) || is_struct_of_cuda(tokens[at].text))
                part.types.push_back(tokens[at].text);
    }

    void describe_function(const std::vector<Token>& tokens, size_t at, Part& part)
    {
        for (; at + 1 < tokens.size() && !is_one_of(tokens[at].text, {"=", "{", ";"}); ++at) {
            size_t next = at + 1;
            if (tokens[at].text == "operator") {
                while (next < tokens.size() && tokens[next].text != "(")
                    ++next;
                return add_types(tokens, next, behind_bracket(tokens, next, '(', ')'), part);
            }
            if (tokens[at].kind != Token::Kind::name)
                continue;
            if (tokens[next].text == "<")
                next = behind_bracket(tokens, next, '<', '>');
            if (next >= tokens.size())
                return;
            const std::string_view sign = tokens[next].text;
            if (sign == "(" &&
                is_one_of(tokens[at].text,
                          {"__attribute__", "__align__", "alignas", "decltype", "sizeof", "__launch_bounds__"})) {
                at = behind_bracket(tokens, next, '(', ')') - 1;
            } else if (is_one_of(sign, {"(", "=", ";", "["})) {
                part.name = tokens[at].text;
                if (sign == "(")
                    add_types(tokens, at + 1, behind_bracket(tokens, next, '(', ')'), part);
                return;
            }
        }
    }

    std::unordered_map<std::string_view, Macro> m_macros;
    std::unordered_set<std::string_view> m_types;
    std::deque<std::string> m_expanded;
    bool m_is_understood = true;
};

/// Follows names from a program through the parts.
class Search {
public:
    explicit Search(const std::vector<Part>& parts) : m_parts(parts), needed(parts.size())
    {
        for (size_t i = 0; i < parts.size(); ++i) {
            const Part& part = parts[i];
            m_named[part.name].push_back(i);
            for (std::string_view type : part.types)
                m_named[type].push_back(i);
        }
    }

    void run(std::string_view program)
    {
        m_open.push_back({}); // what has no name
        add_names(program, m_open);
        while (!m_open.empty()) {
            const std::string_view name = m_open.back();
            m_open.pop_back();
            const auto found = m_named.find(name);
            if (found == m_named.end() || !m_seen.insert(name).second)
                continue;
            for (size_t i : found->second)
                if (!needed[i] && is_needed(m_parts[i])) {
                    needed[i] = true;
                    add_names(m_parts[i].text, m_open);
                }
        }
    }

private:
    bool is_needed(const Part& part) const
    {
        const auto is_seen = [&](std::string_view name) { return m_seen.count(name) > 0; };
        return (part.name.empty() ? !part.is_directive : is_seen(part.name)) &&
            (part.types.empty() || std::any_of(part.types.begin(), part.types.end(), is_seen));
    }

    const std::vector<Part>& m_parts;
    std::unordered_map<std::string_view, std::vector<size_t>> m_named;
    std::unordered_set<std::string_view> m_seen;
    Names m_open;

public:
    std::vector<bool> needed;
};

} // namespace

std::string cuda_used_parts(std::string_view library, std::string_view program)
{
    for (std::string_view text : {library, program})
        if (text.find("#include \"") != std::string_view::npos)
            return std::string(library);
    Splitter splitter;
    splitter.split(library);
    if (!splitter.is_understood())
        return std::string(library);
    Search search(splitter.parts);
    search.run(program);
    std::string out;
    for (size_t i = 0; i < splitter.parts.size(); ++i) {
        const Part& part = splitter.parts[i];
        if (!search.needed[i] && !part.is_directive)
            continue;
        out += part.text;
        out += '\n';
    }
    return out;
}

} // namespace spy
