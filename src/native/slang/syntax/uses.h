#pragma once
// What a function does with its variables: reads, writes, loops, and the ways out of it.
#include "slang/syntax/scopes.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spy::syntax {

/// `s.q[i].x`: a variable, and the nodes (`member`, `index`) that pick parts of it, outermost part last.
struct Path {
    NodeId root = none; ///< the `name`; of a field without `this.` too
    std::vector<NodeId> steps;
    NodeId whole = none; ///< the node of all of it
    bool is_part() const { return !steps.empty(); }
};
/// The path that begins with a name, as far as it goes: up to a method's name, brackets around parts of it included.
Path path_from(const Tree& tree, NodeId name);

enum class Access : uint8_t {
    read,
    declared,     ///< with or without a value
    written,      ///< `x = e`
    updated,      ///< `x += e`, `x++`: read and written
    by_reference, ///< to an out, inout or ref parameter, or the object of a [mutating] method
    unknown,      ///< an argument or the object of a function that the sources do not show; in a macro; its address
};

struct Use {
    uint32_t variable;
    Access access;
    Path path;
    NodeId by;   ///< the assignment, `++`, call or declarator that writes it; `none` for reads
    NodeId loop; ///< the innermost around it; `none`
    bool reads() const { return access != Access::declared && access != Access::written; }
    bool may_write() const { return access != Access::read; }
    bool writes_part() const { return may_write() && path.is_part(); }
};

/// A loop of a function, outer ones before inner ones.
struct Loop {
    NodeId node;
    NodeId parent;                 ///< the loop around it; `none`
    bool is_unrolled;              ///< [ForceUnroll]: the compiler takes it apart
    NodeId max_iters;              ///< what stands in [MaxIters(...)]; `none`
    std::vector<uint32_t> carried; ///< variables from outside or of its header that it may write and reads: its state
    uint32_t counter = none;       ///< the variable that the header declares, or the step writes
};

/// return, break, continue, discard: what leaves, and what it leaves; `none`: the function.
struct Exit {
    NodeId node;
    NodeId target; ///< the loop or switch; `none` for the function
};

/// Whether two expressions are one place in memory.
enum class Aliasing : uint8_t { never, same, possible };

/// All of one function, accessor or lambda; lambdas in it are part of it.
class Uses {
public:
    Uses(const Scopes& scopes, NodeId function);

    NodeId function() const { return m_function; }
    /// Whether all of it was understood. Nothing may be concluded where not.
    bool is_understood() const { return m_is_understood; }
    const std::vector<Use>& all() const { return m_uses; } ///< in the order of the text
    std::vector<const Use*> of(uint32_t variable) const;
    std::vector<const Use*> in(NodeId node) const; ///< inside of a node
    const std::vector<Loop>& loops() const { return m_loops; }
    const Loop* loop(NodeId node) const;
    NodeId loop_around(NodeId node) const; ///< the innermost around a node that stays a loop; `none`
    const std::vector<Exit>& exits() const { return m_exits; }

    bool may_write(uint32_t variable, NodeId within) const;
    /// Whether the compiler knows an index: numbers, constants, counters of unrolled loops.
    bool is_known(NodeId expression) const;
    bool is_known_variable(uint32_t variable) const;
    /// Whether an expression is the same in all trips of a loop: all that it reads is written outside only.
    bool is_invariant(NodeId expression, NodeId loop) const;
    /// Whether two indices may be one number in one trip of a loop (`none`: in the function).
    Aliasing aliasing(NodeId index, NodeId other, NodeId loop) const;
    /// The same of two paths of one variable, step by step.
    Aliasing aliasing(const Path& path, const Path& other, NodeId loop) const;

private:
    friend class UseFinder;
    bool is_known(NodeId expression, int depth) const;
    bool is_known_name(NodeId name, int depth) const;
    bool is_known_variable(uint32_t variable, int depth) const;
    bool is_stable(NodeId expression, NodeId loop) const;
    bool is_stable_in(NodeId first, NodeId last, NodeId region, NodeId loop) const;
    std::vector<const Use*> writes_of(uint32_t variable, NodeId within) const; ///< and its declaration

    const Scopes* m_scopes;
    NodeId m_function;
    bool m_is_understood;
    std::vector<Use> m_uses;
    std::unordered_map<uint32_t, std::vector<uint32_t>> m_of, m_writes_of; ///< by variable, in order
    std::vector<Loop> m_loops;
    std::vector<uint32_t> m_known_counters; ///< of unrolled loops, sorted
    std::vector<Exit> m_exits;
};

/// What calls of a function may do to an argument: `read`, `by_reference`, or `unknown` where the sources do not show
/// it. `argument` = SIZE_MAX: to its object.
Access access_of(const Scopes& scopes, NodeId call, size_t argument);
/// What is done with a whole path, and by which node; `none` where it is only read.
std::pair<Access, NodeId> access_at(const Scopes& scopes, NodeId whole);
/// Functions of Slang's core module that write none of their arguments, types, and what else stands before brackets.
bool only_reads_arguments(std::string_view function);
/// The same of methods of arrays, buffers, textures and tensors.
bool only_reads_object(std::string_view method);

} // namespace spy::syntax
