"""`RuntimeVariable`: a value that is known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hlo.arguments import check_argument, checked
from hlo.modules.module import Instruction
from indexing.maps.arrays import ArrayName, ArrayRef, leaf_name
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Affine, Expr, as_expr


@dataclass(frozen=True, slots=True, init=False)
class RuntimeVariable:
    """A value that is known only at run time: one element of an instruction's value.

    Attributes:
        variable: the name, and the bounds in the map's domain.
        array: the source array; `None` for a symbolic size, or if unknown.
        index: the index of the element in the source, as expressions over the variables of the map
            with the runtime variable; ``()`` for a scalar.  A source inside of loops has a value in
            each iteration: the index starts with the number of the iteration of each loop on the
            call stack, outermost first.
        clamp: inclusive bounds to which the operation clamps the value (start indices of
            dynamic-slice, dynamic-update-slice and gather), or `None`.

    Source: XLA ``docs/indexing.md``, "Indexing map" (runtime variables); XLA
    ``docs/operation_semantics.md``, "DynamicSlice" (clamping of start indices).

    >>> import hlo, indexing
    >>> text = '''ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)
    ...   ROOT s = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} }'''
    >>> window = indexing.output_to_input(hlo.parse(text).entry.root).maps[0][0]
    >>> rt = window.runtime[0]
    >>> print(window, rt.source_name, rt.index, rt.clamp)
    (d0){rt0} -> (d0 + rt0), domain: d0 in [0, 4], rt0 in [0, 4] i () (0, 4)
    >>> rt.name, rt.source.opcode, rt.is_fixed, rt.is_size, rt.is_constant
    ('rt0', 'parameter', False, False, False)
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
        loops: int = 0,
    ) -> None:
        kinds = type(variable), type(index), type(calls)
        if kinds != (Variable, tuple, tuple) or any(type(e) is not Expr for e in index):
            _check(variable=variable, index=index, calls=calls)
        if type(loops) is not int:
            _check(loops=loops)
        if isinstance(array, Instruction):
            array = ArrayRef(array)
        elif isinstance(array, str | int):
            array = ArrayName(array, (), calls, loops)
        elif type(array) not in (ArrayRef, ArrayName, type(None)):
            _check(array=array)
        if clamp is not None and type(clamp) is not tuple:
            _check(clamp=clamp)
        set_field = object.__setattr__
        set_field(self, "variable", variable)
        set_field(self, "array", array)
        set_field(self, "index", index)
        set_field(self, "clamp", clamp)

    @classmethod
    @checked
    def start(
        cls, number: int, size: int, window: int, source: int, index: Iterable[Affine] = ()
    ) -> RuntimeVariable:
        """Return runtime variable ``rt<number>``, a start index clamped to ``[0, size - window]``.

        Args:
            source: the index of the operand that has the start indices.
            index: the index of the element in that operand.

        >>> RuntimeVariable.start(0, size=9, window=5, source=1).clamp
        (0, 4)
        """
        bounds = 0, size - window
        where = tuple([as_expr(i) for i in index])
        return cls(Variable(f"rt{number}", *bounds), source, where, bounds)

    def __copy__(self) -> RuntimeVariable:
        return self

    def __deepcopy__(self, memo: object) -> RuntimeVariable:
        return self

    @property
    def name(self) -> str:
        """The name of the variable: ``rt0``, …"""
        return self.variable.name

    @property
    def source(self) -> Instruction | str | int | None:
        """The instruction that computes the source array.

        In the maps of an op, it is the index of the operand; in a map read from JSON, a name.
        """
        return None if self.array is None else self.array.instruction

    @property
    def calls(self) -> tuple[Instruction | str, ...]:
        """The call stack of the computation of `source`, outermost first."""
        return () if self.array is None else self.array.calls

    @property
    def source_name(self) -> str | int | None:
        """The name of the source; in the maps of an op, the index of the operand."""
        return _instruction_name(self.source) if self.source is not None else None

    @property
    def call_names(self) -> tuple[str, ...]:
        """The names of `calls`."""
        return tuple([str(_instruction_name(call)) for call in self.calls])

    @property
    def value_name(self) -> str:
        """The name of the source array with its calls and its leaf, such as ``call.1/sort{1}``.

        Different arrays of a program have different names.

        >>> import hlo, indexing
        >>> module = hlo.parse('''
        ... f { a = f32[9] parameter(0)  i = s32[] parameter(1)  n = s32[] negate(i)
        ...   ROOT s = f32[5] dynamic-slice(a, n), dynamic_slice_sizes={5} }
        ... ENTRY e { p = f32[9] parameter(0)  q = s32[] parameter(1)
        ...   ROOT c = f32[5] call(p, q), to_apply=f }''')
        >>> (rt,) = indexing.to_parameters(module.entry.root).maps[0][0].runtime
        >>> rt.value_name, rt.call_names, rt.source_name
        ('c/n', ('c',), 'n')
        """
        path = () if self.array is None else self.array.path
        return "/".join([*self.call_names, leaf_name(str(self.source_name), path)])

    @property
    def iterations(self) -> tuple[Expr, ...]:
        """The iteration of each loop around the source in which the value is read, from 0."""
        return () if self.array is None else self.index[: self.array.loops]

    @property
    def element(self) -> tuple[Expr, ...]:
        """The index of the element in the value that the source has in one iteration.

        >>> import hlo, indexing
        >>> text = '''ENTRY e { p = f32[9,4] parameter(0)  i = s32[3] parameter(1)
        ...   ROOT g = f32[3,4] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        ...     start_index_map={0}, index_vector_dim=1, slice_sizes={1,4} }'''
        >>> (rt,) = indexing.output_to_input(hlo.parse(text).entry.root).maps[0][0].runtime
        >>> rt.element, rt.iterations, rt.expr  # row d0 is read at index `i[d0]`
        ((Expr('d0'),), (), Expr('rt0'))
        """
        return self.index if self.array is None else self.index[self.array.loops :]

    @property
    def is_size(self) -> bool:
        """True for a symbolic size: no source, and a name other than ``rt0``, ``rt1``, …

        A name has the same value in every map; see `indexing.maps.symbolic`.

        >>> from simplifier import variable
        >>> from indexing import IndexingMap
        >>> (size,) = IndexingMap.over((variable("n", 1, 8),), lambda d: [d[0]]).runtime
        >>> size.is_size, size.name, size.source_name
        (True, 'n', None)
        """
        return self.array is None and not self.name.removeprefix("rt").isdecimal()

    @property
    def is_fixed(self) -> bool:
        """True if the clamp leaves a single value, for every value of the source.

        A single value in the domain alone does not count: it is a fact about the source or a size.

        >>> start = Variable("rt0", 0, 0)
        >>> RuntimeVariable(start, None, (), (0, 0)).is_fixed  # a slice of all starts at 0
        True
        >>> RuntimeVariable(start, None, (), (0, 4)).is_fixed
        False
        """
        return self.clamp is not None and self.clamp[0] == self.clamp[1]

    @property
    def is_constant(self) -> bool:
        """True if the source is a constant of the program."""
        return isinstance(self.array, ArrayRef) and self.array.instruction.opcode == "constant"

    @property
    def expr(self) -> Expr:
        """The value as an expression, for the results of a map."""
        return self.variable.as_expr()

    @checked
    def substituted(
        self, swap: Callable[[Expr], Expr], variable: Variable | None = None
    ) -> RuntimeVariable:
        """Return the same value with `swap` applied to its index, named like `variable`.

        >>> d0 = Variable("d0", 0, 3)
        >>> row = RuntimeVariable(Variable("rt0", 0, 6), None, (d0.as_expr(),))
        >>> other = row.substituted(lambda expr: expr * 2, Variable("rt1", 0, 6))
        >>> other.name, other.index
        ('rt1', (Expr('d0 * 2'),))
        """
        index = tuple(map(swap, self.index))
        return RuntimeVariable(variable or self.variable, self.array, index, self.clamp)


def element_text(element: Iterable[object]) -> str:
    """Return the index of an element as text, empty for a scalar: ``[d0, 2]``."""
    text = ", ".join(map(str, element))
    return f"[{text}]" if text else ""


def iterations_text(iterations: Sequence[object]) -> str:
    """Return the iterations in which a value is read as text, empty outside of loops.

    >>> iterations_text(["i0"]), iterations_text(["d0", "i0 + 1"])
    ('at iteration i0', 'at iterations d0, i0 + 1')
    """
    noun = "iterations" if len(iterations) > 1 else "iteration"
    return f"at {noun} {', '.join(map(str, iterations))}" if iterations else ""


def source_text(rt: RuntimeVariable, index: Sequence[object]) -> str:
    """Return the element of the source at `index`, which starts with iterations, as text."""
    if rt.array is None:
        return f"{rt.name}{element_text(index)}"
    loops = rt.array.loops
    place = f"{element_text(index[loops:])} {iterations_text(index[:loops])}"
    return f"{rt.source_name}{place.rstrip()}"


def _check(**arguments: object) -> None:
    """Raise the error for the first of these arguments of the constructor of the wrong kind."""
    for name, value in arguments.items():
        check_argument(RuntimeVariable.__init__, name, value)


def _instruction_name(instruction: Instruction | str | int) -> str | int:
    return instruction if isinstance(instruction, str | int) else instruction.name
