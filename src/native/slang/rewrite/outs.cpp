#include "slang/rewrite/outs.h"

#include "core/error.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"

#include <map>

namespace spy {
namespace {

using Names = BracketedText::Names;
constexpr size_t npos = BracketedText::npos;

using Places = std::map<size_t, Names>;

class OutScanner {
public:
    explicit OutScanner(std::string_view text) : m_text(text) { }

    /// Where names are to be passed through an operation: byte in the source -> names.
    Places found()
    {
        Places places;
        if (!m_text.balanced())
            return places;
        find_functions();
        for (const FunctionBody& body : m_text.bodies())
            search(body, places);
        return places;
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    enum class Use { read, written, written_float }; ///< the last: with a scalar, vector or matrix type of its own

    struct Argument {
        size_t first, last; ///< tokens
        bool empty() const { return last < first; }
    };

    std::vector<Argument> arguments(size_t open) const
    {
        std::vector<Argument> result;
        size_t first = open + 1;
        for (size_t i = open + 1; i <= m_text.match(open); ++i)
            if (i == m_text.match(open) || (at(i) == "," && m_text.around(i) == open)) {
                result.push_back({first, i - 1});
                first = i + 1;
            }
        return result;
    }

    /// How the functions declared here use their parameters.
    void find_functions()
    {
        for (const FunctionBody& body : m_text.bodies()) {
            std::string_view name = at(body.begin - 1);
            if (name == ">") // of generic parameters
                for (size_t i = body.begin - 1; i-- > 0 && at(i + 1) != "<";)
                    name = at(i);
            std::vector<Use> uses;
            for (const Argument& parameter : arguments(body.begin))
                uses.push_back(use_of(parameter));
            m_overloads[name].push_back(std::move(uses));
        }
        if (!m_overloads.count("sincos"))
            m_overloads["sincos"] = {{Use::read, Use::written_float, Use::written_float}};
    }

    Use use_of(const Argument& parameter) const
    {
        bool writes = false;
        for (size_t i = parameter.first; i <= parameter.last; ++i) {
            writes = writes || at(i) == "out" || at(i) == "inout" || at(i).ends_with("ref");
            const size_t end = writes ? m_text.float_type_end(i) : i;
            if (end != i && is_word(at(end)) && at(end + 1) != "[")
                return Use::written_float;
        }
        return writes ? Use::written : Use::read;
    }

    void search(const FunctionBody& body, Places& places) const
    {
        const LoopWords loops = m_text.loops(body);
        if (!loops.any())
            return;
        const Names names = m_text.local_floats(body);
        for (size_t open = body.open + 1; open < body.end; ++open) {
            if (at(open) != "(" || !(is_word(at(open - 1)) || at(open - 1) == ">"))
                continue;
            const std::vector<Argument> given = arguments(open);
            for (size_t k = 0; k < given.size(); ++k) {
                const Argument& argument = given[k];
                if (argument.empty() || !may_be_written(open, given.size(), k, argument, names))
                    continue;
                const Place place = place_of(open, body);
                if (place.behind == npos)
                    continue;
                if (place.behind < loops.last)
                    places[m_text.token(place.behind).end].insert(m_text.text(argument.first, argument.last));
                const bool is_element = argument.first != argument.last && names.count(at(argument.first));
                if (is_element && loops.first < open && place.before != npos)
                    places[m_text.token(place.before).end].insert(at(argument.first));
            }
        }
    }

    /// Whether a call may write argument k of `count`, so that `x = -(-x)` is right behind it.
    bool may_be_written(size_t open, size_t count, size_t k, const Argument& argument, const Names& names) const
    {
        const bool is_local = argument.first == argument.last && names.count(at(argument.first));
        const auto found = m_overloads.find(at(open - 1));
        if (found == m_overloads.end())
            return is_local && !only_reads_arguments(at(open - 1)) && !is_float_type(at(open - 1));
        bool may = false, does = true;
        for (const std::vector<Use>& uses : found->second) {
            const Use use = k < uses.size() ? uses[k] : Use::read;
            may = may || use != Use::read;
            does = does && (uses.size() != count || use == Use::written_float);
        }
        return may && (is_local || (does && is_path(argument)));
    }

    /// `a`, `a.b`, `a[1].b[i]`
    bool is_path(const Argument& argument) const
    {
        bool named = is_word(at(argument.first));
        for (size_t i = argument.first + 1; i <= argument.last && named; ++i) {
            const bool index = at(i) == "[" && i + 2 == m_text.match(i);
            named = index || (at(i) == "." && is_word(at(i + 1)));
            i += index ? 2 : 1;
        }
        return named;
    }

    struct Place {
        size_t before = npos, behind = npos;
    };

    /// The tokens behind which a statement can stand: in front of that of the call, and where the argument has its new
    /// value; npos where none can.
    Place place_of(size_t i, const FunctionBody& body) const
    {
        size_t begin = i;
        while (m_text.around(begin) != npos &&
               (at(m_text.around(begin)) != "{" || m_text.is_list(m_text.around(begin))))
            begin = m_text.around(begin);
        size_t end = begin;
        while (end < body.end && at(end) != ";" && at(end) != "}" && (at(end) != "{" || m_text.is_list(end)))
            end = m_text.match(end) != npos && m_text.match(end) > end ? m_text.match(end) + 1 : end + 1;
        if (at(end) == "{")
            return {npos, end};
        while (begin > body.open + 1 && at(begin - 1) != ";" && at(begin - 1) != "{" && at(begin - 1) != "}")
            begin = m_text.match(begin - 1) != npos ? m_text.match(begin - 1) : begin - 1;
        const size_t before = begin - 1;
        while (at(begin) == "[")
            begin = m_text.match(begin) + 1; // attributes
        const std::string_view first = at(begin);
        if (at(end) != ";" || at(end + 1) == "else" || first == "for" || first == "do" || first == "return")
            return {};
        return {first == "case" || first == "default" || first == "else" ? npos : before, end};
    }

    BracketedText m_text;
    std::map<std::string_view, std::vector<std::vector<Use>>> m_overloads;
};

} // namespace

std::string rewrite_outs(std::string_view source)
{
    if (source.find("ifferentiable") == source.npos || source.find("out") == source.npos)
        return std::string(source);
    std::map<size_t, std::string> texts;
    for (const auto& [place, names] : OutScanner(source).found())
        for (const std::string_view name : names)
            texts[place] += cat(" ", name, " = -(-", name, ");");
    return with_insertions(source, texts);
}

} // namespace spy
