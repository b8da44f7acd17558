#include "call/run.h"

#include "call/torch/graph.h"
#include "call/plan/read_plan.h"
#include "call/stages/dispatch/dispatch.h"
#include "values/classes.h"
#include "values/torch.h"
#include "core/python_names.h"

#include <algorithm>

namespace spy {

namespace {

std::atomic<bool> bounds_are_checked{false};

/// Backward calls whose sums must not depend on the order of threads have plans of their own.
void add_determinism(const CallSite& site, Signature& signature)
{
    signature.deterministic = site.is_bwds &&
        ((site.deterministic && *site.deterministic) || (signature.has_torch && torch_is_deterministic()));
    if (signature.deterministic)
        signature.key += "\x01!";
    if (bounds_are_checked)
        signature.key += "\x01?";
}

/// A plan from the planner, under the signature's key.
std::shared_ptr<CallPlan> make_plan(CallSite& site, nb::handle self, PlanTable& table, Signature& signature,
                                    const CallArguments& arguments, bool is_sized)
{
    if (signature.has_torch)
        refuse_cold_capture(*nb::cast<Device*>(self.attr("module").attr("device")), site.run, signature.used(), self);
    nb::object result_type = signature.reserved.result_type ? nb::borrow(signature.reserved.result_type)
                                                            : nb::object(nb::none());
    const std::string key = signature.key;
    const uint64_t generation = table.generation;
    nb::object native_plan = site.planner(self, describe(arguments, &signature), result_type,
                                          nb::bytes(key.data(), key.size()), signature.deterministic);
    std::shared_ptr<CallPlan> plan = read_plan(native_plan);
    plan->view.attr(in_python::attach.name)(PlanLink{plan});
    if (table.generation != generation) // a reload came in between: good for this call only
        return plan;
    if (plan->traits.size_dependent && !is_sized) {
        table.plans[key] = plan;
        append_sizes(signature, plan->traits.shape_dependent);
    }
    table.plans[signature.key] = plan;
    return plan;
}

std::shared_ptr<CallPlan> find_plan(CallSite& site, nb::handle self, PlanTable& table, Signature& signature,
                                    const CallArguments& arguments)
{
    auto found = table.plans.find(signature.key);
    if (found == table.plans.end())
        return make_plan(site, self, table, signature, arguments, false);
    if (!found->second->traits.size_dependent)
        return found->second;
    append_sizes(signature, found->second->traits.shape_dependent);
    auto exact = table.plans.find(signature.key);
    return exact != table.plans.end() ? exact->second : make_plan(site, self, table, signature, arguments, true);
}

/// The arguments of a call, with the Python objects that they borrow.
struct Gathered {
    CallArguments arguments;
    nb::object bound;  ///< `_this` of the call
    nb::kwargs kwargs; ///< without it

    /// `site` is of `self`, which may be no more than allocated: Python's call slot is not kept from it.
    Gathered(nb::handle self, const CallSite& site, const nb::args& args, const nb::kwargs& given) : kwargs(given)
    {
        if (!site.self.is_valid()) // all zeros
            fail_unmade(self);
        arguments.self = site.self.is_none() ? nullptr : site.self.ptr();
        arguments.positional = {reinterpret_cast<PyTupleObject*>(args.ptr())->ob_item, args.size()}; // the caller's
        arguments.keywords = PyDict_GET_SIZE(kwargs.ptr()) ? kwargs.ptr() : nullptr;
        arguments.node = self.ptr();
    }
    Gathered(const Gathered&) = delete;
    Gathered& operator=(const Gathered&) = delete;

    /// `_this` stands for the bound object.
    void take_this()
    {
        static PyObject* const name = PyUnicode_InternFromString("_this");
        PyObject* value = arguments.keywords ? PyDict_GetItemWithError(arguments.keywords, name) : nullptr;
        if (!value)
            return;
        bound = nb::borrow(value);
        kwargs = nb::borrow<nb::kwargs>(nb::steal(PyDict_Copy(kwargs.ptr())));
        PyDict_DelItemString(kwargs.ptr(), "_this");
        arguments.self = bound.ptr();
        arguments.keywords = PyDict_GET_SIZE(kwargs.ptr()) ? kwargs.ptr() : nullptr;
    }
};

/// After the first run of a backward call's plan, where the device asks for it.
void check_first_run(nb::handle self, CallPlan& plan, nb::handle args, nb::handle kwargs,
                     std::span<PyObject* const> slots)
{
    plan.state.is_unchecked = false;
    nb::list values;
    for (PyObject* slot : slots)
        values.append(nb::borrow(slot));
    in_python::check_first_run.get()(self, args, kwargs, values);
}

/// Whether the call joins torch's graph; a call that is recorded does not, and says so.
bool joins_graph(const CallSite& site, const CallPlan& plan, const Signature& signature)
{
    if (!signature.needs_autograd || site.is_bwds)
        return false;
    if (!signature.reserved.append_to)
        return true;
    if (PyErr_WarnEx(PyExc_RuntimeWarning,
                     cat(plan.label,
                         ": a call that is appended to an encoder joins no torch "
                         "graph; use torch.no_grad() or .detach()")
                         .c_str(),
                     1) < 0)
        throw nb::python_error();
    return false;
}

/// "argument x: " of the first argument that is a diff_pair; empty where one is inside of an argument.
std::string place_of_pair(nb::handle self, const CallArguments& arguments)
{
    const auto is_pair = [](PyObject* value) { return class_of(value).value_class == ValueClass::torch_pair; };
    const std::span<PyObject* const> given = arguments.positional;
    if (const auto found = std::find_if(given.begin(), given.end(), is_pair); found != given.end()) {
        nb::object name = self.attr(in_python::parameter_at.name)(found - given.begin());
        return cat("argument ", nb::str(name.is_none() ? nb::cast(found - given.begin()) : name).c_str(), ": ");
    }
    if (arguments.keywords)
        for (const auto& [name, value] : nb::borrow<nb::dict>(arguments.keywords))
            if (is_pair(nb::handle(value).ptr()))
                return cat("argument ", nb::str(nb::handle(name)).c_str(), ": ");
    return "";
}

/// The arguments of a call that begins, after a reload where sources changed.
void begin(nb::handle self, CallSite& site, Gathered& gathered, Signature& signature, std::vector<ArgumentPart>* parts)
{
    gathered.take_this();
    if (site.watcher && site.watcher->changed())
        self.attr(in_python::reload.name)();
    walk(signature, gathered.arguments, parts);
    if (signature.has_torch_pairs && !site.is_bwds)
        fail(ErrorKind::type, nb::str(self.attr("label")).c_str(), ": ", place_of_pair(self, gathered.arguments),
             "diff_pair belongs to .bwds() and .fwds(); pass the tensor itself");
    add_determinism(site, signature);
}

nb::object call_with(nb::handle self, nb::args args, nb::kwargs given, std::span<PyObject* const> slots,
                     nb::handle encoder = {})
{
    CallSite& site = *nb::inst_ptr<CallSite>(self);
    Gathered gathered(self, site, args, given);
    CallArguments& arguments = gathered.arguments;
    arguments.slots = slots;
    SignatureLease lease;
    Signature& signature = *lease.signature;
    begin(self, site, gathered, signature, nullptr);
    if (encoder) {
        if (signature.reserved.append_to)
            fail(ErrorKind::type, "append_to takes the encoder first, and _append_to is another one");
        signature.reserved.append_to = encoder.ptr();
    }
    PlanTable& table = *nb::cast<PlanTable*>(site.table);
    std::shared_ptr<CallPlan> plan = find_plan(site, self, table, signature, arguments);
    if (joins_graph(site, *plan, signature))
        return call_in_graph(self, site, plan, signature, arguments);
    nb::object result = returned(*plan, arguments, signature, launch(*plan, signature, site.run));
    if (plan->state.is_unchecked && !signature.reserved.append_to)
        check_first_run(self, *plan, args, given, slots);
    if (site.is_bwds) // not before the check, which makes calls with derivatives of its own
        note_backward_plan(plan);
    return result;
}

/// The plan of a call that is not run, and its arguments in `signature`.
std::shared_ptr<CallPlan> planned_call(nb::handle self, const nb::args& args, const nb::kwargs& kwargs,
                                       Signature& signature)
{
    CallSite& site = site_of(self);
    const Gathered gathered(self, site, args, kwargs);
    walk(signature, gathered.arguments);
    add_determinism(site, signature);
    return find_plan(site, self, *nb::cast<PlanTable*>(site.table), signature, gathered.arguments);
}

/// Signatures may still hold objects of their last call when their thread ends.
struct SignaturePool {
    ~SignaturePool()
    {
        if (Py_IsInitialized()) {
            nb::gil_scoped_acquire lock;
            signatures.clear();
        }
        for (std::unique_ptr<Signature>& signature : signatures)
            (void)signature.release(); // the interpreter is gone, and its objects with it
    }
    std::vector<std::unique_ptr<Signature>> signatures;
};

std::vector<std::unique_ptr<Signature>>& signature_pool()
{
    static thread_local SignaturePool pool;
    return pool.signatures;
}
thread_local size_t lease_depth = 0;

} // namespace

SignatureLease::SignatureLease()
{
    auto& pool = signature_pool();
    if (lease_depth == pool.size())
        pool.push_back(std::make_unique<Signature>());
    signature = pool[lease_depth++].get();
    signature->clear();
}

SignatureLease::~SignatureLease()
{
    signature->clear();
    --lease_depth;
}

void set_check_bounds(bool enabled) { bounds_are_checked = enabled; }

bool checks_bounds() { return bounds_are_checked; }

void fail_labelled(nb::handle self, const Error& error)
{
    if (!nb::inst_ready(self)) // it has no label
        throw error;
    std::string label = nb::cast<std::string>(self.attr("label"));
    std::string text = error.what();
    throw Error(error.kind(), text.find(label) == text.npos ? cat(label, ": ", text) : text);
}

nb::object returned(const CallPlan& plan, const CallArguments& arguments, const Signature& signature, nb::object result)
{
    if (plan.result.mode != ResultMode::leaf || signature.reserved.append_to)
        return result;
    static PyObject* const name = PyUnicode_InternFromString("_result");
    PyObject* given = arguments.keywords ? PyDict_GetItemWithError(arguments.keywords, name) : nullptr;
    if (given && class_of(given).value_class == ValueClass::value_ref)
        return nb::cast<ValueRef*>(nb::handle(given))->value;
    return given ? nb::borrow(given) : nb::none();
}

nb::object call_function(nb::handle self, nb::args args, nb::kwargs kwargs, std::span<PyObject* const> slots)
{
    try {
        return call_with(self, args, kwargs, slots);
    } catch (const TracedTensor&) {
        if (!slots.empty())
            throw;
        return in_python::traced_call.get()(self, args, kwargs);
    } catch (const Error& error) {
        fail_labelled(self, error);
    }
}

void append_function(nb::handle self, nb::handle encoder, nb::args args, nb::kwargs kwargs)
{
    try {
        call_with(self, args, kwargs, {}, encoder);
    } catch (const Error& error) {
        fail_labelled(self, error);
    }
}

PlannedCall plan_prepared(nb::handle self, nb::args args, nb::kwargs kwargs, Signature& signature,
                          std::vector<ArgumentPart>& parts)
{
    CallSite& site = site_of(self);
    Gathered gathered(self, site, args, kwargs);
    begin(self, site, gathered, signature, &parts);
    if (signature.reserved.append_to)
        fail(ErrorKind::not_implemented, nb::str(self.attr("label")).c_str(),
             ": prepare: _append_to is for one call; record the call with append_to, or prepare it without");
    PlannedCall call;
    call.plan = find_plan(site, self, *nb::cast<PlanTable*>(site.table), signature, gathered.arguments);
    call.given = returned(*call.plan, gathered.arguments, signature, nb::none());
    return call;
}

nb::object plan_of(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    SignatureLease lease;
    return planned_call(self, args, kwargs, *lease.signature)->view;
}

void build_call(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    SignatureLease lease;
    const std::shared_ptr<CallPlan> plan = planned_call(self, args, kwargs, *lease.signature);
    const Call call{*plan, *lease.signature, nb::inst_ptr<CallSite>(self)->run, plan->device->info().on_host, nullptr};
    const Measured measured = measure(call);
    if (measured.total > 0)
        variant_of(call, select(call, measured).key);
}

nb::object describe_call(nb::handle self, nb::args args, nb::kwargs kwargs)
{
    const Gathered gathered(self, site_of(self), args, kwargs);
    return describe(gathered.arguments, nullptr);
}

} // namespace spy
