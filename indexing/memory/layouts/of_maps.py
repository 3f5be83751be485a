"""Layouts of CuTe and Triton for a map: `IndexingMap.to_cute`, `IndexingMap.to_linear_layout`.

In normal form, a map to one offset is ``constant + Σ c · (d floordiv D)``.  It is a shape and
stride exactly if each divisor of one dimension divides the next larger one, and the largest divides
the size.  Other maps of few points are evaluated at all of them: a swizzle is the XOR after which
such a form remains, and a linear layout is determined by the results at powers of two.  Both
decisions are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.maps.indexing_map import IndexingMap
from indexing.memory.layouts.cute import CuteLayout, IntTuple, Leaf
from indexing.memory.layouts.linear import LinearLayout
from indexing.memory.layouts.swizzle import MAX_BITS, Swizzle
from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr, from_atom
from simplifier.shared import atoms_in_order
from simplifier.unknown import Unknown, with_query

MAX_POINTS: Final = 1 << 20
"""Limit on the points of a map that are evaluated; beyond it, swizzles are not recognised."""

MAX_WORK: Final = 1 << 25
"""Limit on the offsets of axes that are compared in the search of a swizzle."""

_Modes: TypeAlias = list[list[Leaf]]
"""The leaves of each dimension."""


def to_cute(m: IndexingMap) -> CuteLayout | Unknown:
    """Return the layout of a map to one offset: see `IndexingMap.to_cute`."""
    m = m.simplify()
    obstacle = _no_box(m) or _several_results(m)
    if obstacle:
        return Unknown(f"no layout of CuTe: {obstacle}")
    (result,) = m.results
    modes = _digits(result, m.dims)
    if not isinstance(modes, Unknown):
        return _layout(modes, None, result.constant)
    values = _values(m, result)
    swizzled = None if values is None else _swizzled_layout(values)
    if swizzled is not None:
        return swizzled
    beyond = f"; a swizzle is not recognised beyond {MAX_POINTS} points" if values is None else ""
    return Unknown(f"no layout of CuTe: {modes.reason}{beyond}")


def to_linear_layout(m: IndexingMap) -> LinearLayout | Unknown:
    """Return the layout of a map that is linear over F2: see `IndexingMap.to_linear_layout`."""
    m = m.simplify()
    obstacle = _no_box(m) or _no_power_of_two(m) or _no_linear_values(m)
    if obstacle:
        return Unknown(f"no linear layout: {obstacle}")
    bases = {d.name: [_at(m, {d: 1 << i}) for i in range(d.upper.bit_length())] for d in m.dims}
    needed = [
        max((image[k] for images in bases.values() for image in images), default=0)
        for k in range(len(m.results))
    ]
    sizes = {f"dim{k}": 1 << value.bit_length() for k, value in enumerate(needed)}
    layout = LinearLayout.from_bases(bases, sizes)
    refusal = _not_linear(m, layout)
    return layout if refusal is None else with_query(refusal, "no linear layout")


# ---------------------------------------------------------------- domains


def _no_box(m: IndexingMap) -> str:
    """The reason why the map is no function on a box from the origin; empty if it is one."""
    if m.is_known_empty:
        return "the domain is empty, and the sizes of a layout are positive"
    if m.grade != "exact":
        return "the map over-approximates its elements (grade `may`)"
    if m.ranges:
        return f"a point has several elements, by the range variable {m.ranges[0].name}"
    if m.runtime:
        return f"it depends on the runtime variable {m.runtime[0].name}"
    if m.constraints:
        return f"the domain is no box, because of the constraint {m.constraints[0]}"
    for d in m.dims:
        if d.lower:
            return f"{d.name} starts at {d.lower}, and coordinates start at 0"
    return ""


def _several_results(m: IndexingMap) -> str:
    if len(m.results) == 1:
        return ""
    return (
        f"the map has {len(m.results)} results, not one offset; compose it with the layout of its "
        "results, for example `m.then(physical_map(shape))`"
    )


def _no_power_of_two(m: IndexingMap) -> str:
    for d in m.dims:
        if (d.upper + 1) & d.upper:
            return f"the size {d.upper + 1} of {d.name} is not a power of two"
    return ""


def _no_linear_values(m: IndexingMap) -> str:
    origin = _at(m, {})
    for k, ((lower, _), value) in enumerate(zip(m.result_bounds, origin, strict=True)):
        if value:
            return f"result {k} is {value} at the origin, where a linear function is 0"
        if lower < 0 and any(_at(m, {d: 1 << i})[k] < 0 for d, i in _bits(m)):
            return f"result {k} is negative at some points"
    return ""


def _bits(m: IndexingMap) -> Iterator[tuple[Variable, int]]:
    for d in m.dims:
        for i in range(d.upper.bit_length()):
            yield d, i


def _at(m: IndexingMap, point: Mapping[Variable, int]) -> tuple[int, ...]:
    values = m.evaluate([point.get(d, 0) for d in m.dims])
    assert values is not None, "the domain is a box that contains the point"
    return values


# ---------------------------------------------------------------- CuTe


def _digits(result: Expr, dims: Sequence[Variable]) -> _Modes | Unknown:
    """The leaves of each dimension, from the normal form; or the term that is no digit."""
    slopes: dict[Variable, int] = {}
    jumps: dict[Variable, dict[int, int]] = {}
    for atom, coefficient in result.terms:
        if isinstance(atom, Variable):
            slopes[atom] = coefficient
            continue
        dimension = atom.numerator.as_variable if isinstance(atom, Floor) else None
        if dimension is None or not isinstance(atom, Floor):
            modulus = f", with the modulus {atom.divisor}," if isinstance(atom, Floor) else ""
            return Unknown(f"the term {from_atom(atom)}{modulus} is no digit of one dimension")
        jumps.setdefault(dimension, {})[atom.divisor] = coefficient
    modes: _Modes = []
    for d in dims:
        leaves = _leaves(d, slopes.get(d, 0), jumps.get(d, {}))
        if isinstance(leaves, Unknown):
            return leaves
        modes.append(leaves)
    return modes


def _leaves(d: Variable, slope: int, jumps: Mapping[int, int]) -> list[Leaf] | Unknown:
    """The leaves of ``slope · d + Σ jumps[D] · (d floordiv D)``."""
    ends = [1, *sorted(jumps), d.upper + 1]
    leaves = []
    for begin, end in pairwise(ends):
        if end % begin:
            whole = "the size" if end == ends[-1] else "the modulus"
            return Unknown(f"the modulus {begin} of {d.name} does not divide {whole} {end}")
        stride = slope * begin
        stride += sum(factor * (begin // divisor) for divisor, factor in jumps.items())
        leaves.append(Leaf(end // begin, stride if end > begin else 0))
    return leaves


def _layout(modes: _Modes, swizzle: Swizzle | None, offset: int) -> CuteLayout:
    """The layout with one mode for each dimension; ``n:d`` for one that is not nested."""
    if len(modes) == 1 and len(modes[0]) == 1:
        return CuteLayout(*modes[0][0], swizzle, offset)
    shape, stride = [
        tuple([_entry([leaf[k] for leaf in leaves]) for leaves in modes]) for k in (0, 1)
    ]
    return CuteLayout(shape, stride, swizzle, offset)


def _entry(values: Sequence[int]) -> IntTuple:
    return values[0] if len(values) == 1 else tuple(values)


def _values(m: IndexingMap, result: Expr) -> NDArray[np.int64] | None:
    """The offsets of all points; `None` if these are too many or too large."""
    sizes = [d.upper + 1 for d in m.dims]
    lower, upper = result.bounds
    if prod(sizes) > MAX_POINTS or max(-lower, upper).bit_length() > MAX_BITS:
        return None
    axes: Sequence[Any] = np.ix_(*[np.arange(size) for size in sizes])
    values = result.value(dict(zip(m.dims, axes, strict=True)))
    return np.broadcast_to(np.asarray(values, np.int64), sizes)


def _swizzled_layout(values: NDArray[np.int64]) -> CuteLayout | None:
    """The layout with the fewest swizzled bits and these offsets."""
    origin = (0,) * values.ndim
    axes = [np.moveaxis(values, k, -1)[origin[1:]] for k in range(values.ndim)]
    ones = int(np.bitwise_or.reduce(values, axis=None))
    candidates = _candidates(ones) if values.min() >= 0 else ()
    work = 0
    for swizzle in (Swizzle(()), *candidates):
        if not all(_may_have_leaves(swizzle, axis) for axis in axes):
            continue
        work += sum(map(len, axes))
        if work > MAX_WORK:
            return None
        modes = [leaves for axis in axes if (leaves := _axis_leaves(swizzle(axis)))]
        start = swizzle(int(values[origin]))
        lowest = start + sum(min(0, (n - 1) * step) for leaves in modes for n, step in leaves)
        if len(modes) == values.ndim and (lowest >= 0 or not swizzle.columns):
            layout = _layout(modes, swizzle, start)
            if (layout.offsets() == values.reshape(-1, order="F")).all():
                return layout
    return None


def _candidates(ones: int) -> Iterator[Swizzle]:
    """The swizzles of CuTe, by the number of bits, that read only bits of the mask `ones`."""
    count = ones.bit_length()
    for bits in range(1, count // 2 + 1):
        field = (1 << bits) - 1
        for base in range(count - bits):
            for shift in range(bits, count - bits - base + 1):
                if ones >> base + shift & field == field:
                    yield Swizzle.xor(bits, base, shift)
                if ones >> base & field == field:
                    yield Swizzle.xor(bits, base, -shift)


def _may_have_leaves(swizzle: Swizzle, axis: NDArray[np.int64]) -> bool:
    """False if some offsets show that the swizzled axis has no leaves."""
    size = len(axis)
    index = np.arange(min(size, 64))
    if size & (size - 1) == 0:  # all sizes are powers of two: a sum of the offsets at these
        index = np.append(index, np.arange(256) * 0x9E3779B1 % size)
        powers = 1 << np.arange(size.bit_length() - 1)
        steps = swizzle(axis[powers]) - swizzle(axis[:1])
        sums = (index[:, None] & powers != 0) @ steps
        return bool((swizzle(axis[index]) - swizzle(axis[:1]) == sums).all())
    steps = swizzle(axis[index]) - swizzle(axis[:1])
    breaks = np.flatnonzero(steps != index * steps[1])
    run = int(breaks[0]) if len(breaks) else size
    if run == size or size % run:
        return run == size
    return bool((steps == steps[index % run] + steps[index - index % run]).all())


def _axis_leaves(offsets: NDArray[np.int64]) -> list[Leaf] | None:
    """The leaves with these offsets, relative to the first; `None` if there are none."""
    leaves: list[Leaf] = []
    steps = offsets - offsets[0]
    while len(steps) > 1:
        stride = int(steps[1])
        breaks = np.flatnonzero(steps != np.arange(len(steps)) * stride)
        size = int(breaks[0]) if len(breaks) else len(steps)
        if len(steps) % size:
            return None
        rows = steps.reshape(-1, size)
        if (rows != rows[:, :1] + rows[0]).any():
            return None
        leaves.append(Leaf(size, stride))
        steps = rows[:, 0]
    return leaves or [Leaf(1, 0)]


# ---------------------------------------------------------------- linear over F2


def _not_linear(m: IndexingMap, layout: LinearLayout) -> Unknown | None:
    """The reason why the map is not `layout`; `None` if it is."""
    modes = [_digits(result, m.dims) for result in m.results]
    if not any(isinstance(each, Unknown) for each in modes):
        return _carry(layout)  # sums of the results at powers of two
    difference = _difference(m, layout.map)
    if difference is None or isinstance(difference, Unknown):
        return difference
    for floor in _floors(m.results):
        if floor.divisor & (floor.divisor - 1):
            term = from_atom(floor)
            return Unknown(f"the modulus {floor.divisor} in {term} is not a power of two")
    return Unknown(f"the results are not XORs of the results at powers of two: {difference}")


def _difference(m: IndexingMap, linear: IndexingMap) -> str | Unknown | None:
    """The results of both maps at a point where they differ; `None` if they are equal."""
    pairs = [
        (_values(m, one), _values(linear, other))
        for one, other in zip(m.results, linear.results, strict=True)
    ]
    for k, (values, xor) in enumerate(pairs):
        if values is None or xor is None:
            return _large_difference(m, linear)
        if (values != xor).any():
            index = np.unravel_index(int(np.argmax(values != xor)), values.shape)
            point = {d: int(i) for d, i in zip(m.dims, index, strict=True)}
            return _differs(point, k, int(values[index]), int(xor[index]))
    return None


def _large_difference(m: IndexingMap, linear: IndexingMap) -> str | Unknown | None:
    """The same for many points: sums of two powers of two, then a proof."""
    for (d, i), (e, j) in combinations(_bits(m), 2):
        point = {d: 1 << i}
        point[e] = point.get(e, 0) + (1 << j)
        pair = zip(_at(m, point), _at(linear, point), strict=True)
        for k, (value, xor) in enumerate(pair):
            if value != xor:
                return _differs(point, k, value, xor)
    answer = m.is_equal(linear)
    if isinstance(answer, Unknown):
        return answer
    return None if answer else f"they differ at {answer.witness}"


def _differs(point: Mapping[Variable, int], k: int, value: int, xor: int) -> str:
    place = ", ".join(f"{d.name} = {i}" for d, i in point.items())
    return f"at {place}, result {k} is {value} and the XOR is {xor}"


def _carry(layout: LinearLayout) -> Unknown | None:
    """The bases whose sum is not their XOR; `None` if no two of them share a bit."""
    for k in range(len(layout.outputs)):
        seen: list[tuple[str, int]] = []
        for name, images in layout.inputs:
            for i, image in enumerate(images):
                for other, value in seen:
                    if value & image[k]:
                        return Unknown(
                            f"at {other} plus {name} = {1 << i}, result {k} is {value + image[k]} "
                            f"and the XOR is {value ^ image[k]}"
                        )
                seen.append((f"{name} = {1 << i}", image[k]))
    return None


def _floors(results: Iterable[Expr]) -> list[Floor]:
    return [atom for atom in atoms_in_order(results) if isinstance(atom, Floor)]
