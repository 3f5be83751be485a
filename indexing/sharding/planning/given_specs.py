"""The specs that a user gives: checked against the program and the mesh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.shardings import sharding_of
from hlo.shapes.shape import OpaqueShape, Shape, leaves
from hlo.shardings.mesh import Axis, Mesh, axis_fault
from hlo.shardings.sharding import Sharding
from hlo.shardings.short_notation import Spec, parse_spec
from hlo.text.names import UnknownName
from hlo.text.source import HloError, Span

ShardingSpec: TypeAlias = Spec | Sharding
"""The axes of each dimension, in a short notation, or a sharding."""

MeshSpec: TypeAlias = Mesh | Mapping[str, int] | str
"""A mesh, the sizes of its axes by name, or a text such as ``x=4,y=2``."""

_LEAF: Final = re.compile(r"(?P<name>.*?)(?:\{(?P<path>[\d,\s]*)\})?", re.DOTALL)
_NUMBERED: Final = re.compile(r"p(\d+)")


def argument_numbers(parameters: Sequence[Instruction]) -> dict[str, int]:
    """Return the number of each parameter by the name of its argument in JAX, such as ``p['q']``.

    JAX writes it as ``op_name``.  A name that several parameters have is left out.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p.1 = f32[2] parameter(0), metadata={op_name="p['q']"}
    ...   ROOT x.1 = f32[2] parameter(1), metadata={op_name="x"} }''').entry
    >>> argument_numbers(entry.parameters)
    {"p['q']": 0, 'x': 1}
    """
    names = [parameter.source.op_name for parameter in parameters]
    return {name: k for k, name in enumerate(names) if name and names.count(name) == 1}


@dataclass(frozen=True, slots=True)
class GivenSpecs:
    """The shardings that a user gives, on the mesh as given.

    Attributes:
        mesh: the mesh.
        leaves: the sharding of the leaves of instructions: instruction and number of the leaf.
        results: for each leaf of the result, its sharding, or None if it is free.
        replicated: for leaves of instructions, axes that must not be used on them.
    """

    mesh: Mesh
    leaves: Mapping[tuple[Instruction, int], Sharding]
    results: tuple[Sharding | None, ...]
    replicated: Mapping[tuple[Instruction, int], tuple[Axis, ...]]

    @property
    def axes(self) -> Iterator[Axis]:
        """All axes that the shardings use."""
        results = [sharding for sharding in self.results if sharding is not None]
        for sharding in (*self.leaves.values(), *results):
            yield from [axis for axes in sharding.dims for axis in axes]
            yield from [axis for axis, _ in sharding.partial]
        for axes in self.replicated.values():
            yield from axes


def mesh_of_spec(mesh: MeshSpec) -> Mesh:
    """Return the mesh that a user gives.

    Raises:
        HloError: a text has another form.
        ValueError: a size is not a positive integer.
    """
    if isinstance(mesh, Mesh):
        return mesh
    if isinstance(mesh, str):
        return Mesh.parse(mesh)
    for name, size in mesh.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(
                f"shard: the size of mesh axis `{name}` must be a positive integer, not {size!r}"
            )
    return Mesh.of(mesh)


def given_specs(
    module: Module,
    original: Computation,
    names: Mapping[str, str],
    mesh: Mesh,
    specs: Mapping[str, ShardingSpec],
    out_specs: Sequence[ShardingSpec | None] | None,
    replicated: Mapping[str, Sequence[str]],
    manual_axes: Sequence[str],
) -> GivenSpecs:
    """Return the given shardings of a flattened program.

    Args:
        module: the flattened program.
        original: the computation of which it was made: errors name its places.
        names: the names in the program of the values of this computation.
        mesh, specs, out_specs, replicated, manual_axes: the arguments of `shard`.
    Raises:
        UnknownName: no parameter or instruction has such a name.
        HloError: a spec does not fit an array, or its text is invalid, or the array has a sharding
            among its attributes that does not fit.
        ValueError: an axis does not exist, or is used twice.
    """
    for name in manual_axes:
        _check_axis(mesh, name, "manual_axes")
    reader = _SpecReader(module, original, names, mesh)
    given = {}
    for key, spec in specs.items():
        leaf = reader.leaf(key)
        if leaf in given:
            raise ValueError(f"shard: `{key}` names `{leaf[0].name}`, which has a spec already")
        reader.check_stated(leaf[0])
        given[leaf] = reader.sharding(key, spec, leaf)
        _check_not_manual(key, given[leaf], manual_axes)
    results: tuple[Sharding | None, ...] = ()
    if out_specs is not None:
        results = tuple(reader.results(out_specs))
        for number, sharding in enumerate(results):
            if sharding is not None:
                reader.check_stated(module.entry.root)
                _check_not_manual(f"result {number}", sharding, manual_axes)
    closed = {}
    for key, excluded in replicated.items():
        for name in excluded:
            _check_axis(mesh, name, f"replicated[{key!r}]")
        leaf = reader.leaf(key)
        reader.check_stated(leaf[0])
        closed[leaf] = tuple(map(Axis, excluded))
    _check_closed(given, closed)
    return GivenSpecs(mesh, given, results, closed)


def _check_axis(mesh: Mesh, name: str, where: str) -> None:
    fault, repair = axis_fault(mesh, Axis(name))
    if fault:
        raise ValueError(f"shard: {where}: {fault}{f'; {repair}' if repair else ''}")


def _check_not_manual(key: str, sharding: Sharding, manual_axes: Sequence[str]) -> None:
    used = {axis.name for axes in sharding.dims for axis in axes}
    for name in manual_axes:
        if name in used:
            raise ValueError(
                f"shard: the spec of `{key}` uses axis `{name}`, which is manual: the program "
                "itself distributes arrays along it"
            )


def _check_closed(
    given: Mapping[tuple[Instruction, int], Sharding],
    closed: Mapping[tuple[Instruction, int], Iterable[Axis]],
) -> None:
    for leaf, axes in closed.items():
        sharding = given.get(leaf)
        used = {a.name for each in sharding.dims for a in each} if sharding else set()
        for axis in axes:
            if axis.name in used:
                raise ValueError(
                    f"shard: the spec of `{leaf[0].name}` uses axis `{axis.name}`, "
                    "which `replicated` excludes"
                )


class _SpecReader:
    """Reads specs of a program, and names the places of faults in the original program."""

    def __init__(
        self, module: Module, original: Computation, names: Mapping[str, str], mesh: Mesh
    ) -> None:
        self.module, self.original, self.names, self.mesh = module, original, names, mesh

    def _span(self, instruction: Instruction) -> Span:
        return (self._original(instruction) or self.original.root).span

    def _original(self, instruction: Instruction) -> Instruction | None:
        """Return the instruction of the original program; None for one of a computation inside."""
        if instruction.opcode == "parameter":
            return self.original.parameters[self.module.entry.parameters.index(instruction)]
        return next((each for each in self.original if each.name == instruction.name), None)

    def check_stated(self, instruction: Instruction) -> None:
        """Refuse a spec of an array whose own sharding, among its attributes, does not fit it."""
        root = self.module.entry.root
        original = self.original.root if instruction is root else self._original(instruction)
        if original is None:
            return
        try:
            sharding_of(original)
        except HloError as error:
            raise HloError(
                f"`{original.name}` cannot be given a spec: its attributes state a sharding that "
                "does not fit",
                error.span,
                "sharding",
                error.label,
                help="remove this sharding from the attributes, or repair it",
            ) from None

    def leaf(self, key: str) -> tuple[Instruction, int]:
        """Return the instruction and the leaf that a key names."""
        match = _LEAF.fullmatch(key)
        assert match is not None
        instruction = self._instruction(match["name"])
        paths = [path for path, _ in leaves(instruction.shape)]
        if match["path"] is None:
            if len(paths) == 1:
                return instruction, 0
            raise HloError(
                f"`{instruction.name}` is a tuple of {len(paths)} leaves: name one of them",
                self._span(instruction),
                "sharding",
                help=f"write `{key}{{{','.join(map(str, paths[0]))}}}`" if paths else "",
            )
        path = tuple([int(number) for number in match["path"].split(",") if number.strip()])
        if path not in paths:
            message = f"`{match['name']}` has no leaf {{{match['path']}}}"
            raise HloError(message, self._span(instruction), "sharding")
        return instruction, paths.index(path)

    def _instruction(self, name: str) -> Instruction:
        entry = self.module.entry
        by_name = {instruction.name: instruction for instruction in entry.instructions}
        if (own := self.names.get(name, name)) in by_name:
            return by_name[own]
        numbered = _NUMBERED.fullmatch(name)
        if numbered and int(numbered[1]) < len(entry.parameters):
            return entry.parameters[int(numbered[1])]
        number = argument_numbers(self.original.parameters).get(name)
        if number is not None:
            return entry.parameters[number]
        parameters = [parameter.name for parameter in entry.parameters]
        raise UnknownName(name, "parameter", [*parameters, *by_name])

    def sharding(self, key: str, spec: ShardingSpec, leaf: tuple[Instruction, int]) -> Sharding:
        """Return the sharding that a spec gives to a leaf."""
        shape = leaves(leaf[0].shape)[leaf[1]][1]
        return self._fitting(f"the spec of `{key}`", spec, shape, leaf[0])

    def results(self, out_specs: Sequence[ShardingSpec | None]) -> Iterator[Sharding | None]:
        """Yield the sharding of each array of the result."""
        root = self.module.entry.root
        shapes = [shape for _, shape in leaves(root.shape)]
        if len(out_specs) != len(shapes):
            raise HloError(
                f"out_specs has {len(out_specs)} entries, `{root.name}` has arrays: {len(shapes)}",
                self._span(root),
                "sharding",
                help="give one spec for each array of the result; None for one that is free",
            )
        for number, (spec, shape) in enumerate(zip(out_specs, shapes, strict=True)):
            owner = f"the spec of result {number}"
            yield None if spec is None else self._fitting(owner, spec, shape, root)

    def _fitting(
        self, owner: str, spec: ShardingSpec, shape: Shape | OpaqueShape, instruction: Instruction
    ) -> Sharding:
        rank = shape.rank if isinstance(shape, Shape) else 0
        sharding = self._parse_spec(owner, spec)
        if sharding.partial:
            raise ValueError(f"shard: {owner} has partial values: {sharding}; give whole values")
        if len(sharding.dims) > rank:
            count = len(sharding.dims)
            raise HloError(
                f"{owner} has {count} {'entry' if count == 1 else 'entries'}, but {shape} has "
                f"rank {rank}",
                self._span(instruction),
                "sharding",
                help="give at most one entry for each dimension: `_`, or None, if it is not split",
            )
        return Sharding(self.mesh, (*sharding.dims, *((),) * (rank - len(sharding.dims))))

    def _parse_spec(self, owner: str, spec: ShardingSpec) -> Sharding:
        if isinstance(spec, Sharding):
            if spec.mesh != self.mesh:
                raise ValueError(f"shard: {owner} has the mesh {spec.mesh}, not {self.mesh}")
            return spec
        try:
            return parse_spec(spec, self.mesh)
        except ValueError as error:
            text = str(error).removeprefix("parse_spec: ").removeprefix("Sharding: ")
            raise ValueError(f"shard: {owner}: {text}") from None
