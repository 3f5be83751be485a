"""Manual regions whose borders are inside of calls and loops, compared by what elements read."""

import pytest

import hlo
from indexing.equivalence import Differs, Proved, equivalent

SPLIT = "sharding={devices=[4,1]<=[4]}"
SHIFT = "collective-permute(n), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"
COPY = "copy(n)"
GLOBAL = """i = f32[2,3] custom-call(p),
  custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  n = f32[2,3] negate(i)  s = f32[2,3] {moved}
  o = f32[8,3] custom-call(s), custom_call_target="SPMDShardToFullShape", {split}"""
LOCAL = "n = f32[2,3] negate(p)  o = f32[2,3] {moved}"
CALL = """f {{ p = f32[{rows},3] parameter(0), {split}  {body}
    ROOT r = f32[{rows},3] copy(o) }}
  ENTRY e {{ x = f32[{rows},3] parameter(0), {split}
    ROOT y = f32[{rows},3] call(x), to_apply=f, {split} }}"""
LOOP = """b {{ t = (s32[], f32[{rows},3]) parameter(0)  k = s32[] get-tuple-element(t), index=0
    one = s32[] constant(1)  k1 = s32[] add(k, one)
    p = f32[{rows},3] get-tuple-element(t), index=1, {split}  {body}
    ROOT r = (s32[], f32[{rows},3]) tuple(k1, o) }}
  c {{ t = (s32[], f32[{rows},3]) parameter(0)  k = s32[] get-tuple-element(t), index=0
    n = s32[] constant(3)  ROOT q = pred[] compare(k, n), direction=LT }}
  ENTRY e {{ x = f32[{rows},3] parameter(0), {split}  z = s32[] constant(0)
    t = (s32[], f32[{rows},3]) tuple(z, x)
    w = (s32[], f32[{rows},3]) while(t), condition=c, body=b
    ROOT y = f32[{rows},3] get-tuple-element(w), index=1, {split} }}"""


def program(around: str, body: str, moved: str, rows: int) -> hlo.Module:
    inner = body.format(moved=moved, split=SPLIT)
    text = around.format(body=inner, split=SPLIT, rows=rows)
    return hlo.parse(f"HloModule m, num_partitions=4\n{text}")


@pytest.mark.parametrize("around", [CALL, LOOP], ids=["call", "loop"])
@pytest.mark.parametrize("before, after", [(COPY, COPY), (SHIFT, SHIFT), (COPY, SHIFT)])
def test_borders_are_found_at_any_depth(around: str, before: str, after: str) -> None:
    whole, local = program(around, GLOBAL, before, 8), program(around, LOCAL, after, 2)
    verdict = equivalent(whole, local, level="reads")
    assert isinstance(verdict, Proved if before == after else Differs), verdict
