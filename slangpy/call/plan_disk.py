"""Plans on disk: under a key of everything that decides them, as plain data that needs no compiler to be read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..cache import cache_of, digest
from . import compile as compile_stage
from .ir import Argument, Options, Value


@dataclass
class StoredPlan:
    """What disk keeps of a plan. `variants`: built kernels and the items of their groups."""

    spec: dict[str, Any]
    variants: dict[int, dict[str, Any]]
    result_type: Any
    tangent_type: Any
    sized: bool


def disk_key(
    module: Any, function: Any, options: Options, result_mode: str, arguments: tuple[Argument, ...]
) -> str:  # fmt: skip
    return digest(
        module.content_key, function.identity, repr(options), result_mode, canonical(arguments),
        compile_stage.library_hash(), compile_stage.planner_hash(), compile_stage.device_key(module.device),
        repr(sorted(module.options.items())),
    )  # fmt: skip


def store(module: Any, key: str, plan: StoredPlan) -> None:
    """Keeps a plan and its kernels' names."""
    variants = {}
    for number, variant in plan.variants.items():
        built = variant["built"]
        variants[number] = (built.source, built.layout.serialize(), built.code_key, variant["items"], built.inputs)
        if built.inputs is not None and built.inputs["behind"]:
            return  # made of texts that have been replaced since
    record = {
        "spec": pack_spec(plan.spec),
        "variants": variants,
        "result_type": plan.result_type.full_name if plan.result_type is not None else "",
        "tangent_type": plan.tangent_type.full_name if plan.tangent_type is not None else "",
        "sized": plan.sized,
    }
    cache_of(module.device).write("plan", key, record)


def load(module: Any, key: str, label: str) -> StoredPlan | None:
    """The plan of a key; None when it (or a kernel of it) is not there."""
    record = cache_of(module.device).read("plan", key)
    if record is None or record["sized"]:
        return None
    try:
        return _decode(module, record, label)
    except (RuntimeError, KeyError, ValueError) as error:  # written by another build of the package
        logging.getLogger("slangpy").warning("a stored plan of %s is unusable (%s); it is built anew", label, error)
        return None


def _decode(module: Any, record: dict[str, Any], label: str) -> StoredPlan | None:
    spec = unpack_spec(record["spec"])
    variants: dict[int, dict[str, Any]] = {}
    for number, (source, layout_bytes, code_key, items, inputs) in record["variants"].items():
        layout = _native.PlainProgramLayout.deserialize(layout_bytes)
        built = compile_stage.from_cache(module.kernel_store, label, source, layout, code_key, inputs)
        if built is None:
            return None
        variants[number] = {"built": built, "items": items}
    result_type = tangent_type = None
    if record["result_type"]:
        result_type = module.type_from_layout(record["result_type"], spec["result"].get("element"))
    if record["tangent_type"]:
        tangent_type = module.type_from_layout(record["tangent_type"], spec["result"]["tangent"]["element"])
    return StoredPlan(spec, variants, result_type, tangent_type, record["sized"])


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


_LAYOUT = "@layout"


def pack_spec(value: Any) -> Any:
    """Plain data for marshal: layouts as bytes, numpy dtypes as text."""
    if isinstance(value, dict):
        return {k: pack_spec(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack_spec(v) for v in value]
    if hasattr(value, "serialize"):
        return {_LAYOUT: value.serialize()}
    if hasattr(value, "descr"):
        return {"@dtype": repr(value.descr if value.names else value.str)}
    return value


def unpack_spec(value: Any) -> Any:
    if isinstance(value, dict):
        if _LAYOUT in value:
            return _native.TypeLayout.deserialize(value[_LAYOUT])
        if "@dtype" in value:
            import ast

            import numpy as np

            return np.dtype(ast.literal_eval(value["@dtype"]))
        return {k: unpack_spec(v) for k, v in value.items()}
    if isinstance(value, list):
        return tuple(unpack_spec(v) for v in value)
    return value
