#pragma once
// A source as a tree. Nodes stand in the order of the text, each in front of all that it holds, so that a node's
// inside is one range of numbers. Nothing is copied: the source has to live as long.
#include "slang/syntax/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace spy::syntax {

using NodeId = uint32_t;
constexpr uint32_t none = UINT32_MAX;

/// What a node is, with its children in order. [x] may be `absent`, x... are any number; each of the others is there,
/// so that child(n, 2) of a `for_` always is its condition. `main`: the token that names it.
enum class Kind : uint8_t {
    absent, ///< what could stand there and does not: no tokens
    opaque, ///< what was not understood, up to the next statement or declaration. No children

    // declarations
    file,       ///< declarations...
    modifiers,  ///< modifier, attribute, or the generics of `__generic<T>`...
    modifier,   ///< main: `static`, `no_diff`, `inout`, a macro that stands there
    attribute,  ///< `[MaxIters(8)]` main: the name; arguments...
    import_,    ///< `import a.b;`, `__include`, `module`, `implementing`. main: that word
    namespace_, ///< modifiers, members
    type,       ///< struct, class, interface, extension, enum, cbuffer: modifiers, [generics], [extended type], bases,
                ///< wheres, [members]. main: the name; of an extension the word
    members,    ///< declarations...
    enum_case,  ///< modifiers, [value]
    bases,      ///< types...
    generics,   ///< generic...
    generic,    ///< `T : I = X`, `let N : int`. main: the name; [bound or type], [default]
    wheres,     ///< where...
    where,      ///< `where T : A, B`: type, bounds...
    function,   ///< modifiers, [result], [generics], parameters, [result after "->"], wheres, [body]. main: the name,
                ///< the sign after `operator`, `__init`
    parameters, ///< parameter...
    parameter,  ///< modifiers, [type], declarator
    variables,  ///< a statement or declaration `float x = 1, y[2];`: modifiers, [type], declarator...
    declarator, ///< main: the name; dimensions, [type or semantic after ":"], [value]
    dimensions, ///< `[2][]`: [size]...
    property,   ///< modifiers, [type], [type after ":"], accessors
    subscript,  ///< modifiers, [generics], parameters, [result], wheres, accessors. main: `__subscript`
    accessors,  ///< accessor...
    accessor,   ///< modifiers, parameters, [body]. main: `get`, `set`, `ref`
    alias,      ///< typedef, typealias, associatedtype: modifiers, [generics], bases, [type], dimensions, wheres

    // statements
    block,      ///< statements...
    expression, ///< `e;`: e
    if_,        ///< modifiers, condition (an expression, or `variables` of `if (let x = e)`), statement, [else]
    for_,       ///< modifiers, [statement with its ";"], [condition], [step], statement
    while_,     ///< modifiers, condition, statement
    do_,        ///< modifiers, statement, condition
    switch_,    ///< also __target_switch and the like: modifiers, [value], block with cases and statements
    case_,      ///< `case 1:`, `default:`: [value]
    label,      ///< `outer: statement`. main: the name; statement
    return_,    ///< [value]
    break_,     ///< main: the label, or the word
    continue_,  ///< main: the word
    discard,    ///< no children
    defer,      ///< statement
    throw_,     ///< value

    // expressions; types are such ones, too
    name,          ///< main: it
    literal,       ///< main: it
    paren,         ///< expression
    list,          ///< `{a, b}`: expressions...
    call,          ///< callee, arguments...
    generic_use,   ///< `f<int, 4>`: the name, arguments...
    index,         ///< `a[i]`, `a[i, j]`: base, indices...; of a type, its size
    member,        ///< `a.b`, `a->b`, `A::b`. main: b; base
    prefix,        ///< main: `-`, `++`, `no_diff`, `new`, `each`; operand
    postfix,       ///< main: `++`; operand; of a type, its `*`
    binary,        ///< main: the sign, `is`, `as`, the comma; left, right
    assign,        ///< main: `=`, `+=`; left, right
    conditional,   ///< condition, then, else
    cast,          ///< `(T)e`: type, expression
    lambda,        ///< `(int x) => e`: parameters, expression or block
    function_type, ///< `functype(A, B) -> C`: types...
    code,          ///< `spirv_asm { ... }`: no children
};

struct Node {
    Kind kind;
    bool is_split;        ///< an `#if` begins, parts or ends inside of it, where that may be anything
    uint32_t size;        ///< of all that it holds, and itself
    NodeId parent;        ///< none: the file
    uint32_t first, last; ///< tokens [first, last)
    uint32_t main;        ///< the token that names it; `first` where the kind says nothing
};

/// A `#define`. What its invocation is, is seen where `is_plain`: a name, a number, something in brackets, a call.
/// Invocations of the others (of keywords, braces, assignments, `a + b`) are opaque.
struct Macro {
    std::string_view name, parameters, body;
    bool is_function, is_plain;
    bool is_doubtful = false;  ///< it is defined twice, with two bodies
    std::string brackets = {}; ///< that its body opens or closes for others
};

class Tree {
public:
    /// Numbers [first, last) of a node's children, or of all that it holds.
    template <bool is_child>
    class Range {
    public:
        struct Iterator {
            const Tree* tree;
            NodeId at;
            NodeId operator*() const { return at; }
            Iterator& operator++()
            {
                at += is_child ? tree->m_nodes[at].size : 1;
                return *this;
            }
            bool operator!=(const Iterator& other) const { return at != other.at; }
        };
        Range(const Tree& tree, NodeId first, NodeId last) : m_tree(&tree), m_first(first), m_last(last) { }
        Iterator begin() const { return {m_tree, m_first}; }
        Iterator end() const { return {m_tree, m_last}; }
        bool empty() const { return m_first == m_last; }

    private:
        const Tree* m_tree;
        NodeId m_first, m_last;
    };

    static constexpr NodeId root = 0;
    size_t size() const { return m_nodes.size(); }
    const Node& operator[](NodeId n) const { return m_nodes[n]; }
    Kind kind(NodeId n) const { return n < m_nodes.size() ? m_nodes[n].kind : Kind::absent; } ///< absent for `none`
    bool is(NodeId n, Kind kind) const { return this->kind(n) == kind; }
    bool has(NodeId n) const { return kind(n) != Kind::absent; }
    NodeId parent(NodeId n) const { return m_nodes[n].parent; }

    Range<true> children(NodeId n) const { return {*this, n + 1, n + m_nodes[n].size}; }
    Range<false> inside(NodeId n) const { return {*this, n + 1, n + m_nodes[n].size}; } ///< all below, in order
    NodeId child(NodeId n, size_t k) const; ///< `none` where it has fewer; the last ones of lists by number
    size_t count(NodeId n) const;           ///< of children
    size_t place(NodeId n) const;           ///< which child of its parent it is
    bool holds(NodeId outer, NodeId n) const { return n >= outer && n < outer + m_nodes[outer].size; } ///< or is it
    NodeId around(NodeId n, Kind kind) const; ///< the innermost of a kind that holds n, not n; `none` where none does
    NodeId statement_of(NodeId n) const;      ///< the innermost statement that is n or holds it
    NodeId function_of(NodeId n) const;       ///< the function, accessor or lambda around it; `none` outside
    NodeId loop_of(NodeId n) const;           ///< the innermost loop around it in its function; `none`
    bool
    may_hold_statements(NodeId n) const; ///< whether more statements may stand beside n: in a block, not after `if`

    size_t begin(NodeId n) const; ///< bytes
    size_t end(NodeId n) const;
    std::string_view text(NodeId n) const; ///< with what lies between its tokens
    std::string_view main(NodeId n) const; ///< the text of `main`; of operators all of it (`>>=`)
    std::string_view source() const { return m_source; }
    const std::vector<Token>& tokens() const { return m_tokens.tokens; }
    const std::vector<Trivia>& trivia() const { return m_tokens.trivia; }
    std::string_view token(size_t i) const; ///< its text; empty after the last
    std::string plain(NodeId n) const;      ///< the tokens with blanks only between words: to compare

    const std::vector<Macro>& macros() const { return m_macros; }
    const Macro* macro(std::string_view name) const; ///< null where the source has none
    /// Whether all inside a node was understood, and no `#if` cuts through it.
    bool is_understood(NodeId n) const;

private:
    friend class Parser;
    std::string_view m_source;
    Tokens m_tokens;
    std::vector<Node> m_nodes;
    std::vector<Macro> m_macros; ///< by name
};

bool is_statement(Kind kind);
bool is_step(const Tree& tree, NodeId n);       ///< `i++`, `--i`
bool is_comparison(const Tree& tree, NodeId n); ///< `a < b`
inline bool is_loop(Kind kind) { return kind == Kind::for_ || kind == Kind::while_ || kind == Kind::do_; }
/// `attribute(tree, loop, "MaxIters")`: that of a declaration or statement; `none` where it has no such one.
NodeId attribute(const Tree& tree, NodeId n, std::string_view name);
/// The same of a word: `static`, `no_diff`, `[mutating]`, too.
bool is_marked(const Tree& tree, NodeId n, std::string_view word);
/// The type of a declarator or parameter, in front of the name or after; `none` for `let x = e`.
NodeId type_of(const Tree& tree, NodeId declarator);
/// The result of a function or subscript, in front of the name or after "->"; `none` where it is not named.
NodeId result_of(const Tree& tree, NodeId function);
/// The parameters of a function, accessor, subscript or lambda.
NodeId parameters_of(const Tree& tree, NodeId function);
/// The body of a function, accessor or lambda; `none` where it has none.
NodeId body_of(const Tree& tree, NodeId function);
/// The name or member that a call calls, `f` of `f<int>(x)`.
NodeId callee_of(const Tree& tree, NodeId call);
/// What a node is without brackets around it.
NodeId unwrapped(const Tree& tree, NodeId n);
/// What `a.b[i].c` picks parts of; the node itself where it picks none.
NodeId start_of_path(const Tree& tree, NodeId n);
/// The parts of a loop, whichever kind it is; `none` where it has no such part.
NodeId condition_of(const Tree& tree, NodeId loop);

} // namespace spy::syntax
