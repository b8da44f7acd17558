#pragma once
// Layouts of types and programs as plain data. The Slang layer fills them from reflection once; cursors, argument
// writers and backends read them; they are stored with a plan on disk, so that a warm start needs no compiler.
//
// A program's parameters are addressed by three counters, each relative to the enclosing aggregate:
//   byte   offset inside the current scope's uniform bytes,
//   slot   index into the flat list of resources (an array of N textures takes N slots),
//   scope  index of a separately stored block of bytes: 0 = globals, then one for the parameters of each entry point,
//          then one for every ConstantBuffer<T> and ParameterBlock<T>.
#include "core/format.h"
#include "core/ref.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spy {

enum class TypeKind : uint8_t {
    none,
    struct_,
    array,
    matrix,
    vector,
    scalar,
    constant_buffer,
    resource,
    sampler_state,
    texture_buffer,
    shader_storage_buffer,
    parameter_block,
    generic_type_parameter,
    interface,
    output_stream,
    specialized,
    feedback,
    pointer,
    dynamic_resource,
    enum_,
    descriptor_handle, ///< ours: to Slang it is two uint, an address or a resource, as the target has it
};

enum class ResourceShape : uint8_t {
    none,
    texture_1d,
    texture_2d,
    texture_3d,
    texture_cube,
    texture_buffer,
    structured_buffer,
    byte_address_buffer,
    unknown,
    acceleration_structure,
    texture_subpass,
    texture_1d_array,
    texture_2d_array,
    texture_cube_array,
    texture_2d_multisample,
    texture_2d_multisample_array,
};

enum class ResourceAccess : uint8_t { none, read, read_write, raster_ordered, append, consume, write, feedback };

/// What a DescriptorHandle names; the numbers are public.
enum class DescriptorHandleType : uint8_t {
    undefined,
    buffer,
    rw_buffer,
    texture,
    rw_texture,
    sampler,
    combined_texture_sampler,
    acceleration_structure,
};

struct TypeLayout;

struct FieldLayout {
    std::string name;
    ref<TypeLayout> type;
    uint64_t offset = 0; ///< bytes
    uint32_t slot = 0;
    uint32_t scope = 0;
};

struct TypeLayout : Object {
    TypeKind kind = TypeKind::none;
    std::string name;                             ///< as Slang reports it
    std::string full_name;                        ///< canonical spelling
    ScalarType scalar = ScalarType::none;         ///< of scalars, vectors, matrices, enums (their tag) and texel types
    uint32_t rows = 0, cols = 0;                  ///< vectors: rows = 1, cols = N; scalars: 1, 1
    uint64_t size = 0, stride = 0, alignment = 1; ///< uniform bytes; stride = size rounded up to alignment
    uint32_t slot_count = 0, scope_count = 0;
    int64_t element_count = 0;   ///< arrays; -1 = unbounded
    uint64_t element_stride = 0; ///< bytes between elements of arrays, vectors; between rows of matrices
    bool row_major = true;
    ref<TypeLayout> element; ///< arrays, vectors, buffers, constant buffers, parameter blocks, pointers
    ResourceShape resource_shape = ResourceShape::none;
    ResourceAccess resource_access = ResourceAccess::none;
    /// DescriptorHandle<T>: what T is; shape, access and `element_stride` (of structured buffers) are T's.
    DescriptorHandleType handle = DescriptorHandleType::undefined;
    std::vector<FieldLayout> fields;

    const FieldLayout* find_field(std::string_view field) const
    {
        for (const FieldLayout& candidate : fields)
            if (candidate.name == field)
                return &candidate;
        return nullptr;
    }
};

enum class ScopeKind : uint8_t { globals, entry_point, constant_buffer, parameter_block };

/// One separately stored block of uniform bytes.
struct ScopeLayout {
    ScopeKind kind = ScopeKind::globals;
    std::string path;              ///< "light", "" for globals and entry point
    uint64_t size = 0;             ///< bytes; 0 = nothing stored
    int32_t parent = -1;           ///< CPU, CUDA: the scope that holds the pointer to this block ...
    uint64_t parent_offset = 0;    ///< ... and where
    uint32_t set = 0, binding = 0; ///< Vulkan, D3D12: where the constant buffer is bound
    bool push_constant = false;    ///< Vulkan: the bytes are push constants
    bool memory = false;           ///< D3D12: the bytes are those of a ByteAddressBuffer, not of a constant buffer
};

enum class SlotKind : uint8_t {
    structured_buffer,
    byte_address_buffer,
    texture,
    sampler,
    combined_texture_sampler,
    texel_buffer,
    acceleration_structure,
};

/// One resource parameter (one array element each).
struct SlotLayout {
    SlotKind kind = SlotKind::structured_buffer;
    std::string path; ///< "scene.textures[3]", for messages
    bool writable = false;
    uint32_t set = 0, binding = 0, array_index = 0; ///< Vulkan, D3D12 (register space, register)
    uint32_t scope = 0;                             ///< CPU, CUDA: where the handle is stored ...
    uint64_t offset = 0, size = 0;                  ///< ... in that scope's bytes
    uint64_t element_stride = 0; ///< structured buffers; of texel buffers 1 for slangpy_host.slang's, else 0
    ResourceShape shape = ResourceShape::none;
    ScalarType scalar = ScalarType::none; ///< texel scalar of textures
    uint32_t channels = 0;                ///< texel components of textures
};

/// What an entry point is for; the numbers are Slang's.
enum class ShaderStage : uint8_t {
    none,
    vertex,
    hull,
    domain,
    geometry,
    fragment,
    compute,
    ray_generation,
    intersection,
    any_hit,
    closest_hit,
    miss,
    callable,
    mesh,
    amplification,
    dispatch,
};
const char* stage_name(ShaderStage stage);
/// ValueError for a name that is none.
ShaderStage stage_from_name(std::string_view name);

/// One entry point of a program, and where its own parameters are bound.
struct EntryPoint {
    std::string name; ///< as it stands in the target code
    ShaderStage stage = ShaderStage::compute;
    ref<TypeLayout> parameters; ///< struct of them: `scope`, byte 0, `slot`
    uint32_t scope = 1, slot = 0;
    uint32_t nested_scope = 2; ///< first scope of the blocks inside
};

/// What a vertex shader reads from vertex buffers or hands to the fragment shader; system values are not among them.
struct Varying {
    std::string semantic; ///< in capitals, without its number
    uint32_t semantic_index = 0;
    uint32_t location = 0; ///< Vulkan
    ScalarType scalar = ScalarType::none;
    uint32_t channels = 0;
};

/// The one of the same semantic; null where there is none.
const Varying* find_varying(const std::vector<Varying>& among, const Varying& wanted);

/// Everything a backend must know to bind the arguments of a program: one entry point, or those of a render pipeline.
struct ProgramLayout : Object {
    ref<TypeLayout> globals;              ///< struct of the global parameters: scope 0, byte 0, slot 0
    uint32_t nested_scope = 2;            ///< scopes of nested blocks begin here: those in globals first
    std::vector<EntryPoint> entry_points; ///< at least one, in the order of the program
    std::vector<Varying> vertex_inputs, vertex_outputs, fragment_inputs;
    std::vector<ScopeLayout> scopes;
    std::vector<SlotLayout> slots;
    uint32_t group_size[3] = {1, 1, 1}; ///< of the first entry point

    /// The only one of a compute program.
    const EntryPoint& entry_point() const { return entry_points.front(); }
};

/// Compact binary form for the disk cache. Reading checks every length and throws spy::Error on corrupt data.
std::string serialize(const ProgramLayout& layout);
ref<ProgramLayout> deserialize_program_layout(std::string_view bytes);
std::string serialize(const TypeLayout& layout);
ref<TypeLayout> deserialize_type_layout(std::string_view bytes);

} // namespace spy
