"""Notes on options that decided nothing in maps to operands, which end at earlier instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from indexing.cli.reporter import Reporter

EFFECTS: Final = {
    "--set": "decides nothing",
    "--assume": "leaves out nothing",
    "--blocks": "finds no mask",
}
"""What each option did not do."""


def note_unused(reporter: Reporter, used: Mapping[str, bool], target: str) -> None:
    """Print a note on each option that decided nothing, and on the option that helps.

    Args:
        used: for each given option, whether it decided something.
        target: the value of ``--to``.
    """
    unused = [option for option, is_used in used.items() if not is_used]
    for option in unused if target == "operands" and not reporter.failed else ():
        reporter.note(
            f"note: {option} {EFFECTS[option]} in maps to operands, which end at earlier "
            "instructions: --to parameters composes maps through them"
        )
