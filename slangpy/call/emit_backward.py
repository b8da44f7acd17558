"""The backward half of generated kernels: Slang's bwd_diff around the call, seeds read before, gradients added after."""

from __future__ import annotations

from ..reflection import SlangType
from .accumulate import Part, atomic_hook, byte_offsets, has_half, parts_of, sum_type
from .emit_forward import ForwardWriter
from .gradients import NONE
from .ir import Derivative, Parameter, Placed, Vectorized
from .settle import own_addition
from .text import indent, slang_name
from .variants import LINEAR, MAX_PERIOD, PERIODIC, UNIFORM, Shape

MAX_GROUPS = 1024
"""Groups of a GPU kernel that ends in a reduction: each thread strides over the call and each group adds once."""


def reduces(placed: Placed, grad: Derivative, shape: Shape) -> bool:
    """Whether the gradient of a leaf is summed over the invocations before it is added to memory."""
    if not grad.target or grad.forward or placed.binding.rank >= 0:
        return False
    access = UNIFORM if grad.target == "reference" or not placed.map else shape.classes.get(placed.ident, UNIFORM)
    if access not in (UNIFORM, PERIODIC):
        return False
    derivative = placed.binding.type.derivative
    return derivative is not None and parts_of(derivative) is not None


def gradient_class(placed: Placed, grad: Derivative, shape: Shape) -> str:
    """What `explain` says of a leaf: where its gradient comes from, and how what invocations add meets."""
    words = ["read"] if grad.seed else []
    if not grad.target:
        pass
    elif grad.forward:
        words.append("written")
    elif placed.binding.rank >= 0:
        words.append("scattered")
    elif reduces(placed, grad, shape):
        words.append("reduced")
    elif grad.target == "view" and placed.map and shape.classes.get(placed.ident) == LINEAR:
        words.append("direct")
    else:
        words.append("scattered")
    return ", ".join(words)


def group_limit(plan: Vectorized, grads: dict[str, Derivative], shape: Shape) -> int:
    """Most groups (CPU: blocks) that a kernel of this variant may be launched with; 0: no limit."""
    reduced = [p for p in plan.placed if p.ident in grads and reduces(p, grads[p.ident], shape)]
    if any(_rounds(placed, grads[placed.ident]) for placed in reduced):
        return 1
    return MAX_GROUPS if reduced and not shape.cpu else 0


def _rounds(placed: Placed, grad: Derivative) -> bool:
    """Whether each group's sum is rounded to half precision, as that of a struct is which cannot be added by parts."""
    derivative = placed.binding.type.derivative
    return not derivative.scalar and has_half(derivative) and not _by_parts(placed, grad)


def _by_parts(placed: Placed, grad: Derivative) -> bool:
    """Whether the sum of a struct with halves is added to memory part by part, the halves as float."""
    derivative = placed.binding.type.derivative
    stored = grad.target == "view" and grad.grad_type == derivative.full_name and not placed.binding.inner
    return stored and not derivative.scalar and has_half(derivative) and not own_addition(derivative)


class BackwardWriter(ForwardWriter):
    """What backward calls add to the parts of plain ones."""

    # --- the differentiable wrapper and the call
    def _emit_backward(self) -> list[str]:
        """Fills the kernel's body around bwd_diff; returns the differentiable wrapper of the user's function."""
        resolved = self.plan.resolved
        signature: list[str] = []
        before: list[str] = []
        passed: list[str] = []
        for parameter in resolved.parameters:
            if parameter.io != "return":
                passed += self._backward_parameter(parameter, signature, before)
        call = self._call_expression([f"_p_{p.name}" for p in resolved.parameters if p.io != "return"])
        result = next((p for p in resolved.parameters if p.io == "return"), None)
        kind = "void"
        statement = f"{call};"
        if result is not None and result.type.differentiable:
            kind, statement = slang_name(resolved.return_type_name), f"return {call};"
            passed.append(self._seed(result))
        elif resolved.return_type_name != "void":
            statement = f"let _unused = {call};"
        self.body.append(f"bwd_diff(_spy_function)({', '.join(passed)});")
        for parameter in resolved.parameters:
            if parameter.io in ("in", "inout") and self._wants_gradient(parameter):
                self._accumulate(parameter)
        return [
            "[Differentiable]", f"{kind} _spy_function({', '.join(signature)})", "{", *indent(before),
            f"    {statement}", "}",
        ]  # fmt: skip

    def _wants_gradient(self, parameter: Parameter) -> bool:
        """Whether a parameter is differentiated as a value. Inputs that nobody keeps a gradient of are constants."""
        leaves = self.leaves.get(parameter.name, [])
        if parameter.no_diff or not parameter.binding.type.differentiable or self._is_tensor(parameter):
            return False
        values = [self.grads.get(p.ident, NONE) for p in leaves if p.binding.rank < 0]
        return parameter.io != "in" or any(grad.target for grad in values)

    def _is_tensor(self, parameter: Parameter) -> bool:
        return parameter.binding.rank >= 0

    def _backward_parameter(self, parameter: Parameter, signature: list[str], before: list[str]) -> list[str]:
        """Adds a parameter to the wrapper; gives what bwd_diff is passed for it (nothing: a local of the wrapper)."""
        name, kind = f"_p_{parameter.name}", slang_name(parameter.binding.type_name)
        leaves = self.leaves.get(parameter.name, [])
        if leaves and self.grads.get(leaves[0].ident, NONE).by_load:
            return self._load_inside(leaves[0], name, signature, before)
        if not self._wants_gradient(parameter):
            if parameter.io == "out" and not self._is_tensor(parameter):
                before.append(f"{kind} {name};")
                return []
            prefix = "no_diff " if parameter.binding.type.differentiable else ""
            if parameter.io == "inout" and not self._is_tensor(parameter):
                signature.append(f"{prefix}{kind} {name}_in")
                before.append(f"{kind} {name} = {name}_in;")
            else:
                signature.append(f"{prefix}{kind} {name}")
            return [self._argument_value(parameter)]
        signature.append({"in": "", "out": "out ", "inout": "inout "}[parameter.io] + f"{kind} {name}")
        if parameter.io == "out":
            return [self._seed(parameter)]
        primal, pair = f"_x_{parameter.name}", f"_d_{parameter.name}"
        self.body.append(f"{kind} {primal} = {self._argument_value(parameter)};")
        seed = f", {self._seed(parameter)}" if parameter.io == "inout" else ""
        self.body.append(f"DifferentialPair<{kind}> {pair} = diffPair({primal}{seed});")
        return [pair]

    def _load_inside(self, placed: Placed, name: str, signature: list[str], before: list[str]) -> list[str]:
        """A value of a registered class is loaded by the wrapper: Slang calls the derivative of its load."""
        stored, ident = slang_name(placed.binding.stored), placed.ident
        signature += [f"no_diff {stored} {name}_data", f"no_diff _spy_Context<{len(placed.map)}> {name}_context"]
        before += [f"_spy_T_{ident} {name};", f"{name}_data.__slangpy_load({name}_context, {name});"]
        self._custom_context(placed)
        return [f"_call.{ident}", f"_x_{ident}"]

    # --- seeds
    def _seed(self, parameter: Parameter) -> str:
        """A variable with the incoming gradient of an output; zero where none is attached."""
        kind = self._named(parameter)
        var = f"_s_{parameter.name.lstrip('_')}"
        self.body.append(f"{kind}.Differential {var} = {kind}.dzero();")
        for placed in self.leaves.get(parameter.name, []):
            grad = self.grads.get(placed.ident, NONE)
            target = var + placed.path[len(parameter.name) :]
            if grad.seed == "value":
                self.body.append(f"{target} = _call.{placed.ident}_seed;")
            elif grad.seed == "view":
                self._read_seed(placed, grad, target)
        return var

    def _read_seed(self, placed: Placed, grad: Derivative, target: str) -> None:
        view = f"{placed.ident}_gi"
        derivative = placed.binding.type.derivative
        assert derivative is not None
        if not placed.binding.inner and grad.seed_type == derivative.full_name:
            self.body.append(f"{target} = _call.{view}.read({self._offset(placed, view)});")
            return
        self.body.append(f"int64_t _o_{view} = {self._offset(placed, view)};")
        self.body.append(f"_spy_T_{placed.ident}.Differential _g_{view};")
        self._transfer(placed, view, f"_g_{view}", derivative, f"_o_{view}", 0, self.body, grad.seed_type, load=True)
        self.body.append(f"{target} = _g_{view};")

    # --- gradients
    def _accumulate(self, parameter: Parameter) -> None:
        for placed in self.leaves.get(parameter.name, []):
            grad = self.grads.get(placed.ident, NONE)
            if grad.target and placed.binding.rank < 0:
                path = placed.path[len(parameter.name) :]
                self._accumulate_leaf(placed, grad, f"_d_{parameter.name}.d{path}")

    def _accumulate_leaf(self, placed: Placed, grad: Derivative, value: str) -> None:
        derivative = placed.binding.type.derivative
        assert derivative is not None
        view = f"{placed.ident}_out" if grad.target == "reference" else f"{placed.ident}_go"
        if reduces(placed, grad, self.shape):
            self._reduce(placed, grad, view, derivative, value)
            return
        self.body.append(f"let _g_{view} = {value};")
        if grad.target == "reference":
            self.body.append(f"_spy_atomic_add<{slang_name(derivative.full_name)}>(_call.{view}, _g_{view});")
            return
        self.body.append(f"int64_t _o_{view} = {self._offset(placed, view)};")
        owned = bool(placed.map) and self._class(placed) == LINEAR
        if owned and placed.binding.value is not None and placed.binding.value.details.get("fresh"):
            self._transfer(
                placed, view, f"_g_{view}", derivative, f"_o_{view}", 0, self.body, grad.grad_type, load=False
            )
            return
        if owned and not placed.binding.inner and grad.grad_type == derivative.full_name:
            self.body.append(f"_spy_add<_spy_T_{placed.ident}>(_call.{view}.at(_o_{view}), _g_{view});")
            return
        if self.shape.cpu and not owned and parts_of(derivative) is not None:
            self._sum_runs(placed, grad, view, derivative)
            return
        add = "plain" if owned else "near" if self._adds_by_wave(grad.grad_type) else "atomic"
        self._transfer(
            placed, view, f"_g_{view}", derivative, f"_o_{view}", 0, self.body, grad.grad_type, load=False, add=add
        )

    def _redirect_mode(self) -> int:
        """Which gradients this kernel adds to sums beside them: settle.HALF, settle.EXACT or none (0)."""
        modes = [
            grad.sums.mode
            for placed in self.plan.placed
            if (grad := self.grads.get(placed.ident, NONE)).sums is not None
            and not (placed.binding.rank < 0 and placed.binding.kind == "view" and self._class(placed) == LINEAR)
        ]
        return max(modes, default=0)

    def _redirect(self) -> list[str]:
        lines = ["_spy_bounds = _call._bounds;"] if self._checks_bounds() else []
        return [*lines, "_spy_redirects = _call._redirects;"] if self._redirect_mode() else lines

    def _adds_by_wave(self, stored: str) -> bool:
        """Whether lanes that meet in one element may be summed first."""
        return (
            not self.shape.cpu
            and not self.options.deterministic
            and (stored == "float" or stored.startswith("vector<float,"))
        )

    def _sum_runs(self, placed: Placed, grad: Derivative, view: str, derivative: SlangType) -> None:
        """Neighbouring invocations that add to one element (a broadcast last dimension) are summed first."""
        summed = sum_type(derivative)
        kind, at, flushed = slang_name(summed.full_name), f"_at_{view}", f"_total_{view}"
        flush = [f"{kind} {flushed};"]
        clear: list[str] = []
        sums: list[str] = []
        self.hoisted += [f"int64_t {at} = 0;", f"bool _open_{view} = false;"]
        for number, part in enumerate(parts_of(summed) or ()):
            name, wide = f"_sum_{view}_{number}", part.widened("double")
            self.hoisted.append(f"{wide} {name} = {wide}(0.0);")
            flush.append(f"{flushed}{part.path} = {slang_name(part.type.full_name)}({name});")
            clear.append(f"{name} = {wide}(0.0);")
            sums.append(f"{name} += {wide}(_g_{view}{part.path});")
        self._transfer(placed, view, flushed, summed, at, 0, flush, grad.grad_type, load=False, add="summed")
        flush = [f"if (_open_{view})", "{", *indent(flush), "}"]
        self.body += [
            f"if (!_open_{view} || _o_{view} != {at})", "{", *indent(flush), f"    {at} = _o_{view};",
            f"    _open_{view} = true;", *indent(clear), "}", *sums,
        ]  # fmt: skip
        self.after += flush

    def _reduce(self, placed: Placed, grad: Derivative, view: str, derivative: SlangType, value: str) -> None:
        """A broadcast argument: summed by each thread (CPU: block) and group, then added once."""
        summed = sum_type(derivative)
        parts = parts_of(summed)
        assert parts is not None
        kind, total = slang_name(summed.full_name), f"_total_{view}"
        periodic = grad.target != "reference" and bool(placed.map) and self._class(placed) == PERIODIC
        by_parts = _by_parts(placed, grad)
        lines = [] if by_parts else [f"{kind} {total};"]
        for number, part in enumerate(parts):
            name = f"_sum_{view}" + (f"_{number}" if part.path else "")
            self._sum_part(part, name, value, periodic)
            to = f"let {total}_{number}" if by_parts else f"{total}{part.path}"
            type_name = _sum_name(part) if by_parts else slang_name(part.type.full_name)
            lines.append(f"{to} = {type_name}({self._summed(name, periodic)});")
        add: list[str] = []
        if grad.target == "reference":
            name, stored = ("_spy_add_summed" if summed is not derivative else "_spy_atomic_add"), derivative.full_name
            add.append(f"{name}<{slang_name(stored)}>(_call.{view}, {total});")
        else:
            offset = self._strided(view + "_lead", placed.map, "_e") if periodic else "int64_t(0)"
            if by_parts:
                add += self._add_parts(f"{self._base(view)}.{view}.at({offset})", derivative, total)
            else:
                self._transfer(placed, view, total, summed, offset, 0, add, grad.grad_type, load=False, add="summed")
        if periodic and self.shape.cpu:
            head = "for (int64_t _residue = 0; _residue < _call._period; _residue++)"
            self.after += [head, "{", *indent(self._split_residue() + lines + add), "}"]
        elif self.shape.cpu:
            self.after += ["{", *indent(lines + add), "}"]
        elif periodic:
            self.after += [*lines, "if (_thread < uint(_call._period))", "{", *indent(self._split_residue() + add), "}"]
        else:
            self.after += [*lines, "if (_thread == 0)", "{", *indent(add), "}"]

    def _add_parts(self, storage: str, type_: SlangType, total: str) -> list[str]:
        """Atomic additions of the sums `total`_0, ... to the parts of one stored element."""
        lines: list[str] = []
        for number, (part, offset) in enumerate(zip(parts_of(type_) or (), byte_offsets(type_), strict=True)):
            kind = slang_name(part.type.full_name)
            call = "_spy_add_summed" if part.type.scalar == "half" else "_spy_atomic_add"
            lines.append(f"{call}<{kind}>({storage}.part<{kind}>({offset}), {total}_{number});")
        return lines

    def _summed(self, name: str, periodic: bool) -> str:
        size = self.shape.group_size
        if periodic:
            whole = f"_spy_period_sum({name}, _thread, {size}, uint(_call._period))"
            return f"{name}[_residue]" if self.shape.cpu else whole
        return name if self.shape.cpu else f"_spy_group_sum({name}, _thread, {size})"

    def _split_residue(self) -> list[str]:
        """Call indices _e0 ... of the first invocation that adds to the same elements."""
        thread = f"(_group.x * {self.shape.group_size} + _thread) % uint(_call._period)"
        lines = [f"int64_t _rest = {'_residue' if self.shape.cpu else thread};"]
        for dim in range(self.plan.call_rank - 1, 0, -1):
            lines += [f"int64_t _e{dim} = _rest % _call._shape[{dim}];", f"_rest = _rest / _call._shape[{dim}];"]
        return [*lines, "int64_t _e0 = _rest;"]

    def _sum_part(self, part: Part, name: str, value: str, periodic: bool) -> None:
        scalar = "double" if self.shape.cpu or part.type.scalar == "double" else "float"
        wide = part.widened(scalar)
        target = name
        if periodic and self.shape.cpu:  # the elements change from one invocation to the next: one sum for each
            last = self.plan.call_rank - 1
            row = f"int64_t _row_residue = _i % _call._period - _c{last};"
            if row not in self.row:
                self.row.append(row)
            target = f"{name}[int(_row_residue + _c{last})]"
            self.hoisted.append(f"{wide} {name}[{MAX_PERIOD}];")
            self.hoisted.append(f"for (int _k = 0; _k < int(_call._period); _k++) {name}[_k] = {wide}({scalar}(0));")
        else:
            self.hoisted.append(f"{wide} {name} = {'0' if wide == scalar else f'{wide}({scalar}(0))'};")
        self.body.append(f"{target} += {wide}({value}{part.path});")

    # --- what the library asks of the generated module
    def _library_settings(self) -> list[str]:
        """Exports that tell the Slang library about the device and about elements it cannot add atomically by itself."""
        lines = atomic_hook(self._atomic_types())
        if mode := self._redirect_mode():
            lines.append(f"export static const int _spy_redirect = {mode};")
        if not (lines or self.options.bwds) or "spirv" not in self.capabilities:
            return lines
        for name, capability, default in (
            ("_spy_has_atomic_f32", "spvAtomicFloat32AddEXT", True),
            ("_spy_has_atomic_f64", "spvAtomicFloat64AddEXT", False),
            ("_spy_has_atomic_f16", "spvAtomicFloat16AddEXT", False),
            ("_spy_has_wave_sum", "spvGroupNonUniformArithmetic spvGroupNonUniformVote", True),
        ):
            present = self.capabilities.issuperset(capability.split())
            if present != default:
                lines.append(f"export static const bool {name} = {'true' if present else 'false'};")
        return lines

    def _atomic_types(self) -> list[SlangType]:
        """Element types of gradients, and of AtomicTensor arguments."""
        found: list[SlangType] = []
        for placed in self.plan.placed:
            binding, grad = placed.binding, self.grads.get(placed.ident, NONE)
            program = binding.type.program
            element = program.find_type_by_name(binding.stored) if binding.rank >= 0 else binding.type
            if binding.type_name.startswith("AtomicTensor<") and element is not None:
                found.append(element)
            if not grad.target or grad.forward or element is None:
                continue
            derivative = element.derivative
            assert derivative is not None
            stored = derivative.full_name if grad.target == "reference" else grad.grad_type
            if stored == "BFloat16":
                continue  # has a function of its own
            found.append(derivative if stored == derivative.full_name else SlangType(stored, source=program))
        return found


def _sum_name(part: Part) -> str:
    return part.widened("double" if part.type.scalar == "double" else "float")


__all__ = ["BackwardWriter", "gradient_class", "group_limit", "reduces"]
