#include "call/signature.h"
#include "call/classes.h"
#include "call/texture.h"
#include "call/torch.h"

#include "device/resource.h"

#include <cstring>
#include <unordered_map>

namespace spy {

void Signature::clear()
{
    key.clear();
    for (Leaf& leaf : used())
        leaf.items.clear();
    leaf_count = 0;
    keep.clear();
    updates.clear();
    answers.clear();
    reserved = {};
    has_torch = has_torch_pairs = needs_autograd = false;
    for (size_t i = 0; i < grad_count; ++i)
        grads[i]->dtype = nb::object();
    grad_count = 0;
    grad_mode = -1;
}

Leaf& Signature::add_leaf()
{
    if (leaf_count == leaves.size())
        leaves.emplace_back();
    Leaf& leaf = leaves[leaf_count++];
    leaf.kind = ValueKind::none;
    leaf.scalar = ScalarType::none;
    leaf.flags = leaf.rows = leaf.cols = 0;
    leaf.object = nullptr;
    leaf.address = 0;
    leaf.shape = leaf.strides = Shape();
    leaf.tensor = nullptr;
    leaf.items.clear(); // of a leaf that was taken back
    leaf.grads = {};
    leaf.device_type = leaf.device_index = 0;
    leaf.packed = nullptr;
    return leaf;
}

TensorBase& Signature::add_grad()
{
    if (grad_count == grads.size())
        grads.push_back(std::make_unique<TensorBase>());
    return *grads[grad_count++];
}

namespace {

nb::tuple to_tuple(const Shape& shape)
{
    nb::list list;
    for (int64_t dim : shape)
        list.append(dim);
    return nb::tuple(list);
}

/// 'i', 'l' or 'u': whether an int needs 32, 64 or unsigned 64 bits; 'o' when none will do.
char int_class(PyObject* value)
{
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0 && !(number == -1 && PyErr_Occurred()))
        return number >= INT32_MIN && number <= INT32_MAX ? 'i' : 'l';
    PyErr_Clear();
    if (overflow > 0) {
        PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred())
            return 'u';
        PyErr_Clear();
    }
    return 'o';
}

/// The text of a str; lone surrogates, which UTF-8 cannot hold, as escapes.
std::string text_of(PyObject* text)
{
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text, &size))
        return {bytes, size_t(size)};
    PyErr_Clear();
    nb::object encoded = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
    if (!encoded.is_valid())
        throw nb::python_error();
    return {PyBytes_AS_STRING(encoded.ptr()), size_t(PyBytes_GET_SIZE(encoded.ptr()))};
}

ScalarType numpy_scalar_type(PyObject* value)
{
    nb::object dtype = nb::getattr(nb::handle(value), "dtype");
    std::string name = nb::cast<std::string>(dtype.attr("name"));
    for (const ScalarInfo& info : scalar_table)
        if (info.size && info.numpy_name == name && info.type != ScalarType::bfloat16)
            return info.type;
    return ScalarType::none;
}

/// Visits values once; with `describing` it also builds the planner's description (never on the warm path).
class Walker {
public:
    Walker(Signature& signature, bool describing, const Signature* walked = nullptr)
        : m(signature), m_walked(walked), m_describing(describing)
    {
    }

    nb::object visit(PyObject* value)
    {
        const ClassEntry& entry = class_of(value);
        try {
            return visit_as(value, entry);
        } catch (const std::bad_cast&) { // an instance of a native class whose __init__ never ran
            fail_bound("this ", Py_TYPE(value)->tp_name, " was never initialised (a subclass without super().__init__()?)");
        }
    }

    nb::object visit_as(PyObject* value, const ClassEntry& entry)
    {
        switch (entry.value_class) {
        case ValueClass::none: return simple(value, ValueKind::none, 'z');
        case ValueClass::boolean: return number(value, ValueKind::boolean, ScalarType::bool_, 'b');
        case ValueClass::integer: return integer(value);
        case ValueClass::floating: return number(value, ValueKind::floating, ScalarType::float32, 'f');
        case ValueClass::numpy_scalar: return numpy_scalar(value);
        case ValueClass::math: return math(value, *entry.math);
        case ValueClass::sequence: return sequence(value);
        case ValueClass::dict: return dict(value);
        case ValueClass::numpy: return numpy(value);
        case ValueClass::tensor: return tensor(value);
        case ValueClass::range: return range(value);
        case ValueClass::generator: return generator(value, nb::cast<Generator*>(nb::handle(value)));
        case ValueClass::value_ref: return value_ref(value);
        case ValueClass::diff_pair: return diff_pair(value);
        case ValueClass::buffer: return buffer(value);
        case ValueClass::texture:
            return texture(value, texture_value(*nb::cast<Texture*>(nb::handle(value))), ValueKind::texture);
        case ValueClass::texture_view:
            return texture(value, texture_value(*nb::cast<TextureView*>(nb::handle(value))), ValueKind::texture_view);
        case ValueClass::sampler: return simple(value, ValueKind::sampler, 'S');
        case ValueClass::enumeration: return visit(hold(nb::handle(value).attr("value")));
        case ValueClass::get_this: return get_this(value);
        case ValueClass::foreign_array: return foreign(value);
        case ValueClass::custom: return custom(value, entry);
        case ValueClass::torch: return torch(value);
        case ValueClass::torch_pair: return torch_pair(value);
        case ValueClass::torch_slot: return torch_slot();
        case ValueClass::packed: fail_bound("a PackedArg must be a top level argument; pack the value as a whole");
        default: return unsupported(value, "");
        }
    }

    /// One argument of the call; only here a packed value may stand.
    nb::object argument(PyObject* value)
    {
        return class_of(value).value_class == ValueClass::packed ? packed(value) : visit(value);
    }

    /// Raises slangpy.BoundVariableException with function, argument and field path.
    template <typename... Args>
    [[noreturn]] void fail_bound(const Args&... args) const
    {
        std::string label;
        if (m_node)
            label = nb::cast<std::string>(nb::str(nb::getattr(nb::handle(m_node), "label", nb::str("")))) + ": ";
        std::string where = "argument " + m_argument;
        for (std::string_view field : m_path)
            where += cat(".", field);
        nb::object kind = nb::module_::import_("slangpy.errors").attr("BoundVariableException");
        PyErr_SetString(kind.ptr(), cat(label, where, ": ", args...).c_str());
        throw nb::python_error();
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

    nb::object packed(PyObject* value)
    {
        auto* pack = nb::cast<PackedArg*>(nb::handle(value));
        put('K');
        if (pack->walked && !m_describing) {
            m.key.append(pack->key);
            m.answers.insert(m.answers.end(), pack->answers.begin(), pack->answers.end());
            for (const Leaf& leaf : pack->leaves)
                m.add_leaf() = leaf;
            return {};
        }
        size_t key = m.key.size(), leaves = m.leaf_count, keep = m.keep.size(), answers = m.answers.size();
        m_packed = true;
        nb::object result = visit(pack->value.ptr());
        m_packed = false;
        bool fixed = !m_describing;
        for (size_t i = leaves; i < m.leaf_count; ++i) {
            ValueKind kind = m.leaves[i].kind;
            fixed &= kind != ValueKind::torch && kind != ValueKind::custom && kind != ValueKind::unsupported;
            m.leaves[i].packed = pack;
            m.leaves[i].packed_index = uint32_t(i - leaves);
        }
        if (m_describing)
            result[2]["packed"] = true;
        if (fixed) {
            pack->key = m.key.substr(key);
            pack->leaves.assign(m.leaves.begin() + ptrdiff_t(leaves), m.leaves.begin() + ptrdiff_t(m.leaf_count));
            pack->keep.assign(m.keep.begin() + ptrdiff_t(keep), m.keep.end());
            pack->answers.assign(m.answers.begin() + ptrdiff_t(answers), m.answers.end());
            pack->walked = true;
        }
        return result;
    }

    /// What `ask` gives, or gave when the same arguments were walked before.
    template <typename Ask>
    nb::object answer(Ask&& ask)
    {
        size_t index = m.answers.size();
        m.answers.push_back(m_walked && index < m_walked->answers.size() ? m_walked->answers[index] : ask());
        return m.answers[index];
    }

    /// Keeps an object for the time of the call; passes on the exception of the Python code that gave none.
    PyObject* hold(nb::object object)
    {
        if (!object.is_valid())
            throw nb::python_error();
        m.keep.push_back(std::move(object));
        return m.keep.back().ptr();
    }

    void put(char c) { m.key.push_back(c); }
    void put32(uint32_t v) { m.key.append(reinterpret_cast<const char*>(&v), 4); }

    nb::object description(PyObject* value, ValueKind kind, nb::dict details, int64_t leaf, nb::list fields = {})
    {
        return nb::make_tuple(to_string(kind), Py_TYPE(value)->tp_name, details, leaf, fields);
    }

    int64_t last_leaf() const { return int64_t(m.leaf_count) - 1; }

    nb::object simple(PyObject* value, ValueKind kind, char code)
    {
        put(code);
        Leaf& leaf = m.add_leaf();
        leaf.kind = kind;
        leaf.object = value;
        return m_describing ? description(value, kind, nb::dict(), last_leaf()) : nb::object();
    }

    nb::object number(PyObject* value, ValueKind kind, ScalarType scalar, char code)
    {
        put(code);
        Leaf& leaf = m.add_leaf();
        leaf.kind = kind;
        leaf.scalar = scalar;
        leaf.object = value;
        if (!m_describing)
            return {};
        nb::dict details;
        details["scalar"] = std::string(scalar_info(scalar).slang_name);
        return description(value, kind, details, last_leaf());
    }

    nb::object integer(PyObject* value)
    {
        char code = int_class(value);
        ScalarType scalar = code == 'i' ? ScalarType::int32 : code == 'l' ? ScalarType::int64 : ScalarType::uint64;
        return number(value, ValueKind::integer, scalar, code);
    }

    nb::object numpy_scalar(PyObject* value)
    {
        ScalarType scalar = numpy_scalar_type(value);
        if (scalar == ScalarType::none)
            return unsupported(value, "");
        if (scalar == ScalarType::float64)
            return number(value, ValueKind::floating, ScalarType::float32, 'f');
        if (scalar == ScalarType::int64)
            return integer(hold(nb::steal(PyNumber_Long(value))));
        put('s');
        return number(value, ValueKind::scalar, scalar, char(scalar));
    }

    nb::object math(PyObject* value, const MathTypeInfo& info)
    {
        ValueKind kind = info.is_matrix ? ValueKind::matrix : ValueKind::vector;
        if (info.is_scalar) { // float16_t
            put('s');
            return number(value, ValueKind::scalar, info.scalar, char(info.scalar));
        }
        put(info.is_matrix ? 'm' : 'v');
        put(char(info.scalar));
        put(char(info.rows * 16 + info.cols));
        Leaf& leaf = m.add_leaf();
        leaf.kind = kind;
        leaf.scalar = info.scalar;
        leaf.rows = info.is_matrix ? info.rows : 1;
        leaf.cols = info.cols;
        leaf.object = value;
        if (!m_describing)
            return {};
        nb::dict details;
        details["scalar"] = std::string(scalar_info(info.scalar).slang_name);
        details["rows"] = leaf.rows;
        details["cols"] = leaf.cols;
        return description(value, kind, details, last_leaf());
    }

    nb::object numpy(PyObject* value)
    {
        NumpyArray array;
        read_numpy(value, array);
        if (array.scalar == ScalarType::none)
            return unsupported(value, array.kind == 'V' ? "structured" : "dtype");
        if (array.swapped && array.scalar != ScalarType::none) {
            if (!array.writable || true) // a byte-swapped array is read through a native copy
                value = hold(nb::handle(value).attr("astype")(
                    nb::handle(value).attr("dtype").attr("newbyteorder")("=")));
            read_numpy(value, array);
            array.writable = false;
        }
        put('n');
        put(char(array.scalar));
        put(char(array.ndim));
        put(array.writable ? 'w' : 'r');
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::array;
        leaf.scalar = array.scalar;
        leaf.flags = array.writable ? value_flag::writable : 0;
        leaf.object = value;
        leaf.address = reinterpret_cast<uint64_t>(array.data);
        leaf.shape = Shape(std::span<const int64_t>(reinterpret_cast<const int64_t*>(array.sizes), size_t(array.ndim)));
        leaf.strides =
            Shape(std::span<const int64_t>(reinterpret_cast<const int64_t*>(array.strides), size_t(array.ndim)));
        if (!m_describing)
            return {};
        nb::dict details;
        details["scalar"] = std::string(scalar_info(array.scalar).slang_name);
        details["shape"] = to_tuple(leaf.shape);
        details["writable"] = array.writable;
        return description(value, ValueKind::array, details, last_leaf());
    }

    nb::object tensor(PyObject* value)
    {
        auto* tensor = nb::cast<TensorBase*>(nb::handle(value));
        uint8_t flags = tensor->writable && !m_packed ? value_flag::writable : 0;
        if (!tensor->grad_in.is_none()) flags |= value_flag::grad_in;
        if (!tensor->grad_out.is_none()) flags |= value_flag::grad_out;
        if (flags & value_flag::grad_in && tensor->grad_in.is(tensor->grad_out)) flags |= value_flag::shared_grad;
        put('t');
        put32(tensor->type_id);
        put(char(tensor->shape.size()));
        put(char(flags));
        if (flags & value_flag::grad_in) put32(nb::inst_ptr<TensorBase>(tensor->grad_in)->type_id);
        if (flags & value_flag::grad_out) put32(nb::inst_ptr<TensorBase>(tensor->grad_out)->type_id);
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::tensor;
        leaf.scalar = tensor->layout->scalar;
        leaf.flags = flags;
        leaf.object = value;
        leaf.tensor = tensor;
        leaf.address = tensor->address();
        leaf.shape = tensor->shape;
        leaf.strides = tensor->strides;
        if (!m_describing)
            return {};
        nb::dict details;
        details["dtype"] = tensor->dtype;
        details["type_name"] = tensor->layout->full_name;
        details["shape"] = to_tuple(tensor->shape);
        details["writable"] = tensor->writable && !m_packed;
        details["grad_in"] = bool(flags & value_flag::grad_in);
        details["grad_out"] = bool(flags & value_flag::grad_out);
        details["shared_grad"] = bool(flags & value_flag::shared_grad);
        if (flags & value_flag::grad_in)
            details["grad_in_type"] = nb::cast<TensorBase*>(tensor->grad_in)->layout->full_name;
        if (flags & value_flag::grad_out)
            details["grad_out_type"] = nb::cast<TensorBase*>(tensor->grad_out)->layout->full_name;
        return description(value, ValueKind::tensor, details, last_leaf());
    }

    nb::object torch(PyObject* value)
    {
        TorchTensor tensor;
        describe_torch(value, tensor);
        uint8_t flags = m_packed ? 0 : value_flag::writable;
        if (m_packed && !m_slots.empty()) // autograd counts it, but keeps the packed value
            m_slots = m_slots.subspan(1);
        refuse_tangent(value);
        m.has_torch = true;
        if (is_storage_float(tensor.scalar) && converts_elements()) {
            // widened before the call: kernels have no arithmetic on these, and torch sends their gradients back
            value = hold(nb::handle(value).attr("float")());
            describe_torch(value, tensor);
            flags = 0; // writing to it would be lost
        }
        if (scalar_info(tensor.scalar).is_float && torch_is_negated(value)) {
            value = hold(nb::handle(value).attr("resolve_neg")());
            describe_torch(value, tensor);
            flags = 0; // writing to it would be lost
        }
        if (torch_requires_grad(value)) {
            if (m.grad_mode < 0)
                m.grad_mode = torch_grad_enabled();
            if (m.grad_mode)
                flags |= value_flag::needs_grad;
        }
        m.needs_autograd |= (flags & value_flag::needs_grad) != 0;
        return torch_leaf(value, tensor, flags, nullptr, nullptr);
    }

    static bool is_storage_float(ScalarType scalar)
    {
        return scalar == ScalarType::bfloat16 || scalar == ScalarType::float8_e4m3 || scalar == ScalarType::float8_e5m2;
    }

    /// Whether the called function has `convert` set.
    bool converts_elements() const
    {
        if (!m_node)
            return false;
        nb::object mode = nb::getattr(nb::getattr(nb::handle(m_node), "options", nb::none()), "convert", nb::none());
        return mode.is_valid() && !mode.is_none() && std::strcmp(nb::str(mode).c_str(), "none") != 0;
    }

    /// Reads a tensor; messages name the argument.
    void describe_torch(PyObject* value, TorchTensor& tensor) const
    {
        try {
            read_torch(value, tensor);
        } catch (const Error& error) {
            std::string label = m_node ? cat(nb::str(nb::getattr(nb::handle(m_node), "label", nb::str(""))).c_str(), ": ") : "";
            std::string where = m_argument;
            for (std::string_view field : m_path)
                where += cat(".", field);
            throw Error(error.kind(), cat(label, "argument ", where, ": ", error.what()));
        }
    }

    nb::object torch_slot()
    {
        if (m_slots.empty())
            fail_bound("a torch slot cannot be an argument");
        PyObject* value = m_slots.front();
        m_slots = m_slots.subspan(1);
        return visit(value);
    }

    nb::object torch_pair(PyObject* value)
    {
        auto* pair = nb::cast<TorchPair*>(nb::handle(value));
        m.has_torch = m.has_torch_pairs = true;
        nb::object primal = pair->primal.is_none() ? pair->seed.is_none() ? pair->grad : pair->seed : pair->primal;
        if (primal.is_none())
            fail_bound("a diff_pair without primal and grad cannot be an argument");
        TorchTensor tensor;
        describe_torch(hold(primal), tensor);
        uint8_t flags = value_flag::writable;
        if (pair->primal.is_none()) flags |= value_flag::no_primal;
        TensorBase* read = torch_gradient(pair->seed.is_none() ? pair->grad : pair->seed, tensor);
        TensorBase* added = torch_gradient(pair->grad, tensor);
        if (read) flags |= value_flag::grad_in;
        if (added) flags |= value_flag::grad_out;
        if (added && pair->fresh) flags |= value_flag::fresh;
        if (read && added && pair->seed.is_none()) flags |= value_flag::shared_grad;
        nb::object result = torch_leaf(primal.ptr(), tensor, flags, read, added);
        m.leaves[m.leaf_count - 1].grads = {read, added};
        return result;
    }

    TensorBase* torch_gradient(nb::object object, const TorchTensor& primal)
    {
        if (object.is_none())
            return nullptr;
        TorchTensor tensor;
        if (torch_is_negated(object.ptr()))
            object = object.attr("resolve_neg")(); // what is read; torch makes no negated tensor to write to
        describe_torch(hold(object), tensor);
        if (!(tensor.shape == primal.shape))
            fail_value("diff_pair: the gradient of argument ", m_argument, " has shape ", tensor.shape.str(),
                       ", its primal ", primal.shape.str());
        if (tensor.device_type != primal.device_type || tensor.device_index != primal.device_index)
            fail_value("diff_pair: the gradient of argument ", m_argument, " is on another device than its primal");
        TensorBase& grad = m.add_grad();
        grad.raw_address = tensor.address;
        grad.raw_item = scalar_info(tensor.scalar).size;
        grad.shape = tensor.shape;
        grad.strides = tensor.strides;
        grad.type_id = uint32_t(tensor.scalar);
        grad.dtype = object; // the tensor itself
        return &grad;
    }

    nb::object torch_leaf(PyObject* value, const TorchTensor& tensor, uint8_t flags, const TensorBase* grad_in,
                          const TensorBase* grad_out)
    {
        put('T');
        put(char(tensor.scalar));
        put(char(tensor.shape.size()));
        // whether a gradient is asked for is no part of the kernel: it is decided anew on each call
        put(char(flags & ~value_flag::needs_grad));
        for (const TensorBase* grad : {grad_in, grad_out})
            if (grad)
                put(char(grad->type_id));
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::torch;
        leaf.scalar = tensor.scalar;
        leaf.flags = flags;
        leaf.object = value;
        leaf.address = tensor.address;
        leaf.shape = tensor.shape;
        leaf.strides = tensor.strides;
        leaf.device_type = tensor.device_type;
        leaf.device_index = tensor.device_index;
        if (!m_describing)
            return {};
        nb::dict details;
        details["scalar"] = std::string(scalar_info(tensor.scalar).slang_name);
        details["shape"] = to_tuple(leaf.shape);
        details["writable"] = (flags & value_flag::writable) != 0;
        if (flags & value_flag::no_primal)
            details["no_primal"] = true;
        if (grad_in || grad_out) {
            details["grad_in"] = bool(flags & value_flag::grad_in);
            details["grad_out"] = bool(flags & value_flag::grad_out);
            details["shared_grad"] = bool(flags & value_flag::shared_grad);
            details["fresh"] = bool(flags & value_flag::fresh);
            if (grad_in)
                details["grad_in_type"] = std::string(scalar_info(ScalarType(grad_in->type_id)).slang_name);
            if (grad_out)
                details["grad_out_type"] = std::string(scalar_info(ScalarType(grad_out->type_id)).slang_name);
        }
        return description(value, ValueKind::torch, details, last_leaf());
    }

    nb::object dict(PyObject* value)
    {
        put('d');
        std::vector<std::pair<std::string_view, PyObject*>> fields;
        PyObject *key, *item;
        Py_ssize_t position = 0;
        while (PyDict_Next(value, &position, &key, &item)) {
            if (!PyUnicode_Check(key))
                return unsupported(value, "dict keys");
            Py_ssize_t size = 0;
            const char* text = PyUnicode_AsUTF8AndSize(key, &size);
            if (!text) { // a lone surrogate
                PyErr_Clear();
                return unsupported(value, "dict keys");
            }
            hold(nb::borrow(key)); // get_this of a field may change the dict
            fields.emplace_back(std::string_view(text, size_t(size)), hold(nb::borrow(item)));
        }
        std::sort(fields.begin(), fields.end(), [](auto& a, auto& b) { return a.first < b.first; });
        nb::list children;
        nb::dict details;
        int64_t own = add_aggregate(value, ValueKind::dict);
        if (++m_depth > 64)
            fail_bound("a dict nested more than 64 levels deep cannot be an argument");
        for (auto& [name, item] : fields) {
            put(char(name.size() & 0x7f));
            m.key.append(name);
            if (name == "_type") {
                std::string text = type_text(item);
                m.key.append(text);
                put('\0');
                if (m_describing)
                    details["_type"] = nb::borrow(item);
                continue;
            }
            m_path.push_back(name);
            nb::object child = visit(item);
            m_path.pop_back();
            if (m_describing)
                children.append(nb::make_tuple(std::string(name), child));
        }
        --m_depth;
        put('e');
        return m_describing ? description(value, ValueKind::dict, details, own, children) : nb::object();
    }

    /// A leaf for a dict or list of objects as a whole, in front of those of its parts: the planner takes one or the
    /// other.
    int64_t add_aggregate(PyObject* value, ValueKind kind)
    {
        Leaf& leaf = m.add_leaf();
        leaf.kind = kind;
        leaf.object = value;
        return last_leaf();
    }

    std::string type_text(PyObject* item) const
    {
        if (PyUnicode_Check(item))
            return text_of(item);
        nb::object name = nb::getattr(nb::handle(item), "full_name", nb::none());
        if (!PyUnicode_Check(name.ptr()))
            fail_bound("_type must be the name of a Slang type or a Struct, got ", Py_TYPE(item)->tp_name);
        return text_of(name.ptr());
    }

    /// Flattens nested sequences of scalars or math values into leaf.items; false when an element is something else.
    bool flatten(PyObject* value, size_t depth, Leaf& leaf, std::vector<int64_t>& sizes)
    {
        int64_t count = PySequence_Fast_GET_SIZE(value);
        if (depth == sizes.size())
            sizes.push_back(count);
        else if (sizes[depth] != count)
            fail_bound("nested lists must have equal lengths: found ", count, " elements where an earlier list at the ",
                       "same depth has ", sizes[depth]);
        if (depth >= 16)
            fail_bound("a list nested more than 16 levels deep cannot be an argument");
        for (int64_t i = 0; i < count; ++i) {
            if (i >= PySequence_Fast_GET_SIZE(value))
                fail_bound("a list changed its length while it was read");
            PyObject* item = PySequence_Fast_GET_ITEM(value, i);
            const ClassEntry& entry = class_of(item);
            if (entry.value_class == ValueClass::sequence) {
                if (!leaf.items.empty() && sizes.size() == depth + 1)
                    fail_bound("nested lists must have equal lengths: a list and a number at the same depth");
                if (!flatten(item, depth + 1, leaf, sizes))
                    return false;
                continue;
            }
            if (sizes.size() > depth + 1)
                fail_bound("nested lists must have equal lengths: a list and a number at the same depth");
            if (!take_item(item, entry, leaf))
                return false;
        }
        return true;
    }

    bool take_item(PyObject* item, const ClassEntry& entry, Leaf& leaf)
    {
        ScalarType scalar = ScalarType::none;
        uint8_t rows = 0, cols = 0;
        switch (entry.value_class) {
        case ValueClass::boolean: scalar = ScalarType::bool_; break;
        case ValueClass::integer: {
            char code = int_class(item);
            scalar = code == 'i' ? ScalarType::int32 : code == 'u' ? ScalarType::uint64 : ScalarType::int64;
            break;
        }
        case ValueClass::floating: scalar = ScalarType::float32; break;
        case ValueClass::numpy_scalar:
            scalar = numpy_scalar_type(item);
            if (scalar == ScalarType::none) return false;
            scalar = scalar_info(scalar).is_float ? ScalarType::float32
                     : scalar_info(scalar).size == 8 ? scalar : ScalarType::int32;
            break;
        case ValueClass::enumeration: {
            PyObject* inner = hold(nb::handle(item).attr("value"));
            return take_item(inner, class_of(inner), leaf);
        }
        case ValueClass::math:
            scalar = entry.math->scalar;
            rows = entry.math->is_matrix ? entry.math->rows : 1;
            cols = entry.math->cols;
            if (entry.math->is_scalar) { rows = cols = 0; scalar = ScalarType::float32; }
            break;
        default: return false;
        }
        if (leaf.items.empty()) {
            leaf.scalar = scalar;
            leaf.rows = rows;
            leaf.cols = cols;
        } else if (rows != leaf.rows || cols != leaf.cols || (cols && scalar != leaf.scalar)) {
            fail_bound("all elements of a list must be of one kind (numbers, or one vector or matrix class)");
        } else if (scalar == ScalarType::float32 || leaf.scalar == ScalarType::float32) {
            leaf.scalar = ScalarType::float32;
        } else if (scalar == ScalarType::uint64 || leaf.scalar == ScalarType::uint64) {
            leaf.scalar = ScalarType::uint64;
        } else if (scalar == ScalarType::int64 || leaf.scalar == ScalarType::int64) {
            leaf.scalar = ScalarType::int64;
        } else if (scalar != leaf.scalar) {
            leaf.scalar = ScalarType::int32;
        }
        leaf.items.push_back(nb::borrow(item));
        return true;
    }

    nb::object sequence(PyObject* value)
    {
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
            value = hold(nb::steal(PySequence_List(value)));
        size_t leaf_index = m.leaf_count;
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::list;
        leaf.object = value;
        std::vector<int64_t> sizes;
        if (!flatten(value, 0, leaf, sizes)) {
            m.leaf_count = leaf_index;
            leaf.items.clear();
            return sequence_of_objects(value);
        }
        leaf.shape = Shape(std::span<const int64_t>(sizes));
        put('l');
        put(leaf.items.empty() ? '0' : char(leaf.scalar));
        put(char(leaf.rows * 16 + leaf.cols));
        put(char(sizes.size()));
        if (!m_describing)
            return {};
        nb::dict details;
        details["shape"] = to_tuple(leaf.shape);
        if (!leaf.items.empty())
            details["scalar"] = std::string(scalar_info(leaf.scalar).slang_name);
        details["rows"] = leaf.rows;
        details["cols"] = leaf.cols;
        return description(value, ValueKind::list, details, last_leaf());
    }

    /// The elements of a list, each object with get_this replaced by what it stands for (nested lists too).
    nb::object plain_items(PyObject* value, int level = 0)
    {
        nb::list items;
        if (level >= 16)
            fail_bound("a list nested more than 16 levels deep cannot be an argument");
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
            nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(value, i));
            for (int depth = 0; class_of(item.ptr()).value_class == ValueClass::get_this; ++depth) {
                if (depth > 64)
                    fail_bound("get_this() nested more than 64 levels deep");
                item = ask_this(item.ptr());
            }
            if (PyList_CheckExact(item.ptr()) || PyTuple_CheckExact(item.ptr()))
                item = plain_items(item.ptr(), level + 1);
            items.append(item);
        }
        return items;
    }

    /// A list of dicts becomes one dict of lists; other lists of objects are arrays of resources.
    nb::object sequence_of_objects(PyObject* value)
    {
        static nb::object* transpose = nullptr;
        if (!transpose)
            transpose = new nb::object(nb::module_::import_("slangpy.call.lists").attr("merge_items"));
        nb::object items = plain_items(value);
        if (m_depth < 64) { // objects may stand for numbers
            size_t leaf_index = m.leaf_count;
            Leaf& leaf = m.add_leaf();
            leaf.kind = ValueKind::list;
            std::vector<int64_t> sizes;
            bool numbers = flatten(items.ptr(), 0, leaf, sizes);
            leaf.items.clear();
            m.leaf_count = leaf_index;
            if (numbers)
                return sequence(hold(items));
        }
        nb::object merged = answer([&] {
            try {
                return (*transpose)(items); // None when the elements are no dicts
            } catch (nb::python_error& error) {
                if (!error.matches(PyExc_ValueError))
                    throw;
                fail_bound(nb::cast<std::string>(nb::str(error.value())));
            }
        });
        PyObject* list = hold(items);
        int64_t own = add_aggregate(list, ValueKind::list);
        m.leaves[size_t(own)].shape.push_back(PyList_GET_SIZE(list));
        if (merged.is_none()) {
            put('r');
            put32(uint32_t(PyList_GET_SIZE(list)));
            nb::list children;
            for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
                nb::object child = visit(PyList_GET_ITEM(list, i));
                if (m_describing)
                    children.append(nb::make_tuple(cat("[", i, "]"), child));
            }
            put('e');
            if (!m_describing)
                return {};
            nb::dict details;
            details["items"] = true;
            details["length"] = PyList_GET_SIZE(list);
            return description(value, ValueKind::list, details, own, children);
        }
        put('L');
        nb::object inner = visit(hold(merged));
        if (m_describing) {
            inner[2]["list_length"] = PyList_GET_SIZE(list);
            int depth = 1;
            for (PyObject* at = list; PyList_GET_SIZE(at) && PyList_Check(PyList_GET_ITEM(at, 0)); ++depth)
                at = PyList_GET_ITEM(at, 0);
            inner[2]["list_depth"] = depth;
            inner[2]["list_leaf"] = own;
        }
        return inner;
    }

    nb::object range(PyObject* value)
    {
        nb::handle handle(value);
        auto generator = std::make_unique<Generator>();
        generator->kind = GeneratorKind::range;
        generator->dims = 1;
        const Py_ssize_t length = PyObject_Size(value);
        if (length < 0)
            PyErr_Clear();
        int64_t start = 0, step = 0;
        if (length < 0 || !nb::try_cast(handle.attr("start"), start) || !nb::try_cast(handle.attr("step"), step))
            throw Error(ErrorKind::overflow, cat("argument ", m_argument, ": a range with numbers beyond 64 bits"));
        generator->shape.push_back(length);
        generator->offset.push_back(start);
        generator->stride.push_back(step);
        PyObject* held = hold(nb::cast(generator.release(), nb::rv_policy::take_ownership));
        nb::object result = this->generator(held, nb::cast<Generator*>(nb::handle(held)));
        return result;
    }

    nb::object generator(PyObject* value, Generator* generator)
    {
        put('g');
        put(char(generator->kind));
        put(char(generator->kind == GeneratorKind::grid ? int64_t(generator->shape.size()) : generator->dims));
        put(char(generator->warmup > 0));
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::generator;
        leaf.object = value;
        if (generator->kind == GeneratorKind::grid || generator->kind == GeneratorKind::range)
            leaf.shape = generator->shape;
        if (!m_describing)
            return {};
        static const char* const names[] = {"range", "grid", "call_id", "thread_id", "wang_hash", "rand_float"};
        nb::dict details;
        details["generator"] = names[size_t(generator->kind)];
        details["dims"] = generator->dims;
        details["shape"] = to_tuple(leaf.shape);
        return description(value, ValueKind::generator, details, last_leaf());
    }

    /// The value held by a reference decides the key, but makes no leaves.
    nb::object held_value(PyObject* value)
    {
        size_t leaves = m.leaf_count;
        if (++m_depth > 64)
            fail_bound("references nested more than 64 levels deep cannot be an argument");
        nb::object inner = visit(hold(nb::borrow(value))); // a write to the reference must not free it
        --m_depth;
        m.leaf_count = leaves;
        return inner;
    }

    nb::object value_ref(PyObject* value)
    {
        put('R');
        nb::object inner = held_value(nb::cast<ValueRef*>(nb::handle(value))->value.ptr());
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::value_ref;
        leaf.object = value;
        nb::list fields;
        if (m_describing)
            fields.append(nb::make_tuple("value", inner));
        return m_describing ? description(value, ValueKind::value_ref, nb::dict(), last_leaf(), fields) : nb::object();
    }

    nb::object diff_pair(PyObject* value)
    {
        auto* pair = nb::cast<DiffPair*>(nb::handle(value));
        put('P');
        put(pair->needs_grad ? 'g' : 'c');
        nb::object inner = held_value(pair->primal.ptr());
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::diff_pair;
        leaf.object = value;
        leaf.flags = pair->needs_grad ? value_flag::needs_grad : 0;
        nb::dict details;
        nb::list fields;
        if (m_describing) {
            details["needs_grad"] = pair->needs_grad;
            fields.append(nb::make_tuple("value", inner));
        }
        return m_describing ? description(value, ValueKind::diff_pair, details, last_leaf(), fields) : nb::object();
    }

    nb::object buffer(PyObject* value)
    {
        auto* buffer = nb::cast<Buffer*>(nb::handle(value));
        const BufferUsage usage = buffer->desc().usage;
        bool writable = has_flag(usage, BufferUsage::unordered_access);
        bool readable = writable || has_flag(usage, BufferUsage::shader_resource);
        writable &= !m_packed;
        put('B');
        put(writable ? 'w' : readable ? 'r' : '-');
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::buffer;
        leaf.object = value;
        leaf.flags = writable ? value_flag::writable : 0;
        leaf.address = buffer->device_address();
        if (!m_describing)
            return {};
        nb::dict details;
        details["readable"] = readable;
        details["writable"] = writable;
        return description(value, ValueKind::buffer, details, last_leaf());
    }

    nb::object texture(PyObject* value, const TextureValue& texture, ValueKind kind)
    {
        const TextureDesc& desc = *texture.desc;
        const bool readable = has_flag(desc.usage, TextureUsage::shader_resource);
        const bool writable = has_flag(desc.usage, TextureUsage::unordered_access) && !m_packed;
        put('X');
        put(char(kind));
        put(char(desc.type));
        put32(uint32_t(texture.format));
        put(char(readable | writable << 1 | texture.single_layer << 2 | texture.stencil << 3));
        Leaf& leaf = m.add_leaf();
        leaf.kind = kind;
        leaf.object = value;
        leaf.flags = writable ? value_flag::writable : 0;
        leaf.shape = texture_shape(texture);
        if (!m_describing)
            return {};
        nb::dict details;
        details["texture_type"] = name_of(desc.type);
        details["format"] = std::string(format_name(texture.format));
        details["shape"] = to_tuple(leaf.shape);
        details["readable"] = readable;
        details["writable"] = writable;
        details["single_layer"] = texture.single_layer;
        details["stencil"] = texture.stencil;
        return description(value, kind, details, last_leaf());
    }

    /// Asks an object once per call, and notes it for update_this.
    nb::object ask_this(PyObject* value)
    {
        nb::object held = answer([&] { return nb::handle(value).attr("get_this")(); });
        if (held.ptr() == value)
            fail_bound("get_this() of ", Py_TYPE(value)->tp_name, " returned the object itself");
        if (!m_describing && nb::hasattr(nb::handle(value), "update_this"))
            m.updates.push_back({nb::borrow(value), held});
        return held;
    }

    nb::object get_this(PyObject* value)
    {
        nb::object held = ask_this(value);
        if (++m_depth > 64)
            fail_bound("get_this() nested more than 64 levels deep");
        nb::object result = visit(hold(std::move(held)));
        --m_depth;
        return result;
    }

    nb::object foreign(PyObject* value)
    {
        nb::object numpy_module = nb::module_::import_("numpy");
        nb::object array;
        nb::handle handle(value);
        try {
            if (nb::hasattr(handle, "__array_interface__") || PyObject_CheckBuffer(value))
                array = numpy_module.attr("asarray")(handle);
            else if (nb::hasattr(handle, "__dlpack__"))
                array = numpy_module.attr("from_dlpack")(handle);
            else
                return unsupported(value, "foreign");
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) && !error.matches(PyExc_BufferError)
                && !error.matches(PyExc_RuntimeError))
                throw;
            fail_bound("this ", Py_TYPE(value)->tp_name, " cannot be read as an array: ", nb::str(error.value()).c_str());
        }
        return numpy(hold(std::move(array)));
    }

    nb::object custom(PyObject* value, const ClassEntry& entry)
    {
        put('c');
        nb::handle handle(value);
        nb::object text = nb::getattr(handle, "slangpy_signature", nb::none());
        if (!entry.signature.is_none())
            text = entry.signature(handle);
        // classes of one name differ, and so does a class whose factory was replaced
        PyTypeObject* type = Py_TYPE(value);
        m.key.append(reinterpret_cast<const char*>(&type), sizeof(type));
        m.key.append(reinterpret_cast<const char*>(&entry.registration), sizeof(entry.registration));
        if (!text.is_none())
            m.key.append(nb::cast<std::string>(nb::str(text)));
        put('\0');
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::custom;
        leaf.object = value;
        nb::dict details;
        details["object"] = nb::borrow(value);
        return m_describing ? description(value, ValueKind::custom, details, last_leaf()) : nb::object();
    }

    nb::object unsupported(PyObject* value, const char* reason)
    {
        put('U');
        m.key.append(Py_TYPE(value)->tp_name);
        m.key.append(reason);
        put('\0');
        Leaf& leaf = m.add_leaf();
        leaf.kind = ValueKind::unsupported;
        leaf.object = value;
        if (!m_describing)
            return {};
        nb::dict details;
        details["reason"] = reason;
        if (is_numpy_array(value))
            details["dtype"] = nb::str(nb::handle(value).attr("dtype"));
        return description(value, ValueKind::unsupported, details, last_leaf());
    }
};

bool take_reserved(ReservedArguments& reserved, std::string_view name, PyObject* value)
{
    if (name == "_append_to") {
        reserved.append_to = value == Py_None ? nullptr : value;
        return true;
    }
    if (name == "_thread_count") {
        reserved.thread_count = value == Py_None ? nullptr : value;
        return true;
    }
    if (name == "_result" && (value == Py_None || PyUnicode_Check(value) || PyType_Check(value))) {
        reserved.result_type = value == Py_None ? nullptr : value;
        return true;
    }
    return false;
}

template <typename Named>
void visit_all(Signature& signature, Walker& walker, const CallArguments& arguments, Named&& each)
{
    walker.m_node = arguments.node;
    walker.m_slots = arguments.slots;
    if (arguments.self) {
        signature.key.push_back('.');
        walker.m_argument = "this";
        each(nullptr, walker.argument(arguments.self));
    }
    char position = '0';
    for (PyObject* value : arguments.positional) {
        signature.key.push_back(',');
        walker.m_argument.assign(1, position);
        position = position < '9' ? char(position + 1) : '9';
        each(nullptr, walker.argument(value));
    }
    if (!arguments.keywords)
        return;
    PyObject *key, *value;
    Py_ssize_t next = 0;
    while (PyDict_Next(arguments.keywords, &next, &key, &value)) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(key, &size);
        if (!text) { // a lone surrogate
            PyErr_Clear();
            walker.m_argument = "with a name that is no Unicode text";
            walker.fail_bound("no parameter can have this name");
        }
        std::string_view name(text, size_t(size));
        if (name.starts_with('_') && take_reserved(signature.reserved, name, value))
            continue;
        signature.key.push_back('=');
        walker.m_argument.assign(name);
        signature.key.append(name);
        signature.key.push_back('\0');
        each(text, walker.argument(value));
    }
    if (PyObject* type = signature.reserved.result_type) {
        signature.key.push_back('>');
        if (PyUnicode_Check(type))
            signature.key.append(text_of(type));
        else
            signature.key.append(reinterpret_cast<const char*>(&type), sizeof(type)); // classes of one name differ
    }
}

} // namespace

void walk(Signature& signature, const CallArguments& arguments)
{
    Walker walker(signature, false);
    visit_all(signature, walker, arguments, [](const char*, nb::object) {});
}

nb::list describe(const CallArguments& arguments, const Signature* walked)
{
    Signature signature;
    Walker walker(signature, true, walked);
    nb::list result;
    visit_all(signature, walker, arguments, [&](const char* name, nb::object value) {
        result.append(nb::make_tuple(name ? nb::object(nb::str(name)) : nb::none(), value));
    });
    if (walked && !walked->key.starts_with(signature.key))
        fail_value("the arguments changed while they were read (by get_this() or another thread); pass copies");
    return result;
}

void append_sizes(Signature& signature, bool containers)
{
    for (Leaf& leaf : signature.used())
        if (leaf.kind == ValueKind::list
            || (containers && (leaf.kind == ValueKind::array || leaf.kind == ValueKind::tensor || leaf.kind == ValueKind::torch)))
            for (int64_t size : leaf.shape)
                signature.key.append(reinterpret_cast<const char*>(&size), sizeof size);
}

} // namespace spy
