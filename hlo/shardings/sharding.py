"""The distribution of an array over a mesh.

Source: Shardy ``docs/sharding_representation.md``; XLA ``xla/hlo/ir/hlo_sharding.h``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hlo.arguments import checked_constructor
from hlo.shardings.mesh import Axis, Mesh


@checked_constructor
@dataclass(frozen=True, slots=True)
class Sharding:
    """How the elements of one array are distributed over a mesh.

    A dimension of size s split into n shards has shards of ``ceil(s / n)`` elements; the last ones
    may be shorter or empty.  Axes that nothing names replicate.

    Attributes:
        mesh: the mesh.
        dims: the axes that split each dimension, major to minor.
        partial: the axes along which devices hold partial values, each with the reduction that
            combines them: "sum", "max", "min", "and", "or", "prod".

    >>> sharding = Sharding(Mesh.of({"x": 4, "y": 2}), ((Axis("x"),), ()))
    >>> print(sharding)
    [x, _]
    >>> sharding.local_dims((10, 3))
    (3, 3)
    """

    mesh: Mesh
    dims: tuple[tuple[Axis, ...], ...]
    partial: tuple[tuple[Axis, str], ...] = ()

    def __str__(self) -> str:
        dims = ", ".join(
            "_" if not axes else str(axes[0]) if len(axes) == 1 else f"({','.join(map(str, axes))})"
            for axes in self.dims
        )
        partial = "".join(f" {kind}({axis})" for axis, kind in self.partial)
        return f"[{dims}]{partial}"

    def shards(self, dimension: int) -> int:
        """Return the number of shards along a dimension."""
        return prod(self.mesh.size_of(axis) for axis in self.dims[dimension])

    def local_dims(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes of a shard, padding included, of an array with these sizes."""
        return tuple(-(-size // self.shards(k)) for k, size in enumerate(dims))

    def number(self, device: int, dimension: int) -> int:
        """Return the number of the shard along a dimension that a device holds."""
        return self.mesh.number(device, self.dims[dimension])
