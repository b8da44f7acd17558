// Reflection of layouts: of types, variables and entry points.
#include "slang/reflection/util.h"
#include "slang/type_layout.h"

namespace spy {

using namespace reflecting;

TypeKind TypeLayoutReflection::kind() const
{
    const auto lock = enter();
    return to_type_kind(kind_of(slang()));
}

std::string TypeLayoutReflection::name() const
{
    const auto lock = enter();
    return slang()->getType() ? restore_constraints(text_or_empty(slang()->getName())) : std::string();
}

uint64_t TypeLayoutReflection::size() const
{
    const auto lock = enter();
    return to_bytes(slang()->getSize());
}

uint64_t TypeLayoutReflection::stride() const
{
    const auto lock = enter();
    return to_bytes(slang()->getStride());
}

uint64_t TypeLayoutReflection::alignment() const
{
    const auto lock = enter();
    return uint64_t(std::max(slang()->getAlignment(), 1));
}

ref<TypeReflection> TypeLayoutReflection::type() const
{
    const auto lock = enter();
    return view<TypeReflection>(slang()->getType());
}

std::vector<ref<VariableLayoutReflection>> TypeLayoutReflection::fields() const
{
    const auto lock = enter();
    const bool is_struct = kind_of(slang()) == slang::TypeReflection::Kind::Struct;
    return views<VariableLayoutReflection>(is_struct ? slang()->getFieldCount() : 0,
                                           [this](unsigned i) { return slang()->getFieldByIndex(i); });
}

ref<TypeLayoutReflection> TypeLayoutReflection::element_type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getElementTypeLayout());
}

ref<TypeLayoutReflection> TypeLayoutReflection::unwrap_array() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->unwrapArray());
}

ParameterCategory TypeLayoutReflection::parameter_category() const
{
    const auto lock = enter();
    return slang()->getParameterCategory();
}

ref<TypeLayout> TypeLayoutReflection::plain() const
{
    const auto lock = enter();
    return make_type_layout(slang(), m_layout->program);
}

std::string VariableLayoutReflection::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

ref<VariableReflection> VariableLayoutReflection::variable() const
{
    const auto lock = enter();
    return view<VariableReflection>(slang()->getVariable());
}

ref<TypeLayoutReflection> VariableLayoutReflection::type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getTypeLayout());
}

uint64_t VariableLayoutReflection::offset() const { return offset_in(ParameterCategory::Uniform); }

uint64_t VariableLayoutReflection::offset_in(ParameterCategory category) const
{
    const auto lock = enter();
    return to_bytes(slang()->getOffset(category));
}

uint32_t VariableLayoutReflection::binding_index() const
{
    const auto lock = enter();
    return slang()->getBindingIndex();
}

uint32_t VariableLayoutReflection::binding_space() const
{
    const auto lock = enter();
    return slang()->getBindingSpace();
}

std::string VariableLayoutReflection::semantic_name() const
{
    const auto lock = enter();
    return to_text(slang()->getSemanticName());
}

std::string EntryPointLayout::name() const
{
    const auto lock = enter();
    return to_text(slang()->getName());
}

std::string EntryPointLayout::name_override() const
{
    const auto lock = enter();
    return to_text(slang()->getNameOverride());
}

std::string EntryPointLayout::stage() const
{
    const auto lock = enter();
    return stage_name(ShaderStage(slang()->getStage()));
}

std::array<uint32_t, 3> EntryPointLayout::compute_thread_group_size() const
{
    const auto lock = enter();
    SlangUInt size[3] = {1, 1, 1};
    slang()->getComputeThreadGroupSize(3, size);
    return {uint32_t(size[0]), uint32_t(size[1]), uint32_t(size[2])};
}

std::vector<ref<VariableLayoutReflection>> EntryPointLayout::parameters() const
{
    const auto lock = enter();
    return views<VariableLayoutReflection>(slang()->getParameterCount(),
                                           [this](unsigned i) { return slang()->getParameterByIndex(i); });
}

ref<FunctionReflection> EntryPointLayout::function() const
{
    const auto lock = enter();
    return view<FunctionReflection>(slang()->getFunction());
}

ref<TypeLayoutReflection> EntryPointLayout::type_layout() const
{
    const auto lock = enter();
    return view<TypeLayoutReflection>(slang()->getTypeLayout());
}

} // namespace spy
