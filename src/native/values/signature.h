#pragma once
// The only walk over the Python values of a call. It yields the key that decides the kernel, and the leaves that
// feed it. Shapes, pointers and values never enter the key.
#include "values/value.h"

namespace spy {

/// Arguments that steer a call instead of feeding it.
struct ReservedArguments {
    PyObject* append_to = nullptr;
    PyObject* thread_count = nullptr;
    PyObject* result_type = nullptr; ///< _result when it is text or a class
};

/// An object that is told of its new value, with what its `get_this` answered.
struct ThisUpdate {
    nb::object object, value;
};

struct TorchTensor;

/// An array with swapped byte order, and the copy that stands for it.
struct NativeCopy {
    nb::object array, copy;
    size_t leaf;
};

struct Signature {
    std::string key;
    std::vector<Leaf> leaves; ///< reused between calls: only the first `leaf_count` count
    size_t leaf_count = 0;
    std::vector<nb::object> keep;
    std::vector<ThisUpdate> updates;
    std::vector<NativeCopy> native_copies;
    std::vector<nb::object> answers; ///< what get_this() gave, in walk order: asked once per call
    ReservedArguments reserved;
    bool has_torch = false;
    bool has_torch_pairs = false;
    bool deterministic = false;  ///< a backward call whose sums must not depend on the order of threads
    bool needs_autograd = false; ///< grad mode is on and a torch tensor requires grad
    std::vector<std::unique_ptr<TensorBase>> grads; ///< of torch leaves; the first `grad_count` count
    size_t grad_count = 0;
    std::vector<int64_t> facts; ///< memory for what tells the call from others of its plan (call/stages/repeat.h)
    int grad_mode = -1;         ///< torch's grad mode; -1 = not asked yet

    void clear();
    Leaf& add_leaf();
    /// A torch tensor as a gradient of a leaf.
    TensorBase& add_grad(const TorchTensor& tensor, nb::object object);
    std::span<Leaf> used() { return {leaves.data(), leaf_count}; }
};

/// The Python values of one call. `self` (may be null) is a bound `this` and comes first.
struct CallArguments {
    PyObject* self = nullptr;
    std::span<PyObject* const> positional;
    PyObject* keywords = nullptr;     ///< dict or null
    PyObject* node = nullptr;         ///< the FunctionNode, for messages
    std::span<PyObject* const> slots; ///< what TorchSlots stand for, in walk order
};

/// An argument, or a field of one: what of the key and which leaves are its own.
struct ArgumentPart {
    std::string path; ///< name or number of the argument, and fields: "params.a"
    std::string key;
    size_t first = 0, count = 0; ///< leaves
};

/// `parts` (may be null) receives every argument and field.
void walk(Signature& signature, const CallArguments& arguments, std::vector<ArgumentPart>* parts = nullptr);
/// Walks one more value, as an argument of `node` (for messages) with that name.
void walk_part(Signature& signature, PyObject* value, std::string_view name, PyObject* node);

/// The same walk as Python data for the planner: a list of (name or None, value) where value is
/// (kind, type name, details: dict, leaf index or -1, fields: list of (name, value)).
/// `walked` (may be null) is the signature of the same arguments: objects are not asked again.
nb::list describe(const CallArguments& arguments, const Signature* walked);

/// Arguments with slots for torch tensors (those that a pack holds stay in it) and answers for objects. A bound `this`
/// is
/// the keyword `_this`.
struct StrippedArguments {
    nb::tuple positional;
    nb::dict keywords;
};
/// `walked` is the signature of the same arguments: objects are not asked again.
StrippedArguments strip(const CallArguments& arguments, const Signature& walked);

/// Appends the sizes that may decide types to the key: list lengths, and of `containers` all sizes.
void append_sizes(Signature& signature, bool containers);

} // namespace spy
