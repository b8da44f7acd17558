#pragma once
// What a FunctionNode keeps natively.
#include "call/launch.h"
#include "core/class_name.h"
#include "core/watch.h"

#include <atomic>
#include <memory>

namespace spy {

/// Plans of one function with one set of key options; shared by all nodes that are equal in those.
struct PlanTable {
    std::unordered_map<std::string, std::shared_ptr<CallPlan>> plans;
    uint64_t generation = 0; ///< how often it was cleared: plans that were in the making then are of replaced code
};

struct CallSite {
    nb::object table;   ///< PlanTable
    nb::object planner; ///< callable(site, description, result type, key) -> plan specification (dict)
    nb::object self;    ///< bound `this` or None
    RunOptions run;
    bool is_bwds = false;     ///< a derivative, backward or forward: takes pairs, joins no graph
    ref<FileWatcher> watcher; ///< of the device's source files; null without hot reload
    std::shared_ptr<const std::atomic<bool>> deterministic; ///< the device's setting; null where code is only generated
    PyObject* backward = nullptr; ///< the node of the backward call, once known; the node that owns this keeps it
};

/// The native half of what should be a FunctionNode.
inline CallSite& site_of(nb::handle node) { return instance_of<CallSite>(node, "a FunctionNode"); }

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
