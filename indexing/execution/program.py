"""Running a module or a computation: inputs are checked, devices are set up, results are arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from indexing.execution.devices import ALONE, Device
from indexing.execution.interpreter import every_value, result
from indexing.execution.machine import MAX_TRIPS, Environment, Machine, RunOptions
from indexing.execution.rendezvous import Rendezvous
from indexing.execution.shards import has_regions, mesh_of
from indexing.execution.sizes import filled
from indexing.execution.values import Array, ExecutionError, Value, checked_inputs, flattened

import_module("indexing.ops")
for _handlers in ("collectives", "control", "host", "lapack", "randomness", "shards", "sizes"):
    import_module(f"indexing.execution.{_handlers}")


def run(
    program: Module | Computation,
    inputs: Sequence[Any],
    *,
    seed: int = 0,
    max_trips: int = MAX_TRIPS,
    replicas: int = 1,
    environment: Environment | Sequence[Environment] | None = None,
    elided: str = "error",
    constants: Mapping[str, Array] | None = None,
    memory: int | None = None,
) -> Any:
    """The arrays that a program gives for these inputs, tuples taken apart in order.

    Args:
        program: a module, whose entry is run, or one of its computations.
        inputs: an array for each of `parameter_leaves`; with several devices either that, for all
            of them, or a list of such lists, one for each device.
        seed: of ``rng`` and the like, and of the values of elided constants.
        max_trips: how often a loop may run its body.
        replicas: how many devices to simulate; those that the header calls partitions count too. A
            program with regions for each device of a mesh runs on all of them by itself.
        environment: the queues and custom calls of the device, or of each.
        elided: ``random`` gives constants that the text leaves out random values.
        constants: values for such constants by their names.
        memory: bytes that may be used; by default what the machine has left.
    Returns:
        A tuple of arrays; with several devices a list of such tuples.
    Raises:
        HloError: something cannot be computed, or not from these inputs.

    >>> import hlo, numpy
    >>> module = hlo.parse('''
    ... ENTRY e { x = s32[3] parameter(0) y = s32[3] parameter(1) ROOT q = s32[3] divide(x, y) }''')
    >>> run(module, [numpy.int32([7, -7, 7]), numpy.int32([2, 2, 0])])
    (array([ 3, -3, -1], dtype=int32),)
    >>> sums = hlo.parse('''
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[2] parameter(0)  ROOT s = f32[2] all-reduce(p), to_apply=add }''')
    >>> first, second = numpy.float32([1, 2]), numpy.float32([3, 5.75])
    >>> run(sums, [[first], [second]], replicas=2)
    [(array([4.  , 7.75], dtype=float32),), (array([4.  , 7.75], dtype=float32),)]
    """
    from indexing.execution.memory import check_room

    computation = program.entry if isinstance(program, Module) else program
    options = RunOptions(seed, max_trips, elided, constants or {})
    module = computation.module
    is_global = replicas == 1 and computation.is_entry and has_regions(module)
    mesh = mesh_of(module) if is_global else None
    count = len(mesh.devices) if mesh else replicas
    check_room(computation, memory, count)
    given = _for_each(inputs, count)
    arguments = [checked_inputs(computation, arrays) for arrays in given]
    worlds = _worlds(environment, count)
    if count == 1:
        return _arrays(computation, Machine(options, worlds[0]), arguments[0])
    rendezvous, partitions = Rendezvous(), _partitions(computation, count, mesh is not None)

    def work(number: int) -> tuple[Array, ...]:
        device = Device(number, count // partitions, partitions, rendezvous)
        machine = Machine(options, worlds[number], device)
        return _arrays(computation, machine, arguments[number])

    found = rendezvous.together(count, work)
    return found[0] if mesh else found


def _arrays(
    computation: Computation, machine: Machine, arguments: Sequence[Value]
) -> tuple[Array, ...]:
    """The arrays of the result; they share no memory with inputs, constants or each other."""
    value = result(machine, computation, arguments)
    found: dict[int, Array] = {id(array): array for array in flattened(tuple(arguments))}
    results = []
    for array in flattened(filled(value, computation.root.shape)):
        is_own = array.flags.owndata and array.flags.writeable and id(array) not in found
        results.append(array if is_own else np.array(array))
        found[id(results[-1])] = results[-1]
    return tuple(results)


def _for_each(inputs: Sequence[Any], count: int) -> Sequence[Sequence[Any]]:
    is_nested = len(inputs) == count > 1 and all(isinstance(each, list | tuple) for each in inputs)
    return inputs if is_nested else [inputs] * count


def _worlds(
    environment: Environment | Sequence[Environment] | None, count: int
) -> Sequence[Environment]:
    if environment is None:
        return [Environment() for _ in range(count)]
    if isinstance(environment, Environment):
        return [environment] * count
    if len(environment) != count:
        raise ValueError(f"{len(environment)} environments are given for {count} devices")
    return environment


def _partitions(computation: Computation, count: int, is_mesh: bool) -> int:
    """How many of the devices are partitions of one replica."""
    partitions = count if is_mesh else int(computation.module.header("num_partitions", 1))
    if count % partitions:
        message = f"{count} devices cannot be replicas of {partitions} partitions"
        help = f"simulate {partitions} devices, or a multiple of them"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "execution", help=help)
    return partitions


def evaluate(
    computation: Computation, *arrays: Any, machine: Machine | None = None
) -> dict[Instruction, Value]:
    """The value of every instruction of `computation` for these arrays, tuples as tuples.

    The arrays are those of `parameter_leaves`: tuples among the parameters are taken apart.

    >>> import hlo, numpy
    >>> text = "ENTRY e { x = s32[2] parameter(0) y = s32[2] negate(x) ROOT t = (s32[2]) tuple(y) }"
    >>> list(evaluate(hlo.parse(text).entry, numpy.int32([1, 2])).values())
    [array([1, 2], dtype=int32), array([-1, -2], dtype=int32), (array([-1, -2], dtype=int32),)]
    """
    arguments = checked_inputs(computation, arrays)
    return every_value(machine or Machine(device=ALONE), computation, arguments)
