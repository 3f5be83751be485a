"""The findings of the checks of one instruction, and their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hlo.modules.module import Instruction

Status: TypeAlias = Literal["ok", "wrong", "skipped"]
Outcome: TypeAlias = Literal["ok", "wrong", "skipped", "not observed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of one output.

    Attributes:
        check: the name of the check: ``numpy``, ``loops``, ``poke``, ..
        status: ``ok``, ``wrong``, ``skipped``, or ``not observed``: no poke showed a read of an
            exact map, which does not prove that the map is wrong.
        details: for ``wrong``, the location and both values; for ``skipped``, the reasons; for
            ``not observed``, the elements.
    """

    check: str
    status: Outcome
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tightness:
    """Numbers of claimed reads of an array by an output of a fusion, and of those shown.

    Attributes:
        output: the number of the output.
        operand: the number of the operand.
        path: the leaf of a tuple, ``()`` for an array.
        shown: the reads of which some values changed the output.
        claimed: the reads that were tried: all reads by the maps, or a sample.
        is_sample: True for a sample.
        is_exact: False if a map of the grade "may" leads to the array, reads are unknown, or none
            of the sample is a read.
    """

    output: int
    operand: int
    path: tuple[int, ...]
    shown: int
    claimed: int
    is_sample: bool
    is_exact: bool

    @property
    def is_tight(self) -> bool:
        """True if executions showed all claimed reads that were tried."""
        return self.is_exact and self.shown == self.claimed


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of all checks of one instruction.

    Attributes:
        instruction: the instruction.
        findings: the findings.
        tightness: for each output and operand array of a fusion whose reads were observed.
    """

    instruction: Instruction
    findings: tuple[Finding, ...] = field(default_factory=tuple)
    tightness: tuple[Tightness, ...] = ()

    @property
    def status(self) -> Status:
        """``wrong`` if a check failed, ``ok`` if at least one passed, otherwise ``skipped``."""
        statuses = [finding.status for finding in self.findings]
        if "wrong" in statuses:
            return "wrong"
        return "ok" if "ok" in statuses else "skipped"

    @property
    def is_tight(self) -> bool:
        """True if no check failed, and executions showed all claimed reads that were tried."""
        is_known = bool(self.tightness) and self.status == "ok"
        return is_known and all(each.is_tight for each in self.tightness)

    @property
    def checks(self) -> str:
        """The names of the checks that passed, without duplicates."""
        return ", ".join(dict.fromkeys([f.check for f in self.findings if f.status == "ok"]))

    @property
    def not_observed(self) -> tuple[str, ...]:
        """Reads of exact maps that no poke showed."""
        findings = [finding for finding in self.findings if finding.status == "not observed"]
        return tuple(dict.fromkeys([text for finding in findings for text in finding.details]))


def claim_text(at: Sequence[int], operand: str, element: Sequence[int]) -> str:
    """Return what an exact map states about an output element and an element of an operand.

    >>> claim_text([3], "p", [2])
    'an exact map claims that output element [3] needs p at [2]'
    """
    return f"an exact map claims that output element {list(at)} needs {operand} at {list(element)}"
