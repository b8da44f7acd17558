"""How classes of your own become arguments.

`get_this()` on the class is enough for almost everything. What that cannot say is said by a `Marshall`:

    spy.bindings.PYTHON_TYPES[Ramp] = lambda layout, value: RampMarshall(layout, value)
"""

from __future__ import annotations

from .._native import Shape as Shape
from .boundvariable import BoundVariable as BoundVariable, BoundVariableException as BoundVariableException
from .boundvariableruntime import BoundVariableRuntime as BoundVariableRuntime
from .codegen import CodeGenBlock as CodeGenBlock
from .enums import AccessType as AccessType, CallMode as CallMode
from .marshall import (
    BindContext as BindContext,
    CallContext as CallContext,
    Marshall as Marshall,
    ReturnContext as ReturnContext,
)
from .typeregistry import (
    PYTHON_SIGNATURES as PYTHON_SIGNATURES,
    PYTHON_TYPES as PYTHON_TYPES,
    get_or_create_type as get_or_create_type,
    register_write_to_cursor_type as register_write_to_cursor_type,
)
