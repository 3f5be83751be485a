"""Outputs of one instruction: walks from them share steps, and answers do not depend on that."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from hlo import Instruction
from indexing.dataflow import answering, compositions
from indexing.dataflow.queries import walk_of
from indexing.maps.answers import Answer
from indexing.maps.options import OptionChoices
from tests.compiled import interpreted_only
from tests.dataflow.programs import entry
from tests.growth.work import calls_of

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))
OPTIONS: list[OptionChoices] = [
    {},
    {"exact": True},
    {"certify": True},
    {"assume": ("masked-softmax",)},
]


def layers(count: int) -> Instruction:
    """Return a tuple of all rows of a table that layers change, each from the one before."""
    lines = [
        "table = f32[50,6] parameter(0)",
        "row = s32[7] parameter(1)",
        "x0 = f32[7,6] gather(table, row), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}",
    ]
    for k in range(count):
        lines.append(f"w{k} = f32[6,6] parameter({k + 2})")
        lines.append(
            f"d{k} = f32[7,6] dot(x{k}, w{k}), lhs_contracting_dims={{1}}, "
            f"rhs_contracting_dims={{0}}"
        )
        lines.append(f"x{k + 1} = f32[7,6] add(x{k}, d{k})")
    names = [f"x{k + 1}" for k in range(count)]
    shapes = ", ".join(["f32[7,6]"] * count)
    lines.append(f"ROOT r = ({shapes}) tuple({', '.join(names)})")
    return entry("\n".join(lines)).root


def record(answer: Answer) -> list[object]:
    return [
        (answer.domain_id, answer.paths, answer.control, str(answer.reasons)),
        [[str(m) for m in maps] for maps in answer.maps],
        [str(unknown) for unknown in answer.unknown],
    ]


def agree(root: Instruction, outputs: list[int], options: OptionChoices) -> bool:
    """Return True if the outputs have the answers that they have on their own."""
    walk = walk_of(**options)
    together = answering.outputs_to_parameters(walk, root, outputs)
    alone = [answering.to_parameters(walk, root, output) for output in outputs]
    return list(map(record, together)) == list(map(record, alone))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options), "default"))
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_outputs_of_examples(path: Path, options: OptionChoices) -> None:
    root = hlo.load(path).entry.root
    count = len(root.operands) if root.opcode == "tuple" else 1
    assert agree(root, list(range(count))[::-1], options)


@pytest.mark.parametrize("max_pairs", [0, 2, 1 << 10])
@pytest.mark.parametrize("max_shared", [3, 1 << 16])
@pytest.mark.parametrize("exact", [False, True])
def test_outputs_within_limits(
    max_pairs: int, max_shared: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compositions, "MAX_PAIRS", max_pairs)
    monkeypatch.setattr(compositions, "MAX_SHARED", max_shared)
    assert agree(layers(5), [4, 0, 3, 2, 1], {"exact": exact})


@interpreted_only
def test_the_steps_from_an_array_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    root, walk = layers(8), walk_of()
    searches = calls_of(monkeypatch, compositions.Compositions, "_steps_along")
    answering.to_parameters(walk, root, 7)
    alone = len(searches)
    list(answering.outputs_to_parameters(walk, root, range(8)))
    assert len(searches) - alone < alone + 8


def test_an_output_out_of_range() -> None:
    with pytest.raises(IndexError, match="no output 3"):
        list(answering.outputs_to_parameters(walk_of(), layers(2), [0, 3]))
