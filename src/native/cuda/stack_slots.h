#pragma once
// Arrays that NVRTC puts into one place though both are alive.
#include <string>
#include <string_view>

namespace spy {

/// NVRTC 12.8 to 13.0 may give an array in local memory the place of another one that is read later: kernels with wrong
/// numbers, without a message. Whether a version does.
bool cuda_shares_places(int major, int minor);

/// Whether a kernel keeps arrays in local memory. The tables that sin, cos and tan of float need for large arguments
/// are none.
bool cuda_has_local_arrays(std::string_view ptx);

/// What cuda_arrays_apart puts in front of the library's arrays, and into them. Elements at a literal index, components
/// of vectors that are read, and those of local vectors that are written stay in registers.
inline constexpr std::string_view cuda_apart_supplement = R"(
template <int N> struct _spy_index { SLANG_CUDA_CALL constexpr operator int() const { return N; } };
template <typename T> SLANG_CUDA_CALL T* _spy_apart(T* p) { asm("" : "+l"(p)); return p; }
template <typename V> SLANG_CUDA_CALL auto* _spy_element_apart(V* v, int i)
{
    return _spy_apart(_slang_vector_get_element_ptr(v, i));
}
template <typename V> SLANG_CUDA_CALL auto _spy_y(const V& v, int) -> decltype(v.y) { return v.y; }
template <typename V> SLANG_CUDA_CALL auto _spy_y(const V& v, long) -> decltype(v.x) { return v.x; }
template <typename V> SLANG_CUDA_CALL auto _spy_z(const V& v, int) -> decltype(v.z) { return v.z; }
template <typename V> SLANG_CUDA_CALL auto _spy_z(const V& v, long) -> decltype(v.x) { return v.x; }
template <typename V> SLANG_CUDA_CALL auto _spy_w(const V& v, int) -> decltype(v.w) { return v.w; }
template <typename V> SLANG_CUDA_CALL auto _spy_w(const V& v, long) -> decltype(v.x) { return v.x; }
template <typename T, typename V> SLANG_CUDA_CALL T _spy_picked(const V& v, int i)
{
    const T low = i == 1 ? _spy_y(v, 0) : v.x, high = i == 3 ? _spy_w(v, 0) : _spy_z(v, 0);
    return i < 2 ? low : high;
}
template <typename V> struct _spy_written {
    V& v;
    int i;
    template <typename T> SLANG_CUDA_CALL void operator=(T t)
    {
        v.x = i == 0 ? decltype(v.x)(t) : v.x;
        _spy_set_y(v, i == 1 ? decltype(v.x)(t) : _spy_y(v, 0), 0);
        _spy_set_z(v, i == 2 ? decltype(v.x)(t) : _spy_z(v, 0), 0);
        _spy_set_w(v, i == 3 ? decltype(v.x)(t) : _spy_w(v, 0), 0);
    }
};
template <typename V> SLANG_CUDA_CALL _spy_written<V> _spy_written_of(V& v, int i) { return {v, i}; }
)";
inline constexpr std::string_view cuda_apart_members = R"(
    template <int N> SLANG_CUDA_CALL T& operator[](_spy_index<N>) { return m_data[N]; }
    template <int N> SLANG_CUDA_CALL const T& operator[](_spy_index<N>) const { return m_data[N]; }
)";

/// The same source with addresses of elements that NVRTC cannot follow, where their index is not a literal: so each
/// array keeps its place. `program`: where Slang's library ends in it. Empty where the source is not Slang's.
std::string cuda_arrays_apart(std::string_view source, size_t program);

} // namespace spy
