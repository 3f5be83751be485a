"""The speed of each release, as multiples of the times of named peers, and regressions.

    python -m benchmarks.history                    write docs/speed_history.md and its picture
    python -m benchmarks.history --check            compare the last measurement to a release
    python -m benchmarks.history --release VERSION  add the last measurement to the releases

`benchmarks.speed` measures, and stores the ratios in `LAST`. Each time is divided by that of its
peer in the same run, so load and speed of the machine matter little. `make figures` fails if a
ratio is more than 15 % above that of the last release.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import log10
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parent.parent
RELEASES: Final = Path(__file__).with_name("history.json")
PAGE: Final = ROOT / "docs" / "speed_history.md"
PICTURE: Final = ROOT / "docs" / "pictures" / "speed_history.svg"
LAST: Final = ROOT / "build" / "ratios.json"
"""The last measurement of `benchmarks.speed`."""

TOLERANCE: Final = 1.15
"""A ratio that exceeds that of the last release by this factor is a regression."""

Ratios: TypeAlias = "Mapping[str, Mapping[str, tuple[str, float]]]"
"""For ``interpreted`` and ``compiled`` modules: what is measured, its peer, and the ratio to it."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The ratios of a release.

    Attributes:
        release: the version.
        conditions: the date, the machine and the versions, in one line.
        ratios: lower is faster.
    """

    release: str
    conditions: str
    ratios: Ratios


def releases() -> list[Measurement]:
    """Return the measurements of all releases, the oldest one first."""
    return [Measurement(**each) for each in json.loads(RELEASES.read_text(encoding="utf-8"))]


def last_measurement() -> Measurement:
    """Return the last measurement of `benchmarks.speed`.

    Raises:
        OSError: there is none.
    """
    return Measurement(**json.loads(LAST.read_text(encoding="utf-8")))


def store(conditions: str, ratios: Ratios) -> None:
    """Store a measurement in `LAST`."""
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text(json.dumps(asdict(Measurement("", conditions, ratios))), encoding="utf-8")


def regressions(before: Measurement, now: Measurement) -> Iterator[str]:
    """Yield a line for each ratio to the same peer that is more than 15 % above an older one.

    >>> old = Measurement("0.1", "", {"compiled": {"parse": ("jaxlib", 2.0)}})
    >>> new = Measurement("", "", {"compiled": {"parse": ("jaxlib", 2.4)}})
    >>> list(regressions(old, new))
    ['parse, compiled: 2.4 x jaxlib, in 0.1 2 x: 20 % slower']
    """
    for build, ratios in now.ratios.items():
        for what, (peer, ratio) in ratios.items():
            known = before.ratios.get(build, {}).get(what)
            if known is None or known[0] != peer or ratio <= TOLERANCE * known[1]:
                continue
            slower = f"{100 * (ratio / known[1] - 1):.0f} % slower"
            old = f"in {before.release} {known[1]:.3g} x"
            yield f"{what}, {build}: {ratio:.3g} x {peer}, {old}: {slower}"


# ---------------------------------------------------------------- page


def page(measured: Sequence[Measurement]) -> str:
    """Return the page about all releases: a picture, and a table for each build."""
    lines = [
        "# Speed by release",
        "",
        "Times as multiples of those of a peer in the same run, as in the "
        "[README](../README.md#speed): 1 is as fast as the peer, and lower is faster. "
        "`python -m benchmarks.history` writes this page, and `make figures` fails if a multiple "
        "is more than 15 % above that of the last release. Measurements with a date are of days "
        "between releases. The picture has the interpreted modules.",
        "",
        "![Multiples of the times of the peers by release](pictures/speed_history.svg)",
    ]
    for build in ("interpreted", "compiled"):
        rows = _rows(measured, build)
        heads = [each.release for each in measured]
        lines += ["", f"## With {build} modules", "", f"| | peer | {' | '.join(heads)} |"]
        lines.append(f"|---|---|{'---:|' * len(heads)}")
        for (what, peer), ratios in rows.items():
            cells = ["" if ratio is None else f"{ratio:.2g}" for ratio in ratios]
            lines.append(f"| {what} | {peer} | {' | '.join(cells)} |")
    lines += ["", "## Conditions", ""]
    lines += [f"* {each.release}: {each.conditions}" for each in measured]
    return "\n".join([*lines, ""])


def _rows(
    measured: Sequence[Measurement], build: str
) -> Mapping[tuple[str, str], list[float | None]]:
    """Return the ratio in each release by what is measured and its peer."""
    keys = [(what, row[0]) for m in measured for what, row in m.ratios.get(build, {}).items()]
    return {
        key: [
            ratio[1] if ratio is not None and ratio[0] == key[1] else None
            for ratio in (m.ratios.get(build, {}).get(key[0]) for m in measured)
        ]
        for key in dict.fromkeys(keys)
    }


# ---------------------------------------------------------------- picture

STEP: Final = 150  # pixels between two releases
HEIGHT: Final = 260
LABELS: Final = 330  # pixels for the names of the lines
COLOURS: Final = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#57606a")
STYLE: Final = (
    "text{font:12px sans-serif;fill:#24292f}path{fill:none;stroke-width:2}"
    ".axis{stroke:#d0d7de;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.axis{stroke:#484f58}}"
)


def picture(measured: Sequence[Measurement]) -> str:
    """Return an SVG with a line for each ratio of interpreted modules, which all releases have."""
    rows = {what: ratios for (what, _), ratios in _rows(measured, "interpreted").items()}
    known = [ratio for ratios in rows.values() for ratio in ratios if ratio is not None]
    top, bottom = log10(max(known)), log10(min(known))
    width = 60 + STEP * (len(measured) - 1) + LABELS

    def height(ratio: float) -> float:
        return 20 + (top - log10(ratio)) / max(top - bottom, 1e-9) * (HEIGHT - 50)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}">',
        f"<title>Multiples of the times of the peers, logarithmic</title><style>{STYLE}</style>",
    ]
    for mark in (0.5, 1, 2, 5, 10, 20, 50):
        if 10**bottom <= mark <= 10**top:
            y = height(mark)
            parts.append(f'<path class="axis" d="M40 {y:.1f}H{width - LABELS + 10}"/>')
            parts.append(f'<text x="34" y="{y + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for number, each in enumerate(measured):
        text = f'<text x="{50 + STEP * number}" y="{HEIGHT - 8}" text-anchor="middle">'
        parts.append(f"{text}{escape(each.release)}</text>")
    ends = _spread([(height(ratios[-1]), name) for name, ratios in rows.items() if ratios[-1]])
    for number, (name, ratios) in enumerate(rows.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [f"{50 + STEP * k} {height(ratio):.1f}" for k, ratio in enumerate(ratios) if ratio]
        parts.append(f'<path stroke="{colour}" d="M{"L".join(points)}"/>')
        if name in ends:
            x = 58 + STEP * (len(measured) - 1)
            label = f'<text x="{x}" y="{ends[name] + 4:.1f}" style="fill:{colour}">'
            parts.append(f"{label}{escape(name.replace('`', ''))}</text>")
    return "\n".join([*parts, "</svg>", ""])


def _spread(labels: Sequence[tuple[float, str]]) -> Mapping[str, float]:
    """Return the heights of labels, moved down where they would overlap."""
    places: dict[str, float] = {}
    free = 0.0
    for height, name in sorted(labels):
        places[name] = max(height, free)
        free = places[name] + 14
    return places


def main(arguments: Sequence[str]) -> int:
    """Check or add the last measurement, or write the page; return the exit status."""
    known = releases()
    if arguments[:1] == ["--check"]:
        faults = list(regressions(known[-1], last_measurement()))
        for fault in faults:
            print(f"error: {fault}", file=sys.stderr)
        return int(bool(faults))
    if arguments[:1] == ["--release"]:
        last = last_measurement()
        known = [each for each in known if each.release != arguments[1]]
        known.append(Measurement(arguments[1], last.conditions, last.ratios))
        text = json.dumps(list(map(asdict, known)), indent=1, ensure_ascii=False)
        RELEASES.write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")
    PICTURE.write_text(picture(known), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
