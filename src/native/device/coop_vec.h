#pragma once
// Matrices of cooperative vectors: how they lie in memory, and conversions between layouts.
#include "device/device.h"

namespace spy {

class Buffer;

enum class CoopVecMatrixLayout : uint8_t { row_major, column_major, inferencing_optimal, training_optimal };
/// Row or column major: what every device knows.
inline bool is_plain(CoopVecMatrixLayout layout) { return layout <= CoopVecMatrixLayout::column_major; }

struct CoopVecMatrixDesc {
    uint32_t rows = 0, cols = 0;
    ScalarType element_type = ScalarType::none;
    CoopVecMatrixLayout layout = CoopVecMatrixLayout::row_major;
    uint64_t size = 0, offset = 0; ///< size: 0 where it was not asked for
    uint64_t row_col_stride = 0;   ///< from one row or column to the next; 0: packed
};

/// Of one matrix, for Device::convert_coop_vec_matrix. Strides of plain layouts are filled in.
struct CoopVecConversion {
    void* dst;
    const void* src;
    CoopVecMatrixDesc to, from;
};

/// NotImplementedError unless the device has cooperative vectors. `instead`: what else there is.
void require_coop_vec(const Device* device, const char* call, const char* instead);
/// Bytes. ValueError for empty matrices, other element types and strides that do not fit.
uint64_t coop_vec_matrix_size(Device* device, const CoopVecMatrixDesc& desc, const char* call);
/// The same with size and stride filled in.
CoopVecMatrixDesc complete_coop_vec_matrix(Device* device, CoopVecMatrixDesc desc, const char* call);
/// On the host. Memory of the source may be that of the destination.
void convert_coop_vec_matrices(Device* device, std::span<uint8_t> dst, std::span<const CoopVecMatrixDesc> dst_descs,
                               std::span<const uint8_t> src, std::span<const CoopVecMatrixDesc> src_descs,
                               const char* call);

} // namespace spy
