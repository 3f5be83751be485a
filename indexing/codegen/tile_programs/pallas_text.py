"""The text of a Pallas kernel as a Python file: grid, block specifications, and body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlo.shapes.shape import dtype
from indexing.codegen.text import Lines, Names, identifier, tuple_text
from indexing.codegen.tile_programs.axis_order import axis_order
from indexing.codegen.tile_programs.block_layouts import ArrayBlock
from indexing.codegen.tile_programs.body_text import number_text
from indexing.codegen.tile_programs.lowering import tile_program
from indexing.codegen.tile_programs.pallas_body import PallasBody
from indexing.codegen.tile_programs.pallas_functions import jax_type
from indexing.codegen.tile_programs.pallas_grid import PallasGrid
from indexing.codegen.tile_programs.program import (
    NotEmitted,
    StepPhase,
    StepTotal,
    TileProgram,
    argument_names,
    roots_of,
)
from indexing.codegen.tile_programs.tile_values import TileFold, TileLoad, TileValue, in_order
from indexing.ops.functions import neutral
from indexing.tiling.loops.loop_tiling import LoopTiling
from simplifier.unknown import Unknown

_TAKEN = ("jax", "jnp", "pl", "pltpu", "kernel", "step", "interpret")


def pallas_kernel_text(tiling: LoopTiling) -> str | Unknown:
    """Return a Python file with the Pallas kernel of a tiling; see `LoopTiling.to_pallas`."""
    try:
        return _PallasFile(tile_program(tiling)).text()
    except NotEmitted as reason:
        return Unknown(f"no Pallas kernel: {reason}", tiling.instruction)


class _PallasFile:
    def __init__(self, program: TileProgram) -> None:
        self._program, self._grid = program, PallasGrid(program)
        self._lines = Lines()
        self._names = Names([*_TAKEN, *[f"tid_{k}" for k in program.axes]])
        self._operands = self._grid.operands()
        self._refs: dict[TileLoad, tuple[str, ArrayBlock]] = {}
        self._ref_names: list[str] = []
        for operand in self._operands:
            stem = identifier(operand.array.instruction.name)
            name = self._names.new(f"{stem}_ref")
            self._ref_names.append(name)
            for load in operand.loads:
                self._refs[load] = name, self._grid.block_of(load)
        self._order = self._axis_order()
        self._accumulators: dict[int, str] = {}
        self._arguments = argument_names(program, _TAKEN)

    def _axis_order(self) -> list[int]:
        program = self._program
        first, second = [], []
        for phase in program.phases:
            for value in in_order(roots_of(phase)):
                if isinstance(value, TileFold) and len(value.terms) == 2:
                    first += [self._refs[t][1].axes for t in _loads(value.terms)]
        second = [block.axes for _, block in self._refs.values()]
        return axis_order(range(program.rank), [*first, *second], program.axes)

    # ------------------------------------------------------------ the file

    def text(self) -> str:
        """Return the file."""
        lines, out = self._lines, self._names.new("out_ref")
        scratch = self._scratch() if self._grid.steps > 1 else []
        lines.lines += self._head()
        names = [*self._ref_names, out, *self._accumulators.values()]
        with lines.indent_below(f"def kernel({', '.join(names)}):"):
            self._body(out)
        lines.lines += ["", ""]
        arguments = list(self._arguments.values())
        name = Names(_TAKEN).new(identifier(self._program.name))
        with lines.indent_below(f"def {name}({', '.join([*arguments, '*', 'interpret=False'])}):"):
            self._call(scratch)
        return "\n".join([line.rstrip() for line in lines.lines]) + "\n"

    def _head(self) -> list[str]:
        tiling = self._program.tiling
        lines = [f'"""{self._program.title}."""', "", "import jax", "import jax.numpy as jnp"]
        lines += ["from jax.experimental import pallas as pl"]
        lines += ["from jax.experimental.pallas import tpu as pltpu"]
        roots = [root for phase in self._program.phases for root in roots_of(phase)]
        kinds = {tiling.shape.element_type, *[value.kind for value in in_order(roots)]}
        if any(kind.endswith("64") for kind in kinds):
            lines += ["", 'jax.config.update("jax_enable_x64", True)']
        return [*lines, "", ""]

    def _scratch(self) -> list[str]:
        rows: list[str] = []
        for phase in self._program.phases:
            for total in phase.totals:
                name = self._names.new(f"{identifier(total.fold.name)}_total")
                self._accumulators[total.number] = name
                self._program.check_total(total)
                shape = tuple_text(self._sizes(total.axes) or [1])
                rows.append(f"pltpu.VMEM({shape}, {jax_type(total.fold.total_kind)})")
        return rows

    def _sizes(self, axes: Sequence[int]) -> list[int]:
        """Return the sizes of the dimensions of a value with these axes."""
        several = [axis for axis in axes if self._program.extent(axis) > 1]
        return [self._program.extent(a) for a in sorted(several, key=self._order.index)]

    def _call(self, scratch: list[str]) -> None:
        lines, grid, shape = self._lines, self._grid, self._program.tiling.shape
        lines.add('"""Return the result; interpret=True runs on any device."""')
        lines.add("return pl.pallas_call(")
        out = f"jax.ShapeDtypeStruct({tuple_text(shape.dims)}, {jax_type(shape.element_type)})"
        rows = ["kernel,", f"out_shape={out},"]
        rows += [f"grid={tuple_text([size for _, size, _ in grid.dims])},"]
        specs = [grid.spec(operand.block.sizes, operand.index) for operand in self._operands]
        rows += ["in_specs=[", *[f"    {spec}," for spec in specs], "],"]
        rows += [f"out_specs={grid.out_spec()},"]
        if scratch:
            rows += ["scratch_shapes=[", *[f"    {each}," for each in scratch], "],"]
        if grid.dims:
            semantics = tuple_text([f'"{row[2]}"' for row in grid.dims])
            rows += ["compiler_params=pltpu.CompilerParams("]
            rows += [f"    dimension_semantics={semantics}", "),"]
        for row in [*rows, "interpret=interpret,"]:
            lines.add(f"    {row}")
        inputs = [self._arguments[operand.array] for operand in self._operands]
        lines.add(f")({', '.join(inputs)})")

    # ------------------------------------------------------------ the body

    def _body(self, out: str) -> None:
        lines = self._lines
        for number, (name, size, _) in enumerate(self._grid.dims):
            if size > 1:
                lines.add(f"{name} = pl.program_id({number})")
        if self._grid.steps == 1:
            body = self._writer()
            for phase in self._program.phases:
                for total in phase.totals:
                    text = body.assign(total.fold.name, body.fold(total.fold))
                    for state in ("running", "previous"):
                        body.totals[total.number, state] = self._round_text(text, total)
                    body.totals[total.number, "final"] = text
                    body.totals[total.number, "final"] = self._finish(body, total)
            self._store(body, out)
            return
        for number, phase in enumerate(self._program.phases):
            if phase.loops:
                self._phase(phase, number, out)
        if not self._program.phases[-1].loops:
            lines.add("")
            lines.add(f"@pl.when({self._is_last()})")
            with lines.indent_below("def write():"):
                body = self._writer()
                self._finish_all(body, [self._program.phases[-1].result])
                self._store(body, out)

    def _writer(self) -> PallasBody:
        program, lines, names = self._program, self._lines, self._names
        return PallasBody(program, lines, names, self._order, self._refs, {})

    def _is_first(self, phase: StepPhase) -> str:
        if self._grid.is_merged:
            return f"step == {self._grid.starts[self._grid.looped.index(phase)]}"
        return self._all([(axis, 0) for axis in phase.loops])

    def _is_last(self) -> str:
        if self._grid.is_merged:
            return f"step == {self._grid.steps - 1}"
        loops = self._grid.looped[0].loops
        return self._all([(axis, self._program.axis(axis).count - 1) for axis in loops])

    def _all(self, places: Sequence[tuple[int, int]]) -> str:
        """Return the condition that loops are at these steps."""
        parts = [f"tid_{a} == {step}" for a, step in places if self._program.axis(a).count > 1]
        return parts[0] if len(parts) == 1 else " & ".join([f"({part})" for part in parts])

    def _phase(self, phase: StepPhase, number: int, out: str) -> None:
        """Write the steps of a phase with loops."""
        lines, grid = self._lines, self._grid
        if phase.totals:
            lines.add("")
            lines.add(f"@pl.when({self._is_first(phase)})")
            with lines.indent_below(f"def start_{number}():"):
                for total in phase.totals:
                    name = self._accumulators[total.number]
                    zero = neutral(total.fold.combine, dtype(total.fold.total_kind))
                    text = number_text(np.asarray(zero).item(), "jnp.inf", "jnp.nan")
                    lines.add(f"{name}[...] = jnp.full({name}.shape, {text}, {name}.dtype)")
        lines.add("")
        if not grid.is_merged:
            self._steps(phase, out)
            return
        low = grid.starts[grid.looped.index(phase)]
        high = low + self._program.steps(phase)
        parts = [f"step >= {low}"] if low else []
        parts += [f"step < {high}"] if high < grid.steps else []
        condition = parts[0] if len(parts) == 1 else f"({parts[0]}) & ({parts[1]})"
        lines.add(f"@pl.when({condition})")
        with lines.indent_below(f"def phase_{number}():"):
            for axis in phase.loops:
                if self._program.axis(axis).count > 1:
                    lines.add(f"tid_{axis} = {grid.tid(axis, [phase])}")
            self._steps(phase, out)

    def _steps(self, phase: StepPhase, out: str) -> None:
        """Write what one step of a phase adds to its totals, or stores."""
        lines, body = self._lines, self._writer()
        self._finish_all(body, roots_of(phase), {total.number for total in phase.totals})
        for total in phase.totals:
            name, is_scalar = self._accumulators[total.number], not self._sizes(total.axes)
            fold = body.fold(total.fold)
            fold = f"jnp.reshape({fold}, (1,))" if is_scalar else fold
            before = text = f"{name}[...]"
            if total.rescale is not None:
                rescale = body.along(total.rescale, total.axes)
                text = f"{before} * {rescale}"
            after = self._names.new(f"{identifier(total.fold.name)}_after")
            former = self._names.new(f"{identifier(total.fold.name)}_before")
            lines.add(f"{former} = {before}")
            text = text.replace(before, former)
            lines.add(f"{after} = {body.combined(total.fold.combine, text, fold)}")
            lines.add(f"{name}[...] = {after}")
            for state, stem in (("running", after), ("previous", former)):
                text = f"{stem}[0]" if is_scalar else stem
                body.totals[total.number, state] = self._round_text(text, total)
        if phase.result is not None:
            self._store(body, out)

    @staticmethod
    def _round_text(text: str, total: StepTotal) -> str:
        kind = total.fold.kind
        return text if kind == total.fold.total_kind else f"{text}.astype({jax_type(kind)})"

    def _finish_all(
        self, body: PallasBody, roots: Sequence[TileValue | None], own: set[int] | None = None
    ) -> None:
        """Write the results of earlier nests that values use after their loops."""
        needed = self._final_numbers([root for root in roots if root is not None], own or set())
        for phase in self._program.phases:
            for total in phase.totals:
                if total.number in needed:
                    is_scalar = not self._sizes(total.axes)
                    name = self._accumulators[total.number]
                    body.totals[total.number, "final"] = (
                        f"{name}[0]" if is_scalar else f"{name}[...]"
                    )
                    body.totals[total.number, "final"] = self._finish(body, total)

    def _final_numbers(self, roots: Sequence[TileValue], own: set[int]) -> set[int]:
        needed: set[int] = set()
        stack = list(roots)
        while stack:
            for value in in_order([stack.pop()]):
                number = getattr(value, "number", None)
                is_final = getattr(value, "state", "") == "final"
                if is_final and number is not None and number not in needed | own:
                    needed.add(number)
                    total = self._program.total(number)
                    stack += [factor for factor, _ in total.factors]
        return needed

    def _finish(self, body: PallasBody, total: StepTotal) -> str:
        """Write the result of a nest from its total."""
        name = body.assign(total.fold.name, body.finished(total))
        if total.fold.kind != total.fold.total_kind:
            name = body.assign(total.fold.name, body.cast(name, total.fold.kind))
        return name

    def _store(self, body: PallasBody, out: str) -> None:
        """Write the tile of the result."""
        result, axes = self._program.phases[-1].result, range(self._program.rank)
        assert result is not None
        text = body.along(result, axes)
        if body.active(result.axes) != body.active(axes):
            text = f"jnp.broadcast_to({text}, {tuple_text(self._sizes(axes))})"
        self._lines.add(f"{out}[...] = {text}")


def _loads(terms: Sequence[TileValue]) -> list[TileLoad]:
    return [value for value in in_order(terms) if isinstance(value, TileLoad)]
