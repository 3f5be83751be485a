"""Maps of collectives, compared with a simulation on several devices.

The operand of each device contains the flat index of each element. After the collective, an element
of the result is the operand index that it came from.
"""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import hlo
import indexing
from tests.oracles import Pair, invert_pairs, union

Array: TypeAlias = NDArray[Any]
DEVICES = 3


def flat_indices(*sizes: int) -> Array:
    """An array whose elements are their own flat index."""
    return np.arange(int(np.prod(sizes))).reshape(sizes)


def expected_gather(device: int) -> Array:
    return np.concatenate([flat_indices(2, 3)] * DEVICES, axis=1)


def expected_scatter(device: int) -> Array:
    return np.split(flat_indices(2, 9), DEVICES, axis=1)[device]


def expected_exchange(device: int) -> Array:
    own = np.split(flat_indices(2, 9), DEVICES, axis=1)[device]
    return np.concatenate([own] * DEVICES, axis=1)


def same(device: int) -> Array:
    return flat_indices(2, 3)


# fmt: off
SIMULATED = [
    # text after `f32[`                                             operand  result     grade
    ("2,3] all-reduce(p), to_apply=add",                             (2, 3), same,      "exact"),
    ("2,3] all-reduce-start(p), to_apply=add",                       (2, 3), same,      "exact"),
    ("2,9] all-gather(p), dimensions={1}",                           (2, 3), expected_gather,  "exact"),
    ("2,3] reduce-scatter(p), dimensions={1}, to_apply=add",         (2, 9), expected_scatter, "may"),
    ("2,9] all-to-all(p), dimensions={1}",                           (2, 9), expected_exchange, "may"),
    ("2,3] collective-permute(p), source_target_pairs={{0,1}}",      (2, 3), same,      "may"),
    ("2,3] collective-broadcast(p), replica_groups={{0,1}}",         (2, 3), same,      "may"),
]
# fmt: on


def answers(text: str, sizes: tuple[int, ...]) -> tuple[indexing.Answer, indexing.Answer]:
    operand = f"f32[{','.join(map(str, sizes))}]"
    module = hlo.parse(f"""
        add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
        ENTRY e {{ p = {operand} parameter(0)  ROOT r = f32[{text} }}""")
    assert hlo.verify(module) == []
    root = module.entry.root
    return indexing.output_to_input(root), indexing.input_to_output(root)


@pytest.mark.parametrize(
    "text, sizes, simulate, grade", SIMULATED, ids=[row[0][5:24] for row in SIMULATED]
)
def test_maps_contain_the_elements_that_arrive_on_any_device(
    text: str, sizes: tuple[int, ...], simulate: Callable[[int], Array], grade: str
) -> None:
    reads, writes = answers(text, sizes)
    arrived: set[Pair] = set()
    for device in range(DEVICES):
        result = simulate(device)
        for index in np.ndindex(*result.shape):
            arrived.add((index, tuple(int(k) for k in np.unravel_index(result[index], sizes))))
    related = union(reads.maps[0])
    assert {m.grade for m in (*reads.maps[0], *writes.maps[0])} == {grade}
    assert arrived <= related
    assert grade == "may" or arrived == related
    assert union(writes.maps[0]) == invert_pairs(related)


# fmt: off
PERMUTED = [
    # pairs                            channel  grade
    ("{{0,1},{1,2},{2,3},{3,0}}",      True,    "exact"),
    ("{{0,0},{1,1},{2,2},{3,3}}",      True,    "exact"),
    ("{{0,1},{1,2},{2,3}}",            True,    "may"),    # device 0 receives nothing
    ("{{0,1},{1,0}}",                  False,   "may"),    # pairs of replicas, of which there is one
    ("{{0,9},{1,2},{2,3},{3,0}}",      True,    "may"),    # there is no device 9
]
# fmt: on


@pytest.mark.parametrize("kind", ["collective-permute", "collective-permute-start"])
@pytest.mark.parametrize("pairs, has_channel, grade", PERMUTED)
def test_an_element_that_every_device_receives_is_needed(
    pairs: str, has_channel: bool, grade: str, kind: str
) -> None:
    channel = ", channel_id=1" if has_channel else ""
    is_start = kind.endswith("start")
    shape = "(f32[2], f32[2], u32[], u32[])" if is_start else "f32[2]"
    root = hlo.parse(f"""HloModule m, num_partitions=4
        ENTRY e {{ p = f32[2] parameter(0)
          ROOT r = {shape} {kind}(p), source_target_pairs={pairs}{channel} }}""").entry.root
    answer = indexing.output_to_input(root, output_id=int(is_start))
    assert [(str(m.results[0]), m.grade) for m in answer.maps[0]] == [("d0", grade)]


def test_the_done_op_returns_the_result_of_the_start() -> None:
    module = hlo.parse("""ENTRY e {
        p = f32[2,3] parameter(0)
        s = (f32[2,3], f32[2,9]) all-gather-start(p), dimensions={1}
        ROOT d = f32[2,9] all-gather-done(s)
    }""")
    assert hlo.verify(module) == []
    (read,) = indexing.to_parameters(module.entry.root).maps[0]
    assert str(read) == "(d0, d1) -> (d0, d1 mod 3), domain: d0 in [0, 1], d1 in [0, 8]"
    start = module.entry.instructions[1]
    (alias,) = indexing.output_to_input(start, output_id=0).maps[0]
    assert alias.is_identity


def test_a_result_that_is_no_multiple_of_the_operand_is_an_error() -> None:
    text = "ENTRY e { p = f32[2,3] parameter(0) ROOT g = f32[2,8] all-gather(p), dimensions={1} }"
    (error,) = hlo.verify(hlo.parse(text))
    assert "all-gather C1" in str(error)


# fmt: off
MALFORMED = [
    # op                                                                     points at  label
    ("all-reduce(p), replica_groups={{0,x}}, to_apply=add",                  "x",       "expected an integer"),
    ("all-reduce(p), replica_groups=[2,3]<=[8], to_apply=add",               "[8]",     "[2,3] has 6 elements, but <=[8] has 8"),
    ("all-reduce(p), replica_groups=mesh['x'=8] {'y'}, to_apply=add",        "'y'",     "the mesh has no axis `y`: its axes are x=8"),
    ("collective-permute(p), source_target_pairs={{0,1},{2}}",               "}",       "expected `,`"),
    ("collective-broadcast(p), replica_groups={{0,1},{}}",                   "{}",      "the list has 0"),
]
# fmt: on


@pytest.mark.parametrize("text, at, label", MALFORMED, ids=[row[0][:40] for row in MALFORMED])
def test_an_error_points_at_malformed_groups(text: str, at: str, label: str) -> None:
    module = hlo.parse(f"""
        add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
        ENTRY e {{ p = f32[2] parameter(0)  ROOT r = f32[2] {text} }}""")
    (error,) = hlo.verify(module)
    assert (error.span.text, error.label) == (at, label)


@pytest.mark.parametrize("query", [indexing.output_to_input, indexing.device_maps])
def test_a_dimension_of_unknown_size_gives_unknown(
    query: Callable[[hlo.Instruction], indexing.Answer],
) -> None:
    text = "all-gather(p), dimensions={1}"
    module = hlo.parse(f"ENTRY e {{ p = f32[?,2] parameter(0)  ROOT r = f32[?,4] {text} }}")
    (unknown,) = query(module.entry.root).unknown
    assert str(unknown) == "all-gather `r`: f32[?,4] has a dimension of unknown size"


# fmt: off
REFUSED = [
    # instruction                                                                                    column of the attribute, its fault
    ("f32[6] all-reduce(p), replica_groups={{0,1},{1,2}}, to_apply=add",                             "C11", "1 appears twice"),
    ("f32[12] all-gather(p), replica_groups={{0,1},{2}}, dimensions={0}",                            "C11", "the sizes are 1, 2"),
    ("f32[6] all-to-all(p), replica_groups={{0,1},{2}}, dimensions={0}",                             "C11", "the sizes are 1, 2"),
    ("f32[12] all-gather(p), replica_groups={{0,1,2}}, dimensions={0}",                              "C2",  "the groups have 3 devices, but the number of parts is 2"),
    ("f32[12] all-gather(p), replica_groups=[2,3]<=[6], dimensions={0}",                             "C2",  "the groups have 3 devices, but the number of parts is 2"),
    ("f32[12] all-gather(p), replica_groups={{0,1,2}}, channel_id=1, dimensions={0}",                "C2",  "the groups have 3 devices, but the number of parts is 2"),
    ("f32[2] reduce-scatter(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add",               "C2",  "the groups have 2 devices, but the number of parts is 3"),
    ("(f32[6], f32[12]) all-gather-start(p), replica_groups={{0,1,2}}, dimensions={0}",              "C4",  "the groups have 3 devices, but the number of parts is 2"),
    ("(f32[6], f32[6]) all-to-all(p, p), replica_groups={{0,1,2}}",                                  "C3",  "the groups have 3 devices, but the number of operands is 2"),
    ("f32[6] all-to-all(p), replica_groups={{0,1,2,3}}, dimensions={0}",                             "C4",  "the size is 6, a group has 4 devices"),
    ("f32[6] collective-permute(p), source_target_pairs={{0,1},{2,1}}",                              "C11", "target 1 appears twice"),
    ("f32[6] collective-permute(p), source_target_pairs={{0,1},{0,2}}",                              "C11", "source 0 appears twice"),
]
ACCEPTED = [
    "f32[6] all-reduce(p), replica_groups={{0,1},{2}}, to_apply=add",
    "f32[12] all-gather(p), replica_groups={{0},{1}}, dimensions={0}",  # as in XLA: counts may be missing
    "f32[12] all-gather(p), dimensions={0}",
    "f32[24] all-gather(p), replica_groups={{0,1}}, channel_id=1, dimensions={0}",  # of 2 partitions each
    "f32[6] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
]
# fmt: on


def errors_of(instruction: str) -> list[hlo.HloError]:
    return hlo.verify(
        hlo.parse(f"""
        add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }}
        ENTRY e {{ p = f32[6] parameter(0)  ROOT r = {instruction} }}""")
    )


@pytest.mark.parametrize(("instruction", "rule", "fault"), REFUSED)
def test_groups_that_contradict_the_op_are_refused(instruction: str, rule: str, fault: str) -> None:
    (error,) = errors_of(instruction)
    assert f" {rule}: " in error.message
    assert error.label == fault
    assert error.span.text.startswith(("{", "["))


@pytest.mark.parametrize("instruction", ACCEPTED)
def test_groups_that_fit_the_op_are_accepted(instruction: str) -> None:
    assert errors_of(instruction) == []
