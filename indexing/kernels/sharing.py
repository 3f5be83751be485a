"""`sharing_fusions`: the fusions that run a kernel of another fusion.

XLA compiles identical fusions once, and names the kernel after the first one.  On GPUs, the
sequence of thunks has the kernel of each thunk, and its metadata the instruction.  Without them,
identical fusions are those whose computations, operands and results are equal.

Source: XLA ``xla/service/gpu/kernel_reuse_cache.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from hlo.modules.module import Instruction, Module
from indexing.equivalence.values.formulas.numbering import NoFormula, Numbering

Evidence: TypeAlias = Literal["thunks", "computation"]

_METADATA: Final = re.compile(
    r'thunk_info \{\s*profile_annotation: "(?P<instruction>[^"]+)"\s*thunk_id: (?P<id>\d+)'
)


@dataclass(frozen=True, slots=True)
class SharingFusion:
    """A fusion that runs the kernel of another one.

    Attributes:
        evidence: ``thunks`` if the sequence of thunks has it, ``computation`` if the fusions are
            identical and have one kernel among them.
    """

    instruction: Instruction
    evidence: Evidence

    def __str__(self) -> str:
        how = "by its thunk" if self.evidence == "thunks" else "which is identical"
        return f"also computes {self.instruction.name}, {how}"


def sharing_fusions(
    module: Module, owners: Mapping[str, Instruction], thunks: Mapping[int, str], metadata: str
) -> dict[str, tuple[SharingFusion, ...]]:
    """Return the other fusions that run each kernel, by the kernel's name.

    Args:
        owners: the fusion after which each kernel is named.
        thunks: the kernel of each thunk, by its number.
        metadata: the text of the thunks' metadata; empty without one.
    """
    instructions = [each for called in module.computations.values() for each in called]
    others = [i for i in instructions if i.opcode == "fusion" and i not in owners.values()]
    launched = {
        matched["instruction"]: thunks.get(int(matched["id"]), "")
        for matched in _METADATA.finditer(metadata)
    }
    identity = _Identities()
    own = {identity.of(fusion): name for name, fusion in reversed(list(owners.items()))}
    sharing: dict[str, list[SharingFusion]] = {}
    for other in others:
        kernel = launched.get(other.name, "")
        if kernel in owners:
            sharing.setdefault(kernel, []).append(SharingFusion(other, "thunks"))
        elif not kernel and identity.of(other) in own:
            same = own[identity.of(other)]
            sharing.setdefault(same, []).append(SharingFusion(other, "computation"))
    return {name: tuple(each) for name, each in sharing.items()}


class _Identities:
    """Numbers of the arrays of fusions, which identical fusions share."""

    def __init__(self) -> None:
        self._numbering = Numbering()

    def of(self, fusion: Instruction) -> Hashable:
        """Return a key that identical fusions share, and no others."""
        if not fusion.called_computations:
            return fusion.name
        shapes = tuple([str(operand.shape) for operand in fusion.operands])
        try:
            outputs = self._numbering.outputs(fusion.called_computations[0])
        except NoFormula:
            return fusion.name
        return str(fusion.shape), shapes, tuple([array.number for array in outputs])
