"""Call functions written in Slang from Python, vectorised over arrays, with gradients.

    import slangpy as spy
    device = spy.create_device()
    module = spy.Module.load_from_file(device, "example.slang")
    y = module.polynomial(a=2, b=8, c=-1, x=x)
"""

from __future__ import annotations

__version__ = "0.1.0"

from . import _native as _native
from . import config as _config
from . import math as math
from ._native import *  # noqa: F403
from ._native import DiffPair, Shape, ValueRef
from .config import (
    set_allow_torch_fallback,
    set_dump_generated_shaders,
    set_dump_slang_intermediates,
    set_print_generated_shaders,
)
from .device import *  # noqa: F403
from .errors import (
    BoundVariableException,
    CallError,
    KernelGenException,
    ResolveException,
    ShapeError,
    SlangCompileError,
)
from .function import Function, FunctionNode, explain
from .generators import (
    CallIdArg,
    GridArg,
    RandFloatArg,
    ThreadIdArg,
    WangHashArg,
    call_id,
    grid,
    rand_float,
    thread_id,
    wang_hash,
)
from .log import *  # noqa: F403
from .module import Module
from .refs import diffPair, floatDiffPair, floatRef, intRef
from .session import (
    SlangCompilerOptions,
    SlangDebugInfoLevel,
    SlangFloatingPointMode,
    SlangLinkOptions,
    SlangMatrixLayout,
    SlangOptimizationLevel,
    SpecializationArg,
    TypeConformance,
)
from .struct import Struct
from .tensor import Tensor

_native._set_custom_types({}, {})
