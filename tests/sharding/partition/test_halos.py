"""Splits of windows, slices, pads and reverses: devices send the borders of their shards."""

from __future__ import annotations

from random import Random

import pytest

import hlo
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.sharding import sharding_rule
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.program import Partitioned
from indexing.sharding.partition.usable_splits import usable_axes
from indexing.sharding.partition.windows import halo_bytes
from tests.oracles import scale
from tests.sharding.partition.partitions import check, small_inputs, whole

REDUCERS = "\n".join(
    f"{name} {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] {name}(a, b) }}"
    for name in ("add", "maximum")
)


def split_root(text: str, mesh: Mesh, number: int, axes: tuple[Axis, ...]) -> Partitioned:
    """Split one factor of the root; operand 0 and the result are split along its dimensions."""
    module = hlo.parse(text)
    root = module.entry.root
    rule = sharding_rule(root)
    assigned = {}
    for i in module.instructions:
        none = ((),) * len(sharding_rule(i).factors)
        assigned[i] = InstructionAssignment(sharding_rule(i), none, whole(mesh, i))
    chosen = tuple(axes if k == number else () for k in range(len(rule.factors)))

    def along(dims: tuple[tuple[int, ...], ...]) -> Sharding:
        return Sharding(mesh, tuple(tuple(a for n in dim for a in chosen[n]) for dim in dims))

    first = root.operands[0]
    assigned[first] = InstructionAssignment(
        sharding_rule(first), assigned[first].factor_axes, (along(rule.operands[0]),)
    )
    assigned[root] = InstructionAssignment(rule, chosen, (along(rule.results[0]),))
    local = check(Assignment(mesh, assigned), module, small_inputs(module))
    sent = sum(each.bytes_sent for each in local.collectives if "halo" in each.reason)
    assert halo_bytes(root, rule, usable_axes(root, rule, chosen, mesh), mesh) == sent
    return local


def text_of(line: str) -> str:
    shape = line.partition("(")[2].partition(" p")[0]
    rest = line.replace(f"{shape} p", "p")
    return f"""{REDUCERS}
ENTRY e {{ p = {shape} parameter(0) k = f32[3,1,1] parameter(1) z = f32[] parameter(2)
  ROOT r = {rest} }}"""


X = Axis("x")
# fmt: off
ROWS = [
    # split along x of 4 devices: bytes that each device sends, in the order of distances
    ("f32[16] reduce-window(f32[16] p, z), window={size=3 pad=1_1}, to_apply=add", [4, 4]),
    ("f32[14] reduce-window(f32[16] p, z), window={size=3}, to_apply=maximum", [8]),
    ("f32[8] reduce-window(f32[16] p, z), window={size=2 stride=2}, to_apply=add", []),
    ("f32[8] reduce-window(f32[16] p, z), window={size=4 stride=2 pad=1_1}, to_apply=add", [4, 4]),
    ("f32[16] reduce-window(f32[16] p, z), window={size=2 pad=2_0 rhs_dilate=2}, to_apply=add",
     [8]),
    ("f32[1,16,1] convolution(f32[1,16,1] p, k), window={size=3 pad=1_1}, "
     "dim_labels=b0f_0io->b0f", [4, 4]),
    ("f32[1,32,1] convolution(f32[1,16,1] p, k), window={size=3 pad=1_2 lhs_dilate=2}, "
     "dim_labels=b0f_0io->b0f", [4]),
    ("f32[20] pad(f32[16] p, z), padding=2_2", [4, 4]),
    ("f32[12] slice(f32[16] p), slice={[2:14]}", [4, 4]),
    ("f32[8] slice(f32[16] p), slice={[1:16:2]}", []),
    ("f32[15] slice(f32[16] p), slice={[1:16]}", [4]),
    ("f32[32] pad(f32[16] p, z), padding=0_1_1", []),
    ("f32[16] reverse(f32[16] p), dimensions={0}", [16]),
]
# fmt: on


@pytest.mark.parametrize(("line", "sent"), ROWS, ids=[line[:60] for line, _ in ROWS])
def test_devices_send_the_borders_that_neighbours_need(line: str, sent: list[int]) -> None:
    text = text_of(line)
    rule = sharding_rule(hlo.parse(text).entry.root)
    number = rule.results[0]["convolution" in line][0]
    local = split_root(text, Mesh.of({"x": 4}), number, (X,))
    assert [(c.kind, c.bytes_sent) for c in local.collectives] == [
        ("collective-permute", each) for each in sent
    ]
    assert all("halo of `r`" in c.reason for c in local.collectives)


def random_line(random: Random) -> str:
    """A random window, pad, slice or reverse of 9 to 40 elements."""
    size = random.randint(9, 40)
    kind = random.choice(["pad", "slice", "reverse", "reduce-window", "convolution"])
    if kind == "reverse":
        return f"f32[{size}] reverse(f32[{size}] p), dimensions={{0}}"
    if kind == "slice":
        start, stride = random.randint(0, 5), random.choice([1, 1, 2, 3])
        limit = random.randint(start + 1, size)
        count = len(range(start, limit, stride))
        return f"f32[{count}] slice(f32[{size}] p), slice={{[{start}:{limit}:{stride}]}}"
    low, high = random.randint(-2, 3), random.randint(-2, 4)
    dilation = random.choice([1, 1, 2, 3])
    dilated = (size - 1) * dilation + 1 + low + high
    if kind == "pad":
        return f"f32[{dilated}] pad(f32[{size}] p, z), padding={low}_{high}_{dilation - 1}"
    stride, holes = random.choice([1, 1, 2, 3]), random.choice([1, 1, 2])
    count = (dilated - 2 * holes - 1) // stride + 1
    window = (
        f"window={{size=3 stride={stride} pad={low}_{high} lhs_dilate={dilation} "
        f"rhs_dilate={holes}}}"
    )
    if kind == "reduce-window":
        function = random.choice(["add", "maximum"])
        return f"f32[{count}] reduce-window(f32[{size}] p, z), {window}, to_apply={function}"
    return f"f32[1,{count},1] convolution(f32[1,{size},1] p, k), {window}, dim_labels=b0f_0io->b0f"


def test_random_windows_compute_the_same_on_shards() -> None:
    exchanged = 0
    for seed in range(scale(60)):
        random = Random(seed)
        text = text_of(random_line(random))
        rule = sharding_rule(hlo.parse(text).entry.root)
        numbers = [n for n, f in enumerate(rule.factors) if f.kind == "permutation"]
        axes, mesh = random.choice([
            ((X,), Mesh.of({"x": 2})), ((X,), Mesh.of({"x": 3})), ((X,), Mesh.of({"x": 4})),
            ((X, Axis("y")), Mesh.of({"x": 2, "y": 2})), ((X,), Mesh.of({"y": 2, "x": 3})),
        ])  # fmt: skip
        for number in numbers:
            local = split_root(text, mesh, number, axes)
            exchanged += any("halo" in each.reason for each in local.collectives)
    assert exchanged > scale(60) // 5  # the others are cheaper to gather, or need no exchange


def test_two_dimensions_of_an_image_are_split() -> None:
    text = """ENTRY e { p = f32[2,12,10,3] parameter(0) k = f32[3,3,3,4] parameter(1)
      ROOT r = f32[2,12,10,4] convolution(p, k), window={size=3x3 pad=1_1x1_1},
        dim_labels=b01f_01io->b01f }"""
    module = hlo.parse(text)
    mesh = Mesh.of({"x": 2, "y": 2})
    rule = sharding_rule(module.entry.root)
    spatial = iter((X, Axis("y")))
    axes = tuple((next(spatial),) if f.kind == "permutation" else () for f in rule.factors)
    image = Sharding(mesh, ((), (X,), (Axis("y"),), ()))
    assigned = {}
    for i in module.instructions:
        rule_of = sharding_rule(i)
        results = (image,) if i.name in ("p", "r") else whole(mesh, i)
        assigned[i] = InstructionAssignment(rule_of, ((),) * len(rule_of.factors), results)
    assigned[module.entry.root] = InstructionAssignment(rule, axes, (image,))
    local = check(Assignment(mesh, assigned), module)
    row, column = 2 * 1 * 5 * 3 * 4, 2 * 8 * 1 * 3 * 4
    assert [c.bytes_sent for c in local.collectives] == [row, row, column, column]
    assert halo_bytes(module.entry.root, rule, axes, mesh) == 2 * row + 2 * column
