"""No map has an array with a dimension of unknown size: its accesses are unknown."""

from __future__ import annotations

import pytest

import hlo
import indexing

ROUTES = {
    "tuple": "t = (f32[?,4], f32[3]) tuple(k, b)",
    "get-tuple-element": "t = f32[?,4] get-tuple-element(p), index=0",
    "opt-barrier": "t = f32[?,4] opt-barrier(k)",
    "copy": "t = f32[?,4] copy(k)",
    "negate": "t = f32[?,4] negate(k)",
    "call": "t = f32[?,4] call(k), to_apply=same",
    "while": "t = (f32[?,4], f32[3]) while(p), condition=never, body=step",
    "conditional": "t = f32[?,4] conditional(c, k, k), true_computation=same, "
    "false_computation=same",
}
TEXT = """
same {{ a = f32[?,4] parameter(0)  ROOT b = f32[?,4] copy(a) }}
never {{ a = (f32[?,4], f32[3]) parameter(0)  ROOT c = pred[] constant(false) }}
step {{ ROOT a = (f32[?,4], f32[3]) parameter(0) }}
ENTRY e {{
  k = f32[?,4] parameter(0)  b = f32[3] parameter(1)
  p = (f32[?,4], f32[3]) parameter(2)  c = pred[] parameter(3)
  ROOT {root}
}}"""


@pytest.mark.parametrize("opcode", ROUTES)
def test_an_array_of_unknown_size_has_no_maps(opcode: str) -> None:
    root = hlo.parse(TEXT.format(root=ROUTES[opcode])).entry.root
    for answer in (indexing.output_to_input(root), indexing.to_parameters(root)):
        reasons = [reason.reason for reason in answer.unknown if reason is not None]
        assert any("f32[?,4] has a dimension of unknown size" in reason for reason in reasons)
        assert not any(m.results for maps in answer.maps for m in maps)
    operand = [o.name for o in root.operands].index("p" if "(p)" in ROUTES[opcode] else "k")
    back = indexing.input_to_output(root, operand)
    assert any(reason is not None for reason in back.unknown)


def test_other_leaves_keep_their_maps() -> None:
    root = hlo.parse(TEXT.format(root=ROUTES["tuple"])).entry.root
    (m,) = indexing.output_to_input(root, 1).maps[1]
    assert m.is_identity
    assert indexing.output_to_input(root, 1).unknown == (None, None)
