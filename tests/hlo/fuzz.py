"""Fuzz test of the parser: every mutation of a module gives a module or an `HloError`.

    python -m tests.hlo.fuzz [--count 100000] [--seed 0] [FILE...]

parses mutations of the modules in FILE, by default ``examples/``, with limits on time and memory,
and prints the number of each outcome. A failure is printed with the arguments that reproduce it:
``--seed 4711 --count 1``.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import hlo
import indexing.ops  # noqa: F401 - registers the ops that `hlo.verify` checks

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MAX_SECONDS = 5.0
MAX_MEMORY = 4 << 30
LARGEST = 6000  # maximum characters of a mutated text; larger modules are split

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|%?[A-Za-z_][\w.\-]*|\d+|->|[^\w\s]')
_ATTRIBUTE = re.compile(r", ([\w\-]+)=(\{[^{}]*\}|[^\s,{}]+)")
_SHAPE = re.compile(r"\b[a-z]\w*\[[\d,<=?]*\](?:\{[^{}]*\})?")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?[\w.\-]+ [^\n]*\{\n(?:  [^\n]*\n)+\}", re.MULTILINE)

CHARACTERS = '{}[]()"\\/*,=:%.-0189<>?#~+\n\t \x00é'
_WORDS = """
f32 s4 u64 token tuple parameter constant ROOT ENTRY HloModule { } [ ] ( ) {} () [] , = -> : %x inf
nan -1 0 1e999 18446744073709551616 9999999999999999999999999 /* */ // {...} true async-start
negate-start negate-done to_apply calls dimensions metadata sharding ? <=3 {1,0:T(8,128)} {0,0} {9}
f32[] f32[0] (f32[2]) s32[4294967296,4294967296] nan(0x1) reduce while call get-tuple-element iota
"""
TOKENS = _WORDS.split()
SIZES = ("0", "1", "2", "7", "<=3", "?", "-1", "4294967296", "99999999999999999999", "")
TYPES = ("f32", "s32", "pred", "u4", "c64", "bf16", "token", "f99", "tuple")
LAYOUTS = ("{0}", "{1,0}", "{0,0}", "{}", "{0:T(2)}", "{1,0:T(0,*)}", "{0:S(1)", "{2,1,0:L(9)}", "")


def texts(paths: Sequence[Path]) -> list[str]:
    """Return the modules of files; large modules are split into computations with their callees."""
    pieces = []
    for path in paths:
        text = path.read_text()
        if len(text) <= LARGEST:
            pieces.append(text)
            continue
        header = text.partition("\n")[0][:LARGEST] if text.startswith("HloModule") else ""
        known: dict[str, str] = {}
        for match in _COMPUTATION.finditer(text):
            name = re.sub("^ENTRY ", "", match[0]).split()[0].lstrip("%")
            known[name] = match[0]
            called = [known[n] for n in re.findall(r"=%?([\w.\-]+)", match[0]) if n in known]
            piece = "\n\n".join([header, *dict.fromkeys(called), match[0]])
            if len(piece) <= LARGEST:
                pieces.append(piece)
    return pieces


# ---------------------------------------------------------------- mutations


def mutate(text: str, seed: int) -> str:
    """Apply one to four random changes to `text`, determined by the seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 4])):
        text = chance.choice(MUTATIONS)(text, chance)
    return text


def _characters(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice([0, 0, 1, 1, 2, 12, 200]))
    inside = "".join(chance.choice(CHARACTERS) for _ in range(chance.choice([0, 1, 1, 2])))
    return text[:start] + inside + text[end:]


def _truncate(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _tokens(text: str, chance: random.Random) -> str:
    matches = list(_TOKEN.finditer(text))
    if not matches:
        return text
    one, other = chance.choice(matches), chance.choice(matches)
    new = chance.choice([other[0], chance.choice(TOKENS), "", f"{one[0]} {one[0]}", "7" * 5000])
    return text[: one.start()] + new + text[one.end() :]


def _attributes(text: str, chance: random.Random) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if not matches:
        return _tokens(text, chance)
    one, other = chance.choice(matches), chance.choice(matches)
    new = chance.choice(
        [
            "",
            other[0],
            one[0] + other[0],
            f", {one[1]}={other[2]}",
            f", {other[1]}={one[2]}",
            f", {one[1]}={re.sub('[0-9]+', chance.choice(SIZES), one[2])}",
            f", {one[1]}={{{one[2]}}}",
        ]
    )
    return text[: one.start()] + new + text[one.end() :]


def _shapes(text: str, chance: random.Random) -> str:
    matches = list(_SHAPE.finditer(text))
    if not matches:
        return _tokens(text, chance)
    one, other = chance.choice(matches), chance.choice(matches)
    size, kind = chance.choice(SIZES), chance.choice(TYPES)
    new = chance.choice(
        [
            other[0],
            re.sub(r"\d+(?=[,\]])", size, one[0], count=1),
            re.sub(r"^[a-z]\w*", kind, one[0]),
            one[0].partition("{")[0] + chance.choice(LAYOUTS),
            f"({one[0]}, {other[0]})",
            f"b({one[0]})",
            "",
        ]
    )
    return text[: one.start()] + new + text[one.end() :]


def _lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(3):
        case 0:
            del lines[one]
        case 1:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines.insert(one, lines[other])
    return "\n".join(lines)


MUTATIONS: Sequence[Callable[[str, random.Random], str]] = (
    _characters,
    _tokens,
    _tokens,
    _attributes,
    _attributes,
    _shapes,
    _shapes,
    _lines,
    _truncate,
)


# ---------------------------------------------------------------- properties


def outcome(text: str) -> str:
    """Return ``module``, the parser's error code, or ``invalid module`` if `hlo.verify` has errors.

    Raises:
        AssertionError: an error without a location, or a module whose text parses to another one.
        Exception: every exception other than `HloError` is a bug.
    """
    try:
        module = hlo.parse(text, "fuzz.hlo")
    except hlo.HloError as error:
        _check_location(error, text)
        return f"error[{error.code}]"
    printed = str(module)
    again = hlo.parse(printed)
    assert again == module, "the module is not equal to that of its own text"
    assert str(again) == printed, "printing the parsed text changes it"
    for instruction in module.instructions:
        try:
            _ = instruction.shape
        except hlo.HloError as error:
            _check_location(error, text)
    errors = hlo.verify(module)
    for reported in errors:
        _check_location(reported, text)
    return "invalid module" if errors else "module"


def _check_location(error: hlo.HloError, text: str) -> None:
    assert str(error).startswith("error["), str(error)
    assert 0 <= error.span.start <= len(text), "the span of an error is outside the text"


def cases(bases: Sequence[str], seed: int, count: int) -> Iterator[tuple[int, str]]:
    """Yield seeds, from `seed` on, and mutated texts."""
    for number in range(seed, seed + count):
        yield number, mutate(bases[number % len(bases)], number)


def main(arguments: Sequence[str]) -> int:
    """Parse mutations and print the outcomes; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hlo.fuzz")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-going", action="store_true", help="report all failures")
    given = parser.parse_args(arguments)
    bases = texts(given.files or sorted(EXAMPLES.glob("*.hlo")))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    signal.signal(signal.SIGALRM, _too_slow)
    counts: Counter[str] = Counter()
    slowest, failed = (0.0, -1), 0
    for number, text in cases(bases, given.seed, given.count):
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
        try:
            counts[outcome(text)] += 1
        except Exception as error:  # `outcome` catches HloError
            failed += 1
            print(f"--seed {number} --count 1: {type(error).__name__}: {error}", file=sys.stderr)
            if not given.keep_going:
                raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, (time.perf_counter() - start, number))
    print(f"{given.count:,} mutations of {len(bases)} texts, {failed} failed")
    for name, count in counts.most_common():
        print(f"  {count:8,}  {name}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  slowest {slowest[0]:.3f} s (seed {slowest[1]}), peak memory {memory:.0f} MB")
    return 1 if failed else 0


def _too_slow(signal_number: int, frame: object) -> None:
    raise TimeoutError(f"longer than {MAX_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
