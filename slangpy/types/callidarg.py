"""`CallIdArg` by its older path."""

from ..generators import CallIdArg as CallIdArg, call_id as call_id

__all__ = ["CallIdArg", "call_id"]
