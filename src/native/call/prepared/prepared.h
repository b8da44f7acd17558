#pragma once
// A call whose arguments are written once and launched any number of times; parts of them are replaced by name.
#include "call/stages/dispatch/dispatch.h"
#include "device/guard.h"
#include "device/shader_object.h"
#include "values/signature.h"

namespace spy {

/// What a leaf of a prepared call lives from: the objects that it borrows, and what its bytes point to.
struct LeafOwner {
    nb::object object;                                ///< that the leaf is of
    std::array<nb::object, 2> grads;                  ///< of a Tensor, as they were
    std::vector<nb::object> keep;                     ///< what its walk made
    std::vector<std::unique_ptr<TensorBase>> tensors; ///< torch: gradients
    std::vector<ref<Object>> natives;
};

/// What a launch takes. Not changed while one is under way.
struct ReadyLaunch {
    KernelArguments arguments;
    ref<Kernel> kernel;
    std::array<uint32_t, 3> groups{};
    ArgumentData globals; ///< with the call's own; empty without globals
    bool has_globals = false;
    std::vector<AddedRange> added;
    /// Lists on the CPU, by leaf.
    std::vector<std::pair<size_t, std::shared_ptr<std::vector<uint8_t>>>> uploads;
    std::vector<LeafOwner> retired; ///< what was replaced while a launch was under way

    MemoryGuards guards; ///< of all that is kept

    /// Globals and the call's own, side by side. Notes what guards them.
    void merge(ShaderObject* object);
    void take_uploads(Pending& pending);
};

/// A new value for a part of the arguments, walked into a signature of its own.
struct PreparedChange {
    ArgumentPart* part;
    nb::object value;
    size_t leaf, keep, keep_end; ///< in the walked signature
    std::vector<ref<Object>> natives{};
    std::vector<size_t> ends{}; ///< of natives, as in Written
};

/// What replaces parts of the launch that is ready.
struct PreparedNext {
    Written written;
    Selected selected;
    ref<Kernel> kernel;
    Groups groups;
};

/// What was kept while leaves were written goes to their owners; gives the rest.
std::vector<ref<Object>> give_keep(std::span<LeafOwner> owners, std::vector<ref<Object>>& keep,
                                   std::span<const size_t> ends);
/// All that a launch keeps alive: `natives` of the call, and those of its leaves.
std::vector<ref<Object>> all_kept(const std::vector<ref<Object>>& natives, std::span<const LeafOwner> owners);

class PreparedCall {
public:
    PreparedCall(nb::handle node, nb::args args, nb::kwargs kwargs);

    /// Launches; gives what the call returns.
    nb::object launch();
    /// Replaces arguments and fields of arguments by name; all or none.
    void set(nb::handle values);

    const Shape& shape() const { return m_measured.shape; }
    const nb::object& node() const { return m_node; }
    /// The names that set() takes.
    std::vector<std::string> names() const;

    /// Shows each Python object that this owns to the garbage collector.
    template <typename Visit>
    int visit_objects(const Visit& visit)
    {
        for (const nb::object* object : {&m_node, &m_given, &m_written, &m_globals, &m_result, &m_container.object,
                                         &m_tangent.object, &m_options.uniforms})
            if (int answer = visit(*object))
                return answer;
        for (const auto* list : {&m_signature.keep, &m_signature.answers})
            for (const nb::object& object : *list)
                if (int answer = visit(object))
                    return answer;
        for (const LeafOwner& owner : m_owners) {
            if (int answer = visit(owner.object))
                return answer;
            for (const nb::object& object : owner.keep)
                if (int answer = visit(object))
                    return answer;
        }
        return 0;
    }
    void clear();

private:
    Call as_call() const;
    void check_open() const;
    /// Refuses what a prepared call cannot hold.
    void check_leaf(size_t index, const Leaf& leaf) const;
    void own(size_t first, size_t count, std::span<const nb::object> keep);
    ShaderObject* globals() const;
    void prepare();
    void make_ready(const Call& call, Written& written);
    void note_result(const Call& call);
    void note_written();
    nb::object launch_staged(const ReadyLaunch& ready, NativeHandle stream);

    PreparedChange read_change(Signature& scratch, PyObject* name, PyObject* value);
    void check_change(const PreparedChange& change, Signature& scratch) const;
    Selected select_again(const Call& call, const std::vector<PreparedChange>& changes);
    PreparedNext write_next(std::vector<PreparedChange>& changes);
    void replace_owners(PreparedChange& change, Signature& scratch, std::vector<LeafOwner>& old);
    void take_over(PreparedNext& next, std::vector<PreparedChange>& changes, Signature& scratch);

    nb::object m_node, m_given, m_globals, m_result;
    std::shared_ptr<CallPlan> m_plan;
    mutable Signature m_signature;
    std::vector<ArgumentPart> m_parts;
    RunOptions m_options;
    Measured m_measured;
    Selected m_selected;
    std::vector<LeafOwner> m_owners;    ///< by leaf
    std::vector<ref<Object>> m_natives; ///< of the call itself
    std::vector<Sums> m_sums;
    Container m_container, m_tangent;
    std::shared_ptr<ReadyLaunch> m_ready;
    nb::object m_written;    ///< a tuple of torch tensors that autograd is told of; null: there are none
    bool m_is_plain = false; ///< nothing but the launch is left to do
    bool m_is_setting = false;
};

} // namespace spy
