"""Writes what docs/how-a-call-works.md shows of generated code from the code as it is.

python tools/update_docs.py          # after a change of slangpy/plan/emit/
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import slangpy as spy

PAGE = Path(__file__).parent.parent / "docs" / "how-a-call-works.md"
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n```\w+\n)(.*?)(```\n)", re.S)
SOURCE = """[Differentiable]
float polynomial(float a, float b, float c, float x)
{
    return a * x * x + b * x + c;
}
"""


def generated() -> dict[str, str]:
    """The blocks by name. Needs a Vulkan device."""
    device = spy.create_device(type=spy.DeviceType.vulkan)
    function = spy.Module.load_from_source(device, "example", SOURCE).polynomial
    x = np.arange(1, 5, dtype=np.float32)
    inputs = spy.Tensor.from_numpy(device, x).with_grads()
    outputs = spy.Tensor.from_numpy(device, x).with_grads()
    forward = function.debug_build_call_data(a=2, b=8, c=-1, x=x, _result="numpy")
    backward = function.bwds.debug_build_call_data(a=2, b=8, c=-1, x=inputs, _result=outputs)
    return {
        "explain": spy.explain(function, a=2, b=8, c=-1, x=x).strip() + "\n",
        "forward": forward.code.strip() + "\n",
        "backward": backward.code.strip() + "\n",
    }


def page(blocks: dict[str, str]) -> str:
    return BLOCK.sub(lambda m: m[1] + blocks[m[2]] + m[4], PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(generated()), encoding="utf-8")
