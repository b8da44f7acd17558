// Goes in front of Slang's own C++ prelude: what the containers there do with an index outside. It reads zeros, what is
// written to it is lost, and the launch says so (src/native/cpu/device.cpp).
//
// Slang's macros stand at the beginning of functions whose last line reads or writes `data[index]` or `m_data[index]`.
// Local variables of these names hide the members.
#include <stddef.h>

#if !defined(__GNUC__)
#define __builtin_expect(condition, expected) (condition)
#endif

// Set by kernels, read by the device.
#if defined(_MSC_VER)
#include <atomic>
extern "C" __declspec(dllexport) std::atomic<int> _spy_outside{0};
#define SPY_NOTE(flag) flag.store(1, std::memory_order_relaxed)
#else
extern "C" __attribute__((visibility("default"))) int _spy_outside = 0;
#define SPY_NOTE(flag) __atomic_store_n(&flag, 1, __ATOMIC_RELAXED)
#endif

template<class T>
struct SpyMutable { using Type = T; };
template<class T>
struct SpyMutable<const T> { using Type = T; };

// Where an element that does not exist is read and written.
template<class T>
inline T* _spy_nowhere(T*)
{
    static thread_local typename SpyMutable<T>::Type place;
    place = typename SpyMutable<T>::Type{};
    SPY_NOTE(_spy_outside);
    return &place;
}

template<size_t Size, class Word>
inline Word* _spy_nowhere_bytes(Word*)
{
    static thread_local typename SpyMutable<Word>::Type place[(Size + sizeof(Word) - 1) / sizeof(Word)];
    for (auto& word : place)
        word = 0;
    SPY_NOTE(_spy_outside);
    return place;
}

// Components of vectors.
template<class T>
inline T* _spy_part(T* parts, size_t index, size_t count)
{
    return __builtin_expect(index < count, 1) ? parts + index : _spy_nowhere(parts);
}

#define SLANG_BOUND_CHECK(index, count) \
    auto* data = this->data; \
    if (__builtin_expect(index >= this->count, 0)) { \
        data = _spy_nowhere(data); \
        index = 0; \
    }
#define SLANG_BOUND_CHECK_BYTE_ADDRESS(index, elemSize, sizeInBytes) \
    auto* data = this->data; \
    if (__builtin_expect(index > this->sizeInBytes || this->sizeInBytes - index < (elemSize), 0)) { \
        data = _spy_nowhere_bytes<(elemSize)>(data); \
        index = 0; \
    }
#define SLANG_BOUND_CHECK_FIXED_ARRAY(index, SIZE) \
    auto* m_data = this->m_data; \
    if (__builtin_expect(index >= SIZE, 0)) { \
        m_data = _spy_nowhere(m_data); \
        index = 0; \
    }
