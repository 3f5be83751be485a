"""Execute a module or a computation: check inputs, set up devices, return arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from indexing.devices.devices import Devices
from indexing.execution.devices import Device
from indexing.execution.interpreter import every_value, execute, plan
from indexing.execution.machine import MAX_LOOP_ITERATIONS, Environment, Machine, RunOptions
from indexing.execution.mesh import has_regions, mesh_of
from indexing.execution.operations import MAX_OPERATIONS, check_operations
from indexing.execution.rendezvous import DeviceLimitError, Rendezvous
from indexing.execution.sizes import padded_to_shape
from indexing.execution.values import Array, ExecutionError, Value, checked_inputs, flattened

import_module("indexing.ops")
for _handlers in ("collectives", "control", "host", "lapack", "randomness", "shards", "sizes"):
    import_module(f"indexing.execution.{_handlers}")


def run(
    program: Module | Computation,
    inputs: Sequence[Any],
    *,
    seed: int = 0,
    max_iterations: int = MAX_LOOP_ITERATIONS,
    replicas: int = 1,
    environment: Environment | Sequence[Environment] | None = None,
    elided: str = "error",
    constants: Mapping[str, Array] | None = None,
    memory: int | None = None,
    max_operations: int = MAX_OPERATIONS,
) -> Any:
    """Execute a program on NumPy arrays and return its results, tuples flattened in order.

    Args:
        program: a module, whose entry computation is executed, or one computation.
        inputs: one array per leaf of `parameter_leaves`; for several devices, either one such list
            for all devices or a list of lists, one per device.
        seed: seed of random-number ops and of elided constants.
        max_iterations: limit on the iterations of each ``while``.
        replicas: number of devices to simulate, partitions included. For a program with manual
            regions (JAX's ``shard_map``), the mesh gives the number.
        environment: host queues and custom calls, for all devices or one per device.
        elided: ``random`` initialises elided constants (``{...}``) with random values; ``error``
            rejects them.
        constants: values of elided constants, by instruction name.
        memory: limit on the estimated memory, in bytes; the default is the available memory.
        max_operations: limit on the element operations of all devices, which are estimated before
            the execution; those of loops without a known number of iterations are counted.
    Returns:
        A tuple of arrays; for several devices, a list of such tuples. Results share no memory with
        inputs, constants or each other.
    Raises:
        HloError: an instruction is invalid.
        ExecutionError: the inputs do not match the parameters, an instruction cannot be executed,
            or a limit is exceeded.
        ValueError: the number of environments differs from the number of devices.

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
    from indexing.execution.memory import check_memory
    from indexing.execution.work import check_work

    computation = program.entry if isinstance(program, Module) else program
    plan(computation)  # before the memory is estimated
    options = RunOptions(seed, max_iterations, elided, constants or {}, max_operations)
    module = computation.module
    is_global = replicas == 1 and computation.is_entry and has_regions(module)
    mesh = mesh_of(module) if is_global else None
    count = len(mesh.devices) if mesh else replicas
    check_work(computation, devices=count)
    check_operations(computation, max_operations, count)
    check_memory(computation, memory, count)
    arguments = [checked_inputs(computation, arrays) for arrays in _per_device(inputs, count)]
    environments = _environments(environment, count)
    if count == 1:
        return _arrays(computation, Machine(options, environments[0]), arguments[0])
    rendezvous, partitions = Rendezvous(), _partitions(computation, count, mesh is not None)

    def work(number: int) -> tuple[Array, ...]:
        device = Device(number, count // partitions, partitions, rendezvous)
        machine = Machine(options, environments[number], device)
        return _arrays(computation, machine, arguments[number])

    try:
        results = rendezvous.run_all(count, work)
    except DeviceLimitError as error:
        message = f"each device is a thread, but the system starts no thread for {error}"
        help = "simulate fewer devices"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "execution", help=help) from error
    return results[0] if mesh else results


def _arrays(
    computation: Computation, machine: Machine, arguments: Sequence[Value]
) -> tuple[Array, ...]:
    """Return the result's arrays; they share no memory with inputs, constants or each other."""
    value = execute(machine, computation, arguments)
    taken: dict[int, Array] = {id(array): array for array in flattened(tuple(arguments))}
    results = []
    for array in flattened(padded_to_shape(value, computation.root.shape)):
        is_own = array.flags.owndata and array.flags.writeable and id(array) not in taken
        results.append(array if is_own else np.array(array))
        taken[id(results[-1])] = results[-1]
    return tuple(results)


def _per_device(inputs: Sequence[Any], count: int) -> Sequence[Sequence[Any]]:
    is_nested = len(inputs) == count > 1 and all(isinstance(each, list | tuple) for each in inputs)
    return inputs if is_nested else [inputs] * count


def _environments(
    environment: Environment | Sequence[Environment] | None, count: int
) -> Sequence[Environment]:
    if environment is None:
        return [Environment() for _ in range(count)]
    if isinstance(environment, Environment):
        return [environment] * count
    if len(environment) != count:
        raise ValueError(f"expected {count} environments, one per device, got {len(environment)}")
    return environment


def _partitions(computation: Computation, count: int, is_mesh: bool) -> int:
    """Number of partitions of each replica."""
    partitions = count if is_mesh else Devices.of(computation.module).num_partitions
    if count % partitions:
        message = f"{count} devices are not a multiple of num_partitions={partitions}"
        help = f"simulate a multiple of {partitions} devices"  # noqa: A001 - as in `HloError`
        raise ExecutionError(message, computation.span, "execution", help=help)
    return partitions


def evaluate(
    computation: Computation, *arrays: Any, machine: Machine | None = None
) -> dict[Instruction, Value]:
    """Execute a computation and return the value of every instruction, tuples as tuples.

    Args:
        computation: the computation to execute.
        arrays: one per leaf of `parameter_leaves`.
        machine: the device, with its options and environment.
    Raises:
        ExecutionError: the arrays do not match the parameters, or an instruction cannot be
            executed.

    >>> import hlo, numpy
    >>> text = "ENTRY e { x = s32[2] parameter(0) y = s32[2] negate(x) ROOT t = (s32[2]) tuple(y) }"
    >>> list(evaluate(hlo.parse(text).entry, numpy.int32([1, 2])).values())
    [array([1, 2], dtype=int32), array([-1, -2], dtype=int32), (array([-1, -2], dtype=int32),)]
    """
    arguments = checked_inputs(computation, arrays)
    return every_value(machine or Machine(), computation, arguments)
