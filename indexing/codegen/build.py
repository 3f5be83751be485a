"""Makes loop nests from maps.

The arrays of the program are visited from the last to the first.  Each has been *demanded* by then:
in some stage, at some index.  It is then either read where it is an input, or computed in place of
each demand, which demands elements of its operands in turn, where its maps say; or it becomes a
stage of its own, and is read from that stage's buffer.  Equal demands are one.

A stage of its own gets

* what is folded (reductions, products, windows, scatters), unless it is the result itself;
* what is demanded at more than `MOST_COPIES` different indices;
* arithmetic that several stages need, or that a fold reads again and again (the operands of
  products and windows).

All else, above all arithmetic that is read once, and what only moves elements, is computed where it
is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import dtype
from indexing.codegen.demands import Demands
from indexing.codegen.finishing import Finishing
from indexing.codegen.functions import identifier
from indexing.codegen.nest import Body, Buffer, Function, LoopNest, Stage
from indexing.codegen.plans import NotSaid, StagePlan
from indexing.codegen.rules import Computes, rule_of
from indexing.codegen.values import Value, values_of
from indexing.maps.answers import Unknown


def loop_nest(target: Instruction | Computation, output_id: int = 0) -> LoopNest | Unknown:
    """The loops that compute one output, made from indexing maps.

    Args:
        target: an instruction, whose operands are the inputs (a fusion or a call is computed
            straight from its operands); or a computation, whose parameters are the inputs.
        output_id: which output, where the result is a tuple: its leaves are counted in order.
    Returns:
        The nest; or `Unknown` where an instruction on the way is no loop nest, and why.
    Raises:
        HloError: an instruction breaks a rule of its op.
        IndexError: there is no such output.

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
    inputs, results = values_of(target)
    if not 0 <= output_id < max(len(results), 1):
        raise IndexError(f"`{target.name}` has {len(results)} outputs, no number {output_id}")
    if not results:
        return Unknown(f"`{target.name}` gives no array", _instruction(target))
    try:
        return _nest(identifier(target.name), inputs, results[output_id])
    except NotSaid as said:
        return said.unknown


def _instruction(target: Instruction | Computation) -> Instruction:
    return target if isinstance(target, Instruction) else target.root


def _nest(name: str, inputs: Sequence[Value], result: Value) -> LoopNest:
    demands = Demands(inputs, function_from)
    output = Buffer("out", result.shape.dims, dtype(result.shape.element_type), "stage")
    stages: tuple[Stage, ...] = ()
    if result.shape.size:
        demands.fill(result, output)
        finishing = Finishing(demands.plans, function_from, demands.unread)
        planned = sorted(demands.stages, key=lambda stage: stage.number)
        stages = tuple([finishing.stage(stage) for stage in planned])
    given, constants = tuple(demands.inputs.values()), tuple(demands.constants.values())
    return LoopNest(name, given, constants, stages, output)


def function_from(applied: Computation) -> Function:
    """A computation of scalars as a function."""
    key = function_from, applied
    return applied.module.remembered(key, lambda: _function_from(applied))


def _function_from(applied: Computation) -> Function:
    inputs, results = values_of(applied)
    if any(value.shape.rank for value in (*inputs, *results)):
        reason = f"`{applied.name}` is no computation of scalars"
        raise NotSaid(Unknown(reason, applied.root))
    plain = _plain_function(inputs, results)
    if plain is not None:
        return plain
    demands = Demands(inputs, function_from)
    nowhere = StagePlan(0, {}, ())
    keys = [demands.demand(nowhere, value, ()) for value in results]
    demands.follow()
    if demands.stages:
        reason = f"`{applied.name}` is no computation of scalars alone"
        raise NotSaid(Unknown(reason, applied.root))
    finishing = Finishing(demands.plans, function_from, demands.unread)
    finishing.make(keys)
    parameters = tuple(demands.inputs.values())
    body = Body(parameters, tuple([finishing.elements[key] for key in keys]))
    from indexing.codegen.numpy.program import function_on_arrays

    name = identifier(applied.name)
    return Function(name, "call", function_on_arrays(name, body), body)


def _plain_function(inputs: Sequence[Value], results: Sequence[Value]) -> Function | None:
    """The function that a computation is which holds just one op, of its parameters in order."""
    if len(results) != 1 or results[0].is_input:
        return None
    (result,) = results
    rule = rule_of(result)
    commutes = result.instruction.opcode in ("add", "multiply", "maximum", "minimum", "and", "or")
    same = list(result.operands) == list(inputs)
    if commutes and list(result.operands) == list(inputs)[::-1]:
        same = True
    if same and isinstance(rule, Computes) and rule.function is not None:
        return rule.function
    return None
