#pragma once
// Calls that find all memory where an earlier call of their plan found it: what that one worked out holds for them,
// too.
#include "call/stages.h"

namespace spy {

/// What a call works out from where its arguments lie. Holds none of their memory.
struct Repeat {
    std::vector<int64_t> facts; ///< addresses, sizes and strides of all views
    Shape shape;
    int64_t total = 0;
    Selected selected;
    std::vector<uint8_t> bytes; ///< arguments of the views and of the call itself; the others are zero
    std::vector<Sums> sums;
    std::vector<AddedRange> added;
};

/// By what calls of a plan are told apart: where their views lie. Empty where a call must go through all stages. They
/// lie in the call's signature.
std::span<const int64_t> repeat_facts(const Call& call);

/// What an earlier call with these facts worked out; null: there was none.
std::shared_ptr<const Repeat> find_repeat(const Call& call, std::span<const int64_t> facts);

/// Of a call that goes through all stages: it is remembered when one with its facts went through them before, since
/// most facts come once or many times.
class RepeatNote {
public:
    RepeatNote(const Call& call, std::span<const int64_t> facts);

    /// `is_placed`: something was copied, moved or shared for this call alone.
    void remember(const Measured& measured, const Selected& selected, bool is_placed, const Written& written);

private:
    const Call& m_call;
    std::shared_ptr<Repeat> m_repeat; ///< null: nothing is remembered
};

/// The stages of a call whose views are known: only values, results and what a launch keeps alive are new.
Measured measure_again(const Call& call, const Repeat& repeat);
Written write_again(const Call& call, const Measured& measured, const Repeat& repeat);
/// The part of the arguments that does not change; `out` of a writing that has nothing else.
Written write_views(const Call& call, const Measured& measured, const Selected& selected);

} // namespace spy
