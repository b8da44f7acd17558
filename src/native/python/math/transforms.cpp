// Builders and parts of transforms: matrices and quaternions. Formulas are in double, results in the argument's scalar.
#include "math/transform.h"
#include "python/math/reader.h"

#include <algorithm>
#include <cstring>

namespace spy::math {

namespace {

bool is_matrix_of(nb::handle value, int rows, int cols)
{
    const MathTypeInfo* info = info_of(value.ptr());
    return info && info->is_matrix && info->rows == rows && info->cols == cols;
}

// ---- matrices ------------------------------------------------------------------------------------------------------

nb::object matrix_4x4_from_3x4(nb::handle m)
{
    Reader in("matrix_4x4_from_3x4");
    const auto upper = in.matrix<3, 4>(m, "m");
    auto whole = double4x4::identity();
    std::copy_n(upper[0], 12, whole[0]);
    return in.result(whole);
}

/// The affine part of a 3x4 or 4x4 matrix, or a 3x3 one where `linear` is enough.
Matrix<double, 3, 4> affine_part(Reader& in, nb::handle m, bool linear)
{
    Matrix<double, 3, 4> part{};
    if (linear && is_matrix_of(m, 3, 3)) {
        const auto upper = in.matrix<3, 3>(m, "m");
        for (int r = 0; r < 3; ++r)
            std::copy_n(upper[r], 3, part[r]);
    } else if (is_matrix_of(m, 3, 4)) {
        part = in.matrix<3, 4>(m, "m");
    } else {
        std::copy_n(in.matrix<4, 4>(m, "m")[0], 12, part[0]);
    }
    return part;
}

nb::object transform(const char* function, nb::handle m, nb::handle v, double w)
{
    Reader in(function);
    const auto part = affine_part(in, m, w == 0.0);
    const double3 x = in.vector<3>(v, "v");
    return in.result(mul(part, double4{{x[0], x[1], x[2], w}}));
}

void bind_matrix_products(nb::module_& m)
{
    m.def(
        "translate",
        [](nb::handle matrix, nb::handle v) {
            Reader in("translate");
            const auto left = in.matrix<4, 4>(matrix, "m");
            return in.result(mul(left, translation(in.vector<3>(v, "v"))));
        },
        operand("m"), operand("v"), "m * matrix_from_translation(v); 4x4.");
    m.def(
        "rotate",
        [](nb::handle matrix, nb::handle angle, nb::handle axis) {
            Reader in("rotate");
            const auto left = in.matrix<4, 4>(matrix, "m");
            return in.result(mul(left, rotation(in.number(angle, "angle"), in.direction(axis, "axis"))));
        },
        operand("m"), operand("angle"), operand("axis"), "m * matrix_from_rotation(angle, axis); 4x4, radians.");
    m.def(
        "scale",
        [](nb::handle matrix, nb::handle v) {
            Reader in("scale");
            const auto left = in.matrix<4, 4>(matrix, "m");
            return in.result(mul(left, scaling(in.vector<3>(v, "v"))));
        },
        operand("m"), operand("v"), "m * matrix_from_scaling(v); 4x4.");
    m.def(
        "translate_2d",
        [](nb::handle matrix, nb::handle v) {
            Reader in("translate_2d");
            const auto left = in.matrix<3, 3>(matrix, "m");
            return in.result(mul(left, translation(in.vector<2>(v, "v"))));
        },
        operand("m"), operand("v"), "m * matrix_from_translation_2d(v); 3x3.");
    m.def(
        "rotate_2d",
        [](nb::handle matrix, nb::handle angle) {
            Reader in("rotate_2d");
            const auto left = in.matrix<3, 3>(matrix, "m");
            return in.result(mul(left, rotation_2d(in.number(angle, "angle"))));
        },
        operand("m"), operand("angle"), "m * matrix_from_rotation_2d(angle); 3x3, radians.");
    m.def(
        "scale_2d",
        [](nb::handle matrix, nb::handle v) {
            Reader in("scale_2d");
            const auto left = in.matrix<3, 3>(matrix, "m");
            return in.result(mul(left, scaling(in.vector<2>(v, "v"))));
        },
        operand("m"), operand("v"), "m * matrix_from_scaling_2d(v); 3x3.");
    m.def(
        "transform_point", [](nb::handle matrix, nb::handle v) { return transform("transform_point", matrix, v, 1.0); },
        operand("m"), operand("v"),
        "m * (v, 1) without the last component and without a division by it; m is 4x4 or 3x4.");
    m.def(
        "transform_vector",
        [](nb::handle matrix, nb::handle v) { return transform("transform_vector", matrix, v, 0.0); }, operand("m"),
        operand("v"), "m * (v, 0) without the last component; m is 4x4, 3x4 or 3x3.");
    m.def("matrix_4x4_from_3x4", matrix_4x4_from_3x4, operand("m"), "Appends the row 0 0 0 1.");
}

nb::object rotation_about(const char* function, nb::handle angle, int axis)
{
    Reader in(function);
    double3 unit{};
    unit[axis] = 1.0;
    return in.result(rotation(in.number(angle, "angle"), unit));
}

/// Three angles, or one vector of them.
nb::object rotation_xyz(nb::handle x, nb::handle y, nb::handle z)
{
    Reader in("matrix_from_rotation_xyz");
    double3 angles;
    if (y.is_none() && z.is_none())
        angles = in.vector<3>(x, "angles");
    else
        angles = {{in.number(x, "x"), in.number(y, "y"), in.number(z, "z")}};
    auto about = [&](int axis) {
        double3 unit{};
        unit[axis] = 1.0;
        return rotation(angles[axis], unit);
    };
    return in.result(mul(mul(about(0), about(1)), about(2)));
}

void bind_rotations(nb::module_& m)
{
    m.def(
        "matrix_from_rotation",
        [](nb::handle angle, nb::handle axis) {
            Reader in("matrix_from_rotation");
            const double3 unit = in.direction(axis, "axis");
            return in.result(rotation(in.number(angle, "angle"), unit));
        },
        operand("angle"), operand("axis"),
        "4x4 rotation by radians about an axis of any length (Rodrigues' formula), counter-clockwise seen "
        "from the tip of the axis.");
    m.def(
        "matrix_from_rotation_2d",
        [](nb::handle angle) {
            Reader in("matrix_from_rotation_2d");
            return in.result(rotation_2d(in.number(angle, "angle")));
        },
        operand("angle"), "3x3 counter-clockwise rotation of the plane by radians.");
    m.def(
        "matrix_from_rotation_x", [](nb::handle angle) { return rotation_about("matrix_from_rotation_x", angle, 0); },
        operand("angle"), "4x4 rotation about x by radians; y turns to z.");
    m.def(
        "matrix_from_rotation_y", [](nb::handle angle) { return rotation_about("matrix_from_rotation_y", angle, 1); },
        operand("angle"), "4x4 rotation about y by radians; z turns to x.");
    m.def(
        "matrix_from_rotation_z", [](nb::handle angle) { return rotation_about("matrix_from_rotation_z", angle, 2); },
        operand("angle"), "4x4 rotation about z by radians; x turns to y.");
    m.def("matrix_from_rotation_xyz", rotation_xyz, operand("x"), nb::arg("y") = nb::none(), nb::arg("z") = nb::none(),
          "Rx(x) Ry(y) Rz(z), 4x4; three angles in radians, or one vector of them.");
    m.def(
        "matrix_from_quat",
        [](nb::handle q) {
            Reader in("matrix_from_quat");
            return in.result(spy::matrix_from_quat(in.quat(q, "q")));
        },
        operand("q"), "3x3 rotation of a unit quaternion.");
}

void bind_matrix_builders(nb::module_& m)
{
    m.def(
        "matrix_from_translation",
        [](nb::handle v) {
            Reader in("matrix_from_translation");
            return in.result(translation(in.vector<3>(v, "v")));
        },
        operand("v"), "4x4 matrix that adds v to points.");
    m.def(
        "matrix_from_translation_2d",
        [](nb::handle v) {
            Reader in("matrix_from_translation_2d");
            return in.result(translation(in.vector<2>(v, "v")));
        },
        operand("v"), "3x3 matrix that adds v to points of the plane.");
    m.def(
        "matrix_from_scaling",
        [](nb::handle v) {
            Reader in("matrix_from_scaling");
            return in.result(scaling(in.vector<3>(v, "v")));
        },
        operand("v"), "4x4 matrix that scales along the axes.");
    m.def(
        "matrix_from_scaling_2d",
        [](nb::handle v) {
            Reader in("matrix_from_scaling_2d");
            return in.result(scaling(in.vector<2>(v, "v")));
        },
        operand("v"), "3x3 matrix that scales along the axes of the plane.");
}

nb::object make_look_at(nb::handle eye, nb::handle center, nb::handle up, nb::handle handedness)
{
    Reader in("matrix_from_look_at");
    const double3 e = in.vector<3>(eye, "eye"), c = in.vector<3>(center, "center"), u = in.vector<3>(up, "up");
    const double3 side = cross(u, c - e);
    if (dot(side, side) == 0.0)
        fail_value(
            "math.matrix_from_look_at: eye and center must differ, and up must not be parallel to the view direction");
    return in.result(look_at(e, c, u, in.handedness(handedness)));
}

nb::object make_perspective(nb::handle fovy, nb::handle aspect, nb::handle z_near, nb::handle z_far)
{
    Reader in("perspective");
    const double a = in.number(aspect, "aspect"), n = in.number(z_near, "z_near"), f = in.number(z_far, "z_far");
    const double angle = in.number(fovy, "fovy");
    if (a == 0.0 || n == f || std::tan(angle / 2) == 0.0)
        fail_value("math.perspective: fovy and aspect must not be 0, and z_near and z_far must differ; got fovy ",
                   angle, ", aspect ", a, ", z_near ", n, ", z_far ", f);
    return in.result(perspective(angle, a, n, f));
}

nb::object make_ortho(nb::handle left, nb::handle right, nb::handle bottom, nb::handle top, nb::handle z_near,
                      nb::handle z_far)
{
    Reader in("ortho");
    const double l = in.number(left, "left"), r = in.number(right, "right"), b = in.number(bottom, "bottom"),
                 t = in.number(top, "top");
    const double n = in.number(z_near, "z_near"), f = in.number(z_far, "z_far");
    if (l == r || b == t || n == f)
        fail_value("math.ortho: left and right, bottom and top, z_near and z_far must differ");
    return in.result(ortho(l, r, b, t, n, f));
}

void bind_cameras(nb::module_& m)
{
    nb::enum_<Handedness>(m, "Handedness", "Whether the camera looks along -z (right-handed) or +z (left-handed).")
        .value("right_handed", Handedness::right_handed)
        .value("left_handed", Handedness::left_handed);
    m.def("matrix_from_look_at", make_look_at, operand("eye"), operand("center"), operand("up"),
          nb::arg("handedness") = Handedness::right_handed,
          "World to view, 4x4: eye goes to the origin, center onto the -z axis (right-handed, as gluLookAt) or the +z "
          "axis "
          "(left-handed), up to the half plane y > 0.");
    m.def("perspective", make_perspective, operand("fovy"), operand("aspect"), operand("z_near"), operand("z_far"),
          "Right-handed perspective projection, 4x4, depth 0 at z_near and 1 at z_far (Vulkan, D3D); fovy in radians, "
          "aspect = width / height.");
    m.def("ortho", make_ortho, operand("left"), operand("right"), operand("bottom"), operand("top"), operand("z_near"),
          operand("z_far"), "Right-handed orthographic projection, 4x4, depth 0 at z_near and 1 at z_far.");
}

// ---- decompose -----------------------------------------------------------------------------------------------------

void fill(nb::handle target, const nb::object& value, const char* name)
{
    const MathTypeInfo *to = info_of(target.ptr()), *from = info_of(value.ptr());
    if (!to || !same_shape(*to, *from) || kind_of(*to) != Kind::real)
        fail_type("math.decompose(", name, "): expected a ", from->name, " to write to, got ", summary(target.ptr()));
    convert_math(value.ptr(), *to, math_data(target.ptr()), "math.decompose");
}

nb::object call_decompose(nb::handle m, nb::handle scale, nb::handle orientation, nb::handle translation_out,
                          nb::handle skew, nb::handle perspective_out)
{
    Reader in("decompose");
    Decomposition parts;
    const bool done = decompose(in.matrix<4, 4>(m, "m"), parts);
    const nb::handle targets[] = {scale, orientation, translation_out, skew, perspective_out};
    const char* names[] = {"scale", "orientation", "translation", "skew", "perspective"};
    const auto given = std::count_if(std::begin(targets), std::end(targets), [](nb::handle t) { return !t.is_none(); });
    if (given != 0 && given != 5)
        fail_type("math.decompose: give all of scale, orientation, translation, skew, perspective to write to, or none "
                  "of them");
    if (!done) {
        if (given)
            return nb::bool_(false);
        fail_value("math.decompose: the matrix is singular or its last component is 0: ", summary(m.ptr()));
    }
    const nb::object values[] = {in.result(parts.scale), make_quat(parts.orientation), in.result(parts.translation),
                                 in.result(parts.skew), in.result(parts.perspective)};
    if (!given)
        return nb::make_tuple(values[0], values[1], values[2], values[3], values[4]);
    for (int i = 0; i < 5; ++i)
        fill(targets[i], values[i], names[i]);
    return nb::bool_(true);
}

// ---- quaternions ---------------------------------------------------------------------------------------------------

nb::object make_quat_look_at(nb::handle direction, nb::handle up, nb::handle handedness)
{
    Reader in("quat_from_look_at");
    const double3 d = in.direction(direction, "dir"), u = in.direction(up, "up");
    const double3 side = cross(u, d);
    if (dot(side, side) == 0.0)
        fail_value("math.quat_from_look_at: up must not be parallel to the direction");
    return make_quat(quat_look_at(d, u, in.handedness(handedness)));
}

nb::object angle_of(const char* function, nb::handle q, int axis)
{
    return nb::float_(euler_angles(Reader(function).quat(q, "q"))[axis]);
}

void bind_quaternion_makers(nb::module_& m)
{
    m.def(
        "quat_from_angle_axis",
        [](nb::handle angle, nb::handle axis) {
            Reader in("quat_from_angle_axis");
            return make_quat(quat_from_angle_axis(in.number(angle, "angle"), in.direction(axis, "axis")));
        },
        operand("angle"), operand("axis"), "Rotation by radians about an axis of any length.");
    m.def(
        "quat_from_euler_angles",
        [](nb::handle angles) {
            Reader in("quat_from_euler_angles");
            return make_quat(quat_from_euler_angles(in.vector<3>(angles, "angles")));
        },
        operand("angles"), "Inverse of euler_angles: (pitch, yaw, roll) in radians.");
    m.def(
        "quat_from_matrix",
        [](nb::handle matrix) {
            Reader in("quat_from_matrix");
            const auto part = affine_part(in, matrix, true);
            double3x3 upper;
            for (int r = 0; r < 3; ++r)
                std::copy_n(part[r], 3, upper[r]);
            return make_quat(quat_from_matrix(upper));
        },
        operand("m"), "Unit quaternion of a rotation matrix (3x3, or the upper part of 3x4 and 4x4).");
    m.def("quat_from_look_at", make_quat_look_at, operand("dir"), operand("up"),
          nb::arg("handedness") = Handedness::right_handed,
          "The rotation that turns the view direction (-z right-handed, +z left-handed) to dir and y towards up.");
    m.def(
        "quat_from_rotation_between_vectors",
        [](nb::handle from, nb::handle to) {
            Reader in("quat_from_rotation_between_vectors");
            return make_quat(quat_between(in.direction(from, "from"), in.direction(to, "to")));
        },
        operand("from_"), operand("to"), "The shortest rotation that turns the direction of from_ to that of to.");
}

void bind_quaternions(nb::module_& m)
{
    m.def(
        "slerp",
        [](nb::handle a, nb::handle b, nb::handle t) {
            Reader in("slerp");
            return make_quat(slerp(in.quat(a, "x"), in.quat(b, "y"), in.number(t, "s")));
        },
        operand("x"), operand("y"), operand("s"),
        "Spherical interpolation of unit quaternions along the shorter arc (Shoemake 1985).");
    m.def(
        "pitch", [](nb::handle q) { return angle_of("pitch", q, 0); }, operand("q"),
        "Angle about x in radians, see euler_angles.");
    m.def(
        "yaw", [](nb::handle q) { return angle_of("yaw", q, 1); }, operand("q"),
        "Angle about y in radians, see euler_angles.");
    m.def(
        "roll", [](nb::handle q) { return angle_of("roll", q, 2); }, operand("q"),
        "Angle about z in radians, see euler_angles.");
    m.def(
        "euler_angles",
        [](nb::handle q) {
            Reader in("euler_angles");
            return in.result(euler_angles(in.quat(q, "q")));
        },
        operand("q"),
        "(pitch, yaw, roll) in radians, the rotation being Rz(roll) Ry(yaw) Rx(pitch); yaw is in [-pi/2, pi/2].");
}

} // namespace

void bind_math_transforms(nb::module_& m)
{
    bind_matrix_products(m);
    bind_matrix_builders(m);
    bind_rotations(m);
    bind_cameras(m);
    m.def("decompose", call_decompose, operand("m"), nb::arg("scale") = nb::none(), nb::arg("orientation") = nb::none(),
          nb::arg("translation") = nb::none(), nb::arg("skew") = nb::none(), nb::arg("perspective") = nb::none(),
          "The tuple (scale, orientation, translation, skew, perspective) of a 4x4 matrix, which is P T R K S with K "
          "the shear "
          "(skew holds yz, xz, xy), after S. Thomas, Graphics Gems II. With five objects given they are written to and "
          "the "
          "result says whether it worked; else a matrix that does not decompose raises ValueError.");
    bind_quaternions(m);
    bind_quaternion_makers(m);
}

} // namespace spy::math
