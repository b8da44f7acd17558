#pragma once
// The reflection that the whole package uses. Each class is a view on a thing that Slang owns; a view keeps the
// session and the program alive, and there is one view per thing at a time.
#include "core/layout.h"
#include "slang/session.h"

#include <optional>

namespace spy {

class TypeReflection;
class TypeLayoutReflection;
class VariableReflection;
class VariableLayoutReflection;
class FunctionReflection;
class GenericReflection;
class DeclReflection;
class EntryPointLayout;
class Attribute;

enum class ModifierID { shared, nodiff, static_, const_, export_, extern_, differentiable, mutating, inn, out, inout };

/// Where Slang expects a parameter; the values are Slang's.
using ParameterCategory = slang::ParameterCategory;

/// Base of all views.
class Reflection : public Object {
public:
    Reflection(std::shared_ptr<Layout> layout, void* pointer, int kind);
    ~Reflection() override;

    const void* pointer() const { return m_pointer; }
    const std::shared_ptr<Layout>& layout() const { return m_layout; }
    bool is_valid() const { return m_layout->state->valid; }

    /// Takes the compiler's lock, after checking that no reload made this view stale.
    Compiler::Lock enter() const;

    template <typename View, typename Thing>
    static ref<View> view(const std::shared_ptr<Layout>& layout, Thing* thing)
    {
        if (!thing)
            return nullptr;
        void* pointer = const_cast<void*>(static_cast<const void*>(thing));
        if (Reflection* known = find(*layout, pointer, View::kind_id))
            return static_cast<View*>(known);
        return new View(layout, pointer, View::kind_id);
    }
    template <typename View, typename Thing>
    ref<View> view(Thing* thing) const
    {
        return view<View>(m_layout, thing);
    }
    /// Views of `count` things, each given by `at`.
    template <typename View, typename At>
    std::vector<ref<View>> views(uint64_t count, At&& at) const
    {
        std::vector<ref<View>> result;
        for (unsigned i = 0; i < count; ++i)
            result.push_back(view<View>(at(i)));
        return result;
    }

protected:
    static Reflection* find(const Layout& layout, const void* pointer, int kind);
    template <typename Thing>
    Thing* as() const
    {
        return static_cast<Thing*>(m_pointer);
    }

    std::shared_ptr<Layout> m_layout;
    void* m_pointer;
    int m_kind;
};

class TypeReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 1;
    slang::TypeReflection* slang() const { return as<slang::TypeReflection>(); }

    TypeKind kind() const;
    std::string name() const;
    std::string full_name() const; ///< canonical spelling
    std::vector<ref<VariableReflection>> fields() const;
    int64_t element_count() const; ///< -1 = unbounded or not known before specialisation; 0 = no elements
    ref<TypeReflection> element_type() const;
    int64_t row_count() const; ///< 1 for vectors; -1 as element_count()
    int64_t col_count() const;
    ScalarType scalar_type() const;
    ref<TypeReflection> resource_result_type() const;
    ResourceShape resource_shape() const;
    bool is_combined_texture_sampler() const;
    ResourceAccess resource_access() const;
    ref<TypeReflection> unwrap_array() const;
    std::vector<ref<Attribute>> user_attributes() const;
    ref<Attribute> find_user_attribute(const std::string& name) const;
    ref<GenericReflection> generic() const;
    bool is_generic() const; ///< a generic type without its arguments
    bool differentiable() const;
    ref<TypeReflection> derivative() const; ///< T.Differential, none for types that have none
    /// Constructors of a struct, the one that Slang makes of the members included. Those of a generic struct speak of
    /// its parameters (Slang cannot specialise them): substitute() gives the types.
    std::vector<ref<FunctionReflection>> constructors() const;
    std::vector<std::string> enum_names() const; ///< of an enum's values, wherever the session has it from
    /// `type`, which speaks of the parameters of this generic type, with this type's arguments in their place.
    ref<TypeReflection> substitute(const TypeReflection& type) const;
};

class VariableReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 2;
    slang::VariableReflection* slang() const { return as<slang::VariableReflection>(); }

    std::string name() const;
    ref<TypeReflection> type() const;
    bool has_modifier(ModifierID modifier) const;
    bool has_default() const;
    std::optional<int64_t> default_int() const;
    std::optional<double> default_float() const;
    std::vector<ref<Attribute>> user_attributes() const;
    ref<Attribute> find_user_attribute(const std::string& name) const;
};

class TypeLayoutReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 3;
    slang::TypeLayoutReflection* slang() const { return as<slang::TypeLayoutReflection>(); }

    TypeKind kind() const;
    std::string name() const;
    uint64_t size() const;
    uint64_t stride() const;
    uint64_t alignment() const;
    ref<TypeReflection> type() const;
    std::vector<ref<VariableLayoutReflection>> fields() const;
    ref<TypeLayoutReflection> element_type_layout() const;
    ref<TypeLayoutReflection> unwrap_array() const;
    ParameterCategory parameter_category() const;
    ref<TypeLayout> plain() const;
};

class VariableLayoutReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 4;
    slang::VariableLayoutReflection* slang() const { return as<slang::VariableLayoutReflection>(); }

    std::string name() const;
    ref<VariableReflection> variable() const;
    ref<TypeLayoutReflection> type_layout() const;
    uint64_t offset() const;
    uint64_t offset_in(ParameterCategory category) const;
    uint32_t binding_index() const;
    uint32_t binding_space() const;
    std::string semantic_name() const;
};

class FunctionReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 5;
    slang::FunctionReflection* slang() const { return as<slang::FunctionReflection>(); }

    std::string name() const;
    ref<TypeReflection> return_type() const;
    std::vector<ref<VariableReflection>> parameters() const;
    bool has_modifier(ModifierID modifier) const;
    std::vector<ref<Attribute>> user_attributes() const;
    ref<Attribute> find_user_attribute(const std::string& name) const;
    bool is_overloaded() const;
    std::vector<ref<FunctionReflection>> overloads() const;
    /// The function that a call with these types selects, generics filled in; none when Slang refuses.
    ref<FunctionReflection> specialize_with_arg_types(const std::vector<ref<TypeReflection>>& types) const;
    ref<GenericReflection> generic() const;
};

/// The generic declaration around a type or function: its parameters and, when specialised, their arguments.
class GenericReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 6;
    slang::GenericReflection* slang() const { return as<slang::GenericReflection>(); }

    std::string name() const;
    std::vector<std::string> type_parameters() const;
    std::vector<std::string> value_parameters() const;
    std::vector<ref<TypeReflection>> constraints(const std::string& type_parameter) const;
    ref<TypeReflection> concrete_type(const std::string& type_parameter) const;
    int64_t concrete_value(const std::string& value_parameter) const;
    ref<GenericReflection> outer() const;

private:
    slang::VariableReflection* find_parameter(const std::string& name, bool is_type) const;
};

class DeclReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 7;
    slang::DeclReflection* slang() const { return as<slang::DeclReflection>(); }
    enum class Kind { unsupported, struct_, func, module, generic, variable, namespace_, enum_ };

    Kind kind() const;
    std::string name() const;
    std::vector<ref<DeclReflection>> children() const;
    ref<DeclReflection> parent() const;
    /// What a generic declares; null for others.
    ref<DeclReflection> inner() const;
    ref<TypeReflection> as_type() const;
    ref<VariableReflection> as_variable() const;
    ref<FunctionReflection> as_function() const;
    bool has_modifier(ModifierID modifier) const;
    /// File, line, column; the file is empty when Slang does not know.
    std::tuple<std::string, int64_t, int64_t> location() const;
};

class EntryPointLayout : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 8;
    slang::EntryPointReflection* slang() const { return as<slang::EntryPointReflection>(); }

    std::string name() const;
    std::string name_override() const;
    std::string stage() const;
    std::array<uint32_t, 3> compute_thread_group_size() const;
    std::vector<ref<VariableLayoutReflection>> parameters() const;
    ref<FunctionReflection> function() const;
    ref<TypeLayoutReflection> type_layout() const;
};

class Attribute : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 9;
    slang::Attribute* slang() const { return as<slang::Attribute>(); }

    std::string name() const;
    uint32_t argument_count() const;
    ref<TypeReflection> argument_type(uint32_t index) const;
    std::optional<int64_t> argument_value_int(uint32_t index) const;
    std::optional<double> argument_value_float(uint32_t index) const;
    std::optional<std::string> argument_value_string(uint32_t index) const;

private:
    void check_index(uint32_t index) const;
};

enum class LayoutRules { default_, structured_buffer, constant_buffer };

/// A module's, an entry point's or a program's parameters and names.
class ProgramReflection : public Reflection {
public:
    using Reflection::Reflection;
    static constexpr int kind_id = 10;
    slang::ProgramLayout* slang() const { return as<slang::ProgramLayout>(); }

    ref<TypeLayoutReflection> globals_type_layout() const;
    ref<VariableLayoutReflection> globals_variable_layout() const;
    std::vector<ref<VariableLayoutReflection>> parameters() const;
    std::vector<ref<EntryPointLayout>> entry_points() const;
    ref<TypeReflection> find_type_by_name(const std::string& name) const;
    ref<FunctionReflection> find_function_by_name(const std::string& name) const;
    ref<FunctionReflection> find_function_by_name_in_type(const TypeReflection& type, const std::string& name) const;
    ref<TypeLayoutReflection> get_type_layout(const TypeReflection& type, LayoutRules rules) const;
    /// Layout of T as an element of StructuredBuffer<T>.
    ref<TypeLayout> element_layout(const TypeReflection& type) const;
    bool is_sub_type(const TypeReflection& type, const TypeReflection& super) const;
    std::vector<std::string> hashed_strings() const;
    uint64_t generation() const { return m_layout->state->generation; }

private:
    /// Throws for a type of another session, or from before a reload. Under the lock.
    void check_own(const TypeReflection& type, const char* function) const;
};

TypeKind to_type_kind(slang::TypeReflection::Kind kind);
/// The scalar that a struct of slangpy_narrow.slang stands for; none for all other types.
ScalarType narrow_scalar(slang::TypeReflection* type);
/// Slang's kind of a type, but for those structs, which are scalars.
slang::TypeReflection::Kind kind_of(slang::TypeReflection* type);
slang::TypeReflection::Kind kind_of(slang::TypeLayoutReflection* layout);
ScalarType to_scalar_type(slang::TypeReflection::ScalarType type);
ResourceShape to_resource_shape(SlangResourceShape shape);
ResourceAccess to_resource_access(SlangResourceAccess access);
/// Scalar of a scalar, vector, matrix or enum; none for others.
ScalarType scalar_of(slang::TypeReflection* type);
/// Element of an array, vector, matrix; what a pointer points to; none for others.
slang::TypeReflection* element_of(slang::TypeReflection* type);
std::string full_type_name(slang::TypeReflection* type);

} // namespace spy
