#pragma once
// Changes of a source, and where each byte of the result comes from.
#include "core/text_map.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spy {

/// A part of new text that stands for text elsewhere: for messages about it.
struct Origin {
    size_t at, length; ///< in the new text
    size_t from;       ///< a byte of the text before
};

/// `text` in place of the bytes [begin, end).
struct Edit {
    size_t begin, end;
    std::string text;
    std::vector<Origin> origins = {}; ///< in the order of the text
};

/// Texts by the byte that they are put in front of.
std::vector<Edit> insertions(std::map<size_t, std::string> texts);

/// A source that passes change one after the other. Positions are exact through all of them: the text is kept as a list
/// of pieces, each a part of the source or new text in place of one.
class EditedText {
public:
    explicit EditedText(std::string source);

    const std::string& text() const { return m_text; }
    /// Who makes the changes that follow; a number below 32.
    void begin_rule(unsigned rule) { m_rule = uint32_t(1) << rule; }
    uint32_t acted() const { return m_acted; } ///< the rules that changed something

    /// One pass. The edits stand in the order of the text. Fails where two of them overlap, or leave the text.
    void apply(const std::vector<Edit>& edits);

    TextMap map() const;

private:
    struct Piece {
        size_t begin, end; ///< of the source
        size_t length;     ///< of the text
        uint32_t rules;    ///< 0: a part of the source
    };
    class Cursor;

    void check(const std::vector<Edit>& edits) const;
    std::vector<MovedPart> moved_by(const std::vector<Edit>& edits) const;

    std::string m_text;
    std::vector<Piece> m_pieces;
    std::vector<MovedPart> m_moved;
    uint32_t m_rule = 1, m_acted = 0;
};

} // namespace spy
