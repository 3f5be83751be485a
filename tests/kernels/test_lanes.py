"""Executions of kernels that refute them: each fault, confirmed by the interpreter of the tests."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.shape import Shape
from hlo.text.source import Source
from indexing.kernels import lane_execution
from indexing.kernels.drawn_operands import SPECIAL, WAYS, draw_operands, perturb_operands
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.run import Launch
from indexing.kernels.sections import stages
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided
from indexing.kernels.witnesses import executed_fault
from indexing.maps.answers import Unknown
from tests.kernels.interpreter import execute
from tests.kernels.memory import KernelFault
from tests.kernels.reference import DRAWN, difference, expected_result, operands_of

DATA = Path(__file__).parent / "data"
FOLDERS = sorted(path.name for path in DATA.glob("*_*"))
NEGATED = "p = f32[8]{0} parameter(0) ROOT o = f32[8]{0} negate(p)"


def kernel_of(body: str, computation: str = NEGATED, width: int = 32) -> Kernel:
    """Return a kernel of eight threads with an argument and an output of eight elements."""
    text = f"""
module attributes {{dlti.dl_spec = #dlti.dl_spec<index = {width} : i32>}} {{
  func.func @f(%arg0: tensor<8xf32> {{xla.slice_index = 0 : index}}, %arg1: tensor<8xf32> {{xla.slice_index = 1 : index}}) -> tensor<8xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 7 : index]}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %low = arith.cmpi slt, %th, %c4 : index
{body}
  }}
}}
"""  # noqa: E501 - as XLA prints it
    module = hlo.parse(f"""
HloModule m
fused {{ {computation} }}
ENTRY e {{ p = f32[8] parameter(0)  ROOT f = f32[8] fusion(p), kind=kLoop, calls=fused }}
""")
    return Kernel("f", module.entry.root, tuple(stages(Source(text, "lanes"))), None, "lanes")


def fault_of(kernel: Kernel) -> KernelDiffers | None:
    """Return what executions of the kernel show, without a proof."""
    assert kernel.fusion is not None
    return executed_fault(kernel.module, kernel.fusion, kernel.launch)


def find_faults(kernel: Kernel) -> set[str]:
    """Return the faults that the interpreter finds on the operands of the executions."""
    assert kernel.fusion is not None
    words: set[str] = set()
    for seed in DRAWN:
        operands = operands_of(kernel.fusion, seed)
        try:
            results = execute(kernel.module, operands).results
        except KernelFault as fault:
            words.add(fault.kind)
            continue
        wanted = expected_result(kernel.fusion, operands)
        words |= {difference(a, np.asarray(b)) for a, b in zip(results, wanted, strict=True)}
    return words - {""}


def writes(value: str, index: str = "%th") -> str:
    return f"""
    %o = tensor.insert {value} into %arg1[{index}] : tensor<8xf32>
    return %o : tensor<8xf32>
"""


READ = "%v = tensor.extract %arg0[%th] : tensor<8xf32>\n %n = arith.negf %v : f32\n"
SHARED = """
    %tile = xla_gpu.allocate_shared : tensor<8xf32>
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %n = arith.negf %v : f32
    %m = arith.subi %c7, %th : index
    %w = tensor.insert %n into %tile[WRITTEN] : tensor<8xf32>
    SYNC
    %x = tensor.extract %s[%m] : tensor<8xf32>
"""
SYNC = "%s = xla_gpu.sync_threads %w : tensor<8xf32>"
CONDITIONAL = """
    %s = scf.if %low -> (tensor<8xf32>) {
      %r = xla_gpu.sync_threads %w : tensor<8xf32>
      scf.yield %r : tensor<8xf32>
    } else {
      scf.yield %w : tensor<8xf32>
    }
"""
REVERSED = f"{NEGATED.replace('ROOT', '')} ROOT r = f32[8]{{0}} reverse(o), dimensions={{0}}"
FAULTS = [
    (READ + writes("%v"), NEGATED, 32, "values", "the instruction's value is"),
    (f"{READ}%k = arith.addi %th, %c1 : index\n{writes('%n', '%k')}", NEGATED, 32, "bounds",
     "%arg1 out of bounds is written"),
    (f"{READ}%k = arith.muli %th, %c0 : index\n{writes('%n', '%k')}", NEGATED, 32, "race",
     "race: an element of %arg1 is written with different values"),
    (f"{READ}%k = arith.muli %th, %th : index\n%j = arith.muli %k, %c0 : index\n"
     f"%l = arith.addi %th, %j : index\n{writes('%n', '%l')}", NEGATED, 6, "overflow",
     "an index of 6 bits overflows"),
    (f"{READ}%o = xla.predicated_insert %n into %arg1[%th] if %low : tensor<8xf32>\n"
     "return %o : tensor<8xf32>", NEGATED, 32, "missing", "an element is never written"),
    (SHARED.replace("SYNC", SYNC).replace("WRITTEN", "%c7") + writes("%x"), REVERSED, 32, "race",
     "race: an element of the tile"),
    (SHARED.replace("SYNC\n", "").replace("%s[", "%w[").replace("WRITTEN", "%th") + writes("%x"),
     REVERSED, 32, "race", "while another thread"),
    (SHARED.replace("SYNC", CONDITIONAL).replace("WRITTEN", "%th") + writes("%x"), REVERSED, 32,
     "barrier", "a barrier that not all threads"),
    (SHARED.replace("SYNC", SYNC).replace("%w = tensor.insert %n into %tile[WRITTEN]",
     "%w = xla.predicated_insert %n into %tile[%th] if %low") + writes("%x"), REVERSED, 32,
     "undefined", "an undefined value is written"),
]  # fmt: skip


@pytest.mark.parametrize("body, computation, width, kind, what", FAULTS)
def test_a_fault_is_found_and_the_interpreter_confirms_it(
    body: str, computation: str, width: int, kind: str, what: str
) -> None:
    body = body.replace("if %low : tensor<8xf32>\n    SYNC", "if %low : tensor<8xf32>")
    kernel = kernel_of(body, computation, width)
    fault = fault_of(kernel)
    assert fault is not None
    assert what in fault.what
    assert kind in find_faults(kernel)


RIGHT = [
    (READ + writes("%n"), NEGATED),
    (SHARED.replace("SYNC", SYNC).replace("WRITTEN", "%th") + writes("%x"), REVERSED),
]


@pytest.mark.parametrize("body, computation", RIGHT)
def test_a_right_kernel_has_no_fault(body: str, computation: str) -> None:
    kernel = kernel_of(body, computation)
    assert fault_of(kernel) is None
    assert find_faults(kernel) == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_kernel_of_xla_has_no_fault(folder: str) -> None:
    (kernel,) = kernels_of(DATA / folder)
    assert fault_of(kernel) is None


def test_iterations_that_depend_are_executed_in_order() -> None:
    """Iteration i adds element i - 1, which the one before it wrote, to element i."""
    body = """
    %is = arith.cmpi eq, %th, %c0 : index
    %c8 = arith.constant 8 : index
    %r = scf.if %is -> (tensor<8xf32>) {
      %copy = scf.for %i = %c0 to %c8 step %c1 iter_args(%t = %arg1) -> (tensor<8xf32>) {
        %v = tensor.extract %arg0[%i] : tensor<8xf32>
        %w = tensor.insert %v into %t[%i] : tensor<8xf32>
        scf.yield %w : tensor<8xf32>
      }
      %sum = xla.loop ()[%i] -> (%ra, %rb) in #xla.indexing_map<"()[s0] -> (s0, s0 + 1), domain: s0 in [0, 6]"> iter_args(%t = %copy) -> (tensor<8xf32>) {
        %a = tensor.extract %t[%ra] : tensor<8xf32>
        %b = tensor.extract %t[%rb] : tensor<8xf32>
        %c = arith.addf %a, %b : f32
        %w = tensor.insert %c into %t[%rb] : tensor<8xf32>
        xla.yield %w : tensor<8xf32>
      }
      scf.yield %sum : tensor<8xf32>
    } else {
      scf.yield %arg1 : tensor<8xf32>
    }
    return %r : tensor<8xf32>
"""  # noqa: E501 - as XLA prints it
    sums = """
  p = f32[8]{0} parameter(0)
  i = s32[8,8]{1,0} iota(), iota_dimension=0
  j = s32[8,8]{1,0} iota(), iota_dimension=1
  m = pred[8,8]{1,0} compare(j, i), direction=LE
  w = f32[8,8]{1,0} broadcast(p), dimensions={1}
  z = f32[] constant(0)
  zs = f32[8,8]{1,0} broadcast(z), dimensions={}
  s = f32[8,8]{1,0} select(m, w, zs)
  c = f32[8]{0} constant({1, 1, 1, 1, 1, 1, 1, 1})
  ROOT d = f32[8]{0} dot(s, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
    kernel = kernel_of(body, sums)
    assert fault_of(kernel) is None
    wrong = kernel_of(body.replace("addf", "subf"), sums)
    assert fault_of(wrong) is not None


def test_a_rounding_that_is_left_out_is_not_proved() -> None:
    rounded = "p = f32[8] parameter(0) b = bf16[8] convert(p) ROOT o = f32[8] convert(b)"
    once = """
    %v = tensor.extract %arg0[%th] : tensor<8xf32>
    %b = arith.truncf %v : f32 to bf16
    %w = arith.extf %b : bf16 to f32
"""
    verdict = indexing.check_kernel(kernel_of(once + writes("%w"), rounded))
    assert isinstance(verdict, KernelProved)
    verdict = indexing.check_kernel(kernel_of(once + writes("%v"), rounded))
    assert isinstance(verdict, KernelUndecided)
    assert "is not rounded" in verdict.reason


@pytest.mark.parametrize("element_type", ["f32", "bf16", "s8", "u32", "s64", "u64", "pred", "c64"])
def test_draws_are_of_their_type_and_differ(element_type: str) -> None:
    shapes = [Shape(element_type, (5, 7)), Shape(element_type, ())]
    draws = [draw_operands(shapes, seed, are_distinct=False) for seed in range(2 * WAYS)]
    assert all([a.shape for a in arrays] == [(5, 7), ()] for arrays in draws)
    assert len({arrays[0].tobytes() for arrays in draws}) > WAYS
    repeated = draw_operands(shapes, 3, are_distinct=False)
    assert repeated[0].tobytes() == draws[3][0].tobytes()


def test_draws_have_what_their_way_has() -> None:
    shape = [Shape("f32", (400,))]
    special, plain, positive = (draw_operands(shape, seed, False)[0] for seed in (SPECIAL, 0, 5))
    assert np.isnan(special).any()
    assert np.isinf(special).any()
    assert np.isfinite(plain).all()
    assert (positive > 0).all()
    (distinct,) = draw_operands([Shape("s32", (20, 2))], 1, are_distinct=True)
    assert len(np.unique(distinct)) == 40


def test_a_perturbation_keeps_equal_values_equal_and_integers() -> None:
    floats = np.array([1.5, 1.5, -3.0, np.inf, np.nan, 0.0], np.float32)
    integers = np.arange(4, dtype=np.int32)
    moved, same = perturb_operands([floats, integers], 2.0**-12)
    assert same is integers
    assert moved[0] == moved[1] != floats[0]
    assert np.isinf(moved[3])
    assert np.isnan(moved[4])
    assert np.allclose(moved[:3], floats[:3], rtol=2.0**-10)


def test_a_fusion_without_a_formula_is_unknown() -> None:
    """The maps of a kernel need the formulas; the argument of a call has another type here."""
    kernel = kernel_of(READ + writes("%n"))
    module = hlo.parse("""
HloModule m
g { q = s32[8] parameter(0)  ROOT m = f32[8] convert(q) }
fused { p = f32[8] parameter(0)  ROOT n = f32[8] call(p), to_apply=g }
ENTRY e { p = f32[8] parameter(0)  ROOT f = f32[8] fusion(p), kind=kLoop, calls=fused }
""")
    kernel = replace(kernel, fusion=module.entry.root)
    assert isinstance(kernel.run, Unknown)
    assert "`q` is s32[8], but the argument is f32[8]" in kernel.run.reason
    assert isinstance(kernel.grid, Unknown)
    assert isinstance(indexing.check_kernel(kernel), KernelUndecided)


ILL_TYPED = [
    (READ.replace("negf %v", "addf %v, %arg0") + writes("%n"), "an operand is tensor<8xf32>"),
    (READ.replace("%arg0[%th]", "%arg0[%th, %th]") + writes("%n"), "2 indices of tensor<8xf32>"),
    (READ.replace("%arg0[%th]", "%th[]") + writes("%n"), "0 indices of index"),
    (READ.replace("%n = ", "%u = ") + "%n = func.call @f(%th) : (index) -> f32\n" + writes("%n"),
     "arguments are index, @f takes tensor<8xf32>, tensor<8xf32>"),
]  # fmt: skip


@pytest.mark.parametrize("body, words", ILL_TYPED)
def test_an_ill_typed_op_is_not_executed(body: str, words: str) -> None:
    kernel = kernel_of(body)
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelUndecided)
    assert words in verdict.reason
    assert fault_of(kernel) is None


@pytest.mark.parametrize("error", [ValueError, IndexError, KeyError, TypeError])
def test_an_error_of_an_execution_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error("a mistake")

    monkeypatch.setattr(lane_execution, "scalar_op", fail)
    with pytest.raises(error, match="a mistake"):
        fault_of(kernel_of(READ + writes("%n")))


def test_an_output_in_place_that_is_never_written_keeps_the_operand() -> None:
    body = READ + "return %arg1 : tensor<8xf32>"
    kernel = kernel_of(body)
    text = kernel.stages[0].text.replace("slice_index = 1", "slice_index = 0")
    kernel = replace(kernel, stages=tuple(stages(Source(text, "in place"))))
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelDiffers)
    assert verdict.what == "another value than the instruction's is kept"
    assert (verdict.element, verdict.thread) == ((0,), ())


def test_a_kernel_without_the_number_of_its_blocks_is_not_refuted() -> None:
    """The position of the block is an argument; only the launch states how many there are."""
    kernel = kernel_of(READ + writes("%n"))
    text = kernel.stages[0].text.replace("gpu.thread_id x {xla.range = [0 : index, 7 : index]}", "")
    text = text.replace("    %th = \n", "").replace("%th", "%block")
    text = text.replace(
        ") -> tensor<8xf32> attributes", ", %block: index) -> tensor<8xf32> attributes"
    )
    kernel = replace(kernel, stages=tuple(stages(Source(text, "without a grid"))))
    assert fault_of(kernel) is None
    assert fault_of(replace(kernel, launch=Launch((8, 1, 1), (1, 1, 1), 0))) is None
    few = fault_of(replace(kernel, launch=Launch((7, 1, 1), (1, 1, 1), 0)))
    assert few is not None
    assert (few.what, few.element) == ("an element is never written", (7,))
