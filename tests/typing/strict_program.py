# pyright: strict
"""Never run: a program of a user, which the strictest checks of pyright must take as it is."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

import slangpy as spy

device = spy.create_device(type=spy.DeviceType.cpu, include_paths=[Path(__file__).parent], enable_print=False)
tdev = spy.create_torch_device(type=spy.DeviceType.cpu)
module = spy.Module.load_from_file(device, "example.slang", options={"strict_broadcasting": True})
x: npt.NDArray[np.float32] = np.arange(4, dtype=np.float32)
result = module.polynomial(a=2, b=8, c=-1, x=x, _result="numpy")
print(result)
fn = module.require_function("polynomial")
fn2 = fn.map((0,), b=()).set({"light": 1.0}).constants(N=5).constants({"K": 2.0}).return_type("numpy").call_group_shape((2, 2))
fn3 = fn.bwds
t = spy.Tensor.from_numpy(device, x).with_grads()
t.grad.copy_from_numpy(np.ones(4, np.float32))
total: float = float(t.to_numpy().sum())
view = t[1:, None]
shape = t.shape
n0: int = shape[0]
sizes: tuple[int, ...] = shape.as_tuple()
t2 = spy.Tensor.zeros(device, (3, 4), "float3")
t3 = spy.Tensor.empty(device, shape=(3,), dtype=module.Particle)
for row in t2:
    print(row.shape)
buffer = device.create_buffer(element_count=4, struct_size=4, usage=spy.BufferUsage.shader_resource | spy.BufferUsage.unordered_access, data=x)
arr = buffer.to_numpy().view(np.float32)
tex = device.create_texture(type=spy.TextureType.texture_2d, format=spy.Format.rgba32_float, width=4, height=2, usage=spy.TextureUsage.shader_resource | spy.TextureUsage.unordered_access, mip_count=spy.ALL_MIPS)
pixels = tex.to_numpy()
view2 = tex.create_view(mip=1)
sampler = device.create_sampler(min_filter=spy.TextureFilteringMode.point)
program = device.load_program("example.slang", ["main"])
kernel = device.create_compute_kernel(program)
kernel.dispatch(thread_count=[4, 1, 1], vars={"gain": 2.0}, x=buffer)
encoder = device.create_command_encoder()
with encoder.begin_compute_pass() as cpass:
    root = cpass.bind_pipeline(device.create_compute_pipeline(program))
    cursor = spy.ShaderCursor(root)
    cursor.gain = 2.0
    cursor["data"] = buffer
    cpass.dispatch([4, 1, 1])
encoder.copy_buffer(buffer, 0, buffer, 8, 4)
submit = device.submit_command_buffer(encoder.finish())
device.wait_for_submit(submit)
fence = device.create_fence()
pool = device.create_query_pool(spy.QueryType.timestamp, 2)
seconds = pool.get_timestamp_results(0, 2)
print(seconds[1] - seconds[0])
pair = spy.diffPair(1.0)
print(pair.grad, pair.primal)
ref = spy.floatRef(1.0)
print(ref.value)
v = spy.float3(1, 2, 3) * 2.0
m4 = spy.math.perspective(1.0, 1.0, 0.1, 10.0)
print(v.x + 1, m4 @ spy.float4x4.identity())
inst = spy.InstanceTensor(module.Particle, shape=(3,))
inst.construct(p=spy.float2(0))
print(len(inst), inst[0].shape)
for part in inst:
    part.step(0.5)
dots = spy.InstanceList(module.Particle, {"p": t})
g = spy.grid((2, 3))
cb = device.register_device_close_callback(lambda d: None)
packed = spy.pack(module, {"_type": "Particle"})
layout = program.layout
print(layout.entry_points[0].compute_thread_group_size)
bc = t2.cursor()
bc[0].write((1, 2, 3))
bc.apply()
print(bc[0].read())
kernels = spy.loadModule("square.slang")
kernels.square(input=x, output=x).launchRaw(blockSize=(1, 1, 1), gridSize=(1, 1, 1))
spy.polynomal  # pyright: ignore
