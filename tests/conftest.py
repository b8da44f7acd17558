"""Fixtures shared by all tests.

SLANGPY_TEST_DEVICES   device types to test, by comma; default: all that open here
SLANGPY_TEST_REQUIRE   device types whose absence is a failure
SLANGPY_TEST_LAYERS    0: Vulkan devices without validation layers; 1: their absence is a failure; default: if installed
"""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import _lru_cache_wrapper, cache
from itertools import count

import pytest

os.environ.setdefault("SLANGPY_PROGRESS", "0")  # for child processes, whose stderr tests read
# Mesa's software driver: most of its time went to making kernels fast that run once.
os.environ.setdefault("GALLIVM_PERF", "nopt")

from slangpy import Device, DeviceType
from slangpy._native import _missing_layer, _take_vulkan_debug_messages

ALL_TYPES = ("null", "cpu", "vulkan", "d3d12", "cuda")


def _names(variable: str) -> list[str]:
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


@cache
def _available(name: str) -> bool:
    return bool(Device.enumerate_adapters(DeviceType[name]))


def _selected() -> list[str]:
    asked = _names("SLANGPY_TEST_DEVICES")
    required = _names("SLANGPY_TEST_REQUIRE")
    chosen = asked or [name for name in ALL_TYPES if _available(name)]
    return chosen + [name for name in required if name not in chosen]


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        return  # pytest-xdist: this process runs no tests, and those that it starts find `tests` from here
    # Processes that tests start must import what is installed, not the folder slangpy/ here.
    folder = tempfile.TemporaryDirectory(prefix="slangpy-tests-")
    config.add_cleanup(folder.cleanup)
    os.chdir(folder.name)


LONG_FILES = (
    "device/test_lifetime.py pytorch/test_double_backward.py call/gradient/test_check_gradients.py "
    "call/gradient/test_gradients_outs.py call/gradient/test_gradients_torch60.py "
    "call/gradient/test_forward_mode_tensors.py pytorch/test_frozen.py property/test_containers.py "
    "property/test_linear_gradients.py cache/test_cache.py property/test_fuzz.py property/test_property.py "
    "attack/test_attack.py attack/test_forward.py cache/test_cache_portable.py call/gradient/test_backward_check.py "
    "call/gradient/test_gradients_cuda.py cache/test_cache_inputs.py call/gradient/test_gradients_loops.py "
    "call/module/test_living.py tools/test_commandline.py docs/test_examples.py property/test_strides.py "
    "device/test_interrupt.py call/gradient/test_programs_render.py pytorch/test_examples_torch.py "
    "call/gradient/test_programs_numbers.py call/module/test_collect.py call/gradient/test_programs_learning.py "
    "slang/test_crash.py call/error/test_errors_process.py call/module/test_hot_reload_programs.py "
    "tools/test_benchmarks.py call/module/test_hot_reload.py call/module/test_threads.py call/module/test_progress.py "
    "call/gradient/test_programs_physics.py device/test_odd_arguments.py call/gradient/test_gradients_first_run.py "
    "call/gradient/test_gradients_carried.py docs/test_docs_snippets.py slang/test_worker.py "
    "device/test_short_kernels.py slang/test_process.py call/error/test_names_in_errors.py cache/test_cache_trim.py "
    "call/gradient/test_gradients_diagonals.py call/tensor/test_tensor_storage_index.py device/test_compile_ahead.py "
    "call/bind/test_core_views.py call/bind/test_vector_math.py call/gradient/test_gradients_parts.py "
    "pytorch/test_multi_gpu.py pytorch/test_memory.py pytorch/kernels/test_cuda_code.py "
    "call/gradient/test_gradients_scalars_vectors.py"
).split()
"""Files of few tests that take long each, longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several processes take the long files first, then those of many tests: a long one at the end would keep one process
    busy while the others have nothing to do. (xdist's own order, which goes by the number of tests alone, is
    switched off by --no-loadscope-reorder.)"""
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        return
    tests_of = Counter(item.path for item in items)
    tests = os.path.dirname(__file__)
    rank = {os.path.join(tests, name): i for i, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: (rank.get(str(item.path), len(rank)), -tests_of[item.path]))


def pytest_collection_finish() -> None:
    """Whatever is there before the first test stays to the end: collections of garbage need not look through a million
    objects of pytest, torch and JAX each time."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device_type" not in metafunc.fixturenames:
        return
    names = _selected()
    if metafunc.definition.get_closest_marker("needs_kernels"):
        names = [name for name in names if name != "null"]
    metafunc.parametrize("device_type", [DeviceType[name] for name in names], ids=names, scope="session")


LACKING = re.compile(
    r"uses (.+?), which HLSL has not on this device|(TensorView) parameters need a cuda, cpu or vulkan device, not D3D12|"
    r"libvkd3d shows the (first ones of 1D textures)|viewed as \w+ on Direct3D 12, which needs the (same channels and bits)|"
    r"is (a texture and its sampler in one), which a d3d12|(layer \d+ of a texture cannot be bound to a \w+ parameter: Direct3D 12 shows layer 0)",
    re.S,
)
"""What messages of the d3d12 device say of parts of Slang that HLSL has not: they name them, and the devices that can."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skips tests on d3d12 whose kernels use what HLSL has not, with the device's own words as the reason."""
    try:
        return (yield)
    except Exception as error:
        lacks = LACKING.search(str(error)) if "d3d12" in item.nodeid else None
        if lacks is None:
            raise
        pytest.skip(f"d3d12: {next(filter(None, lacks.groups()))}")


_devices: dict[DeviceType, Device] = {}


def _open(device_type: DeviceType) -> Device:
    if not _available(device_type.name):
        message = f"no {device_type.name} device here"
        if device_type.name in _names("SLANGPY_TEST_REQUIRE"):
            pytest.fail(message)
        pytest.skip(message)
    layers = device_type is DeviceType.vulkan and has_validation_layers()
    return Device(type=device_type, compiler_options={}, enable_hot_reload=False, enable_debug_layers=layers)


@cache
def has_validation_layers() -> bool:
    """Whether Vulkan devices under test run with validation layers, whose messages fail the test that caused them."""
    wish = os.environ.get("SLANGPY_TEST_LAYERS", "")
    if wish == "0" or not _available("vulkan"):
        return False
    Device(type=DeviceType.vulkan, enable_debug_layers=True, enable_hot_reload=False).close()
    missing = _missing_layer(DeviceType.vulkan)  # known once a device has asked for it
    if missing and wish == "1":
        pytest.fail(f"SLANGPY_TEST_LAYERS is 1: {missing}")
    return not missing


@pytest.fixture(autouse=True)
def no_validation_messages() -> Iterator[None]:
    """Fails the test during which a Vulkan validation layer said anything."""
    _take_vulkan_debug_messages()
    yield
    shared = _devices.get(DeviceType.vulkan)
    if shared is not None and not shared.is_closed:
        shared.wait()  # commands are checked when they are submitted
    messages = _take_vulkan_debug_messages()
    if messages:
        pytest.fail("Vulkan validation layers:\n" + "\n".join(messages), pytrace=False)


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name.startswith("SLANGPY_") or name in ("CXX", "PATH", "TMPDIR")}


@pytest.fixture(autouse=True, scope="module")
def same_environment() -> Iterator[None]:
    """Fails the file whose tests leave the environment changed: what runs after it in this process would inherit that."""
    before = _environment()
    yield
    assert _environment() == before, "a test of this file left the environment changed"


MOST_MEMORY = 2 << 30
MOST_FILES = 25


@pytest.fixture(autouse=True, scope="module")
def released_compilers() -> Iterator[None]:
    """Begins with new devices once the process is large: a compiler keeps what it made as long as a module lives, and
    tests keep modules. What earlier files left behind is not looked through each time that a test collects garbage, which
    took most of the time of some; it is every MOST_FILES files."""
    gc.freeze()
    yield
    number = next(_files)
    is_large = sys.platform == "linux" and _resident() >= MOST_MEMORY
    if not is_large and number % MOST_FILES:
        return
    gc.unfreeze()
    if is_large:
        for module in list(sys.modules.values()):
            if (getattr(module, "__file__", None) or "").startswith(os.path.dirname(__file__)):
                for value in list(vars(module).values()):
                    if isinstance(value, _lru_cache_wrapper):
                        value.cache_clear()
        for device in _devices.values():
            device.close()
        _devices.clear()
    gc.collect()


_files = count(1)
"""Numbers the files that this process has run."""


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def device(device_type: DeviceType) -> Device:
    """One open device of each type under test, shared by all tests that do not close it."""
    if device_type not in _devices or _devices[device_type].is_closed:
        _devices[device_type] = _open(device_type)
    return _devices[device_type]


@pytest.fixture
def fresh_device(device_type: DeviceType) -> Iterator[Device]:
    """A device of its own, closed after the test."""
    device = _open(device_type)
    yield device
    device.close()
