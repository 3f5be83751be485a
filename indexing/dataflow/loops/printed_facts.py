"""The facts about a loop that XLA prints in ``backend_config``.

Source: XLA ``xla/xla_data.proto``, ``WhileLoopBackendConfig``: ``known_trip_count``,
``known_induction_variable`` and ``known_init_step``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo.modules.module import Instruction
from hlo.ops.attributes import integer
from hlo.ops.config import find_entry, read_entry


@dataclass(frozen=True, slots=True)
class PrintedFacts:
    """The facts that the text of a loop states; None for each that it omits.

    Attributes:
        trip_count: the number of iterations.
        tuple_index: the element of the carried tuple that counts them.
        init, step: its first value and its change in each iteration.
    """

    trip_count: int | None
    tuple_index: int | None
    init: int | None
    step: int | None


def printed_facts(loop: Instruction) -> PrintedFacts:
    """Return the facts in the ``backend_config`` of a ``while``.

    Raises:
        HloError: a fact is not an integer.

    >>> import hlo, indexing.ops
    >>> loop = hlo.parse('''
    ... c { s = (s32[]) parameter(0) ROOT r = pred[] constant(false) }
    ... b { ROOT s = (s32[]) parameter(0) }
    ... ENTRY e { p = (s32[]) parameter(0) ROOT w = (s32[]) while(p), condition=c, body=b,
    ...   backend_config={"known_trip_count":{"n":"5"}} }''').entry.root
    >>> printed_facts(loop)
    PrintedFacts(trip_count=5, tuple_index=None, init=None, step=None)
    """
    return PrintedFacts(
        _number(loop, "known_trip_count.n"),
        _number(loop, "known_induction_variable.tuple_index"),
        _number(loop, "known_init_step.init"),
        _number(loop, "known_init_step.step"),
    )


def _number(loop: Instruction, name: str) -> int | None:
    config = loop.attributes.get("backend_config")
    if config is None or find_entry(config.span, name) is None:
        return None
    return read_entry(config.span, name, integer, f"`{name}` of `{loop.name}`")
