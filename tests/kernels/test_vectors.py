"""Vectors: elements of registers, and loads and stores that must be aligned."""

import numpy as np
import pytest

import hlo
import indexing
from hlo.text.source import Source
from indexing.kernels.kernel import Kernel
from indexing.kernels.sections import stages
from indexing.kernels.vector_ops import ALIGNED_TILES
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided
from indexing.kernels.witnesses import executed_fault
from tests.kernels.interpreter import execute
from tests.kernels.memory import KernelFault
from tests.kernels.reference import expected_result, operands_of

STORES = """
    %p = xla.apply_indexing #xla.indexing_map<"(th) -> (th * STEP), domain: th in [0, 1]">(%th)
    %pad = ub.poison : f32
    %r = vector.transfer_read %from[%p], %pad {in_bounds = [true]} : tensor<8xf32>, vector<SIZExf32>
    %v = arith.negf %r : vector<SIZExf32>
"""
ELEMENT = """
    %e{k} = vector.extract %v[{k}] : f32 from vector<SIZExf32>
    %a{k} = xla.apply_indexing #xla.indexing_map<"(th) -> (th * 4 + {k}), domain: th in [0, 1]">(%th)
    %o{k} = tensor.insert %e{k} into %arg1[%a{k}] : tensor<8xf32>
"""  # noqa: E501 - as XLA prints it
WRITE = """
    %o3 = vector.transfer_write %v, %arg1[%p] {in_bounds = [true]} : vector<SIZExf32>, tensor<8xf32>
"""
TILE = """
    %tile = xla_gpu.allocate_shared : tensor<8xf32>
    %t:1 = scf.for %k = %c0 to %c4 step %c1 iter_args(%i = %tile) -> (tensor<8xf32>) {
      %q = xla.apply_indexing #xla.indexing_map<"(th, k) -> (th * 4 + k), domain: th in [0, 1], k in [0, 3]">(%th, %k)
      %x = tensor.extract %arg0[%q] : tensor<8xf32>
      %n = tensor.insert %x into %i[%q] : tensor<8xf32>
      scf.yield %n : tensor<8xf32>
    }
    %from = xla_gpu.sync_threads %t#0 : tensor<8xf32>
"""  # noqa: E501


def kernel_of(stores: str, step: int, align: int = 16, before: str = "") -> Kernel:
    """Return a kernel of two threads that negate four elements each."""
    body = before + STORES + stores
    if not before:
        body = body.replace("%from", "%arg0")
    body = body.replace("STEP", str(step)).replace("SIZE", "4")
    aligned = f"llvm.align = {align} : index, "
    text = f"""
module attributes {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} {{
  func.func @f(%arg0: tensor<8xf32> {{{aligned}xla.slice_index = 0 : index}}, %arg1: tensor<8xf32> {{{aligned}xla.slice_index = 1 : index}}) -> tensor<8xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 1 : index]}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
{body}
    return %o3 : tensor<8xf32>
  }}
}}
"""  # noqa: E501
    module = hlo.parse("""
HloModule m
fused { p = f32[8]{0} parameter(0)  ROOT o = f32[8]{0} negate(p) }
ENTRY e { p = f32[8] parameter(0)  ROOT f = f32[8] fusion(p), kind=kLoop, calls=fused }
""")
    return Kernel("f", module.entry.root, tuple(stages(Source(text, "vectors"))), None, "vectors")


ELEMENTS = "".join([ELEMENT.replace("{k}", str(k)) for k in range(4)])


@pytest.mark.parametrize("before", ["", TILE])
@pytest.mark.parametrize("stores", [ELEMENTS, WRITE])
def test_aligned_vectors_are_proved(stores: str, before: str) -> None:
    kernel = kernel_of(stores, 4, before=before)
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelProved), str(verdict)
    assert (ALIGNED_TILES in verdict.premises) == bool(before)
    assert kernel.fusion is not None
    assert executed_fault(kernel.module, kernel.fusion, kernel.launch) is None


@pytest.mark.parametrize("before", ["", TILE])
@pytest.mark.parametrize("stores", [ELEMENTS, WRITE])
def test_a_vector_that_is_not_aligned_differs_at_its_thread(stores: str, before: str) -> None:
    kernel = kernel_of(stores, 3, before=before)
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelDiffers), str(verdict)
    assert "vector not aligned to its 16 bytes" in verdict.what
    assert verdict.thread == (("th_x", 1),)
    assert kernel.fusion is not None
    fault = executed_fault(kernel.module, kernel.fusion, kernel.launch)
    assert fault is not None
    assert ("is not aligned" in fault.what, fault.element) == (True, (3,))


@pytest.mark.parametrize("step, kind", [(4, ""), (3, "alignment")])
def test_the_interpreter_finds_the_same_faults(step: int, kind: str) -> None:
    kernel = kernel_of(ELEMENTS, step)
    assert kernel.fusion is not None
    operands = operands_of(kernel.fusion, 0)
    try:
        (left,) = execute(kernel.module, operands).results
        name = "" if np.array_equal(left, expected_result(kernel.fusion, operands)[0]) else "values"
    except KernelFault as fault:
        name = fault.kind
    assert name == kind


@pytest.mark.parametrize("align", [1, 8])
def test_the_alignment_of_an_argument_may_be_too_small(align: int) -> None:
    verdict = indexing.check_kernel(kernel_of(ELEMENTS, 4, align))
    assert isinstance(verdict, KernelUndecided)
    assert f"a vector of 16 bytes of an argument that is aligned to {align}" in verdict.reason
