"""The table and the JSON of the collectives of a program: bytes sent, and the fewest needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hlo.modules.module import Instruction, Module
from indexing.sharding.partition.collective_costs import CollectiveCost, collective_costs
from indexing.sharding.partition.needed_exchanges import needed_exchanges
from indexing.views.tables import align_columns
from simplifier.unknown import Unknown

COLLECTIVE_COLUMNS: Final = ("sent", "least", "devices", "executions", "collective")
"""The columns of the table: bytes of one execution, on the device that sends most."""


def counted_collectives(
    module: Module,
) -> tuple[Sequence[CollectiveCost], Mapping[Instruction, int | Unknown]]:
    """Return the costs of the collectives of a program, and the fewest bytes that they need."""
    return collective_costs(module), needed_exchanges(module)


def collective_lines(module: Module) -> Iterator[str]:
    """Yield a row for each collective, and the reasons of unknown figures.

    >>> import hlo
    >>> module = hlo.parse('''HloModule m, num_partitions=4
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[8,6] parameter(0)  s = f32[8,6] all-reduce(p), channel_id=1,
    ...     replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
    ...   i = u32[] partition-id()  two = u32[] constant(2)  o = u32[] multiply(i, two)
    ...   z = u32[] constant(0)
    ...   ROOT r = f32[2,6] dynamic-slice(s, o, z), dynamic_slice_sizes={2,6} }''')
    >>> print(*collective_lines(module), sep="\\n")
    sent  least  devices  executions  collective
     288    144        4           1  all-reduce e/s
    """
    costs, needed = counted_collectives(module)
    if not costs:
        yield "no collectives"
        return
    cells = [list(COLLECTIVE_COLUMNS)]
    reasons: dict[str, None] = {}
    for cost in costs:
        least = needed.get(cost.instruction)
        for figure in (cost.bytes_sent, least):
            if isinstance(figure, Unknown):
                reasons[figure.reason] = None
        name = f"{cost.kind} {cost.instruction.computation.name}/{cost.instruction.name}"
        figures = [_figure(cost.bytes_sent), _figure(least), str(cost.group_size)]
        cells.append([*figures, str(cost.executions), name])
    yield from align_columns(cells, right=range(len(COLLECTIVE_COLUMNS) - 1))
    yield from [f"? {reason}" for reason in reasons]


def collective_records(module: Module) -> list[dict[str, Any]]:
    """Return the figures of each collective as values for JSON."""
    costs, needed = counted_collectives(module)
    return [
        {
            "computation": cost.instruction.computation.name,
            "instruction": cost.instruction.name,
            "kind": cost.kind,
            "devices": cost.group_size,
            "executions": cost.executions.number,
            "sent": _number_or_none(cost.bytes_sent),
            "least": _number_or_none(needed.get(cost.instruction)),
        }
        for cost in costs
    ]


def _figure(number: int | Unknown | None) -> str:
    return "" if number is None else "?" if isinstance(number, Unknown) else f"{number:,}"


def _number_or_none(number: int | Unknown | None) -> int | None:
    return None if isinstance(number, Unknown) else number
