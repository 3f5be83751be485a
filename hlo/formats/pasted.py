"""Text around a module that is pasted: prefixes of log lines, and comments before the module."""

from __future__ import annotations

import re
from typing import Final

from hlo.text.lexer import NAME

LOG_PREFIX: Final = (
    r"\s*(?:[IWEF]\d{4,8} [\d:.]+ +\d+|\d{4}-\d\d-\d\d [\d:.]+: [IWEF]) [^\s:\]]+:\d+\](?: |$)"
)
"""The pattern of the prefix of a line in XLA's log."""

_LOG: Final = re.compile(LOG_PREFIX)
_LINE_OF_LOG: Final = re.compile(rf"^{LOG_PREFIX}", re.MULTILINE)
_MODULE_IN_LOG: Final = re.compile(
    rf"^{LOG_PREFIX}(?=HloModule {NAME}(?:,|\s*$)|ENTRY\b)", re.MULTILINE
)
_COMMENTS: Final = re.compile(r"(?:[ \t]*(?:(?:#|//)[^\n]*)?\n)*")


def blank_surroundings(text: str) -> str:
    r"""Return a text with spaces in place of what surrounds a pasted module.

    Of a log, these are the lines before the module and the prefixes of its lines; of another text,
    the lines before it that begin with ``#`` or ``//``.  Positions in the text stay.

    >>> prefix = "I0000 00:00:1700000000.1 1234 hlo_pass.cc:99] "
    >>> blank_surroundings(f"{prefix}before:\n{prefix}HloModule m\n{prefix}\n").split()
    ['HloModule', 'm']
    >>> blank_surroundings("# of step 3\nHloModule m").split()
    ['HloModule', 'm']
    """
    if _LOG.match(text):
        module = _MODULE_IN_LOG.search(text)
        if module is None:
            return text
        text = _blank(text[: module.start()]) + text[module.start() :]
        return _LINE_OF_LOG.sub(lambda prefix: _blank(prefix[0]), text)
    comments = _COMMENTS.match(text)
    if comments is None or "#" not in comments[0]:
        return text
    return _blank(comments[0]) + text[comments.end() :]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
