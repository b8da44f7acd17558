"""Kernels with cooperative vectors as SPIR-V for a driver that has them: the capabilities that the Vulkan device looks at, and
the driver's instructions instead of loops. spirv-val of Debian 12 does not know them."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest

from slangpy import _slang

from .cases import CAPABILITIES
from .code_only import CodeOnly

pytestmark = pytest.mark.null
CAPABILITY, TYPE, MULTIPLY, OUTER = 17, 5288, 5289, 5290
COOPERATIVE, TRAINING, REPLICATED = 5394, 5435, 6024
SOURCE = """
[shader("compute")] [numthreads(4, 1, 1)]
void main(uint3 at : SV_DispatchThreadID, uniform ByteAddressBuffer w, uniform RWByteAddressBuffer y, uniform RWByteAddressBuffer d)
{
    CoopVec<half, 8> x = CoopVec<half, 8>(half(at.x));
    let z = coopVecMatMul<half, 4, 8>(
        x, CoopVecComponentType.Float16, w, 0, CoopVecComponentType.Float16, CoopVecMatrixLayout.InferencingOptimal, false, 0);
    z.store(y, 8 * at.x);
    coopVecOuterProductAccumulate(z, x, d, 0, 0, CoopVecMatrixLayout.TrainingOptimal, CoopVecComponentType.Float16);
}
"""


def test_instructions_of_drivers() -> None:
    names = (*CAPABILITIES["spirv"], "spvCooperativeVectorNV", "spvCooperativeVectorTrainingNV")
    session = _slang.SlangSession(vars(CodeOnly("spirv", names).compile_target), {"optimization": "high"})
    module = session.load_module_from_source("coop_vec_code", SOURCE)
    words = array("I", session.link([module], [module.entry_point("main")]).code(0))
    found, capabilities, at = Counter[int](), set[int](), 5
    while at < len(words):
        found[words[at] & 0xFFFF] += 1
        if words[at] & 0xFFFF == CAPABILITY:
            capabilities.add(words[at + 1])
        at += words[at] >> 16
    assert {COOPERATIVE, TRAINING, REPLICATED} <= capabilities
    assert (found[TYPE], found[MULTIPLY], found[OUTER]) == (2, 1, 1)
