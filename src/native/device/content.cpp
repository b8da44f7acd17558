// Whether what a buffer was filled with can be what is read from it.
#include "device/content.h"

#include "core/error.h"

#include <algorithm>

namespace spy {

namespace {

/// The first scalar in an element, for messages; `none` where anything may be.
struct Search {
    ScalarType content;                  ///< what the buffer was filled with
    ScalarType first = ScalarType::none; ///< in the element
    bool fits = false;                   ///< one of the element's scalars has that size
};

/// Whether unsigned integers may be read to unpack others from their bits: floats, or smaller integers.
bool is_packed(ScalarType content, ScalarType reader)
{
    const ScalarInfo &is = scalar_info(content), &read = scalar_info(reader);
    return !read.is_float && !read.is_signed && reader != ScalarType::bool_ && (is.is_float || is.size < read.size);
}

void visit(const TypeLayout& type, Search& search)
{
    const bool holds_scalars = type.kind == TypeKind::scalar || type.kind == TypeKind::vector ||
        type.kind == TypeKind::matrix || type.kind == TypeKind::enum_;
    if (holds_scalars && type.scalar != ScalarType::none) {
        // A device's bool takes one byte or four.
        const bool is_bool = type.scalar == ScalarType::bool_;
        const uint64_t count = std::max<uint64_t>(uint64_t(type.rows) * type.cols, 1);
        const uint64_t bytes = is_bool ? type.size / count : scalar_info(type.scalar).size;
        if (search.first == ScalarType::none)
            search.first = type.scalar;
        search.fits = search.fits || bytes == scalar_info(search.content).size ||
            is_packed(search.content, type.scalar);
    } else if (type.kind == TypeKind::struct_ && !type.fields.empty()) {
        for (const FieldLayout& field : type.fields)
            if (field.type)
                visit(*field.type, search);
    } else if (type.kind == TypeKind::array && type.element) {
        visit(*type.element, search);
    } else {
        search.fits = true; // addresses, handles, empty structs: nothing is known
    }
}

std::string misfit_text(ScalarType content, const std::string& reader, ScalarType wanted)
{
    const ScalarInfo& is = scalar_info(content);
    const std::string advice = wanted == ScalarType::none
        ? std::string()
        : cat("data.astype(np.", scalar_info(wanted).numpy_name == "bool" ? "uint32" : scalar_info(wanted).numpy_name,
              "), or ");
    return cat("the buffer was filled with numbers of ", is.numpy_name, " (", int(is.size),
               is.size == 1 ? " byte" : " bytes", " each), but ", reader, "; fill it with ", advice,
               "data.view(np.uint8) if these bytes are meant");
}

} // namespace

ScalarType content_of(ScalarType scalar)
{
    const ScalarInfo& info = scalar_info(scalar);
    return scalar == ScalarType::bool_ || info.is_signed ? scalar : ScalarType::none;
}

std::string content_misfit(ScalarType content, const TypeLayout& element)
{
    if (content == ScalarType::none)
        return {};
    Search search{content};
    visit(element, search);
    if (search.fits)
        return {};
    const std::string first(scalar_info(search.first).slang_name);
    const std::string& name = element.full_name.empty() ? element.name : element.full_name;
    return misfit_text(content,
                       name == first ? cat("its elements are ", first) : cat("its elements are ", name, ", of ", first),
                       search.first);
}

std::string content_misfit(ScalarType content, Format format)
{
    const FormatInfo& info = format_info(format);
    const bool is_plain = info.channel_count && info.bytes_per_block % info.channel_count == 0 &&
        !info.is_compressed() && info.has_equal_channel_bits();
    if (content == ScalarType::none || format == Format::undefined || !is_plain)
        return {};
    return content_misfit(content, info.bytes_per_block / info.channel_count, info.name);
}

std::string content_misfit(ScalarType content, uint32_t bytes, std::string_view wanted)
{
    if (content == ScalarType::none || scalar_info(content).size == bytes)
        return {};
    const bool is_float = scalar_info(content).is_float;
    const ScalarType target = is_float ? (bytes == 4       ? ScalarType::float32
                                              : bytes == 2 ? ScalarType::float16
                                                           : ScalarType::none)
        : bytes == 8                   ? ScalarType::uint64
        : bytes == 4                   ? ScalarType::uint32
        : bytes == 2                   ? ScalarType::uint16
                                       : ScalarType::uint8;
    return misfit_text(content, cat("it is read as ", wanted), target);
}

} // namespace spy
