"""The paths under which existing programs import."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import numpy as np
import pytest

import slangpy as spy
from slangpy import compat

PATHS = {
    "slangpy": "create_device create_torch_device Module Struct Function InstanceList InstanceTensor Tensor TensorDesc "
    "pack grid call_id thread_id rand_float wang_hash GridArg CallIdArg ThreadIdArg RandFloatArg WangHashArg DiffPair "
    "diffPair floatDiffPair ValueRef intRef floatRef Shape explain ResolveException BoundVariableException "
    "KernelGenException ShapeError SHADER_PATH set_print_generated_shaders set_dump_generated_shaders "
    "set_dump_slang_intermediates set_allow_torch_fallback float3 Device Buffer core bindings types reflection math "
    "experimental torchintegration testing slangpy",
    "slangpy.core.module": "Module",
    "slangpy.core.struct": "Struct",
    "slangpy.core.function": "Function FunctionNode",
    "slangpy.core.calldata": "SLANG_PATH set_print_generated_shaders set_dump_generated_shaders "
    "set_dump_slang_intermediates",
    "slangpy.core.callsignature": "ResolveException",
    "slangpy.core.native": "Shape CallMode AccessType NativeCallRuntimeOptions",
    "slangpy.core.utils": "create_device create_torch_device find_type_layout_for_buffer",
    "slangpy.core.enums": "PrimType IOType",
    "slangpy.core.instance": "InstanceList InstanceTensor",
    "slangpy.core.packedarg": "PackedArg",
    "slangpy.bindings": "Marshall BindContext ReturnContext BoundVariable BoundVariableRuntime BoundVariableException "
    "CodeGenBlock CallContext AccessType Shape PYTHON_TYPES PYTHON_SIGNATURES get_or_create_type "
    "register_write_to_cursor_type",
    "slangpy.bindings.marshall": "Marshall BindContext ReturnContext",
    "slangpy.bindings.boundvariable": "BoundVariable BoundVariableException",
    "slangpy.bindings.boundvariableruntime": "BoundVariableRuntime",
    "slangpy.bindings.codegen": "CodeGenBlock",
    "slangpy.bindings.typeregistry": "PYTHON_TYPES PYTHON_SIGNATURES get_or_create_type",
    "slangpy.types": "Tensor DiffPair ValueRef CallIdArg ThreadIdArg RandFloatArg WangHashArg diffPair intRef floatRef",
    "slangpy.types.tensor": "Tensor",
    "slangpy.types.diffpair": "DiffPair diffPair floatDiffPair",
    "slangpy.types.valueref": "ValueRef intRef floatRef",
    "slangpy.types.callidarg": "CallIdArg call_id",
    "slangpy.types.threadidarg": "ThreadIdArg thread_id",
    "slangpy.types.randfloatarg": "RandFloatArg rand_float",
    "slangpy.types.wanghasharg": "WangHashArg wang_hash calc_wang_hash calc_wang_hash_numpy",
    "slangpy.reflection": "SlangType SlangProgramLayout SlangFunction VoidType ScalarType VectorType MatrixType "
    "ArrayType StructType InterfaceType PointerType StructuredBufferType ByteAddressBufferType TextureType "
    "SamplerStateType TensorType DifferentialPairType UnknownType",
    "slangpy.reflection.lookup": "slang_to_numpy numpy_to_slang",
    "slangpy.slangpy": "Shape get_texture_shape",
    "slangpy.math": "float3 float4x4",
    "slangpy.experimental.gridarg": "grid",
    "slangpy.experimental.diffinstancelist": "InstanceDifferentiableBuffer",
    "slangpy.testing": "CudaCodegen nvrtc_available",
    "slangpy.platform": "executable_path runtime_directory memory_stats page_size display_scale_factor",
    "slangpy.slangtorch": "loadModule clearSessionShaderCache clearPersistentShaderCache clearShaderCaches",
    "slangpy.torch_kernels": "loadModule clearShaderCaches",
    "slangpy.torchintegration": "create_torch_device is_torch_tensor is_torch_bridge_using_fallback",
    "slangpy.errors": "SlangCompileError",
}


@pytest.mark.parametrize("path", PATHS)
def test_names(path: str) -> None:
    module = importlib.import_module(path)
    missing = [name for name in PATHS[path].split() if not hasattr(module, name)]
    assert not missing


def test_same_objects() -> None:
    assert importlib.import_module("slangpy.core.module").Module is spy.Module
    assert importlib.import_module("slangpy.types.tensor").Tensor is spy.Tensor
    assert importlib.import_module("slangpy.slangpy").Shape is spy.Shape
    assert importlib.import_module("slangpy.core.callsignature").ResolveException is spy.ResolveException


def test_pickles_of_earlier_versions() -> None:
    """They name the functions that make things by the modules that these stood in."""
    makers = {"pickling": "find_device make_function make_module make_struct make_tensor", "packed": "pack"}
    for path, names in makers.items():
        for name in names.split():
            made = pickle.loads(f"cslangpy.{path}\n{name}\n.".encode())
            assert callable(made) and made.__name__ == name
    assert pickle.loads(b"cslangpy.references\nPrimType\n.") is spy.PrimType
    assert pickle.loads(b"cslangpy.keys\nKeyCode\n.") is spy.KeyCode


def test_every_path_finds_its_names() -> None:
    for path in compat.PATHS:
        module = importlib.import_module(f"slangpy.{path}")
        for name in module.__all__:
            assert name in dir(module)
            if name != "diff_pair":  # needs torch
                assert getattr(module, name) is not None


def test_diff_pair_needs_torch_only_when_used() -> None:
    pytest.importorskip("torch")
    assert spy.diff_pair is importlib.import_module("slangpy.pytorch.integration").diff_pair


@pytest.mark.parametrize(
    ("name", "instead"),
    [("AccelerationStructureBuildInputSpheres", "boxes"), ("AppWindowDesc", "AppWindow")],
)
def test_names_of_what_is_not_there_say_what_to_use(name: str, instead: str) -> None:
    assert getattr(spy, name) is getattr(spy, name)
    with pytest.raises(NotImplementedError, match=rf"slangpy\.{name} is not implemented; .*{instead}"):
        getattr(spy, name)("square.slang")


def test_wang_hash_on_the_host() -> None:
    hashes = importlib.import_module("slangpy.types.wanghasharg")
    seeds = np.array([[0, 1], [2**31, 2**32 - 1]], np.uint32)
    found = hashes.calc_wang_hash_numpy(seeds)
    assert found.dtype == np.uint32 and found.shape == (2, 2)
    assert found.tolist() == [[hashes.calc_wang_hash(int(s)) for s in row] for row in seeds]
    with pytest.raises(TypeError, match="integers"):
        hashes.calc_wang_hash_numpy(np.zeros(2))


TYPES = """
struct Dot { float2 p; int n; }
interface IShape { float area(); }
float f(Dot d, float2x3 m, int a[4][2]) { return d.p.x; }
"""


@pytest.mark.needs_kernels
def test_type_classes_and_lookups(device: Any) -> None:
    from slangpy import reflection
    from slangpy.core.utils import find_type_layout_for_buffer
    from slangpy.reflection.lookup import numpy_to_slang, slang_to_numpy

    module = spy.Module.load_from_source(device, "import_paths", TYPES)
    find = module.layout.require_type_by_name
    assert isinstance(find("float"), reflection.ScalarType) and not isinstance(find("float"), reflection.VectorType)
    vector, matrix, array = find("float3"), find("float2x3"), find("int[4]")
    assert isinstance(vector, reflection.VectorType) and vector.num_elements == 3
    assert isinstance(matrix, reflection.MatrixType) and (matrix.rows, matrix.cols) == (2, 3)
    assert isinstance(array, reflection.ArrayType) and array.num_elements == 4
    assert isinstance(find("Dot"), reflection.StructType) and isinstance(find("IShape"), reflection.InterfaceType)
    tensor = module.layout.tensor_type(find("float"), 2, "read_write")
    assert isinstance(tensor, reflection.TensorType) and not isinstance(tensor, reflection.StructType)
    assert (tensor.dims, tensor.access, tensor.tensor_kind) == (2, "read_write", "tensor")
    buffer = find("RWStructuredBuffer<float>")
    assert isinstance(buffer, reflection.StructuredBufferType) and buffer.writable
    with pytest.raises(AttributeError, match="rows"):
        vector.rows
    assert isinstance(module.layout.require_function_by_name("f"), reflection.SlangFunction)

    assert slang_to_numpy(find("float3")) == np.dtype("f4")
    assert slang_to_numpy(module.Dot).names == ("p", "n")
    assert numpy_to_slang(np.int32, device).full_name == "int"
    assert find_type_layout_for_buffer(module.layout, "Dot").size == find("Dot").buffer_layout.size


@pytest.mark.needs_kernels
def test_texture_shapes(device: Any) -> None:
    get = importlib.import_module("slangpy.slangpy").get_texture_shape
    try:
        texture = device.create_texture(
            width=8, height=4, mip_count=3, format=spy.Format.rgba32_float, usage=spy.TextureUsage.shader_resource
        )
    except NotImplementedError as error:
        pytest.skip(str(error))
    assert get(texture) == (4, 8)
    assert get(texture, 2) == (1, 2)
    assert get(texture.create_view(mip=1)) == (2, 4)
    with pytest.raises(ValueError, match="out of range"):
        get(texture, 3)
    with pytest.raises(TypeError, match="expected a Texture"):
        get(3)


def test_submodules_are_attributes_without_an_import() -> None:
    """Programs write `slangpy.core.enums.PrimType` after `import slangpy` alone."""
    import subprocess
    import sys

    paths = [path.removeprefix("slangpy.") for path in PATHS if path.startswith("slangpy.")]
    code = f"import slangpy\nfor path in {paths}:\n    at = slangpy\n    for name in path.split('.'):\n        at = getattr(at, name)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    for package in (spy.core, spy.types, spy.experimental):
        with pytest.raises(AttributeError, match="nothing_like_it"):
            package.nothing_like_it
