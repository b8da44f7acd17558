// FunctionNode's native half: from a call's Python arguments to a planned launch.
#include "call/classes.h"
#include "call/launch.h"
#include "call/torch.h"
#include "core/watch.h"

#include "python/bindings.h"
#include "python/call_run.h"
#include "python/call_saved.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace spy {

namespace {

int32_t offset_of(nb::dict& dict, const char* name)
{
    return dict.contains(name) && !dict[name].is_none() ? nb::cast<int32_t>(dict[name]) : -1;
}

Shape shape_from(nb::handle value)
{
    Shape shape;
    for (nb::handle item : value)
        shape.push_back(nb::cast<int64_t>(item));
    return shape;
}

void read_value_slot(nb::dict& dict, const char* name, ValueSlot& slot)
{
    if (!dict.contains(name) || dict[name].is_none())
        return;
    nb::tuple pair = nb::cast<nb::tuple>(dict[name]);
    slot.offset = nb::cast<int32_t>(pair[0]);
    slot.layout = nb::cast<TypeLayout*>(pair[1]);
}

LeafKind leaf_kind(const std::string& text)
{
    static const char* const names[] = {"skip", "value", "view", "packed", "generator", "pointer", "resource", "reference", "custom", "table"};
    for (size_t i = 0; i < std::size(names); ++i)
        if (text == names[i])
            return LeafKind(i);
    fail_value("unknown leaf kind ", text);
}

void read_views(nb::handle views, LeafPlan& leaf)
{
    size_t source = 0;
    for (nb::handle item : views) {
        if (!item.is_none()) {
            nb::tuple offsets = nb::cast<nb::tuple>(item);
            if (nb::len(offsets) != 5)
                fail(ErrorKind::runtime, "a view of a plan has ", nb::len(offsets), " offsets, expected 5");
            leaf.views[source] = {nb::cast<int32_t>(offsets[0]), nb::cast<int32_t>(offsets[1]),
                                  nb::cast<int32_t>(offsets[2]), nb::cast<int32_t>(offsets[3]),
                                  nb::cast<int32_t>(offsets[4])};
        }
        ++source;
    }
}

LeafPlan read_leaf(nb::dict dict)
{
    LeafPlan leaf;
    leaf.kind = leaf_kind(nb::cast<std::string>(dict["kind"]));
    leaf.name = nb::cast<std::string>(dict["name"]);
    if (dict.contains("map"))
        for (nb::handle item : dict["map"])
            leaf.map.push_back(nb::cast<uint8_t>(item));
    leaf.vector_dims = uint32_t(leaf.map.size());
    if (dict.contains("inner"))
        leaf.inner = shape_from(dict["inner"]);
    auto flag = [&](const char* name, bool fallback) {
        return dict.contains(name) ? nb::cast<bool>(dict[name]) : fallback;
    };
    leaf.reads = flag("reads", true);
    leaf.writes = flag("writes", false);
    leaf.classed = flag("classed", false);
    leaf.carries = flag("carries", false);
    leaf.whole = flag("whole", false);
    leaf.out_is_grad = flag("out_is_grad", false);
    leaf.out_is_pair = flag("out_is_pair", false);
    if (dict.contains("scalar"))
        leaf.scalar = scalar_from_slang_name(nb::cast<std::string>(dict["scalar"]));
    if (dict.contains("vectors"))
        leaf.vectors = nb::cast<uint32_t>(dict["vectors"]);
    if (dict.contains("element_size"))
        leaf.element_size = nb::cast<uint32_t>(dict["element_size"]);
    if (dict.contains("views"))
        read_views(dict["views"], leaf);
    read_value_slot(dict, "value", leaf.value);
    read_value_slot(dict, "seed", leaf.seed);
    read_value_slot(dict, "out", leaf.out);
    read_value_slot(dict, "tangent", leaf.tangent);
    leaf.shape_offset = offset_of(dict, "shape_offset");
    leaf.offset_offset = offset_of(dict, "offset_offset");
    leaf.stride_offset = offset_of(dict, "stride_offset");
    leaf.seed_offset = offset_of(dict, "seed_offset");
    leaf.min_offset = offset_of(dict, "min_offset");
    leaf.max_offset = offset_of(dict, "max_offset");
    if (dict.contains("range_scalar"))
        leaf.range_scalar = scalar_from_slang_name(nb::cast<std::string>(dict["range_scalar"]));
    leaf.slot = offset_of(dict, "slot");
    leaf.table = offset_of(dict, "table");
    if (dict.contains("table_shape")) {
        leaf.table_shape = shape_from(dict["table_shape"]);
        leaf.table_bytes = nb::cast<uint32_t>(dict["table_bytes"]);
    }
    leaf.read_slot = offset_of(dict, "read_slot");
    if (dict.contains("sum_ratio")) {
        leaf.sum_ratio = nb::cast<uint32_t>(dict["sum_ratio"]);
        leaf.sum_item = nb::cast<uint32_t>(dict["sum_item"]);
    }
    return leaf;
}

ResultPlan read_result(nb::dict dict)
{
    ResultPlan result;
    static const char* const modes[] = {"none", "value", "tensor", "numpy", "leaf", "torch", "texture", "custom"};
    std::string mode = nb::cast<std::string>(dict["mode"]);
    for (size_t i = 0; i < std::size(modes); ++i)
        if (mode == modes[i])
            result.mode = ResultMode(i);
    if (dict.contains("leaf"))
        result.leaf = read_leaf(nb::cast<nb::dict>(dict["leaf"]));
    if (dict.contains("element"))
        result.element = nb::cast<TypeLayout*>(dict["element"]);
    result.carries = dict.contains("carries") && nb::cast<bool>(dict["carries"]);
    if (dict.contains("dtype"))
        result.dtype = dict["dtype"];
    if (dict.contains("element_shape"))
        result.element_shape = shape_from(dict["element_shape"]);
    if (dict.contains("tangent"))
        result.tangent = std::make_shared<ResultPlan>(read_result(nb::cast<nb::dict>(dict["tangent"])));
    return result;
}

std::shared_ptr<CallPlan> read_plan(nb::dict dict)
{
    auto plan = std::make_shared<CallPlan>();
    plan->label = nb::cast<std::string>(dict["label"]);
    plan->device = nb::cast<Device*>(dict["device"]);
    for (nb::handle leaf : dict["leaves"])
        plan->leaves.push_back(read_leaf(nb::cast<nb::dict>(leaf)));
    plan->result = read_result(nb::cast<nb::dict>(dict["result"]));
    plan->call_rank = nb::cast<uint32_t>(dict["call_rank"]);
    plan->argument_size = nb::cast<uint32_t>(dict["argument_size"]);
    plan->total_offset = offset_of(dict, "total_offset");
    plan->block_offset = offset_of(dict, "block_offset");
    plan->flags_offset = offset_of(dict, "flags_offset");
    plan->period_offset = offset_of(dict, "period_offset");
    plan->shape_offset = offset_of(dict, "shape_offset");
    plan->redirects_offset = offset_of(dict, "redirects_offset");
    plan->bounds_offset = offset_of(dict, "bounds_offset");
    plan->size_dependent = nb::cast<bool>(dict["size_dependent"]);
    plan->shape_dependent = dict.contains("shape_dependent") && nb::cast<bool>(dict["shape_dependent"]);
    plan->can_flatten = nb::cast<bool>(dict["can_flatten"]);
    plan->can_widen = dict.contains("can_widen") && nb::cast<bool>(dict["can_widen"]);
    plan->needs_globals = dict.contains("used_globals") && nb::len(nb::object(dict["used_globals"])) > 0;
    if (dict.contains("tile"))
        plan->tile = shape_from(dict["tile"]);
    plan->is_forward_mode = dict.contains("is_forward_mode") && nb::cast<bool>(dict["is_forward_mode"]);
    plan->is_unchecked = dict.contains("is_unchecked") && nb::cast<bool>(dict["is_unchecked"]);
    plan->view = dict["view"];
    return plan;
}

std::atomic<bool> check_bounds{false};

/// Backward calls whose sums must not depend on the order of threads have plans of their own.
void add_determinism(const CallSite& site, Signature& signature)
{
    signature.deterministic = site.is_bwds && ((site.deterministic && *site.deterministic) ||
                                               (signature.has_torch && torch_is_deterministic()));
    if (signature.deterministic)
        signature.key += "\x01!";
    if (check_bounds)
        signature.key += "\x01?";
}

std::shared_ptr<CallPlan> find_plan(CallSite& site, nb::handle self, PlanTable& table, Signature& signature,
                                    const CallArguments& arguments)
{
    auto found = table.plans.find(signature.key);
    if (found != table.plans.end() && !found->second->size_dependent)
        return found->second;
    std::string base = signature.key;
    bool sized = found != table.plans.end();
    if (sized) {
        append_sizes(signature, found->second->shape_dependent);
        auto exact = table.plans.find(signature.key);
        if (exact != table.plans.end())
            return exact->second;
    }
    if (signature.has_torch)
        refuse_cold_capture(*nb::cast<Device*>(self.attr("module").attr("device")), site.run, signature.used(), self);
    nb::object result_type =
        signature.reserved.result_type ? nb::borrow(signature.reserved.result_type) : nb::object(nb::none());
    const uint64_t generation = table.generation;
    nb::object spec = site.planner(self, describe(arguments, &signature), result_type,
                                   nb::bytes(signature.key.data(), signature.key.size()),
                                   signature.deterministic);
    std::shared_ptr<CallPlan> plan = read_plan(nb::cast<nb::dict>(spec));
    plan->view.attr("attach")(PlanLink{plan});
    if (table.generation != generation) // a reload came in between: good for this call only
        return plan;
    if (plan->size_dependent && !sized) {
        table.plans[base] = plan;
        append_sizes(signature, plan->shape_dependent);
    }
    table.plans[signature.key] = plan;
    return plan;
}

CallArguments gather(nb::handle self, const CallSite& site, nb::args& args, nb::kwargs& kwargs, std::vector<PyObject*>& storage)
{
    CallArguments arguments;
    for (size_t i = 0; i < args.size(); ++i)
        storage.push_back(PyTuple_GET_ITEM(args.ptr(), Py_ssize_t(i)));
    arguments.self = site.self.is_valid() && !site.self.is_none() ? site.self.ptr() : nullptr;
    arguments.positional = storage;
    arguments.keywords = PyDict_GET_SIZE(kwargs.ptr()) ? kwargs.ptr() : nullptr;
    arguments.node = self.ptr();
    return arguments;
}

} // namespace

void fail_labelled(nb::handle self, const Error& error)
{
    std::string label = nb::cast<std::string>(self.attr("label"));
    std::string text = error.what();
    throw Error(error.kind(), text.find(label) == text.npos ? cat(label, ": ", text) : text);
}

nb::object finish(const CallPlan& plan, const CallArguments& arguments, const Signature& signature, nb::object result)
{
    if (plan.result.mode != ResultMode::leaf || signature.reserved.append_to)
        return result;
    PyObject* given = arguments.keywords ? PyDict_GetItemString(arguments.keywords, "_result") : nullptr;
    if (given && nb::isinstance<ValueRef>(nb::handle(given)))
        return nb::cast<ValueRef*>(nb::handle(given))->value;
    return given ? nb::borrow(given) : nb::none();
}

namespace {

/// After the first run of a backward call's plan, where the device asks for it.
void check_first_run(nb::handle self, CallPlan& plan, nb::handle args, nb::handle kwargs, std::span<PyObject* const> slots)
{
    plan.is_unchecked = false;
    nb::list values;
    for (PyObject* slot : slots)
        values.append(nb::borrow(slot));
    nb::module_::import_("slangpy.derivatives.first_run").attr("check_first_run")(self, args, kwargs, values);
}

nb::object call_with(nb::handle self, nb::args args, nb::kwargs kwargs, std::span<PyObject* const> slots)
{
    CallSite& site = *nb::inst_ptr<CallSite>(self);
    std::vector<PyObject*> storage;
    CallArguments arguments = gather(self, site, args, kwargs, storage);
    arguments.slots = slots;
    nb::kwargs given = kwargs;
    nb::object bound;
    if (arguments.keywords)
        if (PyObject* value = PyDict_GetItemString(arguments.keywords, "_this")) {
            bound = nb::borrow(value);
            nb::kwargs rest = nb::borrow<nb::kwargs>(nb::steal(PyDict_Copy(kwargs.ptr())));
            PyDict_DelItemString(rest.ptr(), "_this");
            kwargs = rest;
            arguments.self = bound.ptr();
            arguments.keywords = PyDict_GET_SIZE(kwargs.ptr()) ? kwargs.ptr() : nullptr;
        }
    if (site.watcher && site.watcher->changed())
        self.attr("_reload")();
    SignatureLease lease;
    Signature& signature = *lease.signature;
    walk(signature, arguments);
    if (signature.has_torch_pairs && !site.is_bwds)
        fail(ErrorKind::type, nb::str(self.attr("label")).c_str(), ": diff_pair belongs to .bwds() and .fwds(); pass the tensor itself");
    add_determinism(site, signature);
    PlanTable& table = *nb::cast<PlanTable*>(site.table);
    std::shared_ptr<CallPlan> plan = find_plan(site, self, table, signature, arguments);
    if (site.is_bwds)
        note_backward_plan(plan);
    if (signature.needs_autograd && !site.is_bwds) {
        if (!signature.reserved.append_to)
            return call_in_graph(self, site, plan, signature, arguments, args, given);
        if (PyErr_WarnEx(PyExc_RuntimeWarning, cat(plan->label, ": a call that is appended to an encoder joins no torch "
                         "graph; use torch.no_grad() or .detach()").c_str(), 1) < 0)
            throw nb::python_error();
    }
    nb::object result = finish(*plan, arguments, signature, Launch(*plan, signature, site.run).run());
    if (plan->is_unchecked && !signature.reserved.append_to)
        check_first_run(self, *plan, args, given, slots);
    return result;
}

nb::object call(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    try {
        return call_with(self, args, kwargs, {});
    } catch (const TracedTensor&) {
        return nb::module_::import_("slangpy.torchcompile").attr("traced_call")(self, args, kwargs);
    } catch (const Error& error) {
        fail_labelled(self, error);
    }
}

/// The call slot of FunctionNode: what its Python method `__call__` says is for torch.compile, which reads it.
PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs)
{
    try {
        nb::kwargs keywords = kwargs ? nb::borrow<nb::kwargs>(kwargs) : nb::steal<nb::kwargs>(PyDict_New());
        return call(self, nb::borrow<nb::args>(args), std::move(keywords)).release().ptr();
    } catch (...) {
        set_error_in_flight();
        return nullptr;
    }
}

void take_call_slot(nb::handle type)
{
    if (!PyType_Check(type.ptr()) || !PyType_IsSubtype((PyTypeObject*)type.ptr(), (PyTypeObject*)nb::type<CallSite>().ptr()))
        fail(ErrorKind::type, "_take_call_slot: expected a class derived from CallSite");
    ((PyTypeObject*)type.ptr())->tp_call = call_slot;
}

/// A call whose TorchSlots stand for `values`, in walk order.
nb::object call_with_values(nb::handle self, nb::tuple args, nb::dict kwargs, nb::list values)
{
    std::vector<PyObject*> slots;
    for (size_t i = 0; i < values.size(); ++i)
        slots.push_back(PyList_GET_ITEM(values.ptr(), Py_ssize_t(i)));
    try {
        return call_with(self, nb::borrow<nb::args>(args), nb::borrow<nb::kwargs>(kwargs), slots);
    } catch (const Error& error) {
        fail_labelled(self, error);
    }
}

/// Plans without running: the plan's Python view.
nb::object plan_of(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    CallSite& site = *nb::inst_ptr<CallSite>(self);
    std::vector<PyObject*> storage;
    CallArguments arguments = gather(self, site, args, kwargs, storage);
    SignatureLease lease;
    walk(*lease.signature, arguments);
    add_determinism(site, *lease.signature);
    return find_plan(site, self, *nb::cast<PlanTable*>(site.table), *lease.signature, arguments)->view;
}

nb::object describe_call(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    CallSite& site = *nb::inst_ptr<CallSite>(self);
    std::vector<PyObject*> storage;
    return describe(gather(self, site, args, kwargs, storage), nullptr);
}

void bind_values(nb::module_& m)
{
    nb::enum_<GeneratorKind>(m, "GeneratorKind", "What a Generator makes.")
        .value("range", GeneratorKind::range)
        .value("grid", GeneratorKind::grid)
        .value("call_id", GeneratorKind::call_id)
        .value("thread_id", GeneratorKind::thread_id)
        .value("wang_hash", GeneratorKind::wang_hash)
        .value("rand_float", GeneratorKind::rand_float);
    nb::class_<Generator>(m, "Generator", "Values made inside the kernel, one per invocation.")
        .def("__init__",
             [](Generator* self, GeneratorKind kind, int64_t dims, nb::tuple shape, nb::tuple offset, nb::tuple stride,
                uint32_t seed, uint32_t warmup, double min, double max) {
                 new (self) Generator{kind,   dims, shape_from(shape), shape_from(offset), shape_from(stride), seed,
                                      warmup, min,  max};
             },
             nb::arg("kind"), nb::arg("dims") = -1, nb::arg("shape") = nb::tuple(), nb::arg("offset") = nb::tuple(),
             nb::arg("stride") = nb::tuple(), nb::arg("seed") = 0, nb::arg("warmup") = 0, nb::arg("min") = 0.0,
             nb::arg("max") = 1.0)
        .def_ro("kind", &Generator::kind)
        .def_ro("seed", &Generator::seed)
        .def_ro("warmup", &Generator::warmup);
    nb::class_<ValueRef>(m, "ValueRef", nb::dynamic_attr(), nb::type_slots(CollectedSlots<ValueRef>::slots),
                         "A host value that a call may write; `.value` is replaced after the call.")
        .def("__init__", [](ValueRef* self, nb::object value) { new (self) ValueRef{std::move(value)}; },
             nb::arg("init") = nb::none())
        .def_rw("value", &ValueRef::value, nb::arg().none())
        .def("__repr__", [](const ValueRef& self) { return cat("ValueRef(", nb::repr(self.value).c_str(), ")"); });
    nb::class_<PackedArg>(m, "PackedArg", nb::dynamic_attr(), nb::type_slots(CollectedSlots<PackedArg>::slots),
                          "A value that calls share; see slangpy.pack.")
        .def("__init__", [](PackedArg* self, nb::object value) { new (self) PackedArg(); self->value = std::move(value); },
             nb::arg("value"))
        .def_prop_ro("_value", [](const PackedArg& self) { return self.value; })
        .def_prop_ro("_uploads", [](const PackedArg& self) { return self.uploads.size(); });
    nb::class_<DiffPair>(m, "DiffPair", nb::dynamic_attr(), nb::type_slots(CollectedSlots<DiffPair>::slots),
                         "A value with its gradient.")
        .def("__init__",
             [](DiffPair* self, nb::object primal, nb::object grad, bool needs_grad) {
                 new (self) DiffPair{std::move(primal), std::move(grad), needs_grad};
             },
             nb::arg("p").none(), nb::arg("d").none(), nb::arg("needs_grad") = true)
        .def_rw("primal", &DiffPair::primal, nb::arg().none())
        .def_rw("grad", &DiffPair::grad, nb::arg().none())
        .def_rw("needs_grad", &DiffPair::needs_grad)
        .def("__repr__", [](const DiffPair& self) {
            return cat("DiffPair(primal=", nb::repr(self.primal).c_str(), ", grad=", nb::repr(self.grad).c_str(), ")");
        });
}

void bind_torch(nb::module_& m)
{
    nb::class_<TorchPair>(m, "TorchPair", nb::dynamic_attr(), "A torch tensor with its gradient, for bwds.")
        .def("__init__", [](TorchPair* self, nb::object primal, nb::object grad, nb::object seed, bool fresh) {
            new (self) TorchPair{std::move(primal), std::move(grad), std::move(seed), fresh};
        }, nb::arg("primal").none(), nb::arg("grad").none(), nb::arg("seed").none() = nb::none(), nb::arg("fresh") = false)
        .def_rw("primal", &TorchPair::primal, nb::arg().none())
        .def_rw("grad", &TorchPair::grad, nb::arg().none())
        .def_ro("seed", &TorchPair::seed);
    nb::class_<TorchSlot>(m, "TorchSlot", "Stands for a torch tensor in stored arguments.").def(nb::init<>());
    m.def("_read_torch", [](nb::handle tensor) {
        TorchTensor found;
        read_torch(tensor.ptr(), found);
        nb::list sizes, strides;
        for (int64_t size : found.shape)
            sizes.append(size);
        for (int64_t stride : found.strides)
            strides.append(stride);
        return nb::make_tuple(found.address, std::string(scalar_info(found.scalar).slang_name), nb::tuple(sizes),
                              nb::tuple(strides), found.device_type, found.device_index);
    }, nb::arg("tensor"), "(address, Slang scalar, sizes, strides in elements, DLPack device type, device index).");
    m.def("_torch_stream", [](nb::handle tensor) {
        TorchTensor found;
        read_torch(tensor.ptr(), found);
        return torch_stream(tensor.ptr(), found);
    }, nb::arg("tensor"), "torch's current CUDA stream for the device of a tensor; 0 for CPU tensors.");
    m.def("set_torch_bridge_python_fallback", &set_torch_python_fallback, nb::arg("enabled"),
          "Reads torch tensors through Python attributes even where torch has a C interface.");
    m.def("is_torch_bridge_using_fallback", &torch_uses_python_fallback);
}

} // namespace

void bind_backends(nb::module_& m); // backends.cpp

void bind_call(nb::module_& m)
{
    bind_backends(m);
    bind_values(m);
    bind_call_graph(m);
    bind_call_saved(m);
    bind_torch(m);
    nb::class_<FileWatcher, Object>(m, "FileWatcher", "Tells whether watched files have changed.")
        .def(nb::init<>())
        .def("watch", &FileWatcher::watch, nb::arg("path"))
        .def("changed", &FileWatcher::changed, "True once after a change; never waits.");
    nb::class_<PlanTable>(m, "PlanTable", "Plans by key.", nb::type_slots(CollectedSlots<PlanTable>::slots))
        .def(nb::init<>())
        .def("__len__", [](const PlanTable& self) { return self.plans.size(); })
        .def("clear", [](PlanTable& self) { clear_objects(self); });
    nb::class_<PlanLink>(m, "PlanLink", "How the arguments of one kind of call are written and launched.")
        .def_prop_ro("last_call_shape", [](const PlanLink& self) {
            nb::list sizes;
            for (int64_t size : self.get()->last_call_shape)
                sizes.append(size);
            return nb::tuple(sizes);
        })
        .def("add_variant",
             [](PlanLink& self, uint64_t key, Kernel* kernel, uint32_t items_per_group, uint32_t max_groups) {
                 self.get()->variants[key] = {ref<Kernel>(kernel), items_per_group, max_groups};
             },
             nb::arg("key"), nb::arg("kernel"), nb::arg("items_per_group"), nb::arg("max_groups") = 0);
    nb::class_<CallSite>(m, "CallSite", nb::dynamic_attr(), nb::type_slots(CollectedSlots<CallSite>::slots),
                         "Native half of FunctionNode.")
        .def("__init__",
             [](CallSite* self, nb::object table, nb::object planner, nb::object bound, nb::object uniforms,
                uint64_t cuda_stream, bool is_bwds, FileWatcher* watcher, Device* device) {
                 new (self) CallSite{std::move(table), std::move(planner), std::move(bound), {std::move(uniforms), {}},
                                     is_bwds, watcher, device ? device->deterministic : nullptr};
                 if (cuda_stream)
                     self->run.stream = {NativeHandleType::CUstream, cuda_stream};
             },
             nb::arg("table"), nb::arg("planner"), nb::arg("bound").none(), nb::arg("uniforms").none(),
             nb::arg("cuda_stream"), nb::arg("is_bwds") = false, nb::arg("watcher").none() = nb::none(),
             nb::arg("device").none() = nb::none())
        .def("__call__", &call)
        .def("_plan_of", &plan_of)
        .def("_describe", &describe_call);
    m.def("_set_check_bounds", [](bool on) { check_bounds = on; }, nb::arg("enabled"),
          "Plans calls from now on with checks of the indices into tensors.");
    m.def("_take_call_slot", &take_call_slot, nb::arg("type"), "Calls instances natively, whatever __call__ the class has.");
    m.def("_call_with", &call_with_values, nb::arg("node"), nb::arg("args"), nb::arg("kwargs"), nb::arg("values"),
          "A call in which each TorchSlot among the arguments stands for the next of `values`.");
    m.def("_set_custom_types", &set_custom_types, nb::arg("registry"), nb::arg("signatures"));
    m.def("_clear_type_cache", &clear_type_cache);
}

} // namespace spy
