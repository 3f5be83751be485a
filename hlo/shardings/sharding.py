"""The distribution of an array over a mesh.

Source: Shardy ``docs/sharding_representation.md``; XLA ``xla/hlo/ir/hlo_sharding.h``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal, TypeAlias

from hlo import methods
from hlo.arguments import checked_constructor
from hlo.shardings.mesh import Axis, Mesh, axis_fault, overlap_fault

Version: TypeAlias = Literal[1, 2, 3]
"""A notation of HLO: 1 lists devices, 2 transposes an iota, 3 names the axes of a mesh."""

REDUCTIONS: Final = ("sum", "prod", "max", "min", "and", "or")
"""The reductions that combine partial values."""


@dataclass(frozen=True, slots=True)
class Hints:
    """The contents of a text beside the distribution, for propagation and for printing.

    Attributes:
        open_dims: the dimensions that propagation may split further.
        priorities: dimensions with the priority of their axes in propagation; 0 is the highest.
        replicated: the axes that propagation must leave unused.
        is_unknown: True if the text leaves the distribution to the compiler: ``{unknown}``.
        any_rank: True if the text names no dimensions, such as ``{replicated}``.
        group: the instructions that are distributed alike: ``shard_as 1`` or ``shard_like 1``.
        metadata: the text of ``metadata={...}`` inside the braces.
        version: the notation of HLO; None for a text of Shardy.
        lists_devices: True if a named mesh lists its devices, although they are a permuted iota.
        mesh_name: the name that a text of Shardy gives the mesh; empty for a mesh in place.
    """

    open_dims: tuple[int, ...] = ()
    priorities: tuple[tuple[int, int], ...] = ()
    replicated: tuple[Axis, ...] = ()
    is_unknown: bool = False
    any_rank: bool = False
    group: str = ""
    metadata: str = ""
    version: Version | None = None
    lists_devices: bool = False
    mesh_name: str = ""


@checked_constructor
@dataclass(frozen=True, slots=True)
class Sharding:
    """How the elements of one array are distributed over a mesh.

    A dimension of size s split into n shards has shards of ``ceil(s / n)`` elements; the last ones
    may be shorter or empty.  Axes that nothing names replicate.

    Attributes:
        mesh: the mesh. One device without axes holds the whole array (HLO's ``maximal``); a mesh
            without axes and devices stands for any devices.
        dims: the axes that split each dimension, major to minor.
        partial: the axes along which devices hold partial values, each with the reduction that
            combines them: "sum", "max", "min", "and", "or", "prod".
        manual: the axes of a manual region: along them each device has an array of its own.
        hints: the contents of a text beside the distribution. Equality ignores them.

    >>> sharding = Sharding(Mesh.of({"x": 4, "y": 2}), ((Axis("x"),), ()))
    >>> print(sharding)
    [x, _]
    >>> sharding.local_dims((10, 3))
    (3, 3)
    >>> sharding.to_hlo(), sharding.to_hlo(3)
    ('{devices=[4,1,2]<=[8] last_tile_dim_replicate}', "{mesh['x'=4,'y'=2], [{'x'}, {}]}")
    """

    mesh: Mesh
    dims: tuple[tuple[Axis, ...], ...]
    partial: tuple[tuple[Axis, str], ...] = ()
    manual: tuple[Axis, ...] = ()
    hints: Hints = field(default=Hints(), compare=False)

    def __post_init__(self) -> None:
        used = tuple(self.axes())
        for axis in used:
            if fault := axis_fault(self.mesh, axis)[0]:
                raise ValueError(f"Sharding: {fault}")
        if overlap := overlap_fault(self.mesh, used):
            raise ValueError(f"Sharding: {overlap[2]}")
        for _, kind in self.partial:
            if kind not in REDUCTIONS:
                raise ValueError(f"Sharding: {kind!r} is not one of {', '.join(REDUCTIONS)}")

    def axes(self) -> Iterator[Axis]:
        """Yield the axes that are named: of the dimensions, partial, manual and kept replicated.

        >>> mesh = Mesh.of({"x": 4, "y": 2, "z": 2})
        >>> print(*Sharding(mesh, ((Axis("x"),), ()), partial=((Axis("z"), "sum"),)).axes())
        x z
        """
        for axes in self.dims:
            yield from axes
        yield from [axis for axis, _ in self.partial]
        yield from self.manual
        yield from self.hints.replicated

    def __str__(self) -> str:
        dims = ", ".join(
            "_" if not axes else str(axes[0]) if len(axes) == 1 else f"({','.join(map(str, axes))})"
            for axes in self.dims
        )
        partial = "".join(f" {kind}({axis})" for axis, kind in self.partial)
        manual = f" manual({','.join(map(str, self.manual))})" if self.manual else ""
        return f"[{dims}]{partial}{manual}"

    def to_hlo(self, version: Version | None = None) -> str:
        """Return HLO's text; raise `ValueError` if the notation cannot express the sharding.

        Args:
            version: the notation; by default that of the text it was read from, otherwise 2.

        >>> x = Sharding(Mesh.of({"x": 2, "y": 2}, [0, 2, 1, 3]), ((Axis("x"), Axis("y")),))
        >>> x.to_hlo(1), x.to_hlo(2)
        ('{devices=[4]0,2,1,3}', '{devices=[4]<=[2,2]T(1,0)}')
        """
        text: str = methods.hlo_text(self, version)
        return text

    def to_shardy(self, mesh: str = "") -> str:
        """Return Shardy's text, with the mesh in place or by its name.

        >>> Sharding(Mesh.of({"x": 4, "y": 2}), ((Axis("x"),), ())).to_shardy("mesh")
        '#sdy.sharding<@mesh, [{"x"}, {}]>'
        """
        text: str = methods.shardy_text(self, mesh)
        return text

    def shards(self, dimension: int) -> int:
        """Return the number of shards along a dimension.

        >>> import hlo
        >>> from hlo.shardings.short_notation import parse_spec
        >>> sharding = parse_spec("(x,y),_", hlo.Mesh.of({"x": 4, "y": 2}))
        >>> sharding.shards(0), sharding.shards(1)
        (8, 1)
        """
        return prod(self.mesh.size_of(axis) for axis in self.dims[dimension])

    def local_dims(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the sizes of a shard, padding included, of an array with these sizes.

        >>> import hlo
        >>> from hlo.shardings.short_notation import parse_spec
        >>> parse_spec("x,_", hlo.Mesh.of({"x": 4})).local_dims((10, 7))  # the last one is padded
        (3, 7)
        """
        return tuple(-(-size // self.shards(k)) for k, size in enumerate(dims))

    def number(self, device: int, dimension: int) -> int:
        """Return the number of the shard along a dimension that a device holds.

        >>> sharding = Sharding(Mesh.of({"x": 4, "y": 2}), ((Axis("x"),), ()))
        >>> sharding.number(5, 0), sharding.number(5, 1)  # device 5 is at x = 2, y = 1
        (2, 0)
        """
        return self.mesh.number(device, self.dims[dimension])

    def same_distribution(self, other: Sharding) -> bool:
        """Return True if each device holds the same, for arrays of any size.

        The number of each device's shard is compared, which devices hold the same values, and
        which devices' partial values are combined. Notation, hints and names of axes do not count.

        >>> mesh = Mesh.of({"x": 8})
        >>> whole = Sharding(mesh, ((Axis("x"),),))
        >>> parts = Sharding(mesh, ((Axis("x", 1, 2), Axis("x", 2, 4)),))
        >>> whole == parts, whole.same_distribution(parts)
        (False, True)
        """
        return self._content(other.mesh) == other._content(self.mesh)

    def _content(self, other: Mesh) -> tuple[object, ...]:
        """Return what each device holds; a mesh of any devices has those of `other`."""
        devices = self.mesh.devices or other.devices
        shards = [self._column(axes, len(devices)) for axes in self.dims]
        kinds = {kind: [a for a, each in self.partial if each == kind] for _, kind in self.partial}
        kinds["manual"] = list(self.manual)
        columns = {kind: self._column(axes, len(devices)) for kind, axes in kinds.items()}
        present = [kind for kind, column in columns.items() if any(column)]
        combined = {
            kind: _groups(devices, [*shards, *[columns[k] for k in present if k != kind]])
            for kind in present
        }
        held = dict(zip(devices, zip(*shards, strict=True), strict=True)) if shards else {*devices}
        counts = tuple(self.shards(k) for k in range(len(self.dims)))
        equal = _groups(devices, [*shards, *[columns[kind] for kind in present]])
        return counts, held, equal, combined

    def _column(self, axes: Sequence[Axis], count: int) -> list[int]:
        """Return the number of each of `count` devices along axes."""
        return list(map(int, self.mesh.numbers(axes))) if self.mesh.devices else [0] * count


def _groups(devices: Sequence[int], columns: Sequence[Sequence[int]]) -> set[frozenset[int]]:
    """Return the groups of devices that have the same numbers."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, device in enumerate(devices):
        groups.setdefault(tuple([column[k] for column in columns]), []).append(device)
    return set(map(frozenset, groups.values()))
