#include "slang/rewrite/paths.h"

#include "core/content_hash.h"
#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/index.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"
#include "slang/rewrite/wholes.h"

#include <algorithm>
#include <map>
#include <vector>

namespace spy {
namespace {

using Names = BracketedText::Names;

/// One use of elements: `s.z[i].x`.
struct Path {
    size_t begin, end; ///< first token, and that behind
    size_t root;       ///< the variable: `z` of `this.z[i]`, too
    std::vector<Step> steps;
    size_t loop;                                ///< the innermost around it that is not unrolled, or npos
    bool is_written = false, is_update = false; ///< `=`, or `+=` and `++`, which read it, too
    bool is_kept = false;                       ///< a function may write it
};

class PathScanner {
public:
    PathScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    /// What to put where: byte in the source -> text. `pick`: how the functions' names begin.
    std::map<size_t, std::string> found(const std::string& pick, bool has_branches)
    {
        for (const FunctionBody& body : m_text.bodies()) {
            if (!is_differentiable(body))
                continue;
            const std::vector<const Path*> lost = lost_in(body);
            if (lost.empty())
                continue;
            const size_t begin = m_text.declaration_of(body);
            const size_t scope = m_text.around(begin);
            const auto known = has_branches ? m_declared.end() : m_declared.find(scope);
            std::string name = known == m_declared.end() ? cat(pick, "_", m_number++) : known->second;
            if (known == m_declared.end()) {
                std::string& place = m_places[m_text.token(begin).begin];
                place = declarations(name) + place;
                m_declared[scope] = name;
            }
            for (const Path* path : lost)
                replace(*path, name);
            for (const Path& path : m_paths)
                if (path.is_written && path.loop == npos && is_update(m_text, path.begin, path.end) &&
                    std::any_of(lost.begin(), lost.end(),
                                [&](const Path* other) { return at(other->root) == at(path.root); }))
                    write_out(path, name);
        }
        return std::move(m_places);
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    bool is_differentiable(const FunctionBody& body) const
    {
        const size_t begin = m_text.header_of(body);
        for (size_t i = begin; i < body.begin; ++i)
            if (at(i) == "Differentiable" || at(i) == "BackwardDifferentiable")
                return true;
        return false;
    }

    static std::string declarations(const std::string& name)
    {
        const std::string tail = ", int i) { return v[i]; } ";
        return cat("T ", name, "<T, let N : int>(T v[N]", tail, "[Differentiable] T ", name,
                   "<T : IDifferentiable, let N : int>(T v[N]", tail, "[Differentiable] T ", name,
                   "<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> v", tail,
                   "[Differentiable] vector<T, C> ", name,
                   "<T : __BuiltinFloatingPointType, let R : int, let C : int>(matrix<T, R, C> v", tail);
    }

    /// The reads of a function whose share of the derivative may be lost.
    std::vector<const Path*> lost_in(const FunctionBody& body)
    {
        m_paths = paths_of(body);
        const IndexReader indices(m_text, body);
        const WholeUses wholes(m_text, body);
        std::vector<const Path*> lost;
        const auto names = declared_names(m_text, body);
        for (const Path& path : m_paths) {
            if (path.is_written || path.is_kept || !has_elements(path, body, names))
                continue;
            const bool meets = std::any_of(m_paths.begin(), m_paths.end(), [&](const Path& other) {
                return at(other.root) == at(path.root) && may_meet(path, other, indices);
            });
            const bool of_this = path.root != path.begin || !names.count(at(path.root));
            if (meets ||
                (is_still(path, 0, indices) &&
                 (wholes.any(path.root, path.steps, of_this) || wholes.is_copy(path.root, path.steps))))
                lost.push_back(&path);
        }
        return lost;
    }

    std::vector<Path> paths_of(const FunctionBody& body) const
    {
        const Loops loops(m_text, body);
        std::vector<Path> paths;
        for (size_t i = body.open + 1; i < body.end; ++i) {
            if (!is_word(at(i)) || at(i - 1) == "." || (at(i - 1) == ":" && at(i - 2) == ":"))
                continue;
            const size_t root = at(i) == "this" && at(i + 1) == "." ? i + 2 : i;
            Path path{i, root + 1, root, {}, loops.innermost(i)};
            bool any_index = false;
            for (;;) {
                if (at(path.end) == "[" && m_text.match(path.end) > path.end + 1) {
                    path.steps.push_back({true, path.end + 1, m_text.match(path.end)});
                    any_index = true;
                } else if (at(path.end) == "." && is_word(at(path.end + 1)))
                    path.steps.push_back({false, path.end + 1, path.end + 2});
                else
                    break;
                path.end = path.steps.back().end + (path.steps.back().is_index ? 1 : 0);
            }
            const bool may_be_type = at(i - 1) == ">" && (at(path.end) == ";" || at(path.end) == "=");
            static const Names before_values = {"return", "else", "do", "case"};
            const bool is_declaration = may_be_type || (is_word(at(i - 1)) && !before_values.count(at(i - 1)));
            path.is_written = m_text.is_assignment(path.end) || m_text.is_stepped(i);
            path.is_update = path.is_written && at(path.end) != "=";
            const bool is_component = path.is_update && path.steps.size() == 1; // `v.x += a`
            if (!(any_index || is_component) || is_declaration || is_word(at(path.end)))
                continue; // `float[4] v`
            path.is_kept = at(i - 1) == "&" || may_be_written(path);
            if (at(path.end) == "(") { // a method
                path.is_kept = path.steps.back().is_index || !only_reads_object(at(path.end - 1));
                path.steps.pop_back();
                path.end -= 2;
            }
            paths.push_back(std::move(path));
        }
        return paths;
    }

    /// Whether all methods of a name leave their object as it is.
    bool only_reads_object(std::string_view name) const
    {
        bool known = false, may = false;
        const auto look = [&](const FunctionTable& table) {
            if (const auto* functions = table.find(name))
                for (const DeclaredFunction& function : *functions) {
                    known = true;
                    may |= function.is_mutating;
                }
        };
        look(m_own);
        for (const auto& table : m_imported)
            look(*table);
        return known && !may;
    }

    /// Whether it is an argument by itself, of a function that may write it.
    bool may_be_written(const Path& path) const
    {
        const size_t open = m_text.around(path.begin);
        if (open == npos || at(open) != "(" || (at(path.begin - 1) != "(" && at(path.begin - 1) != ",") ||
            (at(path.end) != ")" && at(path.end) != ","))
            return false;
        const size_t token = called_name(m_text, open);
        const std::string_view name = token == npos ? std::string_view() : at(token);
        if (name.empty() || writes_no_argument(name) || is_float_type(name) || name.starts_with("_spy_"))
            return false;
        bool known = false, may = false;
        const auto look = [&](const FunctionTable& table) {
            if (const auto* functions = table.find(name))
                for (const DeclaredFunction& function : *functions) {
                    known = true;
                    for (const ParameterUse use : function.parameters)
                        may |= use != ParameterUse::read;
                }
        };
        look(m_own);
        for (const auto& table : m_imported)
            look(*table);
        return known ? may : !m_own.is_struct(name);
    }

    /// Whether what is indexed is an array of floats or structs, a vector or a matrix, as far as the sources show.
    bool has_elements(const Path& path, const FunctionBody& body,
                      const std::map<std::string_view, DeclaredName>& names) const
    {
        size_t first = 0; // the first index
        while (first < path.steps.size() && !path.steps[first].is_index)
            ++first;
        if (first == path.steps.size())
            return false;
        const std::string_view root = at(path.root);
        const auto known = path.root == path.begin ? names.find(root) : names.end();
        if (first > 0) {
            const bool is_own = known != names.end() || path.root != path.begin || is_field(m_text, body, root);
            return is_own && is_element_field(at(path.steps[first - 1].begin));
        }
        if (known == names.end())
            return (path.root != path.begin || is_field(m_text, body, root)) && is_element_field(root);
        const DeclaredName& declared = known->second;
        if (declared.is_other)
            return false;
        if (declared.type == "var" || declared.type == "let")
            return is_copy(root, body, names);
        if (declared.is_array)
            return is_float_type(declared.type) || is_vector(declared.type) ||
                is_struct(m_own, m_imported, declared.type) || is_generic(declared.type, body);
        return declared.type == "Array" || is_vector(declared.type) || is_array_alias(m_own, m_imported, declared.type);
    }

    /// Whether a function says `<T : ...>`.
    bool is_generic(std::string_view type, const FunctionBody& body) const
    {
        for (size_t i = m_text.header_of(body); i < body.begin; ++i)
            if (at(i + 1) == type && (at(i) == "<" || at(i) == ","))
                return true;
        return false;
    }

    static bool is_vector(std::string_view type)
    {
        return type == "vector" || type == "matrix" || (is_float_type(type) && !is_float_word(type));
    }

    /// Whether all fields of a name have elements of floats, or of structs.
    bool is_element_field(std::string_view name) const
    {
        bool any = false, all = true;
        const auto look = [&](const FunctionTable& table) {
            if (const FieldTypes* types = table.field(name)) {
                any = true;
                for (const std::string& type : types->arrays)
                    all &= is_float_type(type) || is_vector(type) || is_struct(m_own, m_imported, type);
                for (const std::string& type : types->singles)
                    all &= type == "Array" || is_vector(type) || is_array_alias(m_own, m_imported, type);
            }
        };
        look(m_own);
        for (const auto& table : m_imported)
            look(*table);
        return any && all;
    }

    /// `var v = x;` or `var v = f(...);`, where x is, or f returns, an array of floats, a vector or a matrix.
    bool is_copy(std::string_view name, const FunctionBody& body,
                 const std::map<std::string_view, DeclaredName>& names) const
    {
        for (size_t i = body.open; i < body.end; ++i)
            if (at(i) == name && (at(i - 1) == "var" || at(i - 1) == "let")) {
                if (at(i + 1) == "=" && is_word(at(i + 2)) && at(i + 3) == "(" && at(m_text.match(i + 3) + 1) == ";")
                    return returns_elements(at(i + 2));
                const auto source = at(i + 1) == "=" && at(i + 3) == ";" ? names.find(at(i + 2)) : names.end();
                return source != names.end() && !source->second.is_other && is_float_type(source->second.type) &&
                    (source->second.is_array || is_vector(source->second.type));
            }
        return false;
    }

    bool returns_elements(std::string_view name) const
    {
        bool any = is_vector(name), all = true; // or a constructor
        const auto look = [&](const FunctionTable& table) {
            if (const auto* functions = table.find(name))
                for (const DeclaredFunction& function : *functions) {
                    any = true;
                    all &= function.returns_elements;
                }
        };
        look(m_own);
        for (const auto& table : m_imported)
            look(*table);
        return any && all;
    }

    /// Whether one of a path's indices, from some step on, is known only as the program runs and stays the same in the
    /// loops around it.
    static bool is_still(const Path& path, size_t step, const IndexReader& indices)
    {
        return std::any_of(
            path.steps.begin() + long(std::min(step, path.steps.size())), path.steps.end(),
            [&](const Step& index) { return index.is_index && indices.is_still(index.begin, index.end); });
    }

    /// Whether a read beside one in another loop, or outside, may be lost: its index stays the same, and it is in a
    /// loop or the other's index does not change either.
    static bool is_lost_apart(const Path& path, const Path& other, const IndexReader& indices)
    {
        const auto changes = [&](const Step& step) {
            return step.is_index && indices.is_runtime(step.begin, step.end) && !indices.is_still(step.begin, step.end);
        };
        return !other.is_written && is_still(path, 0, indices) &&
            (path.loop != npos || std::none_of(other.steps.begin(), other.steps.end(), changes));
    }

    /// Whether Slang may lose a read beside another use of the variable: the use reads another place that may be the
    /// same, equally often; or, in a loop, writes one.
    bool may_meet(const Path& path, const Path& other, const IndexReader& indices) const
    {
        if ((path.loop != other.loop && !is_lost_apart(path, other, indices)) ||
            (other.is_kept && !other.is_written && path.begin == other.begin))
            return false;
        if (path.begin == other.begin) // of itself, in an unrolled loop
            return std::any_of(path.steps.begin(), path.steps.end(), [&](const Step& step) {
                return step.is_index && indices.may_repeat(step.begin, step.end, path.loop);
            });
        const bool is_runtime = std::any_of(path.steps.begin(), path.steps.end(), [&](const Step& step) {
            return step.is_index && indices.is_runtime(step.begin, step.end);
        });
        if (other.is_written ? path.loop == npos && other.begin > path.begin && !(other.is_update && is_runtime)
                             : !is_runtime)
            return false;
        const size_t count = std::min(path.steps.size(), other.steps.size());
        for (size_t k = 0; k < count; ++k) {
            const Step &one = path.steps[k], &two = other.steps[k];
            if (one.is_index != two.is_index) // `v[i]` before `v.x += a`
                return other.is_update && path.loop == npos;
            if (!one.is_index && at(one.begin) != at(two.begin))
                return false;
            if (one.is_index) {
                const Meeting meeting = indices.meeting(one.begin, one.end, two.begin, two.end, path.loop,
                                                        other.is_written);
                if (meeting != Meeting::same)
                    return meeting == Meeting::possible;
            }
        }
        return !other.is_written && is_still(path, count, indices); // e[1].q[i] beside e[1]
    }

    void replace(const Path& path, const std::string& name)
    {
        std::string heads;
        for (const Step& step : path.steps)
            if (step.is_index) {
                heads += name + "(";
                m_places[m_text.token(step.begin - 1).begin] += ", int(";
                m_erased.insert(m_text.token(step.begin - 1).begin);
                m_places[m_text.token(step.end).begin] += "))";
                m_erased.insert(m_text.token(step.end).begin);
            }
        std::string& begin = m_places[m_text.token(path.begin).begin];
        begin += heads;
    }

    /// `s.v[i] += e;` -> `s.v[i] = pick(s.v, int(i)) + (e);`: behind an update, Slang loses what such a call reads of a
    /// field.
    void write_out(const Path& path, const std::string& name)
    {
        std::string heads, read;
        size_t next = 0;
        for (size_t i = path.begin; i < path.end; ++i) {
            while (next < path.steps.size() && (!path.steps[next].is_index || path.steps[next].end < i))
                ++next;
            const bool opens = next < path.steps.size() && i + 1 == path.steps[next].begin;
            const bool closes = next < path.steps.size() && i == path.steps[next].end;
            if (opens)
                heads += name + "(";
            read += opens ? ", int(" : closes ? "))" : cat(is_word(at(i)) && is_word(at(i - 1)) ? " " : "", at(i));
        }
        const size_t sign = m_text.token(path.end).begin;
        m_places[sign] += written_out(m_text, path.end, heads + read);
        m_places[sign + 1];
        m_erased.insert({sign, sign + 1});
        m_places[m_text.token(end_of_update(m_text, path.end)).begin] += ')';
    }

public:
    /// Bytes that a text replaces.
    bool is_erased(size_t place) const { return m_erased.count(place) > 0; }

private:
    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
    std::vector<Path> m_paths;
    std::map<size_t, std::string> m_places;
    std::set<size_t> m_erased;
    std::map<size_t, std::string> m_declared; ///< names of the functions, by scope
    size_t m_number = 0;
};

} // namespace

std::vector<Edit> rewrite_paths(std::string_view source, const FunctionTables& imported)
{
    if (source.find("ifferentiable") == source.npos || source.find('[') == source.npos)
        return {};
    PathScanner scanner(source, imported);
    const bool has_branches = source.find("#if") != source.npos;
    std::vector<Edit> edits;
    for (auto& [place, text] : scanner.found("_spy_pick_" + content_hash(source) + "_e", has_branches))
        edits.push_back({place, place + (scanner.is_erased(place) ? 1 : 0), std::move(text)});
    return edits;
}

} // namespace spy
