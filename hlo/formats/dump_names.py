"""Names of the files that XLA dumps into a folder, ``--xla_dump_to``.

``module_NNNN.NAME.before_optimizations.txt`` is a module as XLA received it,
``module_NNNN.NAME.TARGET_after_optimizations.txt`` as it was compiled, for example for ``cpu`` or
``sm_9.0_gpu``, and ``module_NNNN.NAME.PPPP.PIPELINE.after_PASS.before_NEXT.txt`` as a pass left it;
the number PPPP counts over all pipelines.  A time stamp may precede each name.  The suffix is
``.hlo.pb`` with ``--xla_dump_hlo_as_proto``.  All other files describe a module.

Source: XLA ``xla/service/dump.cc`` and ``xla/hlo/pass/hlo_pass_pipeline.cc``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Stage: TypeAlias = Literal["before_optimizations", "passes", "after_optimizations"]
STAGES: Final[tuple[Stage, ...]] = ("before_optimizations", "passes", "after_optimizations")
"""Times of a dump: as received, between passes, as compiled."""

_END: Final = r"(?:\.txt|\.hlo\.pb)"
_MODULE: Final = r"(?:\d+\.)?(?P<module>module_\d+\..+?)"
_OF_PASS: Final = re.compile(
    rf"{_MODULE}\.(?P<number>\d{{4,}})\.(?P<pipeline>.+?)"
    rf"\.after_(?P<name>.+?)(?:\.before_(?P<following>.+))?{_END}"
)
_FIRST: Final = re.compile(rf"{_MODULE}\.before_optimizations{_END}")
_LAST: Final = re.compile(rf"{_MODULE}\.(?:[\w.-]+_)?after_optimizations{_END}")
_FILE: Final = re.compile(rf"{_MODULE}\..+")


@dataclass(frozen=True, slots=True)
class DumpName:
    """The name of a dumped module.

    Attributes:
        module: the module's number and name, ``module_0007.jit_f``.
        stage: the time of the dump.
        number: the position among the dumps of passes; -1 otherwise.
        pipeline: the pipeline of the pass; "" without one.
        pass_name: the pass; "" without one.
        following: the next pass of the pipeline; "" if the name has none.

    >>> dump = DumpName.of("module_0007.jit_f.0012.simplification.after_algsimp.before_dce.txt")
    >>> dump.module, dump.stage, dump.number, dump.pipeline, dump.pass_name
    ('module_0007.jit_f', 'passes', 12, 'simplification', 'algsimp')
    >>> DumpName.of("module_0007.jit_f.sm_9.0_gpu_after_optimizations.txt").stage
    'after_optimizations'
    >>> DumpName.of("module_0007.jit_f.cpu_after_optimizations-buffer-assignment.txt") is None
    True
    """

    module: str
    stage: Stage
    number: int = -1
    pipeline: str = ""
    pass_name: str = ""
    following: str = ""

    @classmethod
    def of(cls, name: str) -> DumpName | None:
        """Return the parts of a file name, or None for the name of another file."""
        if match := _OF_PASS.fullmatch(name):
            following = match["following"] or ""
            number, pipeline = int(match["number"]), match["pipeline"]
            return cls(match["module"], "passes", number, pipeline, match["name"], following)
        if match := _FIRST.fullmatch(name):
            return cls(match["module"], "before_optimizations")
        if match := _LAST.fullmatch(name):
            return cls(match["module"], "after_optimizations")
        return None


def is_of_dump(name: str) -> bool:
    """Return True for the name of any file that XLA dumps about a module.

    >>> is_of_dump("module_0007.jit_f.debug_options"), is_of_dump("jit_f.hlo")
    (True, False)
    """
    return _FILE.fullmatch(name) is not None
