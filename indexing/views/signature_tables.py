"""SBP signatures as ``hlo-indexing shard --sbp`` prints them: tables, or JSON records.

`schemas/shard.json` is the JSON schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlo.shapes.shape import ELEMENT_TYPES, Shape, leaves
from indexing.sharding.partial_values.laws import has_reduction
from indexing.sharding.signatures.checks import Refused, check_signature
from indexing.sharding.signatures.sbp_signatures import SbpSignature, SbpSignatures, sbp
from indexing.views.map_tables import Paint, instruction_head, plain
from indexing.views.sharding_tables import view_record
from indexing.views.tables import align_columns
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from hlo.modules.module import Instruction


@dataclass(frozen=True, slots=True)
class RefusedSignature:
    """A signature that does not hold, or of which this is unknown.

    Attributes:
        operands: the states of the operands.
        results: the states of the results.
        reason: the element that breaks it, or why nothing is known.
        is_refused: True if it does not hold.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    reason: str
    is_refused: bool

    def __str__(self) -> str:
        return f"{', '.join(self.operands)} -> {', '.join(self.results)}"


@dataclass(frozen=True, slots=True)
class SignatureTable:
    """The signatures of an instruction, and those that do not hold.

    Attributes:
        instruction: the instruction.
        shards: the number of shards; None for every number that divides the sizes.
        signatures: the signatures that hold.
        refused: splits of one operand, and partial sums of one, in no signature that holds.
    """

    instruction: Instruction
    shards: int | None
    signatures: SbpSignatures
    refused: tuple[RefusedSignature, ...]

    @classmethod
    def of(cls, instruction: Instruction, shards: int | None) -> SignatureTable:
        """Search for the signatures of an instruction."""
        signatures = sbp(instruction, shards)
        refused = tuple(_refused_signatures(instruction, signatures, shards))
        return cls(instruction, shards, signatures, refused)

    def lines(self, paint: Paint = plain) -> Iterator[str]:
        """Yield a heading, a table of the signatures, and what is refused or unknown."""
        yield instruction_head(self.instruction, self.instruction.shape, paint)
        rows = [("signature", "shards", "halo", "")]
        rows += [
            (str(s), self._shards(s), _halo(s), "needs its place" if s.needs_place else "")
            for s in self.signatures
        ]
        yield from (f"  {line}" for line in align_columns(rows))
        for each in self.refused:
            yield f"  {'refused' if each.is_refused else 'unknown'}: {each}: {each.reason}"
        for unknown in dict.fromkeys(str(each) for each in self.signatures.undecided):
            yield f"  others may exist: {unknown}"

    def _shards(self, signature: SbpSignature) -> str:
        if self.shards is not None or signature.shards is None:
            return "any number" if signature.shards is None else str(self.shards)
        return f"divisors of {signature.shards}"

    def record(self) -> dict[str, Any]:
        """Return the record of the signatures."""
        return view_record(self.instruction, "sbp") | {
            "shards": self.shards,
            "signatures": [
                {
                    "operands": list(each.operands),
                    "results": list(each.results),
                    "shards": each.shards,
                    "halo": [list(pair) for pair in each.halo],
                    "needs_place": each.needs_place,
                    "proof": [step.text for step in each.proof],
                }
                for each in self.signatures
            ],
            "refused": [
                {
                    "operands": list(each.operands),
                    "results": list(each.results),
                    "reason": each.reason,
                    "refused": each.is_refused,
                }
                for each in self.refused
            ],
            "undecided": list(dict.fromkeys(str(each) for each in self.signatures.undecided)),
        }


def _halo(signature: SbpSignature) -> str:
    """Return the elements below and above the shards of operands that neighbours send."""
    pairs = [(k, pair) for k, pair in enumerate(signature.halo) if any(pair)]
    return ", ".join(f"operand {k}: {below} below, {above} above" for k, (below, above) in pairs)


def _refused_signatures(
    instruction: Instruction, signatures: SbpSignatures, shards: int | None
) -> Iterator[RefusedSignature]:
    """Yield the splits and partial sums of one operand that are in no signature."""
    arrays = [leaf for operand in instruction.operands for _, leaf in leaves(operand.shape)]
    results = [leaf for _, leaf in leaves(instruction.shape)]
    for number, array in enumerate(arrays):
        if not isinstance(array, Shape):
            continue
        listed = {each.operands[number] for each in signatures}
        candidates = [(f"S({k})", "B") for k, size in enumerate(array.dims) if size > 1]
        if all(map(_has_sums, [array, *results])):
            candidates.append(("P(sum)", "P(sum)"))
        for state, result in candidates:
            if state in listed:
                continue
            operands = ["B"] * len(arrays)
            operands[number] = state
            outputs = [result] * len(results)
            verdict = check_signature(instruction, operands, outputs, shards)
            if isinstance(verdict, Refused | Unknown):
                reason = verdict.reason
                is_refused = isinstance(verdict, Refused)
                yield RefusedSignature(tuple(operands), tuple(outputs), reason, is_refused)


def _has_sums(array: object) -> bool:
    return isinstance(array, Shape) and has_reduction(ELEMENT_TYPES[array.element_type], "sum")
