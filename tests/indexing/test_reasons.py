"""Why maps have the grade `may`: reasons on their way from an op to the answer."""

from collections.abc import Iterator

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.maps.answers import Answer
from indexing.maps.map_set import MapSet, SpacePair
from indexing.maps.reasons import MAX_REASONS, OMITTED, Reason
from indexing.ops.samples import instruction_of
from indexing.views.op_table import named_ops

SAMPLES = [(name, text) for name, cls in named_ops().items() for text in cls.samples]
BRANCHES = """
double { x = f32[6] parameter(0) ROOT d = f32[6] add(x, x) }
mirror { y = f32[6] parameter(0) ROOT r = f32[6] reverse(y), dimensions={0} }
choose {
  i = pred[] parameter(0)
  v = f32[6] parameter(1)
  ROOT c = f32[6] conditional(i, v, v), true_computation=double, false_computation=mirror
}
ENTRY e {
  k = pred[] parameter(0)
  p = f32[6] parameter(1)
  q = f32[6] parameter(2)
  chosen = f32[6] call(k, p), to_apply=choose
  s = f32[6] add(chosen, q)
  ROOT n = f32[2,3] reshape(s)
}
"""
CHOSEN = "conditional `c`: the executed branch depends on data: `i`"


def answers(instruction: Instruction, **options: bool) -> Iterator[Answer]:
    """Yield the answers about one instruction, in both directions."""
    for output in range(len(leaves(instruction.shape))):
        yield indexing.output_to_input(instruction, output, **options)
    for operand in range(len(instruction.operands)):
        yield indexing.input_to_output(instruction, operand, **options)


def texts(answer: Answer) -> list[set[str]]:
    """Return the reasons for each operand or output."""
    return [{str(reason) for each in reasons for reason in each} for reasons in answer.reasons]


def require_reasons(answer: Answer) -> None:
    """Fail unless precisely the `may` maps have reasons."""
    for maps, reasons in zip(answer.maps, answer.reasons, strict=True):
        for m, why in zip(maps, reasons, strict=True):
            assert (m.grade == "may") == bool(why), f"{answer!r}: {m}: {why}"
            assert all(reason.text for reason in why), f"{answer!r}: {why}"


@pytest.mark.parametrize(("name", "text"), SAMPLES)
def test_precisely_the_may_maps_of_every_op_have_a_reason(name: str, text: str) -> None:
    instruction = instruction_of(text)
    for options in ({}, {"exact": True}):
        for answer in answers(instruction, **options):
            require_reasons(answer)


def test_a_reason_travels_through_calls_and_compositions_in_both_directions() -> None:
    root = hlo.parse(BRANCHES).entry.root
    assert texts(indexing.to_parameters(root)) == [set(), {CHOSEN}, set()]
    for answer in indexing.all_to_parameters(root.computation):
        if answer.instruction is root:
            assert texts(answer) == [set(), {CHOSEN}, set()]
    entry = root.computation
    assert texts(indexing.epilogue(entry["chosen"])) == [set()]
    assert texts(indexing.epilogue(entry["p"])) == [{CHOSEN}]
    (reason,) = indexing.to_parameters(root).reasons[1][0]
    assert reason.instruction is root.module.computations["choose"].root


def test_a_reason_travels_through_device_walks() -> None:
    root = hlo.parse(BRANCHES).entry.root
    answer = indexing.device_maps_to_parameters(root, num_partitions=2)
    assert texts(answer) == [set(), {CHOSEN}, set()]
    require_reasons(answer)


def test_each_leaf_of_a_tuple_has_its_own_reasons() -> None:
    loop = hlo.parse("""
    below { p = (s32[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(5) ROOT r = pred[] compare(i, n), direction=LT }
    next { p = (s32[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1) j = s32[] add(i, one) a = f32[4] get-tuple-element(p), index=1
      b = f32[4] get-tuple-element(p), index=2 s = f32[4] reverse(a), dimensions={0}
      c = f32[4] add(b, s) ROOT t = (s32[], f32[4], f32[4]) tuple(j, s, c) }
    ENTRY e { p = (s32[], f32[4], f32[4]) parameter(0)
      ROOT w = (s32[], f32[4], f32[4]) while(p), condition=below, body=next }""").entry.root
    for answer in answers(loop):
        require_reasons(answer)


def test_an_exact_map_in_the_place_of_its_may_twin_has_no_reason() -> None:
    same = indexing.IndexingMap.identity((4,))
    kept = MapSet((), SpacePair(indexing.dims((4,)), (4,)))
    kept.extend([same.with_grade("may")], None, [Reason("first")])
    assert kept.reasons == (Reason("first"),)
    kept.add(same)
    assert not kept.reasons


def test_a_composition_without_maps_adds_no_reason() -> None:
    same = indexing.IndexingMap.identity((4,)).with_grade("may")
    kept = MapSet([same], SpacePair(indexing.dims((4,)), (4,)))
    kept.add_composed([], [same], None, [Reason("of maps that do not exist")])
    assert kept.reasons == ()


def test_reasons_are_limited() -> None:
    same = indexing.IndexingMap.identity((4,)).with_grade("may")
    kept = MapSet([same], SpacePair(indexing.dims((4,)), (4,)))
    kept.add_reasons([Reason(str(k % 20)) for k in range(40)])
    assert kept.reasons == (*[Reason(str(k)) for k in range(MAX_REASONS)], OMITTED)


def test_maps_that_exceed_the_budget_name_it() -> None:
    (d,) = indexing.dims((400,))
    shifts = [indexing.IndexingMap.of([d], [d.as_expr() + k]) for k in range(300)]
    kept = MapSet((), SpacePair((d,), (700,)))
    kept.extend(shifts)
    assert [str(reason) for reason in kept.reasons] == [
        "budget: more than 256 maps between two arrays"
    ]
