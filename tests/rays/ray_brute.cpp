// What ray_brute.Triangles says, compiled: every ray against every triangle, 10^11 pairs in minutes.
// Compile it without contraction of products and sums: each operation rounds as NumPy's does.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

constexpr int block = 1024;

/// Corners in the order of a ray's axes.
struct Triangles {
    std::vector<float> x[3], y[3], z[3];
};

float difference(float a, float b, float c, float d)
{
    const float rounded = a * b - c * d;
    return rounded != 0 ? rounded : float(double(a) * b - double(c) * d);
}

struct Ray {
    float ox, oy, oz, sx, sy, sz;
};

/// Whether each triangle may be met: what rounded products tell apart, exact ones do, too.
void may_meet(const Triangles& all, int begin, int count, const Ray& r, uint8_t* may)
{
    const float *x0 = &all.x[0][begin], *x1 = &all.x[1][begin], *x2 = &all.x[2][begin];
    const float *y0 = &all.y[0][begin], *y1 = &all.y[1][begin], *y2 = &all.y[2][begin];
    const float *z0 = &all.z[0][begin], *z1 = &all.z[1][begin], *z2 = &all.z[2][begin];
    for (int i = 0; i < count; i++) {
        const float az = z0[i] - r.oz, bz = z1[i] - r.oz, cz = z2[i] - r.oz;
        const float ax = x0[i] - r.ox - r.sx * az, ay = y0[i] - r.oy - r.sy * az;
        const float bx = x1[i] - r.ox - r.sx * bz, by = y1[i] - r.oy - r.sy * bz;
        const float cx = x2[i] - r.ox - r.sx * cz, cy = y2[i] - r.oy - r.sy * cz;
        const float u = cx * by - cy * bx, v = ax * cy - ay * cx, w = bx * ay - by * ax;
        may[i] = !(((u < 0) | (v < 0) | (w < 0)) & ((u > 0) | (v > 0) | (w > 0)));
    }
}

float meet(const Triangles& all, int i, const Ray& r)
{
    float x[3], y[3], z[3];
    for (int k = 0; k < 3; k++) {
        z[k] = all.z[k][i] - r.oz;
        x[k] = all.x[k][i] - r.ox - r.sx * z[k];
        y[k] = all.y[k][i] - r.oy - r.sy * z[k];
    }
    const float u = difference(x[2], y[1], y[2], x[1]), v = difference(x[0], y[2], y[0], x[2]),
                w = difference(x[1], y[0], y[1], x[0]);
    const float sum = u + v + w;
    if ((std::min({u, v, w}) < 0 && std::max({u, v, w}) > 0) || sum == 0)
        return HUGE_VALF;
    return (u * (r.sz * z[0]) + v * (r.sz * z[1]) + w * (r.sz * z[2])) / sum;
}

} // namespace

/// corners: count * 9. Rays count from `ray` on, all with the longest direction along `axis`. t, found: in and out.
extern "C" void brute_closest(const float* corners, int count, const float* origins, const float* directions, int rays,
                              int axis, float* t, int32_t* found, int threads)
{
    const int x = (axis + 1) % 3, y = (axis + 2) % 3;
    Triangles all;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++) {
            const float* corner = corners + 9 * int64_t(i) + 3 * k;
            all.x[k].push_back(corner[x]);
            all.y[k].push_back(corner[y]);
            all.z[k].push_back(corner[axis]);
        }
    const auto work = [&](int first, int last) {
        uint8_t may[block];
        for (int begin = 0; begin < count; begin += block) {
            const int here = std::min(block, count - begin);
            for (int n = first; n < last; n++) {
                const float *o = origins + 3 * n, *d = directions + 3 * n;
                const Ray ray = {o[x], o[y], o[axis], d[x] / d[axis], d[y] / d[axis], 1.0f / d[axis]};
                may_meet(all, begin, here, ray, may);
                for (int i = 0; i < here; i++) {
                    if (!may[i])
                        continue;
                    const float at = meet(all, begin + i, ray);
                    if (at > 0 && at < t[n]) { // of equal ones the first
                        t[n] = at;
                        found[n] = begin + i;
                    }
                }
            }
        }
    };
    std::vector<std::thread> own;
    for (int k = 0; k < threads; k++)
        own.emplace_back(work, int(int64_t(rays) * k / threads), int(int64_t(rays) * (k + 1) / threads));
    for (std::thread& thread : own)
        thread.join();
}
