#pragma once
// The two things Slang's COM-style API needs: an owning pointer and a blob of text.
#include <slang.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace spy {

template <typename T>
class ComPtr {
public:
    ComPtr() = default;
    ComPtr(T* ptr) : m_ptr(ptr)
    {
        if (m_ptr)
            m_ptr->addRef();
    }
    ComPtr(const ComPtr& other) : ComPtr(other.m_ptr) { }
    ComPtr(ComPtr&& other) noexcept : m_ptr(std::exchange(other.m_ptr, nullptr)) { }
    template <typename U>
        requires std::is_convertible_v<U*, T*>
    ComPtr(const ComPtr<U>& other) : ComPtr(static_cast<T*>(other.get()))
    {
    }
    ~ComPtr() { reset(); }
    ComPtr& operator=(ComPtr other) noexcept
    {
        std::swap(m_ptr, other.m_ptr);
        return *this;
    }

    T* get() const { return m_ptr; }
    T* operator->() const { return m_ptr; }
    explicit operator bool() const { return m_ptr != nullptr; }

    /// For out-parameters; drops what is held.
    T** put()
    {
        reset();
        return &m_ptr;
    }
    void reset()
    {
        if (m_ptr)
            std::exchange(m_ptr, nullptr)->release();
    }

private:
    T* m_ptr = nullptr;
};

inline bool same_guid(const SlangUUID& a, const SlangUUID& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

/// Zero-terminated text; unlike slang_createBlob it may be empty.
class TextBlob final : public ISlangBlob {
public:
    explicit TextBlob(std::string text) : m_text(std::move(text)) { }
    virtual ~TextBlob() = default;

    SlangResult queryInterface(const SlangUUID& guid, void** out) override
    {
        if (!same_guid(guid, ISlangUnknown::getTypeGuid()) && !same_guid(guid, ISlangBlob::getTypeGuid()))
            return SLANG_E_NO_INTERFACE;
        addRef();
        *out = this;
        return SLANG_OK;
    }
    uint32_t addRef() override { return ++m_count; }
    uint32_t release() override
    {
        const uint32_t left = --m_count;
        if (left == 0)
            delete this;
        return left;
    }
    const void* getBufferPointer() override { return m_text.c_str(); }
    size_t getBufferSize() override { return m_text.size(); }

private:
    std::string m_text;
    std::atomic<uint32_t> m_count{0};
};

inline std::string_view blob_view(ISlangBlob* blob)
{
    return blob ? std::string_view(static_cast<const char*>(blob->getBufferPointer()), blob->getBufferSize())
                : std::string_view();
}

inline std::string blob_text(ISlangBlob* blob) { return std::string(blob_view(blob)); }

inline std::string_view text_or_empty(const char* text) { return text ? text : ""; }

} // namespace spy
