"""Pictures of blocks: the numbers are those of an enumeration of the grid."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from indexing.drawing.figures import CellGrid
from indexing.drawing.pallas_pictures import call_figure, operand_figure
from indexing.pallas import check
from tests.pallas.enumeration import box, steps
from tests.pallas.examples import PAGES, RACE
from tests.pallas.kernels import Kernel, Operand

pytest.importorskip("jax")

HOLES = Kernel(
    "holes",
    (3, 2),
    (Operand((24, 256), (8, 128), lambda i, j: (i, j)),),
    (Operand((48, 256), (8, 128), lambda i, j: (2 * i, j * 0)),),
)


def output_of(kernel: Kernel) -> Any:
    function, avals = kernel.function()
    return check(function, *avals)[0].operands[-1]


@pytest.mark.parametrize("kernel", [HOLES, RACE], ids=lambda kernel: kernel.name)
def test_each_block_has_the_number_of_its_steps(kernel: Kernel) -> None:
    (operand,) = kernel.outputs
    expected = Counter(
        tuple(low // size for (low, _), size in zip(box(operand, p), operand.block, strict=True))
        for p in steps(kernel.grid)
    )
    (panel,) = operand_figure(output_of(kernel)).panels
    assert isinstance(panel, CellGrid)
    shown = {cell.index: cell.value for cell in panel.cells}
    assert {index: n for index, n in shown.items() if n} == {
        ",".join(map(str, block)): n for block, n in expected.items()
    }
    zeros = [n for n in shown.values() if n == 0]
    assert bool(zeros) == ("0: no step has the block" in panel.notes)


def test_a_step_has_a_panel_with_its_block() -> None:
    report = output_of(HOLES)
    _, one = operand_figure(report, (1, 1)).panels
    assert isinstance(one, CellGrid)
    assert [cell.index for cell in one.cells if cell.value] == ["2,0"]
    assert "<svg" in report.plot(step=(1, 1)).svg
    with pytest.raises(ValueError, match=r"step \(3, 0\) is not in the grid"):
        report.plot(step=(3, 0))


def test_a_call_has_a_panel_for_each_operand() -> None:
    function, avals = HOLES.function()
    call = check(function, *avals)[0]
    for step in (None, (2, 1)):
        figure = call_figure(call, step)
        assert figure.notes == call.faults
        for panel, operand in zip(figure.panels, (*HOLES.inputs, *HOLES.outputs), strict=True):
            assert isinstance(panel, CellGrid)
            shown = {cell.index for cell in panel.cells if cell.value}
            assert shown == {
                ",".join(str(low // n) for (low, _), n in zip(each, operand.block, strict=True))
                for each in [box(operand, p) for p in steps(HOLES.grid) if step in (None, p)]
            }
    assert "step (2, 1) of the grid (i &lt; 3, j &lt; 2)" in call.plot(step=(2, 1)).svg
    with pytest.raises(ValueError, match=r"step \(2,\) is not in the grid"):
        call.plot(step=(2,))


def test_blocks_that_depend_on_scalars_are_unknown() -> None:
    function, avals = PAGES.function()
    figure = operand_figure(check(function, *avals)[0].operands[0])
    assert figure.notes == ("unknown: the blocks depend on scalars",)
