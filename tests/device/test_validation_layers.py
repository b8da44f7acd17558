"""The switch that lets Vulkan validation layers fail tests (tests/conftest.py) works."""

from __future__ import annotations

import ctypes

import pytest

import slangpy as spy


def test_messages_are_caught(device: spy.Device) -> None:
    if device.type is not spy.DeviceType.vulkan or not device.desc.enable_debug_layers:
        pytest.skip("no Vulkan device with validation layers")
    cmd_pipeline_barrier = ctypes.CDLL("libvulkan.so.1").vkCmdPipelineBarrier
    nothing = ctypes.c_void_p()

    def misuse(commands: spy.NativeHandle) -> None:
        # A barrier between no stages: wrong, and harmless.
        list_ = ctypes.c_void_p(commands.value)
        cmd_pipeline_barrier(list_, 0, 0, 0, 0, nothing, 0, nothing, 0, nothing)

    encoder = device.create_command_encoder()
    encoder.execute_callback(misuse)
    assert spy._native._take_vulkan_debug_messages() == []
    device.submit_command_buffer(encoder.finish())
    device.wait()
    messages = spy._native._take_vulkan_debug_messages()
    assert any("vkCmdPipelineBarrier" in message for message in messages)
