"""The sizes and steps that a search for tilings with loops tries, axis by axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexing.tiling.loops.dot_tiles import has_dots
from indexing.tiling.loops.loop_model import LoopModel
from indexing.tiling.loops.loop_names import LoopName, named_loops
from indexing.tiling.loops.nests import axes_of

MAX_NESTED: Final = 256
"""Most elements of a loop that runs within others for which the whole is the only step tried."""


@dataclass(frozen=True, slots=True)
class SizeChoices:
    """The sizes to try along axes that have one size.

    Attributes:
        axes: the axes.
        sizes: the sizes, the coarsest first.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]


def powers(size: int, least: int = 1, most: int | None = None) -> tuple[int, ...]:
    """Return the whole size and powers of two below it, the coarsest first.

    >>> powers(20), powers(64, 16), powers(20, 1, 8)
    ((20, 16, 8, 4, 2, 1), (64, 32, 16), (8, 4, 2, 1))
    """
    sizes = [1 << k for k in range(size.bit_length()) if least <= 1 << k < size]
    if most is not None:
        sizes = [n for n in sizes if n <= most]
    if most is None or size <= most or not sizes:
        sizes.append(size)
    return tuple(sizes[::-1])


def choices_of(
    model: LoopModel,
    sizes: Sequence[Sequence[int]] | None,
    loop_sizes: Mapping[str, Sequence[int]] | Sequence[Sequence[int]] | None,
) -> list[SizeChoices]:
    """Return the sizes to try along each dimension, then along each loop."""
    names = named_loops(model)
    given: Mapping[str, Sequence[int]]
    if isinstance(loop_sizes, Mapping):
        given = loop_sizes
    else:
        given = dict(zip([each.name for each in names], loop_sizes or (), strict=False))
    is_known = {each.name for each in names}.issuperset(given)
    has_surplus = len(loop_sizes or ()) > len(names)
    has_all = sizes is None or len(sizes) == model.rank
    if not (is_known and has_all) or has_surplus:
        listed = "; ".join(map(str, names)) or "none"
        raise ValueError(
            f"expected sizes for each of {model.rank} dimensions and loops of {listed}, got "
            f"sizes={sizes} and loop_sizes={loop_sizes}"
        )
    choices = [
        SizeChoices((k,), _dimension_choice(model, k, None if sizes is None else sizes[k]))
        for k in range(model.rank)
    ]
    return choices + [SizeChoices(name.axes, _loop_choice(name, given)) for name in names]


def _dimension_choice(model: LoopModel, axis: int, given: Sequence[int] | None) -> tuple[int, ...]:
    size = model.sizes[axis]
    if given is not None:
        return tuple(sorted({min(size, n) for n in given}, reverse=True))
    return (1,) if has_dots(model) and _is_batch(model, axis) else powers(size)


def _loop_choice(name: LoopName, given: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    if name.name in given:
        return tuple(sorted({min(name.size, n) for n in given[name.name]}, reverse=True))
    if name.name.startswith("c"):
        return powers(name.size, MAX_NESTED, MAX_NESTED)
    if name.name.startswith("w"):  # other steps of windows with strides are no progressions
        return tuple([step for step in powers(name.size) if name.size % step == 0])
    return powers(name.size)


def _is_batch(model: LoopModel, axis: int) -> bool:
    """Return True if tiles of one index along a dimension read nothing twice, in any array.

    All reads depend on the dimension, so that coarser tiles load as much, and hold more.
    """
    reads = [read for nest in model.nests for read in nest.reads]
    minor = axis == model.rank - 1
    return not minor and all(axis in axes_of(read.read) for read in reads)
