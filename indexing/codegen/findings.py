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
class Report:
    """The findings of all checks of one instruction."""

    instruction: Instruction
    findings: tuple[Finding, ...] = field(default_factory=tuple)

    @property
    def status(self) -> Status:
        """``wrong`` if a check failed, ``ok`` if at least one passed, otherwise ``skipped``."""
        statuses = [finding.status for finding in self.findings]
        if "wrong" in statuses:
            return "wrong"
        return "ok" if "ok" in statuses else "skipped"

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
