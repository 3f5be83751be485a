"""Random instructions with random shardings compute the same on shards."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hlo import HloError
from hlo.shardings.mesh import Mesh
from indexing.execution import ExecutionError, run
from indexing.ops.samples import instruction_of
from indexing.sharding.partition.flatten import flatten
from tests.ops import strategies
from tests.oracles import fuzz
from tests.sharding.partition.partitions import check, random_assignment, small_inputs

PLACED = st.one_of(
    *(strategies.gathers(), strategies.scatters(), strategies.dynamic("dynamic-slice")),
    *(strategies.dynamic("dynamic-update-slice"), strategies.reshapes(), strategies.dots()),
    *(strategies.pads(), strategies.slices(), strategies.windows(), strategies.ragged_dots()),
    *(strategies.reduces(), strategies.sorts(), strategies.topks(), strategies.reverses()),
    *(strategies.concatenates(), strategies.transposes(), strategies.broadcasts()),
    *(strategies.bitcasts(), strategies.bitcast_converts()),
)
MESHES = [{"x": 2}, {"x": 3}, {"x": 2, "y": 2}, {"x": 2, "y": 3}]


@fuzz(120)
@given(PLACED, st.sampled_from(MESHES), st.integers(0, 10_000))
def test_random_instructions_compute_the_same_on_shards(
    sample: str, sizes: dict[str, int], seed: int
) -> None:
    mesh = Mesh.of(sizes)
    try:
        module = flatten(instruction_of(sample).computation)
        inputs = small_inputs(module, seed)
        run(module, inputs)
    except (ExecutionError, HloError):  # invalid, or reads tiles or padding
        return
    check(random_assignment(Random(seed), mesh, module), module, inputs)
