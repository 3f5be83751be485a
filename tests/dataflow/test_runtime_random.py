"""Random index arithmetic: folded values against the kernels, and gathers at their results."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

import hlo
import indexing
from hlo import Computation, Instruction
from indexing.dataflow.values import value_maps
from indexing.maps.arrays import ArrayRef
from tests.dataflow.programs import Run, entry
from tests.oracles import fuzz

KINDS = ("s8", "u8", "s32")
SIZE = 7  # of the table
DTYPES = {"s8": np.int8, "u8": np.uint8, "s32": np.int32}


@st.composite
def arithmetic(draw: st.DrawFn) -> Computation:
    """Six numbers of one type from an iota, constants and a parameter, with wrap-around."""
    kind = draw(st.sampled_from(KINDS))
    array = f"{kind}[6]"
    lowest = 0 if kind == "u8" else -9
    lines = [f"n0 = {array} iota(), iota_dimension=0"]
    if draw(st.booleans()):
        lines.append(f"n1 = {array} parameter(1)")
    for _ in range(draw(st.integers(1, 7))):
        new, x, y = f"n{len(lines)}", *(f"n{draw(st.integers(0, len(lines) - 1))}" for _ in "xy")
        number = draw(st.integers(lowest, 12) | st.sampled_from([0, 60, 127]))
        step = draw(st.integers(0, 3))
        table = [min(max(number + step * k, -128 if lowest else 0), 127) for k in range(6)]
        reversed_dims = draw(st.sampled_from(["dimensions={0}", "dimensions={}"]))
        a, b = sorted((number, draw(st.integers(0, 20))))
        direction = draw(st.sampled_from(["LT", "LE", "EQ", "NE", "GE", "GT"]))
        lines.append(
            draw(
                st.sampled_from(
                    [
                        f"{new} = {array} constant({{ {', '.join(map(str, table))} }})",
                        f"{new} = {array} constant({{ {', '.join([str(number)] * 6)} }})",
                        f"{new} = {array} add({x}, {y})",
                        f"{new} = {array} subtract({x}, {y})",
                        f"{new} = {array} multiply({x}, {y})",
                        f"{new} = {array} divide({x}, {y})",
                        f"{new} = {array} negate({x})",
                        f"{new} = {array} maximum({x}, {y})",
                        f"{new} = {array} minimum({x}, {y})",
                        f"{new} = {array} reverse({x}), {reversed_dims}",
                        f"{new}a = {kind}[2,3] reshape({x})  "
                        f"{new}b = {kind}[3,2] transpose({new}a), dimensions={{1,0}}  "
                        f"{new} = {array} reshape({new}b)",
                        f"{new}a = {kind}[3] slice({x}), slice={{[1:6:2]}}  "
                        f"{new}b = {kind}[3] slice({y}), slice={{[0:3]}}  "
                        f"{new} = {array} concatenate({new}a, {new}b), dimensions={{0}}",
                        f"{new}a = {kind}[] constant({a})  {new}b = {kind}[] constant({b})  "
                        f"{new} = {array} clamp({new}a, {x}, {new}b)",
                        f"{new}a = pred[6] compare({x}, {y}), direction={direction}  "
                        f"{new} = {array} select({new}a, {y}, {x})",
                        f"{new}a = s32[6] convert({x})  {new} = {array} convert({new}a)",
                    ]
                )
            )
        )
    last = f"n{len(lines) - 1}"
    return entry(
        f"""
      p = f32[{SIZE}] parameter(0)
      {chr(10).join(lines)}
      start = {kind}[] constant(2)
      one = {kind}[1] dynamic-slice({last}, start), dynamic_slice_sizes={{1}}
      scalar = {kind}[] reshape(one)
      window = f32[3] dynamic-slice(p, scalar), dynamic_slice_sizes={{3}}
      g = f32[6] gather(p, {last}), offset_dims={{}}, collapsed_slice_dims={{0}},
        start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
      ROOT r = f32[9] concatenate(g, window), dimensions={{0}}"""
    )


def check_folded(instruction: Instruction, run: Run) -> None:
    """Check the folded formulas of an instruction, if any, against its kernel."""
    pieces = value_maps(ArrayRef(instruction))
    if pieces is not None:
        result = np.asarray(run.values[(), instruction])
        evaluated = [(at, number) for piece in pieces for at, (number,) in piece.points()]
        assert len({at for at, _ in evaluated}) == len(evaluated) == result.size
        assert all(result[at] == number for at, number in evaluated)


@given(arithmetic(), st.integers(0, 1 << 30))
@fuzz(250)
def test_folded_values_equal_those_of_the_kernels(main: Computation, seed: int) -> None:
    assert not hlo.verify(main.module)
    random = np.random.default_rng(seed)
    kind = main["start"].shape.element_type  # type: ignore[union-attr]
    numbers = random.integers(0 if kind == "u8" else -9, 12, 6).astype(DTYPES[kind])
    run = Run(main, np.arange(SIZE, dtype=np.float32), numbers)
    for instruction in main.instructions:
        check_folded(instruction, run)
    lookup = main["g"].operands[1]
    event("folds" if value_maps(ArrayRef(lookup)) else "stays")
    answer = indexing.to_parameters(main.root)
    assert answer.unknown[0] is None
    expected = {((k,), (int(v),)) for k, v in enumerate(run.result)}
    assert run.read(answer.maps[0]) == expected
    if value_maps(ArrayRef(lookup)) is not None:
        sources = {rt.source for each in answer.maps[0] for rt in each.runtime}
        assert lookup not in sources


NESTED_SIZES = st.lists(st.integers(2, 6), min_size=2, max_size=3)


@st.composite
def nests(draw: st.DrawFn) -> Computation:
    """Nested slices, updates and gathers whose starts are a few parameters in any order."""
    sizes = draw(NESTED_SIZES)
    lines = [f"v0 = s32[{','.join(map(str, sizes))}] parameter(0)"]
    lines += [f"i{k} = s32[] parameter({k + 1})" for k in range(3)]
    for number in range(draw(st.integers(1, 4))):
        source, target = f"v{number}", f"v{number + 1}"
        starts = [f"i{draw(st.integers(0, 2))}" for _ in sizes]
        kind = draw(st.sampled_from(["slice", "slice", "gather", "transpose", "update"]))
        before = ",".join(map(str, sizes))
        if kind == "transpose":
            order = draw(st.permutations(range(len(sizes))))
            sizes = [sizes[k] for k in order]
            attribute = f"dimensions={{{','.join(map(str, order))}}}"
            lines.append(
                f"{target} = s32[{','.join(map(str, sizes))}] transpose({source}), {attribute}"
            )
            continue
        if kind == "gather":
            rows = draw(st.integers(1, 4))
            lines.append(f"n{number} = s32[{rows}] iota(), iota_dimension=0")
            lines.append(f"b{number} = s32[{rows}] broadcast({starts[0]}), dimensions={{}}")
            lines.append(f"x{number} = s32[{rows}] subtract(b{number}, n{number})")
            taken = [1, *sizes[1:]]
            sizes = [rows, *sizes[1:]]
            rest = ",".join(map(str, range(1, len(sizes))))
            lines.append(
                f"{target} = s32[{','.join(map(str, sizes))}] gather({source}, x{number}), "
                f"offset_dims={{{rest}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
                f"index_vector_dim=1, slice_sizes={{{','.join(map(str, taken))}}}"
            )
            continue
        taken = [draw(st.integers(1, n)) for n in sizes]
        window = ",".join(map(str, taken))
        lines.append(
            f"w{number} = s32[{window}] dynamic-slice({source}, {', '.join(starts)}), "
            f"dynamic_slice_sizes={{{window}}}"
        )
        if kind == "slice":
            sizes = taken
            lines.append(f"{target} = s32[{window}] copy(w{number})")
        else:
            others = [f"i{draw(st.integers(0, 2))}" for _ in sizes]
            lines.append(
                f"{target} = s32[{before}] dynamic-update-slice({source}, w{number}, "
                f"{', '.join(others)})"
            )
    last = lines[-1].partition(" ")[0]
    shape = ",".join(map(str, sizes))
    return entry("\n".join([*lines, f"ROOT root = s32[{shape}] copy({last})"]))


@given(nests(), st.tuples(*[st.integers(-2, 7)] * 3))
@fuzz(150)
def test_e4_maps_of_nested_slices_updates_and_gathers_agree_with_runs(
    main: Computation, starts: tuple[int, ...]
) -> None:
    """Elements of the table are numbered, so each result element identifies its source."""
    assert not hlo.verify(main.module)
    sizes = main["v0"].shape.dims  # type: ignore[union-attr]
    table = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes)
    run = Run(main, table, *map(np.int32, starts))
    maps = indexing.to_parameters(main.root, exact=True).maps[0]
    expected = {
        (at, tuple(map(int, np.argwhere(table == v)[0]))) for at, v in np.ndenumerate(run.result)
    }
    assert run.read(maps) == expected
    compact = indexing.to_parameters(main.root).maps[0]
    assert expected <= run.read(compact)
