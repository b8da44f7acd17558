// Matrices of cooperative vectors: what the driver says of its own layouts, and its conversions.
#include "vulkan/device.h"

#include "core/error.h"

namespace spy {

namespace {

/// VkComponentTypeKHR; what stands in none of these was refused before.
uint32_t component_type(ScalarType type)
{
    switch (type) {
    case ScalarType::float16: return 0;
    case ScalarType::float32: return 1;
    case ScalarType::float64: return 2;
    case ScalarType::int8: return 3;
    case ScalarType::int16: return 4;
    case ScalarType::int32: return 5;
    case ScalarType::int64: return 6;
    case ScalarType::uint8: return 7;
    case ScalarType::uint16: return 8;
    case ScalarType::uint32: return 9;
    case ScalarType::uint64: return 10;
    case ScalarType::float8_e4m3: return 1000491002;
    case ScalarType::float8_e5m2: return 1000491003;
    default: fail_value("cooperative vectors: unknown element type");
    }
}

/// VkCooperativeVectorMatrixLayoutNV has the same order.
static_assert(uint32_t(CoopVecMatrixLayout::column_major) == 1);
static_assert(uint32_t(CoopVecMatrixLayout::inferencing_optimal) == 2);
static_assert(uint32_t(CoopVecMatrixLayout::training_optimal) == 3);

/// All but where the matrices lie. The size must outlive what is returned.
VkConvertCooperativeVectorMatrixInfoNV conversion_info(const CoopVecMatrixDesc& to, const CoopVecMatrixDesc& from,
                                                       size_t& to_size)
{
    VkConvertCooperativeVectorMatrixInfoNV info{};
    info.sType = VkStructureType(VK_STRUCTURE_TYPE_CONVERT_COOPERATIVE_VECTOR_MATRIX_INFO_NV);
    info.srcSize = size_t(from.size);
    info.pDstSize = &to_size;
    // These are plain integers, or enumerations, as the header at hand has it.
    info.srcComponentType = decltype(info.srcComponentType)(component_type(from.element_type));
    info.dstComponentType = decltype(info.dstComponentType)(component_type(to.element_type));
    info.numRows = to.rows;
    info.numColumns = to.cols;
    info.srcLayout = decltype(info.srcLayout)(from.layout);
    info.srcStride = size_t(from.row_col_stride);
    info.dstLayout = decltype(info.dstLayout)(to.layout);
    info.dstStride = size_t(to.row_col_stride);
    return info;
}

std::string described(const CoopVecMatrixDesc& desc)
{
    return cat(desc.rows, " x ", desc.cols, " ", scalar_info(desc.element_type).slang_name);
}

} // namespace

uint64_t VulkanDevice::coop_vec_matrix_size(const CoopVecMatrixDesc& desc)
{
    require_open("get_coop_vec_matrix_size");
    CoopVecMatrixDesc from = desc;
    from.layout = CoopVecMatrixLayout::row_major;
    from.row_col_stride = uint64_t(desc.cols) * scalar_info(desc.element_type).size;
    from.size = from.row_col_stride * desc.rows;
    size_t size = 0;
    const VkConvertCooperativeVectorMatrixInfoNV info = conversion_info(desc, from, size);
    vk_check(m_context.vk.ConvertCooperativeVectorMatrixNV(m_context.device, &info),
             "vkConvertCooperativeVectorMatrixNV");
    if (!size)
        fail_value("get_coop_vec_matrix_size: ", m_context.name(), " has no such layout of a matrix of ",
                   described(desc));
    return size;
}

void VulkanDevice::convert_coop_vec_matrix(const CoopVecConversion& conversion)
{
    require_open("convert_coop_vec_matrix");
    size_t size = size_t(conversion.to.size);
    VkConvertCooperativeVectorMatrixInfoNV info = conversion_info(conversion.to, conversion.from, size);
    info.srcData.hostAddress = conversion.src;
    info.dstData.hostAddress = conversion.dst;
    const VkResult code = m_context.vk.ConvertCooperativeVectorMatrixNV(m_context.device, &info);
    if (code == VK_INCOMPLETE)
        fail_value("convert_coop_vec_matrix: ", m_context.name(), " does not convert ", described(conversion.from),
                   " to ", described(conversion.to), " in ", conversion.to.size, " bytes");
    vk_check(code, "vkConvertCooperativeVectorMatrixNV");
}

void VulkanRecorder::record(const command::ConvertCoopVecMatrices& command)
{
    std::vector<size_t> sizes(command.matrices.size());
    std::vector<VkConvertCooperativeVectorMatrixInfoNV> infos;
    for (const auto& [to, from] : command.matrices) {
        size_t& size = sizes[infos.size()];
        size = size_t(to.size);
        VkConvertCooperativeVectorMatrixInfoNV& info = infos.emplace_back(conversion_info(to, from, size));
        info.srcData.deviceAddress = command.src->device_address() + from.offset;
        info.dstData.deviceAddress = command.dst->device_address() + to.offset;
    }
    m_context.vk.CmdConvertCooperativeVectorMatrixNV(m_queue.begin_command(true), uint32_t(infos.size()), infos.data());
}

} // namespace spy
