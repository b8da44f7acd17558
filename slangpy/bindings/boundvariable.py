"""A parameter while a call is planned, as marshalls see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import BoundVariableException as BoundVariableException
from .codegen import CodeGenBlock
from .enums import AccessType

if TYPE_CHECKING:
    from ..reflection import SlangType


class BoundVariable:
    """One argument bound to the Slang type `vector_type`; `python` is its marshall, `dims` the dimensions it adds."""

    def __init__(self, python: Any, vector_type: SlangType, access: AccessType) -> None:
        self.python = python
        self.vector_type = vector_type
        self.access = access
        self.call_dimensionality = 0
        self.calldata_type_name = ""

    @property
    def dims(self) -> int:
        return self.call_dimensionality

    def gen_calldata_type_name(self, cgb: CodeGenBlock, type_name: str) -> None:
        """States the Slang type of the data that the call stores for this argument."""
        if not isinstance(cgb, CodeGenBlock):
            raise TypeError(f"gen_calldata_type_name: the first argument is the CodeGenBlock, got {type(cgb).__name__}")
        if not isinstance(type_name, str) or not type_name.strip():
            raise TypeError(f"gen_calldata_type_name: expected the name of a Slang type, got {type_name!r}")
        self.calldata_type_name = type_name.strip()
