#include "slang/rewrite/edits.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

std::vector<Edit> insertions(std::map<size_t, std::string> texts)
{
    std::vector<Edit> edits;
    for (auto& [place, text] : texts)
        edits.push_back({place, place, std::move(text)});
    return edits;
}

EditedText::EditedText(std::string source) : m_text(std::move(source)), m_pieces{{0, m_text.size(), m_text.size(), 0}}
{
}

void EditedText::check(const std::vector<Edit>& edits) const
{
    size_t done = 0;
    for (const Edit& edit : edits) {
        if (edit.begin < done || edit.end < edit.begin || edit.end > m_text.size())
            fail_runtime("the changes of a source overlap at byte ", edit.begin, ": \"", edit.text, "\"");
        done = edit.end;
    }
}

/// Takes the pieces of the text before a pass, from its beginning to its end.
class EditedText::Cursor {
public:
    explicit Cursor(std::vector<Piece> pieces) : m_pieces(std::move(pieces)) { }

    /// Up to a byte of that text. Pieces without text go with what follows them, unless `all`.
    template <class Take>
    void until(size_t place, bool all, Take take)
    {
        while (m_next < m_pieces.size()) {
            Piece& piece = m_pieces[m_next];
            if (m_at + piece.length <= place && (m_at < place || all)) {
                m_at += piece.length;
                ++m_next;
                take(piece);
                continue;
            }
            if (m_at < place) {
                take(split(piece, place - m_at));
                m_at = place;
            }
            return;
        }
    }

private:
    /// The head of a piece, which is cut off. New text stands for all that it replaces, wherever it is cut.
    static Piece split(Piece& piece, size_t length)
    {
        Piece head = piece;
        head.length = length;
        piece.length -= length;
        if (piece.rules == 0)
            head.end = piece.begin = head.begin + length;
        return head;
    }

    std::vector<Piece> m_pieces;
    size_t m_next = 0, m_at = 0;
};

/// What was moved, where it stands after a pass.
std::vector<MovedPart> EditedText::moved_by(const std::vector<Edit>& edits) const
{
    std::vector<MovedPart> result;
    const bool has_origins = std::any_of(edits.begin(), edits.end(), [](const Edit& e) { return !e.origins.empty(); });
    if (m_moved.empty() && !has_origins)
        return result;
    const TextMap now = has_origins ? map() : TextMap();
    const auto source_of = [&](size_t at) {
        const MovedPart* part = now.moved(at);
        return part == nullptr ? now.before(at) : part->begin + (at - part->new_begin);
    };
    auto old = m_moved.begin();
    size_t added = 0, removed = 0;
    const auto keep_until = [&](size_t place) {
        for (; old != m_moved.end() && old->new_begin < place; ++old)
            result.push_back({old->new_begin + added - removed, old->new_end + added - removed, old->begin});
    };
    for (const Edit& edit : edits) {
        keep_until(edit.begin);
        while (old != m_moved.end() && old->new_begin < edit.end) // it was replaced
            ++old;
        for (const Origin& origin : edit.origins) {
            const size_t at = edit.begin + added - removed + origin.at;
            result.push_back({at, at + origin.length, source_of(origin.from)});
        }
        added += edit.text.size();
        removed += edit.end - edit.begin;
    }
    keep_until(m_text.size());
    return result;
}

void EditedText::apply(const std::vector<Edit>& edits)
{
    check(edits);
    if (edits.empty())
        return;
    m_moved = moved_by(edits);
    std::string text;
    std::vector<Piece> pieces;
    Cursor cursor(std::move(m_pieces));
    size_t done = 0, source_at = 0;
    const auto keep = [&](const Piece& piece) {
        pieces.push_back(piece);
        source_at = piece.end;
    };
    for (const Edit& edit : edits) {
        text.append(m_text, done, edit.begin - done);
        cursor.until(edit.begin, false, keep);
        Piece made{source_at, source_at, edit.text.size(), m_rule};
        bool is_first = true;
        cursor.until(edit.end, edit.end > edit.begin, [&](const Piece& piece) {
            made.begin = is_first ? piece.begin : std::min(made.begin, piece.begin);
            made.end = std::max(made.end, piece.end);
            made.rules |= piece.rules;
            source_at = made.end;
            is_first = false;
        });
        pieces.push_back(made);
        text += edit.text;
        done = edit.end;
    }
    text.append(m_text, done);
    cursor.until(m_text.size(), true, keep);
    m_acted |= m_rule;
    m_text = std::move(text);
    m_pieces = std::move(pieces);
}

TextMap EditedText::map() const
{
    std::vector<ChangedPart> parts;
    size_t at = 0;
    bool is_open = false; // the last part may grow
    for (const Piece& piece : m_pieces) {
        const size_t next = at + piece.length;
        if (piece.rules && is_open) {
            parts.back().end = std::max(parts.back().end, piece.end);
            parts.back().new_end = next;
            parts.back().rules |= piece.rules;
        } else if (piece.rules) {
            parts.push_back({piece.begin, piece.end, at, next, piece.rules});
        }
        is_open = piece.rules || (is_open && piece.length == 0);
        at = next;
    }
    return TextMap(std::move(parts), m_moved);
}

} // namespace spy
