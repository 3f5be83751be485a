"""Attributes that XLA prints since 2026: exact maps, or `Unknown` with a reason."""

from __future__ import annotations

import pytest

import hlo
import indexing
from indexing.execution import random_inputs, run

ROOTED = """
HloModule m, replica_count=4
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }}
ENTRY e {{
  x = f32[4] parameter(0)
  root = s32[1] parameter(1)
  ROOT c = f32[4] {}
}}"""
GROUPS = "replica_groups={{1,0},{2,3}}"
SPARSE = """
ENTRY e {{
  a = f32[16,32] parameter(0)
  b = f32[{},64] parameter(1)
  ROOT d = f32[16,64] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{}
}}"""


def answer(text: str) -> tuple[list[str], list[str]]:
    """The maps of the root and the reasons of its unknown accesses; the module is valid."""
    module = hlo.parse(text)
    assert not hlo.verify(module)
    assert str(hlo.parse(str(module))) == str(module)
    result = indexing.output_to_input(module.entry.root)
    maps = [str(m) for maps in result.maps for m in maps]
    return maps, [each.reason for each in result.unknown if each is not None]


@pytest.mark.parametrize("op, extra", [("broadcast", ""), ("reduce", ", to_apply=sum")])
def test_a_root_chosen_at_run_time_is_unknown_and_a_fixed_one_is_not(op: str, extra: str) -> None:
    plain = answer(ROOTED.format(f"collective-{op}(x), {GROUPS}{extra}"))
    fixed = f"collective-{op}(x), {GROUPS}, has_dynamic_root=false{extra}"
    assert answer(ROOTED.format(fixed)) == plain
    assert not plain[1]
    chosen = f"collective-{op}(x, root), {GROUPS}, has_dynamic_root=true{extra}"
    maps, reasons = answer(ROOTED.format(chosen))
    assert (maps, len(reasons)) == ([], 2)
    assert all("its root is chosen at run time" in reason for reason in reasons)


@pytest.mark.parametrize("size", [32, 16])
def test_a_dot_with_a_sparse_operand_is_unknown(size: int) -> None:
    text = SPARSE.format(size, ", sparsity_config={lhs={n=2 m=4}}")
    maps, reasons = answer(text)
    assert (maps, len(reasons)) == ([], 2)
    assert "structured sparsity" in reasons[0]
    module = hlo.parse(text)
    with pytest.raises(hlo.HloError, match="sparsity"):
        run(module, random_inputs(module.entry, 0))


def test_a_dense_dot_is_exact() -> None:
    assert len(answer(SPARSE.format(32, ""))[0]) == 2


def test_buffers_of_an_asynchronous_start_may_be_shared() -> None:
    maps, reasons = answer("""
        c { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }
        ENTRY e {
          x = f32[4] parameter(0)
          s = ((f32[4]), f32[4], u32[]) async-start(x), calls=c,
            output_to_operand_aliasing={{1}: (0, {})}
          ROOT d = f32[4] async-done(s)
        }""")
    assert (maps, reasons) == (["(d0) -> (d0), domain: d0 in [0, 3]"], [])
