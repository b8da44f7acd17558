// Whether two elements may be one: indices and paths compared.
#include "slang/syntax/uses.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace spy::syntax {

namespace {

/// An index as an expression and a number that is added to it.
struct Sum {
    std::string text;
    long number = 0;
};

Sum sum_of(const Tree& tree, NodeId n)
{
    n = unwrapped(tree, n);
    const auto number = [&](NodeId literal) {
        return std::strtol(std::string(tree.main(literal)).c_str(), nullptr, 0);
    };
    if (tree.is(n, Kind::literal))
        return {{}, number(n)};
    if (tree.is(n, Kind::binary) && (tree.main(n) == "+" || tree.main(n) == "-")) {
        const NodeId left = tree.child(n, 0), right = tree.child(n, 1);
        if (tree.is(right, Kind::literal)) {
            Sum sum = sum_of(tree, left);
            sum.number += tree.main(n) == "+" ? number(right) : -number(right);
            return sum;
        }
    }
    return {tree.plain(n), 0};
}

bool is_swizzle(std::string_view name) { return name.size() <= 4 && name.find_first_not_of("xyzwrgba") == name.npos; }

Aliasing swizzles_alias(std::string_view a, std::string_view b)
{
    static constexpr std::string_view letters = "xyzwrgba";
    const auto mask = [&](std::string_view name) {
        unsigned bits = 0;
        for (const char c : name)
            bits |= 1u << (letters.find(c) % 4);
        return bits;
    };
    return mask(a) == mask(b) ? Aliasing::same : mask(a) & mask(b) ? Aliasing::possible : Aliasing::never;
}

} // namespace

Aliasing Uses::aliasing(NodeId index, NodeId other, NodeId loop) const
{
    const Sum one = sum_of(m_scopes->tree(), index), two = sum_of(m_scopes->tree(), other);
    if (one.text != two.text || !is_stable(index, loop) || !is_stable(other, loop))
        return Aliasing::possible;
    return one.number == two.number ? Aliasing::same : Aliasing::never;
}

Aliasing Uses::aliasing(const Path& path, const Path& other, NodeId loop) const
{
    const Tree& tree = m_scopes->tree();
    Aliasing result = path.steps.size() == other.steps.size() ? Aliasing::same : Aliasing::possible;
    for (size_t i = 0; i < std::min(path.steps.size(), other.steps.size()); ++i) {
        const NodeId a = path.steps[i], b = other.steps[i];
        Aliasing step = Aliasing::possible;
        if (tree.is(a, Kind::member) && tree.is(b, Kind::member)) {
            const std::string_view name = tree.main(a), second = tree.main(b);
            const bool may_be = is_swizzle(name) && is_swizzle(second);
            step = name == second ? Aliasing::same : may_be ? swizzles_alias(name, second) : Aliasing::never;
        } else if (tree.is(a, Kind::index) && tree.is(b, Kind::index) && tree.count(a) == 2 && tree.count(b) == 2) {
            step = aliasing(tree.child(a, 1), tree.child(b, 1), loop);
        } else {
            return Aliasing::possible;
        }
        if (step == Aliasing::never)
            return step;
        if (step == Aliasing::possible)
            result = step;
    }
    return result;
}

} // namespace spy::syntax
