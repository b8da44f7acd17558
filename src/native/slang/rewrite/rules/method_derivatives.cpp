// fwd_diff and bwd_diff of a method through an object.
//
// `fwd_diff(s.m)(x)` as `fwd_diff(g)(s, x)` of a function `g` that calls the method, where the object's type is a
// struct of the source that has no derivative, so that it is a constant, and one method of that name.
#include "slang/rewrite/rules/all.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/syntax/types.h"

#include <algorithm>
#include <optional>

namespace spy {
namespace {

using syntax::Kind, syntax::NodeId, syntax::Shape, syntax::none;

class MethodFinder {
public:
    explicit MethodFinder(const ParsedSource& source)
        : m_tree(source.tree()),
          m_scopes(source.scopes()),
          m_prefix(cat("_spy_method_", content_hash(source.text()), "_"))
    {
    }

    std::vector<Edit> find()
    {
        for (NodeId n = 0; n < m_tree.size(); ++n)
            if (m_tree.is(n, Kind::call) && m_tree.is(m_tree.child(n, 0), Kind::call))
                call_at(n);
        if (!m_edits.empty()) {
            const size_t end = m_tree.source().size();
            m_edits.push_back(
                {end, end, cat("\n#ifndef ", m_prefix, "\n#define ", m_prefix, "\n", m_functions, "#endif\n")});
        }
        return std::move(m_edits);
    }

private:
    /// `fwd_diff(object.method)(...)`.
    void call_at(NodeId n)
    {
        const NodeId inner = m_tree.child(n, 0), what = m_tree.child(inner, 0), member = m_tree.child(inner, 1);
        const NodeId outside = m_tree.function_of(n);
        if (!m_tree.is(what, Kind::name) || (m_tree.main(what) != "fwd_diff" && m_tree.main(what) != "bwd_diff") ||
            !m_tree.is(member, Kind::member) || m_tree.token(m_tree[member].main - 1) != "." || outside == none ||
            !m_tree.is_understood(outside))
            return;
        const NodeId object = m_tree.child(member, 0);
        const syntax::Function* method = method_of(object, m_tree.main(member));
        const std::optional<std::string> function = method ? function_for(*method) : std::nullopt;
        if (!function)
            return;
        m_edits.push_back({m_tree.begin(member), m_tree.end(member), *function});
        const size_t bracket = m_tree.tokens()[m_tree[inner].last].end; // after "("
        m_edits.push_back({bracket, bracket, cat(m_tree.text(object), m_tree.count(n) > 1 ? ", " : "")});
    }

    /// The method that a name means of an object that is a variable, or a field of one; null where that is not sure.
    const syntax::Function* method_of(NodeId object, std::string_view name) const
    {
        NodeId root = object;
        while (m_tree.is(root, Kind::member))
            root = m_tree.child(root, 0);
        const syntax::Variable* variable = m_tree.is(root, Kind::name) ? m_scopes.find(root) : nullptr;
        if (variable == nullptr || variable->is_doubtful || m_tree.macro(m_tree.main(root)) != nullptr)
            return nullptr;
        const syntax::Type type = type_of(m_scopes, *variable, path_to(root, object));
        if (!is_of_file(type) || type.shape != Shape::structure || type.is_differentiable ||
            m_scopes.types(type.name).size() != 1)
            return nullptr; // an extension may add a derivative, or a method
        const syntax::Function* found = nullptr;
        for (const syntax::Function& function : m_scopes.functions())
            if (function.name == name && function.owner == type.node) {
                if (found != nullptr)
                    return nullptr;
                found = &function;
            }
        const bool is_plain = found != nullptr && found->may_be_differentiable && !found->is_static &&
            !found->is_mutating && !m_tree.has(m_tree.child(found->node, 2));
        return is_plain ? found : nullptr;
    }

    syntax::Path path_to(NodeId root, NodeId object) const
    {
        syntax::Path path{root, {}, object};
        for (NodeId n = object; n != root; n = m_tree.child(n, 0))
            path.steps.insert(path.steps.begin(), n);
        return path;
    }

    /// A struct without generics right in the file.
    bool is_of_file(const syntax::Type& type) const
    {
        return type.in == &m_scopes && type.node != none && m_tree.parent(type.node) == syntax::Tree::root &&
            !m_tree.has(m_tree.child(type.node, 1));
    }

    /// Whether a type means the same at the end of the file.
    bool is_known(NodeId written) const
    {
        const syntax::Type type = type_at(m_scopes, written);
        const bool is_basic = type.in == nullptr &&
            (type.shape == Shape::scalar || type.shape == Shape::vector || type.shape == Shape::matrix);
        return m_tree.plain(written) == "void" || is_basic || (type.shape == Shape::structure && is_of_file(type));
    }

    /// The name of a function that calls a method; nothing where its types may mean others elsewhere.
    std::optional<std::string> function_for(const syntax::Function& method)
    {
        const NodeId result = result_of(m_tree, method.node), parameters = parameters_of(m_tree, method.node);
        if (result == none || !is_known(result))
            return std::nullopt;
        std::string declared, given;
        for (const NodeId parameter : m_tree.children(parameters)) {
            const NodeId declarator = m_tree.child(parameter, 2), type = type_of(m_tree, declarator);
            if (type == none || !is_known(type) || m_tree.count(m_tree.child(declarator, 0)) > 0 ||
                m_tree.has(m_tree.child(declarator, 2)))
                return std::nullopt;
            declared += cat(", ", m_tree.text(parameter));
            given += cat(given.empty() ? "" : ", ", m_tree.main(declarator));
        }
        const std::string_view owner = m_tree.main(method.owner);
        std::string name = cat(m_prefix, owner, "_", method.name);
        if (m_functions.find(name + "(") == std::string::npos)
            m_functions += cat("[Differentiable] ", m_tree.text(result), " ", name, "(no_diff ", owner, " _spy_self",
                               declared, ") { ", m_tree.plain(result) == "void" ? "" : "return ", "_spy_self.",
                               method.name, "(", given, "); }\n");
        return name;
    }

    const syntax::Tree& m_tree;
    const syntax::Scopes& m_scopes;
    const std::string m_prefix;
    std::string m_functions;
    std::vector<Edit> m_edits;
};

} // namespace

std::vector<Edit> rewrite_method_derivatives(const ParsedSource& source) { return MethodFinder(source).find(); }

} // namespace spy
