"""Matrices and quaternions against numpy in float64 and against their definitions."""

import math

import numpy as np
import pytest

import slangpy as spy

m = spy.math
RNG = np.random.default_rng(5)
NEAR = {"rtol": 2e-6, "atol": 2e-6}


def rot(axis: int, angle: float) -> np.ndarray:
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    r = np.eye(4)
    r[i, i] = r[j, j] = math.cos(angle)
    r[j, i] = math.sin(angle)
    r[i, j] = -math.sin(angle)
    return r


def axis_angle(angle: float, axis) -> np.ndarray:
    """By the matrix exponential's series, not by Rodrigues."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = angle * np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    result, term = np.eye(3), np.eye(3)
    for n in range(1, 60):
        term = term @ k / n
        result = result + term
    return result


def random_rotation() -> np.ndarray:
    return axis_angle(RNG.uniform(-3, 3), RNG.normal(size=3))


def quat_matrix(q) -> np.ndarray:
    """Columns are the rotated unit vectors, by quaternion products written out."""

    def product(a, b):
        (ax, ay, az, aw), (bx, by, bz, bw) = a, b
        vector = aw * np.array([bx, by, bz]) + bw * np.array([ax, ay, az]) + np.cross([ax, ay, az], [bx, by, bz])
        return np.array([*vector, aw * bw - ax * bx - ay * by - az * bz])

    q = np.array(list(q), float)
    inverse = q * [-1, -1, -1, 1]
    return np.stack([product(product(q, [*e, 0]), inverse)[:3] for e in np.eye(3)], axis=1)


def random_quat() -> "spy.quatf":
    q = RNG.normal(size=4)
    return spy.quatf(q / np.linalg.norm(q))


def test_mul():
    a = spy.float3x3(range(9))
    v = spy.float3(1, 2, 3)
    n = np.arange(9.0).reshape(3, 3)
    assert list(m.mul(a, v)) == list(n @ [1, 2, 3]) and list(m.mul(v, a)) == list(np.array([1, 2, 3]) @ n)
    np.testing.assert_array_equal(m.mul(a, a).to_numpy(), n @ n)
    assert m.mul(spy.float2x3(range(6)), v) == spy.float2(8, 26)
    assert m.mul(2, v) == v * 2 == m.mul(v, 2) and m.mul(a, 2) == a * 2
    for bad in (
        lambda: m.mul(v, v),
        lambda: m.mul(a, spy.float2()),
        lambda: m.mul(a, "x"),
        lambda: m.mul(spy.quatf(), spy.float2()),
    ):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize(("scalar", "tolerance"), [("float", 1e-4), ("double", 1e-11)])
def test_inverse_and_determinant(n, scalar, tolerance):
    cls = getattr(spy, f"{scalar}{n}x{n}")
    for _ in range(50):
        a = cls(RNG.uniform(-2, 2, (n, n)))
        wide = a.to_numpy().astype(float)
        assert m.determinant(a) == pytest.approx(np.linalg.det(wide), rel=1e-9)
        if abs(np.linalg.det(wide)) > 0.05:
            assert type(m.inverse(a)) is cls
            np.testing.assert_allclose(m.inverse(a).to_numpy(), np.linalg.inv(wide), rtol=tolerance, atol=tolerance)
    zero_pivot = np.eye(n)[::-1]
    np.testing.assert_array_equal(m.inverse(cls(zero_pivot)).to_numpy(), zero_pivot)
    assert m.determinant(cls(zero_pivot)) == pytest.approx(np.linalg.det(zero_pivot))
    assert m.determinant(cls(np.ones((n, n)))) == 0
    with pytest.raises(ValueError, match="singular"):
        m.inverse(cls(np.ones((n, n))))
    with pytest.raises(TypeError, match="square"):
        m.determinant(spy.float2x3())


def test_transpose():
    for r in range(2, 5):
        for c in range(2, 5):
            a = np.arange(r * c).reshape(r, c)
            got = m.transpose(getattr(spy, f"int{r}x{c}")(a))
            assert type(got) is getattr(spy, f"int{c}x{r}")
            np.testing.assert_array_equal(got.to_numpy(), a.T)


def test_builders():
    t, s = np.eye(4), np.diag([2.0, 3, 4, 1])
    t[:3, 3] = 1, 2, 3
    np.testing.assert_array_equal(m.matrix_from_translation(spy.float3(1, 2, 3)).to_numpy(), t)
    np.testing.assert_array_equal(m.matrix_from_scaling(spy.float3(2, 3, 4)).to_numpy(), s)
    t2, s2 = np.eye(3), np.diag([2.0, 3, 1])
    t2[:2, 2] = 1, 2
    np.testing.assert_array_equal(m.matrix_from_translation_2d(spy.float2(1, 2)).to_numpy(), t2)
    np.testing.assert_array_equal(m.matrix_from_scaling_2d(spy.float2(2, 3)).to_numpy(), s2)
    for axis, name in enumerate("xyz"):
        got = getattr(m, f"matrix_from_rotation_{name}")(0.7)
        assert type(got) is spy.float4x4
        np.testing.assert_allclose(got.to_numpy(), rot(axis, 0.7), **NEAR)
    np.testing.assert_allclose(m.matrix_from_rotation_2d(0.7).to_numpy(), rot(2, 0.7)[:3, :3], **NEAR)
    xyz = rot(0, 0.1) @ rot(1, 0.2) @ rot(2, 0.3)
    np.testing.assert_allclose(m.matrix_from_rotation_xyz(0.1, 0.2, 0.3).to_numpy(), xyz, **NEAR)
    np.testing.assert_allclose(m.matrix_from_rotation_xyz(spy.float3(0.1, 0.2, 0.3)).to_numpy(), xyz, **NEAR)
    for _ in range(10):
        angle, axis = RNG.uniform(-3, 3), RNG.normal(size=3)
        got = m.matrix_from_rotation(angle, spy.float3(axis)).to_numpy()
        np.testing.assert_allclose(got[:3, :3], axis_angle(angle, axis), **NEAR)
        assert list(got[3]) == [0, 0, 0, 1] and list(got[:, 3]) == [0, 0, 0, 1]
    assert type(m.matrix_from_translation(spy.double3(1))) is spy.double4x4
    with pytest.raises(ValueError, match="length 0"):
        m.matrix_from_rotation(1.0, spy.float3(0))


def test_products_apply_on_the_right():
    a4, a3 = RNG.uniform(-1, 1, (4, 4)), RNG.uniform(-1, 1, (3, 3))
    m4, m3 = spy.float4x4(a4), spy.float3x3(a3)
    v, w = spy.float3(1, 2, 3), spy.float2(1, 2)
    for got, expected in [
        (m.translate(m4, v), a4 @ m.matrix_from_translation(v).to_numpy()),
        (m.rotate(m4, 0.5, v), a4 @ m.matrix_from_rotation(0.5, v).to_numpy()),
        (m.scale(m4, v), a4 @ m.matrix_from_scaling(v).to_numpy()),
        (m.translate_2d(m3, w), a3 @ m.matrix_from_translation_2d(w).to_numpy()),
        (m.rotate_2d(m3, 0.5), a3 @ m.matrix_from_rotation_2d(0.5).to_numpy()),
        (m.scale_2d(m3, w), a3 @ m.matrix_from_scaling_2d(w).to_numpy()),
    ]:
        np.testing.assert_allclose(got.to_numpy(), expected, **NEAR)
    p = np.array([1.0, 2, 3])
    np.testing.assert_allclose(list(m.transform_point(m4, v)), (a4 @ [*p, 1])[:3], **NEAR)
    np.testing.assert_allclose(list(m.transform_vector(m4, v)), a4[:3, :3] @ p, **NEAR)
    np.testing.assert_allclose(list(m.transform_vector(m3, v)), a3 @ p, **NEAR)
    np.testing.assert_allclose(list(m.transform_point(spy.float3x4(a4[:3]), v)), (a4 @ [*p, 1])[:3], **NEAR)
    whole = m.matrix_4x4_from_3x4(spy.float3x4(a4[:3])).to_numpy()
    np.testing.assert_array_equal(whole, np.vstack([a4[:3].astype(np.float32), [0, 0, 0, 1]]))


def test_projections():
    expected = [[0.5, 0, 0, 0], [0, 1, 0, 0], [0, 0, -10 / 9, -10 / 9], [0, 0, -1, 0]]
    np.testing.assert_allclose(m.perspective(np.pi / 2, 2, 1, 10).to_numpy(), expected, **NEAR)
    p = m.perspective(fovy=0.9, aspect=1.5, z_near=0.5, z_far=20).to_numpy().astype(float)
    o = m.ortho(left=-2, right=4, bottom=-1, top=3, z_near=0.5, z_far=20).to_numpy().astype(float)
    for z, depth in ((-0.5, 0), (-20, 1)):
        for matrix in (p, o):
            clip = matrix @ [0, 0, z, 1]
            assert clip[2] / clip[3] == pytest.approx(depth, abs=1e-5)
    top = p @ [0, math.tan(0.45), -1, 1]
    assert top[1] / top[3] == pytest.approx(1) and (p @ [1.5 * math.tan(0.45), 0, -1, 1])[0] == pytest.approx(1)
    for x, y, cx, cy in ((-2, -1, -1, -1), (4, 3, 1, 1), (1, 1, 0, 0)):
        np.testing.assert_allclose((o @ [x, y, -3, 1])[:2], [cx, cy], atol=1e-6)
    for bad in (
        lambda: m.perspective(1, 0, 1, 2),
        lambda: m.perspective(1, 1, 2, 2),
        lambda: m.ortho(1, 1, 0, 1, 0, 1),
    ):
        with pytest.raises(ValueError, match="must"):
            bad()


@pytest.mark.parametrize(("handedness", "forward"), [("right", -1), ("left", 1)])
def test_look_at(handedness, forward):
    for _ in range(10):
        eye, center, up = RNG.normal(size=(3, 3)) * 3
        view = m.matrix_from_look_at(spy.float3(eye), spy.float3(center), spy.float3(up), handedness)
        view = view.to_numpy().astype(float)
        np.testing.assert_allclose(view[:3, :3] @ view[:3, :3].T, np.eye(3), atol=1e-5)
        assert np.linalg.det(view) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(view @ [*eye, 1], [0, 0, 0, 1], atol=1e-4)
        distance = np.linalg.norm(center - eye)
        np.testing.assert_allclose(view @ [*center, 1], [0, 0, forward * distance, 1], atol=1e-4)
        tip = view[:3, :3] @ up
        assert tip[1] > 0 and tip[0] == pytest.approx(0, abs=1e-4)
    default = m.matrix_from_look_at(eye, center, up)
    assert default == m.matrix_from_look_at(eye, center, up, m.Handedness.right_handed)
    assert default != m.matrix_from_look_at(eye, center, up, handedness=m.Handedness.left_handed)
    with pytest.raises(ValueError, match="parallel"):
        m.matrix_from_look_at((0, 0, 0), (0, 1, 0), (0, 1, 0))
    with pytest.raises(ValueError, match="handedness"):
        m.matrix_from_look_at(eye, center, up, "up")


def test_decompose():
    for mirror in (1, -1):
        for _ in range(20):
            r, t = random_rotation(), RNG.normal(size=3)
            scale = RNG.uniform(0.5, 2, 3) * [1, 1, mirror]
            kyz, kxz, kxy = RNG.uniform(-0.5, 0.5, 3)
            shear = np.array([[1, kxy, kxz], [0, 1, kyz], [0, 0, 1]])
            a = np.eye(4)
            a[:3, :3] = r @ shear @ np.diag(scale)
            a[:3, 3] = t
            p = np.eye(4)
            p[3] = [0.1, -0.2, 0.05, 1]
            whole = p @ a
            parts = m.decompose(spy.double4x4(whole))
            out_scale, q, translation, skew, perspective = parts
            got = np.eye(4)
            yz, xz, xy = skew
            got[:3, :3] = quat_matrix(q) @ np.array([[1, xy, xz], [0, 1, yz], [0, 0, 1]]) @ np.diag(list(out_scale))
            got[:3, 3] = list(translation)
            back = np.eye(4)
            back[3] = list(perspective)
            expected = whole / whole[3, 3]
            affine_only = expected.copy()
            affine_only[3] = [0, 0, 0, 1]
            np.testing.assert_allclose(got, affine_only, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose((back @ got)[3], expected[3], rtol=1e-5, atol=1e-5)
            assert np.linalg.norm(list(q)) == pytest.approx(1, abs=1e-6)
    simple = spy.float4x4([[2, 0, 0, 5], [0, 3, 0, 6], [0, 0, 4, 7], [0, 0, 0, 1]])
    scale, q, t, skew, perspective = m.decompose(simple)
    assert (scale, q, t, skew, perspective) == ((2, 3, 4), (0, 0, 0, 1), (5, 6, 7), (0, 0, 0), (0, 0, 0, 1))
    out = [spy.float3(), spy.quatf(), spy.float3(), spy.float3(), spy.float4()]
    assert m.decompose(simple, *out) is True
    assert tuple(out) == (scale, q, t, skew, perspective)
    assert m.decompose(spy.float4x4.zeros(), *out) is False
    with pytest.raises(ValueError, match="singular"):
        m.decompose(spy.float4x4.zeros())


def test_quaternion_products():
    for _ in range(20):
        q, r, v = random_quat(), random_quat(), RNG.normal(size=3)
        np.testing.assert_allclose(list(m.mul(q, spy.float3(v))), quat_matrix(q) @ v, rtol=1e-5, atol=1e-5)
        both = quat_matrix(q) @ quat_matrix(r)
        np.testing.assert_allclose(quat_matrix(m.mul(q, r)), both, rtol=1e-5, atol=1e-5)
        assert m.cross(q, r) == m.mul(q, r)
        np.testing.assert_allclose(m.matrix_from_quat(q).to_numpy(), quat_matrix(q), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(list(m.mul(m.inverse(q), q)), [0, 0, 0, 1], atol=1e-6)
        assert list(m.conjugate(q)) == [-q.x, -q.y, -q.z, q.w]
        assert m.dot(q, r) == pytest.approx(np.dot(list(q), list(r)), abs=1e-6)
    assert list(m.inverse(spy.quatf(0, 0, 0, 2))) == [0, 0, 0, 0.5]
    np.testing.assert_allclose(list(m.normalize(spy.quatf(1, 2, 3, 4))), np.array([1, 2, 3, 4]) / math.sqrt(30), **NEAR)
    assert m.length(spy.quatf(1, 2, 3, 4)) == pytest.approx(math.sqrt(30))
    with pytest.raises(ValueError, match="length 0"):
        m.inverse(spy.quatf(0, 0, 0, 0))


def test_quaternion_from_and_to():
    for _ in range(30):
        angle, axis = RNG.uniform(-3, 3), RNG.normal(size=3)
        q = m.quat_from_angle_axis(angle, spy.float3(axis))
        np.testing.assert_allclose(quat_matrix(q), axis_angle(angle, axis), rtol=1e-5, atol=1e-5)
        r = random_rotation()
        np.testing.assert_allclose(quat_matrix(m.quat_from_matrix(spy.float3x3(r))), r, rtol=1e-5, atol=1e-5)
        e = RNG.uniform(-1.5, 1.5, 3) * [2, 1, 2]
        matrix = (rot(2, e[2]) @ rot(1, e[1]) @ rot(0, e[0]))[:3, :3]
        q = m.quat_from_euler_angles(spy.float3(e))
        np.testing.assert_allclose(quat_matrix(q), matrix, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(list(m.euler_angles(q)), e, atol=2e-4)
        np.testing.assert_allclose([m.pitch(q), m.yaw(q), m.roll(q)], list(m.euler_angles(q)), rtol=1e-6)
        a, b = RNG.normal(size=(2, 3))
        turn = m.quat_from_rotation_between_vectors(spy.float3(a), spy.float3(b))
        np.testing.assert_allclose(quat_matrix(turn) @ a / np.linalg.norm(a), b / np.linalg.norm(b), atol=1e-5)
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert 2 * math.acos(min(1, turn.w)) == pytest.approx(math.acos(cosine), abs=2e-3)
    for axis in np.eye(3):  # half turns: each branch of the matrix conversion
        r = axis_angle(math.pi, axis)
        np.testing.assert_allclose(quat_matrix(m.quat_from_matrix(spy.float3x3(r))), r, atol=1e-5)
        half = m.quat_from_rotation_between_vectors(spy.float3(axis), spy.float3(-axis))
        np.testing.assert_allclose(quat_matrix(half) @ axis, -axis, atol=1e-6)
    for yaw in (math.pi / 2, -math.pi / 2):  # pitch and roll are not separate here, the rotation must still be the same
        q = m.quat_from_euler_angles(spy.float3(0.3, yaw, 0.2))
        again = m.quat_from_euler_angles(m.euler_angles(q))
        np.testing.assert_allclose(quat_matrix(again), quat_matrix(q), atol=1e-3)


@pytest.mark.parametrize(("handedness", "forward"), [("right", -1), ("left", 1)])
def test_quaternion_look_at(handedness, forward):
    for _ in range(10):
        direction, up = RNG.normal(size=(2, 3))
        r = quat_matrix(m.quat_from_look_at(spy.float3(direction), spy.float3(up), handedness))
        np.testing.assert_allclose(r @ [0, 0, forward], direction / np.linalg.norm(direction), atol=1e-5)
        assert (r @ [0, 1, 0]) @ up > 0 and (r @ [1, 0, 0]) @ up == pytest.approx(0, abs=1e-5)


def test_slerp():
    a = m.quat_from_angle_axis(0.2, (0, 0, 1))
    b = m.quat_from_angle_axis(1.4, (0, 0, 1))
    for t in (0, 0.25, 0.5, 1):
        expected = m.quat_from_angle_axis(0.2 + 1.2 * t, (0, 0, 1))
        np.testing.assert_allclose(list(m.slerp(a, b, t)), list(expected), atol=1e-6)
        np.testing.assert_allclose(list(m.slerp(a, -b, t)), list(expected), atol=1e-6)
        blend = np.array(list(a)) * (1 - t) + np.array(list(b)) * t
        np.testing.assert_allclose(list(m.lerp(a, b, t)), blend, atol=1e-6)
    assert m.slerp(a, a, 0.3) == a
    with pytest.raises(TypeError, match=r"math\.slerp\(x\): expected a quatf"):
        m.slerp(1, a, 0.5)
