"""`Tensor` by its older path."""

from ..tensor import Tensor as Tensor, TensorDesc as TensorDesc

__all__ = ["Tensor", "TensorDesc"]
