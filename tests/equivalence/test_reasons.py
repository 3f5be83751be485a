"""Reasons for differences: operands that are exchanged, instructions of both programs, spelling."""

import pytest

import hlo
from indexing import equivalent

LESS = """less { p = f32[] parameter(0)  q = f32[] parameter(1)
  ROOT l = pred[] compare(p, q), direction=LT }"""


def reason(before: str, after: str) -> str:
    """The reason of the verdict on two bodies over the parameters x and y."""
    parameters = "x = f32[4] parameter(0)  y = f32[4] parameter(1)"
    modules = [
        hlo.parse(f"HloModule m\n{LESS}\nENTRY e {{ {parameters}  {body} }}")
        for body in (before, after)
    ]
    return str(equivalent(*modules))


def call(name: str, operand: str, target: str, config: str) -> str:
    config = f', backend_config="{config}"'
    return f'{name} = f32[4] custom-call({operand}), custom_call_target="{target}"{config}  '


@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum"])
@pytest.mark.parametrize("targets", ["fg", "gf", "hk", "kh", "uv", "vu"])
def test_the_operands_of_a_commutative_op_that_are_most_alike_are_compared(
    opcode: str, targets: str
) -> None:
    """Both calls have another configuration, so none is equal to any other one."""
    f, g = targets[0], targets[1]
    before = f"{call('a', 'x', f, '1')}{call('b', 'y', g, '2')}ROOT r = f32[4] {opcode}(a, b)"
    after = f"{call('c', 'y', g, '3')}{call('d', 'x', f, '4')}ROOT r = f32[4] {opcode}(c, d)"
    pairs = [
        f"`custom-call` has backend_config {values} ({names})"
        for values, names in (
            ('"1" before, "4" after', "`a` before, `d` after"),
            ('"2" before, "3" after', "`b` before, `c` after"),
        )
    ]
    assert any(pair in reason(before, after) for pair in pairs)


def test_operands_of_the_same_arrays_are_compared_if_their_attributes_differ() -> None:
    before = f"{call('a', 'x', 'f', '1')}{call('b', 'y', 'f', '2')}ROOT r = f32[4] add(a, b)"
    after = f"{call('c', 'y', 'f', '3')}{call('d', 'x', 'f', '4')}ROOT r = f32[4] add(c, d)"
    assert any(
        f"{values} ({names})" in reason(before, after)
        for values, names in (
            ('"1" before, "4" after', "`a` before, `d` after"),
            ('"2" before, "3" after', "`b` before, `c` after"),
        )
    )


def test_an_equal_operand_is_not_the_difference() -> None:
    before = f"{call('a', 'x', 'f', '1')}{call('b', 'y', 'g', '2')}ROOT r = f32[4] add(a, b)"
    after = f"{call('c', 'y', 'g', '3')}{call('d', 'x', 'f', '1')}ROOT r = f32[4] add(c, d)"
    assert '"2" before, "3" after (`b` before, `c` after)' in reason(before, after)


def test_values_are_spelled_as_in_hlo_text() -> None:
    sort = "{} = f32[4] sort({}), dimensions={{0}}, is_stable={}, to_apply=less  "
    before = sort.format("a", "x", "true") + "ROOT r = f32[4] negate(a)"
    after = sort.format("b", "x", "false") + "ROOT r = f32[4] negate(b)"
    assert "`sort` has is_stable true before, false after (`a` before, `b` after)" in reason(
        before, after
    )


def test_each_value_of_an_op_is_spelled_as_in_hlo_text() -> None:
    text = f"""HloModule m\n{LESS}\nENTRY e {{ x = f32[4] parameter(0)
      ROOT s = f32[4] sort(x), dimensions={{0}}, is_stable=true, to_apply=less }}"""
    op = hlo.parse(text).entry.root.op
    assert op is not None
    assert [op.value_text("dimensions", (0,)), op.value_text("is_stable", False)] == [
        "{0}",
        "false",
    ]


def test_an_instruction_within_a_fusion_is_named() -> None:
    fused = """fused {{ p = f32[4] parameter(0)  ROOT s = f32[4] sort(p), dimensions={{0}},
      is_stable={}, to_apply=less }}"""
    entry = (
        "ENTRY e { x = f32[4] parameter(0)  ROOT f = f32[4] fusion(x), kind=kLoop, calls=fused }"
    )
    one, other = (
        hlo.parse(f"HloModule m\n{LESS}\n{fused.format(flag)}\n{entry}")
        for flag in ("true", "false")
    )
    assert "(`s` before, `s` after)" in str(equivalent(one, other))


def test_loops_that_carry_scalars_are_compared_as_operands() -> None:
    """The head of a loop has the sizes of its carried arrays; it has no attributes."""
    text = """HloModule m
      less {{ s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(5)  ROOT r = pred[] compare(i, n), direction=LT }}
      next {{ s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        v = f32[] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
        w = f32[] {opcode}(v)  ROOT t = (s32[], f32[]) tuple(j, w) }}
      ENTRY e {{ x = f32[] parameter(0)  y = f32[] parameter(1)  z = s32[] constant(0)
        a = (s32[], f32[]) tuple(z, x)  b = (s32[], f32[]) tuple(z, y)
        c = (s32[], f32[]) while(a), condition=less, body=next
        d = (s32[], f32[]) while(b), condition=less, body=next
        f = f32[] get-tuple-element(c), index=1  g = f32[] get-tuple-element(d), index=1
        ROOT r = f32[] add(f, g) }}"""
    one, other = (hlo.parse(text.format(opcode=opcode)) for opcode in ("sine", "cosine"))
    assert not equivalent(one, other)
