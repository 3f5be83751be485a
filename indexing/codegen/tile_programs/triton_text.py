"""The text of a Triton kernel: offsets, masks, strides and loops, as a Python file."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

import numpy as np

from hlo.shapes.shape import dtype
from indexing.codegen.text import Lines, Names, identifier, tuple_text
from indexing.codegen.tile_programs.axis_order import axis_order
from indexing.codegen.tile_programs.body_text import number_text
from indexing.codegen.tile_programs.lowering import tile_program
from indexing.codegen.tile_programs.program import (
    NotEmitted,
    StepPhase,
    StepTotal,
    TileProgram,
    argument_names,
    roots_of,
)
from indexing.codegen.tile_programs.tile_values import TileFold, TileLoad, in_order
from indexing.codegen.tile_programs.triton_body import TritonBody, offset_of
from indexing.codegen.tile_programs.triton_functions import triton_type
from indexing.maps.arrays import ArrayRef
from indexing.ops.functions import neutral
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.atoms import Variable
from simplifier.unknown import Unknown

_TAKEN = ("tl", "triton", "libdevice", "pid")


def triton_kernel_text(tiling: LoopTiling) -> str | Unknown:
    """Return a Python file with the Triton kernel of a tiling; see `LoopTiling.to_triton`."""
    try:
        return _TritonFile(tile_program(tiling)).text()
    except NotEmitted as reason:
        return Unknown(f"no Triton kernel: {reason}", tiling.instruction)


class _TritonFile:
    def __init__(self, program: TileProgram) -> None:
        self._program, self._lines = program, Lines()
        self._names = Names([*_TAKEN, *[f"tid_{k}" for k in program.axes]])
        self._pointers: dict[ArrayRef, str] = {}
        for array in program.arrays:
            stem = identifier(array.instruction.name)
            self._pointers[array] = self._names.new(f"{stem}_ptr")
        self._combiners: dict[str, str] = {}
        self._order = self._axis_order()
        self._totals: dict[tuple[int, str], str] = {}

    def _axis_order(self) -> list[int]:
        program = self._program
        first: list[TileLoad] = []
        for phase in program.phases:
            for value in in_order(roots_of(phase)):
                if isinstance(value, TileFold) and len(value.terms) == 2:
                    first += [v for v in in_order(value.terms) if isinstance(v, TileLoad)]
        loads = [*first, *[load for _, load in program.loads()]]
        wishes = [_load_order(load) for load in loads]
        return axis_order(range(program.rank), wishes, program.axes)

    def text(self) -> str:
        """Return the file."""
        program, lines = self._program, self._lines
        name = Names(_TAKEN).new(identifier(program.name))
        out = self._names.new("out_ptr")
        pointers = [*self._pointers.values(), out]
        lines.add("@triton.jit")
        with lines.indent_below(f"def {name}_kernel({', '.join(pointers)}):"):
            self._block_index()
            for phase in program.phases:
                self._phase(phase, out)
        lines.lines += ["", ""]
        taken = (*_TAKEN, "out", f"{name}_kernel")
        arguments, target = list(argument_names(program, taken).values()), "out"
        with lines.indent_below(f"def {name}({', '.join([*arguments, target])}):"):
            lines.add(
                f'"""Compute `{target}`; all arrays are dense, in the layouts of the module."""'
            )
            given = ", ".join([*arguments, target])
            blocks, stages = prod(program.tiling.grid), program.tiling.stages
            lines.add(f"{name}_kernel[({blocks},)]({given}, num_stages={stages})")
        body = [line.rstrip() for line in lines.lines]
        return "\n".join([*self._head(), *body]) + "\n"

    def _head(self) -> list[str]:
        lines = [
            f'"""{self._program.title}."""',
            "",
            "import triton",
            "import triton.language as tl",
        ]
        if any("libdevice." in line for line in self._lines.lines):
            lines.append("from triton.language.extra import libdevice")
        lines += ["", ""]
        for name, text in self._combiners.items():
            lines += ["@triton.jit", f"def {name}(a, b):", f"    return {text}", "", ""]
        return lines

    def _block_index(self) -> None:
        """Write the index of the tile in each dimension."""
        program, lines = self._program, self._lines
        axes = [axis for axis in program.block_axes if program.axis(axis).count > 1]
        if not axes:
            return
        lines.add("pid = tl.program_id(0)")
        inner = prod([program.axis(axis).count for axis in axes])
        for axis in axes:
            count = program.axis(axis).count
            inner //= count
            text = f"pid // {inner}" if inner > 1 else "pid"
            lines.add(f"tid_{axis} = {text}" + (f" % {count}" if axis != axes[0] else ""))

    # ------------------------------------------------------------ phases

    def _writer(self) -> TritonBody:
        program, lines, names = self._program, self._lines, self._names
        return TritonBody(
            program, lines, names, self._order, self._pointers, self._combiners, self._totals
        )

    def _phase(self, phase: StepPhase, out: str) -> None:
        lines, body = self._lines, self._writer()
        variables: dict[int, str] = {}
        for total in phase.totals:
            self._program.check_total(total)
            zero = neutral(total.fold.combine, dtype(total.fold.total_kind))
            text = number_text(np.asarray(zero).item(), body.infinity, body.nan)
            shape, kind = tuple_text(body.sizes(total.axes)), total.fold.total_kind
            stem = f"{identifier(total.fold.name)}_total"
            name = self._names.new(stem)
            lines.add(f"{name} = tl.full({shape}, {text}, {triton_type(kind)})")
            variables[total.number] = name
        with ExitStack() as stack:
            for axis in phase.loops:
                count = self._program.axis(axis).count
                if count > 1:
                    stack.enter_context(lines.indent_below(f"for tid_{axis} in range({count}):"))
            self._steps(phase, variables, out)
        body = self._writer()
        for total in phase.totals:
            self._totals[total.number, "final"] = variables[total.number]
            body.totals[total.number, "final"] = variables[total.number]
            self._totals[total.number, "final"] = self._finish(body, total)
            body.totals |= self._totals

    def _steps(self, phase: StepPhase, variables: dict[int, str], out: str) -> None:
        lines, body = self._lines, self._writer()
        for total in phase.totals:
            name = variables[total.number]
            fold = body.fold(total.fold)
            text = name
            if total.rescale is not None:
                text = f"{name} * {body.along(total.rescale, total.axes)}"
            before = body.assign(f"{identifier(total.fold.name)}_before", name)
            after = body.combined(total.fold.combine, text, fold)
            lines.add(f"{name} = {self._convert_text(after, total)}")
            for state, stem in (("running", name), ("previous", before)):
                body.totals[total.number, state] = self._round_text(body, stem, total)
        if phase.result is not None:
            self._store(body, phase, out)

    @staticmethod
    def _convert_text(text: str, total: StepTotal) -> str:
        kind = total.fold.total_kind
        return text if kind in ("f32", "f64", "s32") else f"({text}).to({triton_type(kind)})"

    @staticmethod
    def _round_text(body: TritonBody, text: str, total: StepTotal) -> str:
        kind = total.fold.kind
        return text if kind == total.fold.total_kind else body.cast(text, kind)

    def _finish(self, body: TritonBody, total: StepTotal) -> str:
        """Write the result of a nest from its total."""
        text = body.finished(total)
        if total.fold.kind != total.fold.total_kind:
            text = body.cast(f"({text})" if " " in text else text, total.fold.kind)
        return text if text.isidentifier() else body.assign(total.fold.name, text)

    def _store(self, body: TritonBody, phase: StepPhase, out: str) -> None:
        """Write the tile of the result."""
        shape, axes = self._program.tiling.shape, tuple(range(self._program.rank))
        assert phase.result is not None
        value = body.along(phase.result, axes)
        index = [Variable(f"d{k}", 0, size - 1).as_expr() for k, size in enumerate(shape.dims)]
        place = body.number(offset_of(index, shape, self._program.name), axes)
        mask = body.mask(tuple(body.axis_guards(axes)), axes)
        sizes = body.sizes(axes)
        if body.active(phase.result.axes) != body.active(axes):
            value = f"tl.broadcast_to({value}, {tuple_text(sizes)})"
        masked = "" if mask is None else f", mask={mask}"
        self._lines.add(f"tl.store({out} + {place}, {value}{masked})")


def _load_order(load: TileLoad) -> tuple[int, ...]:
    """Return the axes of a load in the order of the dimensions of its array."""
    return tuple(dict.fromkeys([dimension_of(v) for expr in load.index for v in expr.variables()]))
