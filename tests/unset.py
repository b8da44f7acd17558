"""What tests of values that were never set share: one source whose code reads every kind of resource, in every place that
a parameter can have. Each test sets all of them but one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import slangpy as spy

SOURCE = """
import slangpy;
StructuredBuffer<float> numbers;
RWStructuredBuffer<float> written;
ByteAddressBuffer bytes;
Texture2D<float> picture;
SamplerState filter;
StructuredBuffer<float> several[2];
Texture2D<float> pictures[2];
Tensor<float, 1> values;
RWTensor<float, 1> sums;
Tensor<float, 1> many[2];
struct Layer { Tensor<float, 1> weights; StructuredBuffer<float> lookup; float scale; }
uniform Layer layer;
ConstantBuffer<Layer> constant;
ParameterBlock<Layer> block;
struct Scene { Layer layers[2]; Texture2D<float> sky; }
ParameterBlock<Scene> scene;
Tensor<float, 1> unused_tensor;
StructuredBuffer<float> unused_numbers;
struct Pair { Tensor<float, 1> first, second; }
uniform Pair half_used;

float one(Layer l) { return l.weights[0] + l.lookup[0] + l.scale; }
float everything(uint i)
{
    float sum = numbers[i] + bytes.Load<float>(0) + picture[uint2(0)] + picture.SampleLevel(filter, float2(0.5), 0);
    sum += several[0][i] + several[1][i] + pictures[0][uint2(0)] + pictures[1][uint2(0)];
    sum += values[0] + sums.load(0) + many[0][0] + many[1][0] + half_used.first[0];
    written[i + 1] = sum;
    return sum + one(layer) + one(constant) + one(block) + one(scene.layers[0]) + one(scene.layers[1]) + scene.sky[uint2(0)];
}
"""

COMPUTE = (
    SOURCE
    + """
[shader("compute")] [numthreads(1, 1, 1)]
void main(uniform StructuredBuffer<float> given, uniform Tensor<float, 1> tensor, uniform Layer own, RWStructuredBuffer<float> result)
{
    result[0] = everything(0) + given[0] + tensor[0] + one(own);
}
"""
)

GLOBALS = {
    "numbers": "buffer",
    "written": "buffer",
    "bytes": "buffer",
    "picture": "texture",
    "filter": "sampler",
    "several[0]": "buffer",
    "several[1]": "buffer",
    "pictures[1]": "texture",
    "values": "tensor",
    "sums": "tensor",
    "many[0]": "tensor",
    "many[1]": "tensor",
    "layer.weights": "tensor",
    "layer.lookup": "buffer",
    "constant.weights": "tensor",
    "constant.lookup": "buffer",
    "block.weights": "tensor",
    "block.lookup": "buffer",
    "scene.layers[0].weights": "tensor",
    "scene.layers[1].weights": "tensor",
    "scene.layers[1].lookup": "buffer",
    "scene.sky": "texture",
    "half_used.first": "tensor",
}
"""The global parameters that `everything` reads, and what messages ask for."""
PARAMETERS = {"given": "buffer", "tensor": "tensor", "own.weights": "tensor", "own.lookup": "buffer"}
"""Those of the entry point of COMPUTE."""
OTHERS = ("pictures[0]", "scene.layers[0].lookup")
"""Not left out by any test."""


@cache
def _values(device: spy.Device) -> dict[str, Any]:
    usage = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access
    pixel = spy.Format.r32_float, spy.TextureUsage.shader_resource
    return {
        "buffer": device.create_buffer(data=np.ones(4, np.float32), struct_size=4, usage=usage),
        "texture": device.create_texture(
            format=pixel[0], usage=pixel[1], width=1, height=1, data=np.ones((1, 1), np.float32)
        ),
        "sampler": device.create_sampler(),
        "tensor": spy.Tensor.from_numpy(device, np.ones(4, np.float32)),
    }


def give(device: spy.Device, cursor: Any, kinds: dict[str, str], left_out: str) -> None:
    """Sets every parameter under a cursor but one."""
    for path, kind in kinds.items():
        if path == left_out:
            continue
        at, parts = cursor, path.replace("[", ".").replace("]", "").split(".")
        for part in parts[:-1]:
            at = at[int(part) if part.isdigit() else part]
        at[int(parts[-1]) if parts[-1].isdigit() else parts[-1]] = _values(device)[kind]


def give_globals(device: spy.Device, root: Any, left_out: str) -> None:
    """Sets every global but one; `root`: the root object."""
    others = {path: "texture" if path == "pictures[0]" else "buffer" for path in OTHERS}
    give(device, spy.ShaderCursor(root), GLOBALS | others, left_out)


def message(path: str, kind: str) -> str:
    """What a message about a parameter says, for `match`."""
    return rf"^parameter '{path}' of '.*' was never set: assign an? {kind}".replace("[", r"\[").replace("]", r"\]")
