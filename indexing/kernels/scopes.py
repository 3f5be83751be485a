"""Names of values in scope, while a function is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo.text.source import HloError, Span
from indexing.kernels.ir import MlirType, MlirValue
from indexing.kernels.types import UNKNOWN_TYPE


@dataclass
class MlirScopes:
    """The values by name; those of an inner region shadow those around it.

    A branch may name a value that a later block defines: such a value is kept as used before its
    definition, and `close` fails if none follows.
    """

    levels: list[dict[str, MlirValue]] = field(default_factory=lambda: [{}])
    early: dict[str, tuple[MlirValue, Span]] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Return True if a value of this name is defined."""
        return self.find(name) is not None

    def find(self, name: str) -> MlirValue | None:
        """Return the value of a name; None if it is not defined yet."""
        for level in reversed(self.levels):
            if name in level:
                return level[name]
        return self.find(f"{name}#0") if "#" not in name else None

    def use(self, name: str, span: Span) -> MlirValue:
        """Return the value of a name, which may be defined later."""
        value = self.find(name)
        if value is None:
            value = self.early.setdefault(name, (MlirValue(name, UNKNOWN_TYPE), span))[0]
        return value

    def define(self, name: str, held: MlirType) -> MlirValue:
        """Return a new value, or the one that was used before."""
        value = self.early.pop(name)[0] if name in self.early else MlirValue(name, held)
        value.type = held
        self.levels[-1][name] = value
        return value

    def close(self) -> None:
        """Fail if a value was used that has no definition."""
        for name, (_, span) in self.early.items():
            raise HloError(
                f"`%{name}` is not defined", span, "mlir-undefined",
                help="define it before its use, in this region or in one around it",
            )  # fmt: skip
