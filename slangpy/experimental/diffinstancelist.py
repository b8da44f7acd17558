"""`InstanceDifferentiableBuffer` by its older path."""

from ..instance import InstanceDifferentiableBuffer as InstanceDifferentiableBuffer

__all__ = ["InstanceDifferentiableBuffer"]
