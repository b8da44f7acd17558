// Ray queries that are read without having been started, and those that drivers cannot hold.
//
// A RayQuery is an opaque variable of a kernel. Slang 2026.12 drops assignments of one (`p = q`, a function that
// returns it, an element of an array): the new variable is then read without ever having been started, and has no hits.
#include "core/error.h"
#include "vulkan/spirv/spirv.h"
#include "vulkan/spirv/words.h"

#include <set>
#include <unordered_map>

namespace spy {
namespace {

bool reads_query(uint32_t op)
{
    return (op >= spv::OpRayQueryTerminateKHR && op <= spv::OpRayQueryGetIntersectionTypeKHR) ||
        (op >= spv::OpRayQueryGetRayTMinKHR && op <= spv::OpRayQueryGetIntersectionWorldToObjectKHR);
}

struct Queries {
    std::set<uint32_t> types;                    ///< queries, and pointers to them
    std::unordered_map<uint32_t, uint32_t> base; ///< of an element: the array
    std::set<uint32_t> variables, started, read;

    uint32_t root(uint32_t id) const
    {
        for (auto found = base.find(id); found != base.end(); found = base.find(id))
            id = found->second;
        return id;
    }
};

} // namespace

void refuse_odd_ray_queries(const std::vector<uint32_t>& words, const std::string& label)
{
    Queries queries;
    for (size_t i = spirv_header_words; i < words.size(); i += spirv_count(words, i)) {
        const uint32_t* w = &words[i];
        const uint32_t op = spirv_opcode(words, i);
        const size_t count = spirv_count(words, i);
        const auto operands = [&](size_t first, auto&& take) {
            for (size_t k = first; k < count; k++)
                take(w[k]);
        };
        if (op == spv::OpTypeRayQueryKHR) {
            queries.types.insert(w[1]);
        } else if (queries.types.empty()) {
            continue;
        } else if ((op == spv::OpTypeArray && queries.types.count(w[2])) ||
                   (op == spv::OpTypePointer && queries.types.count(w[3]))) {
            queries.types.insert(w[1]);
        } else if (op == spv::OpTypeStruct) {
            operands(2, [&](uint32_t type) {
                if (queries.types.count(type))
                    fail_runtime("kernel '", label,
                                 "' has a RayQuery in a struct, which drivers cannot hold: make it a variable of its "
                                 "own, and hand it to functions as an inout parameter");
            });
        } else if (op == spv::OpVariable && queries.types.count(w[1])) {
            queries.variables.insert(w[2]);
        } else if (op == spv::OpAccessChain || op == spv::OpInBoundsAccessChain) {
            queries.base[w[2]] = w[3];
        } else if (op == spv::OpRayQueryInitializeKHR) {
            queries.started.insert(queries.root(w[1]));
        } else if (op == spv::OpFunctionCall) {
            operands(4, [&](uint32_t id) { queries.started.insert(queries.root(id)); });
        } else if (reads_query(op)) {
            operands(1, [&](uint32_t id) { queries.read.insert(queries.root(id)); });
        }
    }
    for (const uint32_t variable : queries.variables)
        if (queries.read.count(variable) && !queries.started.count(variable))
            fail_runtime(
                "kernel '", label,
                "' reads a RayQuery that TraceRayInline has not started. Slang drops assignments of a RayQuery: "
                "a copy, a function's result and an element of an array are other queries. Call TraceRayInline "
                "on the variable itself, or hand it to a function as an inout parameter");
}

} // namespace spy
