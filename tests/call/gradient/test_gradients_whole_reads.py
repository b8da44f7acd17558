"""Reads by a run-time index beside a use of the whole variable, or in another loop: Slang 2026.12 loses the share of one,
so sources are changed before it sees them."""

from __future__ import annotations

import pytest
from gradient_forms import check_forms

import slangpy as spy

pytestmark = [pytest.mark.needs_kernels, pytest.mark.one]

HEAD = """
struct Item : IDifferentiable { float p; float2 q; }
struct Box : IDifferentiable
{
    float z[4];
    float2 q;
    [Differentiable] float both(int n) { float a = sin(z[n % 2]); Box k = this; return a * k.z[0] + k.z[1] * q[n % 2] * q.x; }
}
struct Pair : IDifferentiable { Box b; Item i; }
struct Four : IDifferentiable { Item e[4]; }
[Differentiable] Item same(Item k) { return k; }
[Differentiable] void copied(Item k, out Item c) { c = k; }
[Differentiable] float scaled(float v, float w) { return sin(v) * w; }
"""
ITEM = "Item k = { b, v.xy };"
BOX = "float z[4] = { a, b, v.x, v.y }; Box s = { z, v.yz };"
FOUR = "Four s; for (int i = 0; i < 4; i++) { s.e[i].p = v[i % 3] * a; s.e[i].q = v.xy * b; }"
LOOP = "[MaxIters(5)] for (int i = 0; i < n; i++)"
PAIR = f"{BOX} Pair o = {{ s, {{ a, v.xz }} }};"
STRUCTS = {"Item": ("k", ITEM), "Box": ("s", BOX), "Four": ("s", FOUR), "Pair": ("o", PAIR)}
WITH_STRUCTS = {
    "a read, then a copy": ("Item", "r = sin(k.q[n % 2]); Item c = k; r += c.q[1] * c.q[0];"),
    "a copy, then a read": ("Item", "Item c = k; r = sin(k.q[n % 2]); r += c.q[1] * c.q[0];"),
    "a copy in a loop": ("Item", f"r = sin(k.q[n % 2]); {LOOP} {{ Item c = k; r *= c.q[1]; }}"),
    "a read and a copy in a loop": ("Item", f"r = 1; {LOOP} {{ r *= sin(k.q[n % 2]); Item c = k; r += c.q[1]; }}"),
    "a read in a loop": ("Item", f"Item c = k; r = 1; {LOOP} r = r * sin(k.q[n % 2]) + c.q[1];"),
    "a read in a loop, another behind it": ("Item", f"r = 1; {LOOP} r *= sin(k.q[n % 2]); r += k.q[0] * k.q.y;"),
    "a read in a loop, another in front of it": ("Box", f"r = s.z[0] * s.q[1]; {LOOP} r = r * sin(s.z[n]) + s.q[n % 2];"),
    "a read in a nested loop": ("Box", f"r = 1; {LOOP} {{ float w = s.z[1]; [MaxIters(2)] for (int j = 0; j < 2; j++) r = r * sin(s.z[n]) + w * b; }}"),
    "a read of a copy": ("Item", "Item c = k; r = sin(c.q[n % 2]) + k.q[1] * k.q.x;"),
    "a read of a copy of a field": ("Item", "Item c; c.p = k.p; c.q = k.q; r = sin(c.q[n % 2]) * k.q[1];"),
    "a read of what a function gives": ("Item", "Item c = same(k), d; copied(k, d); r = sin(c.q[n % 2]) * k.q[1] + sin(d.q[n % 2]);"),
    "let": ("Item", "let c = k; r = sin(k.q[n % 2]) * c.q[1];"),
    "a choice": ("Item", "r = sin(k.q[n % 2]); Item c = n > 2 ? k : same(k); r *= c.q[1];"),
    "a branch": ("Item", "r = b; if (b > 0.5) r = sin(k.q[n % 2]); Item c = k; r += c.q[1] * c.q[0];"),
    "an array": ("Box", "r = sin(s.z[n]); Box c = s; r *= c.z[0] * c.z[1];"),
    "an array by itself": ("Box", "r = sin(s.z[n]); float c[4] = s.z; r *= c[0] * c[1];"),
    "an array in a loop": ("Box", f"r = 1; {LOOP} {{ r *= sin(s.z[n]); float c[4] = s.z; r += c[1] * c[0]; }}"),
    "this": ("Box", "r = s.both(n);"),
    "arguments": ("Box", "r = scaled(s.z[n], s.q[n % 2]); Box c = s; r *= scaled(c.z[1], c.q[0]);"),
    "structs in structs": ("Pair", "r = sin(o.b.z[n]) + sin(o.i.q[n % 2]); Box k = o.b; Item j = o.i; Pair c = o; r += k.z[0] * c.b.z[1] * j.q.x * c.i.q.y;"),
    "an array of structs": ("Four", "r = sin(s.e[n].p); Item c[4] = s.e; r *= c[0].p;"),
    "an element of an array of structs": ("Four", "r = sin(s.e[1].q[n % 2]); Item c = s.e[1]; r *= c.q.x * c.q[1];"),
    "an element by the same index": ("Four", "r = sin(s.e[n].q[n % 2]); Item c = s.e[n]; r *= c.q.x * c.q[1] * s.e[n].p;"),
}  # fmt: skip
FORMS = {
    **{form: f"{STRUCTS[kind][1]} return of_{k}({STRUCTS[kind][0]}, b, n);" for k, (form, (kind, _)) in enumerate(WITH_STRUCTS.items())},
    "an array read in a loop and behind it": f"float x[4] = {{ a, b, v.x, v.y }}; float r = 1; {LOOP} r *= sin(x[n]); return r + x[0] * x[1];",
    "an array copied in a loop": f"float x[4] = {{ a, b, v.x, v.y }}; float r = 1; {LOOP} {{ r *= sin(x[n]); float c[4] = x; r += c[0] * c[1]; }} return r;",
    "an array copied in front of a loop": f"float x[4] = {{ a, b, v.x, v.y }}; float c[4] = x; float r = 1; {LOOP} r += c[0] * c[1] * x[n]; return r;",
}


def test_gradients(device: spy.Device) -> None:
    functions = "".join(
        f"[Differentiable] float of_{k}({kind} {STRUCTS[kind][0]}, float b, int n) {{ float r; {body} return r; }}\n"
        for k, (kind, body) in enumerate(WITH_STRUCTS.values())
    )
    check_forms(device, "whole_reads", HEAD + functions, FORMS, n=range(4))
