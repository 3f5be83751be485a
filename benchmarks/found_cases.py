"""Programs on which XLA:CPU differs from the published semantics, in ``examples/found/``.

Expected values are derived by hand from the semantics; `benchmarks.found` executes the programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

STABLEHLO: Final = "https://openxla.org/stablehlo/spec"
OPERATIONS: Final = "https://openxla.org/xla/operation_semantics"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A program, the value of one element of its result, and the text that decides.

    Attributes:
        name: the file in ``examples/found/`` without its ending.
        title: the fault.
        reports: where it was reported.
        inputs: the parameters.
        element: the element of the result.
        value: its value by the semantics; None if any value is right.
        semantics: the section of the published semantics, as a link, and the rule.
        why: the derivation of the value.
        place: the start of the place with the difference.
        opcodes: the ops that a reduced program with this fault has, besides movement.
        fails: True if XLA returns no result.
        is_open: True if the semantics do not decide; the value is then that of the interpreter.
    """

    name: str
    title: str
    reports: tuple[str, ...]
    inputs: tuple[Array, ...]
    element: tuple[int, ...]
    value: float | None
    semantics: str
    why: str
    place: str
    opcodes: frozenset[str]
    fails: bool = False
    is_open: bool = False


def ints(*values: Any) -> tuple[Array, ...]:
    """Return arrays of s32."""
    return tuple([np.array(value, np.int32) for value in values])


def number_elements(*dims: int) -> Array:
    """Return an f32 array with the row-major number of each element, from 1."""
    return np.arange(1, np.prod(dims) + 1, dtype=np.float32).reshape(dims)


def spec(section: str, base: str = STABLEHLO) -> str:
    """Return a link to a section of the semantics."""
    name = "StableHLO" if base == STABLEHLO else "XLA operation semantics"
    return f"[{name}, `{section}`]({base}#{section.lower()})"


TEN: Final = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

CASES: Final = (
    Case(
        "cropping_pad_window",
        "A cropping pad is merged into the padding of a window",
        ("openxla/xla#48715",),
        ints([[1, 2, 3, 4, 5]]),
        (0, 0),
        0,
        f"{spec('pad')}: negative edge padding removes elements; {spec('reduce_window')}: the "
        "window reduces the padded operand.",
        "The pad keeps [3, 4, 5]. The window puts two zeros before them; the first window has "
        "only these two.",
        place="pass `algsimp`",
        opcodes=frozenset(["pad", "reduce-window", "convolution"]),
    ),
    Case(
        "nested_dynamic_slices",
        "The clamps of nested dynamic slices are dropped",
        ("openxla/xla#49121", "jax-ml/jax#40849"),
        ints(TEN, 9, 0),
        (0,),
        6,
        f"{spec('dynamic_slice')}: `adjusted_start_indices = clamp(0, start_indices, "
        "shape(operand) - slice_sizes)`.",
        "The outer start 9 is clamped to 10 - 4 = 6, the inner start is 0.",
        place="pass `algsimp`",
        opcodes=frozenset(["dynamic-slice"]),
    ),
    Case(
        "nested_dynamic_updates",
        "The clamp of the outer start of nested dynamic updates is dropped",
        ("openxla/xla#49121",),
        ints(TEN, [100], 9, 0),
        (6,),
        100,
        f"{spec('dynamic_update_slice')}: `adjusted_start_indices = clamp(0, start_indices, "
        "shape(operand) - shape(update))`.",
        "The slice and the update of four elements start at clamp(9) = 6; the inner update is at "
        "0.",
        place="pass `algsimp`",
        opcodes=frozenset(["dynamic-slice", "dynamic-update-slice"]),
    ),
    Case(
        "loop_step_over_bound",
        "A loop whose step exceeds the distance to the bound is dropped",
        ("tensorflow/tensorflow#123067",),
        ints([1, 2, 3]),
        (0,),
        2,
        f"{spec('while')}: `body` is executed while `cond` outputs true.",
        "0 < 1, so the body is executed once and doubles x.",
        place="pass `simplify-while-loops`",
        opcodes=frozenset(["while", "add", "compare"]),
    ),
    Case(
        "unsigned_start",
        "A constant unsigned start with the top bit set is read as negative",
        ("openxla/xla#48717",),
        ints(list(range(256))),
        (0,),
        200,
        f"{spec('dynamic_slice')}: starts are of integer type, `ui8` has values from 0 to 255.",
        "200 <= 256 - 4, so the start stays 200. -56 would be clamped to 0.",
        place="conversion",
        opcodes=frozenset(["dynamic-slice", "gather", "scatter"]),
    ),
    Case(
        "scatter_without_indices",
        "A scatter with index vectors of width 0 applies one of its updates",
        ("openxla/xla#48716",),
        (*ints([10]), np.zeros((3, 0), np.int32), *ints([[1], [2], [4]])),
        (0,),
        17,
        f"{spec('scatter')}: every update index is executed once, in any order; "
        "`full_start_index` is 0 where no index is given.",
        "All three updates are added to the one element: 10 + 1 + 2 + 4.",
        place="emitter",
        opcodes=frozenset(["scatter"]),
    ),
    Case(
        "scatter_into_scalar",
        "A scatter into a scalar does not compile",
        (),
        (*ints(10), np.zeros((2, 0), np.int32), *ints([1, 2])),
        (),
        13,
        f"{spec('scatter')}: (C2) the rank of the operand is the number of window dimensions, "
        "here 0.",
        "Both updates are added: 10 + 1 + 2.",
        place="after the dump of pass `scatter_simplifier`",
        opcodes=frozenset(["scatter"]),
        fails=True,
    ),
    Case(
        "dilated_window",
        "Base dilation of a window is dropped",
        ("openxla/xla#48714",),
        (number_elements(64, 128),),
        (0, 1),
        -np.inf,
        f"{spec('reduce_window')}: `padded_inputs = pad(inputs, init_values, .., "
        "base_dilations - 1)`.",
        "Column 1 of the dilated operand is between two columns of x: it has the initial value.",
        place="emitter",
        opcodes=frozenset(["reduce-window"]),
    ),
    Case(
        "cropping_convolution",
        "A convolution with negative low padding reads beyond a row",
        ("openxla/xla#48713",),
        (number_elements(1, 8, 6, 8), np.eye(8, dtype=np.float32).reshape(1, 1, 8, 8)),
        (0, 0, 1, 0),
        0,
        f"{spec('convolution')}: `padded_lhs = pad(lhs, 0, lhs_padding[:, 0], lhs_padding[:, 1], "
        "..)`.",
        "Five of six columns are removed and one column of zeros is added; column 1 of the result "
        "reads that one.",
        place="emitter",
        opcodes=frozenset(["convolution"]),
    ),
    Case(
        "atan2_of_zeros",
        "atan2(0, 0) is NaN where the zeros are found at compile time",
        ("openxla/xla#44705",),
        (number_elements(4), number_elements(4)),
        (0,),
        0,
        f"{spec('atan2')}: for floats, `atan2` from IEEE-754, which returns 0 for (0, 0).",
        "Both comparisons are equal, so their exclusive or is false and its conversion 0.",
        place="emitter",
        opcodes=frozenset(["atan2", "compare", "xor", "convert"]),
    ),
    Case(
        "division_of_constants",
        "A constant integer division by zero ends the process",
        (),
        (),
        (),
        None,
        f"{spec('element-wise_binary_arithmetic_operations', OPERATIONS)}: integer division by "
        "zero *produces an implementation defined value*.",
        "Any value is right, the end of the process is not. XLA:CPU returns -1 if the divisor is a "
        "parameter.",
        place="conversion",
        opcodes=frozenset(["divide", "remainder"]),
        fails=True,
    ),
    Case(
        "cropping_window",
        "A window of size 1 with negative padding ends the process",
        ("openxla/xla#48719",),
        (number_elements(8, 4),),
        (0, 0),
        5,
        f"{spec('reduce_window')}: `padded_inputs = pad(inputs, .., padding[:, 0], ..)`, with "
        "constraint (C15) on the result alone.",
        "The first row is removed; the sum of one element is that element.",
        place="after the dump",
        opcodes=frozenset(["reduce-window"]),
        fails=True,
    ),
    Case(
        "reduce_of_one",
        "A reduction of one element drops an initial value that is not neutral",
        (),
        ints([[1], [2], [3]]),
        (0,),
        2,
        f"{spec('reduce')}: the schedule has *an implementation-defined amount of `init_values` at "
        "implementation-defined positions*, so `body` and `init_values` must form a monoid.",
        "1 is not neutral for addition: with the initial value once, the sum is 2; without, it is "
        "1.",
        place="pass `algsimp`",
        opcodes=frozenset(["reduce"]),
        is_open=True,
    ),
    Case(
        "abs_of_square",
        "The absolute value of a square is dropped where the square overflows",
        ("tensorflow/tensorflow#118178", "openxla/xla#46628"),
        ints(46341),
        (),
        2147479015,
        f"{spec('errors')}: integer overflow results in *implementation-defined behavior*.",
        "46341 * 46341 = 2147488281 wraps around to -2147479015, whose absolute value is "
        "2147479015. XLA:CPU, too, wraps around in other programs.",
        place="pass `algsimp`",
        opcodes=frozenset(["multiply", "abs", "dot", "reduce"]),
        is_open=True,
    ),
)
