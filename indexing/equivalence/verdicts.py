"""Verdicts of a comparison of two programs: `Proved`, `Differs` or `Undecided`.

Only `Proved` is truthy.  The programs are called *before* and *after*, as around a compiler pass.

>>> bool(Proved("values", {"x * 1 = x": 2})), bool(Undecided("`topk` has no formula"))
(True, False)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from indexing.execution.values import Array
from indexing.maps.displayed import Displayed
from simplifier.unknown import Unknown

Level: TypeAlias = Literal["reads", "counts", "values", "numbers"]

Word: TypeAlias = Literal[
    "equal to the last bit",
    "equal over the reals",
    "equal counts",
    "equal reads",
    "fewer reads",
    "differs by rounding",
    "differs",
    "undecided",
]

ElementIndex: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FewerReads:
    """An element that the program before reads and the program after does not.

    Attributes:
        output: number of the output leaf.
        element: index of the output element.
        parameter: number of the parameter leaf.
        parameter_element: the element that only the program before reads.

    >>> from indexing.equivalence import FewerReads, Proved
    >>> read = FewerReads(output=0, element=(1, 2), parameter=1, parameter_element=(1, 2))
    >>> print(Proved("reads", fewer_reads=(read,)))
    proved at level reads; the program after reads less
    """

    output: int
    element: ElementIndex
    parameter: int
    parameter_element: ElementIndex


@dataclass(frozen=True, slots=True)
class Proved(Displayed):
    """Both programs are the same at `level`.

    A program after that reads less than the program before is no fault by itself: what it no
    longer reads may have had no influence, for example the branch of a `select` that is never
    chosen.  At level "reads" such a pair is proved with `fewer_reads`: every read of the program
    after is a read of the program before, and no influence of a dropped read was observed.

    Attributes:
        level: what was compared.
        laws: number of uses of each algebraic law, by name.
        fewer_reads: where the program after reads less, at most one entry for each pair of output
            and parameter; empty if both read the same.
        note: how the programs were compared, or a restriction of the proof; else "".

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[4] parameter(0)  a = f32[4] OP(p)  ROOT b = f32[4] OP(a) }"
    >>> a, b = [hlo.parse(text.replace("OP", op)) for op in ("negate", "copy")]
    >>> verdict = indexing.equivalent(a, b)
    >>> verdict.word, bool(verdict), verdict.level
    ('equal to the last bit', True, 'values')
    """

    level: Level
    laws: Mapping[str, int] = field(default_factory=dict)
    fewer_reads: tuple[FewerReads, ...] = ()
    note: str = ""

    @property
    def word(self) -> Word:
        """The proof in words.

        At level values, "equal to the last bit" if no law was used that is inexact for floats, else
        "equal over the reals"; "fewer reads" if the program after reads less.
        """
        if self.level == "values":
            return "equal over the reals" if self.laws else "equal to the last bit"
        if self.fewer_reads:
            return "fewer reads"
        return "equal counts" if self.level == "counts" else "equal reads"

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        laws = ", ".join(f"{name} ({count})" for name, count in self.laws.items())
        text = f"proved at level {self.level}"
        if self.fewer_reads:
            text += "; the program after reads less"
        return text + (f", with the laws {laws}" if laws else "")


@dataclass(frozen=True, slots=True)
class Differs(Displayed):
    """An output element at which executions of both programs differ, or an output of another shape.

    Attributes:
        output: number of the output leaf.
        element: index of the output element; () if shapes differ.
        reason: the difference in words.
        level: the level whose comparison led to the witness.
        before: value of the output element in the program before, as text.
        after: the same for the program after.
        parameter: number of the parameter leaf whose element only one program reads, or None.
        parameter_element: that element, or None.
        reads_before: elements of the parameter that the program before reads for `element`.
        reads_after: the same for the program after.
        chain_before: the chain of reads from the output to the parameter, instruction by
            instruction, in the program before; the element at the parameter if it is reached.
        chain_after: the same for the program after.
        reads_are_complete: both programs read no other elements of the parameter.
        note: how the programs were compared, or "".
        equal_outputs: numbers of the outputs with equal formulas.
        by_rounding: executions in f64 agree: the values differ by roundings to a narrower type.
        inputs: the inputs of the execution that shows it, for each device: an array for each leaf
            of the parameters of the program before.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[2,3] parameter(0)  ROOT r = f32[2,3] reverse(p), dimensions={1} }"
    >>> other = hlo.parse(text.replace("dimensions={1}", "dimensions={0}"))
    >>> verdict = indexing.equivalent(hlo.parse(text), other)
    >>> verdict.word, bool(verdict), verdict.output, verdict.element
    ('differs', False, 0, (1, 0))
    >>> verdict.reads_before, verdict.reads_after
    (((1, 2),), ((0, 0),))
    """

    output: int
    element: ElementIndex
    reason: str
    level: Level = "numbers"
    before: str = ""
    after: str = ""
    parameter: int | None = None
    parameter_element: ElementIndex | None = None
    reads_before: tuple[ElementIndex, ...] = ()
    reads_after: tuple[ElementIndex, ...] = ()
    chain_before: tuple[str, ...] = ()
    chain_after: tuple[str, ...] = ()
    reads_are_complete: bool = True
    note: str = ""
    equal_outputs: tuple[int, ...] = ()
    by_rounding: bool = False
    inputs: tuple[tuple[Array, ...], ...] = field(default=(), repr=False, compare=False)

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return "differs by rounding" if self.by_rounding else "differs"

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        at = f" at {list(self.element)}" if self.before or self.element else ""
        return f"output {self.output} {self.word}{at}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Undecided(Unknown, Displayed):
    """An undecided comparison; in contrast to other `Unknown` answers it is falsy.

    Attributes:
        level: the strongest level that is proved nevertheless, or None.
        laws: laws used before the comparison ended.
        terms: the smallest pair of subterms that is not proved equal, before and after, as text.
        output: number of the output leaf with these subterms, or None.
        note: how the programs were compared, or "".
        equal_outputs: numbers of the outputs with equal formulas.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] custom-call(p), %s }"
    >>> a, b = [hlo.parse(text % f'custom_call_target="{name}"') for name in ("mine", "yours")]
    >>> verdict = indexing.equivalent(a, b)
    >>> verdict.word, bool(verdict)
    ('undecided', False)
    >>> verdict.reason.partition(" (")[0]
    'the formulas differ: `custom-call` has custom_call_target mine before, yours after'
    """

    level: Level | None = None
    laws: Mapping[str, int] = field(default_factory=dict)
    terms: tuple[str, str] | None = None
    output: int | None = None
    note: str = ""
    equal_outputs: tuple[int, ...] = ()

    @property
    def word(self) -> Word:
        """The verdict in words."""
        return "undecided"

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"undecided: {self.reason}"


Verdict: TypeAlias = Proved | Differs | Undecided
