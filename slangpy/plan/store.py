"""Plans on disk: under a key of everything that decides them, as plain data that needs no compiler to be read."""

from __future__ import annotations

import ast
import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _native
from ..base.scalars import SCALARS
from ..compiler.cache import cache_of, digest
from ..compiler.options import device_key
from ..compiler.package_files import library_hash, planner_hash
from ..reflection.dtypes import numpy_scalar, structured_parts
from . import compile as compile_stage
from .kernels import Variant
from .planner import Request
from .records import Argument, Value
from .specification import RECORDS, Specification, values_of


@dataclass(frozen=True)
class StoredPlan:
    """What disk keeps of a plan."""

    spec: Specification
    variants: dict[int, Variant]
    result_type: Any
    tangent_type: Any


def disk_key(request: Request) -> str:
    """Hash of all that decides a plan."""
    module = request.module
    return digest(
        module._content_key, request.function.identity, repr(request.options), request.result_mode,
        canonical(request.arguments),
        library_hash(), planner_hash(), device_key(module.device),
        repr(sorted(module.options.items())),
    )  # fmt: skip


def store(module: Any, key: str, plan: StoredPlan) -> None:
    """Keeps a plan and its kernels' names."""
    variants = {}
    for number, variant in plan.variants.items():
        built = variant.built
        variants[number] = (
            built.source, built.layout.serialize(), built.code_key, variant.items, built.inputs, built.used_globals
        )  # fmt: skip
        if built.inputs is not None and built.inputs["outdated"]:
            return  # made of texts that have been replaced since
    record = {
        "size_dependent": plan.spec.size_dependent,
        "spec": pack_spec(plan.spec),
        "variants": variants,
        "result_type": plan.result_type.full_name if plan.result_type is not None else "",
        "tangent_type": plan.tangent_type.full_name if plan.tangent_type is not None else "",
    }
    cache_of(module.device).write("plan", key, record)


def load(module: Any, key: str, label: str) -> StoredPlan | None:
    """The plan of a key; None when it (or a kernel of it) is not there."""
    record = cache_of(module.device).read("plan", key)
    if record is None or record["size_dependent"]:
        return None
    try:
        return _decode(module, record, label)
    except (RuntimeError, KeyError, ValueError, TypeError) as error:  # written by another build of the package
        module.device._check_open()  # else that is what failed
        logging.getLogger("slangpy").warning("a stored plan of %s is unusable (%s); it is built anew", label, error)
        return None


def _decode(module: Any, record: dict[str, Any], label: str) -> StoredPlan | None:
    spec = _with_own_dtype(unpack_spec(record["spec"]))
    variants: dict[int, Variant] = {}
    for number, (source, layout_bytes, code_key, items, inputs, used_globals) in record["variants"].items():
        layout = _native.PlainProgramLayout.deserialize(layout_bytes)
        built = compile_stage.from_cache(
            module._kernel_store, label, source, layout, code_key, inputs, tuple(used_globals)
        )  # fmt: skip
        if built is None:
            return None
        variants[number] = Variant(built, tuple(items))
    result_type = tangent_type = None
    if record["result_type"]:
        result_type = module._type_from_layout(record["result_type"], spec.result.element)
    if record["tangent_type"] and spec.result.tangent is not None:
        tangent_type = module._type_from_layout(record["tangent_type"], spec.result.tangent.element)
    return StoredPlan(spec, variants, result_type, tangent_type)


def canonical(arguments: tuple[Argument, ...]) -> str:
    """The arguments as the key sees them: no shapes, no values."""
    return ";".join(f"{a.name}={_canonical(a.value)}" for a in arguments)


def _canonical(value: Value) -> str:
    parts = [value.kind]
    for name in sorted(value.details):
        if name in ("shape", "object", "dtype", "list_length", "list_shape", "packed"):
            continue
        detail = value.details[name]
        parts.append(f"{name}:{getattr(detail, 'full_name', detail)}")
    parts.append(f"rank:{len(value.shape)}")
    parts += [f"{name}[{_canonical(child)}]" for name, child in value.fields]
    return "|".join(parts)


def _with_own_dtype(spec: Specification) -> Specification:
    """With the dtype of an ndarray result as it is here: text does not say what `ml_dtypes` adds, which may be absent."""
    result = spec.result
    if result.mode != "numpy":
        return spec
    if result.dtype.names is not None:
        return replace(spec, result=replace(result, dtype=structured_parts(result.element)[0]))
    format = _native._element_format(result.element)
    if format is not None and SCALARS[format[0]].is_narrow:
        return replace(spec, result=replace(result, dtype=numpy_scalar(format[0])))
    return spec


_LAYOUT, _DTYPE, _RECORD = "@layout", "@dtype", "@record"


def pack_spec(value: Any) -> Any:
    """Plain data for marshal: records by name, layouts as bytes, numpy dtypes as text.

    Users' options come as subclasses of str and int, too (np.str_, IntEnum), which marshal refuses or takes for bytes.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return value if isinstance(value, bool) else int.__pos__(value)
    if type(value).__name__ in RECORDS:
        return {_RECORD: type(value).__name__, "values": [pack_spec(v) for v in values_of(value)]}
    if isinstance(value, (list, tuple)):
        return [pack_spec(v) for v in value]
    if hasattr(value, "serialize"):
        return {_LAYOUT: value.serialize()}
    if hasattr(value, "descr"):
        return {_DTYPE: repr(value.descr if value.names else value.str)}
    return value


def unpack_spec(value: Any) -> Any:
    if isinstance(value, dict):
        if _LAYOUT in value:
            return _native.TypeLayout.deserialize(value[_LAYOUT])
        if _DTYPE in value:
            return np.dtype(ast.literal_eval(value[_DTYPE]))
        return RECORDS[value[_RECORD]](*(unpack_spec(v) for v in value["values"]))
    if isinstance(value, list):
        return tuple(unpack_spec(v) for v in value)
    return value
