// What someone writes by hand in CUDA for one mesh: a traversal with a stack over the nodes and triangles that slangpy.rays
// built (slangpy/slang/rays/traverse.slang says how they lie), and Möller and Trumbore's test of triangles. No instances, no other
// shapes, no exact edges, no order among equal hits.

constexpr unsigned LEAF = 0x80000000u;
constexpr float NEVER = 3.402823466e38f;

struct Waiting {
    float t;
    unsigned reference;
};

struct Vector {
    float x, y, z;
};

__device__ inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ inline float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ inline Vector cross(Vector a, Vector b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
__device__ inline Vector xyz(float4 v) { return {v.x, v.y, v.z}; }

__device__ inline bool meets(Vector o, Vector d, float4 v0, float4 v1, float4 v2, float& best)
{
    const Vector a = xyz(v0), e1 = xyz(v1) - a, e2 = xyz(v2) - a, s = o - a;
    const Vector p = cross(d, e2), q = cross(s, e1);
    const float scale = 1.0f / dot(p, e1);
    const float u = dot(p, s) * scale, v = dot(q, d) * scale, t = dot(e2, q) * scale;
    if (!(u >= 0 && v >= 0 && u + v <= 1 && t > 0 && t < best))
        return false;
    best = t;
    return true;
}

__device__ inline void order(Waiting& a, Waiting& b)
{
    const Waiting near = a.t > b.t ? b : a, far = a.t > b.t ? a : b;
    a = near;
    b = far;
}

__device__ inline float inverse_of(float d) { return 1.0f / (fabsf(d) > 1e-18f ? d : copysignf(1e-18f, d)); }

template <bool any_hit>
__device__ inline int trace(const float4* __restrict__ nodes, const float4* __restrict__ triangles, Vector o, Vector d)
{
    const Vector inverse = {inverse_of(d.x), inverse_of(d.y), inverse_of(d.z)};
    const Vector shift = {o.x * inverse.x, o.y * inverse.y, o.z * inverse.z};
    const int x = inverse.x < 0, y = inverse.y < 0, z = inverse.z < 0;
    Waiting stack[64];
    int count = 0, found = -1;
    float best = NEVER;
    unsigned now = 0;
    for (;;) {
        if ((now & LEAF) == 0) {
            const float4* __restrict__ node = nodes + 8 * now;
            const float4 x0 = node[x], x1 = node[1 - x], y0 = node[2 + y], y1 = node[3 - y], z0 = node[4 + z], z1 = node[5 - z];
            const float4 references = node[6];
            Waiting child[4];
#define CHILD(k, c)                                                                                                         \
    {                                                                                                                       \
        const float enters = fmaxf(fmaxf(x0.c * inverse.x - shift.x, y0.c * inverse.y - shift.y),                           \
                                   fmaxf(z0.c * inverse.z - shift.z, 0.0f));                                                \
        const float leaves = fminf(fminf(x1.c * inverse.x - shift.x, y1.c * inverse.y - shift.y),                           \
                                   fminf(z1.c * inverse.z - shift.z, best));                                                \
        child[k] = {enters <= leaves * 1.000001f ? enters : NEVER, __float_as_uint(references.c)};                          \
    }
            CHILD(0, x)
            CHILD(1, y)
            CHILD(2, z)
            CHILD(3, w)
#undef CHILD
            order(child[0], child[1]);
            order(child[2], child[3]);
            order(child[0], child[2]);
            order(child[1], child[3]);
            order(child[1], child[2]);
#pragma unroll
            for (int k = 3; k > 0; k--)
                if (child[k].t < NEVER)
                    stack[count++] = child[k];
            if (child[0].t < NEVER) {
                now = child[0].reference;
                continue;
            }
        } else {
            const int first = now & 0x0fffffffu, end = first + ((now >> 28) & 7) + 1;
            for (int i = first; i < end; i++) {
                const float4 v = triangles[3 * i];
                if (meets(o, d, v, triangles[3 * i + 1], triangles[3 * i + 2], best)) {
                    found = int(__float_as_uint(v.w));
                    if (any_hit)
                        return found;
                }
            }
        }
        do {
            if (count == 0)
                return found;
            count--;
        } while (stack[count].t > best);
        now = stack[count].reference;
    }
}

template <bool any_hit>
__device__ inline void run(const float4* nodes, const float4* triangles, const float* origins, const float* directions, int* found, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const Vector o = {origins[3 * i], origins[3 * i + 1], origins[3 * i + 2]};
    const Vector d = {directions[3 * i], directions[3 * i + 1], directions[3 * i + 2]};
    const int hit = trace<any_hit>(nodes, triangles, o, d);
    found[i] = any_hit ? hit >= 0 : hit;
}

extern "C" {
__global__ void closest(const float4* __restrict__ nodes, const float4* __restrict__ triangles, const float* __restrict__ origins,
                        const float* __restrict__ directions, int* __restrict__ found, int count)
{
    run<false>(nodes, triangles, origins, directions, found, count);
}

__global__ void occluded(const float4* __restrict__ nodes, const float4* __restrict__ triangles, const float* __restrict__ origins,
                         const float* __restrict__ directions, int* __restrict__ found, int count)
{
    run<true>(nodes, triangles, origins, directions, found, count);
}
}
