"""Construction of loop nests from indexing maps: lowering, staging, assembly of the stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from indexing.codegen.flattening import arrays_of
from indexing.codegen.graph import (
    Apply,
    Body,
    Buffer,
    ComputationFunction,
    Node,
    topological_order,
    with_cases,
)
from indexing.codegen.lowering import rule_of
from indexing.codegen.nest import LoopNest
from indexing.codegen.numpy.program import function_on_arrays
from indexing.codegen.program_arrays import NoLoopNest, ProgramArray, arrays_in
from indexing.codegen.stages import Repeat, Stage
from indexing.codegen.staging import Staging
from indexing.codegen.text import identifier
from indexing.dataflow.answering import output_of
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound, require_sound_parameters
from indexing.maps.answers import Unknown
from indexing.maps.arrays import array_leaves
from indexing.ops.access_edge import why_unbounded
from indexing.ops.element import ElementwiseRule, element_of
from indexing.ops.functions import ScalarFunction
from indexing.ops.structured_ops import MAX_APPLIED_DEPTH, applied_depth
from simplifier.unknown import first_unknown

MAX_APPLIED_WORK: Final = 1 << 14
"""Limit on the functions that one application of a computation executes: a chain of computations,
each of which applies the next one twice, executes exponentially many."""


@checked
def loop_nest(target: Instruction | Computation, output_id: int = 0) -> LoopNest | Unknown:
    """Generate the loops that compute one output from indexing maps.

    Args:
        target: an instruction, whose operands are the inputs, or a computation, whose parameters
            are the inputs.  The body of a fusion or call is inlined.
        output_id: the number of the output: of a tuple, the number of the leaf in order.
    Returns:
        The nest, or `Unknown` with the reason if an instruction has no loop-nest form, a dimension
        has an unknown size, the output is a token, or calls repeat too many instructions.
    Raises:
        HloError: an instruction violates a constraint of its op.
        IndexError: `output_id` is out of range.

    >>> import hlo
    >>> module = hlo.parse('''
    ... ENTRY e {
    ...   p = s32[4] parameter(0)
    ...   i = s32[4] iota(), iota_dimension=0
    ...   ROOT r = s32[4] multiply(p, i)
    ... }''')
    >>> print(loop_nest(module.entry).source)
    def e(p):
        out = np.empty((4,), np.int32)
        for d0 in range(4):
            out[d0] = p[d0] * np.int32(d0)
        return out
    """
    instruction = target if isinstance(target, Instruction) else target.root
    output = output_of(instruction, output_id)
    require_sound(_reached_instructions(target))
    numbers = {number: k for k, (number, _, _) in enumerate(array_leaves(instruction.shape))}
    if output_id not in numbers:
        reason = f"output {output_id} of `{target.name}` must be an array, not {output.shape}"
        return Unknown(reason, instruction)
    try:
        inputs, results = arrays_of(target)
        result = results[numbers[output_id]]
        unknown = first_unknown(*[why_unbounded(array.ref) for array in (*inputs, result)])
        return _nest(target, output_id, inputs, result) if unknown is None else unknown
    except NoLoopNest as error:
        return error.unknown


def _reached_instructions(target: Instruction | Computation) -> list[Instruction]:
    """Return the instructions that a loop nest computes."""
    if isinstance(target, Instruction):
        return [target]
    require_sound_parameters(target)
    return dependencies_of([target.root])


def _nest(
    target: Instruction | Computation,
    output_id: int,
    inputs: Sequence[ProgramArray],
    result: ProgramArray,
) -> LoopNest:
    staging = Staging(inputs, function_from)
    output = Buffer("out", result.dims, result.dtype, "stage")
    if result.shape.is_dynamic and result.role != "input":
        rule_of(result)  # of an array of size 0, nothing else is lowered
    stages: tuple[Stage | Repeat, ...] = staging.stages(result, output) if result.shape.size else ()
    constants = tuple(staging.constants.values())
    name, buffers = identifier(target.name), tuple(staging.inputs.values())
    return LoopNest(target, output_id, name, buffers, constants, stages, output)


def function_from(applied: Computation) -> ScalarFunction:
    """Return a computation of scalars as a function.

    Raises:
        NoLoopNest: a parameter, a result or an intermediate value is not a scalar.
    """
    if applied_depth(applied) >= MAX_APPLIED_DEPTH:
        reason = f"computations below `{applied.name}` apply each other more than"
        raise NoLoopNest(Unknown(f"{reason} {MAX_APPLIED_DEPTH} deep", applied.root))
    key = function_from, applied
    return applied.module.memoised(key, lambda: _function_from(applied))


def _function_from(applied: Computation) -> ScalarFunction:
    inputs, results = arrays_of(applied)
    if any(array.dims for array in (*inputs, *results)):
        reason = f"computation `{applied.name}` is not a scalar function"
        raise NoLoopNest(Unknown(reason, applied.root))
    function = _single_function(inputs, results)
    if function is not None:
        return function
    staging = Staging(inputs, function_from)
    nodes = staging.scalars(results)
    if staging.bodies or staging.loops:
        reason = f"computation `{applied.name}` has array intermediates"
        raise NoLoopNest(Unknown(reason, applied.root))
    work = _work(nodes)
    if work > MAX_APPLIED_WORK:
        reason = (
            f"budget: applying `{applied.name}` executes more than {MAX_APPLIED_WORK} functions"
        )
        raise NoLoopNest(Unknown(reason, applied.root))
    body, name = Body(tuple(staging.inputs.values()), nodes), identifier(applied.name)
    return ComputationFunction(name, "call", function_on_arrays(name, body), body=body, work=work)


def _work(results: Sequence[Node]) -> int:
    """Return the number of functions that the computation of `results` executes."""
    applied = [n.function for n in topological_order(results, with_cases) if isinstance(n, Apply)]
    return sum([f.work if isinstance(f, ComputationFunction) else 1 for f in applied])


def _single_function(
    inputs: Sequence[ProgramArray], results: Sequence[ProgramArray]
) -> ScalarFunction | None:
    """Return the one function that a computation applies to its parameters, or None."""
    if len(results) != 1 or results[0] in inputs:
        return None
    rule = element_of(results[0].instruction, results[0].leaf)
    if not isinstance(rule, ElementwiseRule) or rule.function is None:
        return None
    operands, function = tuple(arrays_in(results[0].operands)), rule.function
    is_applied = operands == inputs or (function.commutes and operands == inputs[::-1])
    return function if is_applied else None
