"""Which bytes of its uniforms a SPIR-V module reads: code tells that exactly, where names are lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from .spirv import instructions

Block: TypeAlias = tuple[int, int] | None
"""A uniform block by descriptor set and binding; None: the parameters of the entry point itself (push constants, or a record
of a shader table)."""

Range: TypeAlias = tuple[Block, int, int]
"""Bytes [begin, end) of a block."""

_TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_MATRIX = 21, 22, 23, 24
_TYPE_ARRAY, _TYPE_RUNTIME_ARRAY, _TYPE_STRUCT, _TYPE_POINTER = 28, 29, 30, 32
_CONSTANT, _FUNCTION_CALL, _VARIABLE, _LOAD, _STORE = 43, 57, 59, 61, 62
_ACCESS_CHAIN, _IN_BOUNDS_ACCESS_CHAIN, _DECORATE, _MEMBER_DECORATE = 65, 66, 71, 72
_CONSTRUCT, _EXTRACT, _COPY, _SELECT, _PHI, _RETURN_VALUE, _COPY_LOGICAL = 80, 81, 83, 169, 245, 254, 400
_USES_WHOLE = frozenset((_FUNCTION_CALL, _STORE, _CONSTRUCT, _COPY, _SELECT, _PHI, _RETURN_VALUE, _COPY_LOGICAL))
_ARRAY_STRIDE, _BINDING, _SET, _OFFSET = 6, 33, 34, 35
_UNIFORM, _PUSH_CONSTANT, _STORAGE_BUFFER, _SHADER_RECORD = 2, 9, 12, 5343
_IN_BLOCKS = frozenset((_UNIFORM, _STORAGE_BUFFER))
_OWN = frozenset((_PUSH_CONSTANT, _SHADER_RECORD))


@dataclass(frozen=True)
class _Part:
    """A part of a block, of one type. `size`: where an index was not constant, that of the whole array."""

    block: Block
    begin: int
    type: int
    size: int | None = None


@dataclass
class _Module:
    """What the instructions so far have said, by id."""

    types: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    decorations: dict[tuple[int, int], int] = field(default_factory=dict)
    offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    pointers: dict[int, _Part] = field(default_factory=dict)
    loaded: dict[int, _Part] = field(default_factory=dict)
    read: set[Range] = field(default_factory=set)

    def size(self, type_: int) -> int:
        operation, operands = self.types.get(type_, (_TYPE_POINTER, ()))
        if operation in (_TYPE_INT, _TYPE_FLOAT):
            return operands[0] // 8
        if operation in (_TYPE_VECTOR, _TYPE_MATRIX):
            return self.size(operands[0]) * operands[1]
        if operation == _TYPE_ARRAY:
            return self.constants.get(operands[1], 0) * self.stride(type_)
        if operation == _TYPE_STRUCT and operands:
            return max(self.offsets.get((type_, i), 0) + self.size(member) for i, member in enumerate(operands))
        return 0 if operation == _TYPE_RUNTIME_ARRAY else 8

    def stride(self, type_: int) -> int:
        return self.decorations.get((type_, _ARRAY_STRIDE), 0) or self.size(self.types[type_][1][0])

    def inside(self, part: _Part, indices: list[int | None]) -> _Part:
        """The part of a part that indices lead to; None is an index that is not constant."""
        begin, type_, size = part.begin, part.type, part.size
        for index in indices:
            operation, operands = self.types.get(type_, (0, ()))
            if operation == _TYPE_STRUCT and index is not None:
                begin, type_ = begin + (self.offsets.get((type_, index), 0) if size is None else 0), operands[index]
            elif operation in (_TYPE_ARRAY, _TYPE_RUNTIME_ARRAY):
                if index is None and size is None:
                    size = self.size(type_) or 1 << 30
                elif index is not None and size is None:
                    begin += index * self.stride(type_)
                type_ = operands[0]
            else:
                break  # components of vectors and matrices: the whole
        return _Part(part.block, begin, type_, size)

    def use(self, part: _Part) -> None:
        self.read.add((part.block, part.begin, part.begin + (self.size(part.type) if part.size is None else part.size)))


def bytes_read(code: bytes) -> set[Range]:
    """The bytes that the module reads, of all its uniform blocks."""
    module = _Module()
    whole: dict[int, _Part] = {}  # loaded at once: what counts is the parts that are taken out of them
    for operation, operands in instructions(code):
        if operation < _FUNCTION_CALL or operation in (_VARIABLE, _DECORATE, _MEMBER_DECORATE):
            _declare(module, operation, operands)
        elif operation in (_ACCESS_CHAIN, _IN_BOUNDS_ACCESS_CHAIN):
            if (base := module.pointers.get(operands[2])) is not None:
                module.pointers[operands[1]] = module.inside(base, [module.constants.get(i) for i in operands[3:]])
        elif operation == _LOAD:
            if (part := module.pointers.get(operands[2])) is not None:
                module.loaded[operands[1]] = whole[operands[1]] = part
        elif operation == _EXTRACT:
            if (part := module.loaded.get(operands[2])) is not None:
                whole.pop(operands[2], None)
                module.loaded[operands[1]] = whole[operands[1]] = module.inside(part, list(operands[3:]))
        if operation in _USES_WHOLE:
            for id_ in operands:
                if (part := module.loaded.get(id_) or module.pointers.get(id_)) is not None:
                    module.use(part)
    for part in whole.values():
        module.use(part)
    return module.read


def _declare(module: _Module, operation: int, operands: tuple[int, ...]) -> None:
    if operation == _DECORATE and len(operands) == 3:
        module.decorations[operands[0], operands[1]] = operands[2]
    elif operation == _MEMBER_DECORATE and len(operands) == 4 and operands[2] == _OFFSET:
        module.offsets[operands[0], operands[1]] = operands[3]
    elif _TYPE_INT <= operation <= _TYPE_POINTER:
        module.types[operands[0]] = (operation, operands[1:])
    elif operation == _CONSTANT:
        module.constants[operands[1]] = operands[2]
    elif operation == _VARIABLE and operands[2] in _IN_BLOCKS | _OWN:
        place = (module.decorations.get((operands[1], _SET), 0), module.decorations.get((operands[1], _BINDING), 0))
        pointee = module.types[operands[0]][1][1]
        module.pointers[operands[1]] = _Part(None if operands[2] in _OWN else place, 0, pointee)
