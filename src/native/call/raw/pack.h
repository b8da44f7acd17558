#pragma once
// Arguments of kernels that are launched by hand (slangpy.loadModule) as the bytes of their parameters.
// Python's Packing knows every form and every message; here are its plain cases, and "no" for all others.
#include "values/torch.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace spy {

enum class PackKind : uint8_t { nothing, number, array, structure, view, pair };

/// A type of a parameter.
struct PackType {
    PackKind kind = PackKind::nothing;
    ScalarType scalar = ScalarType::none; ///< numbers; views: of an element
    uint32_t offset = 0;                  ///< in what holds it
    uint32_t size = 0;
    uint32_t count = 0;            ///< elements of arrays, vectors and matrices
    uint32_t align = 1;            ///< views: what the element is aligned to
    std::vector<uint32_t> inner;   ///< views: dimensions that are the element's own
    std::vector<PackType> parts;   ///< fields; an array's element; a pair's primal and gradient
    std::vector<nb::object> names; ///< of fields
};

struct PackParameter {
    PackType type;
    nb::object name, python_name; ///< interned
    nb::object usual;             ///< what stands for a missing argument; null: there is none
};

struct TensorPlace {
    int32_t type = 0, index = 0; ///< as in DLPack; 0: no tensor yet
    bool operator==(const TensorPlace&) const = default;
};

/// A list whose first `N` items need no memory of their own: calls are short, and an allocation costs a tenth of one.
template <typename T, size_t N>
class ShortList {
public:
    size_t size() const { return m_size; }
    T* data() { return m_size > N ? m_many.data() : m_few.data(); }
    const T* data() const { return m_size > N ? m_many.data() : m_few.data(); }
    T* begin() { return data(); }
    T* end() { return data() + m_size; }
    const T* begin() const { return data(); }
    const T* end() const { return data() + m_size; }
    /// As many new items, in place of all there were.
    void reset(size_t size)
    {
        m_many.clear();
        if (size > N)
            m_many.resize(size);
        std::fill_n(m_few.begin(), std::min(std::max(size, m_size), N), T());
        m_size = size;
    }
    void push_back(T item)
    {
        if (m_size == N)
            m_many.assign(std::make_move_iterator(m_few.begin()), std::make_move_iterator(m_few.end()));
        if (m_size >= N)
            m_many.push_back(std::move(item));
        else
            m_few[m_size] = std::move(item);
        ++m_size;
    }

private:
    std::array<T, N> m_few;
    std::vector<T> m_many; ///< all items, once there are more than N
    size_t m_size = 0;
};

/// Where a tensor was that a call was given.
struct PackedView {
    TorchPlace place;
    size_t parameter = 0;
};

/// The bytes of one call.
struct Packed {
    ShortList<uint8_t, 320> bytes;
    ShortList<nb::object, 4> keep;  ///< what the bytes point into
    ShortList<PackedView, 4> views; ///< of what is kept, in that order
    std::vector<std::string> names; ///< of what is kept; empty where its parameters name it
    TensorPlace place;
    bool has_torch = false; ///< the first that is kept is a torch tensor
};

/// Arguments as vector calls give them: `count` by position, then one for each of `names` (a tuple, or null).
struct GivenArguments {
    PyObject* const* values;
    size_t count;
    PyObject* names;
};

/// Where a tensor of 16 bytes lies that calls without gradients point at; 0: Python must say.
using Spare = uint64_t (*)(void* self, TensorPlace place);

struct Packing {
    std::span<const PackParameter> parameters;
    uint32_t header = 0, size = 0; ///< bytes in front of the parameters, and of them
    bool is_derivative = false;
    void* self = nullptr; ///< for `spare`
    Spare spare = nullptr;
};

/// False where an argument is none of the plain cases: Python then converts all of them, or says what is wrong.
bool pack_arguments(const Packing& packing, const GivenArguments& given, Packed& out);

} // namespace spy
