"""The layout algebra of CuTe: methods of `CuteLayout`.

A layout is a function from linear indices to offsets.  `composition` is exact or refused: CuTe
also returns a layout where coordinates of the inner layout carry into the next mode of the outer
layout, and this layout is another function.  `logical_divide` refuses tiles that miss elements.

Source: CUTLASS documentation, "CuTe Layout Algebra"; CUTLASS ``include/cute/layout.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import gcd
from operator import index
from typing import Final, TypeAlias

from hlo.arguments import checked, integer, wrong_argument
from indexing.memory.layouts.cute import CuteLayout, IntTuple, Leaf, Tiler, int_tuple_text
from simplifier.unknown import Unknown, first_unknown, with_query

MAX_COMPARED: Final = 1 << 16
"""Limit on the coordinates to evaluate where sums of coordinates carry into another mode."""

_Operation: TypeAlias = Callable[[CuteLayout, CuteLayout], CuteLayout | Unknown]


def coalesce_layout(layout: CuteLayout) -> CuteLayout:
    """Return the layout with the fewest modes: see `CuteLayout.coalesce`."""
    return layout.with_affine(_of_leaves(_coalesce_leaves(layout.leaves)))


def composition(outer: CuteLayout, inner: Tiler) -> CuteLayout | Unknown:
    """Return ``c -> outer(inner(c))``: see `CuteLayout.composition`."""
    return _by_mode("composition", "inner", outer, inner, _composition)


@checked
def complement(layout: CuteLayout, cotarget: int) -> CuteLayout | Unknown:
    """Return a layout of the other offsets: see `CuteLayout.complement`.

    Raises:
        ValueError: `cotarget` is not positive.
    """
    cotarget = integer("complement", "cotarget", cotarget)
    if cotarget < 1:
        raise ValueError(f"a complement fills at least 1 offset, not {cotarget}")
    refusal = first_unknown(_not_affine(layout), _negative(layout))
    if refusal is not None:
        return with_query(refusal, "no complement of", layout)
    result, filled = [], 1
    for size, stride in _by_stride(layout):
        if stride < filled:
            return Unknown(
                f"no complement of {layout}: two coordinates may have one offset, because the "
                f"stride {stride} of {size}:{stride} is less than {filled}, the extent of the "
                "modes with smaller strides"
            )
        result.append(Leaf(stride // filled, filled))
        filled = size * stride
    result.append(Leaf(-(-cotarget // filled), filled))
    return _of_leaves(_coalesce_leaves(result))


def logical_divide(layout: CuteLayout, tiler: Tiler) -> CuteLayout | Unknown:
    """Return the layout of a tile and the tiles: see `CuteLayout.logical_divide`."""
    return _by_mode("logical_divide", "tiler", layout, tiler, _divide_layout)


def logical_product(layout: CuteLayout, tiler: Tiler) -> CuteLayout | Unknown:
    """Return the layout and its copies: see `CuteLayout.logical_product`."""
    return _by_mode("logical_product", "tiler", layout, tiler, _product)


def right_inverse(layout: CuteLayout) -> CuteLayout | Unknown:
    """Return a layout with ``layout(inverse(i)) = i``: see `CuteLayout.right_inverse`."""
    refusal = _not_affine(layout)
    if refusal is not None:
        return with_query(refusal, "no right inverse of", layout)
    below, next_offset, result = 1, 1, []
    indices: dict[int, tuple[int, int]] = {}
    for size, stride in layout.leaves:
        if size > 1:
            indices[stride] = max(indices.get(stride, (0, 0)), (size, below))
        below *= size
    while next_offset in indices:
        size, place = indices[next_offset]
        result.append(Leaf(size, place))
        next_offset *= size
    return _of_leaves(_coalesce_leaves(result))


def left_inverse(layout: CuteLayout) -> CuteLayout | Unknown:
    """Return a layout with ``inverse(layout(i)) = i``: see `CuteLayout.left_inverse`."""
    refusal = first_unknown(_not_affine(layout), _negative(layout))
    if refusal is not None:
        return with_query(refusal, "no left inverse of", layout)
    below, modes = 1, []
    for leaf in _coalesce_leaves(layout.leaves):
        if leaf.stride == 0 and leaf.size > 1:
            return Unknown(
                f"no left inverse of {layout}: not injective, because the stride of {leaf} is 0"
            )
        modes.append((leaf.stride, leaf.size, below))
        below *= leaf.size
    modes.sort()
    for (smaller, size, _), (stride, _, _) in pairwise(modes):
        if stride < smaller * size or stride % smaller:
            obstacle = (
                "two coordinates may have one offset"
                if stride < smaller * size
                else f"{smaller} does not divide {stride}"
            )
            return Unknown(
                f"no left inverse of {layout}: {obstacle}, for the mode {size}:{smaller} and the "
                f"next larger stride {stride}"
            )
    # the digit of each mode ends where the next larger stride begins
    ends = [stride for stride, _, _ in modes[1:]]
    result = [Leaf(stride, 0) for stride, _, _ in modes[:1]]
    for (stride, size, place), end in zip(modes, [*ends, 0][: len(modes)], strict=True):
        result.append(Leaf(end // stride if end else size, place))
    return _of_leaves(_coalesce_leaves(result))


# ---------------------------------------------------------------- single operations


def _composition(outer: CuteLayout, inner: CuteLayout) -> CuteLayout | Unknown:
    query = "cannot compose", outer, "with", inner
    refusal = first_unknown(_not_affine(inner), _negative(inner))
    if refusal is not None:
        return with_query(refusal, *query)
    modes = _coalesce_leaves(outer.leaves) or [Leaf(1, 0)]
    parts = []
    for leaf in inner.leaves:
        part = _composed_leaf(modes, leaf)
        if isinstance(part, Unknown):
            return with_query(part, *query)
        parts.append(part)
    results = iter(parts)
    shape, stride = _rebuild_form(inner.shape, results)
    result = CuteLayout(shape, stride)
    carry = _carry(modes, inner)
    if carry is not None and not _is_composition(modes, inner, result):
        return with_query(carry, *query)
    return outer.with_affine(result)


def _composed_leaf(modes: Sequence[Leaf], leaf: Leaf) -> list[Leaf] | Unknown:
    """The composition of coalesced modes with one mode; the last of `modes` has no upper limit."""
    size, stride = leaf
    if stride == 0 or size == 1:
        return [Leaf(size, 0)]
    result = []
    for outer in modes[:-1]:
        if (size - 1) * stride < outer.size:
            break
        if stride % outer.size == 0:
            stride //= outer.size
            continue
        if outer.size % stride:
            return Unknown(
                f"the stride {stride} neither divides the size {outer.size} nor is a multiple of it"
            )
        taken = outer.size // stride
        if size % taken:
            return Unknown(
                f"the size {size} is not a multiple of {taken}, the number of steps of {stride} "
                f"in the mode {outer}"
            )
        result.append(Leaf(taken, stride * outer.stride))
        size, stride = size // taken, 1
        if size == 1:
            return result
    else:
        outer = modes[-1]
    return [*result, Leaf(size, stride * outer.stride)]


def _carry(modes: Sequence[Leaf], inner: CuteLayout) -> Unknown | None:
    """The reason why the offset of a sum is not the sum of offsets; `None` if it always is."""
    boundary = 1
    for mode in modes[:-1]:
        boundary *= mode.size
        highest = 0
        for size, stride in inner.leaves:
            extent = (size - 1) * stride
            highest += extent if extent < boundary else boundary - gcd(stride, boundary)
        if highest >= boundary:
            return Unknown(
                f"coordinates of {inner.affine} add up to {highest} and carry into the next mode "
                f"at {boundary}"
            )
    return None


def _is_composition(modes: Sequence[Leaf], inner: CuteLayout, result: CuteLayout) -> bool:
    """True if evaluation of all coordinates proves that `result` is the composition."""
    if inner.size > MAX_COMPARED:
        return False
    below, digits = 1, inner.offsets() * 0
    index = inner.offsets()
    for k, (size, stride) in enumerate(modes):
        digit = index // below
        digits += (digit if k == len(modes) - 1 else digit % size) * stride
        below *= size
    return bool((digits == result.offsets()).all())


def _divide_layout(layout: CuteLayout, tiler: CuteLayout) -> CuteLayout | Unknown:
    query = "cannot divide", layout, "by", tiler
    rest = complement(tiler, layout.size)
    if isinstance(rest, Unknown):
        return with_query(rest, *query)
    filled = 1
    for size, stride in _by_stride(tiler):
        if stride % filled:
            return Unknown(
                f"cannot divide {layout} by {tiler}: the tiles miss elements, because the stride "
                f"{stride} is not a multiple of {filled}, the extent of the modes with smaller "
                "strides"
            )
        filled = size * stride
    return with_query(_composition(layout, _pair(tiler, rest)), *query)


def _product(layout: CuteLayout, tiler: CuteLayout) -> CuteLayout | Unknown:
    query = "cannot multiply", layout, "by", tiler
    others = complement(layout.affine, layout.size * tiler.cosize)
    if isinstance(others, Unknown):
        return with_query(others, *query)
    copies = _composition(others, tiler)
    if isinstance(copies, Unknown):
        return with_query(copies, *query)
    return layout.with_affine(_pair(layout.affine, copies))


# ---------------------------------------------------------------- parts


def _by_mode(
    function: str, name: str, layout: CuteLayout, tiler: Tiler, operation: _Operation
) -> CuteLayout | Unknown:
    """Apply `operation` to the layout, or to each mode for which `tiler` has an entry.

    Args:
        function, name: the names of the public function and of its argument, for errors.
    """
    if isinstance(tiler, CuteLayout):
        return operation(layout, tiler)
    if not isinstance(tiler, list | tuple):
        try:
            size = index(tiler)  # type: ignore[arg-type]  # any object
        except TypeError:
            raise wrong_argument(function, name, CuteLayout | int, tiler) from None
        if size < 1:
            raise ValueError(f"{function}: the size in `{name}` must be positive, not {size}")
        return operation(layout, CuteLayout(size, 1))
    modes = layout.modes
    if len(tiler) > len(modes):
        return Unknown(f"{len(tiler)} tilers for the {len(modes)} modes of {layout}")
    results = []
    for mode, entry in zip(modes, tiler, strict=False):
        result = _by_mode(function, name, mode, entry, operation)
        if isinstance(result, Unknown):
            return result
        results.append(result)
    return layout.with_affine(_concatenate_modes([*results, *modes[len(tiler) :]]))


def _coalesce_leaves(leaves: Sequence[Leaf]) -> list[Leaf]:
    result: list[Leaf] = []
    for size, stride in leaves:
        if size == 1:
            continue
        if result and stride == result[-1].size * result[-1].stride:
            result[-1] = Leaf(result[-1].size * size, result[-1].stride)
        else:
            result.append(Leaf(size, stride))
    return result


def _by_stride(layout: CuteLayout) -> list[Leaf]:
    """The leaves that reach several offsets, by increasing stride."""
    several = [leaf for leaf in layout.leaves if leaf.size > 1 and leaf.stride]
    return sorted(several, key=lambda leaf: (leaf.stride, leaf.size))


def _of_leaves(leaves: Sequence[Leaf]) -> CuteLayout:
    """The layout of these modes: ``1:0`` without modes, ``n:d`` for one."""
    if len(leaves) < 2:
        return CuteLayout(*leaves[0]) if leaves else CuteLayout(1, 0)
    return CuteLayout(
        tuple([leaf.size for leaf in leaves]), tuple([leaf.stride for leaf in leaves])
    )


def _rebuild_form(shape: IntTuple, leaves: Iterator[list[Leaf]]) -> tuple[IntTuple, IntTuple]:
    """Shape and stride of the form of `shape`, with the next of `leaves` for each integer."""
    if isinstance(shape, int):
        layout = _of_leaves(next(leaves))
        return layout.shape, layout.stride
    pairs = [_rebuild_form(each, leaves) for each in shape]
    return tuple([size for size, _ in pairs]), tuple([stride for _, stride in pairs])


def _pair(first: CuteLayout, second: CuteLayout) -> CuteLayout:
    return _concatenate_modes([first, second])


def _concatenate_modes(modes: Sequence[CuteLayout]) -> CuteLayout:
    return CuteLayout(tuple([m.shape for m in modes]), tuple([m.stride for m in modes]))


def _not_affine(layout: CuteLayout) -> Unknown | None:
    if layout.swizzle is not None:
        return Unknown(
            f"{layout} has a swizzle, whose inverse or composition is no shape and stride; "
            "use its `map`, or `to_linear_layout`"
        )
    if layout.offset:
        return Unknown(f"{layout} has an offset of {layout.offset}; use its `map`")
    return None


def _negative(layout: CuteLayout) -> Unknown | None:
    for leaf in layout.leaves:
        if leaf.stride < 0 and leaf.size > 1:
            return Unknown(
                f"the stride {leaf.stride} of {int_tuple_text(layout.shape)} is negative"
            )
    return None
