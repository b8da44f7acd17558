#include "slang/reflection/core_types.h"
#include "slang/reflection/util.h"

#include <algorithm>

namespace spy {

namespace {

using reflecting::to_text;
using Kind = slang::TypeReflection::Kind;

bool is_core(slang::FunctionReflection* function)
{
    if (function->isOverloaded()) {
        for (unsigned i = 0; i < function->getOverloadCount(); ++i)
            if (function->getOverload(i) && is_core(function->getOverload(i)))
                return true;
        return false;
    }
    slang::GenericReflection* generic = function->getGenericContainer();
    slang::DeclReflection* root = generic ? generic->asDecl() : nullptr;
    while (root && root->getParent())
        root = root->getParent();
    return root && to_text(root->getName()) == "core";
}

bool is_built_in(Kind kind) { return kind == Kind::Scalar || kind == Kind::Vector || kind == Kind::Matrix; }

/// Whether only scalars, or vectors or matrices of them, fit a parameter: interfaces with these names are closed.
bool takes_built_in_only(slang::GenericReflection* generic, slang::TypeReflection* parameter)
{
    if (is_built_in(parameter->getKind()))
        return true;
    const std::string name = to_text(parameter->getName());
    for (unsigned i = 0; i < generic->getTypeParameterCount(); ++i) {
        slang::VariableReflection* declared = generic->getTypeParameter(i);
        if (to_text(declared->getName()) != name)
            continue;
        for (unsigned c = 0; c < generic->getTypeParameterConstraintCount(declared); ++c)
            if (to_text(generic->getTypeParameterConstraintType(declared, c)->getName()).starts_with("__Builtin"))
                return true;
    }
    return false;
}

/// Whether a struct stands where only numbers fit.
bool cannot_take(slang::FunctionReflection* function, const std::vector<slang::TypeReflection*>& types)
{
    if (function->isOverloaded() || types.size() > function->getParameterCount())
        return false;
    for (unsigned i = 0; i < types.size(); ++i)
        if (types[i]->getKind() == Kind::Struct &&
            takes_built_in_only(function->getGenericContainer(), function->getParameterByIndex(i)->getType()))
            return true;
    return false;
}

} // namespace

CoreTypes& CoreTypes::of(Compiler& compiler)
{
    if (!compiler.m_core_types)
        compiler.m_core_types.reset(new CoreTypes(compiler));
    return *compiler.m_core_types;
}

CoreTypes::CoreTypes(Compiler& compiler)
{
    slang::TargetDesc target = {};
    target.format = SLANG_CPP_SOURCE;
    slang::SessionDesc desc = {};
    desc.targets = &target;
    desc.targetCount = 1;
    if (SLANG_FAILED(compiler.global_session()->createSession(desc, m_session.put())))
        return;
    m_program = reflecting::layout_of_text(m_session.get(), "_spy_core_types", "// empty\n");
}

slang::TypeReflection* CoreTypes::find(slang::TypeReflection* type)
{
    if (!m_program || !is_built_in(type->getKind()))
        return nullptr;
    const std::string name = full_type_name(type);
    const auto known = m_found.find(name);
    return known != m_found.end() ? known->second : m_found[name] = m_program->findTypeByName(name.c_str());
}

slang::FunctionReflection* specialize(SessionState& state, slang::FunctionReflection* function,
                                      const std::vector<slang::TypeReflection*>& types)
{
    std::vector<slang::TypeReflection*> asked = types;
    if (is_core(function)) {
        if (cannot_take(function, types))
            return nullptr;
        for (slang::TypeReflection*& type : asked)
            type = CoreTypes::of(*state.compiler).find(type);
        if (std::find(asked.begin(), asked.end(), nullptr) != asked.end()) {
            asked = types;
            state.keep_for_ever();
        }
    }
    return function->specializeWithArgTypes(unsigned(asked.size()), asked.data());
}

} // namespace spy
