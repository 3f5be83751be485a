"""Meshes whose axes are used whole, made of meshes of which parts of axes are used.

>>> refined = RefinedMesh.of(Mesh.of({"x": 8, "y": 2}), [Axis("x", 2, 2)])
>>> refined.mesh.sizes
{'x:(1)2': 2, 'x:(2)2': 2, 'x:(4)2': 2, 'y': 2}
>>> refined.names(Axis("x", 2, 2)), refined.names(Axis("x"))
(('x:(2)2',), ('x:(1)2', 'x:(2)2', 'x:(4)2'))
>>> print(*refined.merge_parts(["x:(2)2", "x:(4)2", "y"]))
x:(2)4 y
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.sharding.planning.array_splits import ArraySplit, AxisNames, Partial


@dataclass(frozen=True, slots=True)
class RefinedMesh:
    """A mesh, and the same devices along parts of its axes.

    Attributes:
        original: the mesh.
        parts: the parts of its axes, major to minor.
        mesh: the mesh whose axes are these parts, named by their texts.
    """

    original: Mesh
    parts: tuple[Axis, ...]
    mesh: Mesh

    @classmethod
    def of(cls, original: Mesh, used: Iterable[Axis]) -> RefinedMesh:
        """Return the coarsest refinement in which the `used` axes are unions of parts."""
        parts = original.parts(used)
        sizes = {str(part): original.size_of(part) for part in parts}
        return cls(original, parts, Mesh.of(sizes, original.devices))

    def names(self, axis: Axis) -> AxisNames:
        """Return the parts of an axis, major to minor."""
        start, end = self.original.split(axis)
        return tuple(
            [
                str(part)
                for part in self.parts
                if part.name == axis.name and start <= part.pre_size
                and self.original.split(part)[1] <= end
            ]
        )  # fmt: skip

    def merge_parts(self, names: Iterable[str]) -> tuple[Axis, ...]:
        """Return axes of the original mesh; consecutive parts of one axis become one."""
        by_name = {str(part): part for part in self.parts}
        axes: list[Axis] = []
        for part in [by_name[name] for name in names]:
            last = axes[-1] if axes else None
            if last and last.name == part.name and self.original.split(last)[1] == part.pre_size:
                size = self.original.size_of(last) * self.original.size_of(part)
                axes[-1] = Axis(part.name, last.pre_size, size)
            else:
                axes.append(part)
        sizes = self.original.sizes
        return tuple([Axis(a.name) if a.size == sizes[a.name] else a for a in axes])

    def split(self, sharding: Sharding) -> ArraySplit:
        """Return the split of a sharding on the original mesh along the parts."""
        dims = tuple(
            [tuple([n for axis in axes for n in self.names(axis)]) for axes in sharding.dims]
        )
        partial: Partial = tuple(
            [(name, kind) for axis, kind in sharding.partial for name in self.names(axis)]
        )
        return ArraySplit(dims, tuple(sorted(partial)))

    def sharding(self, refined: Sharding) -> Sharding:
        """Return a sharding on the refined mesh as one on the original mesh."""
        dims = tuple([self.merge_parts(axis.name for axis in axes) for axes in refined.dims])
        order = [str(part) for part in self.parts]
        by_kind: dict[str, list[str]] = {}
        for axis, kind in sorted(refined.partial, key=lambda pair: order.index(pair[0].name)):
            by_kind.setdefault(kind, []).append(axis.name)
        partial = [(a, kind) for kind, names in by_kind.items() for a in self.merge_parts(names)]
        return Sharding(self.original, dims, tuple(partial))
