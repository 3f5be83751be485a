"""Arrays that an instruction reads in several roles, such as the base and the update of an update.

The oracle executes programs with changed elements: an element is read if a written element of the
results depends on it.  No map is involved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import pytest

import hlo
from hlo.modules.module import Computation
from indexing.execution.program import run
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.traffic_values import InstructionTraffic
from simplifier.unknown import require_known
from tests.tiling.sets.poison import Array

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
COMPARE = (
    "ge { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  "
    "d = f32[] parameter(3)  ROOT s = pred[] compare(a, b), direction=GE }\n"
)

START = 3
INDICES = [[5], [0], [9]]
"""The last is out of bounds."""

PARAMETERS = {
    "p": "f32[8]",
    "q": "f32[8]",
    "u": "f32[2]",
    "v": "f32[3]",
    "i": "s32[]",
    "x": "s32[3,1]",
}

SCATTER = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add"
)

BRACES = SCATTER.replace("{", "{{").replace("}", "}}")

# fmt: off
UPDATES = [
    # parameters, lines of the computation, and the results that are written in place
    ("p u i", "ROOT r = f32[8] dynamic-update-slice(p, u, i)", [True]),
    ("p i",   "ROOT r = f32[8] dynamic-update-slice(p, p, i)", [False]),
    ("p i",   "b = f32[8] bitcast(p)  ROOT r = f32[8] dynamic-update-slice(b, p, i)", [False]),
    ("p i",   "b = f32[8] bitcast(p)  ROOT r = f32[8] dynamic-update-slice(p, b, i)", [False]),
    ("p i",   "t = (f32[8]) tuple(p)  g = f32[8] get-tuple-element(t), index=0  "
              "ROOT r = f32[8] dynamic-update-slice(p, g, i)", [False]),
    ("p i",   "s = f32[2] slice(p), slice={[1:3]}  "
              "ROOT r = f32[8] dynamic-update-slice(p, s, i)", [False]),
    ("p i",   "s = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}  n = f32[2] negate(s)  "
              "ROOT r = f32[8] dynamic-update-slice(p, n, i)", [False]),
    ("p u i", "d = f32[8] dynamic-update-slice(p, u, i)  "
              "ROOT r = (f32[8], f32[8]) tuple(d, p)", [False, False]),
    ("p u i", "d = f32[8] dynamic-update-slice(p, u, i)  "
              "ROOT r = (f32[8], f32[8]) tuple(d, d)", [True, False]),
    ("p q u i", "d = f32[8] dynamic-update-slice(p, u, i)  "
                "e = f32[8] dynamic-update-slice(q, u, i)  "
                "ROOT r = (f32[8], f32[8]) tuple(d, e)", [True, True]),
    ("p u v i", "d = f32[8] dynamic-update-slice(p, u, i)  "
                "e = f32[8] dynamic-update-slice(p, v, i)  "
                "ROOT r = (f32[8], f32[8]) tuple(d, e)", [False, False]),
    ("p u v i", "z = s32[] constant(0)  d = f32[8] dynamic-update-slice(p, u, i)  "
                "ROOT r = f32[8] dynamic-update-slice(d, v, z)", [False]),
    ("p q u i", "d = f32[8] dynamic-update-slice(p, u, i)  s = f32[3] slice(d), slice={[2:5]}  "
                "ROOT r = f32[8] dynamic-update-slice(q, s, i)", [True]),
    # the update is an element of the base
    ("p i",   "s = f32[1] slice(p), slice={[7:8]}  "
              "ROOT r = f32[8] dynamic-update-slice(p, s, i)", [False]),
    ("p x",   f"s = f32[3] slice(p), slice={{[0:3]}}  ROOT r = f32[8] scatter(p, x, s), {SCATTER}",
     [False]),
    ("v x",   f"ROOT r = f32[3] scatter(v, x, v), {SCATTER}", [False]),
]

INSTRUCTIONS = [
    # parameters, and an instruction with their numbers as operands, alone
    ("p p i",   "f32[8] dynamic-update-slice({0}, {1}, {2})"),
    ("p u i",   "f32[8] dynamic-update-slice({0}, {1}, {2})"),
    ("v x v",   f"f32[3] scatter({{0}}, {{1}}, {{2}}), {BRACES}"),
    ("p p",     "f32[8] add({0}, {1})"),
    ("p p",     "f32[8,8] dot({0}, {1}), lhs_contracting_dims={{}}, rhs_contracting_dims={{}}"),
    ("p p",     "f32[16] concatenate({0}, {1}), dimensions={{0}}"),
    ("q q",     "(f32[8], f32[8]) sort({0}, {1}), dimensions={{0}}, to_apply=ge"),
]
# fmt: on


def inputs_of(shapes: list[str], seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    inputs: list[Array] = []
    for shape in shapes:
        dims = tuple([int(n) for n in shape[4:-1].split(",") if n])
        if shape.startswith("f32"):
            inputs.append(random.uniform(1, 2, dims).astype(np.float32))
        else:
            inputs.append(np.array(INDICES if dims else START, np.int32))
    return inputs


def parameters_of(names: list[str]) -> str:
    return "\n".join([f"p{k} = {PARAMETERS[n]} parameter({k})" for k, n in enumerate(names)])


def elements_read(
    computation: Computation, inputs: list[Array], number: int, windows: Sequence[int | None] = ()
) -> int:
    """Return how many elements of an input a written element depends on.

    Args:
        windows: for each result, the size of the window that is written; None for all elements.
    """
    before = run(computation, inputs)
    count = 0
    for element in np.ndindex(inputs[number].shape):
        changed = [array.copy() for array in inputs]
        changed[number][element] += 1 / 128
        pairs = zip_longest(run(computation, changed), before, windows)
        count += any(
            np.any((new != old)[slice(START, START + size) if size else ...])
            for new, old, size in pairs
        )
    return count


def check(amount: Amount, expected: int) -> None:
    if amount.grade == "exact":
        assert amount.number == expected
    else:
        assert amount.number >= expected


def fuse(names: list[str], lines: str) -> tuple[Computation, InstructionTraffic]:
    """Return a fused computation, and the traffic of its fusion, whose operands may be updated."""
    for k, name in enumerate(names):
        lines = f"{name} = {PARAMETERS[name]} parameter({k})\n{lines}"
    params = parameters_of(names)
    operands = []
    for k, name in enumerate(names):  # of the fusion: its memory may be reused
        if PARAMETERS[name].startswith("f32"):
            params += f"\nn{k} = {PARAMETERS[name]} negate(p{k})"
            operands.append(f"n{k}")
        else:
            operands.append(f"p{k}")
    root = hlo.parse(f"{ADD}ENTRY e {{ {lines} }}").entry.root
    module = hlo.parse(
        f"{ADD}f {{ {lines} }}\nENTRY e {{ {params}\n"
        f"ROOT f = {root.shape} fusion({', '.join(operands)}), kind=kLoop, calls=f }}"
    )
    return module.computations["f"], traffic(module)["f"]


@pytest.mark.parametrize(("parameters", "lines", "is_in_place"), UPDATES)
def test_a_fusion_reads_what_its_written_elements_depend_on(
    parameters: str, lines: str, is_in_place: list[bool]
) -> None:
    names = parameters.split()
    computation, counted = fuse(names, lines)
    inputs = inputs_of([PARAMETERS[name] for name in names], seed=1)
    windows: list[int | None] = [2 if each else None for each in is_in_place]
    if "q, s, i" in lines:
        windows = [3]
    sizes = [
        n if n else array.size for n, array in zip(windows, run(computation, inputs), strict=True)
    ]
    assert counted.written == 4 * sum(sizes)
    for row in counted.operands:
        assert row.operand is not None
        if PARAMETERS[names[row.operand]].startswith("f32"):
            check(row.elements, elements_read(computation, inputs, row.operand, windows))


def test_an_update_by_its_own_base_reads_the_base() -> None:
    _, counted = fuse(["p", "i"], UPDATES[1][1])
    assert (counted.written, counted.operands[0].distinct) == (32, Amount(32))


@pytest.mark.parametrize(("parameters", "text"), INSTRUCTIONS)
def test_an_array_that_is_several_operands_is_read_once_for_each(
    parameters: str, text: str
) -> None:
    names = parameters.split()
    different = text.format(*[f"p{k}" for k in range(len(names))])
    equal = text.format(*[f"p{names.index(name)}" for name in names])
    one, several = (
        hlo.parse(f"{ADD}{COMPARE}ENTRY e {{ {parameters_of(names)}\nROOT r = {line} }}")
        for line in (equal, different)
    )
    inputs = inputs_of([PARAMETERS[name] for name in names], seed=1)
    counted, expected = traffic(one)["r"], traffic(several)["r"]
    assert [row.operand for row in counted.operands] == list(range(len(names)))
    for row, other in zip(counted.operands, expected.operands, strict=True):
        assert row.operand is not None
        assert (row.distinct, row.requested) == (other.distinct, other.requested)
        if PARAMETERS[names[row.operand]].startswith("f32"):
            count = elements_read(several.entry, inputs, row.operand)
            check(row.elements, count)


def test_the_loops_of_a_fused_scatter_each_request_an_array() -> None:
    _, counted = fuse(["v", "x"], UPDATES[-1][1])
    assert require_known(counted.operands[0].reads) == Amount(6, "may")  # the base, and the updates
