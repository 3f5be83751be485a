"""Maps of random collectives on random device groups, compared with a simulation."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from tests.devices import device_simulation as simulation
from tests.oracles import Pair, fuzz, invert_pairs, union

Draw = Any

HEAD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
ATTRIBUTES = {
    "replicas": "",
    "partitions": ", channel_id=3",
    "replicas and partitions": ", channel_id=3",
    "devices": ", channel_id=3, use_global_device_ids=true",
}
REDUCING = ("replicas", "replicas and partitions", "devices")
OTHERS = ("replicas", "partitions")


@st.composite
def settings(draw: Draw, modes: tuple[str, ...], equal: bool, partial: bool = False) -> Any:
    """Number of replicas, number of partitions, mode, and replica groups as in HLO text."""
    replicas, partitions = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    mode = draw(st.sampled_from(modes))
    limit = {"partitions": partitions, "devices": replicas * partitions}.get(mode, replicas)
    ids = draw(st.permutations(range(limit)))
    if partial:
        ids = ids[: draw(st.integers(1, limit))]
    groups: list[list[int]] = []
    if equal:
        size = draw(st.sampled_from([k for k in range(1, len(ids) + 1) if len(ids) % k == 0]))
        groups = [list(ids[k : k + size]) for k in range(0, len(ids), size)]
    else:
        while ids:
            size = draw(st.integers(1, min(4, len(ids))))
            groups.append(list(ids[:size]))
            ids = ids[size:]
    if draw(st.booleans()):
        groups = [sorted(group) for group in groups]
    return replicas, partitions, mode, groups


def text_of(groups: list[list[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"


def check(
    text: str, operands: list[tuple[int, ...]], replicas: int, partitions: int
) -> hlo.Instruction:
    sizes = [",".join(map(str, dims)) for dims in operands]
    lines = [f"p{k} = f32[{size}] parameter({k})" for k, size in enumerate(sizes)]
    module = hlo.parse(
        f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n{HEAD}\n"
        f"ENTRY e {{ {' '.join(lines)} ROOT r = {text} }}"
    )
    assert hlo.verify(module) == []
    return module.entry.root


def agrees(root: hlo.Instruction, wanted: set[Pair], output: int = 0, operand: int = 0) -> None:
    """Assert that both directions are exactly the `wanted` relation, with disjoint maps."""
    reads = indexing.device_maps(root, output)
    writes = indexing.device_input_to_output(root, operand)
    assert not any(reads.unknown)
    assert not any(writes.unknown)
    maps = reads.maps[operand]
    assert {m.grade for m in maps} <= {"exact"}
    assert union(maps) == wanted
    assert sum(len(set(m.points())) for m in maps) == len(wanted)
    back = writes.maps[output]
    assert union(back) == invert_pairs(wanted)
    assert sum(len(set(m.points())) for m in back) == len(wanted)


@fuzz(150)
@given(settings(REDUCING, equal=False))
def test_all_reduce(setting: Any) -> None:
    replicas, partitions, mode, groups = setting
    more = f", replica_groups={text_of(groups)}{ATTRIBUTES[mode]}, to_apply=add"
    root = check(f"f32[2] all-reduce(p0){more}", [(2,)], replicas, partitions)
    participants = simulation.on_devices(groups, mode, replicas, partitions)
    agrees(
        root,
        simulation.pairs_of(
            simulation.all_reduce(simulation.fresh(replicas * partitions, (2,)), participants)
        ),
    )


SPLIT: dict[str, tuple[Callable[..., dict[int, simulation.Provenance]], bool, bool]] = {
    # op               simulation           splits result, operand
    "all-gather":     (simulation.all_gather,     True, False),
    "reduce-scatter": (simulation.reduce_scatter, False, True),
    "all-to-all":     (simulation.all_to_all,     True, True),
}  # fmt: skip


@fuzz(300)
@given(st.data())
def test_collectives_that_split_a_dimension(data: st.DataObject) -> None:
    opcode = data.draw(st.sampled_from(sorted(SPLIT)))
    simulate, splits_result, splits_operand = SPLIT[opcode]
    modes = OTHERS if opcode == "all-to-all" else REDUCING
    replicas, partitions, mode, groups = data.draw(settings(modes, equal=True))
    participants = simulation.on_devices(groups, mode, replicas, partitions)
    axis, width = data.draw(st.integers(0, 1)), len(participants[0])
    dims = [data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))]
    out, operand = list(dims), list(dims)
    out[axis] *= width if splits_result else 1
    operand[axis] *= width if splits_operand else 1
    more = f", dimensions={{{axis}}}, replica_groups={text_of(groups)}{ATTRIBUTES[mode]}"
    more += ", to_apply=add" if opcode == "reduce-scatter" else ""
    text = f"f32[{out[0]},{out[1]}] {opcode}(p0){more}"
    root = check(text, [tuple(operand)], replicas, partitions)
    arrays = simulation.fresh(replicas * partitions, operand)
    agrees(root, simulation.pairs_of(simulate(arrays, participants, axis)))


@fuzz(100)
@given(settings(OTHERS, equal=True), st.data())
def test_all_to_all_of_tuples(setting: Any, data: st.DataObject) -> None:
    replicas, partitions, mode, groups = setting
    width = len(groups[0])
    result = data.draw(st.integers(0, width - 1))
    operand = data.draw(st.integers(0, width - 1))
    shape = f"({', '.join(['f32[2]'] * width)})"
    names = ", ".join(f"p{k}" for k in range(width))
    more = f", replica_groups={text_of(groups)}{ATTRIBUTES[mode]}"
    root = check(f"{shape} all-to-all({names}){more}", [(2,)] * width, replicas, partitions)
    participants = simulation.on_devices(groups, mode, replicas, partitions)
    arrays = simulation.fresh(replicas * partitions, (2,))
    agrees(
        root,
        simulation.pairs_of(simulation.all_to_all_of_tuples(arrays, participants, result, operand)),
        result,
        operand,
    )


@fuzz(100)
@given(settings(OTHERS, equal=False, partial=True))
def test_collective_broadcast(setting: Any) -> None:
    replicas, partitions, mode, groups = setting
    more = f", replica_groups={text_of(groups)}{ATTRIBUTES[mode]}"
    root = check(f"f32[2] collective-broadcast(p0){more}", [(2,)], replicas, partitions)
    participants = simulation.on_devices(groups, mode, replicas, partitions)
    agrees(
        root,
        simulation.pairs_of(
            simulation.broadcast(simulation.fresh(replicas * partitions, (2,)), participants)
        ),
    )


@fuzz(200)
@given(st.data())
def test_collective_permute(data: st.DataObject) -> None:
    replicas, partitions = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    mode = data.draw(st.sampled_from(OTHERS))
    limit = partitions if mode == "partitions" else replicas
    count = data.draw(st.integers(0, limit))
    targets = data.draw(st.permutations(range(limit)))[:count]
    sources = data.draw(st.permutations(range(limit)))[:count]
    given_pairs = list(zip(sources, targets, strict=True))
    more = f", source_target_pairs={text_of(list(map(list, given_pairs)))}{ATTRIBUTES[mode]}"
    root = check(f"f32[2] collective-permute(p0){more}", [(2,)], replicas, partitions)
    participants = simulation.on_devices(list(map(list, given_pairs)), mode, replicas, partitions)
    pairs = [(source, target) for source, target in participants]
    arrays = simulation.fresh(replicas * partitions, (2,))
    agrees(root, simulation.pairs_of(simulation.permute(arrays, pairs)))


def test_the_simulation_orders_parts_by_position_not_by_device_number() -> None:
    arrays = simulation.fresh(3, (3,))
    assert [sorted(origins) for origins in simulation.all_reduce(arrays, [[2, 0]])[0]] == [
        [(0, k), (2, k)] for k in range(3)
    ]
    gathered = simulation.all_gather(arrays, [[2, 0, 1]], 0)[1]
    assert [next(iter(origins))[0] for origins in gathered] == [2, 2, 2, 0, 0, 0, 1, 1, 1]
    exchanged = simulation.all_to_all(arrays, [[2, 0, 1]], 0)[0]  # the device at position 1
    assert [set(origins) for origins in exchanged] == [{(2, 1)}, {(0, 1)}, {(1, 1)}]
    scattered = simulation.reduce_scatter(arrays, [[2, 0, 1]], 0)[2]
    assert [set(origins) for origins in scattered] == [{(0, 0), (1, 0), (2, 0)}]
    assert prod(simulation.permute(arrays, [(0, 1)])[1].shape) == 3


def move(
    data: st.DataObject, arrays: list[simulation.Provenance]
) -> tuple[str, str, dict[int, simulation.Provenance]]:
    """A random opcode, its attributes, and the arrays of the devices after it."""
    opcode = data.draw(
        st.sampled_from(["reverse", "all-reduce", "all-to-all", "collective-permute"])
    )
    ids = data.draw(st.permutations(range(6)))
    width = data.draw(st.sampled_from([1, 2, 3, 6]))
    groups = [list(ids[n : n + width]) for n in range(0, 6, width)]
    across = f"replica_groups={text_of(groups)}, channel_id=1, "
    match opcode:
        case "reverse":
            return opcode, "dimensions={0}", {n: h[::-1] for n, h in enumerate(arrays)}
        case "all-reduce":
            attributes = across + "use_global_device_ids=true, to_apply=add"
            return opcode, attributes, simulation.all_reduce(arrays, groups)
        case "all-to-all":
            return opcode, across + "dimensions={0}", simulation.all_to_all(arrays, groups, 0)
    pairs = [(source, target) for target, source in enumerate(ids) if target < 4]
    attributes = f"channel_id=1, source_target_pairs={text_of([list(p) for p in pairs])}"
    return opcode, attributes, simulation.permute(arrays, pairs)


@fuzz(60)
@given(st.data())
def test_a_chain_of_collectives_and_local_instructions(data: st.DataObject) -> None:
    """Up to four instructions in sequence on devices 0 to 5."""
    arrays = simulation.fresh(6, (6,))
    lines = ["p0 = f32[6] parameter(0)"]
    for k in range(data.draw(st.integers(1, 4))):
        opcode, attributes, results = move(data, arrays)
        arrays = [results.get(n, simulation.nothing((6,))) for n in range(6)]
        lines.append(f"p{k + 1} = f32[6] {opcode}(p{k}), {attributes}")
    lines[-1] = f"ROOT {lines[-1]}"
    body = f"{{ {' '.join(lines)} }}"
    if data.draw(st.booleans()):
        called = "p = f32[6] parameter(0) ROOT r = f32[6] call(p), to_apply=chain"
        body = f"{{ {called} }}"
        lines = [f"chain {{ {' '.join(lines)} }}"]
    else:
        lines = []
    text = f"HloModule m, num_partitions=6\n{HEAD}\n{''.join(lines)}\nENTRY e {body}"
    module = hlo.parse(text)
    assert hlo.verify(module) == []
    answer = indexing.device_maps_to_parameters(module.entry.root)
    assert answer.unknown == (None,)
    mapped, wanted = union(answer.maps[0]), simulation.pairs_of(dict(enumerate(arrays)))
    grades = {m.grade for m in answer.maps[0]}
    assert mapped == wanted if grades <= {"exact"} else mapped >= wanted
    if module.entry.root.opcode == "call":
        assert union(indexing.device_input_to_output(module.entry.root).maps[0]) == invert_pairs(
            mapped
        )
