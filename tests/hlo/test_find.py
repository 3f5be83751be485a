"""Search for instructions: patterns, metadata, readers through tuples and calls, similar names."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import hlo
from hlo.text.names import UnknownName

ROOT = Path(__file__).parents[2]

LOOP = r"""
HloModule loop
fused { a = f32[3] parameter(0)  ROOT n = f32[3] negate(a) }
step {
  s = (f32[3], (f32[3], s32[])) parameter(0)
  x = f32[3] get-tuple-element(s), index=0
  rest = (f32[3], s32[]) get-tuple-element(s), index=1
  w = f32[3] get-tuple-element(rest), index=0
  k = s32[] get-tuple-element(rest), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  sum = f32[3] add(x, w), metadata={op_name="jit(f)/while/body/add" source_file="f.py"}
  barred = f32[3] opt-barrier(w)
  tail = (f32[3], s32[]) tuple(barred, next)
  ROOT out = (f32[3], (f32[3], s32[])) tuple(sum, tail)
}
until {
  s2 = (f32[3], (f32[3], s32[])) parameter(0)
  rest2 = (f32[3], s32[]) get-tuple-element(s2), index=1
  w2 = f32[3] get-tuple-element(rest2), index=0
  k2 = s32[] get-tuple-element(rest2), index=1
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k2, ten), direction=LT
}
same { q = f32[3] parameter(0)  u = f32[3] parameter(1)  ROOT q2 = f32[3] copy(q) }
left { l = f32[3] parameter(0)  ROOT l2 = f32[3] abs(l) }
right { r = f32[3] parameter(0)  ROOT r2 = (f32[3]) tuple(r) }
ENTRY main {
  wk.1 = f32[3] parameter(0), metadata={op_name="params[\'wk\']"}
  x0 = f32[3] parameter(1), metadata={op_name="x"}
  zero = s32[] constant(0)
  inner = (f32[3], s32[]) tuple(wk.1, zero)
  init = (f32[3], (f32[3], s32[])) tuple(x0, inner)
  loop = (f32[3], (f32[3], s32[])) while(init), condition=until, body=step
  end = (f32[3], s32[]) get-tuple-element(loop), index=1
  same_w = f32[3] get-tuple-element(end), index=0
  fusion.1 = f32[3] fusion(same_w), kind=kLoop, calls=fused
  called = f32[3] call(x0, wk.1), to_apply=same
  ROOT result = (f32[3], f32[3]) tuple(fusion.1, called)
}
"""


@pytest.fixture(scope="module")
def module() -> hlo.Module:
    return hlo.parse(LOOP)


def names(instructions: tuple[hlo.Instruction, ...]) -> list[str]:
    return [instruction.name for instruction in instructions]


# fmt: off
CASES = [
    ({"name": "sum"},                               ["sum"]),
    ({"name": "%sum"},                              ["sum"]),
    ({"name": "sum.*"},                             []),                  # a dot is no wildcard
    ({"name": "w?"},                                ["w2"]),
    ({"name": "[kq]"},                              ["k", "q"]),
    ({"name": "step/*sum"},                         ["sum"]),
    ({"name": "main/y*"},                           []),
    ({"opcode": "fft"},                             []),                  # an opcode of HLO
    ({"name": "/^(ten|one)$/"},                     ["one", "ten"]),
    ({"name": "/UM/"},                              []),                  # case counts
    ({"name": "/step/(s|sum)$/"},                   ["s", "sum"]),
    ({"opcode": "fusion"},                          ["fusion.1"]),
    ({"opcode": "get-*", "name": "*2"},             ["rest2", "w2", "k2"]),
    ({"op_name": "jit(f)/*"},                       ["sum"]),
    ({"op_name": "params['wk']"},                   ["wk.1"]),            # as it is, though a glob
    ({"op_name": "add"},                            []),
    ({"op_name": "/\\badd$/"},                      ["sum"]),
    ({"reads": "x0"},                               ["sum", "q2"]),
    ({"reads": "x0", "opcode": "copy"},             ["q2"]),
    ({"reads": "x"},                                ["sum"]),             # a name before an op_name
    ({"reads": "zero"},                             ["next", "less"]),
]
# fmt: on


@pytest.mark.parametrize(("conditions", "expected"), CASES)
def test_find_returns_what_meets_all_conditions(
    module: hlo.Module, conditions: dict[str, str], expected: list[str]
) -> None:
    assert names(module.find(**conditions)) == expected


def test_find_without_conditions_returns_everything(module: hlo.Module) -> None:
    assert module.find() == tuple(module.instructions)


def test_readers_pass_through_tuples_loops_and_calls(module: hlo.Module) -> None:
    """`wk` is carried through the loop unchanged; `same` ignores it; a condition reads nothing."""
    assert names(module.readers("wk.1")) == ["sum", "fusion.1"]
    assert module.readers("params['wk']") == module.readers(module.entry["wk.1"])
    assert names(module.readers("s")) == ["next", "sum", "fusion.1"]
    assert names(module.readers("one")) == ["next"]
    assert names(module.readers("result")) == []


def test_readers_of_a_conditional() -> None:
    text = LOOP.replace(
        "ROOT result = (f32[3], f32[3]) tuple(fusion.1, called)",
        "p = pred[] parameter(2)  "
        "chosen = f32[3] conditional(p, wk.1, x0), true_computation=left, false_computation=same1  "
        "ROOT n2 = f32[3] negate(chosen)",
    ).replace(
        "right {", "same1 { z = f32[3] parameter(0)  ROOT z1 = f32[3] opt-barrier(z) } right {"
    )
    module = hlo.parse(text)
    assert "l2" in names(module.readers("wk.1"))
    assert "n2" not in names(module.readers("wk.1"))
    assert names(module.readers("x0")) == ["sum", "q2", "n2"]
    assert names(module.readers("p")) == ["chosen"]


def test_a_loop_that_nests_its_tuple_ends() -> None:
    """The module is invalid: its body returns a tuple around its parameter."""
    module = hlo.parse("""
    body { b = (f32[]) parameter(0)  ROOT nested = ((f32[])) tuple(b) }
    cond { c = (f32[]) parameter(0)  ROOT t = pred[] constant(true) }
    ENTRY e { p = f32[] parameter(0)  i = (f32[]) tuple(p)
      ROOT w = (f32[]) while(i), condition=cond, body=body }""")
    assert module.readers("p") == ()


def test_readers_are_the_instructions_whose_maps_reach_the_source() -> None:
    """Without control flow, an instruction reads an array iff a direct answer maps to it."""
    module = hlo.load(ROOT / "examples" / "attention.opt.hlo")
    for parameter in module.entry.parameters:
        users = set(module.readers(parameter))
        assert users == {i for i in parameter.users if i.opcode not in ("tuple", "call")} | {
            inner
            for user in parameter.users
            if user.opcode == "call"
            for inner in user.called_computations[0]
            .parameters[user.operands.index(parameter)]
            .users
        }
        assert users


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        (lambda m: m.computations["stepp"], "no computation named `stepp`; did you mean `step`?"),
        (lambda m: m.entry["wk"], "no instruction named `wk`; did you mean `wk.1`?"),
        (lambda m: m.readers("wk"), "no instruction named `wk`; did you mean `wk.1`?"),
        (lambda m: m.readers("f/wk.1"), "no instruction named `f/wk.1`; did you mean `main/wk.1`?"),
        (lambda m: m.find(reads="zzzz*"), "no instruction named `zzzz*`"),
        (lambda m: m.find("summ"), "no instruction named `summ`; did you mean `sum`?"),
        (lambda m: m.find("main/x"), "no instruction named `main/x`; did you mean `step/x`?"),
        (lambda m: m.find(opcode="fushion"), "no opcode named `fushion`; did you mean `fusion`?"),
        (
            lambda m: m.readers("params['wx']"),
            "no instruction named `params['wx']`; did you mean `params['wk']`?",
        ),
    ],
)
def test_an_undefined_name_is_a_key_error_with_similar_names(
    module: hlo.Module, look_up: object, message: str
) -> None:
    assert callable(look_up)
    with pytest.raises(KeyError) as caught:
        look_up(module)
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    assert isinstance(caught.value, UnknownName)
    assert caught.value.args[0] == caught.value.name


def test_computations_are_still_a_mapping(module: hlo.Module) -> None:
    assert module.computations.get("nowhere") is None
    assert "nowhere" not in module.computations
    assert list(module.computations)[-1] == "main"


def test_an_invalid_regular_expression_is_a_value_error(module: hlo.Module) -> None:
    with pytest.raises(ValueError, match=r"invalid regular expression /\(/: missing \)"):
        module.find("/(/")


def test_a_foreign_instruction_is_refused(module: hlo.Module) -> None:
    other = hlo.parse(LOOP)
    with pytest.raises(ValueError, match="`x0` is an instruction of another module"):
        module.readers(other.entry["x0"])
