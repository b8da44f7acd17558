#pragma once
// The walk over the Python values of a call (walk*.cpp), used by signature.cpp only: it writes the key, adds the leaves
// and, when it describes, builds what the planner sees.
#include "call/signature.h"
#include "call/classes.h"
#include "call/texture.h"
#include "call/torch.h"

namespace spy {

/// Visits values once; with `describing` it also builds the planner's description (never on the warm path).
class Walker {
public:
    Walker(Signature& signature, bool describing, const Signature* walked = nullptr)
        : m(signature), m_walked(walked), m_describing(describing)
    {
    }

    /// One argument of the call; only here a packed value may stand.
    nb::object argument(PyObject* value);

    /// Raises slangpy.BoundVariableException with function, argument and field path.
    template <typename... Args>
    [[noreturn]] void fail_bound(const Args&... args) const
    {
        throw_bound(cat(args...));
    }

    std::string m_argument;                ///< name or index of the argument at hand, for messages
    std::vector<std::string_view> m_path;  ///< fields inside it
    PyObject* m_node = nullptr;
    std::span<PyObject* const> m_slots;

private:
    Signature& m;
    const Signature* m_walked;
    bool m_describing;
    bool m_packed = false; ///< inside a packed value: read-only, without gradients
    int m_depth = 0;

    // --- the walk itself
    nb::object visit(PyObject* value);
    nb::object visit_as(PyObject* value, const ClassEntry& entry);
    nb::object packed(PyObject* value);
    nb::object simple(PyObject* value, ValueKind kind, char code);
    nb::object unsupported(PyObject* value, const char* reason);
    nb::object description(PyObject* value, ValueKind kind, nb::dict details, int64_t leaf, nb::list fields = {});
    /// Keeps an object for the time of the call; passes on the exception of the Python code that gave none.
    PyObject* hold(nb::object object);
    [[noreturn]] void throw_bound(const std::string& text) const;
    std::string named_place() const;
    std::string label() const; ///< "function: ", for messages
    std::string place() const; ///< argument and fields, for messages

    void put(char c) { m.key.push_back(c); }
    void put32(uint32_t v) { m.key.append(reinterpret_cast<const char*>(&v), 4); }
    int64_t last_leaf() const { return int64_t(m.leaf_count) - 1; }

    /// What `ask` gives, or gave when the same arguments were walked before.
    template <typename Ask>
    nb::object answer(Ask&& ask)
    {
        size_t index = m.answers.size();
        m.answers.push_back(m_walked && index < m_walked->answers.size() ? m_walked->answers[index] : ask());
        return m.answers[index];
    }

    // --- single values
    nb::object number(PyObject* value, ValueKind kind, ScalarType scalar, char code);
    nb::object integer(PyObject* value);
    nb::object numpy_scalar(PyObject* value);
    nb::object math(PyObject* value, const MathTypeInfo& info);
    nb::object range(PyObject* value);
    nb::object generator(PyObject* value, Generator* generator);

    // --- containers in memory
    nb::object numpy(PyObject* value);
    nb::object foreign(PyObject* value);
    /// An array of a type that NumPy does not have (bfloat16); adds no leaf when it is not in host memory.
    nb::object dlpack(PyObject* value);
    /// A container in host memory; strides count bytes.
    nb::object array_leaf(PyObject* value, uint64_t address, ScalarType scalar, bool writable,
                          std::span<const int64_t> sizes, std::span<const int64_t> strides);
    nb::object tensor(PyObject* value);
    nb::object buffer(PyObject* value);
    nb::object texture(PyObject* value, const TextureValue& texture, ValueKind kind);

    // --- torch
    nb::object torch(PyObject* value);
    nb::object torch_slot();
    nb::object torch_pair(PyObject* value);
    TensorBase* torch_gradient(nb::object object, const TorchTensor& primal);
    nb::object torch_leaf(PyObject* value, const TorchTensor& tensor, uint8_t flags, const TensorBase* grad_in,
                          const TensorBase* grad_out);
    /// Whether the called function has `convert` set.
    bool converts_elements() const;
    /// Reads a tensor; messages name the argument.
    void describe_torch(PyObject* value, TorchTensor& tensor) const;

    // --- dicts and lists
    nb::object dict(PyObject* value);
    std::string type_text(PyObject* item) const;
    nb::object sequence(PyObject* value);
    /// Flattens nested sequences of scalars or math values into leaf.items; false when an element is something else.
    bool flatten(PyObject* value, size_t depth, Leaf& leaf, std::vector<int64_t>& sizes);
    bool take_item(PyObject* item, const ClassEntry& entry, Leaf& leaf);
    /// A list of dicts becomes one dict of lists; other lists of objects are arrays of resources.
    nb::object sequence_of_objects(PyObject* value);
    bool is_numbers(const nb::object& items);
    nb::object array_of_objects(PyObject* value, PyObject* list, int64_t own);
    nb::object merged_list(nb::object merged, PyObject* list, int64_t own);
    /// The elements of a list, each object with get_this replaced by what it stands for (nested lists too).
    nb::object plain_items(PyObject* value, int level = 0);
    /// A leaf for a dict or list of objects as a whole, in front of those of its parts: the planner takes one or the
    /// other.
    int64_t add_aggregate(PyObject* value, ValueKind kind);

    // --- objects that stand for a value
    /// The value held by a reference decides the key, but makes no leaves.
    nb::object held_value(PyObject* value);
    nb::object value_ref(PyObject* value);
    nb::object diff_pair(PyObject* value);
    /// Asks an object once per call, and notes it for update_this.
    nb::object ask_this(PyObject* value);
    nb::object get_this(PyObject* value);
    nb::object custom(PyObject* value, const ClassEntry& entry);
};

nb::tuple to_tuple(const Shape& shape);
/// 'i', 'l' or 'u': whether an int needs 32, 64 or unsigned 64 bits; 'o' when none will do.
char int_class(PyObject* value);
/// The type of a NumPy scalar; none when it is not one of ours.
ScalarType numpy_scalar_type(PyObject* value);
/// The text of a str; lone surrogates, which UTF-8 cannot hold, as escapes.
std::string text_of(PyObject* text);

} // namespace spy
