"""The kernels of a plan: the source of each variant, and those that are built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..compiler.child_link import ChildLink
from ..compiler.generated import with_whole
from ..compiler.modules.facts import longest_loop, what_to_split
from ..compiler.modules.reload import code_lock
from ..compiler.progress import compiling, why_slow
from ..errors import KernelGenException
from .compile import BuiltKernel, Started, build, known_kernel, start
from .constants import render_constants
from .derive.sums import adds_anywhere, private_source, sums_source
from .emit import emit
from .emit.groups import has_threads
from .emit.sums import group_limit
from .emit.variants import (
    PRIVATE,
    decode_variant,
    guess_variant,
    has_patches,
    loads_elements,
    may_be_near,
    spreads,
    vector_width,
)
from .explain import table
from .planner import Planned, Request
from .slang_text import avoid_names, product
from .trampoline.views import has_rows

SUMS = 63
"""The bit of variants that bring the sums beside a leaf's gradient into the gradient; the low bits name the leaf."""


@dataclass(frozen=True)
class Variant:
    """A built kernel. `items`: invocations of one group (0 for the CPU, whose blocks are sized at launch), and most
    groups (0: any)."""

    built: BuiltKernel
    items: tuple[int, int]


def group_size(request: Request, planned: Planned) -> int:
    """Threads of a group."""
    if planned.vectorized.whole:
        return planned.vectorized.whole
    if request.options.rays is not None:
        return 1
    group = request.options.call_group_shape or request.options.thread_group_size
    return product(tuple(group)) if group else 256


def can_widen(request: Request, planned: Planned) -> bool:
    """Whether threads of this plan's kernels may handle several elements each (GPU devices only)."""
    derives = request.options.bwds or request.options.fwds
    several = not (request.on_cpu or derives or planned.vectorized.statics or request.options.rays)
    return several and vector_width(planned.vectorized) > 1


def can_space(request: Request, planned: Planned) -> bool:
    """The same of kernels that are not flat: their elements are no neighbours."""
    return can_widen(request, planned) and loads_elements(planned.vectorized)


def can_patch(request: Request, planned: Planned) -> bool:
    """Whether there are kernels whose groups cover part of two dimensions of the call."""
    return _has_several(request, planned) and has_patches(planned.vectorized)


def can_spread(request: Request, planned: Planned) -> bool:
    """Whether threads may handle several invocations of a function that picks elements itself."""
    return _has_several(request, planned) and spreads(planned.vectorized)


def _has_several(request: Request, planned: Planned) -> bool:
    derives = request.options.bwds or request.options.fwds
    known = request.module.device.compile_target.format in ("cuda", "spirv")
    return known and not derives and group_size(request, planned) == 256


def can_be_near(request: Request, planned: Planned) -> bool:
    """Whether there are kernels that compute offsets of views in 32 bits."""
    return not request.on_cpu and may_be_near(planned.vectorized)


def can_be_aligned(request: Request, planned: Planned) -> bool:
    """Whether kernels are told that rows of tensors are aligned: only CUDA's compiler makes wider accesses of it."""
    rows = any(has_rows(p) for p in planned.vectorized.placed)
    return rows and can_be_near(request, planned) and request.module.device.compile_target.format == "cuda"


def can_privatize(request: Request, planned: Planned) -> bool:
    """Whether there are kernels that add to copies of small gradients (Facts.can_privatize)."""
    has_addresses = not request.on_cpu and request.module.device.compile_target.format != "hlsl"
    return has_addresses and request.options.bwds and adds_anywhere(planned.vectorized, planned.derivatives)


def default_variant(request: Request, planned: Planned) -> int:
    """Variant that the shapes at hand most likely need; what runs is native code's to choose."""
    near, aligned = can_be_near(request, planned), can_be_aligned(request, planned)
    patch, spread = can_patch(request, planned), can_spread(request, planned)
    return guess_variant(planned.vectorized, can_widen(request, planned), near, aligned, patch, spread)


def kernel_source(request: Request, planned: Planned, program: Any, key: int) -> str:
    """Generated Slang of a variant. `program`: the module as it is compiled (compiler.modules.loaded.LoadedModule)."""
    plan, target = planned.vectorized, request.module.device.compile_target
    has_text = request.options.preludes or any(p.binding.code is not None for p in plan.placed)
    library = with_whole(program.library_names) if has_text else program.library_names
    imports = [*library, *program.import_names]
    if key >> SUMS and key >> PRIVATE & 1:
        return private_source("double" if key & 1 else "float", imports)
    if key >> SUMS:
        leaf = next(p for p in plan.placed if p.leaf == key & 0xFFFFFFFF)
        return sums_source(planned.derivatives[leaf.ident].sums, request.on_cpu, imports, target.format == "hlsl")
    shape = decode_variant(key, plan, request.on_cpu, group_size(request, planned))
    constants = render_constants(program, request.label, request.options.constants)
    options = replace(request.options, preludes=(*request.options.preludes, *constants))
    try:
        capabilities = (target.format, *target.capabilities)
        text = emit(plan, planned.derivatives, options, shape, imports, capabilities, planned.result_format)
        return avoid_names(text, program.declared_names)
    except (KernelGenException, ValueError) as error:
        raise KernelGenException(f"{request.label}: {error}\n{table(request.arguments, plan)}") from None


def _items(request: Request, plan: Callable[[], Planned], key: int) -> tuple[int, int]:
    if key >> SUMS:
        return (0 if request.on_cpu else 256), 0
    planned = plan()
    vectorized, size = planned.vectorized, group_size(request, planned)
    traits = decode_variant(key, vectorized, request.on_cpu, size)
    limit = group_limit(vectorized, planned.derivatives, traits)
    if not has_threads(vectorized, request.on_cpu):
        return 0, limit
    if vectorized.tile:
        return 1, limit  # a launch counts tiles
    return size * traits.width, limit


class Kernels:
    """The kernels of one plan by the key of their variant."""

    def __init__(self, request: Request, plan: Callable[[], Planned]) -> None:
        """plan: gives the records of the stages, which run when the first kernel is built."""
        self._request, self._plan = request, plan
        self._program: Any = None
        self._epoch = request.module.layout.epoch
        self.variants: dict[int, Variant] = {}
        self._code = ""
        self._started: dict[int, tuple[str, Started]] = {}

    @property
    def program(self) -> Any:
        """The code that this plan was made of, which a reload during a call leaves as it was."""
        if self._program is None:
            self._program = self._request.module._compiled
            if not self.is_current:
                raise RuntimeError(f"{self._request.label}: its source was replaced during the call; call it again")
        return self._program

    @property
    def is_current(self) -> bool:
        """Whether the module's code is still that which this plan was made of."""
        return self._request.module.layout.epoch == self._epoch

    @property
    def first(self) -> BuiltKernel:
        """One of the kernels; the likely one is built where there is none."""
        if not self.variants:
            self.build_likely()
        return next(iter(self.variants.values())).built

    @property
    def code(self) -> str:
        """Generated Slang of the variant that was built last, or is likely to be built first."""
        return self._code or self.source(self._likely())

    def layout(self) -> Any:
        """Where arguments lie, in all variants alike. Most likely the kernel that is asked for next is begun for it."""
        with code_lock:
            if self.variants or self._request.options.second:
                return self.first.layout
            program, request, key = self.program, self._request, self._likely()
            source, conformances = self.source(key), request.options.conformances
            known = known_kernel(program, source, conformances)
            if known is not None:
                return known.layout
            with self._progress():
                started = start(program, request.label, source, conformances, request.options.rays)
            self._started = {key: (source, started)}
            return started.layout

    @property
    def used_globals(self) -> tuple[int, ...]:
        """Slots of the global resources that the kernels that are built use."""
        return tuple(sorted({slot for variant in self.variants.values() for slot in variant.built.used_globals}))

    def build_likely(self) -> None:
        """Builds the kernel that the shapes at hand most likely need."""
        self.build(self._likely())

    def _likely(self) -> int:
        return default_variant(self._request, self._plan())

    def _progress(self) -> Any:
        device = self._request.module.device
        return compiling(f"compiling {self._request.kernel_label} for {device.info.type.name}", self._why_slow)

    def _why_slow(self) -> str:
        derives = self._request.call_mode != "prim"
        reason = what_to_split(self.program, self._plan().resolved.call_name) if derives else ""
        return why_slow(self._request.module.device) or reason

    @contextmanager
    def _said_where(self) -> Iterator[None]:
        """Says of a kernel that a driver refuses for its variables where they come from."""
        try:
            yield
        except RuntimeError as error:
            derives = self._request.call_mode != "prim" and "bytes in variables" in str(error)
            where = longest_loop(self.program, self._plan().resolved.call_name) if derives else ""
            if not where:
                raise
            raise RuntimeError(f"{error}{where}") from None

    def source(self, key: int) -> str:
        return kernel_source(self._request, self._plan(), self.program, key)

    def build(self, key: int) -> Variant:
        """The kernel of a variant, built where it is not yet."""
        with code_lock:
            known = self.variants.get(key)
            if known is None:
                program, request, begun = self.program, self._request, self._started.pop(key, None)
                source, started = begun or (self.source(key), None)
                if not key >> SUMS:
                    self._code = source
                link = ChildLink(request.module).link if request.options.second and not key >> SUMS else None
                self._started = {}
                with self._progress(), self._said_where():
                    built = build(
                        program, request.label, source, request.options.conformances, link, request.kernel_label, started,
                        request.options.rays,
                    )  # fmt: skip
                known = self.variants[key] = Variant(built, _items(request, self._plan, key))
            return known

    def take(self, variants: dict[int, Variant]) -> None:
        """Kernels from disk."""
        self.variants = variants
        for key, variant in variants.items():
            if not key >> SUMS:
                self._code = variant.built.source


__all__ = [
    "Kernels", "Variant", "can_be_aligned", "can_be_near", "can_patch", "can_privatize",
    "can_space", "can_spread", "can_widen", "default_variant", "group_size", "kernel_source",
]  # fmt: skip
