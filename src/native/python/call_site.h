#pragma once
// What a FunctionNode keeps natively, and what Python's garbage collector sees of it.
#include "call/launch.h"
#include "core/watch.h"
#include "python/collect.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace spy {

/// Plans of one function with one set of key options; shared by all nodes that are equal in those.
struct PlanTable {
    std::unordered_map<std::string, std::shared_ptr<CallPlan>> plans;
    uint64_t generation = 0; ///< how often it was cleared: plans that were in the making then are of replaced code
};

struct CallSite {
    nb::object table;      ///< PlanTable
    nb::object planner;    ///< callable(site, description, result type, key) -> plan specification (dict)
    nb::object self;       ///< bound `this` or None
    RunOptions run;
    bool is_bwds = false;  ///< a derivative, backward or forward: takes pairs, joins no graph
    ref<FileWatcher> watcher; ///< of the device's source files; null without hot reload
    std::shared_ptr<const std::atomic<bool>> deterministic; ///< the device's setting; null where code is only generated
    PyObject* backward = nullptr; ///< the node of the backward call, once known; the node that owns this keeps it
};

template <typename Visit>
int visit_objects(PlanTable& table, const Visit& visit)
{
    std::vector<CallPlan*> plans; // one whose sizes count stands under two keys
    for (auto& [key, plan] : table.plans)
        plans.push_back(plan.get());
    std::sort(plans.begin(), plans.end());
    plans.erase(std::unique(plans.begin(), plans.end()), plans.end());
    for (CallPlan* plan : plans)
        if (int answer = visit(plan->view))
            return answer;
    return 0;
}
inline void clear_objects(PlanTable& table)
{
    auto plans = std::move(table.plans); // what goes away may run Python code, or let other threads run
    table.plans.clear();
    ++table.generation;
}

inline void drop(nb::object& member)
{
    nb::object old = std::move(member);
    member = nb::none();
}

template <typename Visit>
int visit_objects(CallSite& site, const Visit& visit)
{
    for (nb::handle object : {nb::handle(site.table), nb::handle(site.planner), nb::handle(site.self),
                              nb::handle(site.run.uniforms)})
        if (int answer = visit(object))
            return answer;
    return 0;
}
inline void clear_objects(CallSite& site)
{
    drop(site.self);
    drop(site.run.uniforms);
}

template <typename Visit>
int visit_objects(ValueRef& reference, const Visit& visit)
{
    return visit(reference.value);
}
inline void clear_objects(ValueRef& reference) { drop(reference.value); }

template <typename Visit>
int visit_objects(DiffPair& pair, const Visit& visit)
{
    const int answer = visit(pair.primal);
    return answer ? answer : visit(pair.grad);
}
inline void clear_objects(DiffPair& pair) 
{
    drop(pair.primal);
    drop(pair.grad);
}

template <typename Visit>
int visit_objects(PackedArg& packed, const Visit& visit)
{
    for (auto* list : {&packed.keep, &packed.answers})
        for (nb::object& object : *list)
            if (int answer = visit(object))
                return answer;
    return visit(packed.value);
}
inline void clear_objects(PackedArg& packed) 
{
    auto old = std::move(packed);
    packed = PackedArg();
    packed.value = nb::none();
}

/// What a plan's Python view holds of its plan: the table owns the plan, the plan its view.
struct PlanLink {
    std::weak_ptr<CallPlan> plan;

    std::shared_ptr<CallPlan> get() const
    {
        std::shared_ptr<CallPlan> found = plan.lock();
        if (!found)
            fail_runtime("this plan was dropped, by a reload or with its module; plan the call again");
        return found;
    }
};

} // namespace spy
