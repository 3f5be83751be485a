"""The questions, with devices: which elements of which devices does an element of a device need.

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
`indexing.to_parameters`; only every map has the device before its dimensions, and before its
results.
"""

from __future__ import annotations

from typing import Unpack

from hlo.modules.module import Instruction
from indexing.dataflow import answering
from indexing.dataflow.device_edges import DeviceEdges
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices
from indexing.maps.answers import Answer
from indexing.maps.options import OptionChoices, Options


class DeviceChoices(OptionChoices, total=False):
    """The options of a query with devices as keywords.

    Attributes:
        num_replicas, num_partitions: how many there are, where the header of the module does not
            say it.
    """

    num_replicas: int | None
    num_partitions: int | None


def device_maps(
    instruction: Instruction, output_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """For each operand, which of its elements, on which devices, an element of the output needs.

    ``(device, d0, …)[s0, …] -> (device, …)``: both devices are numbers of `Devices`.

    Args:
        instruction: what computes the output.
        output_id: which output, where the result is a tuple: its leaves are counted in order.
        options: ``num_replicas`` and ``num_partitions``, where the header of the module does not
            give them; and those of `indexing.output_to_input`.
    Returns:
        An `Unknown` for operands of a collective whose groups do not fit the devices, and beside
        its maps where a device is in no group and its result undefined.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: a number of devices is not positive.
    """
    return answering.to_operands(_walk(instruction, **options), instruction, output_id)


def device_input_to_output(
    instruction: Instruction, input_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """For each output, which of its elements, on which devices, need elements of an operand.

    Arguments and answer are those of `device_maps` and `indexing.input_to_output`.

    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such operand.
        ValueError: a number of devices is not positive.
    """
    return answering.from_operand(_walk(instruction, **options), instruction, input_id)


def device_maps_to_parameters(
    instruction: Instruction, output_id: int = 0, **options: Unpack[DeviceChoices]
) -> Answer:
    """`device_maps`, composed through the whole computation to its parameters.

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
        HloError: an instruction on the way breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: a number of devices is not positive.
    """
    return answering.to_parameters(_walk(instruction, **options), instruction, output_id)


def _walk(
    instruction: Instruction,
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    **options: Unpack[OptionChoices],
) -> Walk:
    devices = Devices.of(instruction.module, num_replicas, num_partitions)
    return Walk(DeviceEdges(devices, Options(**options)))
