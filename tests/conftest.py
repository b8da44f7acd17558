"""Fixtures shared by all tests.

SLANGPY_TEST_DEVICES   device types to test, by comma; default: all that open here
SLANGPY_TEST_REQUIRE   device types whose absence is a failure
SLANGPY_TEST_DEBUG     1: devices with debug layers: the first run of each backward call is checked, and memory of the CPU
                       device lies between pages that fault
SLANGPY_TEST_LAYERS    0: Vulkan devices without validation layers; 1: their absence is a failure; default: if installed
SLANGPY_TEST_REQUIRE_WINDOWS  1: where windows cannot be tested (no Xvfb, xdotool, glfw or imgui-bundle), that is a failure
SLANGPY_TEST_ALL       1: nothing is left out: tests marked `one` run on every device, those marked `nightly` run, and all kernels
                       of the CPU device are compiled with optimisation (tiers.py says where they are not otherwise)
SLANGPY_TEST_DURATIONS a file for the seconds of each test (durations.py)

Each test case is of one tier, by which `-m` selects: `null` (no device, or the null device: planning, text, messages),
`one` (the first device that runs kernels, the CPU wherever there is one), `each` (the others, and the files that run whole
programs, which tiers.py names), and `nightly`, which runs only where it is asked for; `nightly_on` names devices on which a
function is nightly because another device shows the same. A function marked `one` tests what does not depend on the device; it has no cases in `each`. A function
that takes no device is of the tier `one` unless it is marked `null`. tiers.py makes single cases of a function `nightly`;
`elsewhere(*names)` does so for all cases of `each` but those of the functions or parameters that it names: the sample of a
file or function which the gate runs on every device.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import _lru_cache_wrapper, cache
from itertools import count
from pathlib import Path

import durations
import pytest
import tiers  # before slangpy, which asks at once which C++ compiler to take
from tiers import EVERYTHING

os.environ.setdefault("SLANGPY_PROGRESS", "0")  # for child processes, whose stderr tests read
os.environ.setdefault("SLANGPY_FULL_TRACEBACK", "1")
# Mesa's software driver: most of its time went to making kernels fast that run once.
os.environ.setdefault("GALLIVM_PERF", "nopt")

from slangpy import Device, DeviceType
from slangpy._native import _missing_layer, _take_vulkan_debug_messages
from slangpy.config import config

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


def _first_of(names: list[str]) -> str | None:
    """The device on which tests run that need only one."""
    return next((name for name in ("cpu", "cuda", "vulkan", "d3d12") if name in names), None)


def _tier(item: pytest.Item, first: str | None) -> str:
    for marked in ("nightly", "null"):
        if item.get_closest_marker(marked):
            return marked
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    device_type = params.get("device_type")
    name = params.get("where", first) if device_type is None else device_type.name
    late = item.get_closest_marker("nightly_on")
    if late is not None and name in late.args:
        return "nightly"
    if name in ("null", first):
        return "null" if name == "null" else "each" if tiers.is_whole(item.path) else "one"
    sample = item.get_closest_marker("elsewhere")
    parts = f"-{getattr(item, 'originalname', item.name)}-{callspec.id if callspec else ''}-"
    return "each" if sample is None or any(f"-{one}-" in parts for one in sample.args) else "nightly"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives each case the marker of its tier, before `-m` chooses by it."""
    first = _first_of(_selected())
    for item in items:
        item.add_marker(_tier(item, first))
    if not EVERYTHING and "nightly" not in config.option.markexpr:
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(durations)
    written = os.environ.get("SLANGPY_TEST_DURATIONS")
    if written and not os.environ.get("PYTEST_XDIST_WORKER"):
        config.pluginmanager.register(durations.Recorder(Path(written).absolute()))
    if getattr(config.option, "numprocesses", None):
        return  # pytest-xdist: this process runs no tests, and those that it starts find `tests` from here
    # Processes that tests start must import what is installed, not the folder slangpy/ here.
    folder = tempfile.TemporaryDirectory(prefix="slangpy-tests-")
    config.add_cleanup(folder.cleanup)
    os.chdir(folder.name)


def pytest_collection_finish() -> None:
    """Whatever is there before the first test stays to the end: collections of garbage need not look through a million
    objects of pytest, torch and JAX each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)  # tests that are about garbage collect it themselves


def pytest_unconfigure() -> None:
    """Packages made with nanobind count what is left of them at the end."""
    gc.unfreeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device_type" not in metafunc.fixturenames:
        return
    names = _selected()
    if metafunc.definition.get_closest_marker("needs_kernels"):
        names = [name for name in names if name != "null"]
    if metafunc.definition.get_closest_marker("draws"):
        names = [name for name in names if name in ("vulkan", "d3d12")]
    if (traces := metafunc.definition.get_closest_marker("traces")) is not None:
        names = [name for name in names if name == "vulkan" or (name == "null" and traces.kwargs.get("records"))]
    if metafunc.definition.get_closest_marker("one") and not EVERYTHING:
        first = _first_of(names)
        names = [name for name in names if name in ("null", first)]
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


_devices: dict[tuple[DeviceType, str], Device] = {}
"""Shared devices by their type and the flags of their kernels: a device remembers how its kernels are named in the cache, and
two sets of flags have two sets of names (slangpy counts variables of the environment that begin with SLANG_)."""


def _open(device_type: DeviceType) -> Device:
    if not _available(device_type.name):
        message = f"no {device_type.name} device here"
        if device_type.name in _names("SLANGPY_TEST_REQUIRE"):
            pytest.fail(message)
        pytest.skip(message)
    debug = os.environ.get("SLANGPY_TEST_DEBUG") == "1"
    layers = debug or (device_type is DeviceType.vulkan and has_validation_layers())
    device = Device(type=device_type, compiler_options={}, enable_hot_reload=False, enable_debug_layers=layers)
    # Validation layers alone would compile and run the kernels of forward mode beside each gradient that tests compare anyway.
    device.check_gradients = debug or config.check_gradients
    return device


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
    for (device_type, _), shared in _devices.items():
        if device_type is DeviceType.vulkan and not shared.is_closed:
            shared.wait()  # commands are checked when they are submitted
    messages = _take_vulkan_debug_messages()
    if messages:
        pytest.fail("Vulkan validation layers:\n" + "\n".join(messages), pytrace=False)


FLAGS = "SLANG_TEST_CXXFLAGS"


@pytest.fixture(autouse=True, scope="module")
def flags_of_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels of the CPU device are compiled without optimisation in the files that tiers.py names."""
    if os.environ.get("CXX") != str(tiers.COMPILER) or tiers.is_optimised(request.path):
        os.environ.pop(FLAGS, None)
    else:
        os.environ[FLAGS] = "-O0"
    yield
    os.environ.pop(FLAGS, None)


def _environment() -> dict[str, str]:
    return {
        name: text
        for name, text in os.environ.items()
        if name.startswith("SLANGPY_") or name in ("CXX", "PATH", "TMPDIR")
    }


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
    tests keep modules. What earlier files left is not looked through each time that a test collects garbage, which
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
    key = device_type, os.environ.get(FLAGS, "") if device_type is DeviceType.cpu else ""
    if key not in _devices or _devices[key].is_closed:
        _devices[key] = _open(device_type)
    return _devices[key]


@pytest.fixture
def fresh_device(device_type: DeviceType) -> Iterator[Device]:
    """A device of its own, closed after the test."""
    device = _open(device_type)
    yield device
    device.close()
