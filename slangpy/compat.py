"""Names that programs for shader-slang/slangpy write: older paths of what is here, and what is not there yet, where using
one says what to use instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import _native

_LOAD_MODULE = "clearPersistentShaderCache clearSessionShaderCache clearShaderCaches loadModule"

PATHS: dict[str, dict[str, str]] = {
    "comparison": {"tools.comparison": "ComparisonReport compare"},
    "core": {},
    "core.calldata": {
        "config": "set_dump_generated_shaders set_dump_slang_intermediates set_print_generated_shaders",
        "device": "SLANG_PATH=SHADER_PATH",
    },
    "core.callsignature": {"errors": "KernelGenException ResolveException"},
    "core.enums": {"bindings.enums": "IOType", "values.references": "PrimType"},
    "core.function": {"function": "Function FunctionNode"},
    "core.instance": {"instance": "InstanceList InstanceTensor"},
    "core.module": {"module": "Module"},
    "core.native": {
        "_native": "Shape",
        "bindings.enums": "AccessType CallMode",
        "base.utility": "NativeCallRuntimeOptions",
    },
    "core.packedarg": {"packed": "PackedArg pack"},
    "core.struct": {"struct": "Struct"},
    "core.utils": {
        "device": "create_device",
        "pytorch.integration": "create_torch_device",
        "reflection.lookup": "find_type_layout_for_buffer",
    },
    "crashpad": {"tools.crashpad": "is_supported start_handler"},
    "experimental": {},
    "experimental.diffinstancelist": {"instance": "InstanceDifferentiableBuffer"},
    "experimental.gridarg": {"generators": "GridArg grid"},
    "keys": {"base.keys": "KeyCode"},
    "measuring": {"tools.measuring": "Benchmark benchmark precompile"},
    "pickling": {"tools.pickling": "find_device make_function make_module make_struct make_tensor"},
    "platform": {
        "base.platform": "FileDialogFilter MemoryStats app_data_directory choose_folder_dialog display_scale_factor "
        "executable_directory executable_name executable_path home_directory memory_stats open_file_dialog page_size "
        "project_directory runtime_directory save_file_dialog",
    },
    "references": {"values.references": "PrimType diffPair floatDiffPair floatRef intRef"},
    "renderdoc": {"tools.renderdoc": "end_frame_capture is_available is_frame_capturing start_frame_capture"},
    "slangpy": {"base.shapes": "Shape get_texture_shape"},
    "slangtorch": {"pytorch.raw.load": _LOAD_MODULE},
    "testing": {"tools.testing": "CudaCodegen nvrtc_available"},
    "torch_kernels": {"pytorch.raw.load": _LOAD_MODULE},
    "torchintegration": {
        "pytorch.integration": "copy_buffer_to_torch_tensor copy_torch_tensor_to_buffer create_torch_device diff_pair "
        "get_torch_bridge_fallback_reason is_torch_bridge_available is_torch_bridge_using_fallback is_torch_tensor "
        "set_torch_bridge_python_fallback",
    },
    "types": {
        "_native": "DiffPair ValueRef",
        "generators": "CallIdArg GridArg RandFloatArg ThreadIdArg WangHashArg call_id grid rand_float thread_id wang_hash",
        "values.references": "diffPair floatDiffPair floatRef intRef",
        "tensor": "Tensor",
    },
    "types.callidarg": {"generators": "CallIdArg call_id"},
    "types.diffpair": {"_native": "DiffPair", "values.references": "diffPair floatDiffPair"},
    "types.randfloatarg": {"generators": "RandFloatArg rand_float"},
    "types.tensor": {"tensor": "Tensor TensorDesc"},
    "types.threadidarg": {"generators": "ThreadIdArg thread_id"},
    "types.valueref": {"_native": "ValueRef", "values.references": "floatRef intRef"},
    "types.wanghasharg": {"generators": "WangHashArg calc_wang_hash calc_wang_hash_numpy wang_hash"},
    "utility": {"base.utility": "NativeCallRuntimeOptions SHA1 Timer"},
}
"""Paths that programs and pickles name, where no module stands: where the names that they have lie (`old=new` where a name
changed, too)."""

CLASSES: dict[str, str] = {
    **dict.fromkeys(("IndirectDrawArguments", "IndirectDrawIndexedArguments"), "write the numbers as uint32 into a buffer"),
    **dict.fromkeys(
        (
            "AccelerationStructureBuildInputSpheres", "AccelerationStructureBuildInputLinearSweptSpheres",
            "LinearSweptSpheresIndexingMode", "LinearSweptSpheresEndCapsMode",
        ),
        "give their boxes (AccelerationStructureBuildInputProceduralPrimitives) and intersect in the shader",
    ),
    **dict.fromkeys(("TimestampCalibration", "CpuTimestampDomain"), "compare timestamps of one query pool"),
    "AppWindowDesc": "pass its fields to AppWindow",
    **dict.fromkeys(
        ("ComputePipelineDesc", "ComputeKernelDesc"), "pass its fields to create_compute_pipeline or create_compute_kernel"
    ),
    "Profiler": "use query pools (create_query_pool) or the platform's profiler",
}  # fmt: skip

MODULES: dict[str, str] = {
    "thread": "use Python's threading",
}

METHODS: dict[str, dict[str, str]] = {
    "Device": {
        "set_print_enabled": "open the device with enable_print=True, or without",
        "get_timestamp_calibration": "compare timestamps of one query pool",
    },
    "CommandEncoder": {
        **dict.fromkeys(
            ("serialize_acceleration_structure", "deserialize_acceleration_structure"),
            "build the structure anew in the process that uses it",
        ),
    },
}  # fmt: skip

class _RefusingClass(type):
    """Neither the class nor its members can be used."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise NotImplementedError(f"slangpy.{cls.__name__} is not implemented; {CLASSES[cls.__name__]}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"slangpy.{cls.__name__}.{name} is not implemented; {CLASSES[cls.__name__]}")


class _RefusingModule(ModuleType):
    """A module of which nothing can be taken."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{self.__name__}.{name} is not implemented; {self.__doc__}")


class _OlderPath(ModuleType):
    """A module by a path of PATHS. Its names are imported at first use."""

    def __init__(self, name: str, homes: dict[str, tuple[str, str]]) -> None:
        super().__init__(name, "What stands elsewhere in slangpy, by the path that programs name; see slangpy/compat.py.")
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__path__ = []
        self.__all__ = sorted(homes)
        self._homes = homes

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home, its_name = self._homes[name]
        found = getattr(import_module(home), its_name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def older_names(path: str) -> dict[str, tuple[str, str]]:
    """Of one of PATHS: each name with its module and its name there."""
    homes: dict[str, tuple[str, str]] = {}
    for home, names in PATHS[path].items():
        for entry in names.split():
            name, _, its_name = entry.partition("=")
            homes[name] = (f"slangpy.{home}", its_name or name)
    return homes


def give_paths(package: ModuleType) -> None:
    """Makes PATHS importable below `package`."""
    for path in PATHS:  # parents come first
        module = _OlderPath(f"slangpy.{path}", older_names(path))
        sys.modules[module.__name__] = module
        parent, _, name = module.__name__.rpartition(".")
        setattr(package if parent == "slangpy" else sys.modules[parent], name, module)


def make(name: str) -> Any:
    """A class that cannot be made or a module without contents; None for other names."""
    if name in MODULES:
        return _RefusingModule(f"slangpy.{name}", MODULES[name])
    if name in CLASSES:
        text = f"Not implemented; {CLASSES[name]}."
        return _RefusingClass(name, (), {"__doc__": text, "__module__": "slangpy", "__slots__": ()})
    return None


def _function(name: str, text: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise NotImplementedError(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = text
    return refuse


def install() -> None:
    """Gives the native classes the members that they lack."""
    for owner, members in METHODS.items():
        cls = getattr(_native, owner)
        for name, instead in members.items():
            if not hasattr(cls, name):
                setattr(cls, name, _function(name, f"{owner}.{name} is not implemented; {instead}"))
