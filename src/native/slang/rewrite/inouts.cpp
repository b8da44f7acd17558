#include "slang/rewrite/inouts.h"

#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/passed.h"
#include "slang/rewrite/statements.h"
#include "slang/rewrite/variables.h"

namespace spy {
namespace {

using Names = BracketedText::Names;

class InoutScanner {
public:
    InoutScanner(std::string_view text, const FunctionTables& imported)
        : m_text(text),
          m_own(m_text),
          m_imported(imported)
    {
    }

    std::vector<Places> found() const
    {
        return places_in(m_text, [this](const FunctionBody& body, Places& places) { search(body, places); });
    }

private:
    using Declared = std::map<std::string_view, DeclaredName>;

    std::string_view at(size_t i) const { return m_text.at(i); }

    void search(const FunctionBody& body, Places& places) const
    {
        if (!may_be_differentiable(m_text, body))
            return;
        const Declared declared = declared_names(m_text, body);
        const Names taken = taken_in(body, declared);
        if (taken.empty())
            return;
        const Names plain = plain_in(body, declared, taken);
        const Statements statements(m_text, body);
        for (size_t i = body.open + 1; i < body.end; ++i) {
            if (!taken.count(at(i)) || at(i - 1) == ".")
                continue;
            size_t sign = i + 1;
            while (declared.at(at(i)).is_at(i) && at(sign) == "[")
                sign = m_text.match(sign) + 1;
            if (at(sign) == "=" && at(sign + 1) != "=" && lacks_derivative(sign + 1, body, declared, plain))
                statements.pass_behind(i, at(i), false, places);
        }
    }

    static bool is_floats(const DeclaredName& name)
    {
        return (is_float_type(name.type) || name.type == "var") && !name.is_other && !name.is_fixed;
    }
    static bool is_scalar(const DeclaredName& name)
    {
        return is_floats(name) && (is_float_word(name.type) || name.type == "var") && !name.is_array;
    }

    /// Scalars that a call may write, and variables of which it may write a part.
    Names taken_in(const FunctionBody& body, const Declared& declared) const
    {
        Names names;
        for (size_t open = body.open + 1; open < body.end; ++open) {
            const size_t name = at(open) == "(" ? called_name(m_text, open) : npos;
            if (name == npos)
                continue;
            const std::vector<Argument> given = arguments_of(m_text, open);
            for (size_t k = 0; k < given.size(); ++k) {
                const bool is_part = at(given[k].first + 1) == "." || at(given[k].first + 1) == "[";
                const auto found = declared.find(at(given[k].first));
                if (given[k].empty() || found == declared.end() || !is_floats(found->second) ||
                    !(is_part || (given[k].first == given[k].last && is_scalar(found->second))))
                    continue;
                const Effect effect = effect_of(m_own, m_imported, at(name), given.size(), k);
                if (effect.known && effect.may)
                    names.insert(found->first);
            }
        }
        return names;
    }

    /// Whether a name is one that gets a value here: `x = e`.
    bool is_set(size_t i) const { return at(i - 1) != "." && at(i + 1) == "=" && at(i + 2) != "="; }

    /// Local scalars that nothing but values without derivatives is assigned to.
    Names plain_in(const FunctionBody& body, const Declared& declared, const Names& taken) const
    {
        Names plain;
        for (const auto& [name, what] : declared)
            if (is_scalar(what) && !taken.count(name) && what.tokens.front() > body.open)
                plain.insert(name);
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = body.open + 1; i < body.end; ++i) {
                if (!plain.count(at(i)) || at(i - 1) == "." || !(is_set(i) || m_text.is_assignment(i + 1)))
                    continue;
                if (!lacks_derivative(is_set(i) ? i + 2 : i + 3, body, declared, plain))
                    changed = plain.erase(at(i)) > 0;
            }
        }
        return plain;
    }

    /// Whether the value that begins at a token has no derivative: it is made of numbers, and of names that have none.
    bool lacks_derivative(size_t i, const FunctionBody& body, const Declared& declared, const Names& plain) const
    {
        const size_t around = m_text.around(i);
        for (; i < body.end && at(i) != ";" && !(at(i) == "," && m_text.around(i) == around); ++i) {
            if (at(i) == "detach" || at(i) == "no_diff") {
                while (i < body.end && at(i) != "(" && at(i) != ";")
                    ++i;
                i = at(i) == "(" ? m_text.match(i) : i;
                continue;
            }
            if (is_word(at(i)) && at(i - 1) != "." && may_have_derivative(i, body, declared, plain))
                return false;
        }
        return true;
    }

    bool may_have_derivative(size_t i, const FunctionBody& body, const Declared& declared, const Names& plain) const
    {
        const std::string_view name = at(i);
        const auto found = declared.find(name);
        if (found != declared.end())
            return !(found->second.is_fixed || is_discrete_type(found->second.type) || plain.count(name));
        if (at(i + 1) == "(")
            return !(only_reads_arguments(name) || is_float_type(name) || is_discrete_type(name));
        return name == "this" || is_field(m_text, body, name);
    }

    BracketedText m_text;
    FunctionTable m_own;
    const FunctionTables& m_imported;
};

} // namespace

std::vector<Edit> rewrite_inouts(std::string_view source, const FunctionTables& imported)
{
    const bool writes = source.find("out ") != source.npos || !imported.empty();
    if (!writes || source.find("ifferentiable") == source.npos)
        return {};
    return with_passed(source, InoutScanner(source, imported).found());
}

} // namespace spy
