"""Reads of arrays over a box of indices: views for affine indices, otherwise index arrays.

Each dimension of the array has an index over the axes of the space.  A reshape first eliminates
floors and mods: adjacent dimensions are merged if the index into them is affine
(``p.reshape(24)``), and a dimension is split if its index enumerates several axes
(``p.reshape(4, 6)``).  Each index then becomes a slice, a window (several axes along one
dimension) or an index array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Protocol

from hlo.shapes.mixed_radix import number_of
from indexing.codegen.numpy.spaces import Space
from indexing.codegen.text import index_text, tuple_text
from simplifier.atoms import Floor, Variable
from simplifier.interval import contains
from simplifier.linear import Expr

_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Text:
    """Code of an array, and the axes of its dimensions, in the order of the space."""

    code: str
    axes: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """An array and an index into it.

    Attributes:
        name: the name of the array.
        sizes: the sizes of its dimensions.
        index: the index into each dimension, over the axes of the space and scalar variables.
        offset: the first index of each dimension, if only a box of the array is computed.
    """

    name: str
    sizes: tuple[int, ...]
    index: tuple[Expr, ...]
    offset: tuple[Expr, ...] | None = None


class Vectors(Protocol):
    """The code of variables in index arrays."""

    def is_array(self, name: str) -> bool:
        """Return True for a runtime variable that varies along an axis."""

    def get(self, name: str) -> Text | None:
        """Return the code of an axis or a runtime variable, or None for other variables."""


def read_text(space: Space, access: Access, vectors: Vectors) -> Text:
    """Return the code that reads all elements of an access."""
    access = _regroup_dims(space, access)
    taken = [set(_axes_of(space, e)) for e in access.index]
    arrays = _index_arrays(space, access, taken, vectors)
    if arrays:
        return _by_arrays(space, access, arrays, vectors)
    if any(_is_shared(taken, k) for k in range(len(taken))):
        return _by_window(space, access)
    code, kept = _slice_array(space, access)
    return _transpose_axes(space, code, [v for k in kept for v in _axes_of(space, access.index[k])])


def _index_arrays(
    space: Space, access: Access, taken: Sequence[set[Variable]], vectors: Vectors
) -> list[int]:
    """Return the dimensions that need an index array.

    No axis may belong to both an index array and a slice.
    """
    pairs = enumerate(zip(access.index, access.sizes, strict=True))
    arrays = [k for k, (e, size) in pairs if _needs_array(space, e, size, vectors)]
    more = arrays
    while more:
        used = set().union(*[_all_axes(space, access.index[k], vectors) for k in arrays])
        others = [k for k in range(len(taken)) if k not in arrays]
        more = [k for k in others if taken[k] & used or _is_shared(taken, k)]
        arrays = sorted([*arrays, *more])
    return arrays


def _is_shared(taken: Sequence[set[Variable]], k: int) -> bool:
    """Return True if dimension `k` has several axes, or shares an axis with another dimension."""
    return len(taken[k]) > 1 or any(taken[k] & axes for n, axes in enumerate(taken) if n != k)


def _shift_to_box(access: Access) -> tuple[Expr, ...]:
    """Return the index relative to the computed box of the array."""
    if access.offset is None:
        return access.index
    return tuple([e - o for e, o in zip(access.index, access.offset, strict=True)])


def _axes_of(space: Space, expr: Expr) -> tuple[Variable, ...]:
    return space.order_axes(expr.variables())


def _all_axes(space: Space, expr: Expr, vectors: Vectors) -> set[Variable]:
    axes = set(_axes_of(space, expr))
    for v in expr.variables():
        if vectors.is_array(v.name) and (text := vectors.get(v.name)):
            axes.update(text.axes)
    return axes


def _needs_array(space: Space, expr: Expr, size: int, vectors: Vectors) -> bool:
    axes = _axes_of(space, expr)
    if any(vectors.is_array(v.name) for v in expr.variables()):
        return True
    if not axes:
        return False
    floors = [a for a, _ in expr.terms if isinstance(a, Floor) and _has_axes(space, a)]
    return bool(floors) or not contains((0, size - 1), expr.bounds)


def _has_axes(space: Space, atom: Floor) -> bool:
    return bool(space.order_axes(atom.numerator.variables()))


# ---------------------------------------------------------------- reshapes


def _regroup_dims(space: Space, access: Access) -> Access:
    """Reshape the array so that the index has fewer floors and windows."""
    if access.offset is not None:
        return access
    sizes, index = list(access.sizes), list(access.index)
    if any(e.divides for e in index):
        sizes, index = _merge_dims(sizes, index)
    sizes, index = _divide_dims(space, sizes, index)
    if sizes == list(access.sizes):
        return access
    name = f"{access.name}.reshape({', '.join(map(str, sizes))})"
    return Access(name, tuple(sizes), tuple(index))


def _merge_dims(sizes: list[int], index: list[Expr]) -> tuple[list[int], list[Expr]]:
    """Merge adjacent dimensions if that eliminates floors; merge as few as possible."""
    rank = len(sizes)
    best: list[tuple[int, int, list[tuple[int, int]]]] = [(0, 0, [])]  # floors, −groups, groups
    best += [(rank + 1, 0, [])] * rank
    for end in range(1, rank + 1):
        for start in range(end):
            floors, fewer, groups = best[start]
            divides = number_of(index[start:end], sizes[start:end]).divides
            candidate = floors + divides, fewer - 1, [*groups, (start, end)]
            if candidate[:2] < best[end][:2]:
                best[end] = candidate
    groups = best[rank][2]
    if len(groups) == rank:
        return sizes, index
    return (
        [prod(sizes[a:b]) for a, b in groups],
        [number_of(index[a:b], sizes[a:b]) for a, b in groups],
    )


def _divide_dims(space: Space, sizes: list[int], index: list[Expr]) -> tuple[list[int], list[Expr]]:
    """Split each dimension whose index enumerates several axes."""
    new_sizes: list[int] = []
    new_index: list[Expr] = []
    for size, e in zip(sizes, index, strict=True):
        digits = _digits(space, e, size)
        new_sizes += [v.upper + 1 for v in digits] if digits else [size]
        new_index += [v.as_expr() for v in digits] if digits else [e]
    return new_sizes, new_index


def _digits(space: Space, expr: Expr, size: int) -> list[Variable]:
    """Return the axes of which an index is the row-major position, or []."""
    if len(expr.terms) < 2 or expr.constant:
        return []
    step, digits = 1, []
    for atom, coefficient in sorted(expr.terms, key=lambda term: term[1]):
        if not isinstance(atom, Variable) or coefficient != step or atom.lower:
            return []
        if atom not in space.variables:
            return []
        digits.append(atom)
        step *= atom.upper + 1
    return digits[::-1] if step == size else []


# ---------------------------------------------------------------- views


def _slice_text(space: Space, expr: Expr, size: int) -> tuple[str, bool]:
    """Return the slice of an index with one axis, and True if it is to be reversed afterwards."""
    (variable,) = _axes_of(space, expr)
    axis = space.axis(variable)
    step = dict(expr.terms)[variable]
    rest = expr - variable.as_expr() * step
    first, last = rest + axis.begin * step, rest + (axis.end - 1) * step
    if step < 0 and first.is_constant and last.is_constant:
        if first.constant == size - 1 and last.constant < -step:
            return f"::{step}", False
        end = str(last.constant - 1) if last.constant else ""
        return f"{first}:{end}:{step}", False
    low, high = (first, last) if step > 0 else (last, first)
    step_text = f":{abs(step)}" if abs(step) > 1 else ""
    if low.is_constant and high.is_constant:
        begin = "" if low.constant == 0 else str(low)
        end = "" if high.constant + abs(step) > size - 1 else str(high.constant + 1)
        return f"{begin}:{end}{step_text}", step < 0
    return f"{index_text(low)}:{index_text(high + 1)}{step_text}", step < 0


def _number_text(shifted: Expr, expr: Expr, size: int) -> str:
    """Return an index without axes, clamped: elements out of bounds are not used."""
    text = index_text(shifted)
    return text if contains((0, size - 1), expr.bounds) else f"min(max({text}, 0), {size - 1})"


def _slice_array(space: Space, access: Access, arrays: Sequence[int] = ()) -> tuple[str, list[int]]:
    """Slice the array, except along `arrays`; return the code and the remaining dimensions."""
    pieces, back, kept = [], [], []
    for k, (e, size) in enumerate(zip(_shift_to_box(access), access.sizes, strict=True)):
        if k not in arrays and not _axes_of(space, e):
            pieces.append(_number_text(e, access.index[k], size))
            continue
        piece, is_back = (":", False) if k in arrays else _slice_text(space, e, size)
        pieces.append(piece)
        back.append("::-1" if is_back else ":")
        kept.append(k)
    code = _subscript(access.name, pieces)
    return (_subscript(code, back) if "::-1" in back else code), kept


def _subscript(name: str, pieces: Sequence[str]) -> str:
    while pieces and pieces[-1] == ":":
        pieces = pieces[:-1]
    return f"{name}[{', '.join(pieces)}]" if pieces else name


def _transpose_axes(space: Space, code: str, axes: Sequence[Variable]) -> Text:
    """Transpose the axes to the order of the space."""
    ordered = space.order_axes(axes)
    if tuple(axes) == ordered:
        return Text(code, ordered)
    order = [list(axes).index(v) for v in ordered]
    how = "T" if order == [1, 0] else f"transpose({', '.join(map(str, order))})"
    return Text(f"{code}.{how}", ordered)


def _by_window(space: Space, access: Access) -> Text:
    index = _shift_to_box(access)
    axes = space.order_axes([v for e in index for v in _axes_of(space, e)])
    start = []
    steps: list[list[int]] = [[] for _ in axes]
    for e in index:
        at = e
        for k, v in enumerate(axes):
            step = dict(e.terms).get(v, 0)
            steps[k].append(step)
            if step:
                at = at - v.as_expr() * step + space.axis(v).begin * step
        start.append(index_text(at))
    rows = tuple_text([tuple_text(step) for step in steps])
    sizes = tuple_text(space.size_text(axes))
    return Text(f"window({access.name}, {tuple_text(start)}, {rows}, {sizes})", axes)


# ---------------------------------------------------------------- index arrays


def vector_text(space: Space, expr: Expr, axes: Sequence[Variable], vectors: Vectors) -> str:
    """Return an index expression as an array with these axes; missing ones have size 1."""

    def swap_text(match: re.Match[str]) -> str:
        text = vectors.get(match[0])
        return match[0] if text is None else expand_axes(text, axes)

    return _NAME.sub(swap_text, index_text(expr))


def expand_axes(text: Text, axes: Sequence[Variable]) -> str:
    """Return the code of `text` with dimensions of size 1 inserted for missing `axes`."""
    if not text.axes:
        return text.code
    pieces = [":" if v in text.axes else "None" for v in axes]
    while pieces[0] == "None":
        pieces.pop(0)
    if all(piece == ":" for piece in pieces):
        return text.code
    return f"{as_operand(text.code)}[{', '.join(pieces)}]"


def as_operand(code: str) -> str:
    """Parenthesise code if a subscript or a method call requires it.

    >>> as_operand("a + b"), as_operand("f(a, b)"), as_operand("-a")
    ('(a + b)', 'f(a, b)', '(-a)')
    """
    depth = 0
    for character in code:
        depth += (character in "([") - (character in ")]")
        if character == " " and depth == 0:
            return f"({code})"
    return f"({code})" if code[:1] in "-~" else code


def _by_arrays(space: Space, access: Access, arrays: Sequence[int], vectors: Vectors) -> Text:
    code, kept = _slice_array(space, access, arrays)
    used = space.order_axes(v for k in arrays for v in _all_axes(space, access.index[k], vectors))
    indices = [_index_array(space, access, k, used, vectors) for k in arrays]
    sliced = {k: _axes_of(space, access.index[k]) for k in kept if k not in arrays}
    if len(arrays) == 1:
        code = f"{code}.take({indices[0]}, {kept.index(arrays[0])})"
        return _transpose_axes(space, code, [v for k in kept for v in sliced.get(k, used)])
    order = [kept.index(k) for k in (*arrays, *sliced)]
    if order != sorted(order):
        code = f"{code}.transpose({', '.join(map(str, order))})"
    axes = [*used, *[v for axes in sliced.values() for v in axes]]
    return _transpose_axes(space, f"{code}[{', '.join(indices)}]", axes)


def _index_array(
    space: Space,
    access: Access,
    k: int,
    used: Sequence[Variable],
    vectors: Vectors,
) -> str:
    """Return the index array of one dimension, clamped: elements out of bounds are not used."""
    expr, size = access.index[k], access.sizes[k]
    text = vector_text(space, expr, used, vectors)
    if not contains((0, size - 1), expr.bounds):
        text = f"np.clip({text}, 0, {size - 1})"
    if access.offset is not None:
        begin = index_text(access.offset[k])
        text = f"{text} - {begin}" if access.offset[k].as_variable else f"{text} - ({begin})"
    return text
