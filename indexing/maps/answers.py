"""Answers: for each operand (or output) the maps that lead to it, or why there are none."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import indexing.methods as methods
from indexing.maps.arrays import Path as Path
from indexing.maps.indexing_map import IndexingMap
from simplifier.unknown import UndecidedError as UndecidedError
from simplifier.unknown import Unknown as Unknown

if TYPE_CHECKING:
    from hlo.modules.module import Instruction

Direction: TypeAlias = Literal["output-to-input", "input-to-output"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one output reads of each operand, or what one operand writes of each output.

    Attributes:
        instruction: what was asked about.
        direction: "output-to-input": maps go from elements of the output to elements of
            ``operands[i]``; "input-to-output": from elements of the input to elements of output i.
        domain_id: index of the array that the maps start from: a leaf of the result of
            `instruction` ("output-to-input", and epilogues), or one of its operands
            ("input-to-output").
        operands: the instructions that the maps lead to: operands or parameters, or the instruction
            itself once for each of its outputs.
        maps: for each of `operands`, its maps; ``()`` where nothing is read.
        paths: for each map, the leaf of a tuple-shaped operand that it reads or comes from.
        unknown: for each of `operands`, `None` or why its maps are not known.
    """

    instruction: Instruction
    direction: Direction
    domain_id: int
    operands: tuple[Instruction, ...]
    maps: tuple[tuple[IndexingMap, ...], ...]
    paths: tuple[tuple[Path, ...], ...]
    unknown: tuple[Unknown | None, ...]

    @property
    def number(self) -> int:
        """Deprecated name of `domain_id`."""
        message = "Answer.number is deprecated: use Answer.domain_id"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.domain_id

    def _repr_html_(self) -> str:
        return methods.answer_html(self)
