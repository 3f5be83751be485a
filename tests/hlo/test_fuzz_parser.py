"""Every text gives a module or an `HloError`, and modules print as text that parses to them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from tests.hlo.fuzz import EXAMPLES, cases, outcome, texts
from tests.oracles import fuzz

SMALL = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

FileNames
1 "a.py"

%plus (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %x, f32[] %y), metadata={op_name="a\\"}b" source_line=3}
}

/* between
   computations */
ENTRY %e (p: f32[4]) -> (f32[4], s32[2,2]) {
  %p = f32[4]{0:T(128)S(1)} parameter(0), sharding={devices=[2]<=[2]}
  %c = s32[2,2]{1,0} constant({ { 1, 2 }, { 3, -4 } })
  z = f32[] constant(-inf) // the least
  %r = f32[4]{0} reduce-window(%p, z), window={size=4 pad=3_0}, to_apply=%plus
  ROOT %t = (f32[4]{0}, /*index=1*/s32[2,2]) tuple(%r, s32[2,2] %c), control-predecessors={%p}
}, execution_thread="main"
"""


def parse(text: str) -> hlo.Module | None:
    try:
        return hlo.parse(text)
    except hlo.HloError as error:
        shown, start = str(error), error.span.start
    assert shown.startswith("error[")
    assert 0 <= start <= len(text)
    return None


def check(text: str) -> bool:
    """Return True if `text` is a module, and check that its own text parses to it."""
    module = parse(text)
    if module is None:
        return False
    printed = str(module)
    again = hlo.parse(printed)
    assert again == module
    assert str(again) == printed
    return True


def test_the_unmutated_text_is_valid() -> None:
    assert check(SMALL)


@pytest.mark.parametrize("start", range(0, len(SMALL), 100))
def test_every_part_is_a_module_or_an_error(start: int) -> None:
    for place in range(start, min(start + 100, len(SMALL))):
        check(SMALL[:place])
        check(SMALL[place:])
        check(SMALL[:place] + SMALL[place + 1 :])


CHARACTERS = '{}[]()"\\/*,=:%.-0189<>?#~+\n\t \x00é'
PIECES = st.sampled_from([*CHARACTERS, "/*", "*/", "//", "f32[]", "ROOT ", "ENTRY "])


@fuzz(400)
@given(st.data())
def test_mutated_text_gives_a_module_or_an_error(data: st.DataObject) -> None:
    text = SMALL
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(PIECES) + text[end:]
    check(text)


@fuzz(200)
@given(st.text(st.sampled_from('abpf32s[](){},=:%"/* \n01-<?'), max_size=60))
def test_any_text_gives_a_module_or_an_error(text: str) -> None:
    check(text)
    check(f"ENTRY e {{ p = f32[] parameter(0) {text} }}")


def test_examples_parse_from_their_own_text(example: Path) -> None:
    assert check(example.read_text())


BASES = texts(sorted(EXAMPLES.glob("*.hlo")))


@pytest.mark.parametrize("seed", range(0, 1500, 100))
def test_mutations_of_real_modules_are_modules_or_errors(seed: int) -> None:
    for number, text in cases(BASES, seed, 100):
        assert outcome(text), f"python -m tests.hlo.fuzz --seed {number} --count 1"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100_000, 120_000, 2000))
def test_many_mutations_of_real_modules_are_modules_or_errors(seed: int) -> None:
    """Further seeds; ``python -m tests.hlo.fuzz`` runs 100,000."""
    for number, text in cases(BASES, seed, 2000):
        assert outcome(text), f"python -m tests.hlo.fuzz --seed {number} --count 1"


def test_mutations_reach_every_kind_of_outcome() -> None:
    outcomes = {outcome(text) for _, text in cases(BASES, 0, 1000)}
    kinds = {"module", "invalid module", *(f"error[{c}]" for c in ("syntax", "undefined", "shape"))}
    assert kinds <= outcomes
