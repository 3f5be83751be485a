"""Near misses of kernels: what differs from a right kernel in one place, against executions."""

import numpy as np
import pytest

import hlo
import indexing
from hlo.text.source import Source
from indexing.kernels.kernel import Kernel
from indexing.kernels.sections import stages
from indexing.kernels.verdicts import KernelDiffers, KernelVerdict
from tests.kernels.interpreter import execute
from tests.kernels.memory import KernelFault
from tests.kernels.reference import difference, expected_result, operands_of

REVERSED = """
  p = f32[8]{0} parameter(0)
  r = f32[2,4]{1,0} reshape(p)
  v = f32[2,4]{1,0} reverse(r), dimensions={1}
  ROOT o = f32[8]{0} reshape(v)
"""
NEGATED = "p = f32[8]{0} parameter(0) ROOT o = f32[8]{0} negate(p)"
TWO = """
  p = f32[8]{0} parameter(0)
  n = f32[8]{0} negate(p)
  a = f32[8]{0} abs(p)
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(n, a)
"""
SUM = """
  p = f32[32]{0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=s
"""
REUSED = """
    %tile = xla_gpu.allocate_shared : tensor<4xf32>
    %r:2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%t = %tile, %o = %arg1) -> (tensor<4xf32>, tensor<8xf32>) {
      %at = xla.apply_indexing #xla.indexing_map<"(th, k) -> (k * 4 + th), domain: th in [0, 3], k in [0, 1]">(%th, %k)
      %v = tensor.extract %arg0[%at] : tensor<8xf32>
      %w = tensor.insert %v into %t[%th] : tensor<4xf32>
      %s = xla_gpu.sync_threads %w : tensor<4xf32>
      %b = xla.apply_indexing #xla.indexing_map<"(th) -> (3 - th), domain: th in [0, 3]">(%th)
      %x = tensor.extract %s[%b] : tensor<4xf32>
      %n = tensor.insert %x into %o[%at] : tensor<8xf32>
      SECOND
      scf.yield %S, %n : tensor<4xf32>, tensor<8xf32>
    }
    return %r#1 : tensor<8xf32>
"""  # noqa: E501 - as XLA prints it
UNROLLED = """
    %tile = xla_gpu.allocate_shared : tensor<4xf32>
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %w = tensor.insert %v into %tile[%th] : tensor<4xf32>
    %s = xla_gpu.sync_threads %w : tensor<4xf32>
    %b = xla.apply_indexing #xla.indexing_map<"(th) -> (3 - th), domain: th in [0, 3]">(%th)
    %x = tensor.extract %s[%b] : tensor<4xf32>
    %n = tensor.insert %x into %arg1[%th] : tensor<8xf32>
    SECOND
    %at = xla.apply_indexing #xla.indexing_map<"(th) -> (th + 4), domain: th in [0, 3]">(%th)
    %v2 = tensor.extract %arg0[%at] : tensor<8xf32>
    %w2 = tensor.insert %v2 into %S[%th] : tensor<4xf32>
    %s3 = xla_gpu.sync_threads %w2 : tensor<4xf32>
    %x2 = tensor.extract %s3[%b] : tensor<4xf32>
    %n2 = tensor.insert %x2 into %n[%at] : tensor<8xf32>
    return %n2 : tensor<8xf32>
"""
TWO_OUTPUTS = """
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %n = arith.negf %v : f32
    %a = math.absf %v : f32
    %x = tensor.insert %n into %arg1[%th] : tensor<8xf32>
    %y = tensor.insert %a into %arg2[%th] : tensor<8xf32>
    return RET : tensor<8xf32>, tensor<8xf32>
"""
READ_AGAIN = """
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %n = arith.negf %v : f32
    %x = tensor.insert %n into %arg1[%th] : tensor<8xf32>
    %v2 = tensor.extract %arg0[%th] : tensor<8xf32>
    %a = math.absf %v2 : f32
    %n3 = arith.negf %v2 : f32
    %y = tensor.insert %n3 into %arg2[%th] : tensor<8xf32>
    return %x, %y : tensor<8xf32>, tensor<8xf32>
"""
WRITTEN_TWICE = """
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %n = arith.negf %v : f32
    %x = tensor.insert %v into %arg1[%th] : tensor<8xf32>
    %y = tensor.insert %n into %x[%th] : tensor<8xf32>
    return %y : tensor<8xf32>
"""
WARP = """
    %v = tensor.extract %arg0[%th] : tensor<32xf32>
    %s = xla_gpu.shuffle_reduce(%v) to DIST combiner=@sum : f32
    %is = arith.cmpi eq, %th, LANE : index
    %x = xla.predicated_insert %s into %arg1[] if %is : tensor<f32>
    return %x : tensor<f32>
"""


def judge(
    body: str, computation: str, memories: str = "01", threads: int = 8
) -> tuple[str, KernelVerdict]:
    """Return what an execution shows, ``right`` or a word, and the verdict.

    Args:
        memories: the memory of each argument, one digit each.
    """
    results = ["f32[8]"] * 2 if "tuple" in computation else ["f32[8]"]
    if "reduce" in computation:
        results = ["f32[]"]
    size = 32 if "reduce" in computation else 8
    types = [
        f"tensor<{size}xf32>",
        *["tensor<f32>" if r == "f32[]" else "tensor<8xf32>" for r in results],
    ]
    arguments = ", ".join(
        f"%arg{k}: {t} {{xla.slice_index = {m} : index}}"
        for k, (t, m) in enumerate(zip(types, memories, strict=True))
    )
    text = f"""
module attributes {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} {{
  func.func @f({arguments}) -> ({", ".join(types[1:])}) attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
{body}
  }}
  func.func private @sum(%a: f32, %b: f32) -> f32 {{
    %c = arith.addf %a, %b : f32
    return %c : f32
  }}
}}
"""
    shape = f"({', '.join(results)})" if len(results) > 1 else results[0]
    module = hlo.parse(f"""
HloModule m
s {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
fused {{ {computation} }}
ENTRY e {{
  p = f32[{size}] parameter(0)
  ROOT f = {shape} fusion(p), kind=kLoop, calls=fused
}}
""")
    fusion = module.entry.root
    kernel = Kernel("f", fusion, tuple(stages(Source(text, "near"))), None, "near")
    operands = operands_of(fusion, 0)
    try:
        left = execute(kernel.module, operands).results
        wanted = expected_result(fusion, operands)
        names = [difference(a, np.asarray(b)) for a, b in zip(left, wanted, strict=True)]
        name = "values" if "values" in names else "right"
    except KernelFault as fault:
        name = fault.kind
    return name, indexing.check_kernel(kernel)


SECOND = "%s2 = xla_gpu.sync_threads %s : tensor<4xf32>"
CASES = [
    ("race", REUSED.replace("SECOND", "").replace("%S", "%s"), REVERSED, "01", 4),
    ("right", REUSED.replace("SECOND", SECOND).replace("%S", "%s2"), REVERSED, "01", 4),
    ("race", UNROLLED.replace("SECOND", "").replace("%S", "%s"), REVERSED, "01", 4),
    ("right", UNROLLED.replace("SECOND", SECOND).replace("%S", "%s2"), REVERSED, "01", 4),
    ("right", TWO_OUTPUTS.replace("RET", "%x, %y"), TWO, "012", 8),
    ("values", TWO_OUTPUTS.replace("RET", "%y, %x"), TWO, "012", 8),
    ("values", TWO_OUTPUTS.replace("RET", "%x, %y"), TWO, "011", 8),
    ("right", TWO_OUTPUTS.replace("RET", "%x, %y"), TWO, "010", 8),
    ("values", READ_AGAIN, TWO.replace("abs", "negate"), "001", 8),
    ("values", WRITTEN_TWICE.replace("insert %v", "insert %q").replace("insert %n", "insert %v")
     .replace("%q", "%n"), NEGATED, "01", 8),
    ("right", WARP.replace("DIST", "16").replace("LANE", "%c0"), SUM, "01", 32),
    ("values", WARP.replace("DIST", "16").replace("LANE", "%c1"), SUM, "01", 32),
    ("values", WARP.replace("DIST", "8").replace("LANE", "%c0"), SUM, "01", 32),
    ("race", WARP.replace("DIST", "16").replace("eq, %th, LANE", "sge, %th, %c0"), SUM, "01", 32),
    pytest.param("right", WRITTEN_TWICE, NEGATED, "01", 8),
]  # fmt: skip


@pytest.mark.parametrize("name, body, computation, memories, threads", CASES)
def test_a_near_miss_differs_and_a_right_kernel_never_does(
    name: str, body: str, computation: str, memories: str, threads: int
) -> None:
    shown, verdict = judge(body, computation, memories, threads)
    assert shown == name
    if name == "right":
        assert not isinstance(verdict, KernelDiffers)
    else:
        assert isinstance(verdict, KernelDiffers)
        assert verdict.thread
