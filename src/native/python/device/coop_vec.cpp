// Matrices of cooperative vectors. The forms that take NumPy arrays are slangpy/device/coop_vec.py.
#include "python/device/bindings.h"

#include "python/members.h"
#include "device/coop_vec.h"

namespace spy {

namespace {

using MatrixDescs = std::vector<CoopVecMatrixDesc>;

MatrixDescs matrix_descs(nb::handle values, const char* call, const char* name)
{
    const std::string what = cat(call, " '", name, "'");
    MatrixDescs descs;
    for (nb::handle value : list_from(values, what.c_str()))
        descs.push_back(Fields<CoopVecMatrixDesc>::from(value, what.c_str()));
    return descs;
}

/// Memory of the host that is written.
class WritableBytes {
public:
    WritableBytes(nb::handle value, const std::string& what)
    {
        if (PyObject_GetBuffer(value.ptr(), &m_view, PyBUF_WRITABLE | PyBUF_ND) == 0)
            return;
        PyErr_Clear();
        fail(ErrorKind::type, what, ": expected a bytearray or another buffer that can be written to, got ",
             short_text(value), " (", class_name(value), ")");
    }
    ~WritableBytes() { PyBuffer_Release(&m_view); }
    WritableBytes(const WritableBytes&) = delete;
    WritableBytes& operator=(const WritableBytes&) = delete;
    std::span<uint8_t> bytes() const { return {static_cast<uint8_t*>(m_view.buf), size_t(m_view.len)}; }

private:
    Py_buffer m_view{};
};

void convert_host(Device& device, const std::string& call, nb::handle dst, nb::handle dst_descs, nb::handle src,
                  nb::handle src_descs)
{
    const MatrixDescs to = matrix_descs(dst_descs, call.c_str(), "dst_descs");
    const MatrixDescs from = matrix_descs(src_descs, call.c_str(), "src_descs");
    const WritableBytes target(dst, call + " 'dst'");
    const HostBytes source(src, (call + " 'src'").c_str());
    GilRelease release;
    convert_coop_vec_matrices(&device, target.bytes(), to, source.bytes(), from, call.c_str());
}

ref<Buffer> matrix_buffer(nb::handle value, const char* what)
{
    ref<Buffer> buffer;
    if (value.is_none() || !nb::try_cast(value, buffer))
        fail_field(what, value, "a Buffer (bytes and arrays are converted by the method of Device of this name)");
    return buffer;
}

void record_one(CommandEncoder& encoder, nb::handle dst, nb::handle dst_desc, nb::handle src, nb::handle src_desc)
{
    constexpr const char* call = "convert_coop_vec_matrix";
    const auto to = Fields<CoopVecMatrixDesc>::from(dst_desc, "convert_coop_vec_matrix 'dst_desc'");
    const auto from = Fields<CoopVecMatrixDesc>::from(src_desc, "convert_coop_vec_matrix 'src_desc'");
    encoder.convert_coop_vec_matrices(matrix_buffer(dst, "convert_coop_vec_matrix 'dst'"), {&to, 1},
                                      matrix_buffer(src, "convert_coop_vec_matrix 'src'"), {&from, 1}, call);
}

uint64_t stride_from(nb::handle value, const char* what) { return uint_from(value, what, ~0ull); }

void bind_matrices(nb::module_& m)
{
    nb::enum_<CoopVecMatrixLayout>(
        m, "CoopVecMatrixLayout", nb::is_arithmetic(),
        "How a matrix of cooperative vectors lies in memory. The last two are the driver's own.")
        .value("row_major", CoopVecMatrixLayout::row_major)
        .value("column_major", CoopVecMatrixLayout::column_major)
        .value("inferencing_optimal", CoopVecMatrixLayout::inferencing_optimal)
        .value("training_optimal", CoopVecMatrixLayout::training_optimal);
    using D = CoopVecMatrixDesc;
    bind_desc<D>(m, "CoopVecMatrixDesc", "A matrix in memory; Device.create_coop_vec_matrix_desc fills one in.",
                 {
                     field<D, &D::rows>("rows", "int", "At least 1."),
                     field<D, &D::cols>("cols", "int", "At least 1."),
                     field<D, &D::element_type>("element_type", "ScalarType",
                                                "float16, float32, float64, int8 to int64, uint8 to uint64, "
                                                "float8_e4m3 or float8_e5m2."),
                     field<D, &D::layout>("layout", "CoopVecMatrixLayout", "How it lies in memory."),
                     field<D, &D::size>("size", "int", "Bytes that it takes."),
                     field<D, &D::offset>("offset", "int", "Bytes before it; in buffers a multiple of 64."),
                     field<D, &D::row_col_stride>("row_col_stride", "int",
                                                  "Bytes from one row or column to the next; 0: packed."),
                 });
}

} // namespace

void bind_coop_vec(nb::module_& m, nb::class_<Device, Object>& cls)
{
    bind_matrices(m);
    cls.def(
           "get_coop_vec_matrix_size",
           [](Device& device, nb::handle rows, nb::handle cols,
              Member<"get_coop_vec_matrix_size 'layout'", CoopVecMatrixLayout> layout,
              Member<"get_coop_vec_matrix_size 'element_type'", ScalarType> element_type, nb::handle stride) {
               constexpr const char* call = "get_coop_vec_matrix_size";
               const CoopVecMatrixDesc desc{uint32_t(uint_from(rows, "get_coop_vec_matrix_size 'rows'", ~0u)),
                                            uint32_t(uint_from(cols, "get_coop_vec_matrix_size 'cols'", ~0u)),
                                            element_type,
                                            layout,
                                            0,
                                            0,
                                            stride_from(stride, "get_coop_vec_matrix_size 'row_col_stride'")};
               return coop_vec_matrix_size(&device, desc, call);
           },
           nb::arg("rows"), nb::arg("cols"), nb::arg("layout"), nb::arg("element_type"), nb::arg("row_col_stride") = 0,
           nb::sig("def get_coop_vec_matrix_size(self, rows: int, cols: int, layout: CoopVecMatrixLayout | str, "
                   "element_type: ScalarType | str, row_col_stride: int = 0) -> int"),
           "Bytes of a matrix of cooperative vectors. row_col_stride: bytes from one row or column to the next, 0 for "
           "packed. NotImplementedError for the optimal layouts where the device lacks the feature cooperative_vector.")
        .def(
            "create_coop_vec_matrix_desc",
            [](Device& device, nb::handle rows, nb::handle cols,
               Member<"create_coop_vec_matrix_desc 'layout'", CoopVecMatrixLayout> layout,
               Member<"create_coop_vec_matrix_desc 'element_type'", ScalarType> element_type, nb::handle offset,
               nb::handle stride) {
                constexpr const char* call = "create_coop_vec_matrix_desc";
                const CoopVecMatrixDesc desc{uint32_t(uint_from(rows, "create_coop_vec_matrix_desc 'rows'", ~0u)),
                                             uint32_t(uint_from(cols, "create_coop_vec_matrix_desc 'cols'", ~0u)),
                                             element_type,
                                             layout,
                                             0,
                                             uint_from(offset, "create_coop_vec_matrix_desc 'offset'", ~0ull),
                                             stride_from(stride, "create_coop_vec_matrix_desc 'row_col_stride'")};
                return complete_coop_vec_matrix(&device, desc, call);
            },
            nb::arg("rows"), nb::arg("cols"), nb::arg("layout"), nb::arg("element_type"), nb::arg("offset") = 0,
            nb::arg("row_col_stride") = 0,
            nb::sig("def create_coop_vec_matrix_desc(self, rows: int, cols: int, layout: CoopVecMatrixLayout | str, "
                    "element_type: ScalarType | str, offset: int = 0, row_col_stride: int = 0) -> CoopVecMatrixDesc"),
            "A matrix of cooperative vectors, with its size and stride filled in, as get_coop_vec_matrix_size has it.")
        .def("_convert_coop_vec_matrices", &convert_host, nb::arg("call"), nb::arg("dst"), nb::arg("dst_descs"),
             nb::arg("src"), nb::arg("src_descs"),
             nb::sig("def _convert_coop_vec_matrices(self, call: str, dst: object, dst_descs: object, src: object, "
                     "src_descs: object) -> None"));
}

void bind_coop_vec_commands(EncoderClass& cls)
{
    constexpr const char* doc =
        "From one layout to another, in buffers; element types may differ where the driver converts. "
        "NotImplementedError where the device lacks the feature cooperative_vector.";
    cls.def("convert_coop_vec_matrix", &record_one, nb::arg("dst"), nb::arg("dst_desc"), nb::arg("src"),
            nb::arg("src_desc"),
            nb::sig("def convert_coop_vec_matrix(self, dst: Buffer, dst_desc: CoopVecMatrixDesc | dict, src: Buffer, "
                    "src_desc: CoopVecMatrixDesc | dict) -> None"),
            doc)
        .def("convert_coop_vec_matrix", &record_one, nb::arg("dst"), nb::arg("dst_descs"), nb::arg("src"),
             nb::arg("src_descs"),
             nb::sig("def convert_coop_vec_matrix(self, dst: Buffer, dst_descs: CoopVecMatrixDesc | dict, src: Buffer, "
                     "src_descs: CoopVecMatrixDesc | dict) -> None"),
             "The names of shader-slang/slangpy.")
        .def(
            "convert_coop_vec_matrices",
            [](CommandEncoder& encoder, nb::handle dst, nb::handle dst_descs, nb::handle src, nb::handle src_descs) {
                constexpr const char* call = "convert_coop_vec_matrices";
                const MatrixDescs to = matrix_descs(dst_descs, call, "dst_descs");
                const MatrixDescs from = matrix_descs(src_descs, call, "src_descs");
                encoder.convert_coop_vec_matrices(matrix_buffer(dst, "convert_coop_vec_matrices 'dst'"), to,
                                                  matrix_buffer(src, "convert_coop_vec_matrices 'src'"), from, call);
            },
            nb::arg("dst"), nb::arg("dst_descs"), nb::arg("src"), nb::arg("src_descs"),
            nb::sig("def convert_coop_vec_matrices(self, dst: Buffer, dst_descs: "
                    "collections.abc.Sequence[CoopVecMatrixDesc | dict], src: Buffer, src_descs: "
                    "collections.abc.Sequence[CoopVecMatrixDesc | dict]) -> None"),
            doc);
}

} // namespace spy
