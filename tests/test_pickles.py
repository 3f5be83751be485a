"""Pickles and copies of every kind of public value, and modules in other processes.

The values are those of the examples in the docstrings of the public names: what they assign, print
or show, with the fields of dataclasses and the elements of collections. `MORE` makes the kinds that
no example has.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import doctest
import io
import pickle
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module, util
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hlo
import indexing
import simplifier
from hlo import HloError, Module, Source
from indexing.equivalence.dumps import Dump
from indexing.kernels.verdicts import KernelDiffers, KernelUndecided
from indexing.tiling.loops.loop_objectives import (
    AverageProcessor,
    BusiestProcessor,
    FewestBytes,
    LoopCandidate,
)

ROOT = Path(__file__).parent.parent
HAS_JAX = util.find_spec("jax") is not None

TRANSPOSE = "ENTRY e { p = f32[4,4] parameter(0) ROOT t = f32[4,4] transpose(p), dimensions={1,0} }"
COPY = TRANSPOSE.replace("transpose(p), dimensions={1,0}", "copy(p)")
WINDOW = """HloModule window
ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)
  ROOT s = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} }"""


def _window() -> Module:
    return hlo.parse(WINDOW, "window.hlo")


def _equivalent(after: str) -> Any:
    return indexing.equivalent(hlo.parse(TRANSPOSE), hlo.parse(after))


def _undecided_value() -> Any:
    text = (
        'ENTRY e { p = f32[4] parameter(0) ROOT c = f32[4] custom-call(p), custom_call_target="a" }'
    )
    return indexing.equivalent(hlo.parse(text), hlo.parse(text.replace('"a"', '"b"')))


def _loop_facts() -> Any:
    module = hlo.load(ROOT / "examples" / "rnn.pre.hlo")
    return [indexing.loop_facts(i) for i in module.instructions if i.opcode == "while"]


def _difference() -> Any:
    return indexing.parse_map("(d0) -> (d0), domain: d0 in [0, 9]").is_equal(
        indexing.parse_map("(d0) -> (d0 + 1), domain: d0 in [0, 9]")
    )


def _fewer_reads() -> Any:
    return indexing.FewerReads(0, (1,), 0, (2,))


def _pass_result() -> Any:
    fields = {field.name: "" for field in dataclasses.fields(Dump)}
    dump = Dump(**fields)  # type: ignore[arg-type]
    return indexing.PassResult("m", dump, dump, _equivalent(COPY))


def _loop_tilings() -> Any:
    root = hlo.parse("""ENTRY e { p = f32[32,64] parameter(0)  q = f32[64,16] parameter(1)
        ROOT d = f32[32,16] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }""")
    tiling: Any = indexing.tile(root.entry.root, (16, 16), loop_sizes={"k": 16})
    best = indexing.best_tilings(root.entry.root, top=2, loops=True)
    (path,) = (ROOT / "tests/kernels/data/h100_mlp_gemm").glob("*after_optimizations.txt")
    fusion = hlo.load(path).entry["gemm_fusion_dot"]
    compiled = indexing.best_tilings(fusion, top=1, loops=True)
    candidate = LoopCandidate(1, 2, 3, 1, 1)
    return [
        tiling,
        tiling.operands,
        best,
        compiled,
        [candidate, FewestBytes(132), AverageProcessor(132), BusiestProcessor(132)],
    ]


def _kernels() -> Any:
    (kernel,) = indexing.kernels_of(ROOT / "tests" / "kernels" / "data" / "h100_transpose_2d")
    assert kernel.reads
    return [kernel, kernel.launch, indexing.check_kernel(kernel)]


def _layout_trial() -> Any:
    module = hlo.parse("""ENTRY e { x = f32[9,7]{1,0} parameter(0)  c = f32[9,7]{0,1} copy(x)
        ROOT r = f32[] custom-call(c), custom_call_target="a" }""")
    tried = tuple([indexing.TriedLayout(copy, removed=True) for copy in indexing.copies(module)])
    return indexing.LayoutTrial("cpu", module, module, (), tried)


MORE: list[Callable[[], Any]] = [
    lambda: _equivalent(TRANSPOSE),
    lambda: _equivalent(COPY),
    _undecided_value,
    _loop_facts,
    _difference,
    _fewer_reads,
    _pass_result,
    _loop_tilings,
    _kernels,
    _layout_trial,
    lambda: KernelDiffers("another value", (("bl_x", 1),), element=(0, 1), output=0),
    lambda: KernelUndecided("no", level="reads"),
    lambda: indexing.output_to_input(_window().entry.root),
    lambda: indexing.correspondence(hlo.parse(TRANSPOSE), hlo.parse(COPY)),
    lambda: indexing.TriageGroup("undecided", "time", ()),
    lambda: indexing.UndecidedError("no"),
    lambda: indexing.CertificateError("no"),
]


def _public() -> dict[str, Any]:
    """The public names of all packages, with their values."""
    names: dict[str, Any] = {}
    for package in ("hlo", "indexing", "simplifier"):
        for stub in sorted(ROOT.joinpath(package).rglob("__init__.pyi")):
            room = ".".join(stub.parent.relative_to(ROOT).parts)
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.ImportFrom):
                    home = import_module("." * node.level + (node.module or ""), room)
                    names.update({a.name: getattr(home, a.name) for a in node.names})
    return names


def _shown_values(example: doctest.DocTest) -> list[Any]:
    """Run an example; return the values that it assigns, prints or shows."""
    values: list[Any] = []

    def show(value: Any) -> None:
        if value is not None:
            values.append(value)
            print(repr(value))

    def collected_print(*given: Any, **options: Any) -> None:
        values.extend(given)
        print(*given, **options)

    example.globs["print"] = collected_print
    before, hook = set(example.globs), sys.__displayhook__
    sys.__displayhook__ = show  # what `doctest` calls
    try:
        with redirect_stdout(io.StringIO()):
            doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)
    finally:
        sys.__displayhook__ = hook
    return values + [value for name, value in example.globs.items() if name not in before]


def _inside(values: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """Yield values and what they have: a few elements, and the fields of dataclasses."""
    for value in values:
        yield value
        if depth == 4 or isinstance(value, type):
            continue
        if isinstance(value, tuple | list | set | frozenset):
            yield from _inside(list(value)[:5], depth + 1)
        elif isinstance(value, Mapping):
            yield from _inside(list(value.values())[:5], depth + 1)
        elif dataclasses.is_dataclass(value):
            fields = dataclasses.fields(value)
            yield from _inside([getattr(value, field.name) for field in fields], depth + 1)


@cache
def _values() -> list[Any]:
    """Values of the classes of the packages, at most twenty of each."""
    by_class: dict[type, list[Any]] = {}
    homes = {public.__module__ for public in _public().values() if hasattr(public, "__module__")}
    examples = [e for home in sorted(homes) if home in sys.modules for e in _examples(home)]
    shown = [value for example in examples for value in _shown_values(example)]
    for value in _inside([*shown, *(make() for make in MORE)]):
        kind = type(value)
        if _is_ours(kind) and len(of_kind := by_class.setdefault(kind, [])) < 20:
            of_kind.append(value)
    return [value for of_kind in by_class.values() for value in of_kind]


def _examples(home: str) -> list[doctest.DocTest]:
    tests = doctest.DocTestFinder().find(sys.modules[home])
    return [test for test in tests if HAS_JAX or "jax" not in test.name]


def _is_ours(kind: type) -> bool:
    package = kind.__module__.partition(".")[0]
    return package in ("hlo", "indexing", "simplifier") and not issubclass(kind, ModuleType)


def _value_text(value: object) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", str(value))


def test_every_public_value_can_be_pickled_and_copied() -> None:
    failures = []
    for value in _values():
        kind = type(value)
        try:
            copies = [pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)]
            texts = [(type(each), _value_text(each)) for each in copies]
        except Exception as error:  # all failures are shown
            failures.append(f"{kind.__name__}: {type(error).__name__}: {error}")
            continue
        if texts != [(kind, _value_text(value))] * 3:
            failures.append(f"{kind.__name__}: {value} becomes {texts}")
    assert not failures, "\n".join(failures)


def test_the_examples_have_every_public_class() -> None:
    met = {type(value) for value in _values()}
    lacking = [
        name
        for name, public in _public().items()
        if isinstance(public, type)
        and not any(issubclass(kind, public) for kind in met)
        and _is_ours(public)
    ]
    assert not lacking


# ---------------------------------------------------------------- errors


def _all_errors() -> list[type[Exception]]:
    """The exceptions of all packages, except those of the command."""
    for package in (hlo, indexing, simplifier):
        for listed in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not listed.name.endswith("__main__"):
                import_module(listed.name)
    kinds: list[type[Exception]] = []
    waiting: list[type[Exception]] = [Exception]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if _is_ours(kind) and ".cli." not in kind.__module__ and kind not in kinds:
                kinds.append(kind)
    return kinds


ARGUMENTS: dict[str, object] = {
    "str": "word",
    "object": "value",
    "int": 7,
    "Span": Source("text", "file").span(1, 2),
    "Sequence[str]": ("a", "b"),
    "Iterable[str]": ("a", "b"),
    "tuple[int, ...]": (1, 2),
}


def _make_error(kind: type[Exception]) -> Exception | None:
    """Return an error; None if its arguments are objects of an algorithm that catches it."""
    parameters = list(signature(kind.__init__).parameters.values())[1:]
    given = [p.annotation for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if not set(given) <= set(ARGUMENTS):
        return None
    return kind(*(ARGUMENTS[annotation] for annotation in given))


def test_every_error_can_be_pickled() -> None:
    failures = []
    errors = [error for kind in _all_errors() if (error := _make_error(kind))]
    for error in errors:
        name = type(error).__name__
        try:
            again = pickle.loads(pickle.dumps(error))
        except Exception as raised:  # all failures are shown
            failures.append(f"{name}: {raised}")
            continue
        attributes = {name: str(value) for name, value in vars(error).items()}
        if (type(again), str(again)) != (type(error), str(error)):
            failures.append(f"{name} becomes {type(again).__name__}: {again}")
        elif {name: str(value) for name, value in vars(again).items()} != attributes:
            failures.append(f"{name} has other attributes: {vars(again)}")
    assert not failures, "\n".join(failures)
    names = {type(error).__name__ for error in errors}
    assert names >= {"HloError", "ExecutionError", "GatherError", "TextError", "UnknownName"}


# ---------------------------------------------------------------- identity


def test_an_answer_refers_to_the_module_of_its_pickle() -> None:
    module = _window()
    root = module.entry.root
    answer = indexing.output_to_input(root)
    again, entry, last, read, span = pickle.loads(
        pickle.dumps((module, module.entry, root, answer, root.span))
    )
    assert again == module
    assert again is not module
    assert (entry, last) == (again.entry, again.entry.root)
    assert read.instruction is last
    assert read.maps[0][0].runtime[0].source is again.entry["i"]
    assert span.source is again.source
    assert (span.place(), again.filename) == ("window.hlo:3:8", "window.hlo")
    assert str(indexing.output_to_input(last)) == str(answer)


def test_a_copy_is_the_value_itself() -> None:
    module = _window()
    for value in (module, module.entry, module.entry.root, module.source):
        assert copy.copy(value) is value
        assert copy.deepcopy(value) is value
    assert str(copy.copy(module.entry)).startswith("ENTRY")


def test_a_pickle_has_no_memoised_results() -> None:
    module = _window()
    before = pickle.dumps(module)
    list(indexing.all_to_parameters(module.entry))
    _ = module.entry.root.span.line
    assert pickle.dumps(module) == before


def test_an_error_keeps_its_place() -> None:
    module = hlo.parse("ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT n = f32[3] negate(p) }", "m")
    (error,) = hlo.verify(pickle.loads(pickle.dumps(module)))
    assert error.span.place() == "m:3:8"
    with pytest.raises(HloError) as caught:
        raise pickle.loads(pickle.dumps(error))
    assert str(caught.value) == str(error)


# ---------------------------------------------------------------- other sources of modules


def _module(made: Any) -> Module:
    assert isinstance(made, Module)
    return made


def _of_builder() -> Module:
    build = hlo.Builder("built")
    return build.build(build.op("negate", build.parameter("f32[2]")))


def _of_parts() -> Module:
    return hlo.parse_all(f"{TRANSPOSE}\n// -----\n{COPY}", "parts.hlo")[1]


def _inferred_module() -> Module:
    return hlo.infer_shapes(hlo.parse("p = f32[2,?] parameter(0)\nROOT n = negate(p)"))


def _unrolled_module() -> Module:
    module = hlo.load(ROOT / "examples" / "rnn.pre.hlo")
    return _module(indexing.unroll(next(i for i in module.instructions if i.opcode == "while")))


def _wrapped_module() -> Module:
    return hlo.parse("""ENTRY e { p = f32[3] parameter(0)
        s = ((f32[3]), f32[3], u32[]) negate-start(p) ROOT d = f32[3] negate-done(s) }""")


def _of_stablehlo(folder: Path) -> Module:
    path = folder / "m.mlir"
    path.write_text("""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %0 = stablehlo.negate %x : tensor<3xf32> return %0 : tensor<3xf32> }""")
    return hlo.load(path)


def _of_jax() -> Module:
    jax_numpy = import_module("jax.numpy")
    return _module(indexing.from_jax(lambda first, other: first + other, *[jax_numpy.zeros(3)] * 2))


def _of_proto(folder: Path) -> Module:
    path = folder / "m.pb"
    module = import_module("jaxlib._hlo").hlo_module_from_text(WINDOW)
    path.write_bytes(module.as_serialized_hlo_module_proto())
    return hlo.load(path)


def _assert_survives(module: Module) -> None:
    again = pickle.loads(pickle.dumps(module))
    assert again == module
    assert str(again) == str(module)
    assert (again.filename, again.source.text) == (module.filename, module.source.text)
    assert [i.span.place() for i in again.instructions] == [
        i.span.place() for i in module.instructions
    ]
    twice = pickle.loads(pickle.dumps(again))
    assert twice == module


@pytest.mark.parametrize(
    "make", [_of_builder, _of_parts, _inferred_module, _unrolled_module, _wrapped_module]
)
def test_modules_survive_however_they_were_made(make: Callable[[], Module]) -> None:
    _assert_survives(make())


@pytest.mark.skipif(not HAS_JAX, reason="jax converts these formats")
def test_modules_of_other_formats_survive(tmp_path: Path) -> None:
    for module in (_of_stablehlo(tmp_path), _of_proto(tmp_path), _of_jax()):
        _assert_survives(module)


# ---------------------------------------------------------------- processes


def _ask(module: Module) -> tuple[Module, Any]:
    return module, indexing.output_to_input(module.entry.root)


def test_modules_and_answers_pass_between_processes() -> None:
    module = _window()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ((again, answer),) = pool.map(_ask, [module])
    assert again == module
    assert answer.instruction is again.entry.root
    assert str(answer) == str(indexing.output_to_input(module.entry.root))
