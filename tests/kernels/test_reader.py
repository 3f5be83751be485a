"""The reader of MLIR: ops with their roles, what is not known, and errors with places."""

import numpy as np
import pytest

from hlo.text.source import HloError, Source
from indexing.kernels.attributes import constant_array
from indexing.kernels.ir import MlirOp
from indexing.kernels.reader import read_module
from indexing.kernels.sections import stages
from indexing.kernels.types import read_type
from indexing.maps.text import parse_map

MAP = (
    "(th_x, bl_x)[s0] -> (bl_x * 8 + th_x, s0), "
    "domain: th_x in [0, 7], bl_x in [0, 2], s0 in [0, 3]"
)
KERNEL = f"""
#indexing_map = #xla.indexing_map<"{MAP}">
module @m attributes {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} {{
  func.func @f(%arg0: tensor<24x4xf32> {{llvm.align = 16 : index, xla.invariant}}, %arg1: tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>>) -> tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 7 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 2 : index]}}
    %cst = arith.constant 0xFF800000 : f32
    %xla_loop, %other = xla.loop (%th, %bl)[%i] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg1, %x = %cst) -> (tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>>, f32) {{
      %e = tensor.extract %arg0[%ra, %rb] : tensor<24x4xf32>
      %less = arith.cmpf olt, %e, %x : f32
      %v:2 = scf.if %less -> (f32, f32) {{
        scf.yield %e, %x : f32, f32
      }} else {{
        %s = arith.addf %e, %x fastmath<nsz> : f32
        scf.yield %s, %e : f32, f32
      }}
      %inserted = tensor.insert %v#0 into %iter[%ra, %rb] : tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>>
      xla.yield %inserted, %v#1 : tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>>, f32
    }}
    return %xla_loop : tensor<24x4xf32, dense<[0, 1]> : tensor<2xi64>>
  }}
}}
"""  # noqa: E501 - as XLA prints it


def ops_of(
    *lines: str, arguments: str = "%i: index, %t: tensor<4x8xf32>, %x: f32"
) -> tuple[MlirOp, ...]:
    """Return the ops of a function that has these lines."""
    return read_module("\n".join([f"func.func @f({arguments}) {{", *lines, "}"])).function("f").ops


def test_a_kernel_is_read_with_roles_types_and_attributes() -> None:
    module = read_module(KERNEL)
    entry = module.entry
    assert entry is not None
    assert entry.argument_attributes[0] == {"llvm.align": 16, "xla.invariant": True}
    assert entry.result_types[0].layout == (0, 1)
    thread, _, infinity, loop, end = entry.ops
    assert thread.attributes == {"dimension": "x", "xla.range": (0, 7)}
    assert infinity.attributes["value"] == -np.inf
    assert loop.attributes["map"] == parse_map(MAP)
    assert [v.name for v in loop.group("dims")] == ["th", "bl"]
    assert loop.group("inits") == (entry.arguments[1], infinity.result)
    assert end.operands == (loop.results[0],)


def test_the_region_of_a_loop_names_its_arguments() -> None:
    entry = read_module(KERNEL).function("f")
    block = entry.ops[3].regions[0].block
    assert {role: [v.name for v in values] for role, values in block.groups.items()} == {
        "symbols": ["i"], "results": ["ra", "rb"], "carried": ["iter", "x"]
    }  # fmt: skip
    extract, less, branch, insert, _ = block.ops
    assert extract.group("indices") == block.groups["results"]
    assert less.attributes["predicate"] == "olt"
    assert [str(value.type) for value in branch.results] == ["f32", "f32"]
    assert len(branch.regions) == 2
    assert branch.regions[1].block.ops[0].attributes["fastmath"] == "nsz"
    assert insert.operand("value") is branch.results[0]


ROWS = [
    ("%a = tensor.extract %t[%i, %i] : tensor<4x8xf32>", {"indices": 2, "source": 1}, "f32"),
    ("%a = arith.index_cast %i : index to i32", {"value": 1}, "i32"),
    ("%a = arith.cmpi ule, %i, %i : index", {"lhs": 1, "rhs": 1}, "i1"),
    ("%a = arith.cmpf oeq, %t, %t : tensor<4x8xf32>", {"lhs": 1, "rhs": 1}, "tensor<4x8xi1>"),
    ("%a = vector.broadcast %x : f32 to vector<2xf32>", {"value": 1}, "vector<2xf32>"),
    ("%a = xla_gpu.allocate_shared : tensor<32x33xf32>", {}, "tensor<32x33xf32>"),
    ("%a = xla.pure_call @g(%t, %i) : (tensor<4x8xf32>, index) -> bf16", {"arguments": 2}, "bf16"),
    ("%a = stablehlo.transpose %t, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
     {"value": 1}, "tensor<8x4xf32>"),
    ("%a = xla.predicated_extract %t[%i, %i] if %i else %x : tensor<4x8xf32>",
     {"source": 1, "indices": 2, "condition": 1, "otherwise": 1}, "f32"),
    ('%a = "new.op"(%i, %x) <{flag = 3 : i32}> : (index, f32) -> i8', {"operands": 2}, "i8"),
]  # fmt: skip


@pytest.mark.parametrize("line, roles, result", ROWS)
def test_an_op_has_its_roles_and_its_type(line: str, roles: dict[str, int], result: str) -> None:
    (op,) = ops_of(line)
    assert {role: len(values) for role, values in op.groups.items()} == roles
    assert str(op.result.type) == result
    assert op.span.text == line


def test_an_unknown_op_keeps_its_name_operands_types_and_regions() -> None:
    unknown, after = ops_of(
        "%a:2 = new.scan %x, %t {flag, size = 3 : i64} (%y = %x) -> (f32, tensor<4x8xf32>) {",
        "  %b = arith.addf %y, %x : f32",
        "  new.yield %b : f32",
        "} : f32, tensor<4x8xf32>",
        "%c = arith.addf %a#0, %x : f32",
    )
    assert not unknown.is_known
    assert unknown.name == "new.scan"
    assert [value.name for value in unknown.operands] == ["x", "t", "x"]
    assert [op.name for op in unknown.regions[0].block.ops] == ["arith.addf", "new.yield"]
    assert [str(value.type) for value in unknown.results] == ["f32", "tensor<4x8xf32>"]
    assert after.operand("lhs") is unknown.results[0]


CONSTANTS = [
    ("-1 : i8", np.int8(-1)),
    ("255 : i8", np.int8(-1)),
    ("true", np.True_),
    ("0x7F800000 : f32", np.float32(np.inf)),
    ("1.250000e-01 : f32", np.float32(0.125)),
    ("4294967295 : i32", np.int32(-1)),
    ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", np.array([[1, 2], [3, 4]], np.int32)),
    ("dense<false> : vector<3xi1>", np.zeros(3, bool)),
    ("dense<(1.0,-2.0)> : tensor<complex<f32>>", np.array(1 - 2j, np.complex64)),
]


@pytest.mark.parametrize("text, value", CONSTANTS)
def test_a_constant_is_an_array_of_its_type(text: str, value: np.ndarray) -> None:
    (op,) = ops_of(f"%c = arith.constant {text}")
    read = op.attributes["value"]
    assert read.dtype == value.dtype
    np.testing.assert_array_equal(read, value)


def test_a_constant_of_an_unknown_type_is_kept_as_text() -> None:
    assert constant_array(1, read_type("!new.type")).text == "1"


ERRORS = [
    ("%a = arith.addf %x, %y : f32", "`%y` is not defined", 2, 21),
    ("%a = arith.addf %x %x : f32", "expected `,`, found `%x`", 2, 20),
    ("%a = tensor.extract %t[%i, %i : tensor<4x8xf32>", "expected `]`, found `:`", 2, 31),
    ("%a = tensor.extract %t[%i, %i] : tensor<4x8xf32> %x",
     "expected the end of the op, found `%x`", 2, 50),
    ("%a, %b = arith.addf %x, %x : f32", "`arith.addf` has 1 results, but 2 names", 2, 33),
    ("%a = arith.constant dense<[1, 2 : tensor<2xi32>", "`<` is never closed", 2, 21),
    ("%a = xla.apply_indexing 3(%i)", "`3` is not an `#xla.indexing_map`", 2, 26),
]  # fmt: skip


@pytest.mark.parametrize("line, message, row, column", ERRORS)
def test_an_error_has_its_place(line: str, message: str, row: int, column: int) -> None:
    with pytest.raises(HloError) as caught:
        ops_of(line)
    assert caught.value.message == message
    assert (caught.value.span.line, caught.value.span.column) == (row, column)


def test_an_error_in_a_map_has_the_place_in_the_file() -> None:
    text = 'module {\n}\n#m = #xla.indexing_map<"(d0) -> (d0 +), domain: d0 in [0, 3]">\n'
    with pytest.raises(HloError) as caught:
        read_module(text, filename="k.mlir")
    assert caught.value.span.place() == "k.mlir:3:38"


def test_the_end_of_a_text_within_a_region_is_an_error() -> None:
    with pytest.raises(HloError, match="expected `}` after a region, found the end of the text"):
        read_module("module {\n func.func @f() {\n return\n")


LOG = """any(canonicalize{top-down=true},cse)

// -----// IR Dump Before CanonicalizerPass: canonicalize{top-down=true} ('builtin.module' operation) //----- //
module {
  func.func @f(%a: index) attributes {xla.entry} {
    return
  }
}


// -----// IR Dump Before CSEPass: cse ('func.func' operation: @f) //----- //
module {
  func.func @f(%a: index) attributes {xla.entry} {
    return %b : index
  }
}
"""  # noqa: E501 - as XLA prints it


def test_a_log_has_a_stage_before_each_pass() -> None:
    first, second = stages(Source(LOG, "k.mlir-passes.log"))
    assert (first.before, first.symbol) == ("canonicalize", "")
    assert (second.before, second.symbol) == ("cse", "f")
    assert first.read().entry is not None
    with pytest.raises(HloError) as caught:
        second.read()
    assert caught.value.span.place() == "k.mlir-passes.log:14:12"


def test_branches_between_blocks_may_use_later_values() -> None:
    module = read_module("""
func.func @f(%c: i1) {
  cf.br ^bb2
^bb1(%x: index):
  %b = arith.addi %a, %x : index
  return
^bb2:
  %a = arith.constant 3 : index
  cf.br ^bb1(%a : index)
}""")
    body = module.function("f").body
    assert body is not None
    first, second, third = body.blocks
    assert (first.label, second.label, third.label) == ("", "bb1", "bb2")
    assert second.ops[0].operand("lhs") is third.ops[0].result
