"""Call functions written in Slang from Python, vectorised over arrays, with gradients.

import slangpy as spy
device = spy.create_device()
module = spy.Module.load_from_file(device, "example.slang")
y = module.polynomial(a=2, b=8, c=-1, x=x)
"""

from __future__ import annotations

__version__ = "0.1.0"

import difflib
import importlib
import sys
from typing import TYPE_CHECKING

from . import (
    _built as _built,  # first: it names what is missing
    _native as _native,
    bindings as bindings,
    compat as compat,
    config as config,
    math as math,
    reflection as reflection,
)
from ._native import *  # noqa: F403
from ._native import DiffPair as DiffPair, Shape as Shape, ValueRef as ValueRef
from .base.absent import absent as _absent
from .base.keys import KeyCode as KeyCode
from .base.own_names import own_names as _own_names
from .base.utility import SHA1 as SHA1, Timer as Timer
from .compiler import device_types as _device_types  # noqa: F401  (gives types their compiler)
from .compiler.enums import ShaderStage as ShaderStage
from .compiler.kernel import ComputeKernel as ComputeKernel, ComputePipeline as ComputePipeline
from .compiler.progress import progress as progress
from .compiler.session import (
    ReflectionCursor as ReflectionCursor,
    ShaderModel as ShaderModel,
    SlangCompilerOptions as SlangCompilerOptions,
    SlangDebugInfoLevel as SlangDebugInfoLevel,
    SlangFloatingPointMode as SlangFloatingPointMode,
    SlangLinkOptions as SlangLinkOptions,
    SlangMatrixLayout as SlangMatrixLayout,
    SlangOptimizationLevel as SlangOptimizationLevel,
    SlangSessionDesc as SlangSessionDesc,
    SpecializationArg as SpecializationArg,
    TypeConformance as TypeConformance,
)
from .config import (
    set_allow_torch_fallback as set_allow_torch_fallback,
    set_check_bounds as set_check_bounds,
    set_dump_generated_shaders as set_dump_generated_shaders,
    set_dump_slang_intermediates as set_dump_slang_intermediates,
    set_print_generated_shaders as set_print_generated_shaders,
    set_shipped_cache as set_shipped_cache,
)
from .device import *  # noqa: F403
from .device.log import *  # noqa: F403
from .errors import (
    BoundVariableException as BoundVariableException,
    CallError as CallError,
    CompilerDiedError as CompilerDiedError,
    KernelGenException as KernelGenException,
    ResolveException as ResolveException,
    ShapeError as ShapeError,
    SlangCompileError as SlangCompileError,
)
from .function import Function as Function, FunctionNode as FunctionNode, explain as explain
from .generators import (
    CallIdArg as CallIdArg,
    GridArg as GridArg,
    RandFloatArg as RandFloatArg,
    ThreadIdArg as ThreadIdArg,
    WangHashArg as WangHashArg,
    call_id as call_id,
    grid as grid,
    rand_float as rand_float,
    thread_id as thread_id,
    wang_hash as wang_hash,
)
from .graphics import RayTracingPipeline as RayTracingPipeline, RenderPipeline as RenderPipeline
from .instance import InstanceList as InstanceList, InstanceTensor as InstanceTensor
from .module import Module as Module
from .packed import PackedArg as PackedArg, pack as pack
from .pytorch.integration import (
    copy_buffer_to_torch_tensor as copy_buffer_to_torch_tensor,
    copy_torch_tensor_to_buffer as copy_torch_tensor_to_buffer,
    create_torch_device as create_torch_device,
    get_torch_bridge_fallback_reason as get_torch_bridge_fallback_reason,
    is_torch_bridge_available as is_torch_bridge_available,
    is_torch_tensor as is_torch_tensor,
)
from .run.prepared import PreparedCall as PreparedCall
from .struct import Struct as Struct
from .tensor import Tensor as Tensor, TensorDesc as TensorDesc
from .tensor.show import texture_png as _texture_png
from .tools import pickling as _pickling  # noqa: F401  (says how things are pickled)
from .tools.measuring import Benchmark as Benchmark, benchmark as benchmark, precompile as precompile
from .tools.notebook import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
from .values.references import (
    PrimType as PrimType,
    diffPair as diffPair,
    floatDiffPair as floatDiffPair,
    floatRef as floatRef,
    intRef as intRef,
)

DataType = _native.ScalarType

# Classes of the module about images, which needs NumPy.
_OF_IMAGES = {
    "Bitmap", "BoxFilter", "DataStruct", "DataStructConverter", "FilterBoundaryCondition", "GaussianFilter",
    "LanczosFilter", "MitchellFilter", "PixelFormat", "TentFilter", "TextureLoader", "YAHandling",
    "save_image",
}  # fmt: skip

_OF_WINDOW = {
    "CursorMode", "CursorShape", "GamepadButton", "GamepadEvent", "GamepadEventType", "GamepadState", "KeyboardEvent",
    "KeyboardEventType", "KeyModifier", "KeyModifierFlags", "MouseButton", "MouseEvent", "MouseEventType", "Window",
    "WindowMode",
}  # fmt: skip


_native.Texture._repr_png_ = _texture_png  # type: ignore[attr-defined]
for _class in (
    _native.AccelerationStructure, _native.Buffer, _native.CommandBuffer, _native.CommandEncoder, _native.DiffPair, _native.Fence,
    _native.QueryPool, _native.Sampler, _native.ShaderTable, _native.Surface, _native.Texture, _native.TextureView,
    _native.ValueRef,
):  # fmt: skip
    _own_names(_class)
compat.install()
compat.give_paths(sys.modules[__name__])

# Classes of the module that loads the compiler, which is imported when one of them is asked for.
_OF_COMPILER = {
    "Attribute", "DeclReflection", "EntryPointLayout", "FunctionReflection", "ModifierID", "ProgramLayout", "ShaderProgram",
    "SlangEntryPoint", "SlangModule", "SlangSession", "TypeLayoutReflection", "TypeReflection", "VariableLayoutReflection",
    "VariableReflection",
}  # fmt: skip

if TYPE_CHECKING:
    from . import (
        core as core,  # all but images are stubs, made from compat.PATHS
        crashpad as crashpad,
        experimental as experimental,
        images as images,
        neural as neural,
        platform as platform,
        rays as rays,
        renderdoc as renderdoc,
        slangpy as slangpy,
        slangtorch as slangtorch,
        testing as testing,
        torch_kernels as torch_kernels,
        torchintegration as torchintegration,
        types as types,
        ui as ui,
    )
    from ._slang import (
        Attribute as Attribute,
        DeclReflection as DeclReflection,
        EntryPointLayout as EntryPointLayout,
        FunctionReflection as FunctionReflection,
        ModifierID as ModifierID,
        ProgramLayout as ProgramLayout,
        ShaderProgram as ShaderProgram,
        SlangEntryPoint as SlangEntryPoint,
        SlangModule as SlangModule,
        SlangSession as SlangSession,
        TypeLayoutReflection as TypeLayoutReflection,
        TypeReflection as TypeReflection,
        VariableLayoutReflection as VariableLayoutReflection,
        VariableReflection as VariableReflection,
    )
    from .derivatives import (
        GradientError as GradientError,
        GradientReport as GradientReport,
        check_gradients as check_gradients,
        jvp as jvp,
        vjp as vjp,
    )
    from .images import (
        Bitmap as Bitmap,
        BoxFilter as BoxFilter,
        DataStruct as DataStruct,
        DataStructConverter as DataStructConverter,
        FilterBoundaryCondition as FilterBoundaryCondition,
        GaussianFilter as GaussianFilter,
        LanczosFilter as LanczosFilter,
        MitchellFilter as MitchellFilter,
        PixelFormat as PixelFormat,
        TentFilter as TentFilter,
        TextureLoader as TextureLoader,
        YAHandling as YAHandling,
        save_image as save_image,
        tev as tev,
    )
    from .jax.functions import jax_function as jax_function
    from .pytorch.integration import diff_pair as diff_pair
    from .pytorch.raw.autograd import autograd_function as autograd_function
    from .pytorch.raw.load import (
        clearPersistentShaderCache as clearPersistentShaderCache,
        clearSessionShaderCache as clearSessionShaderCache,
        clearShaderCaches as clearShaderCaches,
        loadModule as loadModule,
    )
    from .tools.comparison import ComparisonReport as ComparisonReport, compare as compare
    from .tools.view.show import show as show
    from .window import (
        CursorMode as CursorMode,
        CursorShape as CursorShape,
        GamepadButton as GamepadButton,
        GamepadEvent as GamepadEvent,
        GamepadEventType as GamepadEventType,
        GamepadState as GamepadState,
        KeyboardEvent as KeyboardEvent,
        KeyboardEventType as KeyboardEventType,
        KeyModifier as KeyModifier,
        KeyModifierFlags as KeyModifierFlags,
        MouseButton as MouseButton,
        MouseEvent as MouseEvent,
        MouseEventType as MouseEventType,
        Window as Window,
        WindowMode as WindowMode,
    )
    from .window.app import (
        App as App,
        AppDesc as AppDesc,
        AppWindow as AppWindow,
        RenderContext as RenderContext,
    )


# Names whose modules (torch, the compiler, images, what is less used) are imported when one of them is asked for.
_LAZY = {
    "diff_pair": "pytorch.integration",
    **dict.fromkeys(("GradientError", "GradientReport", "check_gradients", "jvp", "vjp"), "derivatives"),
    **dict.fromkeys(("ComparisonReport", "compare"), "tools.comparison"),
    **dict.fromkeys(_OF_COMPILER, "_slang"),
    **dict.fromkeys(
        ("loadModule", "clearSessionShaderCache", "clearPersistentShaderCache", "clearShaderCaches"), "pytorch.raw.load"
    ),
    "autograd_function": "pytorch.raw.autograd",
    "jax_function": "jax.functions",
    **dict.fromkeys((*_OF_IMAGES, "tev"), "images"),
    "show": "tools.view.show",
    **dict.fromkeys(_OF_WINDOW, "window"),
    **dict.fromkeys(("App", "AppDesc", "AppWindow", "RenderContext"), "window.app"),
}


def _find(name: str):
    if name in ("images", "neural", "rays", "ui"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    missing = compat.make(name)
    if missing is not None:
        globals()[name] = missing
        return missing
    if name in ("NDBuffer", "NDDifferentiableBuffer"):  # what tutorials of before 0.41 make
        raise AttributeError(f"module 'slangpy' has no attribute '{name}', which became Tensor: use Tensor.empty(device, ...)")
    if name in ("empty", "zeros", "ones", "full"):
        raise AttributeError(f"module 'slangpy' has no attribute '{name}'; use Tensor.{name}(device, ...)")
    if name in ("array", "asarray", "from_numpy", "from_torch"):
        raise AttributeError(f"module 'slangpy' has no attribute '{name}'; use Tensor.from_numpy(device, array)")
    raise _absent(lambda: f"module 'slangpy' has no attribute '{name}'{_near(name)}")


def _near(name: str) -> str:
    if name.startswith("_"):  # nobody wrote that: tools ask modules for __test__, __wrapped__ and the like
        return ""
    known = [*globals(), *_OF_COMPILER, *_OF_IMAGES, *_LAZY]
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1)
    return f"; did you mean {close[0]}?" if close else ""


if not TYPE_CHECKING:  # type checkers read the list above, and so find names that are spelt wrong
    __getattr__ = _find
