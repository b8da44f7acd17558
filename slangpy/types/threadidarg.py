"""`ThreadIdArg` by its older path."""

from ..generators import ThreadIdArg as ThreadIdArg, thread_id as thread_id

__all__ = ["ThreadIdArg", "thread_id"]
