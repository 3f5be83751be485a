"""Names of loops: loops over one dimension of an array have one name and one step.

``k`` is the loop over a reduced or contracted dimension, ``w`` one over a window, and ``c`` one
that runs only within the iterations of others, as that over the features of an attention.  Several
have numbers: ``k0, k1, …``.  ``d1`` is dimension 1 of the result, which a block may walk serially.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo.text.names import did_you_mean, similar
from indexing.tiling.loops.loop_model import LoopModel

LoopSizes = Mapping[str, int] | Sequence[int]


@dataclass(frozen=True, slots=True)
class LoopName:
    """Loops that have one step.

    Attributes:
        name: the name.
        size: the number of elements.
        axes: the axes of the loops.
        instructions: the names of their instructions.
    """

    name: str
    size: int
    axes: tuple[int, ...]
    instructions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({self.size:,} of {', '.join(self.instructions)})"


def named_loops(model: LoopModel) -> tuple[LoopName, ...]:
    """Return the loops by name, in the order of `LoopModel.loops`."""
    groups = _tie_axes(model)
    letters = [_letter(model, group[0]) for group in groups]
    names: list[LoopName] = []
    for k, (group, letter) in enumerate(zip(groups, letters, strict=True)):
        number = str(letters[:k].count(letter)) if letters.count(letter) > 1 else ""
        owners = [model.loops[axis - model.rank].array.instruction.name for axis in group]
        names.append(
            LoopName(letter + number, model.sizes[group[0]], group, tuple(dict.fromkeys(owners)))
        )
    return tuple(names)


def _letter(model: LoopModel, axis: int) -> str:
    loop = model.loops[axis - model.rank]
    (own, _) = model.graph.loop_table[loop.array][loop.number]
    if not any(axis in nest.loops for nest in model.nests):
        return "c"
    return "w" if own.is_window else "k"


def _tie_axes(model: LoopModel) -> list[tuple[int, ...]]:
    """Return the axes in groups: loops that run over the same dimension of one array."""
    first: dict[object, int] = {}
    parent = {model.rank + k: model.rank + k for k in range(len(model.loops))}

    def root(axis: int) -> int:
        while parent[axis] != axis:
            axis = parent[axis]
        return axis

    for axis in parent:  # loops of one element are constants in the maps
        if model.sizes[axis] == 1:
            parent[axis] = first.setdefault(_letter(model, axis), axis)
    axis_of = {loop.variable.name: model.rank + k for k, loop in enumerate(model.loops)}
    for node in model.graph.nodes():
        if node.map is None:
            continue
        for place, result in enumerate(node.map.results):
            variable = result.as_variable
            here = None if variable is None else axis_of.get(variable.name)
            if here is not None:
                other = first.setdefault((node.array, place), here)
                if model.sizes[other] == model.sizes[here]:
                    low, high = sorted((root(other), root(here)))
                    parent[high] = low
    groups: dict[int, list[int]] = {}
    for axis in parent:
        groups.setdefault(root(axis), []).append(axis)
    return [tuple(group) for group in groups.values()]


class ChosenSteps:
    """The step of each axis, and the axes that blocks walk serially.

    Args:
        model: the nests.
        sizes: the tile size of each dimension of the result.
        loop_sizes: steps by the name of a loop, of an instruction, or of a dimension; or one for
            each name of a loop, or for each loop.
    Raises:
        ValueError: there is no such loop, or a size is not positive.

    Attributes:
        steps: the step of each axis.
        serial: the parallel axes that are walked serially.
    """

    def __init__(self, model: LoopModel, sizes: Sequence[int], loop_sizes: LoopSizes) -> None:
        self._names = named_loops(model)
        self.steps = [*sizes, *model.sizes[model.rank :]]
        self.serial: frozenset[int] = frozenset()
        self._model = model
        if isinstance(loop_sizes, Mapping):
            for name, size in loop_sizes.items():
                for axis in self._axes(name):
                    self.steps[axis] = _positive(name, size)
        else:
            self._set_all(tuple(loop_sizes))

    def _set_all(self, given: tuple[int, ...]) -> None:
        axes = [name.axes for name in self._names]
        outer = [name.axes for name in self._names if not name.name.startswith("c")]
        if len(given) == len(outer):
            axes = outer
        if len(given) != len(axes):
            axes = [(axis,) for name in self._names for axis in name.axes]
            axes.sort()
        if len(given) != len(axes):
            listed = "; ".join(map(str, self._names)) or "none"
            raise ValueError(
                f"loop_sizes={given}: expected {len(self._names)} sizes, one for each loop: "
                f"{listed}"
            )
        for group, size in zip(axes, given, strict=True):
            for axis in group:
                self.steps[axis] = _positive("loop_sizes", size)

    def _axes(self, name: str) -> tuple[int, ...]:
        for known in self._names:
            if name == known.name:
                return known.axes
        owned = [known for known in self._names if name in known.instructions]
        if len(owned) == 1:
            return owned[0].axes
        dimension = re.fullmatch(r"d(\d{1,3})", name)
        if dimension and int(dimension[1]) < self._model.rank:
            axis = int(dimension[1])
            if self.steps[axis] < self._model.sizes[axis]:
                raise ValueError(
                    f"{name!r} is walked serially: its tile has {self.steps[axis]} of "
                    f"{self._model.sizes[axis]} elements; write the whole dimension in sizes"
                )
            self.serial |= {axis}
            return (axis,)
        words = [known.name for known in self._names]
        question = did_you_mean(similar(name, words))
        listed = "; ".join(map(str, self._names)) or "none"
        message = f"no loop {name!r}: the loops are {listed}"
        raise ValueError(f"{message}; {question}" if question else message)


def _positive(name: str, size: int) -> int:
    if size < 1:
        raise ValueError(f"{name}={size}: a step is at least 1")
    return size
