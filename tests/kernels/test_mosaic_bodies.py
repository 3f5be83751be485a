"""Steps that give values to others, by the text of a kernel's body."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import hlo
import indexing
from indexing.kernels.mosaic import bodies, call_maps
from indexing.kernels.mosaic.body import Held, NotReadError
from indexing.kernels.mosaic.body_ops import new_execution
from indexing.kernels.mosaic.carried import first_carried
from indexing.kernels.mosaic.index_values import integer_value
from indexing.kernels.mosaic.views import MemoryView
from indexing.kernels.reader import read_module
from simplifier.atoms import Variable
from simplifier.linear import as_expr
from simplifier.unknown import Unknown
from tests.compiled import interpreted_only

GRID = (Variable("d0", 0, 1), Variable("d1", 0, 2))
MEMREF, VECTOR = "memref<8x128xf32, #tpu.memory_space<vmem>>", "vector<8x128xf32>"
SEMAPHORE = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"


def module_text(body: str) -> str:
    """Return a kernel with two program ids, an input, an output, a scratch buffer, a semaphore."""
    arguments = f"%i: i32, %k: i32, %x: {MEMREF}, %o: {MEMREF}, %acc: {MEMREF}, %sem: {SEMAPHORE}"
    return f"""
"builtin.module"() ({{
  "func.func"() ({{
  ^bb0({arguments}):
    %c0 = "arith.constant"() <{{value = 0 : index}}> : () -> index
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %first = "arith.cmpi"(%k, %zero) <{{predicate = 0 : i64}}> : (i32, i32) -> i1
    %v = "vector.load"(%x, %c0, %c0) : ({MEMREF}, index, index) -> {VECTOR}
    {body}
    "func.return"() : () -> ()
  }}) {{sym_name = "kernel"}} : () -> ()
}}) : () -> ()
"""


def store(target: str = "%acc", mask: int = 0, add: str = "false", strides: str = "") -> str:
    operands = f"%v, {target}, %c0, %c0" + ", %v" * mask
    types = f"{VECTOR}, {MEMREF}, index, index" + f", {VECTOR}" * mask
    segments = f"operandSegmentSizes = array<i32: 1, 1, 2, {mask}>"
    attributes = f"<{{add = {add}, {segments}, strides = array<i32{strides}>}}>"
    return f'"tpu.vector_store"({operands}) {attributes} : ({types}) -> ()'


def load(source: str = "%acc", name: str = "%old") -> str:
    """Return a load whose value is stored into the output."""
    return f"""{name} = "vector.load"({source}, %c0, %c0) : ({MEMREF}, index, index) -> {VECTOR}
    "vector.store"({name}, %o, %c0, %c0) : ({VECTOR}, {MEMREF}, index, index) -> ()"""


def when(condition: str, body: str) -> str:
    end = '"scf.yield"() : () -> ()'
    return f'"scf.if"({condition}) ({{\n {body}\n {end}\n}}, {{\n {end}\n}}) : (i1) -> ()'


def loop(body: str) -> str:
    end = '"scf.yield"() : () -> ()'
    return (
        f'"scf.for"(%zero, %k, %zero) ({{\n ^bb0(%t: i32):\n {body}\n {end}\n}}) '
        ": (i32, i32, i32) -> ()"
    )


def dma(semaphore: str, start: bool = True, wait: bool = True, device: int = 0) -> str:
    segments = f"operandSegmentSizes = array<i32: 1, 0, 1, 1, {device}, 0, 0>"
    more, kind = (", %zero", ", i32") if device else ("", "")
    begin = (
        f'"tpu.enqueue_dma"(%x, %acc, {semaphore}{more}) <{{{segments}}}> : '
        f"({MEMREF}, {MEMREF}, {SEMAPHORE}{kind}) -> ()"
    )
    end = (
        f'"tpu.wait_dma2"({semaphore}, %x, %acc) '
        "<{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : "
        f"({SEMAPHORE}, {MEMREF}, {MEMREF}) -> ()"
    )
    return "\n".join([begin] * start + [end] * wait)


NEW = f'%own = "tpu.sem_alloc"() : () -> {SEMAPHORE}\n'
HALF = "memref<4x128xf32, #tpu.memory_space<vmem>>"
ROWS = f"""%half = "tpu.memref_slice"(%acc, %zero, %zero) : ({MEMREF}, i32, i32) -> {HALF}
    %h = "vector.load"(%x, %c0, %c0) : ({MEMREF}, index, index) -> vector<4x128xf32>
    "vector.store"(%h, %half, %c0, %c0) : (vector<4x128xf32>, {HALF}, index, index) -> ()"""
FLAT = "memref<1024xf32, #tpu.memory_space<vmem>>"


def flat_store(count: int) -> str:
    """Return a store of some elements of the scratch buffer as a memref of one dimension."""
    vector = f"vector<{count}xf32>"
    return f"""%flat = "tpu.memref_reshape"(%acc) : ({MEMREF}) -> {FLAT}
    %f = "arith.constant"() <{{value = dense<0.0> : {vector}}}> : () -> {vector}
    "vector.store"(%f, %flat, %c0) : ({vector}, {FLAT}, index) -> ()"""


SEED = '"tpu.prng_set_seed_32"(%i) : (i32) -> ()'
DRAW = f"""%bits = "tpu.prng_random_bits"() : () -> {VECTOR}
    "vector.store"(%bits, %o, %c0, %c0) : ({VECTOR}, {MEMREF}, index, index) -> ()"""
PUSH = f'"tpu.matmul_push_rhs"(%v) : ({VECTOR}) -> ()'
FROM_MEMORY = f"""%s = "memref.load"(%x, %c0, %c0) : ({MEMREF}, index, index) -> f32
    %t = "arith.cmpf"(%s, %s) <{{predicate = 0 : i64}}> : (f32, f32) -> i1\n"""

# fmt: off
TABLE = [
    # the first dimension along which values are carried; 2 if none is
    ("a store before the load", store() + load(), 2),
    ("the load before the store", load() + store(), 0),
    ("nothing is stored", load(), 2),
    ("a load that nothing uses", f'%u = "vector.load"(%acc, %c0, %c0) : ({MEMREF}, index, index)'
     f" -> {VECTOR}\n" + store(), 2),
    ("reset where k is 0", when("%first", store()) + load() + store(), 1),
    ("reset after the load", load() + when("%first", store()), 0),
    ("the load is under the same condition", when("%first", store() + load()) + store(), 2),
    ("a masked store", store(mask=1) + load(), 0),
    ("an added value", store(add="true") + load(), 0),
    ("a store with strides", store(strides=": 2, 1") + load(), 0),
    ("a condition on memory", FROM_MEMORY + when("%t", store()) + load(), 0),
    ("a store in a loop", loop(store()) + load(), 0),
    ("a store and a load in a loop", loop(store() + load()), 2),
    ("a load and a store in a loop", loop(load() + store()), 0),
    ("a store before the loop", store() + loop(load() + store()), 2),
    ("a store of half of the rows", ROWS + load(), 0),
    ("all elements in another shape", flat_store(1024) + load(), 2),
    ("some elements in another shape", flat_store(512) + load(), 0),
    ("a DMA that is awaited", NEW + dma("%own") + load(), 2),
    ("a DMA that is not awaited", NEW + dma("%own", wait=False) + load(), 0),
    ("a DMA of an earlier step", dma("%sem") + load(), 0),
    ("two DMAs with one semaphore", NEW + dma("%own", wait=False) + dma("%own") + load(), 0),
    ("a DMA that is started under a condition",
     NEW + when("%first", dma("%own", wait=False)) + dma("%own", start=False) + load(), 0),
    ("an op that is not known", f'"tpu.new"(%acc) : ({MEMREF}) -> ()' + load(), 0),
    ("an op that is not known, of an input", f'"tpu.new"(%x) : ({MEMREF}) -> ()', 0),
    ("random numbers with a seed", SEED + DRAW, 2),
    ("random numbers without a seed", DRAW, 0),
    ("random numbers with a seed where k is 0", when("%first", SEED) + DRAW, 1),
    ("another effect", PUSH, 0),
]
# fmt: on


def execute(body: str) -> int:
    module = read_module(module_text(body))
    function = module.function("kernel")
    execution = new_execution(module)
    ids: list[Held] = [[(v.as_expr(), ())] for v in GRID]
    views = [MemoryView.of_argument(k, v.type) for k, v in enumerate(function.arguments)]
    execution.function("kernel", [*ids, *views[2:]])
    return first_carried(execution.accesses, execution.stores, GRID)


@pytest.mark.parametrize("name, body, first", TABLE, ids=[name for name, *_ in TABLE])
def test_the_first_dimension_along_which_values_are_carried(
    name: str, body: str, first: int
) -> None:
    assert execute(body.replace(')"', ')\n"').replace(")%", ")\n%")) == first


@pytest.mark.parametrize(
    "body, reason",
    [
        (dma("%sem", device=1), "another device"),
        ('%n = "tpu.core_id"() : () -> i32\n' + when("%n", store()), "depends on the core"),
        (f'%m = "tpu.new"() : () -> {MEMREF}\n' + load("%m"), "`tpu.new` returns a memref"),
        ('"func.call"() <{callee = @other}> : () -> ()', "calls @other, which the module lacks"),
    ],
)
def test_bodies_that_are_not_read(body: str, reason: str) -> None:
    with pytest.raises(NotReadError, match=reason):
        execute(body)


VALUES = [
    ("arith.subi", 2, 5, -3), ("arith.divsi", -7, 2, -3), ("arith.remsi", -7, 2, -1),
    ("arith.floordivsi", -7, 2, -4), ("arith.minsi", -7, 2, -7), ("arith.maxsi", -7, 2, 2),
    ("arith.divui", 7, 2, 3), ("arith.divui", -7, 2, None), ("arith.remui", 7, 4, 3),
    ("arith.muli", 1 << 20, 1 << 20, None), ("arith.andi", 6, 3, 2), ("arith.xori", 6, 3, 5),
    ("arith.shli", 3, 2, 12), ("arith.shrsi", -8, 1, None), ("arith.shrsi", 8, 1, 4),
    ("arith.ceildivsi", 7, 2, None),
]  # fmt: skip


@pytest.mark.parametrize("name, a, b, expected", VALUES)
def test_integers_are_those_of_mlir(name: str, a: int, b: int, expected: int | None) -> None:
    text = f'"{name}"(%a, %b) : (i32, i32) -> i32'
    header = '"builtin.module"() ({ "func.func"() ({ ^bb0(%a: i32, %b: i32):'
    end = '"func.return"() : () -> () }) {sym_name = "f"} : () -> () }) : () -> ()'
    function = read_module(f"{header}\n %c = {text}\n {end}").function("f")
    value = integer_value(function.ops[0], [[(as_expr(a), ())], [(as_expr(b), ())]])
    if expected is None:
        assert isinstance(value, Unknown)
    else:
        assert isinstance(value, list)
        assert [result for result, _ in value] == [as_expr(expected)]


# ---------------------------------------------------------------- bytecode

DATA = Path(__file__).parent / "data" / "mosaic"


def reasons(module: hlo.Module) -> set[str]:
    """Return the reasons of the maps of a module's kernel, which must have all elements."""
    (call,) = [each for each in module.entry.instructions if each.opcode == "custom-call"]
    answer = indexing.output_to_input(call)
    for maps, operand in zip(answer.maps, call.operands, strict=True):
        assert isinstance(operand.shape, hlo.Shape)
        (read,) = maps
        assert [v.upper + 1 for v in read.ranges] == list(operand.shape.dims)
    return {reason.text for each in answer.reasons for group in each for reason in group}


def module_with(change: Callable[[str], str]) -> hlo.Module:
    """Return a module whose kernel has another body."""
    text = (DATA / "update.hlo").read_text()
    return hlo.parse(re.sub(r'"body":"([^"]*)"', lambda m: f'"body":"{change(m[1])}"', text))


@interpreted_only
def test_a_kernel_without_jaxlib_may_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "find_spec", lambda name: None)
    bodies.read_body.cache_clear()
    (reason,) = reasons(module_with(lambda body: base64.b64encode(b"other").decode()))
    bodies.read_body.cache_clear()
    assert reason == "the kernel is bytecode: install the extra [xla] to read its blocks"


@interpreted_only
def test_a_kernel_that_aborts_the_reader_may_read_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = "by signal 6; its last lines:\nterminate called"
    monkeypatch.setattr(bodies, "run_worker", lambda *args, **options: end)
    (reason,) = reasons(module_with(lambda body: base64.b64encode(b"abort").decode()))
    assert reason == "the kernel cannot be read: jaxlib ended by signal 6"


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda body: "?", "the kernel cannot be read: its body is not base64"),
        (lambda body: body[: len(body) // 8 * 4], "the kernel cannot be read: Unable to parse"),
        (lambda body: "", "the configuration of the call has no kernel"),
        (lambda body: base64.b64encode(b"module {}").decode(), "the module of the kernel has no"),
    ],
)
def test_a_body_that_is_not_valid_is_a_reason(change: Callable[[str], str], reason: str) -> None:
    pytest.importorskip("jaxlib")
    (text,) = reasons(module_with(change))
    assert text.startswith(reason)


@interpreted_only
def test_a_module_without_the_parts_of_a_kernel_is_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = module_text(store() + "\n" + load()).replace(
        'sym_name = "kernel"',
        'sym_name = "kernel", window_params = [1, 2, 3], scratch_operands = 3',
    )
    monkeypatch.setattr(call_maps, "read_body", lambda body: read_module(text))
    call_maps.kernel_reads.cache_clear()
    (reason,) = reasons(module_with(lambda body: base64.b64encode(b"no windows").decode()))
    call_maps.kernel_reads.cache_clear()
    assert reason.startswith("the module is not a valid kernel of Mosaic: ")


OTHER_KERNELS = [
    ("the kernel has 3 inputs and outputs, the custom call 4", ", %copy-done)", ", %x, %x)"),
    ("has no blocks of type memref<8x128xf32, ", "f32[16,128]", "f32[16,2,64]"),
]


@pytest.mark.parametrize("reason, old, new", OTHER_KERNELS)
def test_a_kernel_of_another_call_may_read_everything(reason: str, old: str, new: str) -> None:
    pytest.importorskip("jaxlib")
    text = (DATA / "update.hlo").read_text()
    text = re.sub(r"operand_layout_constraints=\{[^}]*\}[^}]*\}[^}]*\}, ", "", text)
    text = re.sub(r"\{[\d,]*:T\([\d,]*\)(S\(\d\))?\}", "", text)
    (stated,) = reasons(hlo.parse(text.replace(old, new)))
    assert reason in stated
