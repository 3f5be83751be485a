"""The work of plans, pictures and checks grows linearly with the number of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

import hlo
import indexing
from hlo.shardings.mesh import Axis, Mesh
from indexing.devices.devices import Devices
from indexing.drawing.plan_pictures import plan_figure
from indexing.drawing.svg_text import svg_text
from indexing.sharding.partition.collective_costs import collective_costs, group_axes
from tests.growth.work import calls_in

SIZES: Final = 64, 256
MAX_GROWTH: Final = 5.0
"""Limit on the growth of the work from 64 to 256 devices: 4 if it is linear, 16 if quadratic."""


class CountedNumber(int):
    """A number of a device that counts its comparisons, such as those of searches in tuples."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedNumber.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))


def mesh_of(n: int) -> Mesh:
    """Return a mesh of two axes, whose devices are in reverse order."""
    mesh = Mesh.of({"x": n // 4, "y": 4}, map(CountedNumber, reversed(range(n))))
    assert all(type(device) is CountedNumber for device in mesh.devices)
    return mesh


def plan_product(n: int, specs: dict[str, str], out: str) -> indexing.Plan:
    """Plan a product, whose sum, halves and order are split as the specs say."""
    module = hlo.parse(f"""
        ENTRY e {{ p = f32[{n},{4 * n}] parameter(0)  q = f32[{4 * n},16] parameter(1)
          ROOT d = f32[{n},16] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        }}""")
    return indexing.shard(module, mesh_of(n), specs, out_specs=[out])


PLANS: Final = {
    "all-reduce": ({"p": "_,x"}, "_,_"),
    "all-gather": ({"p": "x,_"}, "_,_"),
    "all-to-all": ({"p": "(x,y),_"}, "_,y"),
    "permutation": ({"p": "(x,y),_"}, "(y,x),_"),
    "reduce-scatter": ({"p": "_,(x,y)"}, "x,y"),
}


def program(n: int, specs: dict[str, str], out: str) -> int:
    return len(str(plan_product(n, specs, out).module))


def picture(n: int, specs: dict[str, str], out: str) -> int:
    return len(svg_text([plan_figure(plan_product(n, specs, out))]))


def costs(n: int, specs: dict[str, str], out: str) -> int:
    plan = plan_product(n, specs, out)
    return len(collective_costs(plan.module, plan.mesh))


QUESTIONS: Final = {"program": program, "picture": picture, "costs": costs}


def check_growth(question: Callable[[int], int]) -> None:
    work, sizes = [], []
    for n in SIZES:
        before = CountedNumber.compared
        calls, size = calls_in(lambda n=n: question(n))  # type: ignore[misc] # bound at once
        work.append(calls + CountedNumber.compared - before)
        sizes.append(size)
    assert work[1] <= MAX_GROWTH * work[0], (work, sizes)
    assert sizes[1] <= MAX_GROWTH * sizes[0], sizes


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_plan_takes_linear_work(question: str, plan: str) -> None:
    check_growth(lambda n: QUESTIONS[question](n, *PLANS[plan]))


def test_the_axes_of_groups_take_linear_work() -> None:
    def number_of_axes(n: int) -> int:
        groups = [(k, k + 1) for k in range(0, n, 2)]
        return len(group_axes(mesh_of(n), groups))

    check_growth(number_of_axes)


def test_the_numbers_of_devices_are_their_coordinates() -> None:
    """In one pass as one by one."""
    mesh = Mesh.of({"x": 8, "y": 3}, [(5 * k + 7) % 24 for k in range(24)])
    for axes in ([], [Axis("y"), Axis("x")], [Axis("x", 2, 2), Axis("y")]):
        assert mesh.numbers_by_device(axes) == {d: mesh.number(d, axes) for d in mesh.devices}


COLLECTIVES: Final = {
    "lists": "all-reduce(p), to_apply=add, replica_groups={{{pairs}}}",
    "one group": "all-reduce(p), to_apply=add, replica_groups={{{{{numbers}}}}}",
    "iota": "all-reduce(p), to_apply=add, replica_groups=[{half},2]<=[2,{half}]T(1,0)",
    "pairs": "collective-permute(p), source_target_pairs={{{pairs}}}",
}
HEADER: Final = """HloModule m, replica_count={n}
    add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
    ENTRY e {{ p = f32[2] parameter(0)  ROOT r = f32[2] """


@pytest.mark.parametrize("form", COLLECTIVES)
def test_checks_and_maps_of_groups_take_linear_work(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers are counted where they are read."""
    monkeypatch.setattr("hlo.text.cursor.integer", lambda digits, span: CountedNumber(digits))

    def maps(n: int) -> int:
        pairs = ",".join([f"{{{k},{k + 1}}}" for k in range(0, n, 2)])
        numbers = ",".join(map(str, range(n)))
        text = (HEADER + COLLECTIVES[form] + " }}").format(
            n=n, half=n // 2, pairs=pairs, numbers=numbers
        )
        module = hlo.parse(text)
        assert not hlo.verify(module)
        (root,) = [i for i in module.entry if i.name == "r"]
        assert indexing.device_maps(root) is not None
        return Devices.of(module).count

    check_growth(maps)
