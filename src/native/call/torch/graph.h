#pragma once
// Calls as nodes of torch's graph.
#include "call/torch/saved.h"
#include "call/site.h"

namespace spy {

/// A call with a tensor that requires grad: the plain call where no gradient flows, else a node in torch's graph.
nb::object call_in_graph(nb::handle self, CallSite& site, const std::shared_ptr<CallPlan>& plan, Signature& signature,
                         const CallArguments& arguments);
/// The plan of a backward call that this thread has run.
void note_backward_plan(const std::shared_ptr<CallPlan>& plan);

/// A launched call whose arguments are numbers and torch tensors, as its node keeps it.
struct SavedCall {
    struct Value { ///< of one leaf; the object is one of `args` or `kwargs`. Tensors are torch's to keep.
        ValueKind kind;
        ScalarType scalar;
        PyObject* object;
    };
    nb::object node;
    std::shared_ptr<CallPlan> plan;
    nb::object args, kwargs; ///< with slots for tensors, and for the result
    std::vector<Value> values;
    std::vector<uint8_t> places;      ///< positions, among the torch tensors, of the inputs of the graph's node
    std::vector<SavedTensor> tensors; ///< what they were
    SavedTensor made;                 ///< the result
    nb::object saved, result;         ///< on the way to torch's node
};

/// torch's forward(ctx, call, ...): hands the call and its tensors to the node.
nb::object graph_forward(nb::args args);
/// torch's backward. The first of each kind goes through Python, which also serves create_graph.
nb::object graph_backward(nb::handle ctx, nb::handle seed);
/// The tensors as Python's half of a backward pass may use them. RuntimeError where other ones came back.
nb::list checked_tensors(const SavedCall& call, nb::handle saved);
/// The gradient of the result, checked like them.
nb::object checked_seed(const SavedCall& call, nb::handle seed);

} // namespace spy
