"""`check`: the block specifications of all Pallas calls of a function, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexing.devices.tpus import vmem_capacity
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.bounds import bounds_verdict
from indexing.pallas.calls import BlockSpecification, KernelCall
from indexing.pallas.coverage import coverage_verdict
from indexing.pallas.grid_orders import best_order
from indexing.pallas.races import hazard_verdict, race_verdict
from indexing.pallas.report import BlockReport, CallReport, PallasReport
from indexing.pallas.scalar_reads import scalar_bounds_verdict
from indexing.pallas.tracing import traced_calls
from indexing.pallas.traffic import BlockTransfers, transfers
from indexing.pallas.value_ranges import ValueRange
from indexing.pallas.visits import visits_verdict
from indexing.pallas.vmem import least_vmem_bytes, refused_block, vmem_bytes
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown


def check(
    f: Any,
    *args: Any,
    ranges: Mapping[str | int, ValueRange] | None = None,
    chip: str | None = None,
    vmem_limit: int | None = None,
) -> PallasReport:
    """Return what the block specifications of the Pallas calls of a function do.

    The function is traced, and nothing runs.

    Args:
        f: a function of JAX; its calls within jit, scan, while, cond and custom derivatives count.
        args: its arguments: arrays, or ``jax.ShapeDtypeStruct``, which may have symbolic sizes.
        ranges: the values of scalar-prefetch operands and of symbolic sizes, by their names in
            index maps: the first and the last, perhaps with a step.
        chip: a TPU, such as "v5e", whose VMEM is a limit.
        vmem_limit: bytes of VMEM that a call may need, if it states no limit itself.
    Raises:
        ImportError: jax is not installed.
        ValueError: a name in `ranges` is that of no scalar and of no size; the chip is not known.

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
    >>> report.faults
    ('copy_blocks: outputs: no step visits element (16, 0)',)
    """
    capacity = None if chip is None else vmem_capacity(chip)
    traced = traced_calls(f, args, ranges or {})
    calls = tuple([check_call(call, vmem_limit, capacity) for call in traced.calls])
    notes = [f"`{name}` has no blocks and is not checked" for name in traced.without_blocks]
    return PallasReport(calls, tuple(notes))


def check_call(
    call: KernelCall, vmem_limit: int | None = None, capacity: int | None = None
) -> CallReport:
    """Return the answers about one call.

    >>> from indexing.pallas.calls import BlockDimension, GridDimension
    >>> from simplifier.linear import as_expr, variable
    >>> rows = (as_expr(20),), "f32", 32, (BlockDimension("blocked", 8),)
    >>> index = (variable("d0", 0, 2),), (), "vmem"
    >>> operands = tuple(BlockSpecification("x", "", k, *rows, *index) for k in (False, True))
    >>> grid = (GridDimension("i", as_expr(3)),)
    >>> call = check_call(KernelCall("copy", "tpu", grid, (), frozenset(), (), operands))
    >>> call.outputs[0].bounds, call.outputs[0].overhang, call.bytes
    ('padded', (4,), 160)
    >>> report = PallasReport((call,))
    >>> report.faults
    ()
    """
    placed = [PlacedOperand.of(call, spec) for spec in call.operands]
    tables = [o if isinstance(o, Unknown) else BlockTable.of(o) for o in placed]
    reports = [_block_report(call, k, placed, tables[k]) for k in range(len(placed))]
    limits = [n for n in (call.vmem_limit or vmem_limit, capacity) if n is not None]
    vmem = vmem_bytes(call)
    return CallReport(
        call.name,
        call.target,
        tuple([d.size.constant if d.size.is_constant else str(d.size) for d in call.grid]),
        tuple([d.name for d in call.grid]),
        tuple([d.semantics for d in call.grid]),
        tuple(reports),
        _total_bytes(reports),
        None if isinstance(vmem, Unknown) else vmem,
        least_vmem_bytes(call),
        min(limits, default=None),
        best_order(call, tables),
        (f"VMEM: {vmem}",) if isinstance(vmem, Unknown) else (),
        _total_formula(reports),
    )


def _total_bytes(reports: Sequence[BlockReport]) -> int | None:
    """Return the bytes that all operands move; `None` if those of one are unknown."""
    known = [report.bytes for report in reports if report.bytes is not None]
    return sum(known) if len(known) == len(reports) else None


def _total_formula(reports: Sequence[BlockReport]) -> Expr | None:
    """Return the same in symbolic sizes; `None` without any."""
    every = [r.bytes_formula if r.bytes is None else as_expr(r.bytes) for r in reports]
    known = [formula for formula in every if formula is not None]
    if len(known) < len(every) or all(formula.is_constant for formula in known):
        return None
    return sum(known[1:], known[0])


def _block_report(
    call: KernelCall,
    number: int,
    placed: list[PlacedOperand | Unknown],
    table: BlockTable | Unknown,
) -> BlockReport:
    spec, operand = call.operands[number], placed[number]
    names = spec.origin, spec.source, spec.is_output, *_texts(spec)
    refused = refused_block(call, spec)
    if isinstance(operand, Unknown):
        own: dict[str, Any] = dict.fromkeys(("covered", "visits", "race"), "may")
        own["hazard"] = "may" if any(o == number for _, o in call.aliases) else False
        return BlockReport(
            *names,
            operand,
            operand,
            "may",
            refused=refused,
            notes=(operand.reason,),
            may_revisit=spec.may_revisit,
            placed=operand,
            **(own if spec.is_output else {}),
        )
    bounds, reads = bounds_verdict(operand), scalar_bounds_verdict(operand)
    traffic, missing = _traffic_fields(operand, table)
    fields, symbols, notes = _output_fields(operand, number, placed, table)
    notes = [bounds.reason, *missing, *notes]
    return BlockReport(
        *names,
        operand.elements,
        operand.starts,
        bounds.word,
        bounds.at,
        bounds.overhang,
        refused=refused,
        condition=bounds.condition,
        scalar_bounds=None if reads is None else reads.word,
        scalar_bounds_at=None if reads is None else reads.at,
        symbols=next((s for s in (bounds.symbols, *symbols) if s), ()),
        notes=tuple(dict.fromkeys([note for note in notes if note])),
        may_revisit=spec.may_revisit,
        placed=operand,
        **(traffic | fields),
    )


def _traffic_fields(
    operand: PlacedOperand, table: BlockTable | Unknown
) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers or formulas of the transfers of an operand, and reasons without them."""
    moves = transfers(operand, table)
    if isinstance(moves, Unknown):
        return {}, [str(moves)]
    if isinstance(moves, BlockTransfers):
        return {"fetches": moves.count, "bytes": moves.bytes}, []
    if isinstance(moves.bytes, Unknown):
        return {"fetches_formula": moves.count}, [str(moves.bytes)]
    return {"fetches_formula": moves.count, "bytes_formula": moves.bytes}, []


def _texts(spec: BlockSpecification) -> tuple[str, str]:
    """Return the block and the array as texts."""
    block = spec.block
    text = str(block) if isinstance(block, Unknown) else f"({', '.join(map(str, block))})"
    return text, f"{spec.element_type}[{','.join(map(str, spec.sizes))}]"


def _output_fields(
    operand: PlacedOperand,
    number: int,
    placed: list[PlacedOperand | Unknown],
    table: BlockTable | Unknown,
) -> tuple[dict[str, Any], list[tuple[tuple[str, int], ...]], list[str]]:
    """Return the answers about an output, the symbols at its faults, and reasons."""
    if not operand.spec.is_output:
        return {}, [], []
    call = operand.call
    coverage, visits = coverage_verdict(operand, table), visits_verdict(operand, table)
    race = race_verdict(operand, table)
    fields: dict[str, Any] = {
        "covered": coverage.covered,
        "hole": coverage.hole,
        "visits": visits.word,
        "visits_at": visits.at,
        "race": race.word,
        "race_at": race.at,
        "race_dimension": "" if race.dimension is None else call.grid[race.dimension].name,
    }
    symbols = [coverage.symbols, visits.symbols, race.symbols]
    notes = [coverage.reason, visits.reason, race.reason]
    sources = [placed[i] for i, o in call.aliases if o == number]
    fields |= {"hazard": False, "is_aliased": bool(sources)}
    for source in sources:
        if isinstance(source, Unknown):
            fields |= {"hazard": "may"}
            notes.append(source.reason)
            continue
        hazard = hazard_verdict(source, operand)
        fields |= {"hazard": hazard.word, "hazard_at": hazard.at}
        symbols.append(hazard.symbols)
        notes.append(hazard.reason)
    return fields, symbols, notes
