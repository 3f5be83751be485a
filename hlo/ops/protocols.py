"""The part of an instruction that an op may read, without a dependency on `hlo.modules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hlo.shapes.shape import AnyShape
from hlo.text.syntax import AttributeText


class InstructionLike(Protocol):
    """The part of an `hlo.modules.module.Instruction` that class methods of ops read."""

    @property
    def shape(self) -> AnyShape: ...
    @property
    def declared_shape(self) -> AnyShape | None: ...
    @property
    def operands(self) -> Sequence[InstructionLike]: ...
    @property
    def attributes(self) -> Mapping[str, AttributeText]: ...
    def text_of(self, name: str) -> str | None: ...
    @property
    def called_computations(self) -> Sequence[ComputationLike]: ...


class ComputationLike(Protocol):
    """The part of a called computation that class methods of ops read."""

    @property
    def opcodes(self) -> Sequence[str]: ...
    @property
    def root(self) -> InstructionLike: ...
