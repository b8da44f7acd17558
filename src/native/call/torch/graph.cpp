// Calls as nodes of torch's graph. Here: what most calls are, numbers and tensors that give a new tensor. Calls with
// dicts, lists or written tensors go through slangpy/pytorch/autograd.py, and so does the first backward pass of each
// kind.
#include "call/torch/graph.h"

#include "call/run.h"
#include "core/class_name.h"
#include "core/warning.h"
#include "core/python_names.h"
#include "values/classes.h"
#include "values/torch.h"
#include "values/torch_inner.h"

namespace spy {

namespace {

/// What torch's autograd has to know of a call.
struct GraphNeeds {
    const LeafSpec* wanted = nullptr; ///< a tensor that requires grad is read where gradients flow
    bool written = false;             ///< torch tensors are written
    bool in_graph = false;            ///< one of those is part of a graph
    bool outputs = false;             ///< something that the call gives could require grad
    bool result_is_torch = false;
    const LeafSpec* listed = nullptr; ///< a tensor that requires grad in a list of containers
};

/// Warns, once for each plan, of a tensor that requires grad and gets none.
void tell_lost(CallPlan& plan, const LeafSpec& spec, PyObject* tensor)
{
    if (plan.state.has_warned_of_gradients)
        return;
    std::string why;
    if (!spec.lost.empty())
        why = cat("no gradient reaches it, because ", spec.lost, " is not differentiable; declare it `struct ",
                  spec.lost, " : IDifferentiable`, or pass tensor.detach()");
    else if (spec.writes && !spec.reads && nb::cast<bool>(nb::handle(tensor).attr("is_leaf")))
        why = "it is a leaf, which the call overwrites: as a result of the call it gets no .grad; pass a tensor that "
              "does not require grad";
    else
        return;
    plan.state.has_warned_of_gradients = true;
    warn(cat(plan.label, ": ", spec.name, " requires grad, but ", why));
}

GraphNeeds graph_needs(CallPlan& plan, Signature& signature)
{
    GraphNeeds needs;
    needs.outputs = plan.result.carries;
    needs.result_is_torch = plan.result.mode == ResultMode::torch;
    for (size_t i = 0; i < plan.leaves.size(); ++i) {
        const Leaf& leaf = signature.leaves[i];
        const LeafSpec& spec = plan.leaves[i];
        if (leaf.kind != ValueKind::torch)
            continue;
        bool requires_grad = leaf.flags & value_flag::needs_grad;
        if (requires_grad && spec.carries && spec.reads && !needs.wanted)
            needs.wanted = &spec;
        if (requires_grad && (!spec.carries || spec.writes))
            tell_lost(plan, spec, leaf.object);
        needs.written |= spec.writes;
        needs.in_graph |= requires_grad && spec.writes;
        needs.outputs |= spec.writes && spec.carries;
        needs.result_is_torch |= spec.name.starts_with("_result");
        const auto* view = spec.as<ViewSpec>();
        if (requires_grad && view && view->table >= 0)
            needs.listed = &spec;
    }
    return needs;
}

constexpr size_t most_values = 63; ///< places are bits of a key, beside one for the order of sums

/// A callable of a Python module, looked up once per process.
PyObject* python_function(PyObject*& kept, const PythonName& name)
{
    if (!kept)
        kept = name.get().release().ptr();
    return kept;
}

nb::object checked(PyObject* result)
{
    if (!result)
        throw nb::python_error();
    return nb::steal(result);
}

bool is_number(ValueKind kind)
{
    return kind == ValueKind::none || kind == ValueKind::boolean || kind == ValueKind::integer ||
        kind == ValueKind::floating || kind == ValueKind::scalar;
}

/// Whether a value is a number that never changes; those of our own classes can be written to.
bool is_constant(const Leaf& leaf)
{
    return is_number(leaf.kind) &&
        (leaf.kind != ValueKind::scalar || class_of(leaf.object).value_class != ValueClass::math);
}

bool is_plain_tensor(const LeafSpec& spec, const Leaf& leaf)
{
    return scalar_info(leaf.scalar).size >= 4 && !spec.writes; // 16-bit sums are rounded in Python
}

/// Whether each argument is one leaf, a number or a tensor, and nothing but a new tensor is given.
bool is_plain(const CallPlan& plan, Signature& signature, const CallArguments& arguments)
{
    size_t count = arguments.positional.size() + (arguments.keywords ? size_t(PyDict_GET_SIZE(arguments.keywords)) : 0);
    const ReservedArguments& reserved = signature.reserved;
    const DeviceInfo& device_info = plan.device->info();
    if ((!device_info.on_host && device_info.type != DeviceType::cuda) || // others read copies
        plan.result.mode != ResultMode::torch || plan.traits.size_dependent || arguments.self || reserved.result_type ||
        reserved.thread_count || signature.leaf_count != count || plan.leaves.size() > count || count > most_values)
        return false;
    size_t index = 0;
    int32_t device = 0; // a CPU number beside CUDA tensors takes the long way
    auto plain = [&](PyObject* value) {
        const Leaf& leaf = signature.leaves[index];
        bool fits = is_constant(leaf);
        if (leaf.kind == ValueKind::torch) {
            device = device ? device : leaf.device_type;
            fits = index < plan.leaves.size() && is_plain_tensor(plan.leaves[index], leaf) &&
                leaf.device_type == device;
        }
        ++index;
        return leaf.object == value && fits;
    };
    for (PyObject* value : arguments.positional)
        if (!plain(value))
            return false;
    PyObject *key, *value;
    Py_ssize_t next = 0;
    while (arguments.keywords && PyDict_Next(arguments.keywords, &next, &key, &value))
        if (!plain(value))
            return false;
    return true;
}

PyObject* slot_object()
{
    static PyObject* slot = nullptr;
    return python_function(slot, in_python::torch_slot);
}

/// Arguments with slots for the tensors, the result's among them.
void strip(SavedCall& call, Signature& signature, const CallArguments& arguments)
{
    PyObject* slot = slot_object();
    size_t index = 0;
    auto stripped = [&](PyObject* value) {
        PyObject* kept = signature.leaves[index++].kind == ValueKind::torch ? slot : value;
        Py_INCREF(kept);
        return kept;
    };
    call.args = nb::steal(PyTuple_New(Py_ssize_t(arguments.positional.size())));
    for (size_t i = 0; i < arguments.positional.size(); ++i)
        PyTuple_SET_ITEM(call.args.ptr(), Py_ssize_t(i), stripped(arguments.positional[i]));
    call.kwargs = nb::steal(PyDict_New());
    PyObject *key, *value;
    Py_ssize_t next = 0;
    while (arguments.keywords && PyDict_Next(arguments.keywords, &next, &key, &value))
        PyDict_SetItem(call.kwargs.ptr(), key, nb::steal(stripped(value)).ptr());
    static PyObject* result_name = PyUnicode_InternFromString("_result");
    PyDict_SetItem(call.kwargs.ptr(), result_name, slot);
}

/// The call as a node of the graph: what torch.autograd.Function.apply does, without its Python half.
nb::object apply_plain(nb::handle self, const std::shared_ptr<CallPlan>& plan, Signature& signature,
                       const CallArguments& arguments, nb::object result)
{
    auto call = std::make_unique<SavedCall>();
    call->node = nb::borrow(self);
    call->plan = plan;
    TorchTensor found;
    read_torch(result.ptr(), found);
    call->made = saved_tensor(found);
    call->result = std::move(result);
    strip(*call, signature, arguments);
    size_t tensors = 0;
    PyObject* inputs[most_values + 1];
    size_t count = 1;
    call->values.reserve(signature.leaf_count);
    call->tensors.reserve(signature.leaf_count);
    for (size_t i = 0; i < signature.leaf_count; ++i) {
        const Leaf& leaf = signature.leaves[i];
        call->values.push_back({leaf.kind, leaf.scalar, leaf.kind == ValueKind::torch ? nullptr : leaf.object});
        if (leaf.kind != ValueKind::torch)
            continue;
        call->tensors.push_back(saved_tensor(leaf));
        if (leaf.flags & value_flag::needs_grad && i < plan->leaves.size() && plan->leaves[i].carries &&
            plan->leaves[i].reads) {
            call->places.push_back(uint8_t(tensors));
            inputs[count++] = leaf.object;
        }
        ++tensors;
    }
    call->saved = nb::steal(PyTuple_New(Py_ssize_t(tensors)));
    Py_ssize_t at = 0;
    for (const Leaf& leaf : signature.used())
        if (leaf.kind == ValueKind::torch)
            PyTuple_SET_ITEM(call->saved.ptr(), at++, Py_NewRef(leaf.object));
    nb::object owner = nb::cast(call.release(), nb::rv_policy::take_ownership);
    inputs[0] = owner.ptr();
    static PyObject *transforms = nullptr, *apply = nullptr, *full_apply = nullptr;
    const std::optional<bool> known = inner_has_transforms();
    const bool transformed = known
        ? *known
        : checked(PyObject_CallNoArgs(python_function(transforms, in_python::has_transforms))).is(Py_True);
    PyObject* function = transformed ? python_function(full_apply, in_python::full_apply)
                                     : python_function(apply, in_python::apply);
    return checked(PyObject_Vectorcall(function, inputs, count, nullptr));
}

thread_local std::weak_ptr<CallPlan> last_backward;

PyObject* attribute(nb::handle object, const char* name, PyObject*& interned)
{
    if (!interned)
        interned = PyUnicode_InternFromString(name);
    return PyObject_GetAttr(object.ptr(), interned);
}

/// Which of the call's tensors gradients are wanted of, by position.
uint64_t wanted_places(const SavedCall& call, nb::handle needs)
{
    uint64_t wanted = 0;
    for (size_t i = 0; i < call.places.size(); ++i)
        if (PyTuple_GET_ITEM(needs.ptr(), Py_ssize_t(i) + 1) == Py_True)
            wanted |= uint64_t(1) << call.places[i];
    return wanted;
}

uint64_t backward_key(uint64_t wanted, bool deterministic) { return wanted | uint64_t(deterministic) << 63; }

/// A tuple with one tensor for each of the call's.
void check_count(const SavedCall& call, nb::handle saved)
{
    const bool is_tuple = PyTuple_Check(saved.ptr());
    if (!is_tuple || size_t(PyTuple_GET_SIZE(saved.ptr())) != call.tensors.size())
        fail(ErrorKind::type, call.plan->label, ": the saved tensors of a call are a tuple of ", call.tensors.size(),
             ", got ", is_tuple ? cat("one of ", PyTuple_GET_SIZE(saved.ptr())) : std::string(class_name(saved.ptr())));
}

/// Memory for a gradient, laid out as its tensor.
nb::object gradient_like(PyObject* tensor, const TorchTensor& found)
{
    if (found.strides == found.shape.contiguous_strides())
        return new_torch(found, tensor, found.scalar, found.shape);
    static PyObject* empty_like = nullptr;
    return checked(PyObject_CallOneArg(python_function(empty_like, {"torch", "empty_like"}), tensor));
}

/// The leaves of the backward call; gives the gradients, by position among the node's inputs.
nb::object fill_backward(Signature& signature, const SavedCall& call, nb::handle saved, uint64_t wanted,
                         nb::handle seed)
{
    check_count(call, saved);
    nb::object grads = nb::steal(PyTuple_New(Py_ssize_t(call.places.size()) + 1));
    for (size_t i = 0; i <= call.places.size(); ++i)
        PyTuple_SET_ITEM(grads.ptr(), Py_ssize_t(i), Py_NewRef(Py_None));
    TorchTensor found;
    size_t tensor = 0, place = 0;
    for (const SavedCall::Value& value : call.values) {
        Leaf& leaf = signature.add_leaf();
        if (value.kind != ValueKind::torch) {
            leaf.kind = value.kind;
            leaf.scalar = value.scalar;
            leaf.object = value.object;
            continue;
        }
        signature.keep.push_back(check_saved(call.plan->label, call.tensors[tensor],
                                             PyTuple_GET_ITEM(saved.ptr(), Py_ssize_t(tensor)), found,
                                             "a saved tensor"));
        PyObject* object = signature.keep.back().ptr();
        set_torch(leaf, object, found, value_flag::writable);
        bool is_input = place < call.places.size() && call.places[place] == tensor;
        if (wanted >> tensor & 1) {
            nb::object grad = gradient_like(object, found);
            read_torch(grad.ptr(), found);
            leaf.flags |= value_flag::grad_out | value_flag::fresh;
            leaf.grads[1] = &signature.add_grad(found, grad);
            Py_DECREF(Py_None);
            PyTuple_SET_ITEM(grads.ptr(), Py_ssize_t(place) + 1, grad.release().ptr());
        }
        place += is_input;
        ++tensor;
    }
    Leaf& leaf = signature.add_leaf();
    check_saved(call.plan->label, call.made, seed.ptr(), found, "the gradient");
    set_torch(leaf, seed.ptr(), found, value_flag::writable | value_flag::no_primal | value_flag::grad_in);
    leaf.grads[0] = &signature.add_grad(found, nb::borrow(seed));
    signature.has_torch = true;
    return grads;
}

/// The backward pass whose plan is known; nothing where it is not.
nb::object run_backward(SavedCall& call, nb::handle ctx, uint64_t wanted, bool deterministic, nb::handle seed)
{
    std::shared_ptr<CallPlan> plan;
    for (auto& [key, known] : call.plan->state.backward)
        if (key == backward_key(wanted, deterministic))
            plan = known.lock();
    CallSite& site = *nb::inst_ptr<CallSite>(call.node);
    if (!plan || !site.backward)
        return {};
    static PyObject* name = nullptr;
    nb::object saved = checked(attribute(ctx, "saved_tensors", name));
    SignatureLease lease;
    lease.signature->deterministic = deterministic;
    nb::object grads = fill_backward(*lease.signature, call, saved, wanted, seed);
    launch(*plan, *lease.signature, nb::inst_ptr<CallSite>(nb::handle(site.backward))->run);
    return grads;
}

/// Calls with parts, written tensors or values that may change, as slangpy/pytorch/autograd.py joins them.
nb::object join_in_python(nb::handle self, CallSite& site, CallPlan& plan, Signature& signature,
                          const CallArguments& arguments, bool written)
{
    nb::list tensors, changed; // before the launch, which may put copies in the leaves
    for (const Leaf& leaf : signature.used())
        if (leaf.kind == ValueKind::torch)
            tensors.append(nb::handle(leaf.object));
    for (size_t i = 0; i < plan.leaves.size(); ++i)
        if (signature.leaves[i].kind == ValueKind::tensor && plan.leaves[i].writes && plan.leaves[i].reads)
            changed.append(nb::handle(signature.leaves[i].object));
    const StrippedArguments stripped = strip(arguments, signature);
    static PyObject *begin = nullptr, *join = nullptr, *join_written = nullptr;
    PyObject* values[] = {self.ptr(),    plan.view.ptr(), stripped.positional.ptr(), stripped.keywords.ptr(),
                          tensors.ptr(), changed.ptr()};
    nb::object call = checked(PyObject_Vectorcall(python_function(begin, in_python::begin), values, 6, nullptr));
    if (written) {
        nb::list told;
        for (const ThisUpdate& update : signature.updates)
            told.append(nb::make_tuple(update.object, update.value));
        PyObject* given[] = {call.ptr(), told.ptr()};
        return checked(PyObject_Vectorcall(python_function(join_written, in_python::join_written), given, 2, nullptr));
    }
    nb::object result = launch(plan, signature, site.run);
    PyObject* given[] = {call.ptr(), result.ptr()};
    return checked(PyObject_Vectorcall(python_function(join, in_python::join), given, 2, nullptr));
}

} // namespace

nb::object graph_forward(nb::args args)
{
    static PyObject *save = nullptr, *call_name = PyUnicode_InternFromString("call"),
                    *fills_name = PyUnicode_InternFromString("materialize_grads");
    if (args.size() < 2)
        fail(ErrorKind::type, "_graph_forward: expected torch's context and a call, got ", args.size(), " arguments");
    nb::handle ctx = args[0];
    auto& call = *nb::cast<SavedCall*>(args[1]);
    nb::object method = checked(attribute(ctx, "save_for_backward", save));
    checked(PyObject_CallObject(method.ptr(), call.saved.ptr()));
    if (PyObject_SetAttr(ctx.ptr(), call_name, nb::handle(args[1]).ptr()) < 0 ||
        PyObject_SetAttr(ctx.ptr(), fills_name, Py_False) < 0) // without a gradient, there is nothing to do
        throw nb::python_error();
    call.saved = nb::object(); // torch keeps what is saved, and the result would keep its own node alive
    return std::move(call.result);
}

nb::list checked_tensors(const SavedCall& call, nb::handle given)
{
    const nb::object saved = PyList_Check(given.ptr()) ? nb::steal(PyList_AsTuple(given.ptr())) : nb::borrow(given);
    check_count(call, saved);
    nb::list checked;
    TorchTensor found;
    for (size_t i = 0; i < call.tensors.size(); ++i)
        checked.append(check_saved(call.plan->label, call.tensors[i], PyTuple_GET_ITEM(saved.ptr(), Py_ssize_t(i)),
                                   found, "a saved tensor"));
    return checked;
}

nb::object checked_seed(const SavedCall& call, nb::handle seed)
{
    TorchTensor found;
    return check_saved(call.plan->label, call.made, seed.ptr(), found, "the gradient");
}

nb::object graph_backward(nb::handle ctx, nb::handle seed)
try {
    static PyObject *call_name = nullptr, *needs_name = nullptr, *replay = nullptr;
    nb::object owner = checked(attribute(ctx, "call", call_name)),
               needs = checked(attribute(ctx, "needs_input_grad", needs_name));
    auto& call = *nb::cast<SavedCall*>(owner);
    bool creates_graph = torch_grad_enabled();
    uint64_t wanted = wanted_places(call, needs);
    CallSite& site = *nb::inst_ptr<CallSite>(call.node);
    bool deterministic = (site.deterministic && *site.deterministic) || torch_is_deterministic();
    if (!creates_graph && !seed.is_none() && !torch_is_negated(seed.ptr()))
        if (nb::object grads = run_backward(call, ctx, wanted, deterministic, seed); grads.is_valid())
            return grads;
    last_backward.reset();
    PyObject* values[] = {ctx.ptr(), seed.ptr()};
    nb::object grads = checked(PyObject_Vectorcall(python_function(replay, in_python::replay), values, 2, nullptr));
    if (std::shared_ptr<CallPlan> plan = last_backward.lock(); plan && !creates_graph && !plan->traits.size_dependent) {
        site.backward = nb::object(call.node.attr(in_python::bwds.name)).ptr(); // the node keeps it
        uint64_t key = backward_key(wanted, deterministic);
        std::erase_if(call.plan->state.backward, [&](const auto& entry) { return entry.first == key; });
        call.plan->state.backward.emplace_back(key, plan);
    }
    return grads;
} catch (const Error& error) {
    fail_labelled(nb::cast<SavedCall*>(nb::object(ctx.attr("call")))->node, error);
}

void note_backward_plan(const std::shared_ptr<CallPlan>& plan) { last_backward = plan; }

nb::object call_in_graph(nb::handle self, CallSite& site, const std::shared_ptr<CallPlan>& plan, Signature& signature,
                         const CallArguments& arguments)
{
    GraphNeeds needs = graph_needs(*plan, signature);
    if (needs.listed && needs.outputs)
        fail(ErrorKind::not_implemented, plan->label, ": argument ", needs.listed->name,
             " requires grad, but gradients do not "
             "reach the tensors of a list; pass one tensor (torch.stack), or .detach() those of the list");
    if (!(needs.wanted && needs.outputs) && !needs.in_graph)
        return returned(*plan, arguments, signature, launch(*plan, signature, site.run));
    if (needs.wanted && plan->result.carries && !needs.result_is_torch)
        fail_runtime(plan->label, ": argument ", needs.wanted->name,
                     " requires grad, but the result is no torch tensor and would leave the graph; "
                     "pass tensor.detach() or use torch.no_grad()");
    // what functions given to set() say now holds for both passes
    const bool has_globals = site.run.uniforms.is_valid() && !site.run.uniforms.is_none();
    nb::object node = has_globals ? nb::object(self.attr(in_python::recorded.name)()) : nb::borrow(self);
    CallSite& fixed = *nb::inst_ptr<CallSite>(node);
    if (!needs.written && is_plain(*plan, signature, arguments)) {
        nb::object result = launch(*plan, signature, fixed.run);
        return apply_plain(node, plan, signature, arguments, std::move(result));
    }
    return join_in_python(node, fixed, *plan, signature, arguments, needs.written);
}

} // namespace spy
