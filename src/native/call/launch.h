#pragma once
#include "call/plan.h"
#include "call/signature.h"

namespace spy {

struct TorchTensor;

/// What a call may override when it runs: not part of the key.
struct RunOptions {
    nb::object uniforms;   ///< callable(plan view) -> ShaderObject with the globals, or None
    NativeHandle stream;
};

/// The stream that a call with torch tensors runs on: the function's own, else torch's current one; none on a CPU.
NativeHandle torch_call_stream(const RunOptions& options, const Leaf* torch_leaf);
/// Raises when the call is being recorded into a CUDA graph: what it lacks cannot be built then. `owner` is the
/// FunctionNode or the plan's view.
void refuse_cold_capture(Device& device, const RunOptions& options, std::span<const Leaf> leaves, nb::handle owner);

/// Writes the arguments of a planned call, launches it and returns what the call returns.
class Launch {
public:
    Launch(CallPlan& plan, Signature& signature, const RunOptions& options);
    nb::object run();

private:
    struct Upload {
        size_t leaf;
        ref<Buffer> buffer;
        std::vector<uint8_t> bytes;
        bool write_back;
        std::unique_ptr<Leaf> own = {}; ///< torch gradients: memory that is no leaf's
    };
    enum class ReadTo : uint8_t { value, grad, pair, result, result_tangent };
    struct Readback {
        const TypeLayout* layout;
        PyObject* object; ///< ValueRef, DiffPair; null: the result
        ReadTo to;
        ref<Buffer> buffer;
        std::vector<uint64_t> bytes; ///< host memory of the CPU device
    };
    struct Custom {
        size_t leaf;
        Shape shape;
        nb::object data; ///< what create_calldata returned
    };

    /// What tells two torch views apart.
    struct SharedView {
        uint64_t address;
        ScalarType scalar;
        Shape shape, strides;
        bool operator==(const SharedView&) const = default;
    };
    struct Shared {
        SharedView view;
        nb::object tensor, inside; ///< the user's, and the same in `piece`
        SharedPiece piece;
        bool copy_out;
    };
    struct Access;
    /// A copy of a tensor, or of its gradient, that another argument is written over.
    struct Apart {
        size_t leaf;
        ViewSource source;
        uint64_t address; ///< of the view's first element in the copy
        int64_t first;    ///< elements before it
    };
    struct Sums {
        size_t leaf;
        uint64_t begin; ///< of the gradient's memory
        uint64_t count; ///< elements, gaps between strides included
        uint64_t sums;  ///< address
    };

    void measure();
    void merge_shape(size_t index, const LeafPlan& plan, const Shape& shape);
    void check_inner(size_t index, const LeafPlan& plan, const Shape& shape);
    void apply_thread_count();
    VariantKey choose_variant();
    AccessClass classify(const LeafPlan& plan, const Shape& shape, const Shape& strides, bool flatten) const;
    static std::array<const TensorBase*, 2> gradients(const LeafPlan& plan, const Leaf& leaf);
    AccessClass gradient_access(size_t index, AccessClass access, bool flatten);
    AccessClass shared_access(const LeafPlan& plan, const TensorBase* target, bool flatten);
    bool flattens(const LeafPlan& plan, const Shape& shape, const Shape& strides) const;
    bool flattens_leaf(const LeafPlan& plan, const Leaf& leaf, bool has_class) const;
    bool is_packed(const LeafPlan& plan, const Leaf& leaf) const;
    Shape view_strides(const LeafPlan& plan, const Leaf& leaf) const;
    Shape gradient_strides(const Leaf& leaf, const TensorBase& grad) const;

    void separate();
    void separate(const Access& written, const Access& other);
    void check_own(const Access& written) const;
    [[noreturn]] void refuse_own(const std::string& name, const Shape& shape) const;
    static bool is_same_memory(const Access& a, const Access& b);
    void find_accesses(std::vector<Access>& found) const;
    bool is_same_view(const Access& a, const Access& b) const;
    std::string access_name(const Access& access) const;
    void copy_apart(const Access& access);
    const Apart* apart_of(size_t leaf, ViewSource source) const;
    static const TensorBase& tensor_of(const Leaf& leaf, ViewSource source);

    void write_leaf(size_t index);
    void write_entry(size_t index, const LeafPlan& plan);
    void finish_tables();
    void write_view(const LeafPlan& plan, const ViewSlot& slot, uint64_t address, const Shape& shape,
                    const Shape& strides);
    void write_tensor(size_t index, const LeafPlan& plan, const Leaf& leaf);
    void write_array(size_t index, const LeafPlan& plan, const Leaf& leaf);
    std::vector<uint8_t> pack_numbers(const LeafPlan& plan, const Leaf& leaf);
    std::vector<uint8_t> pack_elements(const LeafPlan& plan, const Leaf& leaf);
    void write_packed(size_t index, const LeafPlan& plan, const Leaf& leaf);
    void write_generator(const LeafPlan& plan, const Leaf& leaf);
    void write_reference(const LeafPlan& plan, const Leaf& leaf);
    void write_pointer(const LeafPlan& plan, const Leaf& leaf);
    void write_resource(size_t index, const LeafPlan& plan, const Leaf& leaf);
    void write_texture(size_t index, const LeafPlan& plan, const Leaf& leaf);
    void bind_slot(int32_t slot, ref<Object> object);
    void check_buffer(size_t index, const LeafPlan& plan, const Buffer& buffer);
    void check_device(size_t index, const DeviceObject& object, const char* what);
    Shape custom_shape(size_t index);
    void write_custom(size_t index, const LeafPlan& plan, const Leaf& leaf);
    void finish_custom();
    void prepare_custom_result();
    void finish_custom_result();
    void write_value_slot(const ValueSlot& slot, PyObject* value, const std::string& name);
    ref<Buffer> packed_buffer(const LeafPlan& plan, const Leaf& leaf);
    uint64_t upload(size_t leaf, std::vector<uint8_t> bytes, bool write_back);
    uint64_t readback_memory(const LeafPlan& plan, PyObject* object, const TypeLayout& layout, ReadTo to);

    static void clear_fresh(const Leaf& leaf);
    void check_torch(const LeafPlan& plan, Leaf& leaf);
    void check_primal(const LeafPlan& plan, const Leaf& leaf) const;
    void refuse_in_capture(const std::string& what) const;
    void check_overlap(size_t index, const LeafPlan& plan);
    void check_covered(const LeafPlan& plan, const Leaf& leaf);
    void stage_gradient(size_t index, const LeafPlan& plan, const TensorBase& grad, const ViewSlot& slot, bool added);
    void torch_as_array(const LeafPlan& plan, Leaf& leaf);
    void write_torch(size_t index, const LeafPlan& plan);
    void discard_result(const ResultPlan& result);
    struct Container {
        nb::object object;
        ref<Buffer> buffer;
    };
    void prepare_result();
    void prepare_texture_result(const ResultPlan& result);
    uint64_t result_size(const ResultPlan& result) const;
    bool shares_torch() const;
    SharedPiece take_piece(uint64_t size);
    uint64_t share(nb::handle tensor, const SharedView& view, bool copy_in, bool copy_out);
    void share_torch();
    uint64_t share_result(const nb::object& tensor, const TorchTensor& description);
    void finish_shared();
    void prepare_container(const ResultPlan& result, Container& container, bool is_tangent);
    void prepare_torch_result(const ResultPlan& result, Container& container);
    void finish_torch_result(const ResultPlan& result, Container& container);
    nb::object finish_container(const ResultPlan& result, Container& container);
    void find_torch_like();
    void bump_versions();
    int64_t tiles() const;
    void dispatch();
    /// Groups of the launch; writes what the kernel must know of them.
    std::array<uint32_t, 3> share_out(const Variant& variant);
    void start(const Variant& variant, const std::array<uint32_t, 3>& count);
    const Variant& variant_of(VariantKey key);
    std::array<uint32_t, 3> group_grid(int64_t groups) const;
    void note_sums(const LeafPlan& plan, uint64_t address, const Shape& shape, const Shape& strides);
    void prepare_sums();
    void settle_sums();
    void prepare_bounds();
    void check_bounds();
    void record(const Variant& variant, std::array<uint32_t, 3> groups);
    void finish_uploads();
    void finish_native_copies();
    void finish_references();
    nb::object finish_result();

    template <typename T>
    void put(int32_t offset, T value)
    {
        if (offset >= 0)
            std::memcpy(m_bytes.data() + offset, &value, sizeof value);
    }
    [[noreturn]] void fail_shape(const char* kind, size_t leaf, int64_t dim, int64_t got, int64_t expected);
    bool on_host() const { return m_on_host; }

    CallPlan& m_plan;
    Signature& m_signature;
    const RunOptions& m_options;
    bool m_on_host;
    Shape m_call;
    int64_t m_total = 1;
    int64_t m_period = 1; ///< of all periodic gradients: each one's divides it
    bool m_flat = false, m_aligned = false;
    std::vector<uint8_t> m_bytes;
    std::vector<ref<Object>> m_slots, m_keep;
    std::vector<Upload> m_uploads;
    std::vector<Shared> m_shared;
    std::vector<Readback> m_readbacks;
    std::vector<Custom> m_custom;
    std::vector<Sums> m_sums;
    std::vector<Apart> m_apart;
    ref<Buffer> m_bounds; ///< where kernels report indices outside
    uint64_t m_owned = 0; ///< bit per leaf: each invocation adds to elements of its own
    struct Table {
        size_t leaf;
        std::vector<uint8_t> bytes;
    };
    std::vector<ref<Object>> m_value_owners; ///< of pointers inside of elements at hand
    std::vector<Table> m_tables; ///< lists of containers: a row for each
    bool m_in_entry = false;
    nb::object m_result_data; ///< custom: what create_calldata returned
    Container m_result, m_tangent; ///< what the call makes; the tangent in forward mode only
    Leaf m_torch_default; ///< stands for the torch argument of a call that has none but gives a torch tensor
    const Leaf* m_torch_like = nullptr; ///< decides where a torch result is made
    NativeHandle m_stream;              ///< torch's current stream
    nb::object m_uniforms;
};

} // namespace spy
