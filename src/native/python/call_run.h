#pragma once
// What call.cpp, which runs calls, and call_graph.cpp, which joins them to torch's graph, share.
#include "python/call_site.h"

namespace spy {

/// What a call returns, given what its launch gave.
nb::object finish(const CallPlan& plan, const CallArguments& arguments, const Signature& signature, nb::object result);

/// Every error of a call names the function.
[[noreturn]] void fail_labelled(nb::handle self, const Error& error);

/// A call with a tensor that requires grad: the plain call where no gradient flows, else a node in torch's graph.
nb::object call_in_graph(nb::handle self, CallSite& site, const std::shared_ptr<CallPlan>& plan, Signature& signature,
                         const CallArguments& arguments, nb::handle args, nb::handle kwargs);
/// The plan of a backward call that this thread is about to run.
void note_backward_plan(const std::shared_ptr<CallPlan>& plan);
void bind_call_graph(nb::module_& m);

/// Signatures are reused by a thread; a nested call (get_this calling back) takes the next one.
struct SignatureLease {
    SignatureLease()
    {
        if (depth() == pool().size())
            pool().push_back(std::make_unique<Signature>());
        signature = pool()[depth()++].get();
        signature->clear();
    }
    ~SignatureLease()
    {
        signature->clear();
        --depth();
    }
    Signature* signature;

private:
    static std::vector<std::unique_ptr<Signature>>& pool()
    {
        static thread_local std::vector<std::unique_ptr<Signature>> signatures;
        return signatures;
    }
    static size_t& depth()
    {
        static thread_local size_t value = 0;
        return value;
    }
};

} // namespace spy
