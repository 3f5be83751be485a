"""`LapackCall`: custom calls of LAPACK, as JAX emits them on CPU; `routine` registers them.

The last two dimensions of an operand are its matrices, which LAPACK takes column-major, one after
the other: a result reads only the matrix with its own indices in the batch.  In other layouts, the
calls are not understood.

Source: JAX ``jaxlib/cpu/lapack_kernels.h``, the handlers named ``.._ffi``; LAPACK's documentation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, NamedTuple

from hlo.modules.module import Instruction
from hlo.ops.op import custom_call
from hlo.shapes.shape import AnyShape, Shape, TupleShape
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import Grade, IndexingMap, dims, ranges
from indexing.ops.base import Maps, OperandMaps
from indexing.ops.custom_call import letter_setting
from indexing.ops.linear_algebra import precedes
from indexing.ops.targets.known_reads import KnownReads

_REAL: Final = {"s": "f32", "d": "f64"}
_COMPLEX: Final = {"c": "c64", "z": "c128"}
TYPES: Final = _REAL | _COMPLEX
"""The element type of each letter in the name of a target."""


class Read(NamedTuple):
    """A result of a call, and an operand.

    Attributes:
        instruction: the call.
        output: the number of the result.
        out: its shape.
        operands: the shapes of all operands.
        operand: the number of the operand.
    """

    instruction: Instruction
    output: int
    out: Shape
    operands: tuple[Shape, ...]
    operand: int

    @property
    def shape(self) -> Shape:
        """The shape of the operand."""
        return self.operands[self.operand]

    def letter(self, name: str) -> str:
        """Return a setting of the call."""
        return letter_setting(self.instruction, name)

    def own(self, rank: int = 2, grade: Grade = "exact") -> IndexingMap:
        """The map to the whole matrix with the same indices in the batch, or the whole vector."""
        d, s = dims(self.out), ranges(*self.shape.dims[self.shape.rank - rank :])
        batch = d[: self.shape.rank - rank]
        return IndexingMap.of(d, [*batch, *s], ranges=s, grade=grade)


class LapackCall(KnownReads):
    """A call of LAPACK on each matrix of a batch.

    Class attributes:
        arguments: for each operand, its dimensions after those of the batch, one letter for each
            size.  Further sizes: k is the least of m and n, and h is n − 1.
        outcomes: the same for each result.
        settings: the entries of ``backend_config`` that decide what is read, and their letters.
    """

    __slots__ = ()
    arguments: ClassVar[tuple[str, ...]] = ("mn",)
    outcomes: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[dict[str, str]] = {}

    def maps(self, instruction: Instruction, output: Path, operand: int) -> Maps | Unknown | None:
        shapes = [each.shape for each in instruction.operands]
        results = _results(instruction.shape)
        reason = self._why_not(instruction, shapes, results)
        if reason:
            text = f"it is not a call of {self.target} that is understood: {reason}"
            return Unknown(text, instruction)
        number = output[0] if output else 0
        operands = tuple([shape for shape in shapes if isinstance(shape, Shape)])
        out = results[number]
        assert isinstance(out, Shape)  # `_why_not`
        return _as_maps(self.reads(Read(instruction, number, out, operands, operand)))

    @abstractmethod
    def reads(self, read: Read) -> OperandMaps:
        """Return the maps from a result to an operand; the call is valid."""

    def _why_not(
        self, instruction: Instruction, shapes: Sequence[AnyShape], results: Sequence[AnyShape]
    ) -> str:
        """Return why the call is not understood; "" if it is."""
        if (len(shapes), len(results)) != (len(self.arguments), len(self.outcomes)):
            return f"it has {len(shapes)} operands and {len(results)} results"
        for name, letters in self.settings.items():
            letter = letter_setting(instruction, name)
            if letter not in letters or len(letter) != 1:
                return f"{name} is {letter!r}, expected one of {', '.join(letters)}"
        forms = self.forms(instruction)
        if not _fit(forms, [*shapes, *results]):
            return f"the operands are {', '.join(map(str, shapes))}, the result {instruction.shape}"
        constraints = self.operand_layout_constraints
        if len(constraints) != len(shapes):
            return "it has no operand_layout_constraints"
        for form, shape in zip(forms, [*constraints, *results], strict=True):
            if not isinstance(shape, Shape) or not _is_in_order(shape, len(form)):
                return f"the layout of {shape} is not that of LAPACK: matrices are column-major"
        return ""

    def forms(self, instruction: Instruction) -> tuple[str, ...]:
        """The dimensions of the operands and of the results."""
        return self.arguments + self.outcomes


def _results(shape: AnyShape) -> tuple[AnyShape, ...]:
    return shape.elements if isinstance(shape, TupleShape) else (shape,)


def _as_maps(maps: OperandMaps) -> Maps | Unknown:
    return (maps,) if isinstance(maps, IndexingMap) else maps


def _fit(forms: Sequence[str], shapes: Sequence[AnyShape]) -> bool:
    """Return True if shapes have the dimensions of these forms, after those of one batch."""
    sizes: dict[str, int] = {}
    first = shapes[0]
    for form, shape in zip(forms, shapes, strict=True):
        if (
            not isinstance(shape, Shape)
            or not isinstance(first, Shape)
            or min(shape.dims, default=0) < 0
        ):
            return False
        batch = shape.dims[: shape.rank - len(form)]
        if shape.rank < len(form) or batch != first.dims[: first.rank - len(forms[0])]:
            return False
        for letter, size in zip(form, shape.dims[len(batch) :], strict=True):
            if "m" in sizes and "n" in sizes:
                sizes["k"] = min(sizes["m"], sizes["n"])
            if "n" in sizes:
                sizes["h"] = sizes["n"] - 1
            if sizes.setdefault(letter, size) != size:
                return False
    return True


def _is_in_order(shape: Shape, rank: int) -> bool:
    """Return True if arrays of one batch index follow each other, and matrices are column-major."""
    minor_to_major = shape.layout_or_default.minor_to_major
    own = list(range(shape.rank - rank, shape.rank))
    wanted = [*(own if rank == 2 else reversed(own)), *reversed(range(shape.rank - rank))]
    large = [k for k in minor_to_major if shape.dims[k] != 1]
    return large == [k for k in wanted if shape.dims[k] != 1]


def other_triangle(out: Shape, *, lower: bool) -> Maps:
    """The identity in the triangle that a routine does not use."""
    if out.dims[-1] < 2:
        return ()
    d = dims(out)
    i, j = d[-2:] if lower else d[:-3:-1]
    return (IndexingMap.of(d, d, constraints=[precedes(i, j, 1)]),)


def routine(
    name: str, letters: str, results: str, operands: str, config: str = ""
) -> Callable[[type[LapackCall]], type[LapackCall]]:
    """Register a class for ``lapack_<letter><name>_ffi``, with one sample; a decorator.

    Args:
        letters: the type letters.
        results: the shapes of the results in the sample; T is the type of the letter, and R its
            real type.
        operands: the shapes of the operands.
        config: the entries of ``backend_config``.
    """

    def register(cls: type[LapackCall]) -> type[LapackCall]:
        for letter in letters:
            target = f"lapack_{letter}{name}_ffi"
            real = "f32" if letter in "sc" else "f64"
            wide = "c64" if letter in "sc" else "c128"
            given = operands.replace("T", TYPES[letter])
            typed = results.replace("T", TYPES[letter]).replace("R", real).replace("C", wide)
            named = [f"{shape} p{k}" for k, shape in enumerate(given.split("; "))]
            sample = (
                f"{typed} "
                f"custom-call({', '.join(named)}), "
                f"operand_layout_constraints={{{given.replace('; ', ', ')}}}, "
                f'custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI, '
                f"backend_config={{{config}}}"
            )
            members = {"__doc__": cls.__doc__, "__module__": cls.__module__}
            own = type(f"{letter}{name}".capitalize(), (cls,), members)
            custom_call(target, samples=[sample])(own)
        return cls

    return register
