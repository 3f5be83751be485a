"""Executions of a global program and its partition: global inputs split, results compared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hlo.text.source import HloError
from indexing.equivalence.evidence import far_apart
from indexing.equivalence.pairing import Side
from indexing.equivalence.partitioned.pairing import PartitionedPair
from indexing.equivalence.runs import Inputs, Runs, Unspecified, ValueGap
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution.program import run
from indexing.execution.values import Array
from indexing.maps.answers import Unknown
from indexing.ops.unspecified import record_unspecified
from indexing.sharding.planning.array_shards import place_of, shard_of

PADDING: Final = 3
"""The value of padding in the shards of inputs."""


class DeviceRuns(Runs):
    """Executions of a partitioned pair: of the global program, and of the partition on all devices.

    Inputs are arrays of the global program; an output element is ``(device, *local index)``.
    """

    def __init__(self, partition: PartitionedPair, exact: bool = False) -> None:
        super().__init__(partition.sides, exact=exact)
        self.partition = partition

    @property
    def devices(self) -> int:
        """The number of inputs that are drawn: one global array of each parameter."""
        return 1

    def outputs(self, side: Side, inputs: Inputs) -> list[list[Array]] | Unknown:
        """Execute one program; return its arrays, for the partition those of each device."""
        if side is self.pair.before:
            return super().outputs(side, inputs)
        shards = [self._shards(side, inputs, k) for k in range(self.partition.devices.count)]
        try:
            with np.errstate(all="ignore"), record_unspecified() as unspecified:
                results = run(side.computation.module, shards, replicas=len(shards))
        except HloError as error:
            return Unknown(f"not executed: {error.message}")
        except (MemoryError, RuntimeError) as error:
            return Unknown(f"not executed: {error}")
        if unspecified:
            return Unspecified(f"not comparable: {', '.join(sorted(unspecified))}")
        return [list(each) for each in results]

    def _shards(self, side: Side, inputs: Inputs, device: int) -> list[Array]:
        """Return the arrays of a device, in the order of the parameters."""
        given = zip(side.inputs, inputs.devices[0], self.partition.inputs, strict=True)
        shards = {leaf: shard_of(array, at.sharding, device, PADDING) for leaf, array, at in given}
        parameters = side.computation.parameters
        order = sorted(shards, key=lambda leaf: (parameters.index(leaf[0]), leaf[1]))
        return [shards[leaf] for leaf in order]

    def gap_on(self, inputs: Inputs) -> ValueGap | Unknown | None:
        """Return an output element on a device that differs from the global program's."""
        before, after = (self.outputs(s, inputs) for s in (self.pair.before, self.pair.after))
        if isinstance(before, Unknown):
            return before
        if isinstance(after, Unknown):
            return after
        for output, at in enumerate(self.partition.outputs):
            for device, arrays in enumerate(after):
                one = before[0][output][place_of(at.sharding, at.dims, device)]
                other = arrays[output][tuple([slice(0, size) for size in one.shape])]
                rounding = self.roundings[output]
                element = far_apart(one, other, self.allowed_difference, rounding)
                if element is not None:
                    index = (device, *element)
                    return ValueGap(output, index, one[element], other[element], inputs, device)
        return None

    def element(self, side: Side, results: list[list[Array]], output: int, at: ElementIndex) -> Any:
        """Return the value of an output element, given by device and local index."""
        device, *local = at
        if side is self.pair.after:
            return results[device][output][tuple(local)]
        return results[0][output][self.partition.outputs[output].place(device, tuple(local))]
