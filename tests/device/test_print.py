"""print() in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_kernels import RW, in_process, kernel

import slangpy as spy

pytestmark = [
    pytest.mark.needs_kernels,
    pytest.mark.elsewhere(
        "-7 7 -3", "-5000000000 18446744073709551615", "0.1 0.5 1", "one and two", "{{1, 2, 3}, {4, 5, 6}}", "test_double",
        "test_every_thread_prints", "test_overflow", "test_recorded", "test_functional_call", "test_nothing_without_enable_print",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def printer(device_type: spy.DeviceType) -> Any:
    device = spy.Device(type=device_type, enable_print=True, enable_hot_reload=False)
    yield device
    device.close()


def run(device: spy.Device, body: str, threads: int = 1, module: str = "slangpy_print", **arguments: Any) -> str:
    """What a kernel with this body prints."""
    parameters = "".join(f", uniform float {name}" for name in arguments)
    source = f"""import {module};
    [shader("compute")] [numthreads(32, 1, 1)]
    void main(uint3 tid : SV_DispatchThreadID{parameters}) {{ if (tid.x >= {threads}) return; {body} }}"""
    kernel(device, source).dispatch([threads, 1, 1], **arguments)
    return device.flush_print_to_string()


@pytest.mark.one
@pytest.mark.parametrize("module", ["slangpy_print", "sgl.device.print"])
def test_both_names(printer: spy.Device, module: str) -> None:
    assert run(printer, 'print("x {} v {:.2f}", tid.x, v);', module=module, v=1.234) == "x 0 v 1.23\n"
    assert printer.flush_print_to_string() == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('"plain"', "plain"),
        ('"{} {}", true, tid.x > 5', "true false"),
        ('"{} {} {}", -7, 7u, int16_t(-3)', "-7 7 -3"),
        ('"{} {}", int64_t(-5000000000), uint64_t(18446744073709551615)', "-5000000000 18446744073709551615"),
        ('"{} {} {}", 0.1f, half(0.5), 1.0f', "0.1 0.5 1"),
        ('"{:.3f} {:8.2f}|{:<6}|", 3.14159f, 2.5f, 42', "3.142     2.50|42    |"),
        ('"{:x} {:08b} {:+d}", 255, 5u, 3', "ff 00000101 +3"),
        ('"{1} {0}", 1, 2', "2 1"),
        ('"{{}} {}", 1', "{} 1"),
        ('"{} {}", int2(1, 2), float3(1, 2.5, -1)', "{1, 2} {1, 2.5, -1}"),
        ('"{:.1f}", float2(1, 2)', "{1.0, 2.0}"),
        ('"{}", float4(1e6, 1234567, 16777216, 3e15)', "{1000000, 1234567, 16777216, 3000000000000000}"),
        ('"{} {}", float2(1e16, 1e-5), float2x2(1e7, -1e8, 0, -0.0001)', "{1e+16, 1e-05} {{10000000, -100000000}, {0, -0.0001}}"),
        ('"{} {} {} {}", 1e6f, 1234567.0f, 1e7f, 1e-5f', "1000000 1234567 1e+07 1e-05"),
        ('"{}", float2x2(1, 2, 3, 4)', "{{1, 2}, {3, 4}}"),
        ('"{}", float2x3(1, 2, 3, 4, 5, 6)', "{{1, 2, 3}, {4, 5, 6}}"),
        ('"{} and {}", PrintableString("one"), PrintableString("two")', "one and two"),
        ('"{} {} {} {} {} {} {} {} {} {}", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9', "0 1 2 3 4 5 6 7 8 9"),
        ('"{}", 1, 2', "1"),
    ],
)
def test_arguments(printer: spy.Device, arguments: str, line: str) -> None:
    assert run(printer, f"print({arguments});") == line + "\n"


def test_double(printer: spy.Device) -> None:
    if not printer.has_feature(spy.Feature.double):
        pytest.skip("no double")
    assert run(printer, 'print("{} {}", 0.1lf, double2(1, 2));') == "0.1 {1, 2}\n"


def test_too_few_arguments(printer: spy.Device) -> None:
    line = run(printer, 'print("{} {}", 1);')
    assert line.startswith("{} {} <- 1 (bad format")


def test_every_thread_prints(printer: spy.Device) -> None:
    lines = run(printer, 'print("{}", tid.x);', threads=1000).splitlines()
    assert sorted(map(int, lines)) == list(range(1000))


def test_a_thread_may_be_silent(printer: spy.Device) -> None:
    body = 'set_print_enabled(tid.x == 3); print("{}", tid.x); set_print_enabled(true); if (tid.x == 4) print("four");'
    assert sorted(run(printer, body, threads=8).split()) == ["3", "four"]


def test_overflow(printer: spy.Device) -> None:
    threads = 1 << 19  # 4 words each, twice what there is room for
    *lines, note = run(printer, 'print("{}", tid.x);', threads=threads).splitlines()
    assert note == f"... {threads - len(lines)} more calls of print() found no room; flush more often"
    assert 1 << 17 < len(lines) < threads
    assert len(set(lines)) == len(lines)
    assert all(0 <= int(line) < threads for line in lines)
    assert run(printer, 'print("after");') == "after\n"


def test_recorded(printer: spy.Device) -> None:
    source = """import slangpy_print;
    [shader("compute")] [numthreads(1, 1, 1)]
    void main(uniform int n, RWStructuredBuffer<int> y) { y[0] += n; print("n {} y {}", n, y[0]); }"""
    count = kernel(printer, source)
    y = printer.create_buffer(data=np.zeros(1, np.int32), struct_size=4, usage=RW)
    encoder = printer.create_command_encoder()
    for n in (1, 2, 3):
        count.dispatch([1, 1, 1], command_encoder=encoder, n=n, y=y)
    printer.submit_command_buffer(encoder.finish())
    assert printer.flush_print_to_string() == "n 1 y 1\nn 2 y 3\nn 3 y 6\n"


SOURCE = """import slangpy_print;
float twice(float x) { print("twice {}", x); return 2 * x; }"""


def test_functional_call(printer: spy.Device) -> None:
    module = spy.Module.load_from_source(printer, "printing", SOURCE)
    assert module.twice(np.array([1, 2, 3], np.float32), _result="numpy").tolist() == [2, 4, 6]
    assert sorted(printer.flush_print_to_string().splitlines()) == ["twice 1", "twice 2", "twice 3"]


def test_flush_to_the_standard_output(printer: spy.Device, capsys: pytest.CaptureFixture[str]) -> None:
    module = spy.Module.load_from_source(printer, "printing", SOURCE)
    module.twice(5.0)
    printer.flush_print()
    assert capsys.readouterr().out == "twice 5\n"
    module.twice(6.0)
    printer.wait()
    assert capsys.readouterr().out == "twice 6\n"
    assert printer.flush_print_to_string() == "twice 6\n"  # shown, and still there for the program that asks


C_SOURCE = """
float twice(float x)
{
    printf("%5.2f|%d|%u|%s|%s|%%|%lld", x, -3, 4000000000u, PrintableString("text"), int2(1, 2), int64_t(-5000000000));
    printf(" %d,%d %x\\n", int2(3, 4), 255);
    if (x > 2) printf("lacks %d\\n");
    return 2 * x;
}"""


def test_printf(printer: spy.Device) -> None:
    """Without an import, on every device."""
    module = spy.Module.load_from_source(printer, "c_printing", C_SOURCE)
    assert module.twice(1.5) == 3
    assert printer.flush_print_to_string() == " 1.50|-3|4000000000|text|{1, 2}|%|-5000000000 3,4 ff\n"
    module.twice(2.5)
    assert "lacks %d" in printer.flush_print_to_string().splitlines()[-2]


def test_nothing_without_enable_print(device: spy.Device) -> None:
    source = 'import slangpy_print; [shader("compute")] [numthreads(1, 1, 1)] void main() { print("{}", 1); }'
    kernel(device, source).dispatch([1, 1, 1])
    assert device.flush_print_to_string() == ""
    module = spy.Module.load_from_source(device, "printing", SOURCE)
    assert module.twice(2.0) == 4.0
    assert spy.Module.load_from_source(device, "c_printing", C_SOURCE).twice(2.0) == 4.0


def test_texts_of_a_warm_start(device_type: spy.DeviceType, tmp_path: Any) -> None:
    """The second process finds its plan and the format of the line on disk."""
    code = f"""
import slangpy as spy
device = spy.Device(type=spy.DeviceType.{device_type.name}, enable_print=True)
module = spy.Module.load_from_source(device, "printing", {SOURCE!r})
module.twice(2.5)
print(device.flush_print_to_string(), end="")
"""
    for _ in range(2):
        result = in_process(code, SLANGPY_CACHE_DIR=str(tmp_path))
        assert (result.stdout, result.stderr) == ("twice 2.5\n", "")


def test_cuda_code() -> None:
    """Printing kernels compile for CUDA without a GPU."""
    from slangpy.testing import CudaCodegen, nvrtc_available

    if not nvrtc_available():
        pytest.skip("no NVRTC")
    target = CudaCodegen("sm_80")
    target.compile_target.defines["SPY_ENABLE_PRINT"] = "1"
    body = 'print("{} {} {}", x, float2x2(1, 2, 3, 4), PrintableString("s")); return 2 * x;'
    module = target.load_from_source("printing_cuda", f"import slangpy_print; float twice(float x) {{ {body} }}")
    view = target.build(module.twice, np.ones(4, np.float32), _result="numpy")
    assert "twice" in view.code
