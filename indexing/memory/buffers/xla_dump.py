"""Files that XLA dumps with a compiled module, named as its text but for the ending."""

from __future__ import annotations

import os
from typing import ClassVar, Self

from hlo.arguments import checked
from hlo.formats.files import read_text
from hlo.modules.module import Module
from hlo.text.source import HloError, Span


class XlaDump:
    """The contents of such a file.

    Class attributes:
        noun: what it is.
        ending: the end of the file's name, without ``.txt``.
    """

    __slots__ = ()
    noun: ClassVar[str]
    ending: ClassVar[str]

    @classmethod
    def parse(cls, text: str, filename: str = "<string>") -> Self:
        """Read the text of a file.

        Raises:
            HloError: the text is not such a dump.
        """
        raise NotImplementedError

    @classmethod
    @checked
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file.

        Raises:
            HloError: as `parse`.
            OSError: the file cannot be read.

        >>> import tempfile
        >>> from indexing import BufferAssignment
        >>> text = '''BufferAssignment:
        ... allocation 0: size 512, parameter 0, shape |f32[]| at ShapeIndex {}:
        ...  value: <3 p.1 @0> (size=512,offset=0): f32[]{:T(128)}
        ... '''
        >>> with tempfile.NamedTemporaryFile("w") as file:
        ...     print(text, file=file, flush=True)
        ...     print(BufferAssignment.load(file.name).bytes(0))
        512
        """
        return cls.parse(read_text(path), os.fspath(path))

    def of_another_module(self, module: Module) -> HloError | None:
        """Return an error if the dump is not that of a module; None if it may be."""
        raise NotImplementedError

    def _mismatch(self, module: Module, span: Span, label: str) -> HloError:
        return HloError(
            f"this {self.noun} is that of another module than `{module.name}`",
            span,
            "dump",
            label=label,
            notes=[f"the module is {module.filename}"],
            help="take both from the dumps of one compilation: NAME.after_optimizations.txt and "
            f"NAME.after_optimizations-{self.ending}.txt",
        )
