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

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.device_walk import Walk
from indexing.dataflow.queries import answer_of, output_path
from indexing.devices.devices import Devices
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge


def device_maps(
    instruction: Instruction,
    output_id: int = 0,
    *,
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Answer:
    """For each operand, which of its elements, on which devices, an element of the output needs.

    ``(device, d0, …)[s0, …] -> (device, …)``: both devices are numbers of `Devices`.

    Args:
        instruction: what computes the output.
        output_id: which output, where the result is a tuple: its leaves are counted in order.
        num_replicas, num_partitions: how many there are, where the header of the module does not
            say it.
        exact, simplify, certify: see `indexing.output_to_input`.
    Returns:
        An `Unknown` for operands of a collective whose groups do not fit the devices, and beside
        its maps where a device is in no group and its result undefined.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: a number of devices is not positive.
    """
    path = output_path(instruction, output_id)
    walk = _walk(instruction, num_replicas, num_partitions, Options(exact, simplify, certify))
    walk.prepare([instruction], backward=True)
    found = [(step.operand, step.operand_path, step) for step in walk.edges_back(instruction, path)]
    operands = instruction.operands
    return answer_of(instruction, "output-to-input", output_id, operands, found, walk.options)


def device_uses(
    instruction: Instruction,
    input_id: int = 0,
    *,
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Answer:
    """For each output, which of its elements, on which devices, need elements of an operand.

    Arguments and answer are those of `device_maps` and `indexing.input_to_output`.

    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such operand.
        ValueError: a number of devices is not positive.
    """
    if not 0 <= input_id < len(instruction.operands):
        raise IndexError(
            f"`{instruction.name}` has {len(instruction.operands)} operands, no number {input_id}"
        )
    walk = _walk(instruction, num_replicas, num_partitions, Options(exact, simplify, certify))
    walk.prepare([instruction], backward=False)
    outputs = {path: k for k, (path, _) in enumerate(leaves(instruction.shape))}
    steps = walk.edges_forward(instruction, [input_id], list(outputs))
    found = [(outputs[step.output_path], step.operand_path, step) for step in steps]
    itself = (instruction,) * len(outputs)
    return answer_of(instruction, "input-to-output", input_id, itself, found, walk.options)


def device_maps_to_parameters(
    instruction: Instruction,
    output_id: int = 0,
    *,
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
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
    path = output_path(instruction, output_id)
    walk = _walk(instruction, num_replicas, num_partitions, Options(exact, simplify, certify))
    parameters = instruction.computation.parameters
    number = {parameter: k for k, parameter in enumerate(parameters)}
    walk.prepare(instruction.computation.instructions[: instruction.index + 1], backward=True)
    found = [
        (number[source], at, AccessEdge(number[source], at, path, tuple(maps.maps), maps.unknown))
        for (source, at, _), maps in walk.backward(ArrayRef(instruction, path)).items()
        if source in number
    ]
    return answer_of(instruction, "output-to-input", output_id, parameters, found, walk.options)


def _walk(
    instruction: Instruction,
    num_replicas: int | None,
    num_partitions: int | None,
    options: Options,
) -> Walk:
    return Walk(Devices.of(instruction.module, num_replicas, num_partitions), options)
