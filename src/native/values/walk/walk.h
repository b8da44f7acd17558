#pragma once
// The walk over the Python values of a call (walk*.cpp), used by signature.cpp only: it writes the key, adds the leaves
// and, where that is asked for, builds what the planner sees or what torch's graph keeps.
#include "values/signature.h"
#include "values/classes.h"
#include "values/texture.h"
#include "values/torch.h"

namespace spy {

/// What the functions of a walk give for each value.
enum class WalkMode : uint8_t {
    key,      ///< nothing (the warm path)
    describe, ///< the planner's description
    strip,    ///< the value with slots for torch tensors, and answers for objects
};

/// The position of a walk, and its output.
class Walk {
public:
    Walk(Signature& signature, WalkMode mode, const Signature* walked)
        : signature(signature),
          walked(walked),
          describes(mode == WalkMode::describe),
          strips(mode == WalkMode::strip)
    {
    }

    Signature& signature;
    const Signature* const walked; ///< of the same arguments: objects are not asked again; null: there is none
    const bool describes, strips;

    std::string argument;                       ///< name or index of the argument at hand, for messages
    std::vector<std::string_view> path;         ///< fields inside it
    PyObject* node = nullptr;                   ///< the FunctionNode, for messages
    std::span<PyObject* const> slots;           ///< what TorchSlots that are still to come stand for
    bool in_packed = false;                     ///< inside a packed value: read-only, without gradients
    std::vector<ArgumentPart>* parts = nullptr; ///< where each argument and field is noted; null: nowhere
    int depth = 0;
    std::optional<bool> has_tangents; ///< torch_has_tangents(), once it was asked
    bool ran_code = false;            ///< of a value's class: get_this() and the like, which may change other arguments

    void put(char c) { signature.key.push_back(c); }
    void put32(uint32_t v) { signature.key.append(reinterpret_cast<const char*>(&v), 4); }
    Leaf& add_leaf(ValueKind kind, PyObject* value)
    {
        Leaf& leaf = signature.add_leaf();
        leaf.kind = kind;
        leaf.object = value;
        return leaf;
    }
    int64_t last_leaf() const { return int64_t(signature.leaf_count) - 1; }
    /// Keeps an object for the time of the call; passes on the exception of the Python code that gave none.
    PyObject* hold(nb::object object);

    /// What `ask` gives, or gave when the same arguments were walked before.
    template <typename Ask>
    nb::object answer(Ask&& ask)
    {
        std::vector<nb::object>& answers = signature.answers;
        const size_t index = answers.size();
        ran_code = true;
        answers.push_back(walked && index < walked->answers.size() ? walked->answers[index] : ask());
        return answers[index];
    }

    /// What a walk gives for a value of one leaf, or as a whole.
    nb::object described(PyObject* value, ValueKind kind, nb::dict details, int64_t leaf, nb::list fields = {}) const;
    nb::object plain(PyObject* value) const { return strips ? nb::borrow(value) : nb::object(); }
    /// What it gives for a value that another one stood for.
    nb::object instead(PyObject* value, nb::object result) const
    {
        return strips ? nb::borrow(value) : std::move(result);
    }

    /// Raises slangpy.BoundVariableException with function, argument and field path.
    template <typename... Args>
    [[noreturn]] void fail_bound(const Args&... args) const
    {
        throw_bound(cat(args...));
    }
    std::string label() const; ///< "function: ", for messages
    std::string place() const; ///< argument and fields, for messages
    /// The same with the name of its parameter, where the argument was passed by position.
    std::string named_place() const;

private:
    [[noreturn]] void throw_bound(const std::string& text) const;
};

/// Notes an argument or field, which is walked while this lives.
class PartScope {
public:
    explicit PartScope(Walk& walk) : m_walk(walk.parts && !walk.in_packed ? &walk : nullptr)
    {
        if (m_walk) [[unlikely]]
            begin();
    }
    ~PartScope()
    {
        if (m_walk) [[unlikely]]
            end();
    }
    PartScope(const PartScope&) = delete;
    PartScope& operator=(const PartScope&) = delete;

private:
    void begin();
    void end();

    Walk* m_walk;
    size_t m_index = 0;
};

/// One argument of the call; only here a packed value may stand.
nb::object walk_argument(Walk& w, PyObject* value);
nb::object walk_value(Walk& w, PyObject* value);

// --- single values (numbers.cpp)
nb::object walk_simple(Walk& w, PyObject* value, ValueKind kind, char code);
nb::object walk_unsupported(Walk& w, PyObject* value, const char* reason);
nb::object walk_number(Walk& w, PyObject* value, ValueKind kind, ScalarType scalar, char code);
nb::object walk_integer(Walk& w, PyObject* value);
nb::object walk_numpy_scalar(Walk& w, PyObject* value);
nb::object walk_math(Walk& w, PyObject* value, const MathTypeInfo& info);
nb::object walk_range(Walk& w, PyObject* value);
nb::object walk_generator(Walk& w, PyObject* value, Generator* generator);

// --- containers in memory (arrays.cpp, torch.cpp)
nb::object walk_numpy(Walk& w, PyObject* value);
nb::object walk_masked(Walk& w, PyObject* value);
nb::object walk_foreign(Walk& w, PyObject* value);
nb::object walk_tensor(Walk& w, PyObject* value);
nb::object walk_buffer(Walk& w, PyObject* value);
nb::object walk_texture(Walk& w, PyObject* value, const TextureValue& texture, ValueKind kind);
nb::object walk_torch(Walk& w, PyObject* value);
nb::object walk_torch_slot(Walk& w, PyObject* value);
nb::object walk_torch_pair(Walk& w, PyObject* value);

// --- dicts and lists (lists.cpp), objects that stand for a value (objects.cpp)
nb::object walk_dict(Walk& w, PyObject* value);
/// The fields of an instance of a dataclass by name.
nb::object fields_of(PyObject* value);
nb::object walk_sequence(Walk& w, PyObject* value);
/// A list of dicts with equal fields as one dict of lists (nested lists of dicts too); null where elements are no
/// dicts. Objects with get_this must have been replaced (`plain_items`).
nb::object merge_items(Walk& w, PyObject* items);
/// The name of a Slang type that a dict says it is.
std::string type_text(const Walk& w, PyObject* item);
nb::object walk_value_ref(Walk& w, PyObject* value);
nb::object walk_diff_pair(Walk& w, PyObject* value);
/// Asks an object once per call, and notes it for update_this.
nb::object ask_this(Walk& w, PyObject* value);
nb::object walk_get_this(Walk& w, PyObject* value);
nb::object walk_custom(Walk& w, PyObject* value, const ClassEntry& entry);

/// 'i', 'l' or 'u': whether an int needs 32, 64 or unsigned 64 bits; 'o' when none will do.
char int_class(PyObject* value);
/// The type of a NumPy scalar; none when it is not one of ours.
ScalarType numpy_scalar_type(PyObject* value);
/// The text of a str; lone surrogates, which UTF-8 cannot hold, as escapes.
std::string text_of(PyObject* text);

} // namespace spy
