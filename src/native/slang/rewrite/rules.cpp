#include "slang/rewrite/rules.h"

#include "core/error.h"
#include "slang/rewrite/host.h"
#include "slang/rewrite/rules/all.h"

#include <slang.h>

#include <algorithm>
#include <cctype>

namespace spy {
namespace {

template <std::vector<Edit> (*Find)(const ParsedSource&)>
void on_tree(EditedText& text, const RuleContext& context)
{
    text.apply(Find(context.parsed(text)));
}

void cyclic_imports(EditedText& text, const RuleContext& context)
{
    text.apply(name_cyclic_imports(text.text(), context.around));
}
void sequences(EditedText& text, const RuleContext& context)
{
    on_tree<without_brackets>(text, context);
    on_tree<without_commas>(text, context);
    on_tree<without_brackets>(text, context); // `x.y = a, (z.x = b);`
    on_tree<without_chains>(text, context);
    on_tree<without_chains>(text, context); // `w.x = z = x.y = a;`
}
void fall_through(EditedText& text, const RuleContext& context)
{
    for (size_t last = 0; text.text().size() != last;) { // one inside of another comes after it
        last = text.text().size();
        text.apply(repeat_next_cases(context.parsed(text)));
    }
}
void remainders(EditedText& text, const RuleContext& context)
{
    if (context.has_remainders)
        text.apply(import_remainders(text.text()));
}
void accumulations(EditedText& text, const RuleContext& context)
{
    if (context.inlines_differentiable) // the functions of its terms would not be
        return;
    const auto may_loop = [&] {
        return text.text().find("ifferentiable") != std::string::npos && text.text().find("for") != std::string::npos;
    };
    for (size_t last = 0; may_loop() && text.text().size() != last;) { // loops inside come one after the other
        last = text.text().size();
        text.apply(rewrite_accumulations(context.parsed(text)));
    }
}
void chains(EditedText& text, const RuleContext& context)
{
    if (context.inlines_differentiable || text.text().find("ifferentiable") == std::string::npos)
        return;
    text.apply(split_chains(context.parsed(text)));
    text.apply(keep_chain_values(context.parsed(text)));
}
void inlining(EditedText& text, const RuleContext& context)
{
    if (context.inlines_differentiable)
        text.apply(inline_differentiable(context.parsed(text)));
}

void method_derivatives(EditedText& text, const RuleContext& context)
{
    if (text.text().find("_diff(") != std::string::npos) // else nobody need parse it for this
        text.apply(rewrite_method_derivatives(context.parsed(text)));
}

constexpr std::string_view reshape = "reshape", annotate = "annotate";

/// THE TABLE: name, fault, issue or minimal case, since, until, stage, function.
const std::vector<Rule> table = {
    {{"cyclic-imports", "an import that leads back to the module that is loading is refused when it names the module",
      "a.slang: import b; b.slang: import a;", "", "", reshape},
     cyclic_imports},
    {{"method-derivatives", "fwd_diff or bwd_diff of a method through an object crashes while the source is read",
      "fwd_diff(s.m)(diffPair(x, 1.0))", "", "", reshape},
     method_derivatives},
    {{"no-diff-calls", "no_diff in front of a call of a differentiable function is ignored", "shader-slang#10726", "",
      "", reshape},
     on_tree<hold_no_diff_calls>},
    {{"switch-on-calls",
      "a call of a differentiable function as the value of a switch or the condition of ?: does not compile",
      "switch (f(a)) { case 1: x *= a; break; }", "", "", reshape},
     on_tree<hold_called_values>},
    {{"assignments-in-expressions",
      "parts written inside expressions (commas, chains, brackets) have the faults of those written in statements, "
      "which are mended",
      "v.y = a, w.x = v.y * b;", "", "", reshape},
     sequences},
    {{"fall-through", ".bwds of a switch crashes where a case with statements runs on into the next one",
      "switch (n) { case 1: x *= a; default: x *= b; }", "", "", reshape},
     fall_through},
    {{"accumulations", "a loop that only adds up needs [MaxIters(n)], and .bwds keeps what each of n trips loads",
      "for (uint i = 0; i < n; i++) sum += w[i] * x[i];", "", "", reshape},
     accumulations},
    {{"steps-in-conditions", ".bwds of a loop that counts down in its condition from a run-time value does not compile",
      "[MaxIters(8)] while (i-- > 0) x *= a;", "", "", reshape},
     on_tree<move_condition_steps>},
    {{"run-time-counters", ".bwds of a loop whose counter begins with a run-time value does not compile",
      "[MaxIters(8)] for (int i = n; i > 0; i--) x *= a;", "", "", reshape},
     on_tree<move_counter_steps>},
    {{"endless-loops",
      ".bwds of a loop without a condition that steps a counter from a run-time value before it ends does not compile",
      "[MaxIters(8)] for (;;) { x *= a; i--; if (i <= 0) break; }", "", "", reshape},
     on_tree<hide_early_steps>},
    {{"nested-loops", "the states of nested loops are sized in one order and indexed in the other: wrong gradients",
      "for (int i = 0; i < 2; i++) for (int j = 0; j < 5; j++) x *= a;", "", "", reshape},
     on_tree<make_room_in_nests>},
    {{"do-continue", "continue in a do loop that runs once is ignored in SPIR-V, and crashes .bwds",
      "do { if (a > 0) continue; x *= a; } while (false);", "", "", reshape},
     on_tree<for_of_do_with_continue>},
    {{"do-counters", ".bwds of a do loop that counts from a run-time value does not compile",
      "[MaxIters(8)] do { x *= a; i--; } while (i > 0);", "", "", reshape},
     on_tree<for_of_do_with_counter>},
    {{"while-loops", "gradients of while loops with break are wrong; others crash .bwds",
      "while (i < n) { if (x > 3) break; x *= a; i++; }", "", "", reshape},
     on_tree<for_of_while>},
    {{"no-diff-values", "a no_diff parameter as a component or assigned to an element is an internal error or a crash",
      "float3(k, x, k) * a", "", "", annotate},
     on_tree<rewrite_detached>},
    {{"unset-tangents", ".fwds hands on a derivative that nothing set where a call may write a constant",
      "float x = 0; add(x, a);", "", "", annotate},
     on_tree<set_unset_tangents>},
    {{"scalar-operands", "a vector combined with a scalar variable loses the gradient of the scalar",
      "shader-slang#12071", "", "", annotate},
     on_tree<rewrite_scalars>},
    {{"calls-before-loops",
      "what a call wrote and a loop adds gets its gradient once, or not at all; what it wrote in a loop, also in a "
      "condition, and a branch uses gets that of other trips, too",
      "f(a, c); for (int i = 0; i < 3; i++) s += c;", "", "", annotate},
     on_tree<rewrite_call_outputs>},
    {{"elements-after-loops", "a vector that a loop adds and whose element a call then writes gets one share too many",
      "for (int i = 0; i < 3; i++) w = w + v; f(a, v.y);", "", "", annotate},
     on_tree<rewrite_late_elements>},
    {{"elements-in-branches", "the gradient of another vector is taken where a branch writes an element",
      "if (a > 0) { v.y = a; w = v.yx; }", "", "", annotate},
     on_tree<rewrite_elements>},
    {{"aliasing-elements", "of two reads that meet in one element, one share is lost",
      "for (...) s += x[i] * x[(2 * i + 1) % 8];", "", "", annotate},
     on_tree<rewrite_aliasing_elements>},
    {{"parts",
      "another variable is copied over one that was written in part, where branches meet or a loop begins; an array "
      "with one element written in part and another as a whole gets wrong gradients, or does not compile",
      "if (a > b) x.p = a; else y.q = b;", "", "", annotate},
     on_tree<rewrite_parts>},
    {{"equal-indices", ".bwds of an element written at two equal run-time indices does not compile", "m[k][k] = a;", "",
      "", annotate},
     on_tree<rewrite_diagonals>},
    {{"returns-in-loops", ".bwds crashes on a loop in a branch of which the compiler knows that its first trip returns",
      "if (c) for (int i = 0; i < n; i++) { if (i < 2) return a; a *= b; }", "", "", annotate},
     on_tree<hide_returns_in_loops>},
    {{"long-chains",
      "the time to compile .bwds doubles with each statement of a chain of Slang's own functions: 25 never end",
      "v = exp(-v) + x; v = exp(-v) + x; ...", "", "", annotate},
     chains},
    {{"fmod-gradient", "fmod(x, y) has no gradient for y", "shader-slang#10071", "", "", annotate}, remainders},
    {{"second-derivatives", "the derivative of a derivative crashes on calls that pass structs, arrays or inout values",
      "fwd_diff of bwd_diff of f(s), S s", "", "", annotate},
     inlining},
};

std::string known_names()
{
    std::string names;
    for (const Rule& rule : table)
        names += cat(names.empty() ? "" : ", ", rule.about.name);
    return names;
}

RuleMask bit_of(std::string_view name)
{
    for (size_t i = 0; i < table.size(); ++i)
        if (table[i].about.name == name)
            return RuleMask(1) << i;
    return 0;
}

/// The numbers of "2026.12.3".
std::vector<long> numbers_of(std::string_view version)
{
    std::vector<long> numbers{0};
    for (const char c : version) {
        if (std::isdigit(static_cast<unsigned char>(c)))
            numbers.back() = numbers.back() * 10 + (c - '0');
        else if (c == '.')
            numbers.push_back(0);
        else
            break;
    }
    return numbers;
}

bool is_needed(const RewriteRule& rule, const std::vector<long>& version)
{
    return (rule.since.empty() || numbers_of(rule.since) <= version) &&
        (rule.until.empty() || version < numbers_of(rule.until));
}

} // namespace

const ParsedSource& RuleContext::parsed(const EditedText& text) const
{
    if (!m_parsed || m_parsed->text() != text.text()) {
        std::vector<const syntax::Scopes*> imported;
        for (const std::shared_ptr<const ParsedSource>& source : around.imported)
            imported.push_back(&source->scopes());
        m_parsed = std::make_unique<const ParsedSource>(text.text(), std::move(imported), around.macros);
    }
    return *m_parsed;
}

std::vector<RewriteRule> rewrite_rules()
{
    std::vector<RewriteRule> rules;
    for (const Rule& rule : table)
        rules.push_back(rule.about);
    return rules;
}

RuleMask rules_of_setting(std::string_view setting)
{
    RuleMask mask = 0;
    const std::vector<long> version = numbers_of(spGetBuildTagString());
    for (size_t i = 0; i < table.size() && setting != "0"; ++i)
        mask |= is_needed(table[i].about, version) ? RuleMask(1) << i : 0;
    for (std::string_view rest = setting == "0" ? "" : setting; !rest.empty();) {
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        const RuleMask bit = item.starts_with('-') ? bit_of(item.substr(1)) : 0;
        if (!bit)
            fail_value("SLANGPY_REWRITES: expected \"0\" (no rules) or \"-name,-name\" (all but these), got \"",
                       setting, "\"; the rules are: ", known_names());
        mask &= ~bit;
    }
    return mask;
}

RuleMask rules_of_names(const std::vector<std::string>& names)
{
    RuleMask mask = 0;
    for (const std::string& name : names) {
        if (!bit_of(name))
            fail_value("there is no rule \"", name, "\"; the rules are: ", known_names());
        mask |= bit_of(name);
    }
    return mask;
}

std::vector<std::string> names_of_rules(RuleMask mask)
{
    std::vector<std::string> names;
    for (size_t i = 0; i < table.size(); ++i)
        if (mask & (RuleMask(1) << i))
            names.emplace_back(table[i].about.name);
    if (mask & (RuleMask(1) << library_rule))
        names.emplace_back("library");
    return names;
}

void apply_rules(EditedText& text, const RuleContext& context, RuleMask rules)
{
    for (size_t i = 0; i < table.size(); ++i)
        if (rules & (RuleMask(1) << i)) {
            text.begin_rule(unsigned(i));
            table[i].apply(text, context);
        }
}

} // namespace spy
