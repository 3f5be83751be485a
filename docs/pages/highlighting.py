"""Colours of HLO, and of commands with their output."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Text


class HloLexer(RegexLexer):  # type: ignore[misc]  # it has no types
    """Text of HLO: shapes, opcodes, names of attributes."""

    name = "HLO"
    aliases: ClassVar = ["hlo"]
    tokens: ClassVar = {
        "root": [
            (r"//.*?$|/\*.*?\*/", Comment),
            (r'"(?:\\.|[^"\\])*"', String),
            (r"\b(?:HloModule|ENTRY|ROOT)\b", Keyword),
            (r"\b(?:pred|token|[sufc]\d\w*|bf16)\[[^\]]*\](?:\{[^}]*\})?", Keyword.Type),
            (r"([A-Za-z][\w-]*)(\()", bygroups(Name.Function, Text)),
            (r"([\w-]+)(=)", bygroups(Name.Attribute, Operator)),
            (r"%?[A-Za-z_][\w.-]*", Name),
            (r"-?\d[\d.]*(?:e[+-]?\d+)?", Number),
            (r"\s+|.", Text),
        ]
    }


class ConsoleLexer(RegexLexer):  # type: ignore[misc]  # it has no types
    """Commands after ``$ ``, which may have several lines in quotes, and their output."""

    name = "console"
    aliases: ClassVar = ["console"]
    flags = re.MULTILINE
    tokens: ClassVar = {
        "root": [
            (
                r"^(\$ )((?:[^'\n]|'[^']*')*\n)",
                bygroups(Generic.Prompt, Text),
            ),
            (r".*\n", Generic.Output),
        ]
    }
