"""Maps for given values that decide, over many iterations, what a loop reads."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing.cli import main
from indexing.dataflow.given_constants import with_constants

FOLDER = Path(__file__).parent / "data" / "masks"
FORMS = ("lowered", "optimized")


def scan(form: str) -> Module:
    """Return ``state = where(reset[k], 0, state) + x[k]``, with the states as the result."""
    return hlo.load(str(FOLDER / f"scan_with_resets.{form}.hlo"))


@pytest.mark.parametrize("form", FORMS)
def test_a_state_needs_the_elements_since_the_last_reset(form: str) -> None:
    answer = indexing.to_parameters(scan(form).entry.root)
    for resets in itertools.product([False, True], repeat=4):
        reset = np.array([False, *resets, False])
        for k in range(6):
            first = max([0, *[j for j in range(k + 1) if reset[j]]])
            x, _ = answer.at(k, reset=reset)
            assert isinstance(x, indexing.Region)
            assert [tuple(e) for e in x.elements()] == [(j,) for j in range(first, k + 1)]


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_is_about_the_module_that_was_asked_about(form: str) -> None:
    entry = scan(form).entry
    answer = indexing.to_parameters(entry.root)
    given = with_constants(answer, {"reset": np.array([False] * 5 + [True])})
    assert given.operands == answer.operands
    assert given.maps[1] == answer.maps[1]
    assert given.maps[0] != answer.maps[0]
    named = [r.instruction for each in given.reasons for rs in each for r in rs]
    assert all(i is None or i.module is entry.module for i in named)


def test_an_answer_without_given_values_that_decide_it_stays() -> None:
    answer = indexing.to_parameters(scan("lowered").entry.root)
    assert with_constants(answer, {}) is answer
    other = indexing.to_parameters(
        hlo.parse("""ENTRY e { x = f32[8] parameter(0)  pos = s32[] parameter(1)
          ROOT r = f32[2] dynamic-slice(x, pos), dynamic_slice_sizes={2} }""").entry.root
    )
    assert with_constants(other, {"pos": np.array(3)}) is other


def test_an_array_that_is_two_operands_of_a_call_has_two_answers() -> None:
    text = (FOLDER / "scan_with_resets.lowered.hlo").read_text()
    inner = text.replace("ENTRY %main.8 {", "%called {")
    module = hlo.parse(f"""{inner}
    %both {{ x = f32[6] parameter(0)  y = f32[6] parameter(1)  p = pred[6] parameter(2)
      s = f32[6] call(x, p), to_apply=called
      ROOT r = f32[6] add(s, y) }}
    ENTRY %e {{ x = f32[6] parameter(0)  p = pred[6] parameter(1)
      ROOT r = f32[6] call(x, x, p), to_apply=both }}""")
    answer = indexing.output_to_input(module.entry.root)
    resets = {"p": np.array([False, False, True, False, False, False])}
    x, y, _ = answer.at(3, p=resets["p"])
    assert (str(x), str(y)) == ("[2:4]", "[3]")
    x, _ = indexing.to_parameters(module.entry.root).at(3, p=resets["p"])
    assert str(x) == "[2:4]"


@pytest.mark.parametrize("form", FORMS)
def test_the_command_takes_an_array_of_predicates(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "reset.npy", np.array([False, False, True, False, True, False]))
    file = str(FOLDER / f"scan_with_resets.{form}.hlo")
    line = ["maps", file, "--to", "parameters", "--set", f"reset=@{tmp_path / 'reset.npy'}"]
    with pytest.raises(SystemExit) as exit_:
        main([*line, "--at", "3"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert "x f32[6]: [2:4]" in out


UPDATE = """ENTRY e { x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
  p = s32[] parameter(2)  q = s32[] parameter(3)
  w = f32[5,7] dynamic-update-slice(x, u, p, q)  ROOT r = f32[5,7] negate(w) }"""


@pytest.mark.parametrize("p", [-2, 0, 1, 3, 9])
@pytest.mark.parametrize("q", [-1, 0, 2, 4, 30])
def test_given_starts_make_the_base_of_an_update_exact(p: int, q: int) -> None:
    """Oracle: the elements of a NumPy array that an assignment to the clamped window leaves."""
    left = np.ones((5, 7), bool)
    top, first = np.clip([p, q], 0, [3, 4])
    left[top : top + 2, first : first + 3] = False
    answer = indexing.to_parameters(hlo.parse(UPDATE).entry.root)
    assert [m.grade for m in answer.maps[0]] == ["may"]
    given = with_constants(answer, {"p": np.array(p), "q": np.array(q)})
    assert {m.grade for m in given.maps[0]} == {"exact"}
    reads = [i for i in np.ndindex(5, 7) for m in given.maps[0] if m.evaluate(dims=i) is not None]
    assert sorted(reads) == [tuple(map(int, i)) for i in np.argwhere(left)]
    region = answer.at(slice(0, 5), slice(0, 7), p=p, q=q)[0]
    assert isinstance(region, indexing.Region)
    assert [tuple(e) for e in region.elements()] == sorted(reads)


def test_one_given_start_of_two_leaves_the_base_over_approximated() -> None:
    answer = indexing.to_parameters(hlo.parse(UPDATE).entry.root)
    given = with_constants(answer, {"p": np.array(1)})
    assert [m.grade for m in given.maps[0]] == ["may"]
    (reason,) = given.reasons[0][0]
    assert reason.instruction is answer.instruction.computation["w"]
    assert given.operands == answer.operands
    assert given.maps[2:] == answer.maps[2:]


def test_a_start_that_a_float_decides_stays_unknown() -> None:
    """The index comes from a value that no integer parameter gives."""
    text = UPDATE.replace("p = s32[] parameter(2)", "f = f32[] parameter(2)  p = s32[] convert(f)")
    answer = indexing.to_parameters(hlo.parse(text).entry.root)
    given = with_constants(answer, {"q": np.array(1)})
    assert [m.grade for m in given.maps[0]] == ["may"]


SHIFTS = """
  body {
    s = (s32[], f32[8], s32[]) parameter(0)
    k = s32[] get-tuple-element(s), index=0  x = f32[8] get-tuple-element(s), index=1
    n = s32[] get-tuple-element(s), index=2  two = s32[] constant(2)  i = s32[] add(k, two)
    a = f32[7] slice(x), slice={[1:8]}  z = f32[] constant(0)  y = f32[8] pad(a, z), padding=0_1
    ROOT r = (s32[], f32[8], s32[]) tuple(i, y, n)
  }
  more {
    s = (s32[], f32[8], s32[]) parameter(0)  k = s32[] get-tuple-element(s), index=0
    n = s32[] get-tuple-element(s), index=2  ROOT r = pred[] compare(k, n), direction=LT
  }
  ENTRY e {
    x = f32[8] parameter(0)  n = s32[] parameter(1)  z = s32[] constant(0)
    s = (s32[], f32[8], s32[]) tuple(z, x, n)
    w = (s32[], f32[8], s32[]) while(s), condition=more, body=body
    ROOT r = f32[8] get-tuple-element(w), index=1
  }"""


@pytest.mark.parametrize("n", range(-1, 18))
def test_a_given_bound_of_a_loop_makes_its_number_of_iterations_exact(n: int) -> None:
    answer = indexing.to_parameters(hlo.parse(SHIFTS).entry.root)
    assert [m.grade for m in answer.maps[0]] == ["may"]
    shift = len(range(0, n, 2))
    for d in range(8):
        x, _ = answer.at(d, n=n)
        assert isinstance(x, indexing.Region)
        assert x.grade == "exact"
        assert [e[0] for e in x.elements()] == ([d + shift] if d + shift < 8 else [])


BLOCK = """
  HloModule m, replica_count=2
  ENTRY e {
    p = f32[5,6] parameter(0)  u = f32[2,3] parameter(1)  i = s32[] parameter(2)
    q = f32[5,6] negate(p)  j = s32[] multiply(i, i)
    ROOT r = f32[5,6] dynamic-update-slice(q, u, j, i)
  }"""


@pytest.mark.parametrize("i", range(-1, 5))
def test_given_parameters_decide_the_operands_of_an_update(i: int) -> None:
    root = hlo.parse(BLOCK).entry.root
    numbers = np.arange(30).reshape(5, 6)
    numbers[min(i * i, 3) :, max(0, min(i, 3)) :][:2, :3] = -1
    operands, parameters = indexing.output_to_input(root), indexing.to_parameters(root)
    for index in np.ndindex(5, 6):
        base = operands.at(*index, i=i)[0]
        assert isinstance(base, indexing.Region)
        assert base.grade == "exact"
        assert bool(base) == (numbers[index] >= 0)
        assert base == parameters.at(*index, i=i)[0]


def test_given_values_keep_the_devices_of_an_answer() -> None:
    root = hlo.parse(BLOCK).entry.root
    for answer in (indexing.device_maps(root), indexing.device_maps_to_parameters(root)):
        base, update, *_ = answer.at(1, 3, 4, i=2)
        assert (str(base), str(update)) == ("[1, 3, 4]", "[1, 0, 2]")
