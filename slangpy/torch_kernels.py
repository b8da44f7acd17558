"""The loadModule API for programs written against slangtorch: `import slangpy.torch_kernels as slangtorch`."""

from .pytorch.kernels.load import (
    clearPersistentShaderCache as clearPersistentShaderCache,
    clearSessionShaderCache as clearSessionShaderCache,
    clearShaderCaches as clearShaderCaches,
    loadModule as loadModule,
)

__all__ = ["clearPersistentShaderCache", "clearSessionShaderCache", "clearShaderCaches", "loadModule"]
