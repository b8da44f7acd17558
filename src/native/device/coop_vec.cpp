// Matrices of cooperative vectors: sizes and conversions are checked here, once for all backends; plain layouts are
// converted here, too.
#include "device/coop_vec.h"

#include "core/error.h"
#include "device/backend.h"
#include "device/encoder.h"
#include "device/resource.h"

#include <cstring>

namespace spy {

namespace {

constexpr const char* coop_vec_feature = "cooperative_vector";
constexpr const char* plain_instead = "row_major and column_major work on every device";
constexpr uint64_t coop_vec_alignment = 64; ///< of matrices in memory of a device, as Vulkan has it

uint64_t element_bytes(ScalarType type, const std::string& what)
{
    const ScalarInfo& info = scalar_info(type);
    if ((!info.is_float && !info.is_integer) || type == ScalarType::bfloat16)
        fail_value(what, ": element_type is ", type == ScalarType::none ? "none" : info.slang_name,
                   "; matrices are of float16, float32, float64, int8 to int64, uint8 to uint64, float8_e4m3 or "
                   "float8_e5m2");
    return info.size;
}

/// Of a plain layout: how many rows or columns lie one after the other, and bytes of one.
std::pair<uint64_t, uint64_t> lines_of(const CoopVecMatrixDesc& desc, uint64_t element)
{
    return desc.layout == CoopVecMatrixLayout::row_major ? std::pair{uint64_t(desc.rows), desc.cols * element}
                                                         : std::pair{uint64_t(desc.cols), desc.rows * element};
}

uint64_t stride_of(const CoopVecMatrixDesc& desc, const std::string& what)
{
    if (!desc.rows || !desc.cols)
        fail_value(what, ": rows and cols must be at least 1, got ", desc.rows, " x ", desc.cols);
    const uint64_t element = element_bytes(desc.element_type, what);
    if (!is_plain(desc.layout))
        return 0;
    const uint64_t packed = lines_of(desc, element).second, stride = desc.row_col_stride;
    if (stride && (stride < packed || stride % element))
        fail_value(what, ": row_col_stride is ", stride, "; a ",
                   desc.layout == CoopVecMatrixLayout::row_major ? "row" : "column", " takes ", packed,
                   " bytes, and the stride is at least that and a multiple of the element's ", element,
                   " bytes (0: packed)");
    return stride ? stride : packed;
}

/// Size and stride filled in; ValueError where the memory does not hold it.
CoopVecMatrixDesc matrix_within(Device* device, CoopVecMatrixDesc desc, uint64_t available, const std::string& what)
{
    const uint64_t given = desc.size;
    desc = complete_coop_vec_matrix(device, desc, what.c_str());
    if (given && given < desc.size)
        fail_value(what, ": size is ", given, ", but the matrix takes ", desc.size,
                   " bytes (get_coop_vec_matrix_size)");
    if (desc.offset > available || available - desc.offset < desc.size)
        fail_value(what, ": the matrix takes ", desc.size, " bytes from offset ", desc.offset, " on, but there are ",
                   available);
    return desc;
}

/// The two of one conversion.
std::pair<CoopVecMatrixDesc, CoopVecMatrixDesc> pair_at(Device* device, size_t i, uint64_t dst_size,
                                                        std::span<const CoopVecMatrixDesc> dst, uint64_t src_size,
                                                        std::span<const CoopVecMatrixDesc> src, const char* call)
{
    const bool one = dst.size() == 1;
    const std::string number = one ? std::string() : cat("s[", i, "]");
    const std::string dst_what = cat(call, " 'dst_desc", number, "'"), src_what = cat(call, " 'src_desc", number, "'");
    const CoopVecMatrixDesc to = matrix_within(device, dst[i], dst_size, dst_what);
    const CoopVecMatrixDesc from = matrix_within(device, src[i], src_size, src_what);
    if (to.rows != from.rows || to.cols != from.cols)
        fail_value(dst_what, " is of ", to.rows, " x ", to.cols, ", the source of ", from.rows, " x ", from.cols,
                   "; a conversion keeps rows and cols");
    return {to, from};
}

void check_counts(size_t dst, size_t src, const char* call)
{
    if (dst != src)
        fail_value(call, ": ", dst, " dst_descs for ", src, " src_descs; give one for each matrix");
}

/// From a plain layout to a plain one.
void transpose_host(const CoopVecConversion& c)
{
    const uint64_t element = scalar_info(c.to.element_type).size;
    const auto steps = [&](const CoopVecMatrixDesc& desc) {
        return desc.layout == CoopVecMatrixLayout::row_major ? std::pair{desc.row_col_stride, element}
                                                             : std::pair{element, desc.row_col_stride};
    };
    const auto [to_row, to_col] = steps(c.to);
    const auto [from_row, from_col] = steps(c.from);
    for (uint64_t row = 0; row < c.to.rows; ++row)
        for (uint64_t col = 0; col < c.to.cols; ++col)
            std::memcpy(static_cast<uint8_t*>(c.dst) + row * to_row + col * to_col,
                        static_cast<const uint8_t*>(c.src) + row * from_row + col * from_col, element);
}

} // namespace

void require_coop_vec(const Device* device, const char* call, const char* instead)
{
    if (device->has_feature(coop_vec_feature))
        return;
    const DeviceInfo& info = device->info();
    fail(ErrorKind::not_implemented, call, ": ", info.adapter_name, " (", device_type_name(info.type),
         ") does not have the feature '", coop_vec_feature,
         "', which vulkan devices have whose driver has VK_NV_cooperative_vector (Device.features lists it); ",
         instead);
}

uint64_t coop_vec_matrix_size(Device* device, const CoopVecMatrixDesc& desc, const char* call)
{
    return complete_coop_vec_matrix(device, desc, call).size;
}

CoopVecMatrixDesc complete_coop_vec_matrix(Device* device, CoopVecMatrixDesc desc, const char* call)
{
    check_open(device);
    desc.row_col_stride = stride_of(desc, call);
    if (!is_plain(desc.layout)) {
        require_coop_vec(device, call, plain_instead);
        desc.size = device->coop_vec_matrix_size(desc);
        return desc;
    }
    const uint64_t lines = lines_of(desc, 1).first;
    if (desc.row_col_stride > (~0ull >> 1) / lines)
        fail_value(call, ": a matrix of ", desc.rows, " x ", desc.cols, " is too large");
    desc.size = lines * desc.row_col_stride;
    return desc;
}

void convert_coop_vec_matrices(Device* device, std::span<uint8_t> dst, std::span<const CoopVecMatrixDesc> dst_descs,
                               std::span<const uint8_t> src, std::span<const CoopVecMatrixDesc> src_descs,
                               const char* call)
{
    check_open(device);
    check_counts(dst_descs.size(), src_descs.size(), call);
    std::vector<CoopVecConversion> list;
    for (size_t i = 0; i < dst_descs.size(); ++i) {
        const auto [to, from] = pair_at(device, i, dst.size(), dst_descs, src.size(), src_descs, call);
        if (to.element_type != from.element_type)
            require_coop_vec(device, call, "elsewhere both have one element_type: convert with NumPy's astype first");
        list.push_back({nullptr, nullptr, to, from});
    }
    std::vector<uint8_t> copy;
    if (dst.data() < src.data() + src.size() && src.data() < dst.data() + dst.size()) {
        copy.assign(src.begin(), src.end());
        src = copy;
    }
    for (CoopVecConversion& each : list) {
        each.dst = dst.data() + each.to.offset;
        each.src = src.data() + each.from.offset;
        if (is_plain(each.to.layout) && is_plain(each.from.layout) && each.to.element_type == each.from.element_type)
            transpose_host(each);
        else
            device->convert_coop_vec_matrix(each);
    }
}

uint64_t Device::coop_vec_matrix_size(const CoopVecMatrixDesc&)
{
    require_coop_vec(this, "get_coop_vec_matrix_size", plain_instead);
    fail(ErrorKind::not_implemented, "get_coop_vec_matrix_size is not implemented by this ", m_info.api_name,
         " device");
}

void Device::convert_coop_vec_matrix(const CoopVecConversion&)
{
    require_coop_vec(this, "convert_coop_vec_matrix", plain_instead);
    fail(ErrorKind::not_implemented, "convert_coop_vec_matrix is not implemented by this ", m_info.api_name, " device");
}

void CommandEncoder::convert_coop_vec_matrices(ref<Buffer> dst, std::span<const CoopVecMatrixDesc> dst_descs,
                                               ref<Buffer> src, std::span<const CoopVecMatrixDesc> src_descs,
                                               const char* call)
{
    check_recording(call);
    require_coop_vec(device(), call, "elsewhere convert on the host, with the method of Device of this name");
    const std::string dst_what = cat(call, " 'dst'"), src_what = cat(call, " 'src'");
    check_same_device(device(), dst.get(), dst_what.c_str());
    check_same_device(device(), src.get(), src_what.c_str());
    check_counts(dst_descs.size(), src_descs.size(), call);
    command::ConvertCoopVecMatrices command;
    for (size_t i = 0; i < dst_descs.size(); ++i) {
        const auto [to, from] = pair_at(device(), i, dst->desc().size, dst_descs, src->desc().size, src_descs, call);
        for (const uint64_t offset : {to.offset, from.offset})
            if (offset % coop_vec_alignment)
                fail_value(call, ": offset is ", offset, "; matrices in buffers begin at multiples of ",
                           coop_vec_alignment, " bytes");
        if (dst == src && to.offset < from.offset + from.size && from.offset < to.offset + to.size)
            fail_value(call, ": 'dst' and 'src' are the same buffer, and matrix ", i, " overlaps with its source");
        command.matrices.emplace_back(to, from);
    }
    command.dst = std::move(dst);
    command.src = std::move(src);
    if (!command.matrices.empty())
        add(std::move(command));
}

} // namespace spy
