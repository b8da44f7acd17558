#pragma once
// Assignments inside expressions, as statements of their own.
#include "slang/rewrite/edits.h"

namespace spy {

/// In functions that may be differentiable: `x.y = a, z = b;` -> `x.y = a; z = b;`, `(x.y = a);` -> `x.y = a;`,
/// `(c[0]).x = a;` -> `c[0].x = a;`, `z = x.y = a;` -> `x.y = a; z = x.y;`, with braces where one statement is
/// expected. Slang 2026.12 differentiates writes of parts wrongly in places, and the other steps mend such statements.
/// Lines stay.
void rewrite_sequences(EditedText& text);

} // namespace spy
