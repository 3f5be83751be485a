"""Collectives played through in plain Python, on devices that hold where their elements come from.

A device holds an array of sets: for each element the pairs (device, index) of what it is made of.
Nothing here knows of maps: moving the sets from device to device says which element needs which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.oracles import Pair

Held: TypeAlias = NDArray[Any]  # of frozensets of (device, index)
Groups: TypeAlias = Sequence[Sequence[int]]


def fresh(count: int, dims: Sequence[int]) -> list[Held]:
    """On each device an array whose elements are themselves."""
    found = []
    for device in range(count):
        held = np.empty(dims, object)
        for index in np.ndindex(*dims):
            held[index] = frozenset([(device, *index)])
        found.append(held)
    return found


def nothing(dims: Sequence[int]) -> Held:
    """Zeros: elements made of nothing."""
    held = np.empty(dims, object)
    for index in np.ndindex(*dims):
        held[index] = frozenset()
    return held


def together(parts: Sequence[Held]) -> Held:
    """A reduction: each element is made of what any of the parts has there."""
    held = nothing(parts[0].shape)
    for index in np.ndindex(*held.shape):
        held[index] = frozenset().union(*[part[index] for part in parts])
    return held


def pairs_of(results: dict[int, Held]) -> set[Pair]:
    """Which element of which device needs which."""
    return {
        ((device, *index), origin)
        for device, held in results.items()
        for index in np.ndindex(*held.shape)
        for origin in held[index]
    }


def in_groups(
    groups: Groups, play: Callable[[list[Held], int], Held], held: Sequence[Held]
) -> dict[int, Held]:
    """What ``play(the group's arrays in order, own place)`` gives each device of each group."""
    return {
        device: play([held[member] for member in group], place)
        for group in groups
        for place, device in enumerate(group)
    }


def all_reduce(held: Sequence[Held], groups: Groups) -> dict[int, Held]:
    return in_groups(groups, lambda parts, _: together(parts), held)


def all_gather(held: Sequence[Held], groups: Groups, axis: int) -> dict[int, Held]:
    return in_groups(groups, lambda parts, _: np.concatenate(parts, axis), held)


def reduce_scatter(held: Sequence[Held], groups: Groups, axis: int) -> dict[int, Held]:
    return in_groups(
        groups, lambda parts, place: np.split(together(parts), len(parts), axis)[place], held
    )


def all_to_all(held: Sequence[Held], groups: Groups, axis: int) -> dict[int, Held]:
    def play(parts: list[Held], place: int) -> Held:
        return np.concatenate([np.split(part, len(parts), axis)[place] for part in parts], axis)

    return in_groups(groups, play, held)


def all_to_all_of_tuples(
    held: Sequence[Held], groups: Groups, result: int, operand: int
) -> dict[int, Held]:
    """Result k on a device is what the device at place k has as the operand of its own number."""

    def play(parts: list[Held], place: int) -> Held:
        return parts[result] if place == operand else nothing(parts[result].shape)

    return in_groups(groups, play, held)


def broadcast(held: Sequence[Held], groups: Groups) -> dict[int, Held]:
    return in_groups(groups, lambda parts, _: parts[0], held)


def permute(held: Sequence[Held], pairs: Sequence[tuple[int, int]]) -> dict[int, Held]:
    return {target: held[source] for source, target in pairs}


# ---------------------------------------------------------------- which devices


def on_devices(groups: Groups, mode: str, replicas: int, partitions: int) -> list[list[int]]:
    """The groups of devices, from groups of replicas, of partitions or of devices.

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
