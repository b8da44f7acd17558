#include "slang/rewrite/outs.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/passed.h"
#include "slang/rewrite/variables.h"

#include <map>
#include <vector>

namespace spy {
namespace {

using Names = BracketedText::Names;

class OutScanner {
public:
    /// `late`: elements behind loops; else what is written before them.
    OutScanner(std::string_view text, const FunctionTables& imported, bool late)
        : m_text(text),
          m_late(late),
          m_own(m_text),
          m_imported(imported)
    {
        for (size_t i = 0; i + 1 < m_text.size(); ++i)
            if (at(i) == "struct")
                m_structs.insert(at(i + 1));
    }

    /// Where names are to be passed through an operation, function by function.
    std::vector<Places> found() const
    {
        return places_in(m_text, [this](const FunctionBody& body, Places& places) { search(body, places.passed); });
    }

private:
    std::string_view at(size_t i) const { return m_text.at(i); }

    /// The variables of a function by what is done to them.
    struct Variables {
        Names floats;
        std::map<std::string_view, DeclaredName> all;
    };

    void search(const FunctionBody& body, std::map<size_t, Passed>& places) const
    {
        const LoopWords loops = m_text.loops(body);
        if (!loops.any())
            return;
        const bool differentiable = may_be_differentiable(m_text, body);
        const Variables variables{m_text.local_floats(body), declared_names(m_text, body)};
        for (size_t open = body.open + 1; open < body.end; ++open) {
            const size_t name = at(open) == "(" ? called_name(m_text, open) : npos;
            const Place place = name != npos ? place_of(open, body) : Place{};
            if (place.behind == npos)
                continue;
            Passed passed;
            const std::vector<Argument> given = arguments_of(m_text, open);
            if (differentiable && place.behind < loops.last)
                if (const std::string_view object = changed_object(name, given.size(), body, variables);
                    !object.empty())
                    passed.values.insert(object);
            for (size_t k = 0; k < given.size(); ++k) {
                const Argument& argument = given[k];
                const Effect effect = effect_of(at(name), given.size(), k);
                if (argument.empty() || !is_path(argument))
                    continue;
                if (is_written_float(effect, at(name), argument, variables)) {
                    passed.floats.insert(m_text.text(argument.first, argument.last));
                    const bool is_element = argument.first != argument.last &&
                        variables.floats.count(at(argument.first));
                    if (m_late && is_element && loops.first < open && place.before != npos)
                        places[m_text.token(place.before).end].floats.insert(at(argument.first));
                } else if (differentiable)
                    passed.values.insert(changed_value(effect, at(name), argument, body, variables));
            }
            passed.values.erase(std::string_view());
            if (!m_late && place.behind < loops.last && !(passed.floats.empty() && passed.values.empty())) {
                Passed& there = places[m_text.token(place.behind).end];
                there.floats.merge(passed.floats);
                there.values.merge(passed.values);
            }
        }
    }

    Effect effect_of(std::string_view name, size_t count, size_t k) const
    {
        return spy::effect_of(m_own, m_imported, name, count, k);
    }

    /// Whether a call may write an argument, so that `x = -(-x)` is right behind it.
    bool is_written_float(const Effect& effect, std::string_view name, const Argument& argument,
                          const Variables& variables) const
    {
        const bool is_local = argument.first == argument.last && variables.floats.count(at(argument.first));
        if (!effect.known)
            return is_local && !only_reads_arguments(name) && !is_float_type(name);
        return effect.may && (is_local || (effect.does && effect.is_float && !is_fixed(argument, variables)));
    }

    bool is_fixed(const Argument& argument, const Variables& variables) const
    {
        const auto root = variables.all.find(at(argument.first));
        return root != variables.all.end() && root->second.is_fixed;
    }

    /// What to pass through a function behind a call that may write a struct, an array or a part of one: the argument
    /// where each function of that name writes it, else its variable where that can be assigned; empty where neither.
    std::string_view changed_value(const Effect& effect, std::string_view name, const Argument& argument,
                                   const FunctionBody& body, const Variables& variables) const
    {
        const std::string_view root = at(argument.first);
        const auto declared = variables.all.find(root);
        const bool is_whole = argument.first == argument.last;
        if (effect.known && (!effect.may || (effect.does && effect.is_discrete)))
            return {};
        if (declared == variables.all.end()) {
            const bool is_own = root == "this" ? !is_whole : is_field(m_text, body, root);
            return effect.does && is_own ? m_text.text(argument.first, argument.last) : std::string_view();
        }
        if (declared->second.is_fixed)
            return {};
        if (effect.does)
            return m_text.text(argument.first, argument.last);
        const bool is_floats = is_float_type(declared->second.type) && declared->second.is_array;
        const bool is_value = !declared->second.is_other && (is_floats || m_structs.count(declared->second.type));
        if (effect.known)
            return is_value ? root : std::string_view();
        const bool may = !only_reads_arguments(name) && !m_structs.count(name) && !is_float_type(name);
        return is_whole && is_value && may ? root : std::string_view();
    }

    /// The variable, or part of one, of which a mutating method is called; empty where that is not so.
    std::string_view changed_object(size_t name, size_t count, const FunctionBody& body,
                                    const Variables& variables) const
    {
        if (name < 2 || at(name - 1) != ".")
            return {};
        size_t first = name - 2;
        for (;; first -= 2) {
            while (at(first) == "]" && m_text.match(first) != npos)
                first = m_text.match(first) - 1;
            if (first < body.open + 2 || at(first - 1) != ".")
                break;
        }
        const Argument object{first, name - 2};
        const Effect effect = effect_of(at(name), count, npos);
        if (!effect.known || !is_path(object))
            return {};
        return changed_value(effect, at(name), object, body, variables);
    }

    /// `a`, `a.b`, `a[1].b[i + 1]`
    bool is_path(const Argument& argument) const
    {
        bool named = is_word(at(argument.first)) && at(argument.first - 1) != "&";
        for (size_t i = argument.first + 1; i <= argument.last && named; ++i) {
            const bool index = at(i) == "[";
            named = index ? is_plain_index(i) : at(i) == "." && is_word(at(i + 1));
            i = index ? m_text.match(i) : i + 1;
        }
        return named;
    }

    /// Whether an index can be computed twice: it calls and changes nothing.
    bool is_plain_index(size_t open) const
    {
        for (size_t i = open + 1; i < m_text.match(open); ++i) {
            const bool calls = at(i) == "(" && is_word(at(i - 1));
            if (calls || at(i) == "=" || at(i) == "?" || m_text.is_stepped(i) ||
                ((at(i) == "+" || at(i) == "-") && at(i + 1) == at(i)))
                return false;
        }
        return true;
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
    bool m_late;
    FunctionTable m_own;
    const FunctionTables& m_imported;
    Names m_structs;
};

std::vector<Edit> found_outs(std::string_view source, const FunctionTables& imported, bool late)
{
    const bool writes = source.find("out") != source.npos || source.find("mutating") != source.npos ||
        !imported.empty();
    if (!writes || source.find("ifferentiable") == source.npos)
        return {};
    return with_passed(source, OutScanner(source, imported, late).found());
}

} // namespace

std::vector<Edit> rewrite_outs(std::string_view source, const FunctionTables& imported)
{
    return found_outs(source, imported, false);
}

std::vector<Edit> rewrite_late_elements(std::string_view source, const FunctionTables& imported)
{
    return found_outs(source, imported, true);
}

} // namespace spy
