"""Why maps have the grade `may`: reasons on their way from an op to the answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.maps.answers import Answer
from indexing.maps.map_set import MapSet
from indexing.maps.reasons import MAX_REASONS, OMITTED, UNDECLARED, Reason
from indexing.maps.space_pairs import SpacePair
from indexing.ops.collective_bases import IGNORED, Collective
from indexing.ops.samples import instruction_of
from indexing.views.op_table import named_ops

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))
SAMPLES = [(name, text) for name, cls in named_ops().items() for text in cls.samples]
COLLECTIVES = [text for name, text in SAMPLES if issubclass(named_ops()[name], Collective)]
BRANCHES = """
double { x = f32[6] parameter(0) ROOT d = f32[6] add(x, x) }
mirror { y = f32[6] parameter(0) ROOT r = f32[6] reverse(y), dimensions={0} }
choose {
  k = pred[] parameter(0)
  v = f32[6] parameter(1)
  two = f32[] constant(2)
  power = f32[] exponential(two)
  i = pred[] compare(power, two), direction=GT
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


def answers(instruction: Instruction, *, exact: bool = False) -> Iterator[Answer]:
    """Yield the answers about one instruction, in both directions."""
    for output in range(len(leaves(instruction.shape))):
        yield indexing.output_to_input(instruction, output, exact=exact)
    for operand in range(len(instruction.operands)):
        yield indexing.input_to_output(instruction, operand, exact=exact)


def texts(answer: Answer) -> list[set[str]]:
    """Return the reasons for each operand or output."""
    return [{str(reason) for each in reasons for reason in each} for reasons in answer.reasons]


def require_reasons(answer: Answer) -> None:
    """Fail unless precisely the `may` maps have reasons."""
    for maps, reasons in zip(answer.maps, answer.reasons, strict=True):
        for m, why in zip(maps, reasons, strict=True):
            assert (m.grade == "may") == bool(why), f"{answer!r}: {m}: {why}"
            assert UNDECLARED not in why, f"{answer!r}: {m}"


@pytest.mark.parametrize(("name", "text"), SAMPLES)
def test_precisely_the_may_maps_of_every_op_have_a_reason(name: str, text: str) -> None:
    instruction = instruction_of(text)
    for exact in (False, True):
        for answer in answers(instruction, exact=exact):
            require_reasons(answer)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_precisely_the_may_maps_of_programs_have_a_reason(path: Path) -> None:
    for computation in hlo.load(str(path)).computations.values():
        for answer in indexing.all_to_parameters(computation):
            require_reasons(answer)


def test_an_op_that_declares_no_reason_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    padded = instruction_of(
        "s32[1,1,5] convolution(s32[1,1,5] p, s32[1,1,3] q), window={size=3 pad=1_1}, "
        "dim_labels=bf0_oi0->bf0"
    )
    monkeypatch.setattr(type(padded.op), "obstacle", "")
    assert indexing.output_to_input(padded).reasons == (((),), ((UNDECLARED,),))


def test_a_reason_travels_through_calls_and_compositions_in_both_directions() -> None:
    root = hlo.parse(BRANCHES).entry.root
    assert texts(indexing.to_parameters(root)) == [set(), {CHOSEN}, set()]
    for answer in indexing.all_to_parameters(root.computation):
        if answer.instruction is root:
            assert texts(answer) == [{CHOSEN}, set()]
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
    root = hlo.parse("""
    ENTRY e { t = (f32[5,3], f32[5,3], f32[5,3]) parameter(0) u = f32[2,2] parameter(1)
      i = s32[] parameter(2) a = f32[5,3] get-tuple-element(t), index=0
      b = f32[5,3] get-tuple-element(t), index=1 c = f32[5,3] get-tuple-element(t), index=2
      s = f32[5,3] custom-call(a), custom_call_target="unknown"
      d = f32[5,3] dynamic-update-slice(b, u, i, i)
      sd = f32[5,3] add(s, d) ROOT r = f32[5,3] add(sd, c) }""").entry.root
    answer = indexing.to_parameters(root)
    opcodes = {
        path: [reason.instruction and reason.instruction.opcode for reason in reasons]
        for path, reasons in zip(answer.paths[0], answer.reasons[0], strict=True)
    }
    assert opcodes == {(0,): ["custom-call"], (1,): ["dynamic-update-slice"], (2,): []}


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("text", COLLECTIVES)
def test_precisely_the_may_maps_between_devices_have_a_reason(text: str, replicas: int) -> None:
    instruction = instruction_of(text)
    for output in range(len(leaves(instruction.shape))):
        require_reasons(indexing.device_maps(instruction, output, num_replicas=replicas))
    for operand in range(len(instruction.operands)):
        require_reasons(
            indexing.device_input_to_output(instruction, operand, num_replicas=replicas)
        )


# fmt: off
BETWEEN_DEVICES = [
    # computation of the reduction            instruction                     reason
    ("add(a, b)",                             "all-reduce(p)",                None),
    ("negate(b)",                             "all-reduce(p)",                IGNORED),
]
# fmt: on


@pytest.mark.parametrize(("reduced", "reduction", "reason"), BETWEEN_DEVICES)
def test_a_reduction_between_devices_has_the_reason_of_its_computation(
    reduced: str, reduction: str, reason: str | None
) -> None:
    root = hlo.parse(f"""
    f {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] {reduced} }}
    ENTRY e {{ p = f32[4] parameter(0) ROOT r = f32[4] {reduction}, to_apply=f }}""").entry.root
    answer = indexing.device_maps(root, num_replicas=2)
    assert {each.text for why in answer.reasons[0] for each in why} == ({reason} - {None})


def test_a_loop_names_the_index_that_is_not_affine_in_the_iteration() -> None:
    loop = hlo.parse("""
    step { p = (s32[], f32[8], f32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1) j = s32[] add(i, one) square = s32[] multiply(i, i)
      a = f32[8] get-tuple-element(p), index=1 b = f32[] get-tuple-element(p), index=2
      x = f32[1] dynamic-slice(a, square), dynamic_slice_sizes={1} y = f32[] reshape(x)
      s = f32[] add(b, y) r = f32[1] reshape(s) c = f32[8] dynamic-update-slice(a, r, square)
      ROOT t = (s32[], f32[8], f32[]) tuple(j, c, s) }
    below { p = (s32[], f32[8], f32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(200) ROOT r = pred[] compare(i, n), direction=LT }
    ENTRY e { zero = s32[] constant(0) a = f32[8] parameter(0) b = f32[] parameter(1)
      c = (s32[], f32[8], f32[]) tuple(zero, a, b)
      ROOT w = (s32[], f32[8], f32[]) while(c), condition=below, body=step }""").entry.root
    answer = indexing.to_parameters(loop, 2)
    require_reasons(answer)
    text = "an index is not affine in the number of the iteration"
    assert texts(answer) == [{f"while `w`: {text}: `square`"}, set()]
    assert text in [record.reason for record in indexing.summary(loop.module).may]


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
    multiples = [indexing.IndexingMap.of([d], [d.as_expr() * k]) for k in range(300)]
    kept = MapSet((), SpacePair((d,), (400 * 300,)))
    kept.extend(multiples)
    assert [str(reason) for reason in kept.reasons] == [
        "budget: more than 256 maps between two arrays"
    ]
