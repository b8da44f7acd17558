#include "slang/rewrite/loops.h"

#include "core/tokens.h"
#include "slang/constants.h"
#include "slang/rewrite/bracketed.h"
#include "slang/rewrite/edits.h"
#include "slang/rewrite/loop_text.h"

#include <slang.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <vector>

namespace spy {
namespace {

/// How often a loop runs at most: a number, or an expression that Slang can fold.
struct Trips {
    long number = -1;
    std::string expression; ///< where the number is not known
    bool known() const { return number >= 0 || !expression.empty(); }
};

struct Loop {
    size_t keyword, body_begin, body_end; ///< tokens
    bool unrolled = false;
    size_t limit_begin = 0, limit_end = 0; ///< bytes of n in [MaxIters(n)], if there is one
    Trips trips = {};
    int parent = -1;
    long room = 0;           ///< what [MaxIters] is to say, where all are numbers
    bool may_vanish = false; ///< the compiler may see that it runs once, whatever [MaxIters] says
};

class LoopScanner : LoopText {
public:
    explicit LoopScanner(std::string_view text) : LoopText(text) { }

    std::vector<Edit> whiles()
    {
        for (size_t i = 0; i < m_tokens.size(); ++i)
            if (at(i) == "while")
                rewrite_while(i);
        return sorted();
    }

    std::vector<Edit> dos()
    {
        const bool differentiates = m_text.find("ifferentiable") != npos;
        if (differentiates)
            m_constants = constants_of(m_text);
        for (size_t i = 0; i < m_tokens.size() && m_balanced; ++i)
            if (at(i) == "do")
                rewrite_do(i, differentiates);
        return sorted();
    }

    std::vector<Edit> nests()
    {
        dos(); // those of one trip
        m_edits.clear();
        if (m_balanced) {
            find_known();
            find_loops();
            fit_states();
        }
        return sorted();
    }

private:
    std::vector<Edit> sorted()
    {
        std::sort(m_edits.begin(), m_edits.end(),
                  [](const Edit& a, const Edit& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
        return std::move(m_edits);
    }

    // --- while
    /// `while (c)` that a statement follows. That of `do ... while (c);` and loops without body stay.
    void rewrite_while(size_t i)
    {
        const size_t close = at(i + 1) == "(" ? m_match[i + 1] : npos;
        if (close == npos || close == i + 2)
            return;
        const std::string_view next = at(close + 1);
        if (next.empty() || std::string_view(";),}]").find(next[0]) != npos)
            return;
        m_edits.push_back({m_tokens[i].begin, m_tokens[i].end, "for"});
        m_edits.push_back({m_tokens[i + 1].begin, m_tokens[i + 1].end, "(; "});
        size_t begin = m_tokens[close].begin, end = m_tokens[close].end;
        if (m_tokens[close - 1].end < begin && m_text[begin - 1] == ' ')
            --begin; // the columns behind stay
        else if (end < m_text.size() && m_text[end] == ' ')
            ++end;
        m_edits.push_back({begin, end, ";)"});
    }

    // --- do
    /// `do ... while (c);` with a continue. One that runs once, as it says, needs no [MaxIters] in a derivative.
    void rewrite_do(size_t i, bool differentiates)
    {
        const size_t tail = statement_end(i + 1);
        const size_t close = tail != npos && at(tail) == "while" && at(tail + 1) == "(" ? m_match[tail + 1] : npos;
        if (close == npos || close == tail + 2 || at(close + 1) != ";" || !continues(i + 1, tail))
            return;
        const std::string_view removed = between(tail, close + 2);
        if (between(tail - 1, close + 2).find('#') != npos)
            return;            // the branches of an #if may have one condition each
        std::string condition; // in one line, without comments
        for (size_t k = tail + 2; k < close; ++k)
            condition.append(at(k)).append(k + 1 < close && m_tokens[k].end < m_tokens[k + 1].begin ? " " : "");
        const bool is_once = differentiates && (condition == "false" || m_constants.evaluate(condition) == 0);
        if (is_once)
            m_once.insert(i);
        const std::string name = is_once ? "_spy_once_" + std::to_string(i) : "_spy_again";
        const std::string head = is_once ? "int " + name + " = 0; " + name + " < 1; " + name + "++"
                                         : "bool " + name + " = true; " + name + "; " + name + " = (" + condition + ")";
        m_edits.push_back({m_tokens[i].begin, m_tokens[i].end, "for (" + head + ")"});
        m_edits.push_back({m_tokens[tail].begin, m_tokens[close + 1].end,
                           std::string(size_t(std::count(removed.begin(), removed.end(), '\n')), '\n')});
    }

    /// Whether a continue in [begin, end) is one of the loop whose body that is.
    bool continues(size_t begin, size_t end) const
    {
        for (size_t i = begin; i < end; ++i) {
            if (at(i) == "continue")
                return true;
            if (at(i) != "for" && at(i) != "while" && at(i) != "do")
                continue;
            const size_t behind = statement_end(i);
            if (behind == npos)
                return false;
            i = behind - 1;
        }
        return false;
    }

    // --- which loops there are
    void find_loops()
    {
        std::vector<bool> is_tail(m_tokens.size());
        for (size_t i = 0; i < m_tokens.size(); ++i) {
            const std::string_view word = at(i);
            if ((word != "for" && word != "while" && word != "do") || is_tail[i])
                continue;
            const size_t body = word == "do" ? i + 1 : at(i + 1) == "(" ? m_match[i + 1] + 1 : npos;
            const size_t end = body == npos ? npos : statement_end(body);
            if (end == npos)
                continue;
            Loop loop{i, body, end};
            read_attributes(loop);
            if (word == "do" && end < is_tail.size())
                is_tail[end] = true;
            const Trips counted = word == "for" ? trips_of(i + 2, m_match[i + 1], loop)
                                                : Trips{m_once.count(i) ? 1 : -1, {}};
            loop.may_vanish = (counted.known() ? counted.number == 1 : has_known_condition(loop)) ||
                has_known_exit(loop);
            if (!loop.trips.known())
                loop.trips = counted;
            for (size_t outer = m_loops.size(); outer-- > 0 && loop.parent < 0;)
                if (m_loops[outer].body_end > i && !m_loops[outer].unrolled)
                    loop.parent = int(outer);
            m_loops.push_back(loop);
        }
    }

    /// Variables that begin as constants: `int i = 0;`.
    void find_known()
    {
        static const std::set<std::string_view> types = {"int", "uint", "bool", "var", "let"};
        for (size_t i = 0; i + 3 < m_tokens.size(); ++i) {
            size_t end = i + 3;
            while (end < m_tokens.size() && at(end) != ";" && at(end) != ",")
                ++end;
            if (types.count(at(i)) && at(i + 2) == "=" &&
                (at(i + 3) == "true" || at(i + 3) == "false" || m_constants.evaluate(between(i + 3, end))))
                m_known.insert(at(i + 1));
        }
    }

    /// Whether all that a loop's condition reads begins as a constant, or all that a comparison in it does.
    bool has_known_condition(const Loop& loop) const
    {
        size_t begin = loop.keyword + 2, end = npos;
        if (at(loop.keyword) == "do")
            begin = loop.body_end + 2;
        if (begin < m_tokens.size())
            end = m_match[begin - 1];
        if (at(loop.keyword) == "for" && end != npos) {
            while (begin < end && at(begin) != ";")
                ++begin;
            for (end = ++begin; end < m_tokens.size() && at(end) != ";";)
                ++end;
        }
        if (end == npos || end > m_tokens.size())
            return false;
        return begin < end && (is_known(begin, end) || compares_known(begin, end));
    }

    /// Whether a comparison in tokens [begin, end) reads only what begins as a constant: `i < 1 && x < a`.
    bool compares_known(size_t begin, size_t end) const
    {
        bool compares = false;
        size_t part = begin;
        for (size_t i = begin; i < end; ++i) {
            if (at(i) == "(" && m_match[i] != npos) {
                if (compares_known(i + 1, m_match[i]))
                    return true;
                i = m_match[i];
            } else if ((at(i) == "&" || at(i) == "|") && at(i + 1) == at(i)) {
                if (compares && is_known(part, i))
                    return true;
                compares = false;
                part = i++ + 2;
            } else
                compares |= std::string_view("<>=!").find(at(i)) != npos && at(i + 1) != "(";
        }
        return compares && is_known(part, end);
    }

    /// Whether all that tokens [begin, end) read begins as a constant.
    bool is_known(size_t begin, size_t end) const
    {
        static const std::set<std::string_view> others = {"false", "int", "uint", "bool"};
        for (size_t i = begin; i < end; ++i)
            if (is_word(at(i)) && !others.count(at(i)) && !is_float_word(at(i)) && !m_known.count(at(i)) &&
                !m_constants.is_constant(at(i)))
                return false;
        return true;
    }

    /// Whether the body ends the loop under such a condition: `if (i > 0) break;`.
    bool has_known_exit(const Loop& loop) const
    {
        for (size_t i = loop.body_begin; i + 1 < loop.body_end; ++i) {
            const size_t condition = at(i) == "if" && at(i + 1) == "(" ? m_match[i + 1] : npos;
            if (condition == npos || !(is_known(i + 2, condition) || compares_known(i + 2, condition)))
                continue;
            const size_t end = std::min(statement_end(i), loop.body_end);
            for (size_t k = condition; k < end; ++k)
                if (at(k) == "break" || at(k) == "return")
                    return true;
        }
        return false;
    }

    void read_attributes(Loop& loop) const
    {
        for (size_t close = loop.keyword; close-- > 0 && at(close) == "]" && m_match[close] != npos;
             close = m_match[close])
            for (size_t i = m_match[close] + 1; i < close; ++i) {
                if (at(i) == "ForceUnroll")
                    loop.unrolled = true;
                if (at(i) != "MaxIters" || at(i + 1) != "(")
                    continue;
                const std::string_view limit = between(i + 2, m_match[i + 1]);
                loop.limit_begin = size_t(limit.data() - m_text.data());
                loop.limit_end = loop.limit_begin + limit.size();
                if (const std::optional<long> value = m_constants.evaluate(limit); value && *value >= 0)
                    loop.trips.number = *value;
                else
                    loop.trips.expression = limit;
            }
    }

    /// Trips of `for (int i = a; i < b; i += c)` with header tokens [begin, end), as Slang counts them.
    Trips trips_of(size_t begin, size_t end, const Loop& loop) const
    {
        size_t first = begin, second;
        while (first < end && at(first) != ";")
            ++first;
        for (second = first + 1; second < end && at(second) != ";";)
            ++second;
        size_t equals = begin;
        while (equals < first && at(equals) != "=")
            ++equals;
        if (second >= end || equals == begin || equals >= first || !is_word(at(equals - 1)))
            return {};
        const std::string_view name = at(equals - 1);
        for (size_t i = loop.body_begin; i < loop.body_end; ++i)
            if (at(i) == name && is_changed(i))
                return {};
        const std::optional<long> start = m_constants.evaluate(between(equals + 1, first));
        const long step = step_of(name, second + 1, end);
        size_t sign = first + 1;
        while (sign < second && at(sign) != "<" && at(sign) != ">")
            ++sign;
        const bool inclusive = at(sign + 1) == "=";
        const bool right = at(first + 1) == name && sign == first + 2; // the limit is on the right
        if (!start || !step || sign >= second ||
            !(right || (second - 1 == sign + 1 + inclusive && at(second - 1) == name)))
            return {};
        const std::string_view limit = right ? between(sign + 1 + inclusive, second) : between(first + 1, sign);
        if (const std::optional<long> stop = m_constants.evaluate(limit)) {
            const long distance = std::max((step > 0 ? *stop - *start : *start - *stop) + inclusive, 0l);
            return {(distance + std::labs(step) - 1) / std::labs(step), {}};
        }
        if (step != 1 || *start < 0 || !m_constants.is_constant(limit))
            return {};
        return {-1, std::string(limit) + (inclusive ? " + 1" : "")};
    }

    bool is_changed(size_t i) const
    {
        const bool sum = (at(i + 1) == "+" && at(i + 2) == "+") || (at(i + 1) == "-" && at(i + 2) == "-");
        const bool before = i >= 2 &&
            ((at(i - 1) == "+" && at(i - 2) == "+") || (at(i - 1) == "-" && at(i - 2) == "-"));
        const bool set = at(i + 1) == "=" && at(i + 2) != "=";
        const bool update = at(i + 2) == "=" && std::string_view("+-*/%&|^").find(at(i + 1)) != npos;
        return sum || before || set || update;
    }

    long step_of(std::string_view name, size_t begin, size_t end) const
    {
        const std::string_view text = between(begin, end);
        std::string bare;
        for (char c : text)
            if (!std::isspace(static_cast<unsigned char>(c)))
                bare += c;
        const std::string variable(name);
        if (bare == variable + "++" || bare == "++" + variable)
            return 1;
        if (bare == variable + "--" || bare == "--" + variable)
            return -1;
        if (!bare.starts_with(variable + "+=") && !bare.starts_with(variable + "-="))
            return 0;
        const std::optional<long> size = m_constants.evaluate(std::string_view(bare).substr(name.size() + 2));
        return !size || *size <= 0 ? 0 : bare[name.size()] == '+' ? *size : -*size;
    }

    // --- room for states
    /// The state of k loops inside each other is kept in an array [n1][n2]...[nk], the outermost loop first, but
    /// indexed with the innermost loop's counter first.
    void fit_states()
    {
        for (size_t root = 0; root < m_loops.size(); ++root) {
            if (m_loops[root].parent >= 0 || m_loops[root].unrolled)
                continue;
            std::vector<size_t> nest;
            for (size_t i = root; i < m_loops.size(); ++i)
                if (!m_loops[i].unrolled && root_of(i) == root)
                    nest.push_back(i);
            const auto known = [&](size_t i) { return m_loops[i].trips.known(); };
            if (nest.size() < 2 || !std::all_of(nest.begin(), nest.end(), known))
                continue;
            const auto number = [&](size_t i) { return m_loops[i].trips.number >= 0; };
            if (std::all_of(nest.begin(), nest.end(), number))
                fit_numbers(nest);
            else
                fit_expressions(nest);
        }
    }

    size_t root_of(size_t i) const
    {
        while (m_loops[i].parent >= 0)
            i = size_t(m_loops[i].parent);
        return i;
    }

    void fit_numbers(const std::vector<size_t>& nest)
    {
        long most = 0, least = 2;
        for (size_t i : nest)
            most = std::max(most, m_loops[i].trips.number), least = std::min(least, m_loops[i].trips.number);
        for (size_t i : nest)
            m_loops[i].room = most;
        // Equal sizes hold whichever order Slang takes, but large ones waste memory: there they follow the faulty
        // order. Loops of one trip may be gone before, and with them their dimension.
        constexpr long small = 4;
        const bool is_faulty = std::string_view(spGetBuildTagString()).starts_with("2026.12");
        if (most > small && least > 1 && is_faulty)
            fit_order(nest);
        for (size_t i : nest)
            if (m_loops[i].room != m_loops[i].trips.number)
                set_limit(m_loops[i], std::to_string(m_loops[i].room));
    }

    void fit_order(const std::vector<size_t>& nest)
    {
        for (size_t i : nest)
            m_loops[i].room = 1;
        for (size_t leaf : nest) {
            std::vector<Loop*> chain; // from the outermost
            for (int i = int(leaf); i >= 0; i = m_loops[size_t(i)].parent)
                chain.insert(chain.begin(), &m_loops[size_t(i)]);
            for (size_t p = 0; p < chain.size(); ++p)
                for (size_t q = 0; p + q < chain.size(); ++q)
                    chain[p]->room = std::max(chain[p]->room, chain[q]->trips.number);
            // Where an outer one vanishes, its dimension is gone: an inner one stands further out.
            const auto vanishes = [](const Loop* loop) { return loop->may_vanish; };
            if (std::any_of(chain.begin(), chain.end(), vanishes))
                for (Loop* loop : chain)
                    loop->room = std::max(loop->room, loop->trips.number);
        }
    }

    void fit_expressions(const std::vector<size_t>& nest)
    {
        long most = -1;
        std::vector<std::string> others;
        for (size_t i : nest) {
            const Trips& trips = m_loops[i].trips;
            most = std::max(most, trips.number);
            if (trips.number < 0 && std::find(others.begin(), others.end(), trips.expression) == others.end())
                others.push_back(trips.expression);
        }
        if (most < 0 && others.size() == 1)
            return;
        std::string all; // a sum, because nothing here folds like a maximum of many
        for (const std::string& text : others)
            all += (all.empty() ? "(" : " + (") + text + ")";
        if (most >= 0 && others.size() == 1)
            all = "(" + all + " > " + std::to_string(most) + " ? " + all + " : " + std::to_string(most) + ")";
        else if (most > 0)
            all += " + " + std::to_string(most);
        for (size_t i : nest)
            set_limit(m_loops[i], all);
    }

    void set_limit(const Loop& loop, const std::string& limit)
    {
        if (loop.limit_end > loop.limit_begin) {
            m_edits.push_back({loop.limit_begin, loop.limit_end, limit});
            return;
        }
        const std::string attribute = "[MaxIters(" + limit + ")] ";
        size_t begin = m_tokens[loop.keyword].begin;
        const size_t end = begin;
        while (begin > 0 && m_text[begin - 1] == ' ' && end - begin < attribute.size())
            --begin; // indentation makes room
        m_edits.push_back(
            {begin, end, (begin > 0 && begin < end && in_word(m_text[begin - 1]) ? " " : "") + attribute});
    }

    Constants m_constants;
    std::set<std::string_view> m_known; ///< variables that begin as constants
    std::set<size_t> m_once;            ///< `do` that are rewritten to loops of one trip
    std::vector<Loop> m_loops;          ///< outer ones before inner ones
    std::vector<Edit> m_edits;
};

} // namespace

std::vector<Edit> rewrite_while_loops(std::string_view source)
{
    return source.find("while") == npos ? std::vector<Edit>() : LoopScanner(source).whiles();
}

std::vector<Edit> rewrite_do_loops(std::string_view source)
{
    const bool may = source.find("continue") != npos && source.find("while") != npos;
    return may ? LoopScanner(source).dos() : std::vector<Edit>();
}

std::vector<Edit> rewrite_nested_loops(std::string_view source)
{
    const bool may = source.find("ifferentiable") != npos &&
        (source.find("while") != npos || source.find("for") != npos);
    return may ? LoopScanner(source).nests() : std::vector<Edit>();
}

} // namespace spy
