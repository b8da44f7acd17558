"""The same as `slangpy.torch_kernels`, under the name that programs expect: `import slangpy.slangtorch as slangtorch`.

For code of others that says `import slangtorch`: `sys.modules["slangtorch"] = slangpy.slangtorch`.
"""

from .torch_kernels import (
    clearPersistentShaderCache as clearPersistentShaderCache,
    clearSessionShaderCache as clearSessionShaderCache,
    clearShaderCaches as clearShaderCaches,
    loadModule as loadModule,
)

__all__ = ["clearPersistentShaderCache", "clearSessionShaderCache", "clearShaderCaches", "loadModule"]
