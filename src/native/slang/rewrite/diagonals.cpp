#include "slang/rewrite/diagonals.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/index.h"
#include "slang/rewrite/variables.h"

#include <algorithm>
#include <map>
#include <vector>

namespace spy {
namespace {

using Names = BracketedText::Names;

class DiagonalScanner {
public:
    DiagonalScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    /// What to put where: byte in the source -> text.
    std::map<size_t, std::string> found() const
    {
        std::map<size_t, std::string> places;
        for (const FunctionBody& body : m_text.bodies())
            if (may_be_differentiable(m_text, body) || has_differentiable_accessor(body))
                search(body, places);
        return places;
    }

private:
    /// The variables of a function, as far as they matter for indices.
    struct Function {
        std::map<std::string_view, DeclaredName> declared;
        IndexReader indices;
        Names unrolled, counters; ///< of loops, each declared in the head of its loop
    };
    /// The tokens of one index.
    struct Index {
        size_t first, end;
    };

    std::string_view at(size_t i) const { return m_text.at(i); }

    /// `__subscript(int i) -> float { [Differentiable] set { ... } }`
    bool has_differentiable_accessor(const FunctionBody& body) const
    {
        for (size_t i = body.open; i < body.end; ++i)
            if (at(i).ends_with("ifferentiable"))
                return true;
        return false;
    }

    void search(const FunctionBody& body, std::map<size_t, std::string>& places) const
    {
        const Loops loops(m_text, body);
        const Function function{declared_names(m_text, body), IndexReader(m_text, body), loops.counters(),
                                counters_of(body, loops)};
        for (size_t i = body.open + 1; i < body.end; ++i) {
            if (!is_word(at(i)) || at(i - 1) == ".")
                continue;
            std::vector<Index> indices;
            size_t end = i + 1, before = i; // behind the path, and its last step
            while (at(end) == "." || at(end) == "[") {
                before = end;
                if (at(end) == "[")
                    indices.push_back({end + 1, m_text.match(end)});
                end = at(end) == "." ? end + 2 : m_text.match(end) + 1;
            }
            if (indices.size() < 2)
                continue;
            const bool is_method = at(end) == "(" && at(before) == ".";
            if (is_method ? changes_object(m_text, m_own, m_imported, before, end) : is_written(i, end))
                set_apart(indices, function, places);
        }
    }

    /// Words that loops count with, and nothing else changes.
    Names counters_of(const FunctionBody& body, const Loops& loops) const
    {
        Names counters;
        for (const Loops::Loop& loop : loops.all())
            if (at(loop.begin) == "for" && !loop.is_unrolled && is_word(at(loop.begin + 3)) &&
                at(loop.begin + 4) == "=")
                counters.insert(at(loop.begin + 3));
        for (size_t i = body.open + 1; i < body.end; ++i)
            if ((m_text.is_assignment(i + 1) || m_text.is_stepped(i)) && at(m_text.around(i) - 1) != "for")
                counters.erase(at(i));
        return counters;
    }

    /// Makes values of their own of those indices that may be the same value as one before.
    void set_apart(const std::vector<Index>& indices, const Function& function,
                   std::map<size_t, std::string>& places) const
    {
        size_t count = 0;
        for (size_t k = 1; k < indices.size(); ++k) {
            const auto may_be_same = [&](const Index& other) { return may_meet(other, indices[k], function); };
            if (!is_number(indices[k], function) ||
                std::none_of(indices.begin(), indices.begin() + long(k), may_be_same))
                continue;
            ++count;
            std::string before = "-(-int(", behind = "))";
            for (size_t n = 1; n < count; ++n) // each has a value of its own
                before = "-(-(" + before, behind += "))";
            places[m_text.token(indices[k].first - 1).end] += before;
            places[m_text.token(indices[k].end).begin] += behind;
        }
    }

    bool may_meet(const Index& one, const Index& other, const Function& function) const
    {
        if (!is_runtime(one, function) || !is_runtime(other, function))
            return false;
        const auto is_counter = [&](const Index& index) {
            return index.end == index.first + 1 && function.counters.count(at(index.first)) > 0;
        };
        if (is_counter(one) && is_counter(other))
            return at(one.first) == at(other.first);
        return function.indices.meeting(one.first, one.end, other.first, other.end, npos, true) != Meeting::never;
    }

    /// Whether the compiler does not know an index. A variable may have a name in capitals, like a constant.
    bool is_runtime(const Index& index, const Function& function) const
    {
        if (function.indices.is_runtime(index.first, index.end))
            return true;
        for (size_t i = index.first; i < index.end; ++i) {
            const auto declared = function.declared.find(at(i));
            if (declared != function.declared.end() && !declared->second.is_fixed && !function.unrolled.count(at(i)))
                return true;
        }
        return false;
    }

    /// False for a variable of which the type is not one that int() takes: a __subscript may take any.
    bool is_number(const Index& index, const Function& function) const
    {
        static const Names numbers = {"int",     "uint",    "bool",    "let",      "var",      "int8_t",  "int16_t",
                                      "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"};
        const auto declared = function.declared.find(at(index.first));
        return index.end > index.first &&
            (index.end != index.first + 1 || declared == function.declared.end() ||
             numbers.count(declared->second.type) > 0);
    }

    /// Whether the path at tokens [begin, end) is assigned, or passed to a function that may write it.
    bool is_written(size_t begin, size_t end) const
    {
        const Written written = written_at(m_text, m_own, m_imported, begin, end);
        return written.is ||
            (written.unknown != npos && !is_struct(m_own, m_imported, at(written.unknown)) &&
             !at(written.unknown).starts_with("_spy_"));
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_diagonals(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos || source.find('[') == source.npos)
        return {};
    return insertions(DiagonalScanner(source, imported).found());
}

} // namespace spy
