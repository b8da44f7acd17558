#pragma once
// The statements of a function, and what is put behind them.
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/passed.h"

#include <string>
#include <string_view>

namespace spy {

/// The last token of the statement that begins at token i, with all of its branches and its body.
size_t last_token(const BracketedText& text, size_t i, size_t limit);

/// Whether more statements may stand where one begins: not so behind `if (...)`, `else` and the like.
bool begins_freely(const BracketedText& text, size_t begin);

/// Whether the path at tokens [begin, end) is the left side of a statement `v[i] += e;`, or all of `v[i]++;`, and its
/// indices can be written twice.
bool is_update(const BracketedText& text, size_t begin, size_t end);
/// `= read + (`, in place of the two characters behind the path of such a statement; a bracket goes before its end.
std::string written_out(const BracketedText& text, size_t end, std::string_view read);
/// The ";" of such a statement.
size_t end_of_update(const BracketedText& text, size_t end);

class Statements {
public:
    Statements(const BracketedText& text, const FunctionBody& body) : m_text(text), m_body(body) { }

    /// The first token of the statement around a token, or npos.
    size_t begin_of(size_t i) const;
    /// The ";" of a statement that holds a token and no other statement; npos where the statement is of another kind.
    size_t end_of(size_t i) const;
    /// Passes a variable through an operation behind the statement around a token, with braces around both where one
    /// statement is expected. Nothing is done where the statement holds others, leaves the function, or is a label's.
    void pass_behind(size_t i, std::string_view name, bool is_float, Places& places) const;

private:
    std::string_view at(size_t i) const { return m_text.at(i); }
    bool ends_header(size_t i) const;
    bool ends_label(size_t i) const;

    const BracketedText& m_text;
    FunctionBody m_body;
};

} // namespace spy
