"""Lists of struct instances, by their older path."""

from ..instance import InstanceList as InstanceList, InstanceTensor as InstanceTensor

__all__ = ["InstanceList", "InstanceTensor"]
