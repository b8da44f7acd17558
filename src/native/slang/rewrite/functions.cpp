#include "slang/rewrite/functions.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/variables.h"

#include <algorithm>
#include <cctype>

namespace spy {
namespace {

ParameterUse use_of(const BracketedText& text, const Argument& parameter)
{
    bool writes = false, refers = false;
    for (size_t i = parameter.first; i <= parameter.last; ++i) {
        const std::string_view word = text.at(i);
        const size_t end = writes ? text.float_type_end(i) : i;
        if (end != i && is_word(text.at(end)) && text.at(end + 1) != "[")
            return ParameterUse::written_float;
        if (writes && is_discrete_type(word) && is_word(text.at(i + 1)))
            return ParameterUse::written_discrete;
        writes = writes || word == "out" || word == "inout";
        refers = refers || (word.ends_with("ref") && i < parameter.last);
    }
    return writes ? ParameterUse::written : refers ? ParameterUse::referred : ParameterUse::read;
}

/// Whether the function of which the parameters begin at `open` is a method that changes its object.
bool is_mutating(const BracketedText& text, size_t open)
{
    const size_t begin = text.header_of({open, open, open});
    for (size_t i = begin; i < open; ++i)
        if (text.at(i) == "mutating")
            return true;
    return false;
}

/// Whether `float[3]`, `float2x2` or `vector<T, 3>` stands before the name of a function.
bool returns_elements(const BracketedText& text, size_t name)
{
    size_t type = name - 1;
    const bool is_array = text.at(type) == "]";
    while (type > 0 && text.at(type) == "]")
        type = text.match(type) - 1;
    while (type > 0 && text.at(type) == ">") {
        size_t depth = 0;
        do {
            depth += text.at(type) == ">" ? 1 : text.at(type) == "<" ? size_t(-1) : 0;
            --type;
        } while (type > 0 && depth > 0);
    }
    const std::string_view word = text.at(type);
    const bool is_vector = word == "vector" || word == "matrix" || (is_float_type(word) && !is_float_word(word));
    return is_vector || (is_array && is_float_word(word));
}

/// Whether one of the tables says so of a name.
bool holds_anywhere(const FunctionTable& own, const FunctionTables& imported,
                    bool (FunctionTable::*test)(std::string_view) const, std::string_view name)
{
    return (own.*test)(name) ||
        std::any_of(imported.begin(), imported.end(), [&](const auto& table) { return (*table.*test)(name); });
}

} // namespace

bool is_discrete_type(std::string_view word)
{
    const std::string_view name = word.substr(0, word.find_last_not_of("1234x") + 1);
    return name == "int" || name == "uint" || name == "bool" || word == "int64_t" || word == "uint64_t";
}

std::vector<Argument> arguments_of(const BracketedText& text, size_t open)
{
    std::vector<Argument> result;
    size_t first = open + 1;
    for (size_t i = first; text.match(open) > first && i <= text.match(open); ++i)
        if (i == text.match(open) || (text.at(i) == "," && text.around(i) == open)) {
            result.push_back({first, i - 1});
            first = i + 1;
        }
    return result;
}

size_t called_name(const BracketedText& text, size_t open)
{
    if (open == 0)
        return npos;
    size_t i = open - 1;
    if (text.at(i) == ">") {
        static const BracketedText::Names may_stand_between = {"<", ">", ",", ".", ":", "[", "]"};
        for (int depth = 0; i > 0; --i) {
            const std::string_view word = text.at(i);
            const bool is_number = !word.empty() && word[0] >= '0' && word[0] <= '9';
            if (!may_stand_between.count(word) && !is_word(word) && !is_number)
                return npos; // a comparison
            depth += word == ">" ? 1 : word == "<" ? -1 : 0;
            if (depth == 0)
                break;
        }
        i = i > 0 ? i - 1 : 0;
    }
    return is_word(text.at(i)) ? i : npos;
}

FunctionTable::FunctionTable()
{
    m_functions["sincos"] = {{{ParameterUse::read, ParameterUse::written_float, ParameterUse::written_float}, false}};
}

FunctionTable::FunctionTable(std::string_view source) { read(BracketedText(source)); }

FunctionTable::FunctionTable(const BracketedText& text) { read(text); }

void FunctionTable::read(const BracketedText& text)
{
    if (!text.balanced())
        return;
    read_types(text);
    const std::vector<FunctionBody> bodies = text.bodies();
    auto body = bodies.begin();
    for (size_t open = 0; open < text.size(); ++open) {
        if (body != bodies.end() && open >= body->open) {
            open = body->end; // functions hold none
            ++body;
            continue;
        }
        const size_t around = text.around(open);
        const bool may_be = text.at(open) == "(" && (around == npos || text.at(around) == "{");
        const size_t name = may_be ? called_name(text, open) : npos;
        if (name == npos)
            continue;
        DeclaredFunction function{{}, is_mutating(text, open), returns_elements(text, name)};
        for (const Argument& parameter : arguments_of(text, open))
            if (!parameter.empty())
                function.parameters.push_back(use_of(text, parameter));
        m_functions[std::string(text.at(name))].push_back(std::move(function));
        open = text.match(open);
    }
}

void FunctionTable::read_struct(const BracketedText& text, size_t i)
{
    const std::string_view name = text.at(i + 1);
    m_structs.emplace(name);
    size_t open = i + 2;
    for (; open < text.size() && text.at(open) != "{" && text.at(open) != ";"; ++open)
        if (text.at(open) == "<" || text.at(open) == ",")
            m_structs.emplace(text.at(open + 1)); // its parameters, as types of fields
    static constexpr std::string_view memory[] = {"Buffer", "Texture", "Tensor", "Sampler", "Structure", "Ptr"};
    for (size_t k = open + 1; text.at(open) == "{" && k < text.match(open); ++k) {
        const std::string_view word = text.at(k);
        const auto names = [&](std::string_view part) { return word.find(part) != word.npos; };
        if (text.around(k) == open &&
            (word == "*" || m_holders.count(word) || std::any_of(std::begin(memory), std::end(memory), names)))
            m_holders.emplace(name);
    }
}

void FunctionTable::read_alias(const BracketedText& text, const TypeAlias& alias)
{
    const std::string_view name = text.at(alias.name), type = text.at(alias.type);
    const bool is_known = is_struct(type);
    if ((is_float_type(type) && (alias.is_array || !is_float_word(type))) || (is_known && alias.is_array))
        m_aliases.emplace(name);
    else if (is_known && text.at(alias.type + 1) != "<") {
        m_structs.emplace(name);
        m_renamed.emplace(name);
    }
    if (m_holders.count(type))
        m_holders.emplace(name);
}

void FunctionTable::read_types(const BracketedText& text)
{
    for (size_t i = 0; i + 1 < text.size(); ++i)
        if (text.at(i) == "struct")
            read_struct(text, i);
    for (size_t i = 0; i + 1 < text.size(); ++i)
        if (const TypeAlias alias = alias_at(text, i); alias.name != npos)
            read_alias(text, alias);
    for (const auto& [name, field] : declared_fields(text)) {
        FieldTypes& types = m_fields[std::string(name)];
        (field.is_array ? types.arrays : types.singles).emplace(field.type);
        if (field.is_other || field.is_fixed)
            types.singles.emplace("");
    }
}

const FieldTypes* FunctionTable::field(std::string_view name) const
{
    const auto found = m_fields.find(name);
    return found == m_fields.end() ? nullptr : &found->second;
}

const std::vector<DeclaredFunction>* FunctionTable::find(std::string_view name) const
{
    const auto found = m_functions.find(name);
    return found == m_functions.end() ? nullptr : &found->second;
}

Effect effect_of(const FunctionTable& own, const FunctionTables& imported, std::string_view name, size_t count,
                 size_t k)
{
    std::vector<const DeclaredFunction*> functions;
    Effect effect;
    const auto collect = [&](const FunctionTable& table) {
        if (const std::vector<DeclaredFunction>* known = table.find(name)) {
            effect.known = true;
            for (const DeclaredFunction& function : *known)
                if (function.parameters.size() >= count)
                    functions.push_back(&function);
        }
    };
    collect(own);
    for (const std::shared_ptr<const FunctionTable>& table : imported)
        collect(*table);
    const auto is_exact = [&](const DeclaredFunction* function) { return function->parameters.size() == count; };
    const bool any_exact = std::any_of(functions.begin(), functions.end(), is_exact); // none has defaults
    bool does = true;
    for (const DeclaredFunction* function : functions) {
        if (any_exact && !is_exact(function))
            continue;
        const ParameterUse object = function->is_mutating ? ParameterUse::written : ParameterUse::read;
        const ParameterUse use = k == npos ? object : function->parameters[k];
        effect.may |= use != ParameterUse::read;
        does &= use != ParameterUse::read && use != ParameterUse::referred;
        effect.is_float &= use == ParameterUse::written_float;
        effect.is_discrete &= use == ParameterUse::written_discrete;
    }
    effect.does = does && effect.may;
    return effect;
}

bool is_struct(const FunctionTable& own, const FunctionTables& imported, std::string_view name)
{
    return holds_anywhere(own, imported, &FunctionTable::is_struct, name);
}

bool is_renamed(const FunctionTable& own, const FunctionTables& imported, std::string_view name)
{
    return holds_anywhere(own, imported, &FunctionTable::is_renamed, name);
}

bool holds_memory(const FunctionTable& own, const FunctionTables& imported, std::string_view name)
{
    return holds_anywhere(own, imported, &FunctionTable::holds_memory, name);
}

bool is_array_alias(const FunctionTable& own, const FunctionTables& imported, std::string_view name)
{
    return holds_anywhere(own, imported, &FunctionTable::is_array_alias, name);
}

Taking taking_of(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t begin,
                 size_t end)
{
    const size_t open = text.around(begin);
    const size_t name = open != npos && text.at(open) == "(" ? called_name(text, open) : npos;
    if (name == npos)
        return {};
    const std::vector<Argument> given = arguments_of(text, open);
    for (size_t k = 0; k < given.size(); ++k)
        if (given[k].first == begin && given[k].last + 1 == end)
            return {name, effect_of(own, imported, text.at(name), given.size(), k)};
    return {};
}

bool changes_object(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t before,
                    size_t open)
{
    return effect_of(own, imported, text.at(before + 1), arguments_of(text, open).size(), npos).may;
}

Written written_at(const BracketedText& text, const FunctionTable& own, const FunctionTables& imported, size_t begin,
                   size_t end)
{
    if (text.is_assignment(end) || text.is_stepped(begin))
        return {true};
    const auto [name, effect] = taking_of(text, own, imported, begin, end);
    if (name == npos || is_float_type(text.at(name)) || writes_no_argument(text.at(name)))
        return {};
    return effect.known ? Written{effect.may} : Written{false, name};
}

bool may_be_differentiable(const BracketedText& text, const FunctionBody& body)
{
    for (size_t i = text.header_of(body); i < body.begin; ++i) {
        const std::string_view word = text.at(i);
        const bool is_macro = word.size() > 1 &&
            std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c) || c == '_'; });
        if (is_macro || word.ends_with("ifferentiable"))
            return true;
    }
    return false;
}

} // namespace spy
