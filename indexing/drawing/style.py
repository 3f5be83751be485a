"""The style of pictures: colours of the light and the dark theme, sizes of text, hatching.

A picture without an explicit theme is light, and dark where the reader prefers that (CSS
``prefers-color-scheme``).  Shades of heat grow darker in steps of lightness, so they stay in order
without colour; classes also differ by their hatching.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Theme: TypeAlias = Literal["auto", "light", "dark"]


class Colours(NamedTuple):
    """The colours of a theme.

    Attributes:
        paper, ink, faint, line: background, text, text of less weight, and lines.
        accent: frames, arrows and points.
        heat: the shades of heat, from 0.
        classes: the shades of classes, from 0.
        on_dark, on_light: text on the darker and on the lighter shades.
        inverted: the number of the first shade of heat whose text is the other one.
    """

    paper: str
    ink: str
    faint: str
    line: str
    accent: str
    heat: tuple[str, ...]
    classes: tuple[str, ...]
    label: str
    other_label: str
    inverted: int = 4


# fmt: off
LIGHT: Final = Colours(
    paper="#ffffff", ink="#1b1f24", faint="#59636e", line="#c9d1d9", accent="#c2410c",
    heat=("#eef1f4", "#d6e6f5", "#a9cdea", "#6dabd7", "#3a84bf", "#1c5c9c", "#0b3568"),
    classes=("#eef1f4", "#b9d8f2", "#fbd09b", "#bce2bd", "#f2b5b5", "#d8c7ec", "#e2cfbd",
             "#f6c6e1", "#d6daa3"),
    label="#1b1f24", other_label="#ffffff",
)
DARK: Final = Colours(
    paper="#14181d", ink="#e6edf3", faint="#9aa5b1", line="#3d4651", accent="#fb923c",
    heat=("#262c35", "#1c3d5c", "#245d8b", "#3b87c0", "#6babdc", "#a5cff0", "#e3f1ff"),
    classes=("#262c35", "#2c5f8e", "#95591a", "#33743a", "#943a3a", "#684d8e", "#72553b",
             "#914576", "#686d22"),
    label="#f0f4f8", other_label="#10151b",
)
# fmt: on

SANS: Final = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

SIZES: Final = {"title": 15, "panel": 12, "note": 10.5, "axis": 9.5, "cell": 9}
"""The size of the text of each class, in pixels."""
_FACTORS: Final = {"title": 0.64, "panel": 0.64, "note": 0.57, "axis": 0.6, "cell": 0.6}
"""The width of a character, in sizes of the text: of wide letters in bold text, of others on
average."""

# Lines of each hatching in a square of 6 x 6; shade k of classes has number k.
_HATCHINGS: Final = (
    "",
    "",
    "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2",
    "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2",
    "M0,3 h6",
    "M3,0 v6",
    "M2.5,3 h1 M3,2.5 v1",
    "M0,3 h6 M3,0 v6",
    "M0,6 l6,-6 M0,0 l6,6",
)
BOUND_HATCHING: Final = "bound"
"""The hatching of `DrawnCell.is_hatched`, which is visible on all shades."""


def text_width(text: str, kind: str) -> float:
    """Return an estimate of the width of a text, in pixels, rather too large than too small.

    >>> text_width("abc", "cell")
    16.2
    """
    return round(len(text) * SIZES[kind] * _FACTORS[kind], 2)


def clip_text(text: str, kind: str, width: float) -> str:
    """Return a text that fits into a width; ``…`` replaces its end.

    >>> clip_text("a long name", "cell", 40)
    'a long…'
    """
    if text_width(text, kind) <= width:
        return text
    return text[: max(int(width / text_width("x", kind)) - 1, 0)] + "…"


def hatching(theme: Theme) -> str:
    """Return the definitions of the hatchings, whose names include the theme."""
    patterns = [
        f'<pattern id="hlo-{theme}-hatch{k}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path class="hatch" d="{lines}"/></pattern>'
        for k, lines in enumerate(_HATCHINGS)
        if lines
    ]
    lines = "M-1,5 l2,2 M0,0 l6,6 M5,-1 l2,2"
    patterns.append(
        f'<pattern id="hlo-{theme}-{BOUND_HATCHING}" width="6" height="6" '
        f'patternUnits="userSpaceOnUse"><path class="ground" d="{lines}"/>'
        f'<path class="hatch" d="{lines}"/></pattern>'
    )
    return f"<defs>{''.join(patterns)}</defs>"


def has_hatching(shade: int) -> bool:
    """Return True if a shade of classes has a hatching."""
    return bool(_HATCHINGS[shade])


def style_sheet(theme: Theme) -> str:
    """Return the style sheet of a picture, whose rules apply to its theme alone."""
    root = f".hlo-{theme}"
    rules = [f"{root} text{{font-family:{SANS};fill-opacity:1}}"]
    rules += [f"{root} .{kind}{{font-size:{size}px}}" for kind, size in SIZES.items()]
    rules.append(f"{root} .title,{root} .panel{{font-weight:600}}")
    rules.append(f"{root} .cell,{root} .axis{{font-family:{MONO}}}")
    rules.append(f"{root} .middle{{text-anchor:middle}}{root} .end{{text-anchor:end}}")
    rules.append(f"{root} .mark{{font-weight:600;text-anchor:middle;font-size:9px}}")
    rules += colour_rules(root, DARK if theme == "dark" else LIGHT)
    if theme == "auto":
        dark = "".join(colour_rules(root, DARK))
        rules.append(f"@media (prefers-color-scheme:dark){{{dark}}}")
    return f"<style>{''.join(rules)}</style>"


def colour_rules(root: str, colours: Colours) -> list[str]:
    """Return the rules with the colours of a picture whose selector is `root`."""
    rules = {
        ".paper": f"fill:{colours.paper}",
        ".title": f"fill:{colours.ink}",
        ".panel": f"fill:{colours.ink}",
        ".note": f"fill:{colours.faint}",
        ".axis": f"fill:{colours.faint}",
        ".cell": f"fill:{colours.label}",
        ".other": f"fill:{colours.other_label}",
        ".mark": f"fill:{colours.paper}",
        ".frame": f"fill:none;stroke:{colours.accent};stroke-width:1.6",
        ".path": f"fill:none;stroke:{colours.accent};stroke-width:1.1;stroke-opacity:.75",
        ".tip": f"fill:{colours.accent}",
        ".link": f"fill:none;stroke:{colours.accent};stroke-width:1;stroke-opacity:.6",
        ".line": f"stroke:{colours.line};stroke-width:1",
        ".roof": f"fill:none;stroke:{colours.ink};stroke-width:1.8",
        ".hatch": f"fill:none;stroke:{colours.ink};stroke-opacity:.38;stroke-width:.8",
        ".ground": f"fill:none;stroke:{colours.paper};stroke-width:1.3;stroke-opacity:.8",
        "rect.c": f"stroke:{colours.paper};stroke-width:1",
    }
    rules |= {f".h{k}": f"fill:{colour}" for k, colour in enumerate(colours.heat)}
    rules |= {f".k{k}": f"fill:{colour}" for k, colour in enumerate(colours.classes)}
    return [f"{root} {selector}{{{rule}}}" for selector, rule in rules.items()]
