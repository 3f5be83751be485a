"""Shardy as an oracle: the sharding rules that jaxlib's pass gives for StableHLO ops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import pytest

from hlo.shapes.shape import leaves
from indexing import output_to_input
from indexing.ops.element import ReductionRule, element_of
from indexing.sharding import Factor, ShardingRule, sharding_rule
from indexing.sharding.rules.combiners import combiner_of
from indexing.sharding.rules.sharding_rules import factor_name
from tests.ops.samples import Sample
from tests.sharding.rules.sharding_checks import broken_factors

PASS = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
NOT_STABLEHLO = frozenset(
    ["all-gather", "async-done", "async-start", "async-update", "recv", "recv-done", "send"]
)
"""Opcodes that are not converted: jaxlib has no StableHLO op for them, or aborts."""


@cache
def bindings() -> Any:
    """Return the modules of jax that convert HLO to StableHLO and run Shardy's pass."""
    reason = "needs jax, whose bindings contain Shardy"
    pytest.importorskip("jax", reason=reason)
    mlir: Any = pytest.importorskip("jax._src.interpreters.mlir", reason=reason)
    ir: Any = pytest.importorskip("jaxlib.mlir.ir", reason=reason)
    managers: Any = pytest.importorskip("jaxlib.mlir.passmanager", reason=reason)
    jaxlib: Any = pytest.importorskip("jaxlib._jax", reason=reason)
    hlo: Any = pytest.importorskip("jaxlib._hlo", reason=reason)
    return mlir.make_ir_context(), ir, managers, jaxlib, hlo


def shardys_rule(sample: Sample) -> ShardingRule | None:
    """Return Shardy's rule of a sample; None if it is not one op of StableHLO, or has no rule."""
    if sample.instruction.opcode in NOT_STABLEHLO:
        return None
    context, ir, managers, jaxlib, hlo = bindings()
    try:
        module = hlo.hlo_module_from_text(str(sample.instruction.module))
        computation = hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        text = jaxlib.mlir.xla_computation_to_mlir_module(computation)
        with context:
            parsed = ir.Module.parse(text)
    except (jaxlib.JaxRuntimeError, ir.MLIRError):
        return None  # StableHLO does not have the op, or not for these element types
    with context:
        managers.PassManager.parse(PASS).run(parsed.operation)
        main = next(op for op in parsed.body if str(op.name) == '"main"').regions[0].blocks[0]
        ops = list(main.operations)
        (values, own) = list(ops[-1].operands), list(main.arguments)
        if len(ops) != 2 or list(ops[0].operands) != own or list(ops[0].results) != values:
            return None  # several ops, or operands in another order
        attributes = ops[0].attributes
        if "sdy.sharding_rule" not in attributes:
            return None
        return parse_rule(str(attributes["sdy.sharding_rule"]))


def parse_rule(text: str) -> ShardingRule:
    """Parse Shardy's text of a rule.

    >>> rule = parse_rule("([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}")
    >>> print(rule, rule.factors[2].kind)
    ([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k} reduction
    """
    arrays, _, lists = (
        text.removeprefix("#sdy.op_sharding_rule<").removesuffix(">").partition(") {")
    )
    sizes = {n: int(size) for n, size in re.findall(r"(\w+)=(\d+)", "{" + lists)}
    kinds = dict.fromkeys(sizes, "pass_through")
    for kind in ("reduction", "permutation", "need_replication"):
        for members in re.findall(kind + r"=\{([^}]*)\}", lists):
            kinds |= dict.fromkeys(re.findall(r"\w+", members), kind)
    numbers = {name: k for k, name in enumerate(sizes)}

    def dims(side: str) -> Iterator[tuple[tuple[int, ...], ...]]:
        for array in re.findall(r"\[([^\]]*)\]", side):
            names = [re.findall(r"z_\d+|[a-z]", dim) for dim in array.split(",") if dim]
            yield tuple([tuple([numbers[n] for n in factors]) for factors in names])

    operands, _, results = arrays.partition("->")
    factors = tuple([Factor(sizes[n], kinds[n]) for n in sizes])  # type: ignore[arg-type]  # a kind
    return ShardingRule(factors, tuple(dims(operands)), tuple(dims(results)))


# ---------------------------------------------------------------- comparison

Claim: TypeAlias = tuple[str, frozenset[tuple[str, int, int, int, int]]]


def claims(sample: Sample, rule: ShardingRule) -> dict[Claim, int]:
    """Return the splits without communication that a rule allows, with the number of each factor.

    A split is a kind and the digits that it joins: operand or result, number of the array,
    dimension, stride and size.  Digits of operands that are not read do not matter.
    """
    read = {("o", k) for k in range(len(rule.operands)) if is_read(sample, k)}
    digits: dict[int, set[tuple[str, int, int, int, int]]] = {}
    for side, arrays in (("o", rule.operands), ("r", rule.results)):
        for array, dims in enumerate(arrays):
            for dim, numbers in enumerate(dims if side == "r" or (side, array) in read else ()):
                stride = 1
                for number in reversed(numbers):
                    size = rule.factors[number].size
                    if size > 1 and rule.factors[number].kind in ("pass_through", "reduction"):
                        place = side, array, dim, stride, size
                        digits.setdefault(number, set()).add(place)
                    stride *= size
    return {(rule.factors[n].kind, frozenset(places)): n for n, places in digits.items()}


def is_read(sample: Sample, operand: int) -> bool:
    """Return True if a result reads an element of an operand."""
    outputs = range(len(leaves(sample.instruction.shape)))
    answers = [output_to_input(sample.instruction, r) for r in outputs]
    return any(not m.is_known_empty for answer in answers for m in answer.maps[operand])


def reads_nothing(sample: Sample) -> bool:
    """Return True if an array has no elements, or no product has all its factors."""
    rule = element_of(sample.instruction)
    factors = rule.values if isinstance(rule, ReductionRule) and rule.is_product else ()
    is_empty = any(0 in shape.dims for shape in (*sample.arrays, *sample.outputs))
    return is_empty or any(not is_read(sample, k) for k in factors)


class Comparison(NamedTuple):
    """A derived rule and Shardy's, with their differences.

    Attributes:
        broken: the splits that only Shardy allows, each with the element that breaks it.
        missed: the numbers of Shardy's factors for splits that only Shardy allows and that hold.
        more: the numbers of the factors for splits that only the derived rule allows.
    """

    ours: ShardingRule
    shardys: ShardingRule
    broken: tuple[str, ...]
    missed: tuple[int, ...]
    more: tuple[int, ...]

    @property
    def differs(self) -> bool:
        """True if the rules allow different splits."""
        return bool(self.broken or self.missed or self.more)

    @property
    def proofs(self) -> list[str]:
        """The reasons for the splits that only the derived rule allows."""
        return [
            f"derived {factor_name(number)}: {'; '.join(self.ours.proofs[number])}"
            for number in self.more
        ]


def compare(sample: Sample) -> Comparison | None:
    """Compare the derived rule of a sample to Shardy's, if there is one."""
    shardys = shardys_rule(sample)
    if shardys is None:
        return None
    ours = sharding_rule(sample.instruction)
    shardys = with_combiners(sample, shardys)
    theirs, own = claims(sample, shardys), claims(sample, ours)
    broken_by = broken_factors(sample, shardys)
    broken, missed = [], []
    for claim, number in theirs.items():
        if claim not in own and not is_covered(claim, own):
            name = factor_name(number)
            if number in broken_by:
                broken.append(f"Shardy's {name}, {broken_by[number]}")
            else:
                missed.append(number)
    more = [number for claim, number in own.items() if claim not in theirs]
    return Comparison(ours, shardys, tuple(broken), tuple(missed), tuple(more))


def kinds(sample: Sample, rule: ShardingRule) -> list[frozenset[str]]:
    """Return the kinds of the factors of each dimension of size above 1."""
    arrays = [
        *zip(sample.arrays, rule.operands, strict=True),
        *zip(sample.outputs, rule.results, strict=True),
    ]
    return [
        frozenset(rule.factors[n].kind for n in numbers if rule.factors[n].size > 1)
        or frozenset({"need_replication"})
        for shape, dims in arrays
        for size, numbers in zip(shape.dims, dims, strict=True)
        if size > 1
    ]


def is_covered(claim: Claim, own: Iterable[Claim]) -> bool:
    """Return True if a split joins digits that another rule splits independently."""
    kind, digits = claim
    parts = [places for other, places in own if other == kind and places <= digits]
    return frozenset().union(*parts) == digits


def with_combiners(sample: Sample, rule: ShardingRule) -> ShardingRule:
    """Return Shardy's rule with the functions that combine partial results, which it leaves out."""
    element = element_of(sample.instruction)
    name: str | None = "sum"
    if isinstance(element, ReductionRule):
        name = combiner_of(sample.instruction, element, 0)
    factors = [
        replace(factor, reduction=name or "") if factor.kind == "reduction" else factor
        for factor in rule.factors
    ]
    return replace(rule, factors=tuple(factors))
