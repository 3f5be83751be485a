"""Operands that name an element of a tuple: ``%p#0``, ``%p#1#0``."""

from __future__ import annotations

import pytest

import hlo
import indexing

TEXT = """
HloModule m

ENTRY e {
  p = (f32[4], (f32[3], s32[])) parameter(0)
  p_0 = f32[4] constant({1,2,3,4})
  a = f32[4] negate(f32[4] %p#0)
  b = f32[4] add(p#0, /* the same */ p#0)
  c = f32[3] negate(%p#1#0)
  ROOT t = (f32[4], f32[4], f32[3], s32[], (f32[3], s32[])) tuple(a, b, c, p#1#1, p#1)
}
"""


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazy"])
def test_an_element_is_one_get_tuple_element_for_all_its_uses(lazy: bool) -> None:
    module = hlo.parse(TEXT, lazy=lazy)
    entry = module.entry
    elements = [each for each in entry.instructions if each.opcode == "get-tuple-element"]
    assert [str(each) for each in elements] == [
        "%p_0.1 = f32[4] get-tuple-element(%p), index=0",  # another instruction is named p_0
        "%p_1 = (f32[3], s32[]) get-tuple-element(%p), index=1",
        "%p_1_0 = f32[3] get-tuple-element(%p_1), index=0",
        "%p_1_1 = s32[] get-tuple-element(%p_1), index=1",
    ]
    assert entry["b"].operands == (elements[0], elements[0])
    assert str(hlo.parse(str(module))) == str(module)
    assert not hlo.verify(module)


def test_maps_lead_to_the_elements() -> None:
    entry = hlo.parse(TEXT).entry
    for name, size in (("b", 4), ("c", 3)):
        (answer,) = indexing.grouped(entry[name])[entry["p"]]
        assert str(answer) == f"(d0) -> (d0), domain: d0 in [0, {size - 1}]"


def first_error(text: str) -> None:
    raise hlo.verify(hlo.parse(text))[0]


@pytest.mark.parametrize(
    "operand, message, marked",
    [
        ("p#2", "the operand must be a tuple with an element `index`", "2"),
        ("p#0#0", "the operand must be a tuple with an element `index`", "p"),
        ("q#0", "operand `q` is not defined", "q"),
        ("p#", "found `#`", "#"),
        ("p #0", "found `#0`", "#0"),
        ("f32[9] p#0", "operand `p_0` is written as f32[9], but declared f32[4]", "p"),
    ],
)
def test_wrong_elements_are_errors_at_their_place(operand: str, message: str, marked: str) -> None:
    text = f"ENTRY e {{ p = (f32[4], f32[3]) parameter(0) ROOT a = f32[4] negate({operand}) }}"
    with pytest.raises(hlo.HloError) as caught:
        first_error(text)
    assert message in str(caught.value)
    span = caught.value.span
    assert text[span.start : span.start + len(marked)] == marked
