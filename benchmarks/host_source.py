"""The Slang functions that host_rows.py and host_rows_peer.py call. Nothing is imported: the latter runs with either package."""

COMMON = """
[Differentiable] float add(float a, float b) { return a + b; }
float3 shift(float3 v, float s) { return v + s; }
float of_texture(int2 at, Texture2D<float4> t) { return t[at].x; }
struct Pair { float a; float b; }
struct Nested { Pair pair; float c; }
float of_pair(Pair p) { return p.a + p.b; }
float of_nested(Nested n) { return n.pair.a + n.pair.b + n.c; }
float scaled(int i, float a) { return i * a; }
void write(float a, out float b) { b = 2 * a; }
struct Body { float x; float v; [mutating] void step(float dt) { x += v * dt; } }
"""
