"""Where the Slang library lies, and the switches that show generated code."""

from ..config import (
    set_dump_generated_shaders as set_dump_generated_shaders,
    set_dump_slang_intermediates as set_dump_slang_intermediates,
    set_print_generated_shaders as set_print_generated_shaders,
)
from ..device import SHADER_PATH

SLANG_PATH = SHADER_PATH

__all__ = [
    "SLANG_PATH",
    "set_dump_generated_shaders",
    "set_dump_slang_intermediates",
    "set_print_generated_shaders",
]
