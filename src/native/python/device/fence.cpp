// Fences and query pools.
#include "python/device/bindings.h"
#include "python/integers.h"

#include <algorithm>

namespace spy {

namespace {

void bind_fence(nb::module_& m)
{
    auto fence = nb::class_<Fence, DeviceObject>(m, "Fence", nb::dynamic_attr(),
                                                 "A 64-bit counter that host and device signal and wait for.");
    fence.attr("AUTO") = fence_auto;
    fence.attr("TIMEOUT_INFINITE") = timeout_infinite;
    fence.def_prop_ro("desc", [](const Fence& f) { return FenceDesc{f.initial_value(), f.is_shared()}; })
        .def(
            "signal", [](Fence& f, Int64<"Fence.signal 'value'"> value) { return signal_fence(&f, value); },
            nb::arg("value") = fence_auto, "From the host, at once. AUTO: the next value. Returns the value.")
        .def(
            "wait",
            [](ref<Fence> f, Int64<"Fence.wait 'value'"> wanted, Int64<"Fence.wait 'timeout_ns'"> timeout) {
                open_device(f.get());
                uint64_t value = wanted;
                const uint64_t timeout_ns = timeout;
                if (value == fence_auto)
                    value = f->signaled_value();
                if (!wait_interruptible(timeout_ns, [&](uint64_t ns) { return f->wait(value, ns); }))
                    fail(ErrorKind::timeout, "fence did not reach ", value, " within ", timeout_ns, " ns; it is at ",
                         f->current_value());
            },
            nb::arg("value") = fence_auto, nb::arg("timeout_ns") = timeout_infinite,
            "AUTO: the last value that anything was told to signal. TimeoutError when the time is up.")
        .def_prop_ro("current_value",
                     [](Fence& f) {
                         open_device(&f);
                         return f.current_value();
                     })
        .def_prop_ro(
            "signaled_value", [](const Fence& f) { return f.signaled_value(); },
            "The last value that anything was told to signal.")
        .def_prop_ro("native_handle",
                     [](const Fence& f) {
                         open_device(&f);
                         return f.native_handle();
                     })
        .def_prop_ro("shared_handle",
                     [](Fence& f) {
                         open_device(&f);
                         if (!f.is_shared())
                             fail_runtime("the fence was created without shared=True, so it has no shared handle");
                         return f.shared_handle();
                     })
        .def("__repr__", [](Fence& f) { return cat("Fence(\n  signaled_value = ", f.signaled_value(), ",\n)"); });
}

std::vector<uint64_t> query_ticks(QueryPool* pool, uint32_t index, uint32_t count)
{
    open_device(pool);
    if (index >= pool->count())
        fail(ErrorKind::index, "QueryPool: 'index' out of range (", index, " of ", pool->count(), " queries)");
    if (count > pool->count() - index)
        fail(ErrorKind::index, "QueryPool: 'count' out of range (", index, " + ", count, " of ", pool->count(),
             " queries)");
    std::vector<uint64_t> ticks(count);
    GilRelease release;
    if (count)
        pool->get_results(index, count, ticks.data());
    return ticks;
}

double seconds(const QueryPool* pool, uint64_t ticks)
{
    return double(ticks) / double(std::max<uint64_t>(1, pool->frontend()->info().timestamp_frequency));
}

void bind_query_pool(nb::module_& m)
{
    nb::class_<QueryPool, DeviceObject>(m, "QueryPool", nb::dynamic_attr(), "Timestamps that the device writes.")
        .def_prop_ro("type", &QueryPool::type)
        .def_prop_ro("count", &QueryPool::count)
        .def_prop_ro("desc", [](const QueryPool& p) { return QueryPoolDesc{p.type(), p.count()}; })
        .def(
            "reset",
            [](QueryPool& p, Int<"reset 'index'"> first, nb::object count) {
                open_device(&p);
                const uint32_t index = first;
                const uint64_t n = count.is_none() ? p.count() - std::min(index, p.count())
                                                   : uint_from(count, "reset 'count'", 0xffffffffu);
                if (index > p.count() || n > p.count() - index)
                    fail(ErrorKind::index, "reset: 'index' / 'count' out of range (", index, " + ", n, " of ",
                         p.count(), ")");
                p.reset(index, uint32_t(n));
            },
            nb::arg("index") = 0, nb::arg("count") = nb::none(),
            "Forgets results: of `count` queries from `index` on, or of all.")
        .def(
            "get_result", [](QueryPool& p, Int<"get_result 'index'"> index) { return query_ticks(&p, index, 1)[0]; },
            nb::arg("index"), "Ticks. Waits until the result is there.")
        .def(
            "get_results",
            [](QueryPool& p, Int<"get_results 'index'"> index, Int<"get_results 'count'"> count) {
                return query_ticks(&p, index, count);
            },
            nb::arg("index"), nb::arg("count"),
            "Ticks of `count` queries from `index` on; waits for them. IndexError outside of the pool.")
        .def(
            "get_timestamp_result",
            [](QueryPool& p, Int<"get_timestamp_result 'index'"> i) { return seconds(&p, query_ticks(&p, i, 1)[0]); },
            nb::arg("index"), "Seconds.")
        .def(
            "get_timestamp_results",
            [](QueryPool& p, Int<"get_timestamp_results 'index'"> index, Int<"get_timestamp_results 'count'"> count) {
                std::vector<double> out;
                for (uint64_t ticks : query_ticks(&p, index, count))
                    out.push_back(seconds(&p, ticks));
                return out;
            },
            nb::arg("index"), nb::arg("count"), "Seconds.")
        .def("__repr__", [](const QueryPool& p) { return cat("QueryPool(\n  count = ", p.count(), ",\n)"); });
}

} // namespace

void bind_fences(nb::module_& m)
{
    bind_fence(m);
    bind_query_pool(m);
}

} // namespace spy
