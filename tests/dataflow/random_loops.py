"""Random programs of loops: carried arrays that bodies slice, update, shift, reduce and combine.

A program is generated from its result: each value is an operation on values of the shapes that the
operation needs.  Indices are affine functions of loop counters, some with a clamp, a remainder or a
carried number, or elements of arrays.  Loops and conditionals occur inside of bodies; bounds are
constants, functions of outer counters, or the parameter ``n``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Dims: TypeAlias = tuple[int, ...]

ADD: Final = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
"""
MAX_SIZE: Final = 30
"""Limit on the elements of an array."""


def text(dims: Dims, kind: str = "f32") -> str:
    """Return the shape of an array as HLO text."""
    return f"{kind}[{','.join(map(str, dims))}]"


def list_numbers(numbers: Sequence[int]) -> str:
    """Return numbers in braces."""
    return "{" + ",".join(map(str, numbers)) + "}"


@dataclass
class Scope:
    """A computation that is written.

    Attributes:
        lines: its instructions.
        arrays: the f32 arrays that exist, by name.
        counters: the loop counters; scalars: other s32 scalars.
    """

    lines: list[str] = field(default_factory=list)
    arrays: dict[str, Dims] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)


class RandomLoops:
    """A random program; `text` is its HLO.

    Args:
        seed: of the random choices.
        bound: the bound of the first loop: a constant, the parameter ``n``, or data.
    """

    def __init__(self, seed: int, bound: str = "constant") -> None:
        self.random = random.Random(seed)
        self.operations = self.random.randint(0, 2)  # those of a body are more than this on a path
        self.bound = bound
        self.count = 0
        self.depth = 0
        self.computations: list[str] = [ADD]
        self.sizes = self.random.sample([1, 2, 3, 4, 5], 2)
        self.text = self._program()

    # ------------------------------------------------------------ programs

    def _program(self) -> str:
        entry, shapes = Scope(), [self._dims() for _ in range(self.random.randint(1, 4))]
        for number, dims in enumerate(shapes):
            entry.lines.append(f"p{number} = {text(dims)} parameter({number})")
            entry.arrays[f"p{number}"] = dims
        entry.lines.append(f"n = s32[] parameter({len(shapes)})")
        if self._chance(0.5):
            entry.scalars.append("n")
        results = self._loop(entry, self.operations, self.bound)
        if self._chance(0.15):
            results += self._loop(entry, min(self.operations, 1), "constant")
        types = ", ".join([text(entry.arrays[name]) for name in results])
        entry.lines.append(f"ROOT r = ({types}) tuple({', '.join(results)})")
        body = "\n  ".join(entry.lines)
        return "".join(self.computations) + f"ENTRY main {{\n  {body}\n}}\n"

    def _dims(self, rank: int | None = None) -> Dims:
        if rank is None:
            rank = self.random.choice([0, 1, 1, 1, 2, 2, 3])
        dims = tuple([self.random.choice(self.sizes) for _ in range(rank)])
        return dims if _size(dims) <= MAX_SIZE else dims[:2]

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _line(self, scope: Scope, line: str, dims: Dims | None = None) -> str:
        """Add an instruction; return its name."""
        self.count += 1
        name = f"v{self.count}"
        scope.lines.append(f"{name} = {line}")
        if dims is not None:
            scope.arrays[name] = dims
        return name

    def _constant(self, scope: Scope, value: int) -> str:
        return self._line(scope, f"s32[] constant({value})")

    # ------------------------------------------------------------ loops

    def _loop(self, scope: Scope, depth: int, bound: str) -> list[str]:
        """Add a loop; return the names of its carried arrays afterwards."""
        self.depth += 1
        carried = self._carry(scope)
        fixed = [name for name in scope.arrays if name not in carried and self._chance(0.6)][:3]
        numbers = [*scope.counters, *scope.scalars]
        second = self._chance(0.3)
        start, step, last, direction = self._counter(scope, bound)
        operands = [self._constant(scope, start), last, *carried, *fixed, *numbers]
        kinds = ["s32[]", "s32[]", *[text(scope.arrays[a]) for a in (*carried, *fixed)]]
        kinds += ["s32[]" for _ in numbers]
        if second:
            operands.append(self._constant(scope, self.random.randint(-1, 3)))
            kinds.append("s32[]")
        state = f"({', '.join(kinds)})"
        before = self._line(scope, f"{state} tuple({', '.join(operands)})")
        self.count += 1
        number = self.count
        own, elements = self._elements(state, kinds)
        own.counters = [elements[0]]
        for name, source in zip(elements[2:], (*carried, *fixed), strict=False):
            own.arrays[name] = scope.arrays[source]
        extra = elements[2 + len(carried) + len(fixed) :]
        own.counters += extra[: len(scope.counters)]
        own.scalars = extra[len(scope.counters) :]
        following = self._following(own, elements[2 : 2 + len(carried)], depth)
        increment = self._constant(own, step)
        stepped = self._line(own, f"s32[] add({elements[0]}, {increment})")
        after = [stepped, elements[1], *following, *elements[2 + len(carried) :]]
        if second:
            after[-1] = self._second(own, elements[-1])
        own.lines.append(f"ROOT t = {state} tuple({', '.join(after)})")
        self.computations.append(_computation(f"body{number}", own))
        test, elements = self._elements(state, kinds)
        root = self._line(test, f"pred[] compare({elements[0]}, {elements[1]}), {direction}")
        if bound == "data":
            root = self._data_exit(test, root, elements, kinds)
        test.lines.append(f"ROOT c = pred[] copy({root})")
        self.computations.append(_computation(f"condition{number}", test))
        loop = self._line(
            scope, f"{state} while({before}), condition=condition{number}, body=body{number}"
        )
        self.depth -= 1
        return [
            self._line(
                scope,
                f"{text(scope.arrays[name])} get-tuple-element({loop}), index={k + 2}",
                scope.arrays[name],
            )
            for k, name in enumerate(carried)
        ]

    def _carry(self, scope: Scope) -> list[str]:
        """Return the names of the first values of the carried arrays."""
        names = self.random.sample(list(scope.arrays), min(len(scope.arrays), 3))
        for k, name in enumerate(names):
            if self._chance(0.2):
                names[k] = self._value(scope, scope.arrays[name], 1)
        if self._chance(0.3):
            zero = self._line(scope, "f32[] constant(0)")
            dims = self._dims()
            shape = text(dims)
            names.append(self._line(scope, f"{shape} broadcast({zero}), dimensions={{}}", dims))
        return list(dict.fromkeys(names))

    def _counter(self, scope: Scope, bound: str) -> tuple[int, int, str, str]:
        """Return the start, step, bound and comparison of a counter."""
        start = self.random.choice([0, 0, 0, 1, 2, -1])
        step = self.random.choice([1, 1, 1, 1, 2, -1])
        if bound == "n":
            return start, abs(step), "n", "direction=" + self.random.choice(["LT", "LE"])
        inner = self.depth > 1
        trips = self.random.choice([0, 1, 2, 2, 3]) if inner else self.random.randint(0, 6)
        if inner and self._chance(0.4) and step > 0:
            return start, step, self._index(scope, plain=True), "direction=LT"
        name = self._constant(scope, start + step * trips)
        choice = "NE" if self._chance(0.2) else ("LT" if step > 0 else "GT")
        return start, step, name, f"direction={choice}"

    def _data_exit(self, scope: Scope, root: str, elements: list[str], kinds: list[str]) -> str:
        """Return a condition that also needs an element of an array to be positive."""
        arrays = [k for k, kind in enumerate(kinds) if kind.startswith("f32")]
        number = self.random.choice(arrays)
        dims = tuple([int(n) for n in kinds[number][4:-1].split(",") if n])
        scope.arrays[elements[number]] = dims
        one = self._element(scope, elements[number])
        limit = self._line(scope, "f32[] constant(-0.5)")
        positive = self._line(scope, f"pred[] compare({one}, {limit}), direction=GT")
        return self._line(scope, f"pred[] and({root}, {positive})")

    def _elements(self, state: str, kinds: list[str]) -> tuple[Scope, list[str]]:
        scope = Scope([f"s = {state} parameter(0)"])
        elements = [
            self._line(scope, f"{kind} get-tuple-element(s), index={k}")
            for k, kind in enumerate(kinds)
        ]
        return scope, elements

    def _following(self, scope: Scope, carried: list[str], depth: int) -> list[str]:
        """Return the next values of the carried arrays."""
        following = []
        for name in carried:
            dims = scope.arrays[name]
            same = [each for each in carried if scope.arrays[each] == dims]
            choice = self.random.random()
            if choice < 0.15:
                following.append(self.random.choice(same))
            elif choice < 0.65 and dims:
                following.append(self._update(scope, name, dims, depth - 1))
            else:
                following.append(self._value(scope, dims, self.random.randint(1, depth + 1)))
        return following

    def _second(self, scope: Scope, name: str) -> str:
        """Return the next value of a carried number."""
        if self._chance(0.7):
            step = self._constant(scope, self.random.choice([-1, 1, 1, 2, 3]))
            return self._line(scope, f"s32[] add({name}, {step})")
        return self._index(scope)

    # ------------------------------------------------------------ indices

    def _index(self, scope: Scope, plain: bool = False) -> str:
        """Return a scalar index; a plain one is affine in a counter."""
        if scope.arrays and not plain and self._chance(0.08):
            return self._data_index(scope)
        if not scope.counters or (scope.scalars and self._chance(0.1) and not plain):
            choices = [*scope.counters, *scope.scalars]
            return self.random.choice(choices) if choices else self._constant(scope, 1)
        index = scope.counters[0] if self._chance(0.8) else self.random.choice(scope.counters)
        if scope.scalars and self._chance(0.15):
            index = scope.scalars[-1]
        factor = self.random.choice([1, 1, 1, 1, -1, 2, 0])
        if factor != 1:
            index = self._line(scope, f"s32[] multiply({index}, {self._constant(scope, factor)})")
        offset = self.random.choice([0, 0, 0, 1, -1, 2, 3, -2, 4])
        if factor == -1:
            offset += self.random.randint(0, 4)
        if offset:
            index = self._line(scope, f"s32[] add({index}, {self._constant(scope, offset)})")
        if plain or self._chance(0.85):
            return index
        return self._bent(scope, index)

    def _data_index(self, scope: Scope) -> str:
        """Return a multiple of an element of an array as an index."""
        one = self._element(scope, self.random.choice(list(scope.arrays)))
        factor = self._line(scope, f"f32[] constant({self.random.choice([1, 2, -3])})")
        value = self._line(scope, f"f32[] multiply({one}, {factor})")
        return self._line(scope, f"s32[] convert({value})")

    def _bent(self, scope: Scope, index: str) -> str:
        """Return a function of an index that is not affine."""
        limit = self._constant(scope, self.random.randint(1, 3))
        match self.random.randrange(5):
            case 0:
                return self._line(scope, f"s32[] remainder({index}, {limit})")
            case 1:
                return self._line(scope, f"s32[] minimum({index}, {limit})")
            case 2:
                return self._line(scope, f"s32[] divide({index}, {limit})")
            case 3:
                other = self._constant(scope, self.random.randint(0, 2))
                test = self._line(scope, f"pred[] compare({index}, {limit}), direction=LT")
                return self._line(scope, f"s32[] select({test}, {index}, {other})")
            case _:
                zero = self._constant(scope, 0)
                return self._line(scope, f"s32[] clamp({zero}, {index}, {limit})")

    def _starts(self, scope: Scope, dims: Dims, window: Dims) -> list[str]:
        starts = []
        for size, part in zip(dims, window, strict=True):
            moves = part < size or self._chance(0.1)
            starts.append(self._index(scope) if moves else self._constant(scope, 0))
        return starts

    # ------------------------------------------------------------ values

    def _value(self, scope: Scope, dims: Dims, depth: int) -> str:
        """Return a value of these dimensions, with `depth` operations at most on one path."""
        same = [name for name, each in scope.arrays.items() if each == dims]
        if depth <= 0 or (same and self._chance(0.2)):
            return self.random.choice(same) if same else self._stretch(scope, dims)
        choices: list[Callable[[Scope, Dims, int], str]] = [self._elementwise]
        if dims:
            choices += [self._dynamic_slice, self._dynamic_slice, self._change, self._reverse]
            choices += [self._shift, self._select, self._broadcast, self._pad, self._slice]
            choices += [self._gather, self._reshape]
        if len(dims) > 1:
            choices += [self._transpose]
        if len(dims) == 2:
            choices += [self._product]
        if len(dims) < 3:
            choices += [self._reduce]
        choices += [self._conditional]
        if self.depth == 1:
            choices += [self._inner_loop]
        return self.random.choice(choices)(scope, dims, depth - 1)

    def _stretch(self, scope: Scope, dims: Dims) -> str:
        """Return an element of an array, the counter or a constant, broadcast."""
        if scope.arrays and self._chance(0.8):
            scalar = self._element(scope, self.random.choice(list(scope.arrays)))
        elif scope.counters and self._chance(0.5):
            scalar = self._line(scope, f"f32[] convert({scope.counters[0]})", ())
        else:
            scalar = self._line(scope, f"f32[] constant({self.random.randint(-2, 3)})", ())
        if not dims:
            return scalar
        return self._line(scope, f"{text(dims)} broadcast({scalar}), dimensions={{}}", dims)

    def _element(self, scope: Scope, name: str) -> str:
        """Return one element of an array, at a static or dynamic index."""
        dims = scope.arrays[name]
        if not dims:
            return name
        ones = (1,) * len(dims)
        starts = self._starts(scope, dims, ones)
        line = f"{text(ones)} dynamic-slice({name}, {', '.join(starts)}), "
        part = self._line(scope, f"{line}dynamic_slice_sizes={list_numbers(ones)}", ones)
        return self._line(scope, f"f32[] reshape({part})", ())

    def _elementwise(self, scope: Scope, dims: Dims, depth: int) -> str:
        left = self._value(scope, dims, depth)
        if self._chance(0.3):
            op = self.random.choice(["negate", "sine", "tanh"])
            return self._line(scope, f"{text(dims)} {op}({left})", dims)
        right = self._value(scope, dims, self.random.randint(0, depth))
        op = self.random.choice(["add", "add", "subtract", "maximum", "multiply"])
        return self._line(scope, f"{text(dims)} {op}({left}, {right})", dims)

    def _larger(self, scope: Scope, dims: Dims) -> Dims:
        """Return dimensions that contain `dims`, if possible those of an array."""
        fitting = [
            each
            for each in scope.arrays.values()
            if len(each) == len(dims) and all(a >= b for a, b in zip(each, dims, strict=True))
        ]
        if fitting and self._chance(0.8):
            return self.random.choice(fitting)
        larger = tuple([n + self.random.choice([0, 0, 1, 2]) for n in dims])
        return larger if _size(larger) <= MAX_SIZE else dims

    def _smaller(self, dims: Dims) -> Dims:
        return tuple([1 if self._chance(0.5) else self.random.randint(1, n) for n in dims])

    def _dynamic_slice(self, scope: Scope, dims: Dims, depth: int) -> str:
        source = self._larger(scope, dims)
        value, starts = self._value(scope, source, depth), self._starts(scope, source, dims)
        line = f"{text(dims)} dynamic-slice({value}, {', '.join(starts)}), "
        return self._line(scope, f"{line}dynamic_slice_sizes={list_numbers(dims)}", dims)

    def _change(self, scope: Scope, dims: Dims, depth: int) -> str:
        return self._update(scope, self._value(scope, dims, depth), dims, depth)

    def _update(self, scope: Scope, base: str, dims: Dims, depth: int) -> str:
        part = self._smaller(dims)
        value, starts = self._value(scope, part, depth), self._starts(scope, dims, part)
        operands = ", ".join([base, value, *starts])
        return self._line(scope, f"{text(dims)} dynamic-update-slice({operands})", dims)

    def _reverse(self, scope: Scope, dims: Dims, depth: int) -> str:
        value = self._value(scope, dims, depth)
        axes = [k for k in range(len(dims)) if self._chance(0.6)] or [0]
        return self._line(
            scope, f"{text(dims)} reverse({value}), dimensions={list_numbers(axes)}", dims
        )

    def _shift(self, scope: Scope, dims: Dims, depth: int) -> str:
        """Return a concatenation: the end of a value, and the start of another or of the same."""
        axis = self.random.randrange(len(dims))
        if dims[axis] < 2:
            return self._reverse(scope, dims, depth)
        value, size = self._value(scope, dims, depth), dims[axis]
        cut = self.random.randint(1, size - 1)
        head = (*dims[:axis], size - cut, *dims[axis + 1 :])
        tail = (*dims[:axis], cut, *dims[axis + 1 :])
        first = self._static_slice(scope, value, dims, axis, cut, size)
        if self._chance(0.5):
            second = self._static_slice(scope, value, dims, axis, 0, cut)
        else:
            second = self._value(scope, tail, depth)
        del head
        parts = [first, second] if self._chance(0.5) else [second, first]
        line = f"{text(dims)} concatenate({', '.join(parts)}), dimensions={{{axis}}}"
        return self._line(scope, line, dims)

    def _static_slice(
        self, scope: Scope, name: str, dims: Dims, axis: int, low: int, high: int
    ) -> str:
        limits = [(low, high) if k == axis else (0, n) for k, n in enumerate(dims)]
        part = tuple([b - a for a, b in limits])
        ranges = ",".join([f"[{a}:{b}]" for a, b in limits])
        return self._line(scope, f"{text(part)} slice({name}), slice={{{ranges}}}", part)

    def _slice(self, scope: Scope, dims: Dims, depth: int) -> str:
        """Return a slice, with a stride of 2 in some dimensions."""
        strides = [2 if self._chance(0.3) else 1 for _ in dims]
        source = tuple([(n - 1) * s + 1 for n, s in zip(dims, strides, strict=True)])
        if _size(source) > MAX_SIZE:
            return self._value(scope, dims, depth)
        value = self._value(scope, source, depth)
        ranges = ",".join([f"[0:{n}:{s}]" for n, s in zip(source, strides, strict=True)])
        return self._line(scope, f"{text(dims)} slice({value}), slice={{{ranges}}}", dims)

    def _pad(self, scope: Scope, dims: Dims, depth: int) -> str:
        low = [self.random.randint(0, n - 1) for n in dims]
        part = tuple([self.random.randint(1, n - k) for n, k in zip(dims, low, strict=True)])
        value, zero = self._value(scope, part, depth), self._line(scope, "f32[] constant(0)", ())
        rows = zip(dims, part, low, strict=True)
        padding = "x".join([f"{a}_{n - k - a}" for n, k, a in rows])
        return self._line(scope, f"{text(dims)} pad({value}, {zero}), padding={padding}", dims)

    def _select(self, scope: Scope, dims: Dims, depth: int) -> str:
        axis = self.random.randrange(len(dims))
        shape = text(dims, "s32")
        places = self._line(scope, f"{shape} iota(), iota_dimension={axis}")
        index = self._index(scope)
        spread = self._line(scope, f"{shape} broadcast({index}), dimensions={{}}")
        direction = self.random.choice(["LT", "LE", "EQ", "EQ", "NE", "GT", "GE"])
        test = self._line(
            scope, f"{text(dims, 'pred')} compare({places}, {spread}), direction={direction}"
        )
        values = [self._value(scope, dims, each) for each in (depth, 0)]
        return self._line(scope, f"{text(dims)} select({test}, {values[0]}, {values[1]})", dims)

    def _broadcast(self, scope: Scope, dims: Dims, depth: int) -> str:
        axes = [k for k in range(len(dims)) if self._chance(0.5)]
        value = self._value(scope, tuple([dims[k] for k in axes]), depth)
        return self._line(
            scope, f"{text(dims)} broadcast({value}), dimensions={list_numbers(axes)}", dims
        )

    def _reshape(self, scope: Scope, dims: Dims, depth: int) -> str:
        options = [each for each in scope.arrays.values() if _size(each) == _size(dims)]
        options += [(_size(dims),), (1, *dims), dims[::-1]]
        value = self._value(scope, self.random.choice(options), depth)
        return self._line(scope, f"{text(dims)} reshape({value})", dims)

    def _gather(self, scope: Scope, dims: Dims, depth: int) -> str:
        """Return rows of a value, at an index plus or minus an iota or data."""
        rows, rest = dims[0], dims[1:]
        table = self._larger(scope, dims)[:1] + rest
        value, index = self._value(scope, table, depth), self._index(scope)
        source = self._value(scope, (rows,), depth) if self._chance(0.2) else None
        if source is None:
            places = self._line(scope, f"s32[{rows}] iota(), iota_dimension=0")
        else:
            places = self._line(scope, f"s32[{rows}] convert({source})")
        spread = self._line(scope, f"s32[{rows}] broadcast({index}), dimensions={{}}")
        op = self.random.choice(["add", "subtract"])
        indices = self._line(scope, f"s32[{rows}] {op}({spread}, {places})")
        line = (
            f"{text(dims)} gather({value}, {indices}), "
            f"offset_dims={list_numbers(range(1, len(dims)))}, collapsed_slice_dims={{0}}, "
            f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={list_numbers((1, *rest))}"
        )
        return self._line(scope, line, dims)

    def _transpose(self, scope: Scope, dims: Dims, depth: int) -> str:
        order = self.random.sample(range(len(dims)), len(dims))
        source = [0] * len(dims)
        for k, axis in enumerate(order):
            source[axis] = dims[k]
        value = self._value(scope, tuple(source), depth)
        line = f"{text(dims)} transpose({value}), dimensions={list_numbers(order)}"
        return self._line(scope, line, dims)

    def _product(self, scope: Scope, dims: Dims, depth: int) -> str:
        inner = self.random.choice(self.sizes)
        left = self._value(scope, (dims[0], inner), depth)
        right = self._value(scope, (inner, dims[1]), self.random.randint(0, depth))
        line = f"{text(dims)} dot({left}, {right}), "
        return self._line(
            scope, f"{line}lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", dims
        )

    def _reduce(self, scope: Scope, dims: Dims, depth: int) -> str:
        axis = self.random.randint(0, len(dims))
        source = (*dims[:axis], self.random.choice(self.sizes), *dims[axis:])
        if _size(source) > MAX_SIZE:
            return self._value(scope, dims, depth)
        value, zero = self._value(scope, source, depth), self._line(scope, "f32[] constant(0)", ())
        line = f"{text(dims)} reduce({value}, {zero}), dimensions={{{axis}}}, to_apply=add"
        return self._line(scope, line, dims)

    # ------------------------------------------------------------ control flow

    def _conditional(self, scope: Scope, dims: Dims, depth: int) -> str:
        if scope.counters and self._chance(0.6):
            index, limit = self._index(scope), self._constant(scope, self.random.randint(0, 4))
            direction = self.random.choice(["LT", "EQ", "GT"])
            test = self._line(scope, f"pred[] compare({index}, {limit}), direction={direction}")
        elif scope.arrays:
            one = self._element(scope, self.random.choice(list(scope.arrays)))
            zero = self._line(scope, "f32[] constant(0)", ())
            test = self._line(scope, f"pred[] compare({one}, {zero}), direction=LT")
        else:
            return self._value(scope, dims, depth)
        arrays, numbers = list(scope.arrays)[:6], [*scope.counters, *scope.scalars]
        kinds = [*[text(scope.arrays[a]) for a in arrays], *["s32[]" for _ in numbers]]
        state = f"({', '.join(kinds)})"
        operand = self._line(scope, f"{state} tuple({', '.join([*arrays, *numbers])})")
        names = []
        for side in ("yes", "no"):
            own, elements = self._elements(state, kinds)
            own.arrays = {name: scope.arrays[a] for name, a in zip(elements, arrays, strict=False)}
            rest = elements[len(arrays) :]
            own.counters = rest[: len(scope.counters)]
            own.scalars = rest[len(scope.counters) :]
            value = self._value(own, dims, min(depth, 1))
            own.lines.append(f"ROOT r = {text(dims)} copy({value})")
            self.count += 1
            names.append(f"{side}{self.count}")
            self.computations.append(_computation(names[-1], own))
        line = f"{text(dims)} conditional({test}, {operand}, {operand}), "
        branches = f"true_computation={names[0]}, false_computation={names[1]}"
        return self._line(scope, line + branches, dims)

    def _inner_loop(self, scope: Scope, dims: Dims, depth: int) -> str:
        if len(scope.arrays) < 1:
            return self._elementwise(scope, dims, depth)
        results = self._loop(scope, min(self.operations, 1), "constant")
        same = [name for name in results if scope.arrays[name] == dims]
        return same[0] if same else self._value(scope, dims, 0)


def _size(dims: Dims) -> int:
    size = 1
    for n in dims:
        size *= n
    return size


def _computation(name: str, scope: Scope) -> str:
    body = "\n  ".join(scope.lines)
    return f"{name} {{\n  {body}\n}}\n"
