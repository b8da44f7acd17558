"""Views of tensors: other shapes, orders and parts of the same storage, gradients included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..base.own_names import own_names
from .absent import NoArithmetic
from .index import (
    TensorError,
    broadcast_strides,
    check_shape,
    check_strides,
    permute_order,
    resolve_reshape,
    row_major_strides,
)

if TYPE_CHECKING:
    from typing_extensions import Self

_make = _native._make_tensor
_view_plain = _native.TensorBase._view_plain  # unbound: torch.compile loses what native methods are bound to


@own_names
class TensorViews(NoArithmetic):
    """The part of `Tensor` that looks at the same memory in another way."""

    def view(self, shape: Any, strides: Any = (), offset: int = 0) -> Self:
        """Another shape over the same storage.

        strides: row-major when empty. offset: elements, added to the present one. ValueError when an element would lie
        outside the storage; RuntimeError when a gradient has other strides than the tensor (use `detach()`).
        """
        made = _view_plain(self, shape, strides, offset)
        return self._view_checked(shape, strides, offset) if made is None else made

    def _view_checked(self, shape: Any, strides: Any, offset: int) -> Self:
        """view() of what is no plain tuple of ints, of tensors with gradients, and of what is wrong."""
        sizes = check_shape(shape, "view")
        steps = list(check_strides(strides, "view")) or row_major_strides(sizes)
        if len(steps) != len(sizes):
            raise TensorError(f"Shape dimensions ({len(sizes)}) must match stride dimensions ({len(steps)})")
        if any(step < 0 for step in steps):
            raise TensorError(f"Strides must be positive, got {steps}; use slicing for reversed views")
        if self.offset + offset < 0:
            raise TensorError(f"Tensor view offset is negative ({self.offset + offset})")

        def view_grad(grad: TensorViews) -> TensorViews:
            if grad.strides != self.strides:
                raise RuntimeError(
                    f"view: a gradient has strides {grad.strides}, its tensor {self.strides}; view tensor.detach()"
                )
            return grad.view(sizes, steps, offset)

        return self._viewed(sizes, steps, self.offset + offset, *self._map_grads(view_grad))

    def reshape(self, *shape: Any) -> Self:
        """A contiguous tensor in another shape; one -1 is worked out. RuntimeError when not contiguous."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        sizes = resolve_reshape(wanted, self.element_count)
        if not self.is_contiguous():
            raise TensorError(
                f"reshape: the tensor must be contiguous, but has strides {self.strides} for shape {self.shape}; "
                "use contiguous() first"
            )
        grads = self._map_grads(lambda grad: grad.reshape(sizes))
        return self._viewed(sizes, None, self.offset, *grads)

    def broadcast_to(self, shape: Any) -> Self:
        """A right-aligned broadcast: new dimensions and those of size 1 get stride 0. Gradients are broadcast too."""
        sizes = check_shape(shape, "broadcast_to")
        steps = broadcast_strides(self.shape.as_list(), self.strides.as_list(), sizes)
        return self._viewed(sizes, steps, self.offset, *self._map_grads(lambda grad: grad.broadcast_to(sizes)))

    def permute(self, *dims: Any) -> Self:
        """The dimensions in another order, as in `permute(1, 0)`."""
        wanted = dims[0] if len(dims) == 1 and not isinstance(dims[0], (int, np.integer)) else dims
        order = permute_order(wanted, self.ndim)
        shape, strides = self.shape, self.strides
        grads = self._map_grads(lambda grad: grad.permute(*order))
        return self._viewed([shape[i] for i in order], [strides[i] for i in order], self.offset, *grads)

    @property
    def T(self) -> Self:
        """The dimensions in reverse order."""
        return self.permute(*reversed(range(self.ndim)))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if not self.ndim:
            raise TypeError("iteration over a tensor without dimensions")
        return (self[i] for i in range(self.shape[0]))

    def detach(self) -> Self:
        """The same view without gradients."""
        return self._viewed(self.shape, self.strides, self.offset)

    def point_to(self, other: TensorViews) -> None:
        """Makes this object a view of `other`'s storage, offset, strides and gradients. The dtype stays."""
        if not isinstance(other, _native.TensorBase):
            raise TypeError(f"point_to: expected a Tensor, got {type(other).__name__}")
        if self.shape != other.shape:
            raise TensorError(f"Shape of existing and new tensor view must match: {self.shape} and {other.shape}")
        if self.usage != other.usage:
            raise TensorError(f"Usage of existing and new tensor view must match: {self.usage} and {other.usage}")
        if self.memory_type != other.memory_type:
            raise TensorError(
                f"Memory type of existing and new tensor view must match: {self.memory_type} and {other.memory_type}"
            )
        if self.layout.stride != other.layout.stride:
            raise TensorError(
                f"Element size of new and existing data type must match: {other.layout.stride} bytes "
                f"({other.dtype.full_name}) and {self.layout.stride} bytes ({self.dtype.full_name})"
            )
        self._point_to(other)

    def _viewed(self, shape: Any, strides: Any, offset: int, grad_in: Any = None, grad_out: Any = None) -> Self:
        return _make(type(self), self.storage, self.layout, self.dtype, shape, strides, offset, grad_in, grad_out)

    def _map_grads(self, view: Any) -> tuple[Any, Any]:
        """The gradients, seen through `view`; one shared gradient stays shared."""
        grad_in, grad_out = self.grad_in, self.grad_out
        seen_in = None if grad_in is None else view(grad_in)
        if grad_out is None:
            return seen_in, None
        return seen_in, seen_in if grad_out is grad_in else view(grad_out)
