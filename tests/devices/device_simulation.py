"""Simulation of collectives on arrays of provenance sets, independent of indexing maps.

Each device has an array of sets. The set of an element contains ``(device, *index)`` of every
original element that the element depends on. Collectives move and unite these sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.oracles import Pair

Provenance: TypeAlias = NDArray[Any]  # of frozensets of (device, *index)
Groups: TypeAlias = Sequence[Sequence[int]]


def fresh(count: int, dims: Sequence[int]) -> list[Provenance]:
    """For each of `count` devices, an array whose elements depend only on themselves."""
    arrays = []
    for device in range(count):
        array = np.empty(dims, object)
        for index in np.ndindex(*dims):
            array[index] = frozenset([(device, *index)])
        arrays.append(array)
    return arrays


def nothing(dims: Sequence[int]) -> Provenance:
    """An array whose elements depend on nothing, such as zeros."""
    array = np.empty(dims, object)
    for index in np.ndindex(*dims):
        array[index] = frozenset()
    return array


def unite(parts: Sequence[Provenance]) -> Provenance:
    """The reduction of arrays: each element depends on the elements at its index."""
    array = nothing(parts[0].shape)
    for index in np.ndindex(*array.shape):
        array[index] = frozenset().union(*[part[index] for part in parts])
    return array


def pairs_of(results: dict[int, Provenance]) -> set[Pair]:
    """Pairs ``((device, *index), (device, *index))`` of an element and one it depends on."""
    return {
        ((device, *index), origin)
        for device, array in results.items()
        for index in np.ndindex(*array.shape)
        for origin in array[index]
    }


def in_groups(
    groups: Groups,
    collective: Callable[[list[Provenance], int], Provenance],
    arrays: Sequence[Provenance],
) -> dict[int, Provenance]:
    """``collective(arrays of the group in order, own position)`` for each device of each group."""
    return {
        device: collective([arrays[member] for member in group], position)
        for group in groups
        for position, device in enumerate(group)
    }


def all_reduce(arrays: Sequence[Provenance], groups: Groups) -> dict[int, Provenance]:
    return in_groups(groups, lambda parts, _: unite(parts), arrays)


def all_gather(arrays: Sequence[Provenance], groups: Groups, axis: int) -> dict[int, Provenance]:
    return in_groups(groups, lambda parts, _: np.concatenate(parts, axis), arrays)


def reduce_scatter(
    arrays: Sequence[Provenance], groups: Groups, axis: int
) -> dict[int, Provenance]:
    return in_groups(
        groups, lambda parts, position: np.split(unite(parts), len(parts), axis)[position], arrays
    )


def all_to_all(arrays: Sequence[Provenance], groups: Groups, axis: int) -> dict[int, Provenance]:
    def exchange(parts: list[Provenance], position: int) -> Provenance:
        return np.concatenate([np.split(part, len(parts), axis)[position] for part in parts], axis)

    return in_groups(groups, exchange, arrays)


def all_to_all_of_tuples(
    arrays: Sequence[Provenance], groups: Groups, result: int, operand: int
) -> dict[int, Provenance]:
    """Result k of the device at position q is operand q of the device at position k."""

    def exchange(parts: list[Provenance], position: int) -> Provenance:
        return parts[result] if position == operand else nothing(parts[result].shape)

    return in_groups(groups, exchange, arrays)


def broadcast(arrays: Sequence[Provenance], groups: Groups) -> dict[int, Provenance]:
    return in_groups(groups, lambda parts, _: parts[0], arrays)


def permute(
    arrays: Sequence[Provenance], pairs: Sequence[tuple[int, int]]
) -> dict[int, Provenance]:
    return {target: arrays[source] for source, target in pairs}


# ---------------------------------------------------------------- device groups


def on_devices(groups: Groups, mode: str, replicas: int, partitions: int) -> list[list[int]]:
    """Groups of devices from groups of replicas, of partitions or of devices.

    Device r · partitions + p runs replica r of partition p.
    """
    match mode:
        case "replicas":
            return [[r * partitions + p for r in g] for g in groups for p in range(partitions)]
        case "partitions":
            return [[r * partitions + p for p in g] for g in groups for r in range(replicas)]
        case "replicas and partitions":
            return [[r * partitions + p for r, p in product(g, range(partitions))] for g in groups]
        case "devices":
            return [list(group) for group in groups]
    raise AssertionError(mode)
