"""Modules and computations as HTML for notebooks, which opens and closes."""

from __future__ import annotations

from typing import Final

from hlo.html import panel_html, preformatted_html, styled_html
from hlo.modules.module import Computation, Module
from hlo.text.names import counted_noun

MAX_COMPUTATIONS: Final = 30
"""Limit on the computations of a module that are shown."""


def computation_html(computation: Computation, *, is_open: bool = True) -> str:
    """Return a computation as HTML without a style: its name, and its text below."""
    head = f"{'ENTRY ' if computation.is_entry else ''}{computation.name}"
    count = counted_noun(len(computation), "instruction")
    return panel_html(head, preformatted_html(str(computation)), meta=count, is_open=is_open)


def module_html(module: Module) -> str:
    """Return a module as HTML: its computations, of which ENTRY comes first and is open.

    Its header, with the tables of files and stack frames, is left out.
    """
    computations = list(module.computations.values())
    computations.sort(key=lambda each: not each.is_entry)
    size = counted_noun(sum(map(len, computations)), "instruction")
    count = counted_noun(len(computations), "computation")
    shown = [
        computation_html(each, is_open=each.is_entry) for each in computations[:MAX_COMPUTATIONS]
    ]
    more = len(computations) - MAX_COMPUTATIONS
    if more > 0:
        shown.append(panel_html(f"… {more} more computations"))
    head = f"HloModule {module.name}"
    return styled_html(panel_html(head, "".join(shown), meta=f"{count}, {size}"))


def styled_computation(computation: Computation) -> str:
    """Return a computation as HTML with its style."""
    return styled_html(computation_html(computation))
