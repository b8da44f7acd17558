// Names that users give: the door in front of Slang, which crashes on much that is no name.
#include "slang/reflection/util.h"

#include <algorithm>

namespace spy {

namespace {

/// `Gen<int, x>` with an x that is no constant: a type on which everything else crashes.
bool is_broken(slang::TypeReflection* type)
{
    ComPtr<ISlangBlob> name;
    return SLANG_SUCCEEDED(type->getFullName(name.put())) && name &&
        blob_text(name.get()).find("<error>") != std::string::npos;
}

} // namespace

slang::TypeReflection* Layout::find_type(const std::string& name)
{
    return look_up<slang::TypeReflection>("type:", name, [&](const char* text) {
        slang::TypeReflection* type = program->findTypeByName(text);
        return type && !is_broken(type) ? type : nullptr;
    });
}

slang::ProgramLayout* Layout::probe(const std::string& text, bool sees_imports)
{
    const std::string key = (sees_imports ? "probe of all:" : "probe:") + text;
    if (const auto known = found.find(key); known != found.end())
        return static_cast<slang::ProgramLayout*>(known->second);
    std::string source;
    for (const std::string& module : modules)
        source += "import \"" + module + "\";\n";
    for (const std::string& module : sees_imports ? imported_by_modules() : std::vector<std::string>())
        source += "import \"" + module + "\";\n";
    source += text;
    slang::ProgramLayout* made = reflecting::layout_of_text(state->session.get(), "_spy_probe_" + content_hash(source),
                                                            source);
    found[key] = made;
    return made;
}

/// As part of a module Slang survives what it crashes on as part of a name.
bool Layout::are_constant(const NameValues& values)
{
    if (values.whole.empty())
        return true;
    std::string text = "void _spy_integer<T : __BuiltinIntegerType>(T value) {}\nvoid _spy_probe()\n{\n";
    for (const std::string& term : values.terms)
        text += "    _spy_integer(" + term + ");\n";
    text += "}\n";
    for (size_t i = 0; i < values.whole.size(); ++i)
        text += cat("static const int64_t _spy_value", i, " = ", values.whole[i], ";\n");
    return probe(text) != nullptr;
}

std::string Layout::checked_name(const std::string& name)
{
    NameValues values;
    const std::string clean = sanitize_name(name, &values);
    return are_constant(values) ? clean : std::string();
}

bool Layout::is_expression(const std::string& text)
{
    NameValues values;
    return spy::is_expression(text, &values) && are_constant(values);
}

} // namespace spy
