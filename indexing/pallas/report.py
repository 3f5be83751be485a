"""The answers about Pallas calls: a report of calls, each with its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import indexing.methods as methods
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.bounds import ArrayIndex, BoundsWord, GridPoint
from indexing.pallas.grid_orders import GridOrder
from indexing.pallas.races import Meeting
from indexing.pallas.visits import VisitsWord
from simplifier.linear import Expr
from simplifier.unknown import Unknown

Truth = bool | Literal["may"] | None
"""True, False, "may", or `None` where the question does not apply."""


@dataclass(frozen=True, slots=True)
class BlockReport:
    """The answers about the blocks of one operand of a call.

    Attributes:
        origin: JAX's name of the operand, such as ``args[0]`` or ``outputs``.
        source: the function and the line of its index map.
        is_output: True for an output.
        block, sizes: the block and the array, as texts.
        map: the map from the grid to the elements of the array in the block; `Unknown` without a
            formula.
        start: the map from the grid to the first element of the block.
        bounds: "inside", "padded", "out" or "may".
        bounds_at: the first grid point whose block is out, and its first element that is out.
        overhang: for each dimension, the largest number of elements outside the array.
        fetches: the number of copies in, or of writes back of an output; `None` if unknown.
        bytes: their bytes.
        fetches_formula, bytes_formula: the same in symbolic sizes and dynamic grids, for all of
            their values; `None` if the numbers are known, or if no formula is.
        covered: of an output, True if each element is in a block; "may" if that depends on scalars.
        hole: the first element that is in no block; `None` if it depends on scalars.
        visits: of an output, "once", "consecutive", "apart", "overlap" or "may".
        visits_at: two steps for "apart" and "overlap".
        race: of an output, True if steps that differ in a parallel dimension write one element.
        race_at: the two steps, and the element.
        hazard: of an output that aliases an input, True if a step reads what another has written.
        hazard_at: the step that writes, the step that reads, and the element.
        refused: why Mosaic refuses the block, or "".
        condition: for bounds "may", what scalars must satisfy.
        scalar_bounds: whether the index map reads scalars within their array.
        scalar_bounds_at: a grid point, and the element of the scalar array that is out.
        symbols: the smallest symbolic sizes with a fault.
        notes: reasons and conditions.
        may_revisit: True if the specification allows visits apart.
        placed: the operand with its maps, for pictures.
        is_aliased: True if an output has the buffer of an input: a hole keeps the input's values.

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental import pallas as pl
    >>> import indexing
    >>> def copy_blocks(x_ref, out_ref):
    ...     out_ref[...] = x_ref[...]
    >>> def copy(x):
    ...     block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    ...     call = pl.pallas_call(copy_blocks, x, grid=2, in_specs=[block], out_specs=block)
    ...     return call(x)
    >>> report = indexing.pallas.check(copy, jax.ShapeDtypeStruct((20, 128), jnp.float32))
    >>> (block,) = report.calls[0].outputs
    >>> block.origin, block.bounds, block.visits, block.covered, block.hole
    ('outputs', 'inside', 'once', False, (16, 0))
    >>> block.faults, block.is_undecided
    (('no step visits element (16, 0)',), False)
    """

    origin: str
    source: str
    is_output: bool
    block: str
    sizes: str
    map: IndexingMap | Unknown
    start: IndexingMap | Unknown
    bounds: BoundsWord
    bounds_at: tuple[GridPoint, ArrayIndex] | None = None
    overhang: tuple[int, ...] = ()
    fetches: int | None = None
    bytes: int | None = None
    covered: Truth = None
    hole: ArrayIndex | None = None
    visits: VisitsWord | None = None
    visits_at: tuple[GridPoint, GridPoint] | None = None
    race: Truth = None
    race_at: Meeting | None = None
    race_dimension: str = ""
    hazard: Truth = None
    hazard_at: Meeting | None = None
    refused: str = ""
    condition: str = ""
    scalar_bounds: BoundsWord | None = None
    scalar_bounds_at: tuple[GridPoint, ArrayIndex] | None = None
    symbols: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    may_revisit: bool = False
    is_aliased: bool = False
    placed: PlacedOperand | Unknown | None = field(default=None, repr=False, compare=False)
    fetches_formula: Expr | None = None
    bytes_formula: Expr | None = None

    def plot(
        self,
        step: Sequence[int] | None = None,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture: how many steps have each block; holes and doubles have other shades.

        Args:
            step: a point of the grid, whose block a second panel shows.
            backend, theme: as in `Answer.plot`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: `step` is not in the grid.

        >>> import jax, jax.numpy as jnp
        >>> from jax.experimental import pallas as pl
        >>> import indexing
        >>> def fill_blocks(out_ref):
        ...     out_ref[...] = jnp.zeros_like(out_ref)
        >>> def fill():
        ...     shape, block = jax.ShapeDtypeStruct((16,), "f4"), pl.BlockSpec((8,), lambda i: i)
        ...     return pl.pallas_call(fill_blocks, shape, grid=2, out_specs=block)()
        >>> indexing.pallas.check(fill).calls[0].outputs[0].plot(step=(1,))
        <drawing of 'blocks (8) of outputs f32[16]'>
        """
        return methods.plot_operand_blocks(self, step, backend, theme)

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults, in words with their witnesses."""
        return (*self._block_faults(), *self._step_faults())

    def _block_faults(self) -> Iterator[str]:
        if self.bounds == "out" and self.bounds_at is not None:
            step, element = self.bounds_at
            yield f"the block of step {step} is out of the array at element {element}"
        if self.scalar_bounds == "out" and self.scalar_bounds_at is not None:
            step, element = self.scalar_bounds_at
            yield f"step {step} reads element {element}, outside of a scalar array"
        if self.covered is False and not self.is_aliased:
            if self.hole is None:
                yield "the blocks of all steps have fewer elements than the array"
            else:
                yield f"no step visits element {self.hole}"

    def _step_faults(self) -> Iterator[str]:
        if self.visits == "apart" and not self.may_revisit and self.visits_at is not None:
            first, second = self.visits_at
            yield f"steps {first} and {second} visit one block, with others in between"
        if self.visits == "overlap" and self.visits_at is not None:
            first, second = self.visits_at
            yield f"the blocks of steps {first} and {second} overlap"
        if self.race is True and self.race_at is not None:
            first, second, element = self.race_at
            yield f"steps {first} and {second} write element {element} in parallel"
        if self.hazard is True and self.hazard_at is not None:
            writer, reader, element = self.hazard_at
            yield f"step {reader} reads element {element}, which step {writer} has written"

    @property
    def is_undecided(self) -> bool:
        """True if an answer is "may"."""
        answers = (self.bounds, self.covered, self.visits, self.race, self.hazard)
        return "may" in (*answers, self.scalar_bounds)


@dataclass(frozen=True, slots=True, repr=False)
class CallReport(Displayed):
    """The answers about one ``pallas_call``.

    Attributes:
        name: the name of the kernel.
        target: "tpu" or "gpu".
        grid: the sizes of the grid: integers, or texts of symbolic and dynamic sizes.
        dimensions: the names of its dimensions in index maps.
        semantics: the semantics of its dimensions.
        operands: inputs, then outputs.
        bytes: the bytes that the pipeline moves; `None` if unknown.
        bytes_formula: the same in symbolic sizes; `None` if the number is known, or no formula is.
        vmem_bytes: the bytes of VMEM that blocks and scratch need at most; `None` if unknown.
        least_vmem_bytes: the bytes that they need at least: one buffer each, without padding.
        vmem_limit: the limit that was given, or that the call states; `None` without one.
        best_order: the order of the grid that moves fewest bytes; `None` without one.
        notes: what is not known.

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental import pallas as pl
    >>> import indexing
    >>> def copy_blocks(x_ref, out_ref):
    ...     out_ref[...] = x_ref[...]
    >>> def copy(x):
    ...     block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    ...     call = pl.pallas_call(copy_blocks, x, grid=2, in_specs=[block], out_specs=block)
    ...     return call(x)
    >>> report = indexing.pallas.check(copy, jax.ShapeDtypeStruct((20, 128), jnp.float32))
    >>> (call,) = report.calls
    >>> call.name, call.grid, call.bytes, call.vmem_bytes
    ('copy_blocks', (2,), 16384, 16384)
    >>> call.faults, call.warnings, call.fits, call.is_undecided
    (('outputs: no step visits element (16, 0)',), (), None, False)
    >>> [each.origin for each in call.inputs], [each.origin for each in call.outputs]
    (['args[0]'], ['outputs'])
    >>> call.plot(step=(1,))
    <drawing of 'copy_blocks: step (1,) of the grid (i < 2)'>
    """

    name: str
    target: str
    grid: tuple[int | str, ...]
    dimensions: tuple[str, ...]
    semantics: tuple[str, ...]
    operands: tuple[BlockReport, ...]
    bytes: int | None
    vmem_bytes: int | None
    least_vmem_bytes: int = 0
    vmem_limit: int | None = None
    best_order: GridOrder | Unknown | None = None
    notes: tuple[str, ...] = ()
    bytes_formula: Expr | None = None

    def __str__(self) -> str:
        return methods.pallas_text(self)

    def __repr__(self) -> str:
        return f"<Pallas call {self.name!r}: {_count(self.faults)}>"

    def plot(
        self,
        step: Sequence[int] | None = None,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
    ) -> Any:
        """Return a picture: how many steps have each block of each operand.

        Args:
            step: a point of the grid: show only the blocks that it reads and writes.
            backend, theme: as in `Answer.plot`.
        Raises:
            ImportError: matplotlib is not installed.
            ValueError: `step` is not in the grid.
        """
        return methods.plot_call_blocks(self, step, backend, theme)

    @property
    def inputs(self) -> tuple[BlockReport, ...]:
        """The inputs."""
        return tuple([o for o in self.operands if not o.is_output])

    @property
    def outputs(self) -> tuple[BlockReport, ...]:
        """The outputs."""
        return tuple([o for o in self.operands if o.is_output])

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults of all operands, with their names, and that of VMEM."""
        faults = [f"{o.origin}: {fault}" for o in self.operands for fault in o.faults]
        if self.fits is False:
            faults.append(f"VMEM: at least {self.least_vmem_bytes:,} bytes{self._over_limit}")
        return tuple(faults)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Blocks that Mosaic refuses, and VMEM that may not suffice."""
        warnings = [f"{o.origin}: Mosaic refuses: {o.refused}" for o in self.operands if o.refused]
        if self.fits == "may":
            warnings.append(f"VMEM: up to {self.vmem_bytes:,} bytes{self._over_limit}")
        return tuple(warnings)

    @property
    def _over_limit(self) -> str:
        return f", more than the limit of {self.vmem_limit:,}"

    @property
    def fits(self) -> Truth:
        """True if the blocks fit into the limit of VMEM, "may" if only without padding."""
        if self.vmem_limit is None or self.vmem_bytes is None:
            return None
        if self.vmem_bytes <= self.vmem_limit:
            return True
        return False if self.least_vmem_bytes > self.vmem_limit else "may"

    @property
    def is_undecided(self) -> bool:
        """True if an answer is "may"."""
        return any(o.is_undecided for o in self.operands)


@dataclass(frozen=True, slots=True, repr=False)
class PallasReport(Displayed):
    """The answers about all Pallas calls of a function, in program order.

    Attributes:
        calls: the calls.
        notes: primitives of Pallas without blocks, which are not checked.

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental import pallas as pl
    >>> import indexing
    >>> def copy_blocks(x_ref, out_ref):
    ...     out_ref[...] = x_ref[...]
    >>> def copy(x):
    ...     block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    ...     call = pl.pallas_call(copy_blocks, x, grid=2, in_specs=[block], out_specs=block)
    ...     return call(x)
    >>> report = indexing.pallas.check(copy, jax.ShapeDtypeStruct((20, 128), jnp.float32))
    >>> len(report.calls), report.faults
    (1, ('copy_blocks: outputs: no step visits element (16, 0)',))
    >>> report.warnings, report.is_undecided
    ((), False)
    """

    calls: tuple[CallReport, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return methods.pallas_text(self)

    def __repr__(self) -> str:
        return f"<Pallas calls {[call.name for call in self.calls]}: {_count(self.faults)}>"

    def __len__(self) -> int:
        return len(self.calls)

    def __getitem__(self, number: int) -> CallReport:
        return self.calls[number]

    def __iter__(self) -> Iterator[CallReport]:
        return iter(self.calls)

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults of all calls, with their names."""
        return tuple([f"{call.name}: {fault}" for call in self.calls for fault in call.faults])

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all calls, with their names."""
        return tuple([f"{call.name}: {each}" for call in self.calls for each in call.warnings])

    @property
    def is_undecided(self) -> bool:
        """True if an answer is "may"."""
        return any(call.is_undecided for call in self.calls)


def _count(faults: Sequence[str]) -> str:
    return f"{len(faults)} fault{'' if len(faults) == 1 else 's'}"
