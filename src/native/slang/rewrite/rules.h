#pragma once
// The table of faults that are rewritten.
#include "slang/rewrite/edits.h"
#include "slang/rewrite/imports.h"
#include "slang/rewrite/rewrite.h"

namespace spy {

/// What a rule may know beside the text.
struct RuleContext {
    const Surroundings& around;
    bool inlines_differentiable = false;
    bool has_remainders = false; ///< sources can import slangpy_remainders
};

struct Rule {
    RewriteRule about;
    void (*apply)(EditedText& text, const RuleContext& context);
};

/// In the order in which they are applied.
const std::vector<Rule>& all_rules();

/// Behind those of the rules: the bit of what brings our library in.
constexpr unsigned library_rule = 31;

void apply_rules(EditedText& text, const RuleContext& context, RuleMask rules);

} // namespace spy
