"""`check_kernel`: kernels of XLA are proved, and none that is changed in its meaning is."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.text.source import Source
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.lanes import ANY_ORDER
from indexing.kernels.scatters import UNIQUE
from indexing.kernels.sections import stages
from indexing.kernels.verdicts import KernelDiffers, KernelProved
from indexing.maps.answers import Unknown
from tests.kernels.interpreter import execute
from tests.kernels.memory import KernelFault
from tests.kernels.reference import expected_result, operands_of

DATA = Path(__file__).parent / "data"
FOLDERS = sorted(path.name for path in DATA.glob("*_*"))


def kernel_of(folder: str, text: str | None = None) -> Kernel:
    """Return the only kernel of a folder of dumps, with another text if one is given."""
    (kernel,) = kernels_of(DATA / folder)
    if text is None:
        return kernel
    return replace(kernel, stages=tuple(stages(Source(text, "mutant.mlir"))))


def change_text(folder: str, pattern: str, new: str, number: int = 0) -> Kernel:
    """Return a kernel in which one occurrence of a pattern is replaced."""
    text = kernel_of(folder).stages[0].text
    match = list(re.finditer(pattern, text))[number]
    mutant = text[: match.start()] + match.expand(new) + text[match.end() :]
    assert mutant != text
    return kernel_of(folder, mutant)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_kernel_of_xla_is_proved(folder: str) -> None:
    verdict = indexing.check_kernel(kernel_of(folder))
    assert isinstance(verdict, KernelProved), str(verdict)
    assert (verdict.level, bool(verdict)) == ("values", True)
    is_reordered = any(word in folder for word in ("h100_reduce", "_add", "_max"))
    assert (ANY_ORDER in verdict.premises) == is_reordered
    assert (UNIQUE in verdict.premises) == (folder == "h100_scatter_set")


DIFFERENT = [
    ("cpu_loop_gelu", r"arith\.mulf", "arith.addf", "another value"),
    ("cpu_loop_gelu", r"2\.000000e\+00 : f32", "2.500000e+00 : f32", "another value"),
    ("cpu_loop_gelu", r"s1 in \[0, 9\]", "s1 in [0, 8]", "an element is never written"),
    ("cpu_loop_gelu", r"s1 in \[0, 9\]", "s1 in [0, 10]", "element read out of bounds"),
    ("cpu_loop_gelu", r"%arg1\[%arg2, %arg3\]", "%arg1[%arg3, %arg2]", "does not hold"),
    ("cpu_loop_int_div", r"%extracted_0, %17 : i32", "%17, %extracted_0 : i32", "undefined"),
    ("cpu_loop_int_div", r"arith\.cmpi sge", "arith.cmpi sle", "another value"),
    ("cpu_loop_int_div", r"arith\.ori %12, %15", "arith.andi %12, %15", None),
    ("cpu_loop_reverse_roll", r"arith\.subf %arg3", "arith.addf %arg3", "another value"),
    ("cpu_dus_inplace", r"arith\.maxsi", "arith.minsi", "another value"),
    ("cpu_dus_inplace", r"constant 63 : index", "constant 62 : index", "another value"),
    ("cpu_reduce_row_small", r"constant 20 : index", "constant 19 : index", "another value"),
    ("cpu_reduce_row_small", r"constant 20 : index", "constant 21 : index", "does not hold"),
    ("cpu_reduce_row_small", r"arith\.maximumf", "arith.minimumf", "another value"),
    ("h100_transpose_2d", r"math\.exp", "math.tanh", "another value"),
    ("h100_transpose_2d", r"\+ th_x \+ s1\) / 32\)", "+ th_x + s1) / 33)", "race"),
    ("h100_transpose_2d", r"s0 \* 4 \+ d0 / 32\)", "s0 * 3 + d0 / 32)", "another value"),
    ("h100_transpose_2d", r"block_id x (.*), 5 :", r"block_id x \1, 4 :", "at a launch"),
    ("h100_loop_slice_stride", r"th_x in \[0, 127\]", "th_x in [0, 126]", "is never written"),
    ("cpu_loop_dynamic_slice", r"arith\.maxsi", "arith.minsi", "another value"),
    ("cpu_mlp_gemm", r"\[1, 32\] \[1, 1\]", "[1, 32] [1, 2]", "another value"),
    ("cpu_mlp_gemm", r"tile_count : (\d+)", "tile_count : 8", "is never written"),
    ("h100_layernorm", r"bounds \[1, 384\]", "bounds [1, 383]", "another value"),
    ("h100_layernorm", r"bounds \[1, 384\]", "bounds [1, 512]", "another value"),
    ("h100_layernorm", r"math\.rsqrt", "math.sqrt", "another value"),
    ("h100_softmax", r"applies stablehlo\.maximum", "applies stablehlo.minimum", "nan is written"),
    ("h100_softmax", r"stablehlo\.divide", "stablehlo.multiply", "another value"),
    ("h100_mlp_gemm", r"to %c2 step", "to %c1 step", "another value"),
    ("h100_mlp_gemm", r"contracting_dims = \[2\] x \[1\]", "contracting_dims = [1] x [1]", None),
    ("h100_reduce_row", r"to 16 combiner", "to 8 combiner", "another value"),
    ("h100_reduce_row", r"arith\.addf", "arith.mulf", "is written"),
    ("h100_reduce_all", r"to 16 combiner", "to 8 combiner", "another value"),
    ("cpu_pad_interior", r"constant 21 : index", "constant 20 : index", "is written"),
    ("cpu_pad_interior", r"cmpi sge, %arg2", "cmpi sle, %arg2", ""),
    ("cpu_quantise", r"constant -128 : i8", "constant -127 : i8", None),
    ("cpu_quantise", r"cmpf uno", "cmpf ord", "is written"),
    ("cpu_is_finite", r"cmpf one", "cmpf une", "is written"),
    ("h100_loop_shifts", r"shrsi %extracted, %c2", "shrui %extracted, %c2", "is written"),
    ("h100_reduce_any", r"arith\.ori %arg0", "arith.andi %arg0", "is written"),
    ("h100_loop_window_sums", r"addf %pure_call_0", "mulf %pure_call_0", "is written"),
    ("cpu_scatter_add", r"arith\.addf", "arith.mulf", "is written"),
    ("cpu_scatter_add", r"constant 76 : index", "constant 75 : index", "is left"),
    ("cpu_scatter_add", r"index_id in \[0, 19\]", "index_id in [0, 18]", "is left"),
    ("h100_scatter_add", r"(th_x / 8\) mod) 20, 0", r"\1 19, 0", "is written"),
    ("h100_scatter_max", r"maxsi", "minsi", "is written"),
    ("h100_scatter_set", r"th_x mod 5", "th_x mod 4", "race"),
    # the product of a mask's 0 and an element beyond the edge, which is undefined
    ("h100_gemm_padded", r"(?s)cmpi slt, %24(?!.*cmpi slt)", "cmpi sle, %24", "undefined"),
    ("h100_gemm_padded", r"cmpi sge, %12, %16", "cmpi slt, %12, %16", "undefined"),
    ("h100_gemm_padded", r"(?s)addi %22, %23(?!.*addi)", "addi %22, %22", "undefined"),
]


@pytest.mark.parametrize("folder, pattern, new, words", DIFFERENT)
def test_a_changed_kernel_is_told_or_undecided(
    folder: str, pattern: str, new: str, words: str | None
) -> None:
    """Never proved; where `words` are given, the fault is told."""
    verdict = indexing.check_kernel(change_text(folder, pattern, new))
    assert not verdict
    if words is not None:
        assert isinstance(verdict, KernelDiffers), str(verdict)
        assert words in verdict.what


SAME = [
    ("cpu_loop_gelu", r"th_x in \[0, 0\]", "th_x in [0, 3]"),
    ("cpu_loop_gelu", r"mulf %extracted, %cst", "mulf %cst, %extracted"),
    ("h100_loop_slice_stride", r"bl_x in \[0, 1\]", "bl_x in [0, 7]"),
    ("h100_loop_one_hot", r"sitofp", "uitofp"),
    ("h100_loop_shifts", r"shrsi %extracted, %c31", "shrui %extracted, %c31"),
]


@pytest.mark.parametrize("folder, pattern, new", SAME)
def test_a_change_that_keeps_the_meaning_is_proved(folder: str, pattern: str, new: str) -> None:
    assert indexing.check_kernel(change_text(folder, pattern, new))


def test_a_tile_that_is_read_without_a_barrier_is_a_race() -> None:
    text = kernel_of("h100_transpose_2d").stages[0].text
    mutant = re.sub(r"\n *%synced_tensor = [^\n]*", "", text).replace("%synced_tensor", "%xla_loop")
    verdict = indexing.check_kernel(kernel_of("h100_transpose_2d", mutant))
    assert isinstance(verdict, KernelDiffers)
    assert verdict.what.startswith("race: an element of the tile")
    assert verdict.thread
    assert verdict.element is not None


def test_an_operand_that_is_overwritten_before_it_is_read_has_another_value() -> None:
    """Element i is written by iteration i, which reads element 7 - i in place."""
    text = """
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 64 : i32>} {
  func.func @shift(%arg0: tensor<8xf32> {xla.slice_index = 0 : index}, %arg1: tensor<8xf32> {xla.slice_index = SLICE : index}) -> tensor<8xf32> attributes {xla.entry} {
    %loop = xla.loop ()[%i] -> (%ra) in #xla.indexing_map<"()[s0] -> (s0), domain: s0 in [0, 7]"> iter_args(%iter = %arg1) -> (tensor<8xf32>) {
      %j = xla.apply_indexing #xla.indexing_map<"(d0) -> (-d0 + 7), domain: d0 in [0, 7]">(%ra)
      %v = tensor.extract %arg0[%j] : tensor<8xf32>
      %new = tensor.insert %v into %iter[%ra] : tensor<8xf32>
      xla.yield %new : tensor<8xf32>
    }
    return %loop : tensor<8xf32>
  }
}
"""  # noqa: E501 - as XLA prints it
    hlo_text = """
HloModule m
fused { p = f32[8]{0} parameter(0)  ROOT r = f32[8]{0} reverse(p), dimensions={0} }
ENTRY e { p = f32[8]{0} parameter(0)  ROOT shift = f32[8]{0} fusion(p), kind=kLoop, calls=fused }
"""
    fusion = hlo.parse(hlo_text).entry.root
    verdicts = []
    for slice_index in ("1", "0"):
        source = Source(text.replace("SLICE", slice_index), "shift.mlir")
        kernel = Kernel("shift", fusion, tuple(stages(source)), None, "shift.mlir")
        verdicts.append(indexing.check_kernel(kernel))
    assert isinstance(verdicts[0], KernelProved), str(verdicts[0])
    assert isinstance(verdicts[1], KernelDiffers)
    assert verdicts[1].element == (4,)  # the first iteration that reads what another one wrote


def test_rotated_starts_of_an_update_differ() -> None:
    """openxla/xla#49119, by hand; executions confirm the element."""
    folder = Path(__file__).parents[2] / "examples" / "kernels" / "rotated_update_starts"
    (kernel,) = kernels_of(folder)
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelDiffers)
    assert verdict.element is not None
    assert kernel.fusion is not None
    (x, *starts) = operands_of(kernel.fusion, 0)
    differs = []
    for shift, *others in [(4, 3, 2, 11), (1, 4, 0, 7), (9, 0, 5, 15), (0, 1, 2, 3)]:
        scalars = [np.asarray(n, s.dtype) for n, s in zip([shift, *others], starts, strict=True)]
        try:
            (left,) = execute(kernel.module, [x, *scalars]).results
        except KernelFault:
            differs.append(True)
            continue
        (wanted,) = expected_result(kernel.fusion, [x, *scalars])
        differs.append(not np.array_equal(left, wanted))
    assert any(differs)
    text = kernel.stages[0].text
    text = text.replace("subi %arg5, %shift_start", "subi %arg5, %6", 1)
    text = text.replace("%25 = arith.subi %arg6, %6", "%25 = arith.subi %arg6, %19", 1)
    text = text.replace("%38 = arith.subi %arg7, %19", "%38 = arith.subi %arg7, %32", 1)
    right = replace(kernel, stages=tuple(stages(Source(text, "right.mlir"))))
    assert isinstance(indexing.check_kernel(right), KernelProved)


def test_a_difference_names_its_point() -> None:
    kernel = change_text("h100_transpose_2d", r"math\.exp", "math.tanh")
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelDiffers)
    assert [name for name, _ in verdict.block] == ["bl_x"]
    assert [name for name, _ in verdict.thread] == ["th_x"]
    assert verdict.output == 0
    assert not isinstance(kernel.writes, Unknown)
    ((written,),) = kernel.writes
    point = dict((*verdict.thread, *verdict.block))
    dims = [point.get(v.name, 0) for v in written.dims]
    assert written.evaluate(dims, [x for _, x in verdict.iteration]) == verdict.element
