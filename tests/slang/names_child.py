"""Names that Slang must not see, by every way in which a name from data gets there: names_child.py <seed>."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import slangpy as spy
from slangpy.reflection.lookup import find_type_layout_for_buffer

SOURCE = """
struct P { float x; int n; float m() { return x; } static int s() { return 1; } }
struct Q<T, let N : int> { T v[N]; T get() { return v[0]; } }
struct W<T> { T v; }
namespace ns { struct A { float a; struct B { int b; }; }; int f(int x) { return x; } static const int C = 3; }
static const int N = 4;
extern static const int E = 2;
enum Kind { A, B }
interface IT { float g(); }
struct Im : IT { float g() { return 1; } }
float f(float x) { return x; }
float of(P p) { return p.x; }
T gen<T : IFloat, let M : int>(T x) { return x; }
P operator+(P a, P b) { return a; }
typealias Alias = float3;
uniform float glob;
[shader("compute")] [numthreads(1, 1, 1)]
void main<let K : int, T : IT>(uniform T t) {}
"""
# each of these ended the process
CRASHED = [
    "P + P", "Gen<P + P>", "Q<float, P + 1>", "float[P + 1]", "W<-P>", "W<-true>", "true<float>", "this<1>", "none<none>",
    "W<--1>", "Tensor<float, 99999999999999999999>", "countof<float>", "Tensor<float, static>", "Tensor<sample, 1>",
    "__first<float>", "new", "try<try>", "fwd_diff<float>", "W<!N>", "W<+E>", "P[!4u]", "Q<float, Kind.A+1>", "W<1/Kind.A>",
    "float[1+sizeof(nosuch)]", "__getAddress.x", "__func_as_type", "s::operator*", "P + nosuch", "-P", "nosuch + 1", "f + f", "ns + 1",
    "W<" * 5000 + "float" + ">" * 5000, "float" + "[2]" * 5000, "P" + ".P" * 5000, "Q<float, " + "- " * 5000 + "1>",
    "float" + "*" * 5000, "P\0", "P\n+\nP", "", " ", "*", "\ud800", "é", "\ufeff", "P<\ufeff>", "é\ufeff",
]  # fmt: skip
WORDS = (
    "P Q W ns A B f gen N E Kind IT Im Alias glob C float int float3 bool void half uint64_t Tensor StructuredBuffer Texture2D "
    "Ptr vector matrix Array Optional Tuple DifferentialPair x n m s get v nosuch $init __init operator true false this This "
    "none nullptr sizeof static public in out const struct new try expand each fwd_diff 1 0 4 0x10 4u 1.5 ö 变 \ufeff"
).split()
SIGNS = "< > < > :: . , [ ] * + - / % ( ) & | ^ ~ ! << == && ? : ; { } = -> ' \" # $ @ /* */ //".split() + [
    "\n",
    " ",
    "\\",
]


def soup(rng: random.Random) -> str:
    return "".join(rng.choice(WORDS if rng.random() < 0.55 else SIGNS) for _ in range(rng.randint(1, 9)))


def path(rng: random.Random, depth: int) -> str:
    text = rng.choice(WORDS)
    if depth and rng.random() < 0.4:
        text += "<" + ", ".join(argument(rng, depth - 1) for _ in range(rng.randint(1, 3))) + ">"
    if rng.random() < 0.25:
        text += rng.choice(["::", "."]) + path(rng, max(depth - 1, 0))
    while rng.random() < 0.3:
        text += rng.choice(["[]", "*", "[4]", "[N]", "[" + argument(rng, max(depth - 1, 0)) + "]"])
    return text


def argument(rng: random.Random, depth: int) -> str:
    text = rng.choice(["", "", "", "", "-", "+", "~", "!"]) + path(rng, depth)
    while rng.random() < 0.3:
        text += rng.choice(" + | - | * | / | % | & ".split("|")) + path(rng, depth)
    return text


def names(rng: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        yield soup(rng) if rng.random() < 0.3 else rng.choice([path, path, argument])(rng, 2)


def ways(device: spy.Device, module: spy.Module) -> dict[str, Callable[[str], Any]]:
    """Ways of a name to the compiler."""
    layout, native = module.layout, module.device_module.layout
    p = native.find_type_by_name("P")
    main = module.device_module.entry_point("main")
    argument, conforms = spy.SpecializationArg, spy.TypeConformance
    x = np.ones(3, np.float32)
    return {
        "find_type_by_name": native.find_type_by_name,
        "find_function_by_name": native.find_function_by_name,
        "find_function_by_name_in_type": lambda name: native.find_function_by_name_in_type(p, name),
        "item": lambda name: module[name],
        "attribute": lambda name: getattr(module, name),
        "find_struct": module.find_struct,
        "require_struct": module.require_struct,
        "find_function": module.find_function,
        "require_function": module.require_function,
        "find_function_in_struct": lambda name: module.find_function_in_struct(name, "m"),
        "method": lambda name: module.P[name],
        "layout": layout.require_type_by_name,
        "tensor_type": lambda name: layout.tensor_type(layout.require_type_by_name(name), 1),
        "dtype": lambda name: spy.Tensor.empty(device, (2,), dtype=name),
        "buffer": lambda name: find_type_layout_for_buffer(layout, name),
        "_type": lambda name: module.of({"_type": name, "x": 1.0}),
        "pack": lambda name: spy.pack(module, {"_type": name, "x": 1.0}),
        "map": lambda name: module.f.map(name)(x),
        "function": lambda name: spy.Function(module, name),
        "conformance": lambda name: module.f.type_conformances([(name, "Im")])(x),
        "conforming": lambda name: module.f.type_conformances([conforms("IT", name)])(x),
        "constants": lambda name: module.f.constants({name: 1})(x),
        "set": lambda name: module.f.set({name: 1})(x),
        "entry_point": module.device_module.entry_point,
        "specialized": lambda name: main.specialize([argument.from_expr(name), argument.from_type("Im")]),
        "specialized type": lambda name: main.specialize([argument.from_expr("1"), argument.from_type(name)]),
    }


def main(seed: int) -> None:
    warnings.simplefilter("ignore")
    device = spy.create_device(spy.DeviceType.cpu)
    module = spy.Module.load_from_source(device, "names", SOURCE)
    rng = random.Random(seed)
    found = ways(device, module)
    cheap = ("find_type_by_name", "find_function_by_name", "find_function_by_name_in_type", "item", "dtype", "layout")
    given = [(way, name) for name in CRASHED for way in found]
    given += [(way, name) for name in names(rng, 3000) for way in cheap]
    given += [(way, name) for name in names(rng, 20) for way in found]
    for way, name in given:
        print(repr(f"{way}: {name}")[:200], file=sys.stderr, flush=True)  # the last line of a process that dies
        try:
            found[way](name)
        except (AttributeError, ValueError, TypeError, RuntimeError, KeyError, NotImplementedError) as error:
            assert not isinstance(error, spy.CompilerDiedError), error
    assert module.f(1.5) == 1.5 and module["Q<float, N + 1>"].full_name == "Q<float, 5>"
    print("done")


main(int(sys.argv[1]))
