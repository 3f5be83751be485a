"""Injective, surjective, single-valued, dependent: compared with enumeration of programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import IndexingMap, RuntimeVariable, parse_map
from indexing.maps.arrays import ArrayName
from indexing.maps.properties import (
    Verdict,
    depends_on,
    is_bijection,
    is_injective,
    is_single_valued,
    is_surjective_onto,
)
from indexing.maps.relation import image, inverse, preimage
from indexing.maps.witnesses import Witness
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.unknown import UndecidedError, Unknown, require_known
from tests.oracles import (
    Pair,
    boxes,
    constraint_lists,
    fuzz,
    invert_pairs,
    relation,
    sums,
    tree_expr,
    trees,
    union,
)

# ---------------------------------------------------------------- the oracle


def shares_a_result(pairs: set[Pair]) -> bool:
    return any(a != b and y == z for a, y in pairs for b, z in pairs)


def has_two_results(pairs: set[Pair]) -> bool:
    return any(a == b and y != z for a, y in pairs for b, z in pairs)


def changes_with(pairs: set[Pair], k: int, bounds: tuple[int, int]) -> bool:
    """Some result of a point is not a result of the point with another coordinate k."""
    return any(
        ((*x[:k], other, *x[k + 1 :]), y) not in pairs
        for x, y in pairs
        for other in range(bounds[0], bounds[1] + 1)
    )


Program = dict[tuple[str, tuple[int, ...]], int]


def programs(maps: Sequence[IndexingMap]) -> Iterator[Program]:
    """Every assignment of values to the source elements of the maps' runtime variables."""
    elements: dict[tuple[str, tuple[int, ...]], range] = {}
    for m in maps:
        for rt in m.runtime:
            low, high = rt.clamp or rt.variable.bounds
            for values in product(*[range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]):
                at = dict(zip((*m.dims, *m.ranges), values, strict=True))
                key = str(rt.source), tuple([i.value(at) for i in rt.index])
                elements[key] = range(low, high + 1)
    for values in product(*elements.values()):
        yield dict(zip(elements, values, strict=True))


def related_pairs(maps: Sequence[IndexingMap], program: Program) -> set[Pair]:
    pairs = set()
    for m in maps:
        for values in product(*[range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]):
            at = dict(zip((*m.dims, *m.ranges), values, strict=True))
            known = [
                program[str(rt.source), tuple([i.value(at) for i in rt.index])] for rt in m.runtime
            ]
            count = len(m.dims)
            results = m.evaluate(values[:count], values[count:], known)
            if results is not None:
                pairs.add((values[:count], results))
    return pairs


def decide(question: Callable[[], bool | Verdict | Unknown]) -> bool | None:
    """The answer as a bool, or `None` if undecided."""
    answer = question()
    return None if isinstance(answer, Unknown) else bool(answer)


# ---------------------------------------------------------------- without runtime variables


@st.composite
def map_sets(draw: st.DrawFn, max_maps: int = 3) -> list[IndexingMap]:
    """One to `max_maps` maps of the same spaces, each with a range variable or without."""
    rank, results = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    maps = []
    for _ in range(draw(st.integers(1, max_maps))):
        dims = [
            Variable(f"d{k}", low := draw(st.integers(-2, 2)), low + draw(st.integers(0, 3)))
            for k in range(rank)
        ]
        s = [Variable("s0", 0, draw(st.integers(0, 2)))][: draw(st.integers(0, 1))]
        every = (*dims, *s)
        kind = st.one_of(sums(len(every)), trees(len(every), leaves=3))
        exprs = [tree_expr(draw(kind), every) for _ in range(results)]
        constraints = draw(constraint_lists(every, max_count=1))
        maps.append(IndexingMap.of(dims, exprs, ranges=s, constraints=constraints))
    return maps


@given(map_sets())
@fuzz(150)
def test_properties_agree_with_enumeration(maps: list[IndexingMap]) -> None:
    pairs = union(maps)
    injective = is_injective(maps)
    assert bool(injective) == (not shares_a_result(pairs))
    if not injective:
        assert isinstance(injective, Verdict)
        assert injective.witness is not None
        (a, b), (y,) = injective.witness.points, injective.witness.results
        assert a != b
        assert {(a, y), (b, y)} <= pairs
    single = is_single_valued(maps)
    assert bool(single) == (not has_two_results(pairs))
    if not single:
        assert isinstance(single, Verdict)
        assert single.witness is not None
        (a,), (y, z) = single.witness.points, single.witness.results
        assert y != z
        assert {(a, y), (a, z)} <= pairs
    assert bool(is_bijection(maps)) == bool(single and injective)


@given(map_sets())
@fuzz(150)
def test_dependence_agrees_with_enumeration(maps: list[IndexingMap]) -> None:
    pairs = union(maps)
    for k in range(len(maps[0].dims)):
        low = min(m.dims[k].lower for m in maps)
        high = max(m.dims[k].upper for m in maps)
        verdict = depends_on(maps, k)
        assert bool(verdict) == changes_with(pairs, k, (low, high))
        if verdict:
            assert isinstance(verdict, Verdict)
            assert verdict.witness is not None
            (a, b), (y,) = verdict.witness.points, verdict.witness.results
            assert [i for i in range(len(a)) if a[i] != b[i]] == [k]
            assert low <= b[k] <= high
            assert (a, y) in pairs
            assert (b, y) not in pairs


@given(map_sets(), st.data())
@fuzz(150)
def test_surjectivity_agrees_with_enumeration(maps: list[IndexingMap], data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(0, 3)) for _ in maps[0].results]
    indices = set(product(*map(range, sizes)))
    hit = {y for _, y in union(maps)}
    verdict = is_surjective_onto(maps, sizes)
    assert bool(verdict) == (indices <= hit)
    if not verdict:
        assert isinstance(verdict, Verdict)
        assert verdict.witness is not None
        assert verdict.witness.results[0] in indices - hit


@given(map_sets(), st.data())
@fuzz(100)
def test_inverse_image_and_preimage_of_several_maps(
    maps: list[IndexingMap], data: st.DataObject
) -> None:
    pairs = union(maps)
    pieces = [relation(piece) for piece in require_known(inverse(maps))]
    assert set().union(*pieces) == invert_pairs(pairs)
    assert sum(map(len, pieces)) == len(pairs)  # disjoint
    whole = {y for piece in require_known(image(maps)) for _, y in relation(piece)}
    assert whole == {y for _, y in pairs}
    some = sorted(whole)[: data.draw(st.integers(0, 2))]
    elements = [IndexingMap.of((), y) for y in some]
    back = {x for piece in require_known(preimage(maps, elements)) for _, x in relation(piece)}
    assert back == {x for x, y in pairs if y in some}
    there = {
        y
        for piece in require_known(image(maps, points=[IndexingMap.of((), x) for x in back]))
        for _, y in relation(piece)
    }
    assert there == {y for x, y in pairs if x in back}


# ---------------------------------------------------------------- with runtime variables


def with_values(text: str, **elements: str) -> IndexingMap:
    """A map whose runtime variable `name` is the element ``elements[name]``, as ``a[d0+1]``."""
    left, right = text.split("), ", 1)
    plain = parse_map(f"{left}), domain: {right}")
    known = {v.name: v for v in plain.variables}

    def place_variable(rt: RuntimeVariable) -> RuntimeVariable:
        source, _, place = elements[rt.name].rstrip("]").partition("[")
        variable, _, offset = place.partition("+")
        index = (known[variable] + int(offset or 0),) if place else ()
        return replace(rt, array=ArrayName(source), index=index, clamp=rt.variable.bounds)

    return replace(plain, runtime=tuple(map(place_variable, plain.runtime)))


# fmt: off
# maps, and sizes of the array that they may be onto
VALUES: list[tuple[list[IndexingMap], tuple[int, ...]]] = [
    # a dynamic slice: injective, whatever the start is
    ([with_values("(d0){rt0} -> (d0 + rt0), d0 in [0, 2], rt0 in [0, 2]", rt0="a")], (5,)),
    # it covers an array of its own size
    ([with_values("(d0){rt0} -> (d0 + rt0), d0 in [0, 2], rt0 in [0, 0]", rt0="a")], (3,)),
    # a gather: no property holds for all indices
    ([with_values("(d0){rt0} -> (rt0), d0 in [0, 2], rt0 in [0, 2]", rt0="a[d0]")], (3,)),
    # rows are gathered, columns stay
    ([with_values("(d0, d1){rt0} -> (rt0, d1), d0 in [0, 1], d1 in [0, 1], rt0 in [0, 1]",
          rt0="a[d0]")], (2, 2)),
    # disjoint intervals per point
    ([with_values("(d0){rt0} -> (d0 * 3 + rt0), d0 in [0, 2], rt0 in [0, 2]", rt0="a[d0]")], (9,)),
    # the same value twice cancels; two values do not
    ([with_values("(d0){rt0, rt1} -> (d0 + rt0 - rt1), d0 in [0, 1], rt0 in [0, 1], rt1 in [0, 1]",
          rt0="a[d0]", rt1="a[d0]")], (2,)),
    ([with_values("(d0){rt0, rt1} -> (d0 + rt0 - rt1), d0 in [0, 1], rt0 in [0, 1], rt1 in [0, 1]",
          rt0="a[d0]", rt1="b[d0]")], (2,)),
    # neighbours: d0 reads elements d0 and d0 + 1
    ([with_values("(d0){rt0, rt1} -> (rt0 * 2 - rt1), d0 in [0, 1], rt0 in [0, 1], rt1 in [0, 1]",
          rt0="a[d0]", rt1="a[d0+1]")], (2,)),
    # two maps that share a start, and two that do not
    ([with_values("(d0){rt0} -> (d0 + rt0), d0 in [0, 1], rt0 in [0, 1]", rt0="a"),
      with_values("(d0){rt0} -> (d0 + rt0 + 2), d0 in [0, 1], rt0 in [0, 1]", rt0="a")], (5,)),
    ([with_values("(d0){rt0} -> (d0 * 4 + rt0), d0 in [0, 1], rt0 in [0, 1]", rt0="a"),
      with_values("(d0){rt0} -> (d0 * 4 + rt0), d0 in [0, 1], rt0 in [0, 1]", rt0="b")], (6,)),
    # the update of a dynamic-update-slice and the rest of the base: together every element
    ([with_values("(d0){rt0} -> (d0), d0 in [0, 3], rt0 in [0, 2], d0 - rt0 in [-3, -1]", rt0="a"),
      with_values("(d0){rt0} -> (d0), d0 in [0, 3], rt0 in [0, 2], d0 - rt0 in [0, 1]", rt0="a"),
      with_values("(d0){rt0} -> (d0), d0 in [0, 3], rt0 in [0, 2], d0 - rt0 in [2, 4]",
          rt0="a")], (4,)),
    # each runtime value may be any element
    ([with_values("(d0)[s0]{rt0} -> (rt0 + s0), d0 in [0, 1], s0 in [0, 1], rt0 in [0, 1]",
          rt0="a[d0]")], (2,)),
    # all columns are read for every runtime value
    ([with_values("(d0)[s0]{rt0} -> (s0), d0 in [0, 1], s0 in [0, 2], rt0 in [0, 1]",
          rt0="a[d0]")], (3,)),
    # the range variable indexes the source
    ([with_values("(d0)[s0]{rt0} -> (d0 * 2 + rt0), d0 in [0, 1], s0 in [0, 1], rt0 in [0, 1]",
          rt0="a[s0]")], (4,)),
]
# fmt: on


@pytest.mark.parametrize("maps, sizes", VALUES, ids=range(len(VALUES)))
def test_properties_hold_for_all_runtime_values(
    maps: list[IndexingMap], sizes: tuple[int, ...]
) -> None:
    relations = [related_pairs(maps, program) for program in programs(maps)]
    assert len(relations) > 0
    indices = set(product(*map(range, sizes)))
    truths = {
        "injective": not any(map(shares_a_result, relations)),
        "single": not any(map(has_two_results, relations)),
        "onto": all(indices <= {y for _, y in pairs} for pairs in relations),
    }
    answers = {
        "injective": decide(lambda: is_injective(maps)),
        "single": decide(lambda: is_single_valued(maps)),
        "onto": decide(lambda: is_surjective_onto(maps, sizes)),
    }
    for k, d in enumerate(maps[0].dims):
        truths[d.name] = any(changes_with(pairs, k, d.bounds) for pairs in relations)
        answers[d.name] = decide(lambda k=k: depends_on(maps, k))  # type: ignore[misc]
    assert {q: a for q, a in answers.items() if a is not None} == {
        q: t for q, t in truths.items() if answers[q] is not None
    }
    assert answers["injective"] is not None
    assert answers["single"] is not None


def test_the_undecided_rows_of_the_table_are_few() -> None:
    """`Unknown` is allowed, but only for the rows listed here."""
    left = [
        (row, name)
        for row, (maps, sizes) in enumerate(VALUES)
        for name, question in (
            ("onto", lambda maps=maps, sizes=sizes: is_surjective_onto(maps, sizes)),
            ("d0", lambda maps=maps: depends_on(maps, 0)),
        )
        if decide(question) is None
    ]
    assert left == [(7, "onto"), (13, "d0")]


def test_a_witness_names_the_elements_and_their_values() -> None:
    gathers = with_values("(d0){rt0} -> (rt0), d0 in [0, 1], rt0 in [0, 4]", rt0="i[d0]")
    verdict = is_injective(gathers)
    assert isinstance(verdict, Verdict)
    assert verdict.witness is not None
    (result,) = verdict.witness.results[0]
    assert verdict.witness == Witness(
        ((0,), (1,)), ((result,),), (("i[0]", result), ("i[1]", result))
    )


def test_differently_clamped_elements_have_a_common_value() -> None:
    def taken_variable(high: int) -> RuntimeVariable:
        return RuntimeVariable(Variable("rt0", 0, high), "i", (), (0, high))

    d = indexing.dims((1,))
    pair = [
        IndexingMap.of(d, [rt.expr + shift], runtime=[rt])
        for rt, shift in ((taken_variable(2), 0), (taken_variable(5), 4))
    ]
    # 0 and 4, 1 and 5, 2 and 6 to 9: always different; but rt0 = 5 and 1 is no value of i
    assert is_single_valued([pair[0], pair[0]]) is True
    far = IndexingMap.of(d, [taken_variable(5).expr + 9], runtime=[taken_variable(5)])
    answer = is_single_valued([pair[0], far])
    assert isinstance(answer, Unknown)
    assert "of `i` is clamped to different bounds" in answer.reason


# ---------------------------------------------------------------- grades


def test_a_verdict_has_the_grade_of_the_maps_it_relies_on() -> None:
    exact = parse_map("(d0) -> (d0), domain: d0 in [0, 3]")
    may = parse_map("(d0) -> (3 - d0), domain: d0 in [0, 3]").with_grade("may")
    half = parse_map("(d0) -> (d0), domain: d0 in [0, 1]")
    assert is_injective(may) is True
    both = is_injective([exact, may])
    assert not both
    assert isinstance(both, Verdict)
    assert both.grade == "may"
    onto = is_surjective_onto([half, may], (4,))
    assert onto
    assert isinstance(onto, Verdict)
    assert onto.grade == "may"
    assert is_surjective_onto([exact, may], (4,)) is True
    missing = is_surjective_onto([half, may], (5,))
    assert not missing
    assert isinstance(missing, Verdict)
    assert missing.grade == "exact"
    assert isinstance(is_bijection(may, onto=(4,)), Verdict)
    assert is_bijection(exact, onto=(4,)) is True
    every = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 3]").with_grade("may")
    no = depends_on([every], 0)
    assert no is False or not no


@given(map_sets(max_maps=2), map_sets(max_maps=2))
@fuzz(40)
def test_pieces_of_an_inverse_are_exact_where_an_exact_map_relates(
    sure: list[IndexingMap], other: list[IndexingMap]
) -> None:
    spaces = [(len(m.dims), len(m.results)) for m in (sure[0], other[0])]
    doubtful = [m.with_grade("may") for m in other if spaces[0] == spaces[1]]
    pieces = require_known(inverse([*doubtful, *sure]))
    by_grade = {g: [relation(p) for p in pieces if p.grade == g] for g in ("exact", "may")}
    assert set().union(*by_grade["exact"]) == invert_pairs(union(sure))
    assert set().union(*by_grade["may"]) == invert_pairs(union(doubtful) - union(sure))
    every = [*by_grade["exact"], *by_grade["may"]]
    assert sum(map(len, every)) == len(set().union(*every))  # disjoint


# fmt: off
METHODS = [
    ("preimage", (3,), preimage), ("is_injective", None, is_injective),
    ("is_single_valued", None, is_single_valued), ("is_surjective_onto", (6,), is_surjective_onto),
    ("is_bijection", (6,), is_bijection), ("depends_on", 1, depends_on),
]
# fmt: on


@pytest.mark.parametrize("name, given_, function", METHODS, ids=[row[0] for row in METHODS])
def test_methods_agree_with_the_functions(
    name: str, given_: object, function: Callable[..., object]
) -> None:
    m = parse_map("(d0, d1) -> (d0 * 2 + d1), domain: d0 in [0, 2], d1 in [0, 2]")
    arguments = () if given_ is None else (given_,)
    assert getattr(m, name)(*arguments) == function(m, *arguments)


def test_no_maps_relate_nothing() -> None:
    assert is_injective([]) is True
    assert is_single_valued([]) is True
    assert depends_on([], 0) is False
    assert is_surjective_onto([], (0, 3)) is True
    assert is_surjective_onto([], (2,)).witness == Witness(results=((0,),))  # type: ignore[union-attr]
    assert (inverse([]), image([]), preimage([], (1,))) == ((), (), ())


# ---------------------------------------------------------------- errors and budgets

PLAIN = parse_map("(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [0, 3]")

# fmt: off
WRONG = [
    (lambda: depends_on(PLAIN, 2), IndexError, "dimension 2 is out of range: .* 2 dimensions"),
    (lambda: depends_on(PLAIN, -1), IndexError, "dimension -1 is out of range"),
    (lambda: depends_on(PLAIN, "s0"), ValueError, "is called 's0': the dimensions are d0, d1"),
    (lambda: is_surjective_onto(PLAIN, (4, 4)), ValueError, "and 2 results, got 2 and 1"),
    (lambda: is_injective([PLAIN, parse_map("(d0) -> (d0), domain: d0 in [0, 3]")]), ValueError,
     "expected maps with 2 dimensions and 1 results"),
    (lambda: image(PLAIN, points=(1,)), ValueError, "1 dimensions"),
    (lambda: preimage(PLAIN, elements=[PLAIN]), ValueError, "maps without dimensions"),
]
# fmt: on


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_mismatched_arguments_raise_with_both_values(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_properties_beyond_the_budget_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from simplifier.exact import unions

    for name in ("point", "only_first", "uncovered_point", "union_image", "union_inverse"):
        real = getattr(unions, name)
        monkeypatch.setattr(unions, name, lambda *a, real=real, **more: real(*a, **more, budget=1))
    box = "domain: d0 in [0, 999], d1 in [0, 999]"  # too many points to enumerate
    hard = parse_map(f"(d0, d1) -> ((d0 * 7 + d1) floordiv 3), {box}")
    for question in (
        lambda: is_injective(hard),
        lambda: is_single_valued([hard, hard.with_grade("may")]),
        lambda: is_surjective_onto(hard, (200,)),
        lambda: depends_on(hard, 1),
        lambda: image(hard),
        lambda: inverse(hard),
    ):
        answer = question()
        assert isinstance(answer, Unknown)
        assert "budget" in answer.reason
        with pytest.raises(UndecidedError, match="neither true nor false: test `isinstance"):
            bool(answer)


# ---------------------------------------------------------------- large sizes, real ops


def test_properties_of_large_arrays_need_no_enumeration() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[512,3,1000] parameter(0)
        t = f32[1000,512,3] transpose(p), dimensions={2,0,1}
        ROOT r = f32[1000,1536] reshape(t)
    }""").entry.root
    (read,) = indexing.to_parameters(root).maps[0]
    assert is_bijection(read, onto=(512, 3, 1000)) is True
    assert depends_on(read, 0)
    assert depends_on(read, 1)


def test_a_concatenation_is_a_bijection_from_its_operands() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[2,5] parameter(0)
        q = f32[3,5] parameter(1)
        ROOT c = f32[5,5] concatenate(p, q), dimensions={0}
    }""").entry.root
    back = [indexing.input_to_output(root, k).maps[0] for k in (0, 1)]
    pieces = [piece for maps in back for piece in maps]
    assert is_surjective_onto(pieces, (5, 5)) is True
    assert not is_surjective_onto(back[0], (5, 5))


@given(st.data(), boxes())
@fuzz(40)
def test_the_inverse_keeps_range_variables_of_source_indices(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    """``d0 -> d0 + a[s0]``: for each value, the inverse with the value put in."""
    size = data.draw(st.integers(1, 3))
    s, d = Variable("s0", 0, size - 1), box[0]
    rt = RuntimeVariable(Variable("rt0", 0, 2), "a", (s.as_expr(),), (0, 2))
    m = IndexingMap.of(
        [d], [d * 2 + rt.expr, s], ranges=[s], runtime=[rt],
        constraints=[Constraint(d + rt.expr, d.lower, d.upper)],
    )  # fmt: skip
    pieces = require_known(inverse(m))
    for program in programs([m]):
        pairs = related_pairs([m], program)
        assert related_pairs(pieces, program) == invert_pairs(pairs)
