"""The collectives of local programs, and errors of assignments."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hlo
from hlo.modules.module import Module
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing import shard
from indexing.execution import run
from indexing.sharding import sharding_rule
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.program import Partitioned, partition
from indexing.sharding.partition.usable_splits import usable_axes
from tests.sharding.partition.partitions import check, small_inputs

MESH = Mesh.of({"x": 2, "y": 2})
X, Y = Axis("x"), Axis("y")
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"

Specs = dict[str, str]


def sharding(spec: str) -> Sharding:
    """``x _ xy``: the axes of each dimension."""
    dims = [tuple(Axis(a) for a in axes if a != "_") for axes in spec.split()]
    return Sharding(MESH, tuple(dims))


def assignment(module: Module, specs: Specs, factors: Specs) -> Assignment:
    """Axes of results and of factors by name; others are whole. Factors: ``i=x k=y``."""
    assigned = {}
    for i in module.instructions:
        rule = sharding_rule(i)
        given = dict(pair.split("=") for pair in factors.get(i.name, "").split())
        axes = tuple(tuple(map(Axis, given.get("ijklmn"[k], ""))) for k in range(len(rule.factors)))
        results = (sharding(specs.get(i.name, "_ " * i.shape.rank)),)  # type: ignore[union-attr]
        assigned[i] = InstructionAssignment(rule, axes, results)
    return Assignment(MESH, assigned)


def list_exchanges(local: Partitioned) -> list[str]:
    return [f"{c.kind} {','.join(map(str, c.axes))} {c.bytes_sent}" for c in local.collectives]


MATMUL = """ENTRY e { p = f32[8,16] parameter(0) q = f32[16,4] parameter(1)
  ROOT d = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
LOOKUP = """ENTRY e { p = f32[6,8] parameter(0) q = s32[5] parameter(1)
  ROOT d = f32[5,8] gather(p, q), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,8} }"""
SUMS = f"""{ADD} ENTRY e {{ p = f32[7,4] parameter(0) q = f32[] constant(3)
  ROOT d = f32[4] reduce(p, q), dimensions={{0}}, to_apply=add }}"""
SORT = """less { a = f32[] parameter(0) b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
  ENTRY e { p = f32[8,4] parameter(0) ROOT d = f32[8,4] sort(p), dimensions={0}, to_apply=less }"""
PADDED = """ENTRY e { p = f32[7,2] parameter(0) n = f32[7,2] exponential(p)
  ROOT d = f32[2,2] dot(n, n), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"""

# fmt: off
ROWS = [
    # program, shardings of results, axes of factors: collectives, opcodes that must occur
    (MATMUL, {"p": "x _", "d": "x _"}, {"d": "i=x"}, [], "dot"),
    (MATMUL, {"p": "_ x", "q": "x _"}, {"d": "k=x"}, ["all-reduce x 128"], "dot"),
    (MATMUL, {"p": "_ x", "q": "x _", "d": "x _"}, {"d": "k=x"}, ["reduce-scatter x 64"], "dot"),
    (MATMUL, {"p": "x _"}, {"d": "i=x"}, ["all-gather x 64"], "dot"),
    (MATMUL, {"p": "x _", "q": "_ y", "d": "x y"}, {"d": "i=x j=y"}, [], "dot"),
    (MATMUL, {"p": "x _"}, {"d": "k=x"}, ["all-to-all x 128", "all-reduce x 128"], "dot"),
    (LOOKUP, {"p": "x _", "q": "y", "d": "y _"}, {"d": "k=x i=y"}, ["all-reduce x 96"], "clamp"),
    (LOOKUP, {"p": "_ x", "d": "_ x"}, {"d": "j=x"}, [], "gather"),
    (SUMS, {"p": "x _"}, {"d": "j=x"}, ["all-reduce x 16"], "reduce select"),
    (SORT, {"p": "x y", "d": "_ y"}, {"d": "i=x j=y"}, ["all-gather x 32"], "sort"),
    (PADDED, {"p": "x _", "n": "x _"}, {"n": "i=x", "d": "k=x"}, ["all-reduce x 16"], "select"),
]
# fmt: on


@pytest.mark.parametrize(("text", "specs", "factors", "collectives", "opcodes"), ROWS)
def test_the_collectives_of_hand_assignments(
    text: str, specs: Specs, factors: Specs, collectives: list[str], opcodes: str
) -> None:
    module = hlo.parse(text)
    local = check(assignment(module, specs, factors), module)
    assert list_exchanges(local) == collectives
    assert set(opcodes.split()) <= {i.opcode for i in local.module.entry}


def test_a_collective_records_its_instruction_groups_and_reason() -> None:
    module = hlo.parse(MATMUL)
    local = check(assignment(module, {"p": "_ x", "q": "x _"}, {"d": "k=x"}), module)
    (made,) = local.collectives
    assert made.instruction is module.entry.root
    assert made.groups == ((0, 2), (1, 3))
    assert str(made.shape) == "f32[8,4]"
    assert made.reason == "the partial results of `d` are combined (sum)"
    text = str(local.module.entry[made.name])
    assert "channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true" in text
    assert local.module.header("num_partitions") == 4


def test_an_initial_value_is_added_on_one_device_unless_it_is_neutral() -> None:
    for init, selects in (("3", 1), ("0", 0)):
        module = hlo.parse(SUMS.replace("constant(3)", f"constant({init})").replace("7", "8"))
        local = check(assignment(module, {"p": "x _"}, {"d": "j=x"}), module)
        assert [i.opcode for i in local.module.entry].count("select") == selects


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("kind", [t for t, e in ELEMENT_TYPES.items() if e.kind == "floating"])
def test_padding_is_neutral_in_every_element_type(kind: str, opcode: str) -> None:
    module = hlo.parse(f"""
        f {{ a = {kind}[] parameter(0) b = {kind}[] parameter(1) ROOT c = {kind}[] {opcode}(a, b) }}
        ENTRY e {{ p = {kind}[5] parameter(0) one = {kind}[] constant(1)
          ROOT d = {kind}[] reduce(p, one), dimensions={{0}}, to_apply=f }}""")
    ones = [np.ones(5).astype(dtype(kind))]
    (computed,) = shard(module, {"x": 3}, {"p": ("x",)}).run(ones)
    (expected,) = run(module, ones)
    assert float(computed) == float(expected)
    assert opcode == "add" or float(computed) == 1


def test_random_numbers_are_those_of_one_device() -> None:
    text = """ENTRY e { a = f32[] constant(0) b = f32[] constant(1)
      ROOT r = f32[3,5] rng(a, b), distribution=rng_uniform }"""
    module = hlo.parse(text)
    local = check(assignment(module, {"r": "x _"}, {}), module)
    assert [c.kind for c in local.collectives] == ["reduce-scatter", "all-reduce"]


def test_a_sum_of_partial_sums_needs_one_reduction() -> None:
    text = """ENTRY e { p = f32[8,16] parameter(0) q = f32[16,4] parameter(1)
      d = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      m = f32[8,4] multiply(p.1, p.1)
      ROOT s = f32[8,4] add(d, d) }""".replace("m = f32[8,4] multiply(p.1, p.1)", "")
    module = hlo.parse(text)
    given = dict(assignment(module, {"p": "_ x", "q": "x _"}, {"d": "k=x"}).instructions)
    partial = Sharding(MESH, ((), ()), ((X, "sum"),))
    d, s = module.entry["d"], module.entry["s"]
    given[d] = InstructionAssignment(given[d].rule, given[d].factor_axes, (partial,))
    kept = (((X, "sum"),),) * 2
    given[s] = InstructionAssignment(given[s].rule, ((), ()), given[s].results, kept)
    local = check(Assignment(MESH, given), module)
    assert list_exchanges(local) == ["all-reduce x 128"]
    assert local.module.entry.root.opcode == "all-reduce"


def test_indices_of_devices_are_computed_once() -> None:
    text = """ENTRY e { p = f32[8,6] parameter(0) q = f32[8,6] negate(p)
      ROOT d = f32[8,6] add(p, q) }"""
    module = hlo.parse(text)
    local = check(assignment(module, {"d": "x y"}, {"q": "i=x j=y", "d": "i=x j=y"}), module)
    assert [i.opcode for i in local.module.entry].count("partition-id") == 1


LOOP = """
  less { s = (s32[], f32[4,5], f32[5,5]) parameter(0) i = s32[] get-tuple-element(s), index=0
    n = s32[] constant(3) ROOT r = pred[] compare(i, n), direction=LT }
  next { s = (s32[], f32[4,5], f32[5,5]) parameter(0) i = s32[] get-tuple-element(s), index=0
    x = f32[4,5] get-tuple-element(s), index=1 w = f32[5,5] get-tuple-element(s), index=2
    one = s32[] constant(1) j = s32[] add(i, one)
    y = f32[4,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT t = (s32[], f32[4,5], f32[5,5]) tuple(j, y, w) }
  ENTRY e { x = f32[4,5] parameter(0) w = f32[5,5] parameter(1) zero = s32[] constant(0)
    s = (s32[], f32[4,5], f32[5,5]) tuple(zero, x, w)
    ROOT r = (s32[], f32[4,5], f32[5,5]) while(s), condition=less, body=next }
"""


def loop_assignment(module: Module, carried: str) -> Assignment:
    shardings = (sharding(""), sharding(carried), sharding("y _"))
    assigned = {}
    for i in module.instructions:
        rule = sharding_rule(i)
        results = tuple(sharding("_ " * leaf.count(",") + "_" if "," in leaf else "")
                        for leaf in re.findall(r"\[([\d,]*)\]", str(i.shape)))  # fmt: skip
        if i.opcode in ("tuple", "while") or i.name == "s":
            results = shardings
        axes = tuple((Y,) if f.kind == "reduction" else () for f in rule.factors)
        assigned[i] = InstructionAssignment(rule, axes, results)
    return Assignment(MESH, assigned)


def test_arrays_that_a_loop_carries_are_split() -> None:
    module = hlo.parse(LOOP)
    local = check(loop_assignment(module, "x _"), module)
    assert {c.instruction.computation.name for c in local.collectives if c.instruction} >= {"next"}
    assert str(local.module.entry.root.shape) == "(s32[], f32[2,5], f32[3,5])"


def test_contradictions_of_an_assignment_are_errors() -> None:
    module = hlo.parse(LOOP)
    assigned = dict(loop_assignment(module, "x _").instructions)
    body = module.computations["next"]
    wrong = (sharding(""), sharding("_ x"), sharding("y _"))
    assigned[body.root] = InstructionAssignment(assigned[body.root].rule, (), wrong)
    with pytest.raises(ValueError, match=r"`t` has the shardings .*\[_, x\].*, but `r` has"):
        partition(Assignment(MESH, assigned), module)
    del assigned[body.root]
    with pytest.raises(ValueError, match="the assignment misses `t`"):
        partition(Assignment(MESH, assigned), module)


def test_programs_with_calls_are_refused() -> None:
    text = """neg { a = f32[3] parameter(0) ROOT b = f32[3] negate(a) }
      ENTRY e { p = f32[3] parameter(0) ROOT c = f32[3] call(p), to_apply=neg }"""
    module = hlo.parse(text)
    with pytest.raises(hlo.HloError, match="call `c` must be flattened first") as caught:
        partition(Assignment(MESH, {}), module)
    assert caught.value.span.place() == "<string>:2:46"


def test_functions_that_ops_apply_may_call_others() -> None:
    text = """neg { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
      f { a = f32[] parameter(0) ROOT b = f32[] call(a), to_apply=neg }
      ENTRY e { p = f32[3] parameter(0) ROOT c = f32[3] map(p), dimensions={0}, to_apply=f }"""
    module = hlo.parse(text)
    local = check(assignment(module, {"c": "x"}, {"c": "i=x"}), module)
    assert list(local.module.computations) == ["neg", "f", "e"]


CONVOLVED = """ENTRY e { p = f32[2,8,3] parameter(0) k = f32[4,3,5] parameter(1)
  ROOT r = f32[2,2,5] convolution(p, k), window={size=4 stride=4}, dim_labels=b0f_0io->b0f }"""


def test_every_factor_of_a_convolution_of_patches() -> None:
    """The windows are adjacent: positions of windows pass through; a window itself is not split."""
    module = hlo.parse(CONVOLVED)
    rule = sharding_rule(module.entry.root)
    assert str(rule).startswith("([i, jl, m], [l, m, k])->([i, j, k])")
    for letter, collectives in zip("ijklm", ([], [], [], None, ["all-reduce"]), strict=True):
        local = check(assignment(module, {"k": "_ _ _"}, {"r": f"{letter}=x"}), module)
        kinds = [c.kind for c in local.collectives if c.kind != "all-gather"]
        assert collectives is None or kinds == collectives


def test_a_copy_keeps_the_split_of_its_operand() -> None:
    text = """ENTRY e { p = f32[8,4] parameter(0) c = f32[8,4]{0,1} copy(p)
      ROOT n = f32[8,4] negate(c) }"""
    module = hlo.parse(text)
    copy = module.entry["c"]
    assert usable_axes(copy, sharding_rule(copy), ((X,), (Y,)), MESH) == ((X,), (Y,))
    plan = shard(module, {"x": 2, "y": 2}, {"p": ("x", "y")})
    assert (plan.bytes_sent, str(plan.specs["n"])) == (0, "[x, y]")


def test_a_device_numbering_that_is_no_range_is_an_error() -> None:
    mesh = Mesh.of({"x": 2}, [1, 2])
    with pytest.raises(ValueError, match="numbered 0 to 1"):
        partition(Assignment(mesh, {}), hlo.parse(MATMUL))


def test_devices_may_be_numbered_in_another_order() -> None:
    module = hlo.parse(MATMUL)
    mesh = Mesh.of({"x": 2, "y": 2}, [2, 0, 3, 1])
    given = assignment(module, {"p": "xy _", "q": "_ x", "d": "y x"}, {"d": "i=y j=x"})
    moved = {
        i: InstructionAssignment(a.rule, a.factor_axes,
                                 tuple(Sharding(mesh, s.dims) for s in a.results))
        for i, a in given.instructions.items()
    }  # fmt: skip
    check(Assignment(mesh, moved), module, small_inputs(module))
