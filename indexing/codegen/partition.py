"""Whether the maps of an op that moves elements say for each element where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from indexing.codegen.values import Value
from indexing.maps.indexing_map import IndexingMap


def check_partition(value: Value, maps: Sequence[IndexingMap]) -> None:
    """Every element is read from just one place: the domains are boxes that make up the whole."""
    boxes = [[v.bounds for v in found.dims] for found in maps]
    sizes = [prod(upper - lower + 1 for lower, upper in box) for box in boxes]
    plain = not any(not c.is_true for found in maps for c in found.constraints)
    if (
        plain
        and sum(sizes) == value.shape.size
        and not any(
            all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(one, other, strict=True))
            for k, one in enumerate(boxes)
            for other in boxes[:k]
        )
    ):
        return
    name = value.instruction.name
    raise ValueError(f"the maps of `{name}` do not say for each element what it is")
