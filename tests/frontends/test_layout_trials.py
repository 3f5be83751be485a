"""Programs compiled again with the layouts that their copies propose."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing
from indexing.execution import run
from indexing.frontends import compilation, layout_trials
from indexing.frontends.compilation import Compiled, compile_for
from indexing.frontends.layout_trials import LayoutTrial, trial_of
from indexing.frontends.lowering import lower
from indexing.frontends.request import CompilationRequest, RequestedLayout

REQUEST: Final = CompilationRequest("jax:f.py:f", "f32[9,7]", None, "tpu:v5e:2x2", "optimized")


def module_text(given: str, way: str, result: str = "f32[]") -> str:
    """Return a module that reads an argument and calls a library; its root is `r`."""
    return f"""HloModule m, is_scheduled=true
    ENTRY e {{ x = f32[9,7]{given} parameter(0)
      {way}
      ROOT r = {result} custom-call(c), custom_call_target="opaque" }}"""


BEFORE: Final = module_text("{1,0}", "c = f32[9,7]{0,1} copy(x)")

# fmt: off
AFTER = [
    # what the compiler makes of the other layout                             is the copy removed?
    (module_text("{0,1}", "c = f32[9,7]{0,1} bitcast(x)"),                    True),
    (module_text("{1,0}", "c = f32[9,7]{0,1} copy(x)"),                       False),
    (module_text("{0,1}", "c = f32[9,7]{0,1} copy(x)"),                       False),
    (module_text("{0,1}", "y = f32[9,7]{0,1} exponential(x) "
                          "c = f32[9,7]{1,0} copy(y)"),                       False),
    (module_text("{0,1}", "b = f32[7,9]{1,0} bitcast(x) "
                          "c = f32[7,9]{0,1} copy(b)"),                       False),
]
# fmt: on


@pytest.mark.parametrize("after, is_removed", AFTER)
def test_the_module_after_decides(
    after: str, is_removed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[CompilationRequest] = []

    def compile_again(request: CompilationRequest, **_: Any) -> Compiled:
        requests.append(request)
        answer = Compiled(tmp_path, "m")
        answer.path.write_text(after)
        return answer

    monkeypatch.setattr(layout_trials, "compile_for", compile_again)
    trial = trial_of(hlo.parse(BEFORE), REQUEST)
    assert [each.layouts for each in requests] == [(RequestedLayout(False, 0, "{0,1}"),)]
    (tried,) = trial.tried
    assert tried.removed == is_removed
    assert trial.moved_before == 2 * 4 * 9 * 7
    assert (trial.moved_after < trial.moved_before) == is_removed
    assert trial.peaks_before[0].stored_bytes >= 4 * 9 * 7


def test_without_a_proposal_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_trials, "compile_for", None)
    module = hlo.parse(module_text("{1,0}", "c = f32[9,7]{1,0} copy(x)"))
    trial = trial_of(module, REQUEST)
    assert (trial.tried, trial.layouts) == ((), ())
    assert trial.after is trial.before


# ---- programs compiled by XLA


@pytest.fixture
def jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(compilation, "cache_folder", lambda _: tmp_path / "cache")
    return pytest.importorskip("jax", reason="needs jax, to lower functions")


def rows_of(table: Any, tokens: Any) -> Any:
    return table[tokens]


def update(table: Any, tokens: Any, rows: Any) -> Any:
    return table.at[tokens].add(rows)


TPU: Final = "tpu:v5e:2x2"
TABLE, TOKENS, ROWS = (1000, 64), (256,), (256, 64)


def arguments(jax: Any, *shapes: tuple[int, ...]) -> list[Any]:
    kinds = {1: np.int32, 2: np.float32}
    return [jax.ShapeDtypeStruct(shape, kinds[len(shape)]) for shape in shapes]


def entry_layouts(module: hlo.Module) -> list[str]:
    """Return the orders of dimensions of arguments and results that the header has."""
    head = str(module).splitlines()[0]
    layouts = re.search(r"entry_computation_layout=\{(.*?)\}(?:, \w+=|$)", head)
    assert layouts is not None
    return re.findall(r"\[\d+,\d+\](\{\d,\d)", layouts[1])


def same_values(trial: LayoutTrial, *inputs: Any) -> bool:
    before, after = (run(module, inputs) for module in (trial.before, trial.after))
    return all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.slow
def test_rows_of_a_table_on_a_tpu(jax: Any) -> None:
    pytest.importorskip("libtpu", reason="needs libtpu, to compile for TPUs")
    trial = indexing.try_layouts(rows_of, *arguments(jax, TABLE, TOKENS), target=TPU)
    assert [tried.removed for tried in trial.tried] == [True, True]
    assert entry_layouts(trial.before) == ["{0,1", "{0,1"]
    assert entry_layouts(trial.after) == ["{1,0", "{1,0"]
    assert " copy(" in str(trial.before)
    assert " copy(" not in str(trial.after)
    assert trial.moved_after == 0
    table = np.arange(64000, dtype=np.float32).reshape(TABLE)
    tokens = np.arange(256, dtype=np.int32) * 3
    assert same_values(trial, table, tokens)


@pytest.mark.slow
def test_a_donated_table_and_its_result_change_together(jax: Any) -> None:
    pytest.importorskip("libtpu", reason="needs libtpu, to compile for TPUs")
    given = arguments(jax, TABLE, TOKENS, ROWS)
    donated = indexing.try_layouts(jax.jit(update, donate_argnums=0), *given, target=TPU)
    assert donated.tried
    assert all(tried.removed for tried in donated.tried)
    assert donated.moved_after == 0
    kept = indexing.try_layouts(update, *given, target=TPU)
    assert kept.moved_after > 0  # of the table, which must not be overwritten


@pytest.mark.slow
def test_the_layouts_are_those_of_jax(jax: Any) -> None:
    """`Format` of JAX gives the module that a requested layout gives."""
    pytest.importorskip("libtpu", reason="needs libtpu, to compile for TPUs")
    layout = pytest.importorskip("jax.experimental.layout")
    table, tokens = arguments(jax, (64, 1000), TOKENS)

    def columns_of(table: Any, tokens: Any) -> Any:
        return table.T[tokens]

    here = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    # JAX drops the default layout of the device that the sharding names: {1,0} of a CPU
    columns = layout.Format(layout.Layout((1, 0)), here)
    jitted = jax.jit(columns_of, in_shardings=(columns, here))
    lowering = replace(lower(columns_of, [table, tokens], {}, "tpu"), lowered=None)
    layouts = (RequestedLayout(False, 0, "{0,1}"),)
    request = CompilationRequest("", "", lowering, TPU, "optimized", layouts)
    expected = indexing.from_jax(jitted, table, tokens, target=TPU)
    module = hlo.load(compile_for(request).path)
    assert entry_layouts(module) == entry_layouts(expected) == ["{0,1", "{0,1"]
    opcodes = [each.opcode for each in expected.entry.instructions]
    assert [each.opcode for each in module.entry.instructions] == opcodes


@pytest.mark.slow
def test_targets_without_tiles(jax: Any) -> None:
    def heads(q: Any, k: Any) -> Any:
        return jax.numpy.einsum("bqhd,bkhd->bhqk", q, k)

    pytest.importorskip("jax_cuda12_plugin", reason="needs its plugin, to compile for GPUs")
    shape = jax.ShapeDtypeStruct((2, 64, 4, 32), "bfloat16")
    trial = indexing.try_layouts(heads, shape, shape, target="gpu:H100")
    assert trial.tried
    assert all(tried.removed for tried in trial.tried)
