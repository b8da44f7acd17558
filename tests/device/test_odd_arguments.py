"""Whatever is passed to a method of the device layer, the process lives on and the device still works."""

from __future__ import annotations

import pytest
from device_kernels import in_process

import slangpy as spy

# Each call is made with valid arguments but one, which takes every odd value in turn. In a process of its own: what
# is tested is that it ends by itself.
PRELUDE = '''
import faulthandler
import os
import numpy as np
import slangpy as spy

faulthandler.enable()
TYPE = spy.DeviceType.{name}
RW = spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access | spy.BufferUsage.indirect_argument
TRW = spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access
SOURCE = """
struct P {{ float3 a; int b; float w[2]; }};
interface IF {{ float g(); }};
struct Im : IF {{ float g() {{ return 1; }} }};
RWStructuredBuffer<P> rows;
float f(float x) {{ return x; }}
float f(int x, int y) {{ return x; }}
[shader("compute")] [numthreads(8, 1, 1)]
void main(uint3 tid : SV_DispatchThreadID, RWStructuredBuffer<float> y, uniform uint n, uniform P p) {{
    if (tid.x < n) {{ y[tid.x] = p.b; rows[tid.x].b = 1; }}
}}"""


class World:
    """A device with one of everything."""

    def __init__(self):
        d = self.device = spy.Device(type=TYPE, compiler_options={{}}, enable_hot_reload=False)
        self.buffer = d.create_buffer(size=4096, struct_size=4, usage=RW)
        self.fence, self.pool = d.create_fence(), d.create_query_pool(count=2)
        self.commands = d.create_command_encoder().finish()
        self.module = d.load_module_from_source("odd", SOURCE)
        self.entry = self.module.entry_point("main")
        self.program = d.link_program([self.module], [self.entry])
        self.kernel = d.create_compute_kernel(self.program)
        self.types = self.module.layout
        self.p = self.types.find_type_by_name("P")
        self.f = self.types.find_function_by_name("f")
        self.root = d.create_root_shader_object(self.program)
        buffer_type = self.types.find_type_by_name("StructuredBuffer<P>")
        self.element = self.types.get_type_layout(buffer_type).element_type_layout
        self.texture = None
        if TYPE is not spy.DeviceType.cpu:
            self.texture = d.create_texture(width=8, height=8, mip_count=3, format=spy.Format.rgba32_float, usage=TRW)

    def objects(self):
        return [v for v in vars(self).values() if v is not None]


world, other, gone = World(), World(), World()
gone.device.close()
d = world.device
endless = []
endless.append(endless)


class Raises:
    def __len__(self): raise ZeroDivisionError
    __index__ = __float__ = __iter__ = __len__


# Sizes that a large machine would grant, and then take minutes to clear.
memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
granted = [2**31, 2**32] if memory < 2**35 and TYPE is not spy.DeviceType.cuda else []
odd = [
    None, True, -1, 0, 1, 3, *granted, 2**63, 2**64, -(2**70), 0.5, float("nan"), 1j, "", "x", "main", "P<", "\\0",
    "\\ud800", b"abc", (), [1], [None], ["x"], [-1, -1, -1], [2**40] * 3, {{}}, {{"a": 1}}, {{1: 2}}, {{"mip": 9}}, {{"b": 1.5}},
    np.zeros(0), np.zeros(3, np.float32), np.zeros((8, 8, 4), np.float32), np.zeros((3, 8))[:, ::2], np.array("s"),
    np.array([object()]), np.float32(2), object(), int, len, Ellipsis, range(3), endless, Raises(), spy.float3(1),
    spy.NativeHandle(), spy.NativeHandle.from_cuda_stream(1), spy.Format.bc1_unorm, TYPE, RW, spy.SubresourceRange(layer=7),
    spy.BufferRange(2, 2**63), spy.Tensor.empty(d, (3,), dtype="float"),
    *world.objects(), *other.objects(), *gone.objects(),
    *([v] for w in (world, other, gone) for v in (w.buffer, w.fence, w.commands, w.module, w.entry, w.p)),
]


def try_all(calls):
    for name, call, arguments in calls:
        for at in range(len(arguments)):
            for value in odd:
                given = [*arguments[:at], value, *arguments[at + 1 :]]
                try:
                    call(*given)
                except Exception as error:
                    text = str(error)
                    wrong = isinstance(error, SystemError) or "bad_cast" in text or ".cpp" in text
                    assert not wrong, f"{{name}}, argument {{at}}: {{value!r}}: {{error!r}}"
    d.wait()
    assert not d.is_closed
    print("done")


def encoder():
    return d.create_command_encoder()


def bound():
    compute_pass = encoder().begin_compute_pass()
    cursor = spy.ShaderCursor(compute_pass.bind_pipeline(world.kernel.pipeline))
    cursor.rows = cursor.find_entry_point(0).y = world.buffer
    return compute_pass


def fields(function, valid):
    return [(f"{{function.__name__}} {{k}}", lambda v, k=k: function(**{{**valid, k: v}}), [v]) for k, v in valid.items()]


w, big, t = world, world.buffer, world.texture
'''

CREATE = """
calls = [
    *fields(d.create_buffer, dict(size=64, struct_size=4, format=spy.Format.undefined, usage=RW, label="", data=None)),
    *fields(d.create_buffer, dict(element_count=2, resource_type_layout=w.element, memory_type=spy.MemoryType.upload)),
    ("create_fence", d.create_fence, [0, False]), ("create_query_pool", d.create_query_pool, [spy.QueryType.timestamp, 2]),
    ("create_root_shader_object", d.create_root_shader_object, [w.program]),
    ("create_shader_object", d.create_shader_object, [w.element]),
    ("create_compute_pipeline", d.create_compute_pipeline, [w.program, True, "l"]),
    ("create_compute_kernel", d.create_compute_kernel, [w.program]),
    ("create_command_encoder", d.create_command_encoder, [spy.CommandQueueType.graphics]),
    ("get_format_support", d.get_format_support, [spy.Format.r8_unorm]), ("has_feature", d.has_feature, [spy.Feature.half]),
    ("wait_for_submit", d.wait_for_submit, [0]), ("is_submit_finished", d.is_submit_finished, [0]),
    ("copy_from_numpy", big.copy_from_numpy, [np.zeros(4, np.uint8)]), ("get_results", w.pool.get_results, [0, 0]),
    ("reset", w.pool.reset, [0, 1]), ("NativeHandle", spy.NativeHandle, [spy.NativeHandleType.CUstream, 1]),
    ("signal", lambda *a: d.create_fence().signal(*a), [1]), ("wait", lambda *a: d.create_fence().wait(*a), [0, 0]),
    ("SubresourceRange", spy.SubresourceRange, [0, 1, 0, 1]), ("get_format_info", spy.get_format_info, [spy.Format.r8_uint]),
]
if t is not None:
    calls += [
        *fields(d.create_texture, dict(width=4, height=4, depth=1, mip_count=1, array_length=1, format=spy.Format.r8_uint)),
        *fields(d.create_texture, dict(format=spy.Format.r8_uint, sample_count=1, usage=TRW, sampler=None, data=None)),
        *fields(d.create_sampler, dict(max_anisotropy=1, mip_lod_bias=0.0, border_color=(1, 1, 1, 1), min_lod=0.0)),
        *fields(t.create_view, dict(format=spy.Format.undefined, layer=0, mip=0, layer_count=1, mip_count=1, sampler=None)),
        *fields(t.create_view, dict(subresource_range={})), ("layout", t.get_subresource_layout, [0, 1]),
        ("to_numpy", t.to_numpy, [0, 0]), ("copy_from_numpy", t.copy_from_numpy, [np.zeros((8, 8, 4), np.float32), 0, 0]),
    ]
try_all(calls)
"""

COMMANDS = """
zero, part = (0, 0, 0), (1, 1, 1)
calls = [
    ("submit_command_buffer", d.submit_command_buffer, [w.commands, spy.CommandQueueType.graphics, spy.NativeHandle()]),
    ("submit_command_buffers", lambda b, f, v: d.submit_command_buffers([w.commands, *b], [], [], f, v),
     [[], [d.create_fence()], [spy.Fence.AUTO]]),
    ("wait_fences", lambda f: d.submit_command_buffers([w.commands], f), [[d.create_fence()]]),
    ("copy_buffer", lambda *a: encoder().copy_buffer(*a), [big, 0, big, 64, 16]),
    ("fill_buffer", lambda *a: encoder().fill_buffer(*a), [big, 0, (0, 4)]),
    ("clear_buffer", lambda *a: encoder().clear_buffer(*a), [big, (0, 4)]),
    ("upload_buffer_data", lambda *a: encoder().upload_buffer_data(*a), [big, 0, np.zeros(4)]),
    ("write_timestamp", lambda *a: encoder().write_timestamp(*a), [w.pool, 0]),
    ("resolve_query", lambda *a: encoder().resolve_query(*a), [w.pool, 0, 0, big, 0]),
    ("set_buffer_state", lambda *a: encoder().set_buffer_state(*a), [big, spy.ResourceState.general]),
    ("push_debug_group", lambda *a: encoder().push_debug_group(*a), ["a", (1, 1, 1)]),
    ("execute_callback", lambda *a: encoder().execute_callback(*a), [len]),
]
if TYPE is not spy.DeviceType.null:
    def dispatch(threads=(1, 1, 1), vars={"rows": big}, enc=None, queue=None, stream=None, pool=w.pool, i=0, j=1, **a):
        w.kernel.dispatch(threads, vars, enc, queue, stream, pool, i, j, **{"y": big, "n": 1, "p": {}, **a})
    calls += [
        ("bind_pipeline", lambda *a: encoder().begin_compute_pass().bind_pipeline(*a), [w.kernel.pipeline, w.root]),
        ("dispatch", lambda *a: bound().dispatch(*a), [[1, 1, 1]]),
        ("dispatch_compute", lambda *a: bound().dispatch_compute(*a), [[1, 1, 1]]),
        ("dispatch_compute_indirect", lambda *a: bound().dispatch_compute_indirect(*a), [big]),
        ("BufferOffsetPair", lambda *a: bound().dispatch_compute_indirect(spy.BufferOffsetPair(*a)), [big, 0]),
        ("kernel", dispatch, [[1, 1, 1], {"rows": big}, None, None, None, w.pool, 0, 1]),
        ("y", lambda v: dispatch(y=v), [big]), ("p", lambda v: dispatch(p=v), [{}]), ("n", lambda v: dispatch(n=bool(v)), [1]),
        ("rows", lambda v: dispatch(vars={"rows": v}), [big]),
        ("launch", d.launch, [w.kernel.pipeline.kernel, [1, 1, 1], [b"", b""], [None, None], [], spy.NativeHandle()]),
    ]
if t is not None:
    whole, layer = spy.SubresourceRange(), np.zeros((8, 8, 4), np.float32)
    calls += [
        ("copy_texture", lambda *a: encoder().copy_texture(*a), [t, 0, 1, zero, t, 0, 0, zero, part]),
        ("copy_texture range", lambda *a: encoder().copy_texture(*a), [t, whole, zero, t, whole, zero, part]),
        ("copy_texture_to_buffer", lambda *a: encoder().copy_texture_to_buffer(*a), [big, 0, 1024, 128, t, 0, 0, zero, part]),
        ("copy_buffer_to_texture", lambda *a: encoder().copy_buffer_to_texture(*a), [t, 0, 0, zero, big, 0, 1024, 128, part]),
        ("upload_texture_data", lambda *a: encoder().upload_texture_data(*a), [t, 0, 0, layer]),
        ("upload_texture_data range", lambda *a: encoder().upload_texture_data(*a), [t, zero, part, whole, [layer]]),
        ("clear_texture_float", lambda *a: encoder().clear_texture_float(*a), [t, whole, (0, 0, 0, 0)]),
        ("clear_texture_sint", lambda *a: encoder().clear_texture_sint(*a), [t, whole, (0, 0, 0, 0)]),
        ("set_texture_state", lambda *a: encoder().set_texture_state(*a), [t, whole, spy.ResourceState.general]),
    ]
try_all(calls)
"""

PROGRAMS = """
S, Kind = w.device.slang_session, spy.DeclReflection.Kind
arg = spy.SpecializationArg
cursor = lambda: spy.ShaderCursor(d.create_root_shader_object(w.program))
rows = lambda: spy.BufferCursor(TYPE, w.element, 3)
try_all([
    ("load_module", S.load_module, ["slangpy"]), ("compose_modules", S.compose_modules, ["c", [w.module], []]),
    ("load_module_from_source", S.load_module_from_source, ["odd_source", "int f() { return 1; }", None]),
    ("link_program", S.link_program, [[w.module], [w.entry], None]), ("load_source", S.load_source, ["slangpy"]),
    ("load_program", S.load_program, ["slangpy", [], None, None]), ("entry_point", w.module.entry_point, ["main", []]),
    ("TypeConformance", lambda *a: w.module.entry_point("main", [spy.TypeConformance(*a)]), ["IF", "Im", 0]),
    ("rename", w.entry.rename, ["z"]), ("specialize", w.entry.specialize, [[]]),
    ("from_type", lambda v: w.entry.specialize([arg.from_type(v)]), ["P"]),
    ("find_type_by_name", w.types.find_type_by_name, ["P"]), ("get_type_layout", w.types.get_type_layout, [w.p]),
    ("find_function_by_name_in_type", w.types.find_function_by_name_in_type, [w.p, "f"]),
    ("is_sub_type", w.types.is_sub_type, [w.p, w.p]), ("specialize_with_arg_types", w.f.specialize_with_arg_types, [[w.p]]),
    ("children_of_kind", w.module.module_decl.children_of_kind, [Kind.struct]),
    ("find_children_of_kind", w.module.module_decl.find_children_of_kind, [Kind.struct, "P"]),
    ("ReflectionCursor", spy.ReflectionCursor, [w.program]), ("field", w.program.reflection.find_field, ["rows"]),
    ("element", w.program.reflection.find_element, [0]), ("ShaderCursor", spy.ShaderCursor, [w.root]),
    *((n, lambda v, n=n: getattr(cursor(), n)(v), [v]) for n, v in dict(
        find_field="rows", find_element=0, has_field="rows", get_field_by_index=0, find_entry_point=0, reinterpret=w.element,
        write={}, set_data=np.zeros(2), __getitem__="rows").items()),
    *((n, lambda v, n=n: setattr(cursor().find_entry_point(0), n, v), [None]) for n in ("y", "n", "p")),
    *((n, lambda v, n=n: setattr(cursor().find_entry_point(0).p, n, v), [None]) for n in ("a", "b", "w")),
    ("BufferCursor", spy.BufferCursor, [TYPE, w.element, 3]), ("BufferCursor of", spy.BufferCursor, [w.element, big, True]),
    ("BufferCursor part", spy.BufferCursor, [w.element, big, 48, 0, True]), ("index", lambda v: rows()[v], [0]),
    ("assign", lambda i, v: rows().__setitem__(i, v), [0, {}]), ("write", lambda v: rows()[0].write(v), [{}]),
    ("copy_from_numpy", lambda v: rows().copy_from_numpy(v), [np.zeros(72, np.uint8)]),
    ("write_from_numpy", lambda *a: rows().write_from_numpy(*a), [np.zeros((3, 24), np.uint8), True]),
    ("columns", lambda v, u: rows().write_from_numpy({"b": v}, u), [np.zeros(3, np.int32), False]),
    ("SlangCompilerOptions", lambda *a: d.create_slang_session(*a), [{}, True, None]),
    ("log", spy.log, [spy.LogLevel.debug, "text"]), ("Logger", spy.Logger, [spy.LogLevel.info, "name", False]),
])
"""


@pytest.mark.elsewhere("create")
@pytest.mark.parametrize("part", ["create", "commands", "programs"])
def test_one_odd_argument(device_type: spy.DeviceType, part: str) -> None:
    code = {"create": CREATE, "commands": COMMANDS, "programs": PROGRAMS}[part]
    result = in_process(PRELUDE.format(name=device_type.name) + code)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stdout + result.stderr


METHODS = """
import enum, inspect, warnings
import slangpy as spy
from slangpy import _native, _slang
warnings.simplefilter("ignore")  # nanobind's own, of what was never made
classes = [c for module in (_native, _slang) for c in vars(module).values() if inspect.isclass(c) and not issubclass(c, enum.Enum)]
for cls in classes:
    try:
        made = cls.__new__(cls)
    except TypeError:  # nobody can
        made = None
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        if name in ("__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__") or not callable(method):
            continue
        for arguments in ((5,), (5, 1), (made,), (made, 1)):
            try:
                getattr(cls, name)(*arguments)
            except Exception as error:
                assert "bad_cast" not in str(error) and not isinstance(error, SystemError), (cls, name, arguments, error)
print("done", len(classes))
"""


def test_methods_of_other_objects_and_of_such_that_were_never_made() -> None:
    result = in_process(METHODS)
    assert "done" in result.stdout, result.stdout + result.stderr
