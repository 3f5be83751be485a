"""The tables of results that all modules of a process share."""

from __future__ import annotations

from typing import Any, Final

from hlo.memo import Memo
from hlo.modules import bind, instruction_checks
from indexing.dataflow import answering, edges, shaped_ops
from indexing.ops import base

OF_MAPS: Final[tuple[Memo[Any, Any], ...]] = (
    base._MAPS,
    edges._SHARED,
    answering._SHARED,
    shaped_ops._KNOWN,
)
OF_CHECKS: Final[tuple[Memo[Any, Any], ...]] = (
    bind._READ,
    instruction_checks._CHECKED,
    instruction_checks._VALID,
)


def forget(*tables: Memo[Any, Any]) -> None:
    """Empty tables."""
    for table in tables:
        table.clear()
