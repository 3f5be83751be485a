"""`RuntimeVariable`: a value that only the running program knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hlo.modules.module import Instruction
from indexing.maps.arrays import ArrayName, ArrayRef
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Affine, Expr, as_expr


@dataclass(frozen=True, slots=True, init=False)
class RuntimeVariable:
    """A value that is known only when the program runs: one element of an instruction's value.

    Attributes:
        variable: its name, and the bounds it has in the map's domain.
        array: the array that it is an element of; `None` for a symbolic size, or if unknown.
        index: which element of the source, as expressions over the variables of the map that the
            runtime variable belongs to; ``()`` for a scalar.
        clamp: the inclusive bounds that the operation forces on the value before it uses it (start
            indices of dynamic-slice, dynamic-update-slice and gather), or `None`.
    """

    variable: Variable
    array: ArrayRef | ArrayName | None
    index: tuple[Expr, ...]
    clamp: Interval | None

    def __init__(
        self,
        variable: Variable,
        array: ArrayRef | ArrayName | Instruction | str | int | None = None,
        index: tuple[Expr, ...] = (),
        clamp: Interval | None = None,
        calls: tuple[str, ...] = (),
    ) -> None:
        if isinstance(array, Instruction):
            array = ArrayRef(array)
        elif isinstance(array, str | int):
            array = ArrayName(array, (), calls)
        set_field = object.__setattr__
        set_field(self, "variable", variable)
        set_field(self, "array", array)
        set_field(self, "index", index)
        set_field(self, "clamp", clamp)

    @classmethod
    def start(
        cls, number: int, size: int, window: int, source: int, index: Iterable[Affine] = ()
    ) -> RuntimeVariable:
        """Runtime variable ``rt<number>``, a start index clamped to ``[0, size − window]``."""
        bounds = 0, size - window
        where = tuple([as_expr(i) for i in index])
        return cls(Variable(f"rt{number}", *bounds), source, where, bounds)

    def __reduce__(self) -> tuple[type[RuntimeVariable], tuple[object, ...]]:
        """Instructions are pickled as their names: a map that is loaded belongs to no module."""
        named = self.variable, self.source_name, self.index, self.clamp, self.call_names
        return RuntimeVariable, named

    def __copy__(self) -> RuntimeVariable:
        return self

    def __deepcopy__(self, memo: object) -> RuntimeVariable:
        return self

    @property
    def name(self) -> str:
        """``rt0``, …"""
        return self.variable.name

    @property
    def source(self) -> Instruction | str | int | None:
        """The instruction whose value it is.

        In the answer of an op, which knows no instructions, the number of the operand; in a map
        read from JSON, a name.
        """
        return None if self.array is None else self.array.instruction

    @property
    def calls(self) -> tuple[Instruction | str, ...]:
        """The calls through which the computation of `source` is reached, outermost first."""
        return () if self.array is None else self.array.calls

    @property
    def source_name(self) -> str | int | None:
        """The name of the source; its number in the answer of an op."""
        return _name(self.source) if self.source is not None else None

    @property
    def call_names(self) -> tuple[str, ...]:
        """The names of `calls`."""
        return tuple([str(_name(call)) for call in self.calls])

    @property
    def is_size(self) -> bool:
        """It is a symbolic size: without a source, and with a name that is more than a number.

        The same name means the same value in every map; see `indexing.maps.symbolic`.
        """
        return self.array is None and not self.name.removeprefix("rt").isdecimal()

    @property
    def is_fixed(self) -> bool:
        """The operation forces one value on it, whatever its source holds.

        Where only the domain leaves it one value, that says something of the source, or of a size.
        """
        return self.clamp is not None and self.clamp[0] == self.clamp[1]

    @property
    def expr(self) -> Expr:
        """The value, for use in the results of a map."""
        return self.variable.as_expr()

    def substituted(
        self, swap: Callable[[Expr], Expr], variable: Variable | None = None
    ) -> RuntimeVariable:
        """The same value in a map with other variables, and under the name of `variable`."""
        index = tuple(map(swap, self.index))
        return RuntimeVariable(variable or self.variable, self.array, index, self.clamp)


def _name(instruction: Instruction | str | int) -> str | int:
    return instruction if isinstance(instruction, str | int) else instruction.name
