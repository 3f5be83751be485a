"""The interpreter of kernels: it agrees with the instruction, and tells each kind of fault."""

from pathlib import Path

import numpy as np
import pytest

from indexing.kernels.dumps import kernels_of
from indexing.kernels.reader import read_module
from tests.kernels.interpreter import Executed, MapText, execute
from tests.kernels.memory import Array, KernelFault
from tests.kernels.mutants import Judge

DATA = Path(__file__).parent / "data"
FOLDERS = sorted(path.name for path in DATA.glob("*_*"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_kernel_of_xla_leaves_the_values_of_its_instruction(folder: str) -> None:
    (kernel,) = kernels_of(DATA / folder)
    assert Judge(kernel).original((0, 1, 4)).name in ("none", "rounding")


def run(body: str, *operands: Array, arguments: str = "", index: int = 32) -> Executed:
    """Execute a kernel of two blocks of four threads on `%arg0`, a result of eight floats."""
    head = f"%arg0: tensor<8xf32> {{xla.slice_index = 0 : index}}{arguments}"
    text = f"""
module attributes {{dlti.dl_spec = #dlti.dl_spec<index = {index} : i32>}} {{
  func.func @f({head}) -> tensor<8xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 3 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 1 : index]}}
    %at = xla.apply_indexing #xla.indexing_map<"(th, bl) -> (bl * 4 + th), domain: th in [0, 3], bl in [0, 1]">(%th, %bl)
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0 : index
    %value = arith.index_cast %at : index to i32
    %float = arith.sitofp %value : i32 to f32
{body}
    return %out : tensor<8xf32>
  }}
  func.func private @sum(%a: f32, %b: f32) -> f32 {{
    %c = arith.addf %a, %b : f32
    return %c : f32
  }}
}}
"""  # noqa: E501 - as XLA prints it
    return execute(read_module(text), operands)


SHARED = """
    %tile = xla_gpu.allocate_shared : tensor<4xf32>
    %filled = tensor.insert %float into %tile[%th] : tensor<4xf32>
    BARRIER
    %back = xla.apply_indexing #xla.indexing_map<"(th) -> (3 - th), domain: th in [0, 3]">(%th)
    %read = tensor.extract SYNCED[%back] : tensor<4xf32>
    %out = tensor.insert %read into %arg0[%at] : tensor<8xf32>
"""
BARRIER = SHARED.replace("BARRIER", "%synced = xla_gpu.sync_threads %filled : tensor<4xf32>")
BARRIER = BARRIER.replace("SYNCED", "%synced")


def test_threads_see_what_others_wrote_before_a_barrier() -> None:
    assert run(BARRIER).results[0].tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_lanes_without_a_partner_take_their_own_value_in_a_shuffle() -> None:
    body = """
    %sum = xla_gpu.shuffle_reduce(%one) to 1 combiner=@sum : f32
    %out = tensor.insert %sum into %arg0[%at] : tensor<8xf32>
"""
    with pytest.raises(KernelFault, match="undefined"):  # thread 3 has no thread 4 beside it
        run(body)
    guarded = """
    %sum = xla_gpu.shuffle_reduce(%float) to 1 combiner=@sum : f32
    %is = arith.cmpi eq, %th, %zero : index
    %first = xla.predicated_insert %one into %arg0[%at] if %is : tensor<8xf32>
    %other = arith.cmpi ne, %th, %zero : index
    %out = xla.predicated_insert %one into %first[%at] if %other : tensor<8xf32>
"""
    assert run(guarded).results[0].tolist() == [1.0] * 8
    used = guarded.replace("%one into %arg0", "%sum into %arg0")
    assert run(used).results[0].tolist() == [1, 1, 1, 1, 9, 1, 1, 1]


def test_atomic_updates_of_one_element_are_all_applied() -> None:
    body = """
    %out = xla.atomic_rmw %arg0[%zero] : tensor<8xf32> {
    ^bb0(%current: f32):
      %new = arith.addf %current, %float : f32
      xla.yield %new : f32
    }
"""
    assert run(body, np.ones(8, np.float32)).results[0].tolist() == [29] + [1] * 7


LOOP = """
    %out = xla.loop (%th, %bl)[%i] -> (%ra) in #xla.indexing_map<"MAP"> iter_args(%iter = %arg0) -> (tensor<8xf32>) {
      %new = tensor.insert %one into %iter[%ra] : tensor<8xf32>
      xla.yield %new : tensor<8xf32>
    }
"""  # noqa: E501 - as XLA prints it
MAP = "(th, bl)[s0] -> (th * 2 + s0), domain: th in [0, 3], bl in [0, 0], s0 in [0, 1]"


def test_ranges_of_dimensions_are_conditions() -> None:
    """Block 1 is out of the range: only block 0 writes."""
    assert run(LOOP.replace("MAP", MAP)).notes == frozenset()
    both = LOOP.replace("MAP", MAP.replace("bl in [0, 0]", "bl in [0, 1]"))
    assert run(both).notes == {"one value is written twice"}


FAULTS = [
    ("bounds", "%out = tensor.insert %one into %arg0[%next] : tensor<8xf32>"),
    ("missing", LOOP.replace("MAP", MAP.replace("s0 in [0, 1]", "s0 in [0, 0]"))),
    ("race", "%out = tensor.insert %float into %arg0[%th] : tensor<8xf32>"),
    ("race", SHARED.replace("BARRIER", "").replace("SYNCED", "%filled")),
    ("undefined", BARRIER.replace("%float into %tile[%th]", "%one into %tile[%zero]")),
    ("range", "%t = gpu.thread_id x {xla.range = [0 : index, 2 : index]}\n"
     "%out = tensor.insert %one into %arg0[%at] : tensor<8xf32>"),
    ("overflow", "%big = arith.constant 1000000000 : index\n%m = arith.muli %at, %big : index\n"
     "%out = tensor.insert %one into %arg0[%at] : tensor<8xf32>"),
    ("barrier", """
    %is = arith.cmpi eq, %th, %zero : index
    %tile = xla_gpu.allocate_shared : tensor<4xf32>
    %x = scf.if %is -> (tensor<4xf32>) {
      %synced = xla_gpu.sync_threads %tile : tensor<4xf32>
      scf.yield %synced : tensor<4xf32>
    } else {
      scf.yield %tile : tensor<4xf32>
    }
    %out = tensor.insert %one into %arg0[%at] : tensor<8xf32>
"""),
]  # fmt: skip


@pytest.mark.parametrize("kind, body", FAULTS, ids=[f"{k}-{n}" for n, (k, _) in enumerate(FAULTS)])
def test_a_fault_is_told_with_its_kind(kind: str, body: str) -> None:
    lines = "%c1 = arith.constant 1 : index\n%next = arith.addi %at, %c1 : index\n"
    with pytest.raises(KernelFault) as raised:
        run(lines + body)
    assert raised.value.kind == kind


def test_indices_of_64_bits_do_not_wrap_where_those_of_32_do() -> None:
    (body,) = [body for kind, body in FAULTS if kind == "overflow"]
    assert run(body, index=64).results[0].tolist() == [1.0] * 8


IN_PLACE = """
module {
  func.func @f(%arg0: tensor<4xf32> {xla.slice_index = 0 : index}, %arg1: tensor<4xf32> {xla.slice_index = 0 : index}) -> tensor<4xf32> attributes {xla.entry} {
    %loop = xla.loop ()[%i] -> (%ra) in #xla.indexing_map<"()[s0] -> (s0), domain: s0 in [0, 3]"> iter_args(%iter = %arg1) -> (tensor<4xf32>) {
      %j = xla.apply_indexing #xla.indexing_map<"(d0) -> (MAP), domain: d0 in [0, 3]">(%ra)
      %v = tensor.extract %arg0[%j] : tensor<4xf32>
      %new = tensor.insert %v into %iter[%ra] : tensor<4xf32>
      xla.yield %new : tensor<4xf32>
    }
    return %loop : tensor<4xf32>
  }
}
"""  # noqa: E501 - as XLA prints it


@pytest.mark.parametrize("expr, values", [("d0", [0, 1, 2, 3]), ("3 - d0", [3, 2, 2, 3])])
def test_iterations_of_one_thread_run_in_order(expr: str, values: list[float]) -> None:
    module = read_module(IN_PLACE.replace("MAP", expr))
    assert execute(module, [np.arange(4, dtype=np.float32)]).results[0].tolist() == values


def test_a_map_is_read_from_its_text() -> None:
    text = "(a, b)[s] -> (a mod 6 mod 4 / 2, -b + s), domain: a in [0, 9], b in [0, 1], s in [0, 0], a * 2 + b in [1, 8]"  # noqa: E501
    read = MapText.read(text)
    assert (read.dims, read.symbols, read.ranges["a"]) == (("a", "b"), ("s",), (0, 9))
    assert [(low, high) for _, low, high in read.constraints] == [(1, 8)]
