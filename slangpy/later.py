"""Names of what is not there yet: using one says what to use instead."""

from __future__ import annotations

from types import ModuleType
from typing import Any

_INSTEAD = {
    "BindlessDesc": "pass buffers, textures and pointers as parameters",
    "DescriptorHandle": "pass buffers, textures and pointers as parameters",
    "AccelerationStructure": "ray queries are not available yet; build and walk the structure in a compute kernel",
    "ShaderTable": "use compute kernels",
    "InputLayout": "use compute kernels",
    "RenderPassEncoder": "use compute passes",
    "RayTracingPassEncoder": "use compute passes",
    "RenderPipeline": "use compute kernels that write textures",
    "RayTracingPipeline": "use compute kernels",
    "HitGroupDesc": "use compute kernels",
    "Bitmap": "use Texture.to_numpy() with an image library",
    "TextureLoader": "load the image with another library and use create_texture(data=...)",
    "Window": "read textures back with to_numpy() and show them with another library",
    "Surface": "read textures back with to_numpy() and show them with another library",
    "App": "read textures back with to_numpy() and show them with another library",
    "Profiler": "use query pools (create_query_pool) or the platform's profiler",
}

_MODULES = {
    "ui": "read textures back with to_numpy() and show them with another library",
    "renderdoc": "start the program from RenderDoc, which captures Vulkan devices",
}

_KERNELS = "write functions and load their file with Module.load_from_file(device, path); torch tensors are arguments as they are"
_CALLS = {
    "loadModule": _KERNELS,
    "clearSessionShaderCache": "load modules anew; changed files are noticed by themselves",
    "clearPersistentShaderCache": "remove the folder of SLANGPY_CACHE_DIR (default: ~/.cache/slangpy)",
    "clearShaderCaches": "remove the folder of SLANGPY_CACHE_DIR (default: ~/.cache/slangpy)",
}


class _Refusing(ModuleType):
    """A module of which nothing can be taken."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{self.__name__}.{name} is not implemented; {self.__doc__}")


def make(name: str) -> Any:
    """A class that cannot be made, a function that cannot be called or a module without contents; None for other names."""
    if name in _MODULES:
        return _Refusing(f"slangpy.{name}", _MODULES[name])
    if name in _CALLS:
        return _function(name)
    instead = _INSTEAD.get(name)
    if instead is None:
        return None

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        del self, args, kwargs
        raise NotImplementedError(f"slangpy.{name} is not implemented; {instead}")

    return type(name, (), {"__init__": refuse, "__doc__": f"Not implemented; {instead}.", "__module__": "slangpy"})


def _function(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise NotImplementedError(f"slangpy.{name} is not implemented; {_CALLS[name]}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Not implemented; {_CALLS[name]}."
    return refuse
