#pragma once
// What Python's garbage collector sees of calls and of the objects that they take.
#include "call/site.h"
#include "python/collect.h"

#include <algorithm>

namespace spy {

template <typename Visit>
int visit_objects(PlanTable& table, const Visit& visit)
{
    std::vector<CallPlan*> plans; // one whose sizes count stands under two keys
    for (auto& [key, plan] : table.plans)
        plans.push_back(plan.get());
    std::sort(plans.begin(), plans.end());
    plans.erase(std::unique(plans.begin(), plans.end()), plans.end());
    for (CallPlan* plan : plans) {
        if (int answer = visit(plan->view))
            return answer;
        for (const MadeTensor& made : plan->state.made)
            for (nb::handle object : {nb::handle(made.cls), nb::handle(made.like.dtype)})
                if (int answer = visit(object))
                    return answer;
    }
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
    for (nb::handle object :
         {nb::handle(site.table), nb::handle(site.planner), nb::handle(site.self), nb::handle(site.run.uniforms)})
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

} // namespace spy
