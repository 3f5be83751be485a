"""Verdicts on kernels: `KernelProved`, which alone is true, `KernelDiffers`, `KernelUndecided`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.maps.displayed import Displayed
from simplifier.unknown import Unknown

KernelLevel: TypeAlias = Literal["values", "reads"]


@dataclass(frozen=True, slots=True)
class KernelProved(Displayed):
    """Every output element is written as the instruction defines it, and no access is at fault.

    Attributes:
        level: what is proved: the values.
        premises: conditions on which the proof relies, such as "sums are reordered".

    >>> import indexing
    >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
    >>> verdict = indexing.check_kernel(kernel)
    >>> bool(verdict), verdict.level, verdict.premises
    (True, 'values', ())
    """

    level: KernelLevel = "values"
    premises: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        premises = f", if {'; '.join(self.premises)}" if self.premises else ""
        return f"proved at level {self.level}{premises}"


@dataclass(frozen=True, slots=True)
class KernelDiffers(Displayed):
    """A point of the kernel at which it is at fault.

    Attributes:
        what: the fault in words.
        block, thread, iteration: the values of the point's variables by name, such as ``bl_x``.
        element: the element of the buffer that is concerned.
        output: the number of the output leaf, if one is concerned.

    >>> from indexing.kernels import KernelDiffers
    >>> verdict = KernelDiffers("two threads write [3]", thread=(("th_x", 7),), element=(3,))
    >>> bool(verdict), str(verdict)
    (False, 'differs: two threads write [3]: element [3] at thread th_x = 7')
    """

    what: str
    block: tuple[tuple[str, int], ...] = ()
    thread: tuple[tuple[str, int], ...] = ()
    iteration: tuple[tuple[str, int], ...] = ()
    element: tuple[int, ...] | None = None
    output: int | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        names = ("block", self.block), ("thread", self.thread), ("iteration", self.iteration)
        places = [
            f"{name} {', '.join(f'{v} = {x}' for v, x in values)}"
            for name, values in names
            if values
        ]
        at = f": element {list(self.element)}" if self.element is not None else ""
        return f"differs: {self.what}{at}{' at ' * bool(places)}{', '.join(places)}"


@dataclass(frozen=True, slots=True)
class KernelUndecided(Unknown, Displayed):
    """No proof and no fault; `reason` says why.

    Attributes:
        level: "reads" if all accesses are proved, None if not even they are.

    >>> from indexing.kernels import KernelUndecided
    >>> verdict = KernelUndecided("`arith.foo` is not modelled", level="reads")
    >>> bool(verdict), verdict.level
    (False, 'reads')
    """

    level: KernelLevel | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"undecided: {self.reason}"


KernelVerdict: TypeAlias = KernelProved | KernelDiffers | KernelUndecided
