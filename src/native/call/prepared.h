#pragma once
// A call whose arguments are written once and launched any number of times; parts of them are replaced by name.
#include "call/sums.h"
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
    /// Lists on the CPU, by leaf.
    std::vector<std::pair<size_t, std::shared_ptr<std::vector<uint8_t>>>> uploads;
    std::vector<LeafOwner> retired; ///< what was replaced while a launch was under way

    /// Globals and the call's own, side by side.
    void merge(ShaderObject* object);
};

class PreparedCall {
public:
    PreparedCall(nb::handle node, nb::args args, nb::kwargs kwargs);

    /// Launches; gives what the call returns.
    nb::object launch();
    /// Replaces arguments and fields of arguments by name; all or none.
    void set(nb::handle values);

    const Shape& shape() const { return m_measured.shape; }
    CallPlan& plan() const { return *m_plan; }
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
    struct Change;
    struct Next;

    Call as_call() const;
    void check_open() const;
    void name_parts();
    /// Refuses what a prepared call cannot hold.
    void check_leaf(size_t index, const Leaf& leaf) const;
    void own(size_t first, size_t count, std::span<const nb::object> keep);
    std::vector<ref<Object>> give_keep(size_t first, std::vector<ref<Object>>& keep, const std::vector<size_t>& ends);
    void take_uploads(Pending& pending);
    void gather_keep(std::vector<ref<Object>>& keep) const;
    ShaderObject* globals() const;
    void prepare();
    void make_ready(const Call& call, Written& written);
    void note_result(const Call& call);
    void note_written();
    nb::object launch_staged(const ReadyLaunch& ready, NativeHandle stream);

    ArgumentPart& part_of(PyObject* name);
    Change read_change(Signature& scratch, PyObject* name, PyObject* value);
    void check_change(const Change& change, Signature& scratch) const;
    void check_result(const Change& change) const;
    void check_gradients() const;
    void check_apart(const std::vector<Change>& changes) const;
    void swap_leaves(Signature& scratch, const std::vector<Change>& changes);
    Selected select_again(const Call& call, const std::vector<Change>& changes);
    Next write_next(std::vector<Change>& changes);
    void replace_owners(Change& change, Signature& scratch, std::vector<LeafOwner>& old);
    void settle(Next& next, std::vector<Change>& changes, Signature& scratch);

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
