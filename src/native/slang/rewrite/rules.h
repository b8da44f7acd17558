#pragma once
// The table of faults that are rewritten.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"
#include "slang/rewrite/rewrite.h"

#include <memory>

namespace spy {

/// What a rule may know beside the text.
struct RuleContext {
    RuleContext(const Surroundings& around, bool inlines_differentiable, bool has_remainders)
        : around(around),
          inlines_differentiable(inlines_differentiable),
          has_remainders(has_remainders)
    {
    }

    const Surroundings& around;
    bool inlines_differentiable;
    bool has_remainders; ///< sources can import slangpy_remainders

    /// The text as it is now, parsed once for all rules that change nothing.
    const ParsedSource& parsed(const EditedText& text) const;

private:
    mutable std::unique_ptr<const ParsedSource> m_parsed;
};

struct Rule {
    RewriteRule about;
    void (*apply)(EditedText& text, const RuleContext& context);
};

/// The bit after those of the rules: importing our library.
constexpr unsigned library_rule = 31;

void apply_rules(EditedText& text, const RuleContext& context, RuleMask rules);

} // namespace spy
