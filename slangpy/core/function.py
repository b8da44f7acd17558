"""`Function` and `FunctionNode` by their older path."""

from ..function import Function as Function, FunctionNode as FunctionNode

__all__ = ["Function", "FunctionNode"]
