"""The queries with devices: maps from (device, element) to (device, element).

>>> import hlo
>>> module = hlo.parse('''
... HloModule m, num_partitions=4
... add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
... ENTRY e {
...   p = f32[6] parameter(0)
...   ROOT r = f32[6] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=add,
...     use_global_device_ids=true
... }''')
>>> print(device_maps(module.entry.root).maps[0][0])
(device, d0)[s0] -> (s0 + (device floordiv 2) * 2, d0),
domain: device in [0, 3], d0 in [0, 5], s0 in [0, 1]

The answers have the form of those of `indexing.output_to_input`, `indexing.input_to_output` and
`indexing.to_parameters`, with two additions: every map has the device as its first dimension and as
its first result.
"""

from __future__ import annotations

from operator import index
from typing import Unpack

from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.dataflow import answering
from indexing.dataflow.device_edges import DeviceEdges
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices
from indexing.maps.answers import Answer
from indexing.maps.assumptions import check_assumptions
from indexing.maps.options import OptionChoices, Options


class DeviceChoices(OptionChoices, total=False):
    """The options of a query with devices, as keyword arguments.

    Attributes:
        num_replicas, num_partitions: the number of replicas and of partitions, if the module header
            does not give it.
    """

    num_replicas: int | None
    num_partitions: int | None


@checked
def device_maps(
    instruction: Instruction, output_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """Return the maps from each element of an output on a device to the elements that it needs.

    ``(device, d0, …)[s0, …] -> (device, …)``, with devices numbered as in `Devices`: the elements
    may be on other devices.

    Args:
        instruction: the instruction that computes the output.
        output_id: number of the output: the leaves of a tuple are counted in order.
        options: ``num_replicas`` and ``num_partitions``, if the module header does not give them,
            and the options of `indexing.output_to_input`.
    Returns:
        ``maps[k]``: the maps to operand k.  ``unknown[k]``: the reason if the groups of a
        collective do not fit the devices, or if a device is in no group, so that its result is
        undefined.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `output_id` is out of range.
        ValueError: a number of devices is not positive.
    Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``; XLA
    ``docs/operation_semantics.md``, "AllGather", "AllReduce", and the other collectives.

    >>> import hlo
    >>> root = hlo.parse('''
    ... HloModule m, replica_count=2
    ... ENTRY e {
    ...   p = f32[4,3] parameter(0)
    ...   ROOT g = f32[8,3] all-gather(p), dimensions={0}
    ... }''').entry.root
    >>> answer = device_maps(root)
    >>> print(*answer.maps[0])
    (device, d0, d1) -> (d0 floordiv 4, d0 mod 4, d1),
    domain: device in [0, 1], d0 in [0, 7], d1 in [0, 2]
    >>> print(*answer.at(0, 5, 2))  # what element [5, 2] on device 0 needs: [1, 2] on device 1
    [1, 1, 2]
    """
    return answering.to_operands(_walk(instruction, **options), instruction, index(output_id))


@checked
def device_input_to_output(
    instruction: Instruction, input_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """Return the maps from each element of an operand on a device to the outputs that need it.

    Args:
        instruction: the instruction that reads the operand.
        input_id: number of the operand.
        options: see `device_maps`.
    Returns:
        ``maps[k]``: the maps from the operand to output k, with devices.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `input_id` is out of range.
        ValueError: a number of devices is not positive.
    Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``; XLA
    ``docs/operation_semantics.md``, "AllGather", "AllReduce", and the other collectives.

    >>> import hlo
    >>> root = hlo.parse('''
    ... HloModule m, replica_count=2
    ... ENTRY e {
    ...   p = f32[4,3] parameter(0)
    ...   ROOT g = f32[8,3] all-gather(p), dimensions={0}
    ... }''').entry.root
    >>> print(*device_input_to_output(root).maps[0])
    (device, d0, d1)[s0] -> (s0, d0 + device * 4, d1),
    domain: device in [0, 1], d0 in [0, 3], d1 in [0, 2], s0 in [0, 1]
    """
    return answering.from_operand(_walk(instruction, **options), instruction, index(input_id))


@checked
def device_maps_to_parameters(
    instruction: Instruction, output_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """Return the maps of `device_maps`, composed down to the parameters of the computation.

    >>> import hlo
    >>> module = hlo.parse('''
    ... HloModule m, replica_count=3
    ... ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   n = f32[2] collective-permute(p), source_target_pairs={{0,1},{1,2}}
    ...   ROOT g = f32[6] all-gather(n), dimensions={0}
    ... }''')
    >>> print(device_maps_to_parameters(module.entry.root).maps[0][0])
    (device, d0) -> (d0 floordiv 2 - 1, d0 mod 2), domain: device in [0, 2], d0 in [2, 5]

    Raises:
        HloError: an instruction that the output depends on is invalid.
        IndexError: `output_id` is out of range.
        ValueError: a number of devices is not positive.
    Source: XLA ``xla/service/collective_ops_utils.h``, ``CollectiveOpGroupMode``; XLA
    ``docs/operation_semantics.md``, "AllGather", "AllReduce", and the other collectives.
    """
    return answering.to_parameters(_walk(instruction, **options), instruction, index(output_id))


def _walk(
    instruction: Instruction,
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    **options: Unpack[OptionChoices],
) -> Walk:
    devices = Devices.of(instruction.module, num_replicas, num_partitions)
    if "assume" in options:
        options["assume"] = check_assumptions(options["assume"])
    return Walk(DeviceEdges(devices, Options(**options)))
