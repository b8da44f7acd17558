#pragma once
// What indices do in the loops of a function.
#include "slang/rewrite/bracketed.h"

#include <map>
#include <vector>

namespace spy {

/// The loops of a function that stay loops, and those that [ForceUnroll] takes apart.
class Loops {
public:
    struct Loop {
        size_t begin, end; ///< the word that begins it, and its last token
        bool is_unrolled;
    };

    Loops(const BracketedText& text, const FunctionBody& body);

    const std::vector<Loop>& all() const { return m_loops; } ///< outer ones before inner ones
    /// The word that begins the innermost loop around a token, or npos.
    size_t innermost(size_t i, bool unrolled = false) const;
    size_t end_of(size_t loop) const; ///< its last token
    /// Counters of unrolled loops, which the compiler knows.
    const BracketedText::Names& counters() const { return m_counters; }

private:
    std::vector<Loop> m_loops;
    BracketedText::Names m_counters;
};

enum class Meeting { never, same, possible };

class IndexReader {
public:
    IndexReader(const BracketedText& text, const FunctionBody& body);

    /// Whether two indices, given by their first tokens and those behind, may be equal in one iteration of a loop
    /// (npos: in the function), and so that Slang loses a share of the derivative. `writes`: the second is that of a
    /// write.
    Meeting meeting(size_t begin, size_t end, size_t other, size_t other_end, size_t loop, bool writes) const;
    /// Whether an index in an unrolled loop may be the same in two of its iterations.
    bool may_repeat(size_t begin, size_t end, size_t loop) const;
    bool is_runtime(size_t begin, size_t end) const; ///< whether the compiler does not know it
    /// Whether an index that the compiler does not know is the same in all iterations of the loops around it.
    bool is_still(size_t begin, size_t end) const;

private:
    struct Sum { ///< an index as a text and a number that is added to it
        std::string text;
        long number = 0;
    };

    std::string_view at(size_t i) const { return m_text.at(i); }
    void find_assigned(const FunctionBody& body);
    void find_constants(const FunctionBody& body);
    bool is_constant_until(size_t i) const;
    bool is_assigned(std::string_view word, size_t begin, size_t end) const;
    bool any_assigned(size_t begin, size_t end, size_t from, size_t to) const;
    bool has_counter(size_t begin, size_t end) const;
    bool is_known(size_t i) const;
    bool varies(size_t begin, size_t end, size_t loop) const;
    std::string joined(size_t begin, size_t end) const;
    Sum sum(size_t begin, size_t end) const;

    const BracketedText& m_text;
    Loops m_loops;
    std::map<std::string_view, std::vector<size_t>> m_assigned; ///< word -> tokens
    BracketedText::Names m_constants;
};

} // namespace spy
