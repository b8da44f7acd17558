"""Python objects that stand for instances of a Slang struct."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .base.absent import absent
from .errors import SlangWarning
from .inspection import names_in
from .packed import pack
from .tensor import Tensor

if TYPE_CHECKING:
    from .struct import Struct

_OWN = ("_struct", "_data", "_methods")


class InstanceList:
    """Instances of a struct, stored field by field (a dict) or as one Tensor of the struct.

    data: a Tensor of the struct, a dict of fields, or None for an empty dict to fill. Reading and setting attributes
    that are fields reads and sets the stored values; methods of the struct are called on the instances. Subclasses
    may add attributes of their own.
    """

    def __init__(self, struct: Struct, data: Any = None) -> None:
        set_own = object.__setattr__
        set_own(self, "_struct", struct)
        set_own(self, "_methods", set())
        set_own(self, "_data", None)
        self.set_data(data)

    @property
    def struct(self) -> Struct:
        """The Slang struct."""
        return self._struct

    @property
    def data(self) -> Any:
        """The fields by name, as they were given."""
        return self._data

    def set_data(self, data: Any) -> None:
        """Replaces what is stored: a dict of fields or a Tensor of the struct. A dict gets its `_type`."""
        if data is None:
            data = {}
        if isinstance(data, dict):
            unknown = [name for name in data if name not in self._struct.fields and name != "_type"]
            if unknown:
                known = ", ".join(self._struct.fields) or "none"
                raise ValueError(f"struct {self._struct.name} has no field '{unknown[0]}'; its fields are {known}")
            for name in data:
                if hasattr(InstanceList, name):
                    warnings.warn(
                        f"field '{name}' of {self._struct.name} has the name of an attribute of {type(self).__name__}: read it "
                        f"as .data['{name}'], or rename it",
                        SlangWarning,
                        stacklevel=3,
                    )
            data = {"_type": self._struct.full_name, **data}
        elif isinstance(data, Tensor):
            if data.dtype.full_name != self._struct.full_name:
                raise ValueError(
                    f"the instances of {self._struct.name} need a Tensor of it, got a Tensor of {data.dtype.full_name}"
                )
        else:
            raise TypeError(f"instances are stored as a dict of fields or a Tensor, got {type(data).__name__}")
        object.__setattr__(self, "_data", data)

    # --- what calls use
    def get_this(self) -> Any:
        """What calls take for the list: the fields as a dict."""
        return self._data

    def update_this(self, value: Any) -> None:
        """Takes back what a call wrote."""
        object.__setattr__(self, "_data", value)

    # --- fields and methods
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _OWN:
            raise AttributeError(name)
        data = self._data
        if isinstance(data, dict) and name in data:
            return data[name]
        if name in self._struct.fields:
            if isinstance(data, dict):
                raise AttributeError(f"field '{name}' of this {type(self).__name__} of {self._struct.name} is not set")
            raise AttributeError(
                f"field '{name}' of {self._struct.name} is inside a Tensor; read it with .to_numpy(structured=True)['{name}'] or "
                "through .tensor.cursor()"
            )
        return self._method(name)

    def _method(self, name: str) -> Any:
        function = self._struct._find_method(name)
        if function is None:
            raise absent(lambda: f"{self._struct.name} has no field or method named '{name}'{self._near(name)}")
        method = function if self._struct._is_static(name) else function.bind(self)
        self._methods.add(name)
        object.__setattr__(self, name, method)  # from now on a plain attribute
        return method

    def __getstate__(self) -> dict[str, Any]:
        """Without the methods, which are bound to this object."""
        return {name: value for name, value in self.__dict__.items() if name not in self._methods} | {"_methods": set()}

    def _near(self, name: str) -> str:
        """What a name that is no field or method may have meant."""
        if not name.startswith("_") and isinstance(self._data, Tensor) and hasattr(type(self._data), name):
            return f"; the Tensor has it: .data.{name}"
        known = [*self._struct.fields, *names_in(self._struct), *(own for own in dir(type(self)) if own[0] != "_")]
        close = difflib.get_close_matches(name, known, 1)
        return f"; did you mean {close[0]}?" if close else ""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._struct.fields:
            if not isinstance(self._data, dict):
                raise AttributeError(
                    f"field '{name}' of {self._struct.name} is inside a Tensor; write it through its cursor()"
                )
            self._data[name] = value
            return
        object.__setattr__(self, name, value)
        self._methods.discard(name)

    def construct(self, /, *args: Any, **kwargs: Any) -> None:
        """Runs the struct's constructor once per instance, into the stored data."""
        if isinstance(self._data, dict) and self._struct._holds_objects:
            self._data.update(self._struct(*args, **kwargs))
            return
        self._struct._constructor()(*args, _result=self.get_this(), **kwargs)

    def pack(self) -> Any:
        """The instances as one value written once; see `slangpy.pack`."""
        return pack(self._struct.module, self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._struct.name}, {self._data!r})"


class InstanceTensor(InstanceList):
    """Instances of a struct in one Tensor.

    shape: sizes of the tensor; data: a Tensor of the struct, or None to make one (uninitialised).
    """

    def __init__(self, struct: Struct, shape: Any, data: Tensor | None = None) -> None:
        sizes: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        if data is None:
            data = Tensor.empty(struct.device, sizes, dtype=struct)
        elif tuple(data.shape) != sizes:
            raise ValueError(f"InstanceTensor: data has shape {tuple(data.shape)}, but shape is {sizes}")
        super().__init__(struct, data)

    @property
    def tensor(self) -> Tensor:
        """The tensor of structs."""
        return self._data

    @property
    def shape(self) -> Any:
        """Sizes of its dimensions."""
        return self._data.shape

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> InstanceTensor:
        """Some of the instances, in the same memory. The index is one of a Tensor: `instances[2]`, `instances[1:, ::2]`."""
        chosen = self._data[index]
        return InstanceTensor(self._struct, chosen.shape, chosen)

    def __iter__(self) -> Iterator[InstanceTensor]:
        return (self[index] for index in range(len(self)))

    def to_numpy(self, **kwargs: Any) -> Any:
        """The tensor's bytes: shape + (stride,) uint8; `structured=True` gives a structured dtype."""
        return self._data.to_numpy(**kwargs)

    def copy_from_numpy(self, array: Any) -> None:
        """Fills it from an array; see `Tensor.copy_from_numpy`."""
        self._data.copy_from_numpy(array)

    def _repr_html_(self) -> str | None:
        return self._data._repr_html_()


class InstanceDifferentiableBuffer(InstanceTensor):
    """An InstanceTensor with gradients."""

    def __init__(self, struct: Struct, shape: Any, data: Tensor | None = None) -> None:
        super().__init__(struct, shape, data)
        if self._data.grad_out is None and self._data.grad_in is None:
            object.__setattr__(self, "_data", self._data.with_grads())

    @property
    def buffer(self) -> Tensor:
        return self._data

    @property
    def grad(self) -> Tensor:
        return self._data.grad

    def primal_to_numpy(self) -> Any:
        return self._data.to_numpy()

    def primal_from_numpy(self, array: Any) -> None:
        self._data.copy_from_numpy(array)

    def grad_to_numpy(self) -> Any:
        return self._data.grad.to_numpy()

    def grad_from_numpy(self, array: Any) -> None:
        self._data.grad.copy_from_numpy(array)
